"""Read ahead and work in parallel, in order, with a bounded number of items in memory.

Errors of the threads are raised where the items are taken; closing the iterators (Ctrl-C, an
error downstream) waits for the item in hand and drops the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class _End:
    pass


def read_ahead(items: Generator[T, None, None], depth: int) -> Generator[T, None, None]:
    """The same items, up to `depth` of them read in a thread before they are asked for."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
    waiting: deque[Future[T | _End]] = deque()
    try:
        for _ in range(depth):
            waiting.append(pool.submit(next, items, _End()))
        while not isinstance(item := waiting.popleft().result(), _End):
            waiting.append(pool.submit(next, items, _End()))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        items.close()


def in_order(
    work: Callable[[T], R], items: Iterable[T], depth: int, pool: Executor | None = None
) -> Generator[tuple[T, R], None, None]:
    """Each item with work(item), in the order of the items, `depth` of them begun before they are asked for.

    pool: the threads that work, shared with others; `depth` threads of its own if not given.
    """
    own = ThreadPoolExecutor(depth, thread_name_prefix="work") if pool is None else nullcontext(pool)
    waiting: deque[tuple[T, Future[R]]] = deque()
    with own as threads:
        try:
            for item in items:
                waiting.append((item, threads.submit(work, item)))
                if len(waiting) > depth:
                    done, result = waiting.popleft()
                    yield done, result.result()
            while waiting:
                done, result = waiting.popleft()
                yield done, result.result()
        finally:
            for _, result in waiting:
                result.cancel()
            wait([result for _, result in waiting])
