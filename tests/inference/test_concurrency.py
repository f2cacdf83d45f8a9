"""Reading ahead and parallel work keep order, bounds and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import closing

import pytest

from tsattn.inference.concurrency import in_order, read_ahead


def test_order_stays_whatever_finishes_first() -> None:
    def work(n: int) -> int:
        time.sleep(0.002 * (n % 3))
        return n * n

    assert list(in_order(work, range(20), 3)) == [(n, n * n) for n in range(20)]


def test_no_more_than_the_depth_is_read_before_it_is_asked_for() -> None:
    read: list[int] = []

    def numbers() -> Generator[int, None, None]:
        for n in range(100):
            read.append(n)
            yield n

    with closing(read_ahead(numbers(), 3)) as items:
        assert next(items) == 0
        time.sleep(0.1)
        assert len(read) <= 4
    assert len(read) <= 5
    assert list(read_ahead(numbers(), 3)) == list(range(100))


def test_an_error_of_the_reader_arrives_after_what_came_before_it() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ValueError("line 3")

    items = read_ahead(numbers(), 2)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="line 3"):
        next(items)


def test_an_error_of_the_work_arrives_and_every_thread_ends() -> None:
    closed: list[bool] = []

    def numbers() -> Generator[int, None, None]:
        try:
            yield from range(1000)
        finally:
            closed.append(True)

    before = threading.active_count()
    with (
        pytest.raises(ZeroDivisionError),
        closing(read_ahead(numbers(), 2)) as items,
        closing(in_order(lambda n: 1 / (5 - n), items, 2)) as results,
    ):
        for _ in results:
            pass
    assert closed == [True]
    assert threading.active_count() == before
