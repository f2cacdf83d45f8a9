"""Text files of series as plain lines."""

from __future__ import annotations

from tsattn.errors import InputError


def text_of(data: bytes, where: str, form: str) -> str:
    """The text of a file with lines that end in a bare newline, without byte order mark.

    form: what the file should be, for messages. InputError, with line, for what is empty or no UTF-8 text.
    """
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise InputError(
            f"{where}:{line}: a NUL byte: this is a binary file or UTF-16 text where {form} was expected. "
            "Unpack it, or save it as UTF-8."
        )
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"{where}:1: the file is empty where {form} was expected.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{where}:{line}: not UTF-8. Save the file as UTF-8 text.") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def shown(text: str) -> str:
    """The text in quotes, cut where it would fill the screen."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
