"""The treated-water mesh: records, the rules of the trade, and what makes work stale.

Pressures are kPa, flows L/min and times slots (shifts of four hours), all integers; ranges are inclusive. Rule numbers
are those of the skills: each rule stands once, in ``rules`` or here, for the operations, for staleness and for scoring.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, SUPERSEDED, WITHDRAWN, Artifact, Update, World
from skillhorizon.envs.field.records import (
    Commission,
    Crew,
    Device,
    DeviceFault,
    Part,
    PlanKind,
    Service,
    SupplyRevision,
    Trunk,
    Window,
)
from skillhorizon.envs.field.rules import fault_of, loss_kpa, makeup_lpm, shift, taken_lpm

DeviceStatus = Literal["faulted", "repaired", "restored"]


# -- arithmetic ------------------------------------------------------------------------------------------------------


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

    def index(self, artifact: Artifact) -> None:
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


def _grouped(table: Mapping[str, Any], field: str) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key in sorted(table):
        groups.setdefault(getattr(table[key], field), []).append(key)
    return groups
