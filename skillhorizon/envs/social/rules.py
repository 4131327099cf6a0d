"""Arithmetic of the campaign desk: pure functions over values.

Time is a whole hour, the tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from skillhorizon.envs.social.records import Conversion
from skillhorizon.envs.social.seed import ArmRole, Consent, Grant

SKILLS = Path(__file__).parent / "skills"

ARMS: tuple[ArmRole, ArmRole] = ("control", "challenger")


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One exposure of an audience. ``post_id`` names an own post; ``booked`` one that is not out yet."""

    at: int
    publication_id: str
    points: int
    post_id: str | None = None
    booked: bool = False


# -- arithmetic ------------------------------------------------------------------------------------------------------


def contribution(points: int, age: int, half_life: int) -> int:
    """Rule 6."""
    return points >> (age // half_life)


def live(rows: Iterable[Row], tick: int, half_life: int) -> list[tuple[str, int]]:
    """Rule 6: publications of past rows that still contribute at ``tick``, and what each contributes."""
    return [(source, left) for at, source, points, _, _ in rows if (left := points >> (tick - at) // half_life)]


def usable(consent: Consent, role: str) -> bool:
    """Rule 2."""
    return consent.status == "granted" and role in consent.roles


def in_force(grant: Grant, channel: str, role: str, tick: int) -> bool:
    """Rule 4."""
    return (
        grant.withdrawn_at is None
        and channel in grant.channels
        and role in grant.roles
        and grant.from_tick <= tick < grant.until_tick
    )


def attributed(rows: dict[ArmRole, list[Conversion]], excluded: frozenset[str]) -> dict[str, set[str]]:
    """Rule 11: members credited to each arm."""
    best: dict[str, tuple[int, int]] = {}
    for place, role in enumerate(ARMS):
        for row in rows[role]:
            if row.member_id not in excluded:
                best[row.member_id] = min(best.get(row.member_id, (row.hour, place)), (row.hour, place))
    return {role: {m for m, (_, place) in best.items() if ARMS[place] == role} for role in ARMS}


def winner_of(credited: dict[str, int], delivered: dict[str, int]) -> ArmRole:
    """Rule 12."""
    control = credited["control"] * delivered["challenger"]
    return "control" if control >= credited["challenger"] * delivered["control"] else "challenger"
