"""Capacity that is reserved, released and used: seats, flow, quota, slots, reviewer units.

One structure for all environments. A calendar is a ledger whose slots are times.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import msgspec

from skillhorizon.core.errors import Rejected


class Entry(msgspec.Struct, frozen=True):
    """``amount`` of ``slot`` is kept for ``owner`` (whose need it is) by ``holder`` (the artifact that keeps it)."""

    slot: str
    amount: int
    owner: str
    holder: str
    used: bool = False


class Ledger:
    """Reservations against fixed capacity, in whole units.

    Free units of a slot are capacity - reserved - used, never negative. Use consumes a reservation for good.
    """

    def __init__(self, capacity: Mapping[str, int]) -> None:
        if any(amount < 0 for amount in capacity.values()):
            raise ValueError("capacity cannot be negative")
        self.capacity = dict(capacity)
        self._taken = dict.fromkeys(self.capacity, 0)
        self._entries: dict[Hashable, Entry] = {}

    def free(self, slot: str) -> int:
        return self.capacity[slot] - self._taken[slot]

    def fits(self, slot: str, amount: int, instead_of: str | None = None) -> bool:
        """Whether ``amount`` fits once the reservation of holder ``instead_of`` is given back."""
        held = self._entries.get(instead_of)
        returned = held.amount if held is not None and held.slot == slot and not held.used else 0
        return amount <= self.free(slot) + returned

    def reserve(self, slot: str, amount: int, owner: str, holder: str, code: str = "wrong_state") -> Entry:
        """Reserve, exchanging atomically what ``holder`` held before; refuses with ``code`` when it does not fit."""
        if slot not in self.capacity:
            raise Rejected("unknown_id", f"no slot {slot!r}", id=slot)
        held = self._entries.get(holder)
        if held is not None and held.used:
            raise Rejected("wrong_state", f"{holder} has been used", holder=holder)
        if amount <= 0 or not self.fits(slot, amount, instead_of=holder):
            raise Rejected(code, f"{slot} has no room for {amount}", slot=slot, capacity=self.capacity[slot])
        if held is not None:
            self._taken[held.slot] -= held.amount
        self._taken[slot] += amount
        entry = self._entries[holder] = Entry(slot, amount, owner, holder)
        return entry

    def release(self, holder: str) -> Entry:
        entry = self._entries.get(holder)
        if entry is None or entry.used:
            raise Rejected("wrong_state", f"{holder} holds nothing that can be released", holder=holder)
        del self._entries[holder]
        self._taken[entry.slot] -= entry.amount
        return entry

    def use(self, holder: str) -> Entry:
        entry = self._entries.get(holder)
        if entry is None or entry.used:
            raise Rejected("wrong_state", f"{holder} holds nothing that can be used", holder=holder)
        entry = self._entries[holder] = msgspec.structs.replace(entry, used=True)
        return entry

    def entries(self, slot: str | None = None, owner: str | None = None) -> list[Entry]:
        """By slot, then holder."""
        rows = (e for e in self._entries.values() if slot in (None, e.slot) and owner in (None, e.owner))
        return sorted(rows, key=lambda e: (e.slot, e.holder))

    def conserved(self) -> bool:
        """Recomputed from the entries: no slot above its capacity, and the running totals agree."""
        totals = dict.fromkeys(self.capacity, 0)
        for entry in self._entries.values():
            totals[entry.slot] += entry.amount
        return totals == self._taken and all(totals[s] <= self.capacity[s] for s in totals)
