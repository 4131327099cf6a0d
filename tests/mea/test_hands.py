"""Failure rates do what they say, and nothing where they are zero."""

from __future__ import annotations

import random

import pytest

from skillhorizon.agents import mea
from skillhorizon.agents.harness import Reply
from skillhorizon.agents.mea.hands import Rates, Simulated, Stopped
from skillhorizon.core.errors import InputError
from skillhorizon.core.policy import Call, Confusion, Memory
from tests.support import TOY, small_task

RIGHT, WRONG, POLL = Call("quote", {"cents": 5}), Call("quote", {"cents": 6}), Call("list_notices", {"since": 0})
TRIES = 4000


def hand(seed: int = 0, **rates: float) -> Simulated:
    confusions = lambda call, memory: [Confusion("amount", WRONG)] if call is RIGHT else []  # noqa: E731
    return Simulated(Rates(**rates), confusions, random.Random(seed))


def share(one: Simulated, context: int = 0, lost: bool = False) -> float:
    return sum(one.choose(RIGHT, Memory(), context, lost) is WRONG for _ in range(TRIES)) / TRIES


def test_without_failure_rates_nothing_goes_wrong():
    one = hand()
    assert share(one, 10**6) == 0
    assert one.choose(POLL, Memory(), 0) is POLL
    assert one.recalls()
    assert one.batch() == 1


def test_slips_grow_with_the_context():
    """0.1 in an empty context; at 200,000 tokens and a growth of a half for each 100,000 twice as many."""
    assert share(hand(slip=0.1)) == pytest.approx(0.1, abs=0.02)
    assert share(hand(slip=0.1, growth=0.5), 200_000) == pytest.approx(0.2, abs=0.02)


def test_what_was_not_looked_up_goes_wrong_where_it_can():
    assert share(hand(), lost=True) == 1
    other = Call("look", {})
    assert hand(slip=1.0).choose(other, Memory(), 0) is other


def test_recall_attention_and_stopping_are_shares():
    one = hand(recall=0.3)
    assert sum(one.recalls() for _ in range(TRIES)) / TRIES == pytest.approx(0.3, abs=0.03)
    one = hand(attention=0.4)
    read = sum(one.choose(POLL, Memory(), 0) is POLL for _ in range(TRIES)) / TRIES
    assert read == pytest.approx(0.4, abs=0.03)
    with pytest.raises(Stopped):
        hand(stopping=1.0).choose(RIGHT, Memory(), 0)


def test_the_same_seed_fails_in_the_same_places():
    def choices(seed: int) -> list[Call | None]:
        one = hand(seed, slip=0.5)
        return [one.choose(RIGHT, Memory(), 0) for _ in range(50)]

    assert choices(1) == choices(1) != choices(2)


def test_an_unknown_ablation_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="no-auditor, no-ledger, no-fresh-context"):
        mea.named("steady/no-brain", lambda name: Rates())


def test_minds_of_an_unknown_kind_are_refused():
    with pytest.raises(InputError, match="no minds of the kind 'oracle'"):
        mea.named("oracle:delphi", lambda name: Rates())


def test_a_kind_of_minds_makes_each_role_one_of_its_own(monkeypatch):
    made: list[str] = []

    class Silent:
        repeatable = True

        def respond(self, messages):
            return Reply("")

    def kind(name):
        return lambda: made.append(name) or Silent()

    monkeypatch.setitem(mea.MINDS, "silent", kind)
    task = small_task(TOY.name)
    outcome = mea.named("silent:night", lambda name: Rates()).act(task, task.open(), 0)
    assert made == ["night"] * 3
    assert outcome.end == "failed"
