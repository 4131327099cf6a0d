"""The mail room: parcels of routes, rates by zone, windows with places, and what makes a quote stale."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import Artifact, Record, Update, World

SKILLS = Path(__file__).parent / "skills"


class Zone(Record, frozen=True):
    """Shared by all tasks, and printed in the skill's reference."""

    zone: str
    surcharge: int


class Rate(Record, frozen=True):
    rate_id: str
    zone: str
    cents_per_kg: int
    label: str


class Route(Record, frozen=True):
    route_id: str
    ordinal: int
    after: str | None


class Parcel(Record, frozen=True):
    """``companion`` is a parcel whose quote this one's must cite."""

    parcel_id: str
    route: str
    seq: int
    grams: int
    zone: str
    companion: str | None


class Window(Record, frozen=True):
    window_id: str
    places: int


class Amendment(msgspec.Struct, frozen=True):
    """A rate as it stands from now on."""

    rate: Rate
    text: str


class Quote(msgspec.Struct, frozen=True):
    parcel_id: str
    window_id: str
    cents: int


class QuoteBasis(msgspec.Struct, frozen=True):
    cents_per_kg: int


class Closure(msgspec.Struct, frozen=True):
    group_id: str
    cents: int


def price(grams: int, cents_per_kg: int, surcharge: int) -> int:
    """Whole cents, rounded up."""
    return -(-grams * cents_per_kg // 1000) + surcharge


class ToyWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {"quote": "quo", "closure": "cls"}

    def __init__(self, *state: Any) -> None:
        super().__init__(*state)
        windows = {w.window_id: w.places for w in self.tables["windows"].values()}
        self.windows = self.ledgers["windows"] = Ledger(windows)
        self.depot: str = self.brief.get("depot", "")

    def rate_of(self, zone: str) -> Rate:
        rates: list[Rate] = [r for r in self.tables["rates"].values() if r.zone == zone]
        return rates[0]

    def parcels_of(self, route_id: str) -> list[Parcel]:
        return sorted((p for p in self.tables["parcels"].values() if p.route == route_id), key=lambda p: p.seq)

    def newest_of(self, kind: str, subject: str) -> Artifact | None:
        return self.newest.get(f"{self.prefixes[kind]}-{subject.partition('-')[2]}")

    def true_price(self, parcel: Parcel) -> int:
        zone: Zone = self.get("zones", parcel.zone)
        return price(parcel.grams, self.rate_of(parcel.zone).cents_per_kg, zone.surcharge)

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        """A quote by the value of its rate, not by its label; everything by its inputs."""
        if artifact.kind == "quote":
            parcel: Parcel = self.tables["parcels"][artifact.subject]
            if self.rate_of(parcel.zone).cents_per_kg != artifact.basis.cents_per_kg:
                return cause
        return super().staleness(artifact, cause)

    def apply_update(self, update: Update) -> None:
        effect: Amendment = update.effect
        self.put("rates", effect.rate.rate_id, effect.rate)
        self.announce("rate", [effect.rate.rate_id], effect.text)
        self.changed(f"rate:{effect.rate.zone}", cause=effect.text)
