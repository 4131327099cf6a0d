from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ledger import Entry, Ledger

CAPACITY = {"early": 5, "late": 3, "never": 0}
HOLDERS = ("h1", "h2", "h3", "h4")


class LedgerMachine(RuleBasedStateMachine):
    """Against a plain list of who holds what; a refusal must be the one that the model foresees and change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(CAPACITY)
        self.held: dict[str, Entry] = {}

    def room(self, slot: str, without: str) -> int:
        return CAPACITY[slot] - sum(e.amount for h, e in self.held.items() if e.slot == slot and h != without)

    @rule(slot=st.sampled_from(sorted(CAPACITY)), amount=st.integers(-1, 6), holder=st.sampled_from(HOLDERS))
    def reserve(self, slot: str, amount: int, holder: str) -> None:
        before = self.held.get(holder)
        code = None
        if before is not None and before.used:
            code = "wrong_state"
        elif not 0 < amount <= self.room(slot, holder):
            code = "no_room"
        assert self.ledger.fits(slot, amount, instead_of=holder) == (
            amount <= self.room(slot, holder if before is not None and not before.used else "")
        )
        if code is None:
            self.held[holder] = self.ledger.reserve(slot, amount, f"owner of {holder}", holder, "no_room")
            assert self.held[holder] == Entry(slot, amount, f"owner of {holder}", holder)
        else:
            with pytest.raises(Rejected) as refusal:
                self.ledger.reserve(slot, amount, "o", holder, "no_room")
            assert refusal.value.code == code

    @rule(holder=st.sampled_from(HOLDERS), action=st.sampled_from(["release", "use"]))
    def end(self, holder: str, action: str) -> None:
        entry = self.held.get(holder)
        if entry is None or entry.used:
            with pytest.raises(Rejected) as refusal:
                getattr(self.ledger, action)(holder)
            assert refusal.value.code == "wrong_state"
        elif action == "release":
            assert self.ledger.release(holder) == self.held.pop(holder)
        else:
            self.held[holder] = self.ledger.use(holder)
            assert self.held[holder].used

    @invariant()
    def free_units_are_capacity_less_what_is_held(self) -> None:
        assert {slot: self.ledger.free(slot) for slot in CAPACITY} == {slot: self.room(slot, "") for slot in CAPACITY}
        assert all(self.ledger.free(slot) >= 0 for slot in CAPACITY)
        assert self.ledger.conserved()
        assert self.ledger.entries() == sorted(self.held.values(), key=lambda e: (e.slot, e.holder))


TestLedgerAgainstAModel = LedgerMachine.TestCase
TestLedgerAgainstAModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_reservation_is_exchanged_in_one_step_so_a_full_slot_can_be_changed_within():
    ledger = Ledger({"a": 2, "b": 1})
    ledger.reserve("a", 2, "o", "h")
    ledger.reserve("a", 1, "o", "h")
    ledger.reserve("b", 1, "o", "h")
    assert (ledger.free("a"), ledger.free("b")) == (2, 0)


def test_a_failed_exchange_keeps_what_was_held():
    ledger = Ledger({"a": 2, "b": 0})
    kept = ledger.reserve("a", 2, "o", "h")
    with pytest.raises(Rejected):
        ledger.reserve("b", 1, "o", "h")
    assert ledger.entries() == [kept]


def test_used_units_never_come_back():
    ledger = Ledger({"a": 1})
    ledger.reserve("a", 1, "o", "h")
    ledger.use("h")
    for attempt in (lambda: ledger.release("h"), lambda: ledger.use("h"), lambda: ledger.reserve("a", 1, "o", "h")):
        with pytest.raises(Rejected):
            attempt()
    assert ledger.free("a") == 0


def test_an_unknown_slot_is_refused_not_raised():
    with pytest.raises(Rejected) as refusal:
        Ledger({"a": 1}).reserve("z", 1, "o", "h")
    assert (refusal.value.code, refusal.value.details) == ("unknown_id", {"id": "z"})


def test_a_refusal_names_the_limit_and_the_code_that_the_caller_gave():
    with pytest.raises(Rejected) as refusal:
        Ledger({"a": 1}).reserve("a", 2, "o", "h", "window_full")
    assert (refusal.value.code, refusal.value.details) == ("window_full", {"slot": "a", "capacity": 1})


def test_negative_capacity_is_no_ledger():
    with pytest.raises(ValueError, match="negative"):
        Ledger({"a": -1})


def test_entries_are_found_by_slot_and_by_owner():
    ledger = Ledger({"a": 9, "b": 9})
    first = ledger.reserve("b", 1, "x", "h1")
    second = ledger.reserve("a", 1, "y", "h2")
    third = ledger.reserve("a", 1, "x", "h0")
    assert ledger.entries() == [third, second, first]
    assert ledger.entries(slot="a") == [third, second]
    assert ledger.entries(owner="x") == [third, first]
    assert ledger.entries("a", "x") == [third]


def test_conservation_is_recomputed_from_the_entries():
    ledger = Ledger({"a": 2})
    ledger.reserve("a", 2, "o", "h")
    ledger.capacity["a"] = 1
    assert not ledger.conserved()
