"""From trace files to tables: what is found, in which columns, and what is said where something is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from skillhorizon.analysis.measures import measures
from skillhorizon.analysis.populations import Traces
from skillhorizon.core import trace
from skillhorizon.core.errors import InputError
from tests.analysis.handmade import PUBLISHED, TITLES, check, events


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two agents and the reference on two tasks: hasty has its summary, recovers nothing and stops; steady succeeds."""
    for env, title in TITLES.items():
        facts = tmp_path / "tasks" / f"{env}.json"
        facts.parent.mkdir(exist_ok=True)
        facts.write_text(json.dumps({"title": title}))
    made = {"tool": "make", "produced": ("ctr-aaaaa@1",)}
    work = [made, {"tool": "make", "produced": ("ctr-ddddd@1",)}]
    for agent, won in (("reference", True), ("hasty", False), ("steady", True)):
        for env in ("docs", "social"):
            told = events(
                *work,
                check("page:a", won, consumed=("ctr-aaaaa@1",)),
                check("page:d", True, consumed=("ctr-ddddd@1",)),
                {"tool": "publish_post", "ok": won, "code": None if won else "load_cap"},
            )
            write(tmp_path, agent, env, told, won)
    return tmp_path


def write(data: Path, agent: str, env: str, told: pd.DataFrame, won: bool) -> None:
    run_id = f"{env}-{agent}"
    run = {
        "run_id": run_id, "task_id": f"{env}-task", "env": env, "family": "expiring-reservations", "band": "64K",
        "agent": agent, "R": 5, "A": 5, "B": 8, "attempts": 5, "tool_calls": 5, "end": "submitted",
        "goals_required": 2, "goals_met": 2 if won else 0, "success": won, "compactions": int(agent == "hasty"),
    }  # fmt: skip
    summary = {"run_id": run_id, "decision": 3, "mode": "full", "evicted_steps": [1, 1], "adopted": True}
    rows = told.assign(run_id=run_id).astype(object).where(told.notna(), None).to_dict("records")
    tables: dict[str, Any] = {
        "runs": [run],
        "events": pa.Table.from_pylist(rows, schema=trace.TABLES["events"]),
        "compactions": [summary] if agent == "hasty" else [],
        "matches": pa.Table.from_pylist([{"run_id": run_id, "step": 5, "source": 1, "sources": 1}]),
        "prefixes": pa.Table.from_pylist(
            [{"run_id": run_id, "factor": f, "attempts": 5, "goals_met": 2 * won, "success": won} for f in (0.0, 0.5)]
        ),
    }
    trace.write(data / "traces" / agent / env, tables)


def test_every_published_table_is_measured_in_its_columns(data):
    found = measures(Traces(data))
    for path in sorted(PUBLISHED.glob("*.csv")):
        if path.stem in found:
            columns = list(pd.read_csv(path, nrows=1).columns)
            assert list(found[path.stem].columns[: len(columns)]) == columns, path.stem
    names = {path.stem for path in PUBLISHED.glob("*.csv")} & set(found)
    assert {name[:7] for name in names if name.startswith("table")} == {
        f"table{n:02}" for n in (1, 2, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    }
    assert {"figure3b", "figure4a", "figure5"} <= names


def test_each_measure_reads_what_the_files_say(data):
    found = measures(Traces(data))
    ends = found["facts_endpoints"].set_index("model")
    assert list(ends.loc["hasty", ["S", "F", "B", "executions"]]) == [0, 2, 0, 2]
    assert list(ends.loc["steady", ["S", "F", "B", "executions"]]) == [2, 0, 0, 2]
    # of hasty, page:a fails in both environments and is never checked again
    assert list(found["table15_recovery_populations"].iloc[0]) == ["hasty", "64K", 2, 2]
    assert found["table16_recovery_outcomes"]["no_recheck_pct"].iloc[0] == 100.0
    # its summary evicted the artifact of page:a, not that of page:d
    local = found["table17_compaction_visibility"].set_index(["environment", "metric", "group"])["value"]
    assert local["Overall", "first_pass_pct", "retained"] == 100.0
    assert local["Overall", "first_pass_pct", "removed"] == 0.0
    # both agents publish what a script gave, in SocialOps; hasty is refused
    counts = found["table14_socialops_rejections"].set_index("key")["value"]
    assert (counts["Audience load cap"], counts["Matched"]) == (1, 2)


def test_agents_are_those_asked_for_in_that_order(data):
    assert Traces(data).agents == ["hasty", "steady"]
    chosen = Traces(data, ["steady", "hasty", "steady"])
    assert chosen.agents == ["steady", "hasty"]
    assert list(measures(chosen)["table11_costs"]["model"]) == ["steady", "hasty"]


def test_what_is_missing_is_named(data):
    with pytest.raises(InputError, match="no traces of careless below"):
        Traces(data, ["careless"])
    (data / "traces" / "hasty" / "docs" / "events.parquet").unlink()
    with pytest.raises(InputError, match=r"no trace table at .*events\.parquet"):
        measures(Traces(data))
    (data / "tasks" / "docs.json").unlink()
    with pytest.raises(InputError, match="traces of docs have no task set"):
        _ = Traces(data).runs


def test_tables_of_links_are_not_required(data):
    for path in data.glob("traces/*/*/matches.parquet"):
        path.unlink()
    assert measures(Traces(data))["table14_socialops_rejections"].empty


def test_where_nothing_fails_the_tables_of_failures_are_empty_and_keep_their_columns(data):
    found = measures(Traces(data, ["steady"]))
    for name in ("table15_recovery_populations", "table16_recovery_outcomes", "table19_stopping_models", "figure5"):
        assert found[name].empty, name
        published = pd.read_csv(PUBLISHED / f"{name}.csv", nrows=1)
        assert set(published.columns) <= set(found[name].columns), name
    assert found["table11_costs"]["n_success"].tolist() == [2]
    assert found["table18_compaction_outcomes"].empty
