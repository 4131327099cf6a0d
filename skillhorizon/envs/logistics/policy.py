"""The reference procedure of the transfer desk, and the plausible mistakes around it.

Cohort by cohort: bookings confirmed and checked in, the consignment moved leg by leg, pairs put on their transfers,
journeys closed, freight delivered. After a notice only what became stale is done again, upstream first.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Refused, Steps, ask, ask_all, run_script
from skillhorizon.envs.logistics.rules import connection_min, custody_min, earliest_movement
from skillhorizon.envs.logistics.world import ALLOWANCES

_OPENING_SKILLS = (
    "rebook-itinerary",
    "check-in-baggage",
    "verify-handling-permission",
    "release-custody",
    "hand-over-freight",
    "share-ground-transfer",
    "close-delivery",
    "submit-network-evaluation",
)
_HORIZON_MIN = 1_680
"""How far ahead of the earliest presence services are listed."""
_FIRST_REACH_MIN, _REACH_MIN = 600, 1_320
"""How far ahead of it, on the first leg and on later ones, a listing made before must reach to be used again."""
Row = dict[str, Any]
Key = tuple[Any, ...]


class LogisticsPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.heads: list[Row] = []
        self.legs = 0
        self.cohorts: dict[int, Row] = {}
        """sequence -> cohort, once opened"""
        self.place: dict[str, int] = {}
        """booking, consignment or cohort -> sequence"""
        self.unfinished: list[int] = []
        """sequences of cohorts with work left, ascending"""
        self.held: dict[Key, Row] = {}
        """(kind, subject, …) -> answer of the operation that made it, while it stands"""
        self.lost: dict[Key, Row] = {}
        """the same for what became stale and is not yet made again"""
        self.owner: dict[str, Key] = {}
        """reference -> key in ``held``"""
        self.broken: list[tuple[int, int]] = []
        """sequence and leg of movements that became stale, ascending"""
        self.windows: dict[tuple[str, str], list[int]] = {}
        """lane -> first minutes of the listings made"""
        self.skills_read: set[str] = set()
        self.notices_read = 0
        self.closed = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        brief = yield from ask("read_task_brief")
        self.legs = brief["legs"]
        yield from ask("list_skills")
        for skill in _OPENING_SKILLS:
            yield from ask("read_skill_file", skill=skill)
        path = "references/commodity-classes.csv"
        table = yield from ask("read_skill_file", skill="check-in-baggage", path=path)
        rows = [line.split(",") for line in table["text"].splitlines()[1:]]
        self.memory.keep("classes", {row[0]: (row[1], int(row[2]) if row[2] else None, row[3]) for row in rows})
        self.heads = yield from ask_all("list_cohorts")
        self.unfinished = [head["sequence"] for head in self.heads]

    def ready(self) -> Iterator[Job]:
        for sequence in self.unfinished:
            for key, steps in self._jobs(sequence):
                yield Job(key, partial(self._watched, steps))
        if not self.unfinished and self.heads and not self.closed:
            yield Job("closing", self._close_desk)

    def _jobs(self, sequence: int) -> Iterator[tuple[str, Callable[[], Steps[None]]]]:
        cohort = self.cohorts.get(sequence)
        if cohort is None:
            yield f"open:{self.heads[sequence]['cohort_id']}", partial(self._open, sequence)
            return
        bookings = [self.memory.get(("booking", b)) for b in cohort["booking_ids"]]
        for booking in bookings:
            if not self._checked_in(booking):
                yield f"checkin:{booking['booking_id']}", partial(self._check_in, booking)
        leg = self._movement_due(sequence, cohort)
        if leg is not None:
            yield f"movement:{cohort['consignment_id']}/{leg}", partial(self._move, cohort, leg)
        for pair in (bookings[:2], bookings[2:]):
            seated = all(("seat", b["booking_id"]) in self.held for b in pair)
            if not seated and all(self._checked_in(b) and self._bags_in(cohort, b) for b in pair):
                yield f"share:{cohort['cohort_id']}/{pair[0]['alight_leg']}", partial(self._share, cohort, pair)
        for booking in bookings:
            booking_id = booking["booking_id"]
            due = ("evaluation", booking_id) not in self.held and ("seat", booking_id) in self.held
            if due and self._checked_in(booking) and self._bags_in(cohort, booking):
                yield f"close:{booking_id}", partial(self._close, cohort, booking)
        consignment_id = cohort["consignment_id"]
        if ("freight", consignment_id) not in self.held and self._moved(consignment_id, self.legs - 1):
            yield f"freight:{consignment_id}", partial(self._deliver_freight, cohort)

    def _checked_in(self, booking: Row) -> bool:
        return ("itinerary", booking["booking_id"]) in self.held and all(
            ("tag", i["item_id"]) in self.held for i in booking["items"]
        )

    def _moved(self, consignment_id: str, leg: int) -> bool:
        return ("manifest", consignment_id, leg) in self.held

    def _bags_in(self, cohort: Row, booking: Row) -> bool:
        """Whether a current manifest brings the custody items of a booking to where it alights."""
        tags = [self.held[("tag", i["item_id"])] for i in booking["items"]]
        in_custody = any(t["carriage"] == "custody" for t in tags)
        return not in_custody or self._moved(cohort["consignment_id"], booking["alight_leg"] - 1)

    def _movement_due(self, sequence: int, cohort: Row) -> int | None:
        """The next leg to be moved. While something is broken only the first such movement may be made again: nothing
        upstream of it is, and what is downstream waits to be told."""
        consignment_id = cohort["consignment_id"]
        if self.broken:
            place, leg = self.broken[0]
            return leg if place == sequence else None
        for leg in range(self.legs):
            if not self._moved(consignment_id, leg):
                return leg if self._sources_ready(cohort, leg) else None
        return None

    def _sources_ready(self, cohort: Row, leg: int) -> bool:
        consignment = self.memory.get(("consignment", cohort["consignment_id"]))
        for unit in consignment["received"]:
            if unit["board_leg"] == leg and not self._moved(unit["other"], unit["other_leg"]):
                return False
        for booking_id in cohort["booking_ids"]:
            booking = self.memory.get(("booking", booking_id))
            boards = booking["board_leg"] == leg and any(self._class(i) != "general" for i in booking["items"])
            if boards and any(("tag", i["item_id"]) not in self.held for i in booking["items"]):
                return False
        return True

    # -- what is held, and what is lost ----------------------------------------------------------------------------

    def _hold(self, key: Key, ref: str, answer: Row) -> None:
        """Keep what was made, and drop what that made stale."""
        self.held[key] = {**answer, "ref": ref}
        self.lost.pop(key, None)
        self.owner[ref] = key
        self._void(answer["invalidated"])

    def _void(self, refs: list[str]) -> None:
        for ref in refs:
            key = self.owner.get(ref)
            if key is None or key not in self.held or self.held[key]["ref"] != ref:
                continue
            self.lost[key] = self.held.pop(key)
            sequence = self.place[self.lost[key].get("booking_id") or key[1]]
            if key[0] == "manifest" and (sequence, key[2]) not in self.broken:
                insort(self.broken, (sequence, key[2]))
            if sequence not in self.unfinished:
                insort(self.unfinished, sequence)

    def _settle(self, sequence: int) -> None:
        """A cohort with nothing left to do is finished, for now."""
        cohort = self.cohorts[sequence]
        consignment_id = cohort["consignment_id"]
        if (
            ("freight", consignment_id) in self.held
            and all(("evaluation", b) in self.held for b in cohort["booking_ids"])
            and all(self._moved(consignment_id, leg) for leg in range(self.legs))
            and sequence in self.unfinished
        ):
            self.unfinished.remove(sequence)

    def _watched(self, steps: Callable[[], Steps[None]]) -> Steps[None]:
        """A job that trips over a withdrawal not yet heard of reads the notices and is taken up again later."""
        try:
            yield from steps()
        except Refused as refused:
            before = self.notices_read
            if refused.error["code"] in ("withdrawn", "stale_input"):
                yield from self._read_notices()
            if self.notices_read == before:
                raise

    # -- what is looked up -----------------------------------------------------------------------------------------

    def _open(self, sequence: int) -> Steps[None]:
        """Read a cohort, its freight and its bookings, and the hubs, services and permits of its legs."""
        head = self.heads[sequence]
        module = f"open:{head['cohort_id']}"
        cohort = yield from ask("get_cohort", module=module, cohort_id=head["cohort_id"])
        consignment_id = cohort["consignment_id"]
        consignment = yield from ask("get_consignment", module=module, consignment_id=consignment_id)
        self.memory.keep(("consignment", consignment_id), consignment)
        for booking_id in cohort["booking_ids"]:
            booking = yield from ask("get_booking", module=module, booking_id=booking_id)
            passenger_id = booking["passenger_id"]
            passenger = yield from self.memory.lookup(
                ("passenger", passenger_id), ask("get_passenger", module=module, passenger_id=passenger_id)
            )
            self.memory.keep(("booking", booking_id), booking)
            self.memory.keep(("allowance", booking_id), ALLOWANCES[passenger["assistance"]])
            self.place[booking_id] = sequence
        for leg in range(self.legs):
            yield from self._services(cohort, leg, module)
            if self._classes_planned(cohort, leg):
                yield from self._permits(cohort["route"][leg], cohort["route"][leg + 1], module)
        for hub_id in cohort["route"]:
            yield from self._minima(hub_id, module)
        self.place[consignment_id] = self.place[cohort["cohort_id"]] = sequence
        self.cohorts[sequence] = cohort

    def _minima(self, hub_id: str, module: str) -> Steps[dict[str, int]]:
        hub = yield from self.memory.lookup(("hub", hub_id), ask("get_hub", module=module, hub_id=hub_id))
        minima: dict[str, int] = hub["minima"]
        return minima

    def _permits(self, origin: str, destination: str, module: str) -> Steps[list[Row]]:
        query = ask_all("list_permits", module=module, origin=origin, destination=destination)
        return (yield from self.memory.lookup(("permits", origin, destination), query))

    def _services(self, cohort: Row, leg: int, module: str) -> Steps[list[Row]]:
        """The services of a leg from the time on at which someone of the cohort can be there first."""
        origin, destination = cohort["route"][leg], cohort["route"][leg + 1]
        start = self.memory.get(("window", cohort["cohort_id"], leg))
        if start is None:
            there = yield from self._first_presence(cohort, leg, module)
            listed = self.windows.setdefault((origin, destination), [])
            late = _HORIZON_MIN - (_REACH_MIN if leg else _FIRST_REACH_MIN)
            start = next((s for s in listed if s <= there <= s + late), None)
            if start is None:
                start = there
                listed.append(start)
            self.memory.keep(("window", cohort["cohort_id"], leg), start)
        query = self._list_services(origin, destination, start, module)
        return (yield from self.memory.lookup(("services", origin, destination, start), query))

    def _later_services(self, cohort: Row, leg: int, module: str) -> Steps[list[Row]]:
        """The same with those that come after the horizon: nothing before it serves."""
        key = (
            "services",
            cohort["route"][leg],
            cohort["route"][leg + 1],
            self.memory.get(("window", cohort["cohort_id"], leg)),
        )
        start = key[3] + _HORIZON_MIN + 1
        services = self.memory.get(key) + (yield from self._list_services(key[1], key[2], start, module))
        self.memory.keep(key, services)
        return services

    def _list_services(self, origin: str, destination: str, start: int, module: str) -> Steps[list[Row]]:
        times = {"from_min": start, "to_min": start + _HORIZON_MIN}
        return (yield from ask_all("list_services", module=module, origin=origin, destination=destination, **times))

    def _first_presence(self, cohort: Row, leg: int, module: str) -> Steps[int]:
        if leg:
            there = yield from self._first_presence(cohort, leg - 1, module)
            before = yield from self._services(cohort, leg - 1, module)
            return min(s["arrival_min"] for s in before if s["departure_min"] >= there)
        bookings = [self.memory.get(("booking", b)) for b in cohort["booking_ids"]]
        release = self.memory.get(("consignment", cohort["consignment_id"]))["release"]
        return min([release["ready_min"], *(b["ready_min"] for b in bookings if b["board_leg"] == 0)])

    def _class(self, item: Row) -> str:
        base, threshold, above = self.memory.get("classes")[item["commodity"]]
        return above if threshold is not None and item["quantity"] >= threshold else base

    def _riding(self, cohort: Row) -> list[Row]:
        """Every piece that the cohort's consignment may carry, with its class and its legs."""
        consignment = self.memory.get(("consignment", cohort["consignment_id"]))
        own = {"handling_class": consignment["handling_class"], "board_leg": 0, "leave_leg": self.legs}
        pieces = [{**own, "id": u["unit_id"], "kg": u["kg"]} for u in consignment["goods"]]
        for unit in (*consignment["given"], *consignment["received"]):
            legs = {"board_leg": unit["board_leg"], "leave_leg": unit["leave_leg"]}
            pieces.append({"id": unit["unit_id"], "kg": unit["kg"], "handling_class": unit["handling_class"], **legs})
        for booking_id in cohort["booking_ids"]:
            booking = self.memory.get(("booking", booking_id))
            legs = {"board_leg": booking["board_leg"], "leave_leg": booking["alight_leg"]}
            for item in booking["items"]:
                tag = self.held.get(("tag", item["item_id"]))
                class_ = tag["handling_class"] if tag else self._class(item)
                if class_ != "general":
                    pieces.append({"id": item["item_id"], "kg": item["kg"], "handling_class": class_, **legs})
        return pieces

    def _classes_planned(self, cohort: Row, leg: int) -> set[str]:
        aboard = (p for p in self._riding(cohort) if p["board_leg"] <= leg < p["leave_leg"])
        return {p["handling_class"] for p in aboard} - {"general"}

    # -- check-in --------------------------------------------------------------------------------------------------

    def _check_in(self, booking: Row) -> Steps[None]:
        booking_id = booking["booking_id"]
        module = f"checkin:{booking_id}"
        if ("itinerary", booking_id) not in self.held:
            yield from self._confirm(booking, module)
        for item in booking["items"]:
            if ("tag", item["item_id"]) in self.held:
                continue
            class_ = self._class(item)
            arguments: Row = {"item_id": item["item_id"], "handling_class": class_, "carriage": "custody"}
            if class_ == "general":
                arguments |= {"carriage": "hold", "itinerary": self.held[("itinerary", booking_id)]["ref"]}
            self.memory.keep(("item", item["item_id"]), {**item, "booking_id": booking_id})
            self.memory.keep(("itinerary", booking_id), self.held[("itinerary", booking_id)]["ref"])
            answer = yield from ask("check_in_baggage", module=module, goal=None, **arguments)
            self._hold(("tag", item["item_id"]), answer["tag"], {**answer, "booking_id": booking_id})

    def _confirm(self, booking: Row, module: str) -> Steps[None]:
        booking_id = booking["booking_id"]
        chosen, minima = yield from self._plan(booking, module)
        arguments = {
            "ready_min": booking["ready_min"],
            "due_min": booking["due_min"],
            "allowance_min": self.memory.get(("allowance", booking_id)),
            "legs": [
                {name: s[name] for name in ("service_id", "carrier_id", "departure_min", "arrival_min")}
                | {"minimum_min": minimum}
                for s, minimum in zip(chosen, minima, strict=True)
            ],
        }
        yield from run_script("rebook-itinerary", "check_connections", arguments, module=module)
        answer = yield from ask(
            "confirm_itinerary",
            module=module,
            goal=f"itinerary:{booking_id}",
            booking_id=booking_id,
            service_ids=[s["service_id"] for s in chosen],
        )
        self._hold(("itinerary", booking_id), answer["itinerary"], answer)

    def _plan(self, booking: Row, module: str) -> Steps[tuple[list[Row], list[int]]]:
        """The house rule leg by leg; of an itinerary that broke the legs before the break are kept."""
        booking_id = booking["booking_id"]
        cohort = self.cohorts[self.place[booking_id]]
        allowance = self.memory.get(("allowance", booking_id))
        held_before = self.lost.get(("itinerary", booking_id), {"legs": []})["legs"]
        kept = {leg["leg"]: leg["service_id"] for leg in held_before}
        mine = set(kept.values())
        there, before = booking["ready_min"], None
        chosen, minima, options = [], [], []
        intact = bool(kept)
        for leg in range(booking["board_leg"], booking["alight_leg"]):
            services = yield from self._services(cohort, leg, module)
            hub = yield from self._minima(cohort["route"][leg], module)
            operating = {s["service_id"]: s for s in services if s["status"] == "open"}
            intact = intact and kept[leg] in operating
            found = operating[kept[leg]] if intact else self._reachable(services, hub, there, before, booking, mine)
            if found is None:
                services = yield from self._later_services(cohort, leg, module)
                found = self._reachable(services, hub, there, before, booking, mine)
            service = found or services[-1]  # where still none serves the operation says why not
            wait = connection_min(hub, before, service["carrier_id"], allowance)
            minima.append(wait - (allowance if before is not None else 0))
            options.append({"services": services, "there": there, "before": before, "minima": hub})
            chosen.append(service)
            there, before = service["arrival_min"], service["carrier_id"]
        self.memory.keep(("options", booking_id), options)
        return chosen, minima

    def _reachable(
        self, services: list[Row], hub: dict[str, int], there: int, before: str | None, booking: Row, mine: set[str]
    ) -> Row | None:
        """Rules 1 and 9: the first service that the party can reach and that has room for it, or holds it already."""
        allowance = self.memory.get(("allowance", booking["booking_id"]))
        hold_kg = sum(i["kg"] for i in booking["items"] if self._class(i) == "general")
        for service in _ranked(services):
            wait = connection_min(hub, before, service["carrier_id"], allowance)
            roomy = service["free_seats"] >= booking["party"] and service["free_kg"] >= hold_kg
            if (
                service["status"] == "open"
                and service["departure_min"] >= there + wait
                and (roomy or service["service_id"] in mine)
            ):
                return service
        return None

    # -- movements -------------------------------------------------------------------------------------------------

    def _loads(self, cohort: Row, module: str) -> Steps[list[Row]]:
        pieces = [{n: p[n] for n in ("id", "kg", "board_leg", "leave_leg")} for p in self._riding(cohort)]
        script = run_script("hand-over-freight", "leg_loads", {"legs": self.legs, "pieces": pieces}, module=module)
        output = yield from self.memory.lookup(("loads", cohort["cohort_id"]), script)
        loads: list[Row] = output["loads"]
        return loads

    def _move(self, cohort: Row, leg: int) -> Steps[None]:
        """One movement: what is aboard and proven, when it may leave, under which permits."""
        consignment_id = cohort["consignment_id"]
        module = goal = f"movement:{consignment_id}/{leg}"
        loads = yield from self._loads(cohort, module)
        consignment = self.memory.get(("consignment", consignment_id))
        pieces = {p["id"]: p for p in self._riding(cohort)}
        sources, proven, presented, arrivals = self._sources(cohort, consignment, leg)
        aboard = [u for u in loads[leg]["ids"] if u in proven]
        load_kg = loads[leg]["load_kg"] - sum(pieces[u]["kg"] for u in loads[leg]["ids"] if u not in proven)
        heaviest: dict[str, int] = {}
        for unit_id in aboard:
            class_ = pieces[unit_id]["handling_class"]
            heaviest[class_] = max(heaviest.get(class_, 0), pieces[unit_id]["kg"])
        minima = yield from self._minima(cohort["route"][leg], module)
        released = consignment["release"]["ready_min"] if leg == 0 else None
        earliest = earliest_movement(custody_min(minima, heaviest), released, presented, arrivals)
        heaviest.pop("general", None)
        permits: list[Row] = []
        if heaviest:
            permits = yield from self._permits(cohort["route"][leg], cohort["route"][leg + 1], module)
        services = yield from self._services(cohort, leg, module)
        found = _carrying(services, earliest, load_kg, heaviest, permits)
        if found is None:
            services = yield from self._later_services(cohort, leg, module)
            found = _carrying(services, earliest, load_kg, heaviest, permits)
        # where still none serves the operation says why not
        service, cited = found or _carrying(services, earliest, load_kg, {}, []) or (services[-1], [])
        context = {"services": services, "permits": permits, "heaviest": heaviest, "earliest": earliest}
        context |= {"pieces": pieces, "own": {u["unit_id"] for u in consignment["goods"]}}
        context["given"] = {u["unit_id"] for u in consignment["given"]}
        self.memory.keep(("movement", consignment_id, leg), context)
        answer = yield from ask(
            "issue_manifest",
            module=module,
            goal=goal,
            consignment_id=consignment_id,
            leg=leg,
            service_id=service["service_id"],
            permit_ids=cited,
            sources=sources,
            unit_ids=aboard,
            load_kg=load_kg,
        )
        sequence = self.place[consignment_id]
        if (sequence, leg) in self.broken:
            self.broken.remove((sequence, leg))
        self._hold(("manifest", consignment_id, leg), answer["manifest"], answer)
        self.memory.keep(("manifest", consignment_id, leg), answer["manifest"])
        self._settle(sequence)

    def _sources(self, cohort: Row, consignment: Row, leg: int) -> tuple[list[str], set[str], list[int], list[int]]:
        """References to cite, the pieces that they prove, when passengers present theirs, when manifests arrive."""
        sources: list[str] = []
        proven: set[str] = set()
        presented: list[int] = []
        arrivals: list[int] = []
        if leg == 0:
            sources.append(consignment["release_ref"])
            proven.update(consignment["release"]["unit_ids"])
        handed = [(consignment["consignment_id"], leg - 1)] if leg else []
        # What was promised is counted on, whatever the giver's manifest shows.
        for unit in consignment["received"]:
            if unit["board_leg"] == leg:
                handed.append((unit["other"], unit["other_leg"]))
                proven.add(unit["unit_id"])
        for giver in handed:
            manifest = self.held[("manifest", *giver)]
            sources.append(manifest["ref"])
            arrivals.append(manifest["arrival_min"])
            if giver[0] == consignment["consignment_id"]:
                proven.update(manifest["unit_ids"])
        for booking_id in cohort["booking_ids"]:
            booking = self.memory.get(("booking", booking_id))
            for item in booking["items"] if booking["board_leg"] == leg else ():
                tag = self.held.get(("tag", item["item_id"]))
                if tag is not None and tag["carriage"] == "custody":
                    sources.append(tag["ref"])
                    proven.add(item["item_id"])
                    presented.append(tag["ready_min"])
        return sources, proven, presented, arrivals

    def _deliver_freight(self, cohort: Row) -> Steps[None]:
        """The notices first: the bookings accepted before may have set a withdrawal off."""
        consignment_id = cohort["consignment_id"]
        module = goal = f"freight:{consignment_id}"
        yield from self._read_notices()
        if not self._moved(consignment_id, self.legs - 1):
            return
        consignment = self.memory.get(("consignment", consignment_id))
        manifest = self.held[("manifest", consignment_id, self.legs - 1)]
        mine = {u["unit_id"] for u in (*consignment["goods"], *consignment["received"])}
        self.memory.keep(("aboard", manifest["ref"]), manifest["unit_ids"])
        answer = yield from ask(
            "deliver_consignment",
            module=module,
            goal=goal,
            consignment_id=consignment_id,
            manifest=manifest["ref"],
            unit_ids=[u for u in manifest["unit_ids"] if u in mine],
        )
        self._hold(("freight", consignment_id), answer["freight_delivery"], answer)
        self._settle(self.place[consignment_id])

    # -- transfers and closing -------------------------------------------------------------------------------------

    def _share(self, cohort: Row, pair: list[Row]) -> Steps[None]:
        """Both mates on one transfer: on the one where a mate may stay, else on the first that serves both."""
        hub_id = cohort["route"][pair[0]["alight_leg"]]
        module = f"share:{cohort['cohort_id']}/{pair[0]['alight_leg']}"
        query = ask_all("list_transfers", module=module, cohort_id=cohort["cohort_id"], hub_id=hub_id)
        transfers = yield from query
        minima = yield from self._minima(hub_id, module)
        reached = {b["booking_id"]: self._reaches(cohort, b, minima) for b in pair}
        due = min(b["due_min"] for b in pair)
        serving = [t for t in transfers if t["departure_min"] >= max(reached.values()) and t["arrival_min"] <= due]
        self.memory.keep(("transfers", cohort["cohort_id"], hub_id), transfers)
        seated = [self.held[("seat", b["booking_id"])] for b in pair if ("seat", b["booking_id"]) in self.held]
        serving = serving or transfers[-1:]  # none serves: let network evaluation say why not
        target = next((t for t in serving if t["transfer_id"] in {s["transfer_id"] for s in seated}), serving[0])
        transfer_id = target["transfer_id"]
        while missing := [b for b in pair if ("seat", b["booking_id"]) not in self.held]:
            booking_id = missing[0]["booking_id"]
            self.memory.keep(("reached", booking_id), (reached, cohort["cohort_id"], hub_id, due))
            answer = yield from ask(
                "join_transfer",
                module=module,
                goal=f"seat:{booking_id}",
                booking_id=booking_id,
                transfer_id=transfer_id,
                itinerary=self.held[("itinerary", booking_id)]["ref"],
            )
            transfer_id = answer["transfer_id"]
            self._hold(("seat", booking_id), answer["seat"], answer)

    def _reaches(self, cohort: Row, booking: Row, minima: dict[str, int]) -> int:
        """When a passenger and all of its bags are at the transfers."""
        booking_id = booking["booking_id"]
        itinerary = self.held[("itinerary", booking_id)]
        there: int = (
            itinerary["legs"][-1]["arrival_min"] + minima["transfer"] + self.memory.get(("allowance", booking_id))
        )
        for item in booking["items"]:
            tag = self.held[("tag", item["item_id"])]
            if tag["carriage"] == "custody":
                manifest = self.held[("manifest", cohort["consignment_id"], booking["alight_leg"] - 1)]
                there = max(there, manifest["arrival_min"] + custody_min(minima, (tag["handling_class"],)))
        return there

    def _close(self, cohort: Row, booking: Row) -> Steps[None]:
        booking_id = booking["booking_id"]
        module = f"close:{booking_id}"
        seat = self.held[("seat", booking_id)]["ref"]
        if ("delivery", booking_id) not in self.held:
            proofs = []
            for item in booking["items"]:
                tag = self.held[("tag", item["item_id"])]
                if tag["carriage"] == "custody":
                    tag = self.held[("manifest", cohort["consignment_id"], booking["alight_leg"] - 1)]
                proofs.append({"item_id": item["item_id"], "proof": tag["ref"]})
            answer = yield from ask(
                "deliver_baggage",
                module=module,
                goal=f"delivery:{booking_id}",
                booking_id=booking_id,
                seat=seat,
                proofs=proofs,
            )
            self._hold(("delivery", booking_id), answer["delivery"], answer)
        journey = yield from ask("get_journey", module=module, booking_id=booking_id)
        answer = yield from ask(
            "submit_itinerary",
            module=module,
            goal=f"booking:{booking_id}",
            booking_id=booking_id,
            itinerary=journey["itinerary"]["ref"],
            seat=journey["seat"]["ref"],
            delivery=journey["delivery"]["ref"],
        )
        self._hold(("evaluation", booking_id), answer["evaluation"], answer)
        self._settle(self.place[booking_id])

    # -- notices ---------------------------------------------------------------------------------------------------

    def _read_notices(self) -> Steps[None]:
        notices = yield from ask_all("list_notices", since=self.notices_read)
        if not notices:
            return
        if "replan" not in self.skills_read:
            self.skills_read.add("replan")
            yield from ask("read_skill_file", skill="replan-carrier-withdrawal")
        for notice in notices:
            self.notices_read = notice["sequence"]
            carrier_id = notice["subject_ids"][0]
            from_min = int(re.findall(r"minute (-?\d+)", notice["text"])[0])
            self._forget_departures(carrier_id, from_min)
        yield from self._find_stale()

    def _forget_departures(self, carrier_id: str, from_min: int) -> None:
        """Listings in which one of these departures stands are to be asked for again."""
        outdated = []
        for lane, starts in self.windows.items():
            for start in starts:
                listed = self.memory.get(("services", *lane, start), [])
                if any(s["carrier_id"] == carrier_id and s["departure_min"] >= from_min for s in listed):
                    outdated.append(("services", *lane, start))
        self.memory.forget(*outdated)

    def _find_stale(self) -> Steps[bool]:
        stale = yield from ask_all("list_artifacts", status="stale")
        self._void([artifact["ref"] for artifact in stale])
        return bool(stale)

    def _close_desk(self) -> Steps[None]:
        yield from self._read_notices()
        self.closed = not (yield from self._find_stale())


def _ranked(services: list[Row]) -> list[Row]:
    """Rule 9."""
    return sorted(services, key=lambda s: (s["arrival_min"], s["service_id"]))


def _carrying(
    services: list[Row], earliest: int, load_kg: int, heaviest: dict[str, int], permits: list[Row]
) -> tuple[Row, list[str]] | None:
    """Rules 5, 6 and 9: the first service that may leave then, has room and holds permits, and the permits to cite."""
    for service in _ranked(services):
        if service["status"] == "open" and service["departure_min"] >= earliest and service["free_kg"] >= load_kg:
            cited = [lowest_permit(permits, service, class_, kg) for class_, kg in sorted(heaviest.items())]
            if all(cited):
                return service, [c for c in cited if c]
    return None


def lowest_permit(permits: list[Row], service: Row, class_: str, kg: int) -> str | None:
    return min((p["permit_id"] for p in permits if permit_holds(p, service, class_, kg)), default=None)


def permit_holds(permit: Row, service: Row, class_: str, kg: int) -> bool:
    return bool(
        permit["carrier_id"] == service["carrier_id"]
        and permit["handling_class"] == class_
        and permit["valid_from_min"] <= service["departure_min"] < permit["valid_until_min"]
        and kg <= permit["max_piece_kg"]
    )
