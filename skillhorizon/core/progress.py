"""Progress of long work: a bar on standard error, silent when that is neither a terminal nor a notebook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")
U = TypeVar("U")


def track(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    yield from tqdm(items, desc=label, total=total, disable=False if in_notebook else None, leave=False)


@contextmanager
def watch(count: Callable[[], int], label: str, total: int | None = None) -> Iterator[None]:
    """Show a count that the work inside advances by itself, without a word in the work's own loop."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    with tqdm(desc=label, total=total, leave=False) as bar:

        def show() -> None:
            while not over.wait(0.2):
                bar.update(count() - bar.n)

        thread = threading.Thread(target=show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def parallel(work: Callable[[T], U], items: Iterable[T], label: str, processes: int) -> list[U]:
    """``[work(item) for item in items]`` over processes; the results keep the order of the items.

    ``work`` and the items must be picklable. The first failure ends the whole and is raised here.
    """
    results = dict(completed(work, items, label, processes))
    return [results[index] for index in range(len(results))]


def completed(work: Callable[[T], U], items: Iterable[T], label: str, processes: int) -> Iterator[tuple[int, U]]:
    """``(index, work(item))`` over processes, each as it is done; otherwise as ``parallel``."""
    listed = list(items)
    if processes <= 1 or len(listed) <= 1:
        for index, item in enumerate(track(listed, label, len(listed))):
            yield index, work(item)
        return
    # spawn: no locks or threads of the caller's process are inherited (notebook kernels hold both)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(work, item): index for index, item in enumerate(listed)}
        try:
            for future in track(as_completed(futures), label, len(listed)):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
