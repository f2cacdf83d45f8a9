"""Cases gathered from a table of unknown length, then laid out as one Collection's values.

What has been read waits in large pieces that are given back one by one while the values are filled, so
that reading takes little more memory than what is read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tsattn.data.longcases import Group

_PIECE_BYTES = 48 << 20  # from 32 MiB on, memory that is freed goes back to the system at once


class Spool:
    """Columns of rows that are appended in batches. columns: how many values a row has."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._capacity = max(_PIECE_BYTES // (4 * max(columns, 1)), 1)
        self._pieces: list[NDArray[np.float32]] = []
        self._used = self._capacity  # of the last piece

    def append(self, rows: NDArray[np.float32]) -> None:
        """Copies (columns, rows)."""
        start = 0
        while start < rows.shape[1]:
            if self._used == self._capacity:
                self._pieces.append(np.empty((self._columns, self._capacity), np.float32))
                self._used = 0
            stop = min(rows.shape[1], start + self._capacity - self._used)
            end = self._used + stop - start
            self._pieces[-1][:, self._used : end] = rows[:, start:stop]
            start, self._used = stop, end

    def drain(self) -> Iterator[NDArray[np.float32]]:
        """The rows in pieces (columns, rows), each of which is forgotten when the next is asked for."""
        self._pieces.reverse()
        while self._pieces:
            piece = self._pieces.pop()
            yield piece if self._pieces else piece[:, : self._used]
            del piece


class LongSpool:
    """Cases of a long table: groups are appended, values (cases, channels, timepoints) come out."""

    def __init__(self, channels: int) -> None:
        self._rows = Spool(channels)
        self._channels = channels
        self._lengths: list[NDArray[np.int64]] = []
        self._longest = 1

    def append(self, group: Group) -> None:
        """Copies the group's values."""
        seen: NDArray[np.bool_] = np.logical_not(np.isnan(group.values).all(axis=0))
        if not seen[-1] or not seen.all():
            observed = np.where(seen, group.points + 1, 0)
            self._longest = max(self._longest, int(observed.max()))
        else:
            self._longest = max(self._longest, int(group.lengths.max()))
        self._lengths.append(group.lengths)
        self._rows.append(group.values)

    def values(self) -> NDArray[np.float32]:
        """(cases, channels, longest), NaN behind each shorter case; timepoints that no case has are cut."""
        lengths = np.concatenate(self._lengths)
        ends = np.cumsum(lengths)
        values = np.empty((len(lengths), self._channels, self._longest), np.float32)
        row = 0
        for piece in self._rows.drain():
            stop = row + piece.shape[1]
            first, last = np.searchsorted(ends, [row, stop - 1], side="right")
            # a case that began in the piece before goes on behind its rows there
            begun = row - int(ends[first] - lengths[first])
            part = lengths[first : last + 1].copy()
            part[0] -= begun
            part[-1] -= int(ends[last]) - stop
            _fill(values[first : last + 1], piece, part, begun)
            row = stop
            del piece
        return values


def padded(groups: list[Group]) -> NDArray[np.float32]:
    """(cases, channels, longest) of a few groups, as `LongSpool.values`."""
    spool = [np.concatenate([group.values for group in groups], axis=1)]
    lengths = np.concatenate([group.lengths for group in groups])
    values = np.empty((len(lengths), spool[0].shape[0], max(int(lengths.max()), 1)), np.float32)
    _fill(values, spool[0], lengths, 0)
    return values


def _fill(
    values: NDArray[np.float32], rows: NDArray[np.float32], lengths: NDArray[np.int64], begun: int
) -> None:
    """Lays `rows` (channels, rows) into the cases `values`; NaN behind each.

    lengths: rows of each case. begun: timepoints of the first case that are there already.
    """
    longest = values.shape[2]
    if begun:
        count = max(min(int(lengths[0]), longest - begun), 0)
        values[0, :, begun : begun + count] = rows[:, :count]
        values[0, :, begun + count :] = np.nan
        values, rows, lengths = values[1:], rows[:, int(lengths[0]) :], lengths[1:]
    if not len(lengths):
        return
    if (lengths == longest).all():
        values[:] = rows.reshape(rows.shape[0], len(lengths), longest).swapaxes(0, 1)
        return
    if longest >= 64:  # a copy a case
        start = 0
        for case, length in zip(values, lengths.tolist(), strict=True):
            count = min(length, longest)
            case[:, :count] = rows[:, start : start + count]
            case[:, count:] = np.nan
            start += length
        return
    if int(lengths.max()) > longest:
        point = np.arange(rows.shape[1]) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = rows[:, point < longest]
    mask = np.arange(longest) < lengths[:, None]  # (cases, longest)
    values[:] = np.nan
    for channel in range(rows.shape[0]):
        values[:, channel][mask] = rows[channel]
