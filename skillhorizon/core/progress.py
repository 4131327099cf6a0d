"""Progress of long work: a bar on standard error, silent when that is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")
U = TypeVar("U")


def track(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    yield from tqdm(items, desc=label, total=total, disable=None, leave=False)


def parallel(work: Callable[[T], U], items: Iterable[T], label: str, processes: int) -> list[U]:
    """``[work(item) for item in items]`` over processes; the results keep the order of the items.

    ``work`` and the items must be picklable. The first failure ends the whole and is raised here.
    """
    listed = list(items)
    if processes <= 1 or len(listed) <= 1:
        return [work(item) for item in track(listed, label, len(listed))]
    results: dict[int, Any] = {}
    # spawn: no locks or threads of the caller's process are inherited (notebook kernels hold both)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(work, item): index for index, item in enumerate(listed)}
        try:
            for future in track(as_completed(futures), label, len(listed)):
                results[futures[future]] = future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [results[index] for index in range(len(listed))]
