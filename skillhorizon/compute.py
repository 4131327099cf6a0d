"""Where the work of a stage is done: processes of this machine, or a Dask cluster. The results are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeVar

import msgspec

from skillhorizon.core import progress
from skillhorizon.core.errors import InputError

T = TypeVar("T")
U = TypeVar("U")


class Compute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``address`` is that of a Dask scheduler, such as ``tcp://host:8786``."""

    engine: Literal["processes", "dask"] = "processes"
    address: str | None = None

    def __post_init__(self) -> None:
        if (self.engine == "dask") != (self.address is not None):
            raise ValueError("the address of a scheduler and the engine dask go together")


def completed(
    work: Callable[[T], U], items: Iterable[T], label: str, compute: Compute, processes: int
) -> Iterator[tuple[int, U]]:
    """``(index, work(item))``, each as it is done; the first failure ends the whole and is raised.

    On a cluster, work that was lost with its worker is done again by another.
    """
    listed = list(items)
    if compute.engine == "processes" or not listed:
        yield from progress.completed(work, listed, label, processes)
        return
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise InputError("the engine dask needs the extra: pip install 'skillhorizon[cluster]'") from None
    try:
        client = Client(compute.address, timeout="10s", set_as_default=False)
    except OSError as error:
        raise InputError(f"no Dask scheduler answers at {compute.address} ({error})") from None
    with client:
        made = client.map(work, listed, pure=False)  # equal items are items all the same
        futures = {future.key: index for index, future in enumerate(made)}
        for future in progress.track(as_completed(made, loop=client.loop), label, len(listed)):
            yield futures[future.key], future.result()
            future.release()
