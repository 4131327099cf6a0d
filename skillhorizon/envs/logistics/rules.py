"""Arithmetic of the transfer desk: pure functions over values.

Times are integer minutes from the task's beginning, weights integer kg, legs are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from skillhorizon.envs.logistics.records import Permit

SKILLS = Path(__file__).parent / "skills"

_CUSTODY_KINDS = {
    "general": "custody_ordinary",
    "perishable": "custody_ordinary",
    "live": "custody_regulated",
    "hazardous": "custody_regulated",
    "specialist": "custody_specialist",
}


# -- arithmetic ------------------------------------------------------------------------------------------------------


def connection_min(minima: Mapping[str, int], before: str | None, carrier: str, allowance: int) -> int:
    """Rule 1: minutes between being there (``before`` None) or arriving with a carrier, and departing with another."""
    if before is None:
        return minima["checkin"]
    return minima["same_carrier" if before == carrier else "other_carrier"] + allowance


def custody_min(minima: Mapping[str, int], classes: Iterable[str]) -> int:
    """Rule 3: κ of a hub for goods of these classes."""
    return max(minima[_CUSTODY_KINDS[c]] for c in classes)


def earliest_movement(kappa: int, released: int | None, presented: Iterable[int], arrivals: Iterable[int]) -> int:
    """Rule 4: the first minute at which a movement may depart.

    released   when its release is ready, on leg 0
    presented  when the passengers of the items that board present them
    arrivals   of the manifests that hand goods over
    """
    waits = [minute + kappa for group in (presented, arrivals) for minute in group]
    return max([*waits, *([] if released is None else [released])], default=0)


def in_force(permit: Permit, departure_min: int, heaviest_kg: int) -> bool:
    """Rule 5: whether the permit holds at the departure for pieces up to this weight."""
    return permit.valid_from_min <= departure_min < permit.valid_until_min and heaviest_kg <= permit.max_piece_kg


class Piece(NamedTuple):
    """A unit or an item as one consignment carries it: on the legs ``board_leg`` to ``leave_leg`` - 1.

    ``handling_class`` is None for an item, whose class is the one declared. ``giver`` is the manifest's id that proves
    a unit received.
    """

    kg: int
    handling_class: str | None
    board_leg: int
    leave_leg: int
    kind: Literal["own", "given", "received", "item"]
    giver: str | None = None


class Claim(NamedTuple):
    """``amount`` of a ledger's slot for a holder."""

    slot: str
    amount: int
    holder: str
