"""A hand fails at the rates of its profile, and nowhere else."""

from __future__ import annotations

import random

import pytest

from skillhorizon.agents import mea
from skillhorizon.agents.harness import Reply
from skillhorizon.agents.mea.hands import Faithful, Simulated, Situation, Stopped
from skillhorizon.agents.simulated import Profile
from skillhorizon.core.errors import InputError
from skillhorizon.core.policy import Call, Confusion, Memory
from tests.support import TOY, small_task

TASK = small_task(TOY.name)
RIGHT = Call("quote_parcel", {"cents": 5})
WRONG = Call("quote_parcel", {"cents": 6})
POLL, LOOK = Call("list_notices", {"since": 0}), Call("list_routes", {})
TRIES = 4000
EMPTY = Situation()


def hand(seed: int = 0, **rates: float) -> Simulated:
    def confusions(call: Call, memory: Memory) -> list[Confusion]:
        return [Confusion("amount", WRONG)]

    return Simulated(Profile(**rates), confusions, TASK.environment.tools, random.Random(seed))


def share(one: Simulated, at: Situation = EMPTY, call: Call = RIGHT) -> float:
    return sum(one.choose(call, Memory(), at) is WRONG for _ in range(TRIES)) / TRIES


def test_without_failure_rates_nothing_goes_wrong():
    for one in (hand(), Faithful()):
        assert one.choose(RIGHT, Memory(), Situation(full=1, distance=10**6)) is RIGHT
        assert one.choose(POLL, Memory(), EMPTY) is POLL
        assert one.recalls()
        assert not one.again(WRONG, 1)
        assert one.respond(Situation(attempts=10**6, stalled=10**6)) is None


def test_slips_grow_with_the_context_and_with_distance():
    """0.05 in an empty context; times 2 in a full one, times 3 at a thousand calls, times 6 where both hold."""
    rates = {"slip": 0.05, "slip_context": 1.0, "slip_distance": 2.0}
    assert share(hand(**rates)) == pytest.approx(0.05, abs=0.015)
    assert share(hand(**rates), Situation(full=1.0)) == pytest.approx(0.1, abs=0.02)
    assert share(hand(**rates), Situation(full=7.0)) == pytest.approx(0.1, abs=0.02)
    assert share(hand(**rates), Situation(distance=1000)) == pytest.approx(0.15, abs=0.02)
    assert share(hand(**rates), Situation(full=1.0, distance=1000)) == pytest.approx(0.3, abs=0.03)


def test_only_consequential_calls_go_wrong():
    assert share(hand(slip=1.0)) == 1
    assert share(hand(slip=1.0), call=LOOK) == 0


def test_what_rests_on_something_lost_goes_wrong():
    assert share(hand(), Situation(lost=True)) == 1


def test_recall_awareness_and_heed_are_shares():
    one = hand(recall=0.3)
    assert sum(one.recalls() for _ in range(TRIES)) / TRIES == pytest.approx(0.3, abs=0.03)
    one = hand(awareness=0.4)
    read = sum(one.choose(POLL, Memory(), EMPTY) is POLL for _ in range(TRIES)) / TRIES
    assert read == pytest.approx(0.4, abs=0.03)
    one = hand(heed=0.8)
    repeated = sum(one.again(WRONG, 1) for _ in range(TRIES)) / TRIES
    assert repeated == pytest.approx(0.2, abs=0.03)


def test_a_wrong_call_is_not_repeated_for_ever():
    one = hand(heed=0.0, persistence=2)
    assert one.again(WRONG, 1)
    assert one.again(WRONG, 2)
    with pytest.raises(Stopped):
        one.again(WRONG, 3)


def test_the_hazard_of_an_early_end_grows_with_attempts_and_with_standstill():
    """0.1 for each thousand attempts; at 500 attempts 0.05, and with 200 of them in vain three times that."""

    def ended(at: Situation, **rates: float) -> float:
        one, found = hand(stop=0.1, stop_stall=1.0, **rates), 0
        for _ in range(TRIES):
            try:
                one.respond(at)
            except Stopped:
                found += 1
        return found / TRIES

    assert ended(Situation(attempts=0)) == 0
    assert ended(Situation(attempts=500)) == pytest.approx(0.05, abs=0.015)
    assert ended(Situation(attempts=500, stalled=200)) == pytest.approx(0.15, abs=0.02)
    assert ended(Situation(attempts=500), confirm=0.5) == pytest.approx(0.025, abs=0.01)


def test_a_redundant_query_is_one_of_the_recent_ones():
    one = hand(redundancy=1.0)
    assert one.respond(EMPTY) is None
    one.choose(LOOK, Memory(), EMPTY)
    assert one.respond(EMPTY) is LOOK


def test_the_same_seed_fails_in_the_same_places():
    def choices(seed: int) -> list[Call | None]:
        one = hand(seed, slip=0.5)
        return [one.choose(RIGHT, Memory(), EMPTY) for _ in range(50)]

    assert choices(1) == choices(1) != choices(2)


# -- names -----------------------------------------------------------------------------------------------------------


def test_unknown_profiles_ablations_and_minds_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match="no-auditor, no-ledger, no-fresh-context"):
        mea.family("steady/no-brain")
    with pytest.raises(InputError, match=r"perfect, .*steady"):
        mea.family("brilliant")
    with pytest.raises(InputError, match="no minds of the kind 'oracle'"):
        mea.family("oracle:delphi")


def test_a_kind_of_minds_makes_each_role_one_of_its_own(monkeypatch):
    made: list[str] = []

    class Silent:
        repeatable = True

        def respond(self, messages):
            return Reply("")

    monkeypatch.setitem(mea.MINDS, "silent", lambda name: lambda: made.append(name) or Silent())
    outcome = mea.family("silent:night").act(TASK, TASK.open(), 0)
    assert made == ["night"] * 3
    assert outcome.end == "failed"
