"""Dependency visibility across compaction, on traces whose groups are worked out in the comments."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from skillhorizon.analysis import visibility
from tests.analysis.handmade import check, events, runs

NO_SIGHTINGS = pd.DataFrame(columns=["run_id", "step", "refs"])


def compactions(*rows: tuple[str, int, tuple[int, ...], bool]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["run_id", "decision", "evicted_steps", "adopted"])


def reference(*rows: dict[str, Any]) -> pd.DataFrame:
    return events(*rows).assign(task_id="t1")


def needs(goal: str, *refs: str, **more: Any) -> dict[str, Any]:
    """A checked operation of the reference, which was handed these artifacts."""
    return check(goal, True, consumed=refs, **more)


ROLES = visibility.required_roles(
    reference(
        needs("page:a", "ctr-aaaaa@1"),
        needs("page:b", "ctr-bbbbb@2", "rev-bbbbb@1"),
        needs("page:c", "sgn-ccccc-1@1", "sgn-ccccc-2@1"),
        needs("page:d", "ctr-ddddd@1"),
        needs("page:e"),
    )
)


def groups(told: pd.DataFrame, evictions: pd.DataFrame, seen: pd.DataFrame = NO_SIGHTINGS) -> dict[str, str]:
    found = visibility.classified(told, evictions, seen, runs({}), ROLES)
    return dict(zip(found["goal"], found["group"], strict=True))


def made(ref: str, **more: Any) -> dict[str, Any]:
    return {"tool": "make", "produced": (ref,), **more}


def test_what_was_evicted_is_removed_and_what_came_later_is_retained():
    told = events(
        made("ctr-aaaaa@1"),  # 1: evicted
        made("ctr-bbbbb@2"),  # 2: evicted
        made("ctr-ddddd@1"),  # 3: stays
        made("rev-bbbbb@1"),  # 4
        check("page:a", True),  # 5, after the compaction: its role is gone
        check("page:b", False),  # 6: one of two roles gone
        check("page:d", True),  # 7: visible
        check("page:e", True),  # 8: the reference names no role
        check("page:c", True),  # 9: roles without a candidate
    )
    assert groups(told, compactions(("r1", 5, (1, 2), True))) == {
        "page:a": "removed",
        "page:b": "removed",
        "page:d": "retained",
    }


def test_only_adopted_summaries_count_and_only_targets_after_one():
    told = events(
        made("ctr-aaaaa@1"),
        made("ctr-ddddd@1"),
        check("page:d", True),  # 3: before the summary
        check("page:a", True),  # 4
    )
    assert groups(told, compactions(("r1", 3, (1, 2), False), ("r1", 4, (1, 1), True))) == {"page:a": "removed"}
    assert groups(told, compactions(("r1", 3, (1, 2), False))) == {}


def test_a_complete_reread_restores_visibility_until_the_next_summary():
    told = events(
        made("ctr-aaaaa@1"),
        made("ctr-ddddd@1"),
        {"kind": "query", "tool": "get_artifact"},  # 3, after the first summary: shows a again
        check("page:a", True),  # 4: visible
        check("page:d", True),  # 5, after the second summary, which evicts up to 4
    )
    seen = pd.DataFrame({"run_id": ["r1"], "step": [3], "refs": [["ctr-aaaaa@1", "ctr-ddddd@1"]]})
    evictions = compactions(("r1", 3, (1, 2), True), ("r1", 5, (3, 4), True))
    assert groups(told, evictions, seen) == {"page:a": "retained", "page:d": "removed"}
    assert groups(told, evictions) == {"page:a": "removed", "page:d": "removed"}


def test_the_newest_version_is_the_candidate():
    told = events(
        made("ctr-aaaaa@1"),  # 1: evicted, but superseded by 3
        made("ctr-ddddd@2"),  # 2: evicted; that an older version is seen again does not help
        made("ctr-aaaaa@2"),  # 3
        {"kind": "query", "tool": "get_artifact"},  # 4
        check("page:a", True),
        check("page:d", True),
    )
    seen = pd.DataFrame({"run_id": ["r1"], "step": [4], "refs": [["ctr-ddddd@1"]]})
    assert groups(told, compactions(("r1", 3, (1, 2), True)), seen) == {"page:a": "retained", "page:d": "removed"}


def test_mixed_alternatives_of_a_role_are_left_out():
    told = events(made("sgn-ccccc-1@1"), made("sgn-ccccc-2@1"), check("page:c", True))
    assert groups(told, compactions(("r1", 3, (1, 1), True))) == {}
    assert groups(told, compactions(("r1", 3, (1, 2), True))) == {"page:c": "removed"}


def test_returns_of_the_same_response_come_too_late():
    told = events(
        {"tool": "edit"},  # response 1, evicted
        made("ctr-aaaaa@1", decision=2),  # both in response 2
        check("page:a", True, decision=2),
    )
    assert groups(told, compactions(("r1", 2, (1, 1), True))) == {}


def test_roles_come_from_the_reference_and_not_from_what_was_submitted():
    told = events(
        made("ctr-aaaaa@1"),
        made("ctr-zzzzz@1"),
        check("page:a", False, consumed=("ctr-zzzzz@1",)),  # the wrong one, which is visible
    )
    assert groups(told, compactions(("r1", 3, (1, 1), True))) == {"page:a": "removed"}


def test_roles_of_an_update_cycle_are_its_own_where_the_reference_had_one():
    roles = visibility.required_roles(
        reference(
            needs("page:a", "ctr-aaaaa@1"),
            needs("page:a", "amd-aaaaa@1", cycle=2),
            needs("page:b", "ctr-bbbbb@1"),
        )
    )
    by = roles.groupby(["goal", "update"])["role"].agg(list).to_dict()
    assert by == {
        ("page:a", False): ["ctr-aaaaa"],
        ("page:a", True): ["amd-aaaaa"],
        ("page:b", False): ["ctr-bbbbb"],
        ("page:b", True): ["ctr-bbbbb"],
    }


def test_measures_count_checks_until_acceptance_or_the_end():
    told = events(
        made("ctr-aaaaa@1"),
        made("ctr-ddddd@1"),
        check("page:a", False),
        check("page:a", False),
        check("page:a", True),  # 2 additional checks
        check("page:d", False),
        check("page:d", False),  # never accepted, 1 additional check
    )
    found = visibility.classified(told, compactions(("r1", 3, (1, 1), True)), NO_SIGHTINGS, runs({}), ROLES)
    rows = found.set_index("goal")[list(visibility.MEASURES)]
    assert list(rows.loc["page:a"]) == [0.0, 100.0, 2.0]
    assert list(rows.loc["page:d"]) == [0.0, 0.0, 1.0]


def target(run: str, env: str, group: str, passed: float, tool: str = "submit", update: bool = False) -> dict[str, Any]:
    return {
        "run_id": run, "environment": env, "tool": tool, "update": update, "group": group, "goal": "g",
        "first_pass_pct": passed, "ever_accepted_pct": 100.0, "additional_checks": 0.0,
    }  # fmt: skip


FOUND = pd.DataFrame(
    [
        # r1, cell submit: retained 100, 0, 0 and removed 0; cell sign: retained 100, removed 100
        target("r1", "DocOps", "retained", 100.0),
        target("r1", "DocOps", "retained", 0.0),
        target("r1", "DocOps", "retained", 0.0),
        target("r1", "DocOps", "removed", 0.0),
        target("r1", "DocOps", "retained", 100.0, "sign"),
        target("r1", "DocOps", "removed", 100.0, "sign"),
        # an update of the same operation is another cell, and has one group only
        target("r1", "DocOps", "retained", 0.0, update=True),
        # r2: one cell, 0 and 0
        target("r2", "DocOps", "retained", 0.0),
        target("r2", "DocOps", "removed", 0.0),
        # r3, another environment: 100 and 50
        target("r3", "SocialOps", "retained", 100.0),
        target("r3", "SocialOps", "removed", 100.0),
        target("r3", "SocialOps", "removed", 0.0),
    ]
)


def test_targets_are_averaged_in_cells_cells_in_executions_executions_in_environments():
    table = visibility.table17(FOUND).set_index(["environment", "metric", "group"])["value"]
    # r1 retained: (1/3 + 1) / 2 = 2/3; r2: 0; DocOps (2/3 + 0) / 2 = 1/3. Removed: r1 (0 + 1) / 2, r2 0: 1/4.
    assert table["DocOps", "first_pass_pct", "retained"] == pytest.approx(100 / 3)
    assert table["DocOps", "first_pass_pct", "removed"] == pytest.approx(25.0)
    # Overall: environments equally, (1/3 + 1) / 2 and (1/4 + 1/2) / 2
    assert table["Overall", "first_pass_pct", "retained"] == pytest.approx(200 / 3)
    assert table["Overall", "first_pass_pct", "removed"] == pytest.approx(37.5)
    counts = visibility.table17(FOUND).groupby("environment")["executions"].first()
    assert counts.to_dict() == {"DocOps": 2, "SocialOps": 1, "Overall": 3}
    frame = runs({"task_id": "t1"}, {"task_id": "t1"}, {"task_id": "t2", "env": "social"})
    assert visibility.pairs(FOUND, frame).to_dict("records") == [{"executions": 3, "base_tasks": 2, "cells": 4}]


def test_outcomes_weigh_the_strata_that_have_both_kinds_equally():
    rows = [
        # stratum DocOps 64K: none 0 % and 100 % (mean 50), with 80 %
        {"goals_met": 0, "tool_calls": 10},
        {"goals_met": 10, "tool_calls": 30, "success": True},
        {"goals_met": 8, "tool_calls": 100, "compactions": 1},
        # stratum DocOps 128K: none 10 %, with 20 %
        {"band": "128K", "goals_met": 1, "tool_calls": 40},
        {"band": "128K", "goals_met": 2, "tool_calls": 300, "compactions": 3},
        # SocialOps has only executions with a summary: no shared stratum
        {"env": "social", "goals_met": 10, "compactions": 1},
    ]
    table = visibility.table18(runs(*rows)).set_index("compaction")
    columns = ["executions", "lgc_pct", "ts_pct", "mean_tool_calls", "strata"]
    assert list(table.loc["None", columns]) == [3, 30.0, 25.0, 30.0, 2]
    assert list(table.loc["At least one", columns]) == [2, 50.0, 0.0, 200.0, 2]
    joint = visibility.table02(FOUND, runs(*rows)).set_index(["metric", "group"])["value"]
    assert joint["lgc_pct", "with_compaction"] == 50.0
    assert joint["first_check_acceptance_pct", "removed"] == pytest.approx(37.5)


def test_without_compactions_the_tables_are_empty_with_their_columns():
    assert visibility.table18(runs({})).empty
    none = FOUND.iloc[:0]
    assert list(visibility.table17(none).columns[:5]) == ["environment", "executions", "metric", "group", "value"]
    assert visibility.table02(none, runs({})).empty
