"""The reference: quote what is not quoted, close what is complete, look at the notices after every closure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from skillhorizon.core.policy import Call, Confusion, Job, Memory, Steps, ask, ask_all, run_script

SKILL = "quote-parcel"


class ToyPolicy:
    def __init__(self) -> None:
        self.memory = Memory()
        self.routes: dict[str, dict[str, Any]] = {}
        self.parcels: dict[str, list[dict[str, Any]]] = {}
        self.quotes: dict[str, str] = {}
        self.closures: dict[str, str] = {}
        self.notices = 0
        self.depot = ""
        self.done = False

    def opening(self) -> Steps[None]:
        brief = yield from ask("read_task_brief")
        self.depot = brief["depot"]
        yield from ask("read_skill_file", skill=SKILL)
        table = yield from ask("read_skill_file", skill=SKILL, path="references/zones.csv")
        for line in table["text"].splitlines()[1:]:
            zone, surcharge = line.split(",")
            self.memory.keep(("surcharge", zone), int(surcharge))
        for route in (yield from ask_all("list_routes")):
            self.routes[route["route_id"]] = route
            rows = yield from ask_all("list_parcels", route_id=route["route_id"])
            self.parcels[route["route_id"]] = [row["parcel"] for row in rows]

    def ready(self) -> Iterator[Job]:
        for route_id, route in self.routes.items():
            missing = [p for p in self.parcels[route_id] if p["parcel_id"] not in self.quotes]
            for parcel in missing:
                if parcel["companion"] is None or parcel["companion"] in self.quotes:
                    yield Job(f"quote:{parcel['parcel_id']}", partial(self._quote, parcel))
            if not missing and route_id not in self.closures and route["after"] in (None, *self.closures):
                yield Job(f"route:{route_id}", partial(self._close_route, route_id))
        if len(self.closures) == len(self.routes) and not self.done:
            yield Job(f"depot:{self.depot}", self._close_depot)

    def _quote(self, parcel: dict[str, Any]) -> Steps[None]:
        module, goal = f"quote:{parcel['parcel_id']}", f"parcel:{parcel['parcel_id']}"
        rates = yield from self.memory.lookup("rates", ask_all("list_rates", module=module))
        rate = next(r for r in rates if r["zone"] == parcel["zone"])
        windows = yield from ask_all("list_windows", module=module)
        window = max(windows, key=lambda w: w["free"])
        figures = {
            "grams": parcel["grams"],
            "cents_per_kg": rate["cents_per_kg"],
            "surcharge": self.memory.get(("surcharge", parcel["zone"])),
        }
        output = yield from run_script(SKILL, "price", figures, module=module, goal=goal)
        result = yield from ask(
            "quote_parcel",
            module=module,
            goal=goal,
            parcel_id=parcel["parcel_id"],
            rate_id=rate["rate_id"],
            cents=output["cents"],
            place={"window_id": window["window_id"]},
            companion=self.quotes.get(parcel["companion"]),
        )
        self.quotes[parcel["parcel_id"]] = result["quote"]
        self._drop(set(result["invalidated"]))

    def _close_route(self, route_id: str) -> Steps[None]:
        goal = f"route:{route_id}"
        inputs = [self.quotes[p["parcel_id"]] for p in self.parcels[route_id]]
        result = yield from ask("close_group", module=goal, goal=goal, group_id=route_id, inputs=inputs)
        self.closures[route_id] = result["closure"]
        for notice in (yield from ask_all("list_notices", since=self.notices)):
            self.notices = notice["sequence"]
            self.memory.forget("rates")
            stale = yield from ask_all("list_artifacts", status="stale")
            self._drop({row["ref"] for row in stale})

    def _close_depot(self) -> Steps[None]:
        goal = f"depot:{self.depot}"
        inputs = list(self.closures.values())
        yield from ask("close_group", module=goal, goal=goal, group_id=self.depot, inputs=inputs)
        self.done = True

    def _drop(self, stale: set[str]) -> None:
        for made in (self.quotes, self.closures):
            for subject in [s for s, ref in made.items() if ref in stale]:
                del made[subject]


def confusions(call: Call, memory: Memory) -> list[Confusion]:
    """Another amount than the script's."""
    if call.tool != "quote_parcel":
        return []
    wrong = {**call.arguments, "cents": call.arguments["cents"] + 1}
    return [Confusion("amount", replace(call, arguments=wrong))]
