"""What a run leaves: its events, its token counts, its digests; Parquet in and out.

Tables ``runs``, ``events``, ``compactions`` and ``prefixes`` (what a run had reached when its attempts passed
R + ceil(factor * A)), ``sightings`` and ``matches`` (of ``links``); the columns are those of ``TABLES``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skillhorizon.core import tokens
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event
from skillhorizon.core.serial import digest, short_digest

if TYPE_CHECKING:
    import pandas as pd  # heavy, and loaded by Arrow where a frame is asked for

    from skillhorizon.core.evaluation import Evaluation
    from skillhorizon.core.task import Task

_REF = re.compile(rb'"([a-z]+-[0-9a-z]{5}(?:-[0-9]+)?@[0-9]+)"')

_EVENT_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "step": pa.int32(),
    "decision": pa.int32(),
    "position": pa.int32(),
    "tool": pa.string(),
    "kind": pa.string(),
    "charged": pa.bool_(),
    "ok": pa.bool_(),
    "code": pa.string(),
    "module": pa.string(),
    "goal": pa.string(),
    "cycle": pa.int32(),
    "check": pa.bool_(),
    "reason": pa.string(),
    "invalidated": pa.list_(pa.string()),
    "call_tokens": pa.int32(),
    "observation_tokens": pa.int32(),
    "context_tokens": pa.int32(),
    "consumed": pa.list_(pa.string()),
    "produced": pa.list_(pa.string()),
    "observation_digest": pa.string(),
}
EVENT_COLUMNS = tuple(_EVENT_TYPES)

_RUN_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "task_id": pa.string(),
    "env": pa.string(),
    "family": pa.string(),
    "configuration": pa.string(),
    "band": pa.string(),
    "agent": pa.string(),
    "seed": pa.int64(),
    "R": pa.int32(),
    "A": pa.int32(),
    "B": pa.int32(),
    "attempts": pa.int32(),
    "tool_calls": pa.int32(),
    "decisions": pa.int32(),
    "end": pa.string(),
    "goals_required": pa.int32(),
    "goals_met": pa.int32(),
    "lgc": pa.float64(),
    "success": pa.bool_(),
    "delivery_failed": pa.list_(pa.string()),
    "call_tokens": pa.int64(),
    "observation_tokens": pa.int64(),
    "compactions": pa.int32(),
    "request_tokens": pa.int64(),
    "response_tokens": pa.int64(),
    "cost": pa.float64(),
    "state_digest": pa.string(),
    "trace_digest": pa.string(),
}
RUN_COLUMNS = tuple(_RUN_TYPES)

_COMPACTION_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "decision": pa.int32(),
    "mode": pa.string(),
    "retained_messages": pa.int32(),
    "tokens_before": pa.int32(),
    "tokens_after": pa.int32(),
    "evicted_steps": pa.list_(pa.int32()),
    "adopted": pa.bool_(),
}

_PREFIX_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "factor": pa.float64(),
    "attempts": pa.int32(),
    "goals_met": pa.int32(),
    "lgc": pa.float64(),
    "success": pa.bool_(),
}

_SIGHTING_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "step": pa.int32(),
    "refs": pa.list_(pa.string()),
}

_MATCH_TYPES: dict[str, pa.DataType] = {
    "run_id": pa.string(),
    "step": pa.int32(),
    "source": pa.int32(),
    "sources": pa.int32(),
}

TABLES: dict[str, pa.Schema] = {
    "runs": pa.schema(list(_RUN_TYPES.items())),
    "events": pa.schema(list(_EVENT_TYPES.items())),
    "compactions": pa.schema(list(_COMPACTION_TYPES.items())),
    "prefixes": pa.schema(list(_PREFIX_TYPES.items())),
    "sightings": pa.schema(list(_SIGHTING_TYPES.items())),
    "matches": pa.schema(list(_MATCH_TYPES.items())),
}


_ENCODINGS = {
    "step": "DELTA_BINARY_PACKED",
    "decision": "DELTA_BINARY_PACKED",
    "context_tokens": "DELTA_BINARY_PACKED",
    "goal": "PLAIN",
    "observation_digest": "PLAIN",
}
"""Of the columns of events; chosen by measurement."""


class Trace:
    """The events of one run, in order. Tokens and digests are computed when first asked for.

    ``known_refs`` are the artifacts of the run; without them every well-formed reference counts as one.
    """

    def __init__(self, raw: Sequence[Event], run_id: str = "", known_refs: Mapping[str, Any] | None = None) -> None:
        self.raw = raw
        self.run_id = run_id
        self._known = known_refs

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every call and observation in order: two runs with the same digest saw the same bytes."""
        return digest(*(part for e in self.raw for part in (e.call, e.observation)))

    @cached_property
    def call_tokens(self) -> list[int]:
        return tokens.count_each([e.call for e in self.raw])

    @cached_property
    def observation_tokens(self) -> list[int]:
        return tokens.count_each([e.observation for e in self.raw])

    @property
    def tokens(self) -> int:
        """L: tokens of calls and of observations, every occurrence counted (paper A.3.1)."""
        return sum(self.call_tokens) + sum(self.observation_tokens)

    @property
    def calls(self) -> int:
        """R of this run: tool calls of every kind."""
        return len(self.raw)

    @property
    def business_calls(self) -> int:
        """A of this run: operations and script runs (paper 3.1)."""
        return sum(e.kind in ("business", "script") for e in self.raw)

    @property
    def attempts(self) -> int:
        """U: charged attempts."""
        return sum(e.charged for e in self.raw)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per attempted call, columns ``EVENT_COLUMNS``."""
        frame: pd.DataFrame = self.table().to_pandas()
        return frame

    def table(self, whole: bool = True) -> pa.Table:
        """``events`` as Arrow. Not ``whole`` it leaves out what takes most room: tokens and digest of each call.

        The tokens of the whole run and its digest are in its row all the same.
        """
        columns: dict[str, Any] = {
            name: [getattr(e, name) for e in self.raw] for name in EVENT_COLUMNS if name in Event.__struct_fields__
        }
        none = [None] * len(self.raw)
        columns["run_id"] = [self.run_id] * len(self.raw)
        columns["call_tokens"] = self.call_tokens if whole else none
        columns["observation_tokens"] = self.observation_tokens if whole else none
        columns["consumed"] = self._consumed()
        columns["observation_digest"] = [short_digest(e.observation) for e in self.raw] if whole else none
        return pa.table({name: columns[name] for name in EVENT_COLUMNS}, schema=TABLES["events"])

    def _consumed(self) -> list[list[str]]:
        """Of each operation, the references in its arguments to artifacts that existed then, as they first appear."""
        consumed = []
        later = {ref for e in self.raw for ref in e.produced}
        for event in self.raw:
            found = dict.fromkeys(ref.decode() for ref in _REF.findall(event.call)) if event.kind == "business" else {}
            consumed.append([ref for ref in found if (self._known is None or ref in self._known) and ref not in later])
            later.difference_update(event.produced)
        return consumed


def run_row(
    task: Task,
    trace: Trace,
    evaluation: Evaluation,
    *,
    agent: str,
    seed: int,
    end: str,
    budget: int | None,
    state_digest: str,
    decisions: int | None = None,
    compactions: int = 0,
    request_tokens: int | None = None,
    response_tokens: int | None = None,
    cost: float | None = None,
) -> dict[str, Any]:
    """The row of one run in the table of runs, columns ``RUN_COLUMNS``; ``seed`` is the agent's.

    Without ``decisions`` those count that made a call. The tokens and the cost are those of a model's requests.
    """
    config, measures = task.config, task.measures
    return {
        "run_id": trace.run_id,
        "task_id": task.id,
        "env": config.env,
        "family": config.family,
        "configuration": config.id,
        "band": config.band,
        "agent": agent,
        "seed": seed,
        "R": measures.R if measures else None,
        "A": measures.A if measures else None,
        "B": budget,
        "attempts": trace.attempts,
        "tool_calls": trace.calls,
        "decisions": len({e.decision for e in trace.raw}) if decisions is None else decisions,
        "end": end,
        "goals_required": len(evaluation.local),
        "goals_met": evaluation.goals_met,
        "lgc": evaluation.lgc,
        "success": evaluation.success,
        "delivery_failed": evaluation.delivery_failed,
        "call_tokens": sum(trace.call_tokens),
        "observation_tokens": sum(trace.observation_tokens),
        "compactions": compactions,
        "request_tokens": request_tokens,
        "response_tokens": response_tokens,
        "cost": cost,
        "state_digest": state_digest,
        "trace_digest": trace.digest,
    }


def write(folder: Path, tables: Mapping[str, pa.Table | Iterable[Mapping[str, Any]]]) -> None:
    """Write trace tables as Parquet, each through a temporary file, so that a killed writer leaves the old one."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        table = rows if isinstance(rows, pa.Table) else _table(name, [dict(r) for r in rows])
        write_parquet(table, folder / f"{name}.parquet")


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = TABLES[name]
    if unknown := {column for row in rows for column in row} - set(schema.names):
        raise ValueError(f"the table {name} has no column {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(rows, schema=schema)


def write_parquet(table: pa.Table, path: Path) -> None:
    """One Parquet file, compressed for size, byte-stable, replaced in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    # what counts up is kept as differences, what is drawn anew for each row by its bytes or as it is; all else repeats
    # and goes by dictionary
    encodings = {name: how for name, how in _ENCODINGS.items() if name in table.column_names}
    pq.write_table(
        table,
        temporary,
        compression="zstd",
        compression_level=19 if encodings else 12,
        store_schema=False,
        use_dictionary=[name for name in table.column_names if name not in encodings],
        column_encoding=encodings,
    )
    os.replace(temporary, path)


def read(folder: Path, table: str) -> pd.DataFrame:
    """One of the tables ``TABLES`` of a folder of traces."""
    path = folder / f"{table}.parquet"
    if not path.is_file():
        raise InputError(f"no trace table at {path}")
    frame: pd.DataFrame = pq.read_table(path).to_pandas()
    return frame
