"""The reference procedure of the field desk, and the plausible mistakes around it.

Services parents first: devices diagnosed, the service isolated, each device repaired, the boundary closed, the devices
tested, the service commissioned on its parents' records. After a notice only what became stale is done again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script

_OPENING_SKILLS = (
    "trace-feed-network",
    "diagnose-device-fault",
    "plan-and-open-isolation",
    "allocate-crew-and-spare",
    "repair-and-test-device",
    "balance-inlet-flow",
    "commission-service",
    "hand-over-system",
)
_TRUNKS = ("primary_trunk_id", "standby_trunk_id")
Row = dict[str, Any]


class FieldPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.central = ""
        self.feeds: dict[str, list[str]] = {}
        self.depot: dict[str, str] = {}
        self.device_count: dict[str, int] = {}
        self.order: list[str] = []
        """services, parents first"""
        self.rank: dict[str, int] = {}
        self.unfinished: list[int] = []
        """ranks of the services without a current certificate, ascending"""
        self.record: dict[str, str] = {}
        """service -> its record, while current"""
        self.certified: set[str] = set()
        """services that have held a record"""
        self.isolation: dict[str, Row] = {}
        """service -> its open isolation: ref, window, valves, devices still to be repaired, devices to be tested"""
        self.trunk: dict[str, str] = {}
        """service -> its primary trunk, once read"""
        self.open_trunks: set[str] = set()
        self.faulty: dict[str, list[str]] = {}
        """service -> devices without a repair and a passing test"""
        self.devices: dict[str, list[str]] = {}
        self.diagnosis: dict[str, Row] = {}
        self.repair: dict[str, str] = {}
        self.test: dict[str, Row] = {}
        self.flow: dict[str, Row] = {}
        self.used: dict[str, list[str]] = {}
        """depot -> parts built in, one entry a repair"""
        self.notices_read = 0
        self.accepted = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        brief = yield from ask("read_task_brief")
        self.central = brief["central_depot_id"]
        yield from ask("list_skills")
        for skill in _OPENING_SKILLS:
            yield from ask("read_skill_file", skill=skill)
        services = yield from ask_all("list_services")
        self.memory.keep("windows", (yield from ask_all("list_windows")))
        yield from self._read_trunks()
        self.feeds = {s["service_id"]: s["feed_ids"] for s in services}
        self.depot = {s["service_id"]: s["depot_id"] for s in services}
        self.device_count = {s["service_id"]: s["device_count"] for s in services}
        levels: dict[str, int] = {}
        for service_id in self.feeds:
            self._level(service_id, levels)
        self.order = sorted(self.feeds, key=lambda s: (levels[s], s))
        self.rank = {service_id: n for n, service_id in enumerate(self.order)}
        self.unfinished = list(range(len(self.order)))

    def _level(self, service_id: str, levels: dict[str, int]) -> None:
        """Longest way from a supply point; no recursion, the network may be deep."""
        ahead = [service_id]
        while ahead:
            here = ahead[-1]
            parents = [p for p in self.feeds[here] if p in self.feeds]
            unknown = [p for p in parents if p not in levels]
            if unknown:
                ahead += unknown
                continue
            levels[here] = 1 + max((levels[p] for p in parents), default=-1)
            ahead.pop()

    def ready(self) -> Iterator[Job]:
        for number in self.unfinished:
            service_id = self.order[number]
            if service_id in self.isolation:
                waiting = self.isolation[service_id]["to_repair"]
                for device_id in waiting:
                    yield Job(f"case:{device_id}", partial(self._case, service_id, device_id))
                if not waiting:
                    yield Job(f"restore:{service_id}", partial(self._restore, service_id))
            elif all(p in self.record for p in self.feeds[service_id] if p in self.feeds):
                if not self._needs_isolation(service_id):
                    yield Job(f"commission:{service_id}", partial(self._commission, service_id))
                elif self.trunk.get(service_id) not in self.open_trunks:
                    yield Job(f"isolate:{service_id}", partial(self._isolate, service_id))
        if not self.unfinished and self.order and not self.accepted:
            yield Job("handover", self._hand_over)

    def _needs_isolation(self, service_id: str) -> bool:
        if service_id in self.faulty:
            return bool(self.faulty[service_id])
        return self.device_count[service_id] > 0

    # -- what is looked up -----------------------------------------------------------------------------------------

    def _service(self, service_id: str, module: str) -> Steps[Row]:
        return (
            yield from self.memory.lookup(
                ("service", service_id), ask("get_service", module=module, service_id=service_id)
            )
        )

    def _device(self, device_id: str, module: str) -> Steps[Row]:
        return (
            yield from self.memory.lookup(("device", device_id), ask("get_device", module=module, device_id=device_id))
        )

    def _record(self, holder_id: str, module: str) -> Steps[Row]:
        return (
            yield from self.memory.lookup(("record", holder_id), ask("get_record", module=module, holder_id=holder_id))
        )

    def _table(self, skill: str, path: str, module: str) -> Steps[list[Row]]:
        """A reference table of a skill."""
        if path not in self.memory:
            answer = yield from ask("read_skill_file", module=module, skill=skill, path=path)
            head, *lines = (line.split(",") for line in answer["text"].splitlines())
            self.memory.keep(path, [dict(zip(head, line, strict=True)) for line in lines])
        return list(self.memory.get(path))

    def _windows(self) -> Steps[dict[str, Row]]:
        windows = yield from self.memory.lookup("windows", ask_all("list_windows"))
        return {w["window_id"]: w for w in windows}

    # -- isolating -------------------------------------------------------------------------------------------------

    def _isolate(self, service_id: str) -> Steps[None]:
        module, goal = f"isolate:{service_id}", f"service:{service_id}"
        service = yield from self._service(service_id, module)
        self.trunk[service_id] = service["primary_trunk_id"]
        if self.trunk[service_id] in self.open_trunks:
            return
        self.devices[service_id] = service["device_ids"]
        scope = self.faulty.setdefault(service_id, list(service["device_ids"]))
        devices = []
        for device_id in scope:
            devices.append((yield from self._device(device_id, module)))
            yield from self._diagnose(devices[-1], module)
        parents = []
        for parent in self.feeds[service_id]:
            parents.append((yield from self._record(parent, module)))
        windows = yield from self._windows()
        if service_id not in self.certified:
            kind, dependents = "planned", []
            offered = [windows[w] for w in service["window_ids"]]
            earliest = max(p["content"]["in_service_from"] for p in parents)
        else:
            kind = "corrective"
            children = yield from ask_all("list_services", module=module, feed_id=service_id)
            dependents = [c["service_id"] for c in children if c["status"] != "uncommissioned"]
            offered = [w for w in windows.values() if w["kind"] == "contingency"]
            earliest = 0
            for holder in (service_id, *dependents):
                held = yield from self._record(holder, module)
                earliest = max(earliest, held["content"]["in_service_from"])
        window = min(offered, key=lambda w: (w["start_slot"] < earliest, w["start_slot"]))
        answer = yield from ask(
            "plan_isolation",
            module=module,
            goal=goal,
            service_id=service_id,
            kind=kind,
            window_id=window["window_id"],
            device_ids=scope,
            permit_class=permit_needed(devices),
            parent_records=[p["ref"] for p in parents],
            dependents=dependents,
        )
        self.memory.keep(("plan", answer["ref"]), service_id)
        valves = valves_in_order(service)
        opened = yield from ask("open_isolation", module=module, goal=goal, plan=answer["ref"], valve_order=valves)
        self.isolation[service_id] = {
            "ref": opened["ref"],
            "window": window,
            "valves": valves,
            "to_repair": list(scope),
            "to_test": list(scope),
        }
        self.open_trunks.add(self.trunk[service_id])

    def _diagnose(self, device: Row, module: str) -> Steps[None]:
        device_id = device["device_id"]
        if device_id in self.diagnosis:
            return
        table = yield from self._table("diagnose-device-fault", "references/fault-signatures.csv", module)
        signature = signature_in(table, device["class"], flagged_channels(device["inspections"][-1]))
        assert signature is not None, "rule 1: the flagged channels are one signature of the class"
        answer = yield from ask(
            "submit_diagnosis",
            module=module,
            goal=f"case:{device_id}",
            device_id=device_id,
            fault_code=signature["fault_code"],
            channels=sorted(signature["channels"].split()),
        )
        self.diagnosis[device_id] = {"ref": answer["ref"], **answer["content"]}

    # -- a device case ---------------------------------------------------------------------------------------------

    def _case(self, service_id: str, device_id: str) -> Steps[None]:
        module = goal = f"case:{device_id}"
        isolation, diagnosis = self.isolation[service_id], self.diagnosis[device_id]
        device = yield from self._device(device_id, module)
        crew = yield from self._reserve_crew(service_id, device_id, module)
        model = device["model"]
        parts = yield from self.memory.lookup(("parts", model), ask_all("list_parts", module=module, model=model))
        part = next(p for p in parts if _fits(p, device, diagnosis))
        spare = yield from self._reserve_spare(service_id, device_id, part["part_id"], module)
        answer = yield from ask(
            "repair_device",
            module=module,
            goal=goal,
            device_id=device_id,
            diagnosis=diagnosis["ref"],
            crew_reservation=crew,
            spare_reservation=spare,
            isolation=isolation["ref"],
        )
        self.repair[device_id] = answer["ref"]
        self.used.setdefault(self.depot[service_id], []).append(answer["content"]["part_id"])
        isolation["to_repair"].remove(device_id)

    def _reserve_crew(self, service_id: str, device_id: str, module: str) -> Steps[str]:
        """Rule 9: the crew with the fewest valid qualifications, then by id, in its earliest free slot."""
        window, depot_id = self.isolation[service_id]["window"], self.depot[service_id]
        crews = yield from self.memory.lookup(
            ("crews", depot_id, window["window_id"]),
            ask_all("list_crews", module=module, depot_id=depot_id, window_id=window["window_id"]),
        )
        code = self.diagnosis[device_id]["qualification"]
        shifts = [
            (code not in (valid := valid_codes(crew, slot)), len(valid), crew["crew_id"], slot)
            for crew in crews
            for slot in crew["free_slots"]
        ]
        crew_id, slot = min(shifts)[2:] if shifts else (crews[0]["crew_id"], window["start_slot"])
        answer = yield from ask(
            "reserve_crew", module=module, goal=module, device_id=device_id, crew_id=crew_id, slot=slot
        )
        booked: Row = answer["content"]
        for crew in crews:
            if crew["crew_id"] == booked["crew_id"] and booked["slot"] in crew["free_slots"]:
                crew["free_slots"].remove(booked["slot"])
        reservation: str = answer["ref"]
        return reservation

    def _reserve_spare(self, service_id: str, device_id: str, part_id: str, module: str) -> Steps[str]:
        """Rule 10: depot before central, earliest use-by, then by id. The central store is everyone's."""
        window, depot_id = self.isolation[service_id]["window"], self.depot[service_id]
        batches = yield from self.memory.lookup(
            ("stock", depot_id, part_id), ask_all("list_stock", module=module, depot_id=depot_id, part_id=part_id)
        )
        end = window["end_slot"]
        batch = min(
            batches,
            key=lambda b: (not usable_for(b, end), b["depot_id"] == self.central, b["use_by_slot"], b["batch_id"]),
        )
        answer = yield from ask(
            "reserve_spare", module=module, goal=module, device_id=device_id, batch_id=batch["batch_id"]
        )
        booked: Row = answer["content"]
        if booked["depot_id"] == self.central:
            self.memory.forget_where(lambda key: key[0] == "stock" and key[2] == booked["part_id"])
        else:
            for known in self.memory.get(("stock", depot_id, booked["part_id"]), []):
                known["held"] += known["batch_id"] == booked["batch_id"]
        reservation: str = answer["ref"]
        return reservation

    def _restore(self, service_id: str) -> Steps[None]:
        module = f"restore:{service_id}"
        isolation = self.isolation[service_id]
        yield from ask(
            "close_isolation",
            module=module,
            goal=f"service:{service_id}",
            isolation=isolation["ref"],
            valve_order=isolation["valves"][::-1],
        )
        del self.isolation[service_id]
        self.open_trunks.discard(self.trunk[service_id])
        factors = yield from self._table("repair-and-test-device", "references/test-factors.csv", module)
        for device_id in isolation["to_test"]:
            device = yield from self._device(device_id, module)
            factor = next(int(f["factor_percent"]) for f in factors if f["class"] == device["class"])
            answer = yield from ask(
                "test_device",
                module=module,
                goal=f"case:{device_id}",
                device_id=device_id,
                repair=self.repair[device_id],
                test_kpa=5 * -(-device["design_kpa"] * factor // 500),
            )
            self.test[device_id] = {"ref": answer["ref"], **answer["content"]}
            self.faulty[service_id].remove(device_id)

    # -- commissioning ---------------------------------------------------------------------------------------------

    def _commission(self, service_id: str) -> Steps[None]:
        module, goal = f"commission:{service_id}", f"service:{service_id}"
        service = yield from self._service(service_id, module)
        records = {}
        for feed in service["feeds"]:
            records[feed["parent_id"]] = yield from self._record(feed["parent_id"], module)
        tests = [self.test[d] for d in service["device_ids"]]
        given = {
            "feeds": [_conditions(feed, records[feed["parent_id"]]["content"]) for feed in service["feeds"]],
            "own_lpm": service["own_lpm"],
            "contracted_lpm": service["contracted_lpm"],
            "gain_kpa": service["gain_kpa"],
            "drops_kpa": [t["drop_kpa"] for t in tests],
            "step_kpa": service["limits"]["step_kpa"],
            "max_outlet_kpa": service["limits"]["max_outlet_kpa"],
        }
        found = yield from run_script("balance-inlet-flow", "inlet_conditions", given, module=module, goal=goal)
        yield from self._reserve_flow(service, found["makeup_lpm"], module)
        answer = yield from ask(
            "commission_service",
            module=module,
            goal=goal,
            service_id=service_id,
            parent_records=[r["ref"] for r in records.values()],
            tests=[t["ref"] for t in tests],
            flow_reservation=self.flow[service_id]["ref"],
            inlet_kpa=found["inlet_kpa"],
            setpoint_kpa=found["setpoint_kpa"],
        )
        self.record[service_id] = answer["ref"]
        self.certified.add(service_id)
        before = self.memory.get(("record", service_id))
        if before is not None:
            self.memory.keep(("superseded", service_id), before)
        self.memory.keep(("record", service_id), {"ref": answer["ref"], "content": answer["content"]})
        del self.unfinished[bisect_left(self.unfinished, self.rank[service_id])]
        yield from self._read_notices()

    def _reserve_flow(self, service: Row, makeup: int, module: str) -> Steps[None]:
        """Rule 13: the whole amount on the primary trunk where it fits, else on the standby."""
        service_id = service["service_id"]
        held = self.flow.get(service_id)
        if held is not None and held["amount_lpm"] == makeup:
            return
        if any(("trunk", service[name]) not in self.memory for name in _TRUNKS):
            yield from self._read_trunks(module)
        for name in _TRUNKS:
            trunk: Row = self.memory.get(("trunk", service[name]))
            returned = held["amount_lpm"] if held is not None and held["trunk_id"] == service[name] else 0
            if makeup <= trunk["capacity_lpm"] - trunk["base_lpm"] - trunk["reserved_lpm"] + returned:
                break
        answer = yield from ask(
            "reserve_flow",
            module=module,
            goal=f"service:{service_id}",
            service_id=service_id,
            trunk_id=trunk["trunk_id"],
            amount_lpm=makeup,
        )
        content: Row = answer["content"]
        for row, sign in ((held, -1), (content, 1)):
            known = self.memory.get(("trunk", row["trunk_id"])) if row is not None else None
            if row is not None and known is not None:
                known["reserved_lpm"] += sign * row["amount_lpm"]
        self.flow[service_id] = {"ref": answer["ref"], **content}

    def _read_trunks(self, module: str | None = None) -> Steps[None]:
        trunks = yield from ask_all("list_trunks", module=module)
        for trunk in trunks:
            self.memory.keep(("trunk", trunk["trunk_id"]), trunk)

    # -- changes of the network ------------------------------------------------------------------------------------

    def _read_notices(self) -> Steps[None]:
        notices = yield from ask_all("list_notices", since=self.notices_read)
        for notice in notices:
            self.notices_read = max(self.notices_read, notice["sequence"])
            if notice["kind"] == "advisory":
                continue
            if "recovering" not in self.memory:
                yield from ask("read_skill_file", skill="recover-from-network-change")
                self.memory.keep("recovering", True)
            for subject in notice["subject_ids"]:
                if notice["kind"] == "supply_revised":
                    self.memory.keep(("superseded", subject), self.memory.get(("record", subject)))
                    self.memory.forget(("record", subject))
                    yield from self._record(subject, f"recover:{subject}")
                else:
                    yield from self._fail_anew(subject)
            stale = yield from ask_all("list_certificates", status="stale")
            for row in stale:
                if self.record.pop(row["service_id"], None):
                    insort(self.unfinished, self.rank[row["service_id"]])

    def _fail_anew(self, device_id: str) -> Steps[None]:
        self.memory.forget(("device", device_id))
        device = yield from self._device(device_id, f"recover:{device_id}")
        self.faulty[device["service_id"]].append(device_id)
        for made in (self.diagnosis, self.repair, self.test):
            made.pop(device_id, None)

    # -- handing over ----------------------------------------------------------------------------------------------

    def _hand_over(self) -> Steps[None]:
        yield from self._read_notices()
        if self.unfinished:
            return
        returns = []
        for depot_id in sorted(set(self.depot.values())):
            goal = f"depot:{depot_id}"
            used = [{"part_id": part_id, "slots": 1} for part_id in self.used.get(depot_id, ())]
            output = yield from run_script(
                "hand-over-system", "tally_resources", {"used": used}, module="handover", goal=goal
            )
            answer = yield from ask("post_resource_return", module="handover", goal=goal, depot_id=depot_id, **output)
            returns.append(answer["ref"])
        yield from ask("request_acceptance", module="handover", goal="system", returns=returns)
        self.accepted = True


# -- the rules, as the skills state them -----------------------------------------------------------------------------


def flagged_channels(inspection: Row) -> set[str]:
    return {
        r["channel"]
        for r in inspection["readings"]
        if r["calibration"] == "valid" and not r["low"] <= r["value"] <= r["high"]
    }


def signature_in(table: list[Row], class_: str, channels: set[str]) -> Row | None:
    return next((s for s in table if s["class"] == class_ and set(s["channels"].split()) == channels), None)


def permit_needed(devices: list[Row]) -> str:
    if any(d["location"] == "chamber" for d in devices):
        return "confined_space"
    return "electrical" if any(d["powered"] for d in devices) else "cold_work"


def valves_in_order(service: Row) -> list[str]:
    such = [v for v in service["boundary"] if v["normal"] == "open"]
    return [v["valve_id"] for v in sorted(such, key=lambda v: (v["side"], v["chainage_m"]))]


def _fits(part: Row, device: Row, diagnosis: Row) -> bool:
    return part["component"] == diagnosis["component"] and part["rev_from"] <= device["hw_rev"] <= part["rev_to"]


def valid_codes(crew: Row, slot: int) -> set[str]:
    return {q["code"] for q in crew["qualifications"] if slot <= q["valid_until_slot"]}


def usable_for(batch: Row, end_slot: int) -> bool:
    return batch["status"] == "released" and batch["on_hand"] > batch["held"] and batch["use_by_slot"] >= end_slot


def _conditions(feed: Row, offer: Row) -> Row:
    return {
        "outlet_kpa": offer["outlet_kpa"],
        "flow_lpm": offer["flow_lpm"],
        "contracted_lpm": offer["contracted_lpm"],
        "share_lpm": feed["share_lpm"],
        "loss_coeff": feed["loss_coeff"],
    }
