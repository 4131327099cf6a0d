from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skillhorizon.core import trace
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event
from skillhorizon.core.generation import run_policy
from skillhorizon.core.trace import Trace

SEVEN = b"2 + 2 = 4"
SIX = b"antidisestablishmentarianism"
EIGHT = "お誕生日おめでとう".encode()
"""Numbers of o200k_base tokens that OpenAI's cookbook publishes."""


def event(step: int, **fields: Any) -> Event:
    plain: dict[str, Any] = {
        "decision": step, "position": 0, "tool": "t", "kind": "query", "charged": True, "ok": True, "code": None,
        "module": None, "goal": None, "cycle": None, "check": None, "reason": None, "invalidated": (), "produced": (),
        "call": b"", "observation": b"", "context_tokens": None, "role": "full",
    }  # fmt: skip
    return Event(step=step, **{**plain, **fields})


@pytest.fixture
def tiny() -> Trace:
    """A read, a script, a refused and an accepted operation, a declaration."""
    return Trace(
        [
            event(1, call=SIX, observation=SEVEN),
            event(2, kind="script", call=SIX, observation=SEVEN),
            event(3, kind="business", ok=False, code="too_hot", check=False, goal="loaf:1", cycle=1, reason="too_hot",
                  call=SEVEN, observation=EIGHT),
            event(4, decision=3, position=1, kind="business", call=SEVEN, observation=SIX, check=True, goal="loaf:1",
                  cycle=1, produced=("lof-00001@1",), invalidated=("loaf:2", "loaf:3"), context_tokens=500, module="m"),
            event(5, kind="declaration", charged=False, call=b"", observation=SEVEN),
        ],
        "run-1",
    )  # fmt: skip


def test_tokens_are_summed_over_every_occurrence_of_call_and_observation(tiny):
    assert tiny.call_tokens == [6, 6, 7, 7, 0]
    assert tiny.observation_tokens == [7, 7, 8, 6, 7]
    assert tiny.tokens == 26 + 35


def test_calls_attempts_and_business_calls_are_counted(tiny):
    """R counts all five, U all but the declaration, A the script and both operations."""
    assert (tiny.calls, tiny.attempts, tiny.business_calls) == (5, 4, 3)


def test_the_columns_of_events_are_those_that_other_programs_read():
    text, number, truth, texts = "string", "int32", "bool", "list"
    assert [(f.name, str(f.type).split("<")[0]) for f in trace.TABLES["events"]] == [
        ("run_id", text), ("step", number), ("decision", number), ("position", number), ("tool", text), ("kind", text),
        ("charged", truth), ("ok", truth), ("code", text), ("module", text), ("goal", text), ("cycle", number),
        ("check", truth), ("reason", text), ("invalidated", texts), ("call_tokens", number),
        ("observation_tokens", number), ("context_tokens", number), ("consumed", texts), ("produced", texts),
        ("observation_digest", text),
    ]  # fmt: skip
    assert all(pa.types.is_string(f.type.value_type) for f in trace.TABLES["events"] if pa.types.is_list(f.type))


def test_the_columns_of_runs_and_compactions_are_those_that_other_programs_read():
    assert trace.RUN_COLUMNS == (
        "run_id", "task_id", "env", "family", "configuration", "band", "agent", "seed", "R", "A", "B", "attempts",
        "tool_calls", "decisions", "end", "goals_required", "goals_met", "lgc", "success", "delivery_failed",
        "call_tokens", "observation_tokens", "compactions",
        "request_tokens", "response_tokens", "cost", "state_digest", "trace_digest",
    )  # fmt: skip
    assert trace.TABLES["compactions"].names == [
        "run_id", "decision", "mode", "retained_messages", "tokens_before", "tokens_after", "evicted_steps", "adopted",
    ]  # fmt: skip


def test_the_events_table_holds_one_row_an_attempt(tiny):
    rows = tiny.table().to_pylist()
    assert rows[3] == {
        "run_id": "run-1", "step": 4, "decision": 3, "position": 1, "tool": "t", "kind": "business", "charged": True,
        "ok": True, "code": None, "module": "m", "goal": "loaf:1", "cycle": 1, "check": True, "reason": None,
        "invalidated": ["loaf:2", "loaf:3"], "call_tokens": 7, "observation_tokens": 6, "context_tokens": 500,
        "consumed": [], "produced": ["lof-00001@1"], "observation_digest": rows[3]["observation_digest"],
    }  # fmt: skip
    assert [r["check"] for r in rows] == [None, None, False, True, None]
    digests = [r["observation_digest"] for r in rows]
    assert digests[0] == digests[1] == digests[4]
    assert len(set(digests)) == 3
    assert list(tiny.events.columns) == list(trace.EVENT_COLUMNS)


def test_consumed_are_the_references_of_an_operation_to_artifacts_that_existed_then():
    def call(*refs: str) -> bytes:
        return str({"x": list(refs)}).replace("'", '"').encode()

    a, b, later, never = "nrm-7qk2m@1", "nrm-7qk2m-3@12", "agg-7qk2m@1", "agg-zzzzz@9"
    made = Trace(
        [
            event(1, kind="business", call=call(a, later), produced=(a,)),
            event(2, kind="business", call=call(a, never), produced=(b,)),
            event(3, kind="query", call=call(a, b)),
            event(4, kind="business", call=call(b, a, b, "src-7qk2m", f"about {a}", "SRC-7qk2m@1"), produced=(later,)),
            event(5, kind="business", ok=False, call=b'{"x":{"%b":1}}' % later.encode()),
        ],
        known_refs=dict.fromkeys((a, b, later)),
    )
    assert list(made.events["consumed"].map(list)) == [[], [a], [], [b, a], [later]]


# -- Parquet -------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_back(tiny, tmp_path, task):
    reference = run_policy(task).trace
    for made in (tiny, reference):
        trace.write(tmp_path, {"events": made.table()})
        assert pq.read_table(tmp_path / "events.parquet").equals(made.table())
        pd.testing.assert_frame_equal(trace.read(tmp_path, "events"), made.events)
    assert [p.name for p in tmp_path.iterdir()] == ["events.parquet"]


RUN = {
    "run_id": "r", "task_id": "t", "env": "toy", "family": "f", "configuration": "c", "band": "64K",
    "agent": "reference", "seed": 2**40, "R": 1, "A": 1, "B": 2, "attempts": 1, "tool_calls": 1, "decisions": 1,
    "end": "submitted", "goals_required": 3, "goals_met": 1, "lgc": 1 / 3, "success": False,
    "delivery_failed": ["x", "y"], "call_tokens": 2**33, "observation_tokens": 5, "compactions": 0,
    "request_tokens": 2**33, "response_tokens": 7, "cost": 0.5,
    "state_digest": "s", "trace_digest": "d",
}  # fmt: skip


def test_rows_of_plain_dictionaries_are_written_in_the_declared_types(tmp_path):
    gone = {"run_id": "r", "decision": 3, "mode": "full", "retained_messages": 4, "tokens_before": 9, "tokens_after": 5,
            "evicted_steps": [1, 7], "adopted": True}  # fmt: skip
    trace.write(tmp_path / "new" / "folder", {"runs": [RUN, {**RUN, "B": None}], "compactions": [gone]})
    runs = pq.read_table(tmp_path / "new" / "folder" / "runs.parquet")
    assert runs.schema.equals(trace.TABLES["runs"])
    assert runs.to_pylist() == [RUN, {**RUN, "B": None}]
    assert pq.read_table(tmp_path / "new" / "folder" / "compactions.parquet").to_pylist() == [gone]


def test_an_empty_table_keeps_its_columns(tmp_path):
    trace.write(tmp_path, {name: [] for name in trace.TABLES})
    for name, schema in trace.TABLES.items():
        assert list(trace.read(tmp_path, name).columns) == schema.names


def test_the_same_table_gives_the_same_bytes(tiny, tmp_path):
    for folder in ("one", "two"):
        trace.write(tmp_path / folder, {"events": tiny.table(), "runs": [RUN]})
    trace.write(tmp_path / "one", {"events": tiny.table()})
    for name in ("events", "runs"):
        one, two = ((tmp_path / f / f"{name}.parquet").read_bytes() for f in ("one", "two"))
        assert one == two


def test_a_column_that_no_table_has_is_refused_and_the_old_file_stays(tmp_path):
    trace.write(tmp_path, {"runs": [RUN]})
    before = (tmp_path / "runs.parquet").read_bytes()
    with pytest.raises(ValueError, match="the table runs has no column colour"):
        trace.write(tmp_path, {"runs": [{**RUN, "colour": "red"}]})
    assert (tmp_path / "runs.parquet").read_bytes() == before


def test_a_missing_table_is_bad_input(tmp_path):
    with pytest.raises(InputError, match="no trace table at"):
        trace.read(tmp_path, "events")


# -- digests -------------------------------------------------------------------------------------------------------


def test_the_digest_changes_with_a_byte_and_with_the_order(tiny):
    def digest(*pairs: tuple[bytes, bytes]) -> str:
        return Trace([event(n, call=c, observation=o) for n, (c, o) in enumerate(pairs, 1)]).digest

    same = digest((b"a", b"b"), (b"c", b"d"))
    others = [
        digest((b"a", b"b"), (b"c", b"e")),
        digest((b"c", b"d"), (b"a", b"b")),
        digest((b"ab", b""), (b"c", b"d")),
        digest((b"a", b"b")),
    ]
    assert same == digest((b"a", b"b"), (b"c", b"d"))
    assert len({same, *others}) == 5


def test_the_reference_leaves_the_same_trace_in_another_process_with_another_hash_seed(task):
    program = (
        "from skillhorizon.core.generation import run_policy\n"
        "from tests.toy import ENVIRONMENT\n"
        "run = run_policy(ENVIRONMENT.build(ENVIRONMENT.config('64K', 'letters/chain'), 1, 12))\n"
        "print(run.trace.digest, run.gateway.state_digest())"
    )
    line, root = [sys.executable, "-c", program], Path(__file__).parents[2]
    said = {
        subprocess.run(
            line, env={"PYTHONHASHSEED": seed}, cwd=root, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    run = run_policy(task)
    assert said == {f"{run.trace.digest} {run.gateway.state_digest()}\n"}
