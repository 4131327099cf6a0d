"""Records of the field desk, contents of what is made in it, and its updates.

Pressures are kPa, flows L/min and times slots (shifts of four hours), all integers; ranges are inclusive.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from skillhorizon.core.world import Record

SLOT_HOURS = 4
ServiceStatus = Literal["uncommissioned", "commissioned", "stale", "withdrawn"]
Permit = Literal["cold_work", "electrical", "confined_space"]
PlanKind = Literal["planned", "corrective"]


class Depot(Record, frozen=True):
    depot_id: str
    central: bool


class Supply(Record, frozen=True):
    """A supply point and what its first record says."""

    supply_id: str
    outlet_kpa: int
    flow_lpm: int
    contracted_lpm: int


class Feed(msgspec.Struct, frozen=True):
    """A link from a parent. ``share_lpm`` is what the service takes while the parent offers its contracted flow."""

    parent_id: str
    parent_kind: Literal["supply", "service"]
    link_id: str
    length_m: int
    bore_mm: int
    share_lpm: int
    loss_coeff: int


class Limits(msgspec.Struct, frozen=True):
    min_inlet_kpa: int
    min_outlet_kpa: int
    max_outlet_kpa: int
    step_kpa: int


class Valve(msgspec.Struct, frozen=True):
    valve_id: str
    side: Literal["inlet", "outlet"]
    chainage_m: int
    bore_mm: int
    normal: Literal["open", "closed"]


class Service(Record, frozen=True):
    service_id: str
    depot_id: str
    device_ids: tuple[str, ...]
    feeds: tuple[Feed, ...]
    own_lpm: int
    contracted_lpm: int
    gain_kpa: int
    limits: Limits
    primary_trunk_id: str
    standby_trunk_id: str
    window_ids: tuple[str, ...]
    boundary: tuple[Valve, ...]


class Reading(msgspec.Struct, frozen=True):
    channel: str
    unit: str
    value: int
    low: int
    high: int
    calibration: Literal["valid", "overdue"]


class Inspection(msgspec.Struct, frozen=True):
    round: int
    slot: int
    readings: tuple[Reading, ...]


class Device(Record, frozen=True, rename={"class_": "class"}):
    """``episode`` counts its faults; ``rated_kpa`` is what the nameplate says and enters no rule."""

    device_id: str
    service_id: str
    class_: str
    model: str
    hw_rev: int
    serial: str
    design_kpa: int
    rated_kpa: int
    location: Literal["surface", "kiosk", "chamber"]
    powered: bool
    episode: int
    inspections: tuple[Inspection, ...]
    log: tuple[str, ...]


class Gauge(Record, frozen=True):
    """What a device takes from the pressure; its tests measure it."""

    device_id: str
    drop_kpa: int


class Window(Record, frozen=True):
    window_id: str
    start_slot: int
    end_slot: int
    kind: Literal["planned", "contingency"]


class Qualification(msgspec.Struct, frozen=True):
    code: str
    valid_until_slot: int


class Crew(Record, frozen=True):
    """``slots`` are its shifts; the crew ledger knows which are free."""

    crew_id: str
    depot_id: str
    qualifications: tuple[Qualification, ...]
    slots: tuple[int, ...]

    def qualified(self, code: str, slot: int) -> bool:
        return any(q.code == code and slot <= q.valid_until_slot for q in self.qualifications)


class Part(Record, frozen=True):
    part_id: str
    model: str
    component: str
    rev_from: int
    rev_to: int


class Batch(Record, frozen=True):
    batch_id: str
    depot_id: str
    part_id: str
    on_hand: int
    use_by_slot: int
    status: Literal["released", "quarantine"]


class Trunk(Record, frozen=True):
    trunk_id: str
    capacity_lpm: int
    base_lpm: int


class SupplyRevision(msgspec.Struct, frozen=True):
    """Effect of an update: the supply point's next record."""

    supply_id: str
    outlet_kpa: int
    flow_lpm: int
    text: str


class DeviceFault(msgspec.Struct, frozen=True):
    """Effect of an update: a restored device fails anew, as its next inspection shows."""

    device_id: str
    inspection: Inspection
    text: str


class Advisory(msgspec.Struct, frozen=True):
    """Effect of an update: a notice that changes nothing."""

    subject_id: str
    text: str


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Diagnosis(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    episode: int
    class_: str
    fault_code: str
    component: str
    qualification: str
    channels: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True):
    kind: PlanKind
    window_id: str
    start_slot: int
    end_slot: int
    device_ids: tuple[str, ...]
    permit_class: Permit
    dependents: tuple[str, ...]


class LockTag(msgspec.Struct, frozen=True):
    valve_id: str
    tag: str


class Isolation(msgspec.Struct, frozen=True):
    """The first version says open, the second closed."""

    state: Literal["open", "closed"]
    window_id: str
    device_ids: tuple[str, ...]
    lock_tags: tuple[LockTag, ...]


class CrewReservation(msgspec.Struct, frozen=True):
    crew_id: str
    slot: int
    window_id: str
    qualification: str


class SpareReservation(msgspec.Struct, frozen=True):
    batch_id: str
    depot_id: str
    part_id: str
    component: str
    use_by_slot: int


class Repair(msgspec.Struct, frozen=True):
    episode: int
    part_id: str
    batch_id: str
    crew_id: str
    slot: int


class Held(msgspec.Struct, frozen=True):
    """The pressure that a device held so many minutes after the start of its test."""

    minute: int
    kpa: int


class PressureTest(msgspec.Struct, frozen=True):
    test_kpa: int
    readings: tuple[Held, ...]
    drop_kpa: int
    result: Literal["pass", "fail"]


class FlowReservation(msgspec.Struct, frozen=True):
    trunk_id: str
    role: Literal["primary", "standby"]
    amount_lpm: int


class Commission(msgspec.Struct, frozen=True):
    """A record. What a service or supply point offers downstream, and from which slot on."""

    outlet_kpa: int
    flow_lpm: int
    contracted_lpm: int
    in_service_from: int


class PartUse(msgspec.Struct, frozen=True):
    part_id: str
    quantity: int


class DepotReturn(msgspec.Struct, frozen=True):
    crew_hours: int
    units: tuple[PartUse, ...]


class Acceptance(msgspec.Struct, frozen=True):
    returns: tuple[str, ...]
