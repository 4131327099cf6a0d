"""Traces written by hand, for tests whose right values are worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from skillhorizon.analysis.populations import executions

PUBLISHED = Path(__file__).parents[2] / "data" / "published"
TITLES = {"docs": "DocOps", "social": "SocialOps", "finance": "FinanceOps"}


def runs(*rows: dict[str, Any], agents: tuple[str, ...] = ("hasty", "steady")) -> pd.DataFrame:
    """Executions; what a row does not say is that of a failed final in DocOps at 64K with 10 goals and B = 100."""
    default = {
        "env": "docs", "family": "expiring-reservations", "band": "64K", "agent": agents[0], "R": 80, "A": 40, "B": 100,
        "attempts": 50, "tool_calls": 50, "end": "submitted", "goals_required": 10, "goals_met": 5, "success": False,
        "compactions": 0,
    }  # fmt: skip
    filled = [{"run_id": f"r{n}", "task_id": f"t{n}", **default, **row} for n, row in enumerate(rows, 1)]
    return executions(pd.DataFrame(filled), TITLES, agents)


def events(*rows: dict[str, Any]) -> pd.DataFrame:
    """Events of runs, one call a response; what a row does not say is that of a charged operation without a check."""
    default = {
        "run_id": "r1", "tool": "submit", "kind": "business", "charged": True, "ok": True, "code": None, "goal": None,
        "cycle": 1, "check": None, "reason": None, "consumed": (), "produced": (),
    }  # fmt: skip
    frame = pd.DataFrame([{**default, **row} for row in rows])
    step = frame.groupby("run_id").cumcount() + 1
    given = frame.get("decision", step)
    return frame.assign(step=step, decision=given.fillna(step).astype(int))


def check(goal: str, passed: bool, **more: Any) -> dict[str, Any]:
    reason = None if passed else "refused"
    return {"goal": goal, "check": passed, "ok": passed, "code": reason, "reason": reason, **more}
