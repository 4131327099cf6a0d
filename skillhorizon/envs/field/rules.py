"""Arithmetic of the field desk and the reference tables of its skills: pure functions over values.

Pressures are kPa, flows L/min and times slots (shifts of four hours), all integers; ranges are inclusive.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from skillhorizon.envs.field.records import Device, Limits, Permit, Service

SKILLS = Path(__file__).parent / "skills"
FLOW_STEP = 5


# -- reference tables of the skills ----------------------------------------------------------------------------------


class Signature(NamedTuple):
    """Two flagged channels of a class, and what they mean."""

    class_: str
    fault_code: str
    channels: frozenset[str]
    component: str
    qualification: str


def _rows(skill: str, name: str) -> list[dict[str, str]]:
    with (SKILLS / skill / "references" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def signatures() -> dict[str, tuple[Signature, ...]]:
    """Rule 1: the signatures of each class."""
    found: dict[str, list[Signature]] = {}
    for r in _rows("diagnose-device-fault", "fault-signatures.csv"):
        channels = frozenset(r["channels"].split())
        signature = Signature(r["class"], r["fault_code"], channels, r["component"], r["qualification"])
        found.setdefault(r["class"], []).append(signature)
    return {class_: tuple(rows) for class_, rows in found.items()}


@cache
def signature_of_code() -> dict[str, Signature]:
    return {s.fault_code: s for rows in signatures().values() for s in rows}


@cache
def qualifications() -> tuple[str, ...]:
    return tuple(sorted({s.qualification for s in signature_of_code().values()}))


@cache
def pressure_factors() -> dict[str, int]:
    """Rule 11: per cent of the design pressure, by class."""
    return {r["class"]: int(r["factor_percent"]) for r in _rows("repair-and-test-device", "test-factors.csv")}


# -- arithmetic ------------------------------------------------------------------------------------------------------


def flagged(device: Device) -> frozenset[str]:
    """Rule 1: channels of the latest inspection with a valid calibration and a value out of range."""
    latest = max(device.inspections, key=lambda i: i.round)
    return frozenset(r.channel for r in latest.readings if r.calibration == "valid" and not r.low <= r.value <= r.high)


def fault_of(device: Device) -> Signature:
    """Rule 1."""
    channels = flagged(device)
    return next(s for s in signatures()[device.class_] if s.channels == channels)


def permit_class(devices: Iterable[Device]) -> Permit:
    """Rule 2."""
    devices = list(devices)
    if any(d.location == "chamber" for d in devices):
        return "confined_space"
    return "electrical" if any(d.powered for d in devices) else "cold_work"


def valve_order(service: Service) -> list[str]:
    """Rule 3: the valves that are normally open, inlet side first, each side by ascending chainage."""
    such = [v for v in service.boundary if v.normal == "open"]
    return [v.valve_id for v in sorted(such, key=lambda v: (v.side, v.chainage_m))]


def required_kpa(device: Device) -> int:
    """Rule 11."""
    return 5 * -(-device.design_kpa * pressure_factors()[device.class_] // 500)


def taken_lpm(share: int, flow: int, contracted: int) -> int:
    """Rule 12: the whole share, or its part while the parent offers less than it has contracted."""
    return share if flow >= contracted else share * flow // contracted


def loss_kpa(loss_coeff: int, taken: int) -> int:
    """Rule 12: along the link, rounded up."""
    return -(-loss_coeff * taken * taken // 1_000_000)


def makeup_lpm(own: int, contracted: int, taken: int) -> int:
    """Rule 13: what one trunk must add, in whole steps of 5."""
    return FLOW_STEP * -(-max(0, own + contracted - taken) // FLOW_STEP)


def highest_setpoint(available: int, limits: Limits) -> int:
    """Rule 14: the highest multiple of the step that neither the pressure available nor the outlet limit is below."""
    return min(available, limits.max_outlet_kpa) // limits.step_kpa * limits.step_kpa


def shift(crew_id: str, slot: int) -> str:
    """The crew ledger's name of a shift."""
    return f"{crew_id}/{slot}"
