"""What one plausible mistake costs: the reference makes a single wrong call and otherwise goes on as ever.

A mistake that is refused at once costs an attempt and is put right; one that is accepted stays.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from skillhorizon.core.policy import Call, Refused, drive
from skillhorizon.core.task import Task


def slips(task: Task, most: int | None = None) -> pd.DataFrame:
    """One row per kind of mistake that the environment knows, each made once, where it is first possible.

    With ``most`` only so many kinds, the first.

    kind, tool       the mistake, and the call in which it was made
    answer           ``accepted``, or the code of the refusal that found it at once
    stopped_by       the code of a later refusal that ended the run
    goals_lost       local goals of the task that are not met in the end
    delivery_failed  delivery requirements that are not
    """
    return pd.DataFrame([slip(task, kind) for kind in kinds(task)[:most]])


def kinds(task: Task) -> list[str]:
    """The kinds of mistake that the reference could make in this task, in the order in which it could."""
    found: dict[str, None] = {}
    policy, gateway = task.environment.policy(), task.open_unlimited()

    def perform(call: Call) -> dict[str, Any]:
        found.update((c.kind, None) for c in task.environment.confusions(call, policy.memory))
        return gateway.call(call.tool, call.arguments, module=call.module, goal=call.goal)

    drive(policy, perform)
    return list(found)


def slip(task: Task, kind: str) -> dict[str, Any]:
    """The row of one kind."""
    policy, gateway = task.environment.policy(), task.open_unlimited()
    made: list[tuple[Call, dict[str, Any]]] = []

    def attempt(call: Call) -> dict[str, Any]:
        return gateway.call(call.tool, call.arguments, module=call.module, goal=call.goal)

    def perform(call: Call) -> dict[str, Any]:
        if not made:
            confusions = task.environment.confusions(call, policy.memory)
            wrong = next((c.call for c in confusions if c.kind == kind), None)
            if wrong is not None:
                made.append((wrong, attempt(wrong)))
                if made[0][1]["ok"]:
                    return made[0][1]
        return attempt(call)

    stopped = ""
    try:
        drive(policy, perform)
    except Refused as refusal:
        stopped = refusal.error["code"]
    call, observation = made[0]
    evaluation = task.environment.scoring.evaluate(gateway.world, task.blueprint.goal)
    return {
        "kind": kind,
        "tool": call.tool,
        "answer": "accepted" if observation["ok"] else observation["error"]["code"],
        "stopped_by": stopped,
        "goals_lost": len(evaluation.local) - evaluation.goals_met,
        "delivery_failed": ", ".join(evaluation.delivery_failed),
    }
