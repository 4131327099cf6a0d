from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skillhorizon.core.evaluation import Evaluation, GoalResult, Requirement, Scoring
from skillhorizon.core.generation import run_policy
from skillhorizon.core.world import World
from tests.toy import ENVIRONMENT
from tests.toy.build import ToyGoal


def scoring(*, local_idle: bool = False, delivery_idle: bool = False) -> Scoring:
    """Goals are numbers; a world is a dictionary of what was done."""
    made = Scoring("thing", lambda goal: goal)

    @made.local(idle=local_idle)
    def done(world: Any, goal: Any, subject: str) -> str | None:
        return None if subject in world["done"] else "not done"

    @made.local(idle=True)
    def unspoilt(world: Any, goal: Any, subject: str) -> str | None:
        return "spoilt" if subject in world["spoilt"] else None

    @made.delivery(idle=delivery_idle)
    def sent(world: Any, goal: Any) -> str | None:
        return None if world["sent"] else "not sent"

    return made


def world(done: str = "", spoilt: str = "", sent: bool = True) -> World:
    return {"done": done, "spoilt": spoilt, "sent": sent}  # type: ignore[return-value]


# -- LGC and TS ----------------------------------------------------------------------------------------------------


def result(local: str, delivery: str = "") -> Evaluation:
    """``+`` is met, ``-`` is not."""
    return Evaluation(
        [GoalResult(f"g:{n}", {} if sign == "+" else {"p": "r"}) for n, sign in enumerate(local)],
        [Requirement(f"d{n}", None if sign == "+" else "r") for n, sign in enumerate(delivery)],
    )


@pytest.mark.parametrize(
    ("local", "delivery", "met", "lgc", "success"),
    [
        ("++++", "+", 4, 1.0, True),
        ("++++", "", 4, 1.0, True),
        ("+++-", "+", 3, 0.75, False),
        ("++++", "+-", 4, 1.0, False),
        ("----", "++", 0, 0.0, False),
        ("-+-", "-", 1, 1 / 3, False),
    ],
)
def test_lgc_is_the_share_of_local_goals_and_success_wants_everything(local, delivery, met, lgc, success):
    """Paper C.1: LGC = g / G; success wants every local goal and every delivery requirement."""
    scored = result(local, delivery)
    assert (scored.goals_met, scored.lgc, scored.success) == (met, lgc, success)


def test_failed_deliveries_are_named():
    assert result("+", "-+-").delivery_failed == ["d0", "d2"]


def test_every_failed_predicate_gives_its_reason():
    scored = scoring().evaluate(world(done="ab", spoilt="bc", sent=False), "abc")
    assert scored.local == [
        GoalResult("thing:a", {}),
        GoalResult("thing:b", {"unspoilt": "spoilt"}),
        GoalResult("thing:c", {"done": "not done", "unspoilt": "spoilt"}),
    ]
    assert scored.delivery == [Requirement("sent", "not sent")]
    assert (scored.lgc, scored.success) == (1 / 3, False)


def test_a_crash_of_a_predicate_is_no_verdict():
    with pytest.raises(KeyError):
        scoring().evaluate({}, "a")  # type: ignore[arg-type]


# -- declarations --------------------------------------------------------------------------------------------------


def test_a_goal_that_requires_something_is_taken():
    scoring().check_declaration("ab")


@pytest.mark.parametrize(
    ("made", "goal", "message"),
    [
        (scoring(), "", "no local goal"),
        (scoring(), "aba", "a local goal twice"),
        (scoring(local_idle=True), "ab", "every local predicate"),
        (scoring(delivery_idle=True), "ab", "every delivery predicate"),
        (Scoring("thing", lambda goal: goal), "ab", "every local predicate"),
    ],
)
def test_a_criterion_that_doing_nothing_passes_is_refused(made, goal, message):
    with pytest.raises(ValueError, match=message):
        made.check_declaration(goal)


def test_a_task_with_an_empty_criterion_cannot_be_opened(task):
    blueprint = task.blueprint._replace(goal=ToyGoal(()))
    empty = replace(ENVIRONMENT, builder=lambda *_: blueprint).build(task.config, task.seed, task.size)
    with pytest.raises(ValueError, match="no local goal"):
        empty.open()


def test_two_predicates_of_one_name_are_refused():
    made = scoring()
    with pytest.raises(TypeError, match="done"):

        @made.local(idle=False)
        def done(world: Any, goal: Any, subject: str) -> str | None:
            return None


# -- the toy -------------------------------------------------------------------------------------------------------


def test_doing_nothing_scores_nothing_and_passes_exactly_the_idle_predicates(task):
    idle, goal = task.world(), task.blueprint.goal
    scored = ENVIRONMENT.scoring.evaluate(idle, goal)
    assert (scored.goals_met, scored.lgc, scored.success) == (0, 0.0, False)
    for predicate in ENVIRONMENT.scoring.local_predicates:
        passed = {predicate.test(idle, goal, subject) is None for subject in goal.parcels}
        assert passed == {predicate.idle}, predicate.name
    for predicate in ENVIRONMENT.scoring.delivery_predicates:
        assert (predicate.test(idle, goal) is None) == predicate.idle, predicate.name


def test_the_reference_scores_everything_and_one_wrong_amount_one_goal_less(task):
    run = run_policy(task)
    assert (run.evaluation.lgc, run.evaluation.success) == (1.0, True)
    world = run.gateway.world
    parcel = task.blueprint.goal.parcels[4]
    world.amend("parcels", parcel, grams=world.get("parcels", parcel).grams + 1000)
    scored = ENVIRONMENT.scoring.evaluate(world, task.blueprint.goal)
    assert [g.goal for g in scored.local if not g.met] == [f"parcel:{parcel}"]
    assert (scored.goals_met, scored.lgc, scored.success) == (11, 11 / 12, False)


def test_scoring_only_looks(task):
    gateway = run_policy(task).gateway
    before = gateway.state_digest()
    ENVIRONMENT.scoring.evaluate(gateway.world, task.blueprint.goal)
    assert gateway.state_digest() == before
