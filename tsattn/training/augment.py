"""Augmentation: words that change a training batch, joined by '+' and applied from left to right.

'jitter:0.03+crop:0.9+mixup:0.2' reads like a spec of attention; '' and 'none' change nothing.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from torch import Tensor

from tsattn.errors import InputError
from tsattn.training.augment_words import AugmentWord, Change, augment_words

EXAMPLE = "jitter:0.03+scale:0.1+crop:0.9"


@dataclass(frozen=True)
class Augmentation:
    """Changes batches as a spec says; false if it says nothing.

    spec: the shortest spelling, 'none' for nothing. changes: in the order of application.
    """

    spec: str
    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        return self.spec

    def __call__(
        self, values: Tensor, targets: Tensor, complete: bool, spread: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Values (B, C, T) and targets (B, classes), new where something changes; the given ones stay.

        values: raw units, NaN where not observed; that stays so, but `crop` moves and widens gaps.
        targets: rows sum to one. complete: the caller's promise that nothing in `values` is NaN, in
        any channel; the result then has no NaN either. spread: (C,), the training standard deviation.
        """
        for change in self.changes:
            values, targets = change(values, targets, complete, spread)
        return values, targets


def parse_augmentation(spec: str) -> Augmentation:
    """Reads a spec such as 'jitter:0.03+crop:0.9'. InputError with the right spelling for nonsense."""
    if spec.strip() in ("", "none"):
        return Augmentation("none", ())
    found = [_read(part.strip(), spec) for part in spec.split("+")]
    names = [word.name for word, _ in found]
    for name in names:
        if names.count(name) > 1:
            once = "+".join(_spell(*entry) for i, entry in enumerate(found) if names[i] not in names[:i])
            raise InputError(f"augment '{spec}': '{name}' stands twice, write '{once}'.")
    return Augmentation(
        "+".join(_spell(word, strength) for word, strength in found),
        tuple(word.make(strength) for word, strength in found if strength != word.idle),
    )


def _read(part: str, spec: str) -> tuple[AugmentWord, float]:
    name, _, option = (piece.strip() for piece in part.partition(":"))
    if name in ("", "none"):
        what = "'none' stands by itself" if name else "a word is missing"
        raise InputError(f"augment '{spec}': {what}; words are joined by one '+', e.g. {EXAMPLE}.")
    words = {word.name: word for word in augment_words()}
    if name not in words:
        near = difflib.get_close_matches(name, words, n=2, cutoff=0.5)
        hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        known = ", ".join(word.usage for word in words.values())
        raise InputError(
            f"augment '{spec}': there is no word '{name}'.{hint} There are: {known}. "
            f"Join them with '+', e.g. {EXAMPLE}."
        )
    word = words[name]
    allowed = f"'{name}' needs a number from {word.least:g} to {word.most:g}"
    if not option:
        raise InputError(f"augment '{spec}': {allowed} (usage: {word.usage}).")
    try:
        strength = float(option)
    except ValueError:
        raise InputError(f"augment '{spec}': {allowed}, not '{option}' (usage: {word.usage}).") from None
    if not word.least <= strength <= word.most:
        raise InputError(f"augment '{spec}': {allowed}, not {option} (usage: {word.usage}).")
    return word, strength


def _spell(word: AugmentWord, strength: float) -> str:
    return f"{word.name}:{strength!r}".removesuffix(".0")
