"""The executions that everything measured is about, and what one mean of them is (paper C.3).

An execution is one assigned pair of an agent and a task, whatever its end: no run leaves a denominator. A run that was
continued is one execution, known by its run id. All executions weigh the same; where a rate is formed within
executions first, the docstring of its module says so.

Names are those of the published tables: ``model`` for the agent, ``environment`` and ``family`` as the paper prints
them. Intervals beside a value ``x`` are ``x_low`` and ``x_high``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from skillhorizon.analysis import intervals
from skillhorizon.analysis.sources import Measured
from skillhorizon.analysis.tables import ENVIRONMENTS
from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

REFERENCE = "reference"
OVERALL = "Overall"
_RUNS = (
    "run_id", "task_id", "env", "family", "band", "agent", "R", "A", "B", "attempts", "tool_calls", "end",
    "goals_required", "goals_met", "success", "compactions",
)  # fmt: skip
_PAIRED = frozenset({"specialist-disruption", "overlap-reactivation", "ambiguity-withdrawal", "expiry-amendments"})
"""Families that join two mechanisms, which the paper prints with a plus."""


class Part(NamedTuple):
    """The traces of one agent in one environment: its runs, and one table of what happened in them."""

    runs: pd.DataFrame
    table: pd.DataFrame


class Traces:
    """The traces below ``data/traces``, one agent's folder after another; the task sets give the environments' names.

    ``agents`` chooses and orders them; without it, all but the reference, sorted.
    """

    def __init__(self, data: str | Path, agents: Sequence[str] | None = None) -> None:
        self.folder = Path(data) / "traces"
        found = sorted(path.parents[1].name for path in self.folder.glob("*/*/runs.parquet"))
        self.agents = list(dict.fromkeys(agents if agents is not None else (a for a in found if a != REFERENCE)))
        if missing := [a for a in self.agents if a not in found] or ([] if self.agents else ["any agent"]):
            raise InputError(f"no traces of {missing[0]} below {self.folder}; the stage `evaluate` makes them")
        self.titles = {env: facts["title"] for env, facts in Measured(Path(data) / "tasks").facts.items()}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """All executions, as ``executions`` gives them."""
        frames = [_read(folder / "runs.parquet", _RUNS) for folder in self._folders(self.agents)]
        return executions(pd.concat(frames, ignore_index=True), self.titles, self.agents)

    @cached_property
    def prefixes(self) -> pd.DataFrame:
        """What each run had reached at each prefix of its allowance: run_id, factor, attempts, goals_met, success.

        An agent that was not scored on the way has none, as the reference.
        """
        columns = ["run_id", "factor", "attempts", "goals_met", "success"]
        paths = [folder / "prefixes.parquet" for folder in self._folders(self.agents)]
        frames = [_read(path, columns) for path in paths if path.is_file()]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)

    def parts(self, table: str, columns: Sequence[str], optional: bool = False) -> Iterator[Part]:
        """One table of the traces, agent by agent and environment by environment, so that memory holds one at a time.

        An ``optional`` table that was not written counts as empty.
        """
        for folder in self._folders(self.agents):
            own = (self.runs["agent"] == folder.parent.name) & (self.runs["env"] == folder.name)
            path = folder / f"{table}.parquet"
            empty = optional and not path.is_file()
            yield Part(self.runs[own], pd.DataFrame(columns=list(columns)) if empty else _read(path, columns))

    def reference(self, environment: str, columns: Sequence[str]) -> pd.DataFrame:
        """Events of the reference's runs in an environment, with the column ``task_id`` for ``run_id``."""
        folder = self.folder / REFERENCE / environment
        events = _read(folder / "events.parquet", ("run_id", *columns))
        runs = _read(folder / "runs.parquet", ("run_id", "task_id")).set_index("run_id")["task_id"]
        return events.assign(task_id=events.pop("run_id").map(runs))

    def _folders(self, agents: Sequence[str]) -> list[Path]:
        found = [path.parent for agent in agents for path in sorted((self.folder / agent).glob("*/runs.parquet"))]
        if unknown := sorted({folder.name for folder in found} - set(self.titles)):
            raise InputError(f"traces of {unknown[0]} have no task set beside them; the stage `construct` makes it")
        return found


def executions(runs: pd.DataFrame, titles: dict[str, str], agents: Sequence[str]) -> pd.DataFrame:
    """Each execution once, under the printed names, in the order of agents, environments and bands.

    Adds ``model``, ``environment`` (both ordered, like ``band``) and ``end_class``: S for success, B for one that
    fails after the last permitted attempt, F for every other end (paper D).
    """
    unique = runs.drop_duplicates("run_id").reset_index(drop=True)
    if unknown := sorted(set(unique["band"]) - set(bands.BANDS)):
        raise InputError(f"the traces name a band {unknown[0]!r} that does not exist")
    names = unique["env"].map(titles)
    success, exhausted = unique["success"].astype(bool), unique["end"] == "exhausted"
    return unique.assign(
        model=_ordered(unique["agent"], agents),
        environment=_ordered(names, [*ENVIRONMENTS, *sorted(set(names) - set(ENVIRONMENTS))]),
        band=_ordered(unique["band"], bands.BANDS),
        family=unique["family"].map(family_name),
        success=success,
        end_class=np.select([success, exhausted], ["S", "B"], "F"),
    )


def family_name(slug: str) -> str:
    """A family as the paper prints it: ``overlap-reactivation`` is Overlap + reactivation."""
    return slug.replace("-", " + " if slug in _PAIRED else " ").capitalize()


def endpoints(runs: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """How executions ended (paper D): successes S, failures within the allowance F, failures at its end B."""
    keys = keys or ("model",)
    counts = runs.groupby([*keys, "end_class"], observed=True).size().unstack("end_class", fill_value=0)
    counts = counts.reindex(columns=["S", "F", "B"], fill_value=0)
    return plain(counts.assign(executions=counts.sum(axis=1)).reset_index().rename_axis(columns=None))


def means(frame: pd.DataFrame, keys: Sequence[str], **columns: str) -> pd.DataFrame:
    """Means of columns within groups, each with a bootstrap interval over the rows; ``name=column``."""
    parts = [
        intervals.bootstrapped(frame, keys, column, name) if frame[column].dtype != bool
        else intervals.share(frame, keys, column, name)
        for name, column in columns.items()
    ]  # fmt: skip
    return pd.concat(parts, axis=1)


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame as it is written: ordered columns as text, rows numbered from 0, intervals after all other columns."""
    intervals_last = sorted(frame.columns, key=lambda name: str(name).endswith(("_low", "_high")))
    frame = frame[intervals_last]
    ordered = {
        str(name): frame[name].astype(str) for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**ordered).reset_index(drop=True)


def with_overall(frame: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows, and all of them again under ``Overall``, which comes last."""
    names = [*frame[key].cat.categories, OVERALL]
    both = pd.concat([frame.assign(**{key: frame[key].astype(str)}), frame.assign(**{key: OVERALL})])
    return both.assign(**{key: _ordered(both[key], names)})


def _ordered(column: pd.Series, order: Sequence[str] | dict[str, bands.Band]) -> pd.Series:
    return pd.Series(pd.Categorical(column, list(order), ordered=True), index=column.index)


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns of a Parquet file; repeated texts as categories, so that they are compared as numbers."""
    if not path.is_file():
        raise InputError(f"no trace table at {path}")
    texts = [c for c in ("run_id", "tool", "kind", "goal", "reason") if c in columns]
    file = pq.ParquetFile(path, read_dictionary=texts if path.stem != "runs" else None)
    if missing := [c for c in columns if c not in file.schema_arrow.names]:
        raise InputError(f"{path} has no column {missing[0]!r}: another version wrote it")
    frame: pd.DataFrame = file.read(columns=list(columns)).to_pandas()
    return frame
