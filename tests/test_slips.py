"""One plausible mistake at a time: refused ones are put right, accepted ones stay and cost."""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from skillhorizon.core.policy import Confusion
from skillhorizon.core.task import Task
from skillhorizon.slips import kinds, slip, slips
from tests.support import small_task
from tests.toy import ENVIRONMENT as TOY


def confused(confusions) -> Task:
    task = small_task("toy")
    return Task(dataclasses.replace(TOY, confusions=confusions), task.config, task.seed, task.size, task.measures)


def test_a_refused_mistake_costs_no_goal():
    def confusions(call, memory):
        if call.tool != "close_group":
            return []
        return [Confusion("half", replace(call, arguments={**call.arguments, "inputs": call.arguments["inputs"][:1]}))]

    row = slip(confused(confusions), "half")
    assert row["tool"] == "close_group"
    assert row["answer"] != "accepted"
    assert (row["stopped_by"], row["goals_lost"], row["delivery_failed"]) == ("", 0, "")


def test_an_accepted_mistake_stays():
    """Toy accepts any amount. A parcel whose rate nobody changes is quoted wrongly, and only the score tells."""
    parcel = small_task("toy").blueprint.goal.parcels[1]

    def confusions(call, memory):
        return TOY.confusions(call, memory) if call.arguments.get("parcel_id") == parcel else []

    table = slips(confused(confusions))
    assert list(table["kind"]) == ["amount"]
    assert list(table.loc[0, ["tool", "answer", "goals_lost"]]) == ["quote_parcel", "accepted", 1]


def test_only_one_mistake_is_made():
    task = small_task("toy")
    assert kinds(task) == ["amount"]
    assert slip(task, "amount")["goals_lost"] < len(task.blueprint.goal.parcels) / 2


def test_the_first_kinds_can_be_asked_for():
    def confusions(call, memory):
        return [Confusion(kind, call) for kind in ("first", "second")] if call.tool == "close_group" else []

    assert list(slips(confused(confusions), most=1)["kind"]) == ["first"]
    assert list(slips(confused(confusions))["kind"]) == ["first", "second"]
