"""The treated-water mesh: records, the rules of the trade, and what makes work stale.

Pressures are kPa, flows L/min and times slots (shifts of four hours), all integers; ranges are inclusive. Rule numbers
are those of the skills: each rule stands here once, for the operations, for staleness and for scoring.
"""

from __future__ import annotations

import csv
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, SUPERSEDED, WITHDRAWN, Artifact, Record, Update, World

SKILLS = Path(__file__).parent / "skills"
SLOT_HOURS = 4
FLOW_STEP = 5
ServiceStatus = Literal["uncommissioned", "commissioned", "stale", "withdrawn"]
DeviceStatus = Literal["faulted", "repaired", "restored"]
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


def refuse_repeats(kind: str, keys: Iterable[str]) -> None:
    """A key that stands twice in an argument is a bad argument."""
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            raise Rejected("bad_argument", f"{kind} {key!r} is named twice")
        seen.add(key)


class Inlet(NamedTuple):
    """Conditions of a service on given records and tests: ``available_kpa`` is the most that it can put out."""

    taken_lpm: int
    inlet_kpa: int
    makeup_lpm: int
    available_kpa: int


class Live(NamedTuple):
    """A plan not yet opened, or an open isolation."""

    kind: Literal["plan", "isolation"]
    ref: str
    window_id: str


class StatusIndex:
    """Ids by group and status, each list ascending, so that a filtered query scans nothing."""

    def __init__(self) -> None:
        self.status: dict[str, str] = {}
        self._ids: dict[tuple[str, str], list[str]] = {}

    def ids(self, status: str, group: str = "") -> list[str]:
        return self._ids.get((group, status), [])

    def set(self, key: str, status: str, groups: Sequence[str]) -> None:
        before = self.status.get(key)
        if before == status:
            return
        self.status[key] = status
        for group in ("", *groups):
            if before is not None:
                listed = self._ids[group, before]
                del listed[bisect_left(listed, key)]
            insort(self._ids.setdefault((group, status), []), key)


_GOALS = {
    "diagnosis": "case",
    "crew_reservation": "case",
    "spare_reservation": "case",
    "repair": "case",
    "test": "case",
    "plan": "service",
    "isolation": "service",
    "flow_reservation": "service",
    "record": "service",
    "depot_return": "depot",
}
"""Kind of artifact -> kind of the goal that it serves."""


class FieldWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        "diagnosis": "dgn",
        "plan": "pln",
        "isolation": "iso",
        "crew_reservation": "crs",
        "spare_reservation": "sps",
        "repair": "rpr",
        "test": "tst",
        "flow_reservation": "flr",
        "record": "rec",
        "depot_return": "ret",
        "acceptance": "acp",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.system_id: str = self.brief.get("system_id", "")
        self.central: str = next(d.depot_id for d in t["depots"].values() if d.central)
        self.depots = sorted(d for d in t["depots"] if d != self.central)
        self.services: list[str] = sorted(t["services"])
        self.devices: list[str] = sorted(t["devices"])
        self.services_of: dict[str, list[str]] = _grouped(t["services"], "depot_id")
        self.children: dict[str, list[str]] = {}
        for service_id in self.services:
            for feed in t["services"][service_id].feeds:
                self.children.setdefault(feed.parent_id, []).append(service_id)
        self.windows: list[Window] = sorted(t["windows"].values(), key=lambda w: w.window_id)
        self.trunks: list[Trunk] = sorted(t["trunks"].values(), key=lambda k: k.trunk_id)
        self.certified: list[str] = []
        """services that have held a record, sorted"""
        self.crews_of = _grouped(t["crews"], "depot_id")
        self.parts_of = _grouped(t["parts"], "model")
        self.batches_of: dict[tuple[str, str], list[str]] = {}
        for batch in sorted(t["batches"].values(), key=lambda b: b.batch_id):
            self.batches_of.setdefault((batch.depot_id, batch.part_id), []).append(batch.batch_id)
        self.ledgers = {
            "crews": Ledger({shift(c.crew_id, slot): 1 for c in t["crews"].values() for slot in c.slots}),
            "spares": Ledger({b.batch_id: b.on_hand for b in t["batches"].values()}),
            "flow": Ledger({k.trunk_id: k.capacity_lpm - k.base_lpm for k in t["trunks"].values()}),
        }
        self.live: dict[str, Live] = {}
        """service -> its plan or open isolation"""
        self.open_on: dict[str, str] = {}
        """trunk -> service whose isolation is open on it as primary"""
        self.isolated_until: dict[str, int] = {}
        """service -> last slot of its last isolation"""
        self.openings: dict[str, int] = {}
        """device -> isolations opened over it"""
        self.held: dict[str, dict[str, None]] = {d: {} for d in self.depots}
        """depot -> crew and spare reservations held for its devices"""
        self.repairs: dict[str, list[str]] = {d: [] for d in self.depots}
        self.units: dict[str, dict[str, int]] = {d: {} for d in self.depots}
        """depot -> part -> units built into its devices"""
        self.spent: dict[str, int] = {}
        """batch -> units used"""
        self.ordinals: dict[tuple[str, str], int] = {}
        self.by_service = StatusIndex()
        self.by_device = StatusIndex()
        for service_id in self.services:
            self.by_service.set(service_id, "uncommissioned", (t["services"][service_id].depot_id,))
        for device_id in self.devices:
            self.by_device.set(device_id, "faulted", ())
        self.awaited: dict[str, list[str]] = {}
        """service -> counters that its first commissioning advances"""
        for counter in sorted({u.counter for u in updates if ":" in u.counter}):
            for service_id in self.descendants(counter.partition(":")[2]):
                self.awaited.setdefault(service_id, []).append(counter)
        for supply in t["supplies"].values():
            self._record_supply(supply.supply_id, supply.outlet_kpa, supply.flow_lpm)
        self.begin_call()

    # -- looking up ------------------------------------------------------------------------------------------------

    def service(self, service_id: str) -> Service:
        service: Service = self.get("services", service_id)
        return service

    def device(self, device_id: str) -> Device:
        device: Device = self.get("devices", device_id)
        return device

    def window(self, window_id: str) -> Window:
        window: Window = self.get("windows", window_id)
        return window

    def newest_of(self, kind: str, subject: str) -> Artifact | None:
        """The newest version of the one artifact of this kind about this subject."""
        return self.newest.get(f"{self.prefixes[kind]}-{subject.partition('-')[2]}")

    def certificate(self, holder_id: str) -> Artifact | None:
        """The newest record of a service or supply point, in whatever status."""
        return self.newest_of("record", holder_id)

    def dependents(self, service_id: str) -> list[str]:
        """Rule 6: the children that hold a record, in any status."""
        return [c for c in self.children.get(service_id, ()) if self.certificate(c) is not None]

    def descendants(self, holder_id: str) -> list[str]:
        """Services below a service or supply point, sorted."""
        found: set[str] = set()
        ahead = [holder_id]
        while ahead:
            new = [c for c in self.children.get(ahead.pop(), ()) if c not in found]
            found.update(new)
            ahead += new
        return sorted(found)

    def next_ordinal(self, kind: str, subject: str) -> int:
        """Counts the artifacts of a kind of which a subject has several."""
        ordinal = self.ordinals[kind, subject] = self.ordinals.get((kind, subject), 0) + 1
        return ordinal

    def free_slots(self, crew: Crew, window: Window) -> list[int]:
        ledger = self.ledgers["crews"]
        return [
            slot
            for slot in range(window.start_slot, window.end_slot + 1)
            if (key := shift(crew.crew_id, slot)) in ledger.capacity and ledger.free(key)
        ]

    def scope(self, device: Device) -> Window | None:
        """The window of the live plan or open isolation that a device is in, if any."""
        live = self.live.get(device.service_id)
        if live is None or device.device_id not in self.artifacts[live.ref].content.device_ids:
            return None
        return self.window(live.window_id)

    def passing_test(self, device_id: str) -> Artifact | None:
        """The latest test of a device, if it passed and stands."""
        test = self.newest_of("test", device_id)
        return test if test is not None and test.status == CURRENT and test.content.result == "pass" else None

    def sound(self, repair: Artifact, device: Device) -> bool:
        """Rule 11: whether the unit built in is of the faulty component and fits the device's revision."""
        part: Part = self.tables["parts"][repair.content.part_id]
        return part.component == fault_of(device).component and part.rev_from <= device.hw_rev <= part.rev_to

    # -- rules 4 to 8 and 12 to 14 ---------------------------------------------------------------------------------

    def supplied_from(self, service: Service) -> int:
        """Rule 5: the slot from which all parents are in service; 0 for a parent without a record."""
        records = [self.certificate(f.parent_id) for f in service.feeds]
        return max(r.content.in_service_from if r is not None else 0 for r in records)

    def in_service_from(self, service: Service) -> int:
        """Rule 4."""
        before = self.certificate(service.service_id)
        if before is not None:
            kept: int = before.content.in_service_from
            return kept
        return max(self.supplied_from(service), self.isolated_until.get(service.service_id, -1) + 1)

    def earliest_start(self, service: Service, kind: PlanKind) -> int:
        """Rules 5 and 6: the first slot at which an isolation may start."""
        if kind == "planned":
            return self.supplied_from(service)
        held = [self.certificate(s) for s in (service.service_id, *self.dependents(service.service_id))]
        return max(r.content.in_service_from for r in held if r is not None)

    def neighbours(self, service: Service) -> list[str]:
        return [*(f.parent_id for f in service.feeds), *self.children.get(service.service_id, ())]

    def inlet(self, service: Service, records: Mapping[str, Artifact]) -> Inlet:
        """Rules 12 to 14 over the parents' records (by parent) and the devices' passing tests."""
        taken, pressures = 0, []
        for feed in service.feeds:
            offer: Commission = records[feed.parent_id].content
            part = taken_lpm(feed.share_lpm, offer.flow_lpm, offer.contracted_lpm)
            taken += part
            pressures.append(offer.outlet_kpa - loss_kpa(feed.loss_coeff, part))
        inlet = min(pressures)
        tests = [self.passing_test(d) for d in service.device_ids]
        drops = sum(test.content.drop_kpa for test in tests if test is not None)
        makeup = makeup_lpm(service.own_lpm, service.contracted_lpm, taken)
        return Inlet(taken, inlet, makeup, inlet + service.gain_kpa - drops)

    # -- staleness (rule 16) ---------------------------------------------------------------------------------------

    def make(self, kind: str, subject: str, content: Any, inputs: Sequence[str], module: str, **more: Any) -> Artifact:
        """Publish for the goal that the kind serves, reading what rule 16 lets it depend on and nothing else."""
        goal = f"{_GOALS[kind]}:{subject}" if kind in _GOALS else "system"
        reads = self._reads_of(kind, subject, inputs)
        return self.publish(kind, subject, content, inputs, reads=reads, goal=goal, module=module, **more)

    def _reads_of(self, kind: str, subject: str, inputs: Sequence[str]) -> list[str]:
        if kind in ("diagnosis", "repair"):
            return [f"episode:{subject}"]
        if kind == "test":
            return [inputs[0].partition("@")[0], f"episode:{subject}", f"openings:{subject}"]
        if kind == "record":
            cited = [ref.partition("@")[0] for ref in inputs]
            return [*cited, *(f"episode:{d}" for d in self.service(subject).device_ids)]
        return [f"repairs:{subject}"] if kind == "depot_return" else []

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        if artifact.kind in ("diagnosis", "repair"):
            device = self.tables["devices"][artifact.subject]
            return None if artifact.content.episode == device.episode else f"{device.device_id} failed anew"
        if artifact.kind == "test":
            return self._why_void(artifact, cause)
        if artifact.kind == "record":
            return self._why_lapsed(artifact)
        if artifact.kind == "depot_return":
            return None if artifact.basis == len(self.repairs[artifact.subject]) else cause
        return None

    def _why_void(self, test: Artifact, cause: str) -> str | None:
        if self.openings.get(test.subject, 0) != test.basis:
            return f"an isolation was opened over {test.subject}"
        return None if self.artifacts[test.inputs[0]].status == CURRENT else cause

    def _why_lapsed(self, record: Artifact) -> str | None:
        """A test that was voided leaves the record as it is; only the next test touches it."""
        if not record.inputs:
            return None
        devices = self.tables["devices"]
        for device_id, episode in record.basis.items():
            if devices[device_id].episode != episode:
                return f"{device_id} failed anew"
        for ref in record.inputs:
            source = self.artifacts[ref]
            if source.status in (SUPERSEDED, WITHDRAWN) or (source.kind == "record" and source.status != CURRENT):
                return f"{ref} is {source.status}"
        return None

    def _store(self, artifact: Artifact) -> None:
        super()._store(artifact)
        if artifact.kind == "record" and artifact.subject in self.tables["services"]:
            newest = self.newest[artifact.id]
            if artifact.version == 1 and self.by_service.status[artifact.subject] == "uncommissioned":
                insort(self.certified, artifact.subject)
            status = "commissioned" if newest.status == CURRENT else newest.status
            if status != SUPERSEDED:  # only until the version that supersedes it is stored as well
                self.by_service.set(artifact.subject, status, (self.tables["services"][artifact.subject].depot_id,))
        elif artifact.kind in ("repair", "test"):
            self.by_device.set(artifact.subject, self._device_status(artifact.subject), ())

    def _device_status(self, device_id: str) -> DeviceStatus:
        repair, test = self.newest_of("repair", device_id), self.newest_of("test", device_id)
        if repair is None or repair.status != CURRENT:
            return "faulted"
        if test is None or test.inputs[0] != repair.ref:
            return "repaired"
        if test.content.result == "fail":
            return "faulted"
        return "restored" if test.status == CURRENT else "repaired"

    # -- updates ---------------------------------------------------------------------------------------------------

    def apply_update(self, update: Update) -> None:
        effect = update.effect
        if isinstance(effect, SupplyRevision):
            self._record_supply(effect.supply_id, effect.outlet_kpa, effect.flow_lpm)
            self.announce("supply_revised", (effect.supply_id,), effect.text)
        elif isinstance(effect, DeviceFault):
            device = self.device(effect.device_id)
            inspections = (*device.inspections, effect.inspection)
            self.amend("devices", device.device_id, episode=device.episode + 1, inspections=inspections)
            self.announce("device_fault", (effect.device_id,), effect.text)
            self.changed(f"episode:{effect.device_id}", cause=effect.text)
        else:
            self.announce("advisory", (effect.subject_id,), effect.text)

    def _record_supply(self, supply_id: str, outlet_kpa: int, flow_lpm: int) -> None:
        contracted = self.tables["supplies"][supply_id].contracted_lpm
        self.publish("record", supply_id, Commission(outlet_kpa, flow_lpm, contracted, 0), ())


def shift(crew_id: str, slot: int) -> str:
    """The crew ledger's name of a shift."""
    return f"{crew_id}/{slot}"


def _grouped(table: Mapping[str, Any], field: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key in sorted(table):
        groups.setdefault(getattr(table[key], field), []).append(key)
    return groups
