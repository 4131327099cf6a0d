"""Wrong executions of FactoryOps, each failing exactly its predicate; and the mistakes that cost nothing, explained."""

from __future__ import annotations

from typing import Any

import msgspec

from skillhorizon.core.policy import Call, Memory
from skillhorizon.core.task import Task, TaskConfig
from skillhorizon.envs.factory.policy import FactoryPolicy
from skillhorizon.envs.factory.rules import graded
from skillhorizon.envs.factory.seed import DAY, plant
from tests.envs.bench import Bench, Mutation, calibrated, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def _verdict(call: Call, unit: str, verdict: str) -> Call:
    return _with(call, verdicts={**call.arguments["verdicts"], unit: verdict})


def _first(call: Call, verdict: str) -> str | None:
    return next((unit for unit, given in call.arguments["verdicts"].items() if given == verdict), None)


def _order_of(bench: Bench, call: Call) -> Any:
    return bench.world.order(bench.world.artifacts[call.arguments["batch"]].subject)


class _Content(FactoryPolicy):
    """Takes one order for complete as soon as it has verdicts."""

    content_with: str | None = None

    def _note(self, order: dict[str, Any], to_start: int, short: int) -> None:
        if order["order_id"] == self.content_with:
            to_start = short = 0
        super()._note(order, to_start, short)


def scrap_a_good_terminal_unit(bench: Bench) -> None:
    policy = _Content()

    def scrap(call: Call, memory: Memory) -> Call | None:
        order, unit = _order_of(bench, call), _first(call, "B")
        if not order.terminal or unit is None or "rework" in call.arguments["verdicts"].values():
            return None
        policy.content_with = order.order_id
        return _verdict(call, unit, "scrap")

    bench.reference(once("finalize_units", scrap), policy)


def _tolerant(task: Task) -> str | None:
    """An order below the last level that loses a unit, and has its grade A units without the top-up for it."""
    tables = task.blueprint.tables
    for order in tables["orders"].values():
        dimensions = plant().dimensions[order.product_id]
        outcomes = tables["outcomes"][order.order_id].deviations
        grades = [graded(dimensions, deviations, plant().reworkable)[0] for deviations in outcomes]
        demand = sum(
            tables["orders"][consumer.order_id].quantity + 3
            for consumer in tables["orders"].values()
            for line in consumer.lines
            if line.supplier_order == order.order_id and line.fit == "A"
        )
        lost = [grade for grade in grades[: order.quantity] if grade == "scrap"]
        if not order.terminal and lost and grades[: order.quantity].count("A") >= demand:
            return str(order.order_id)
    return None


def _has_tolerant(config: TaskConfig) -> bool:
    return _tolerant(calibrated("factory", config.band, config.id)) is not None


def accept_a_scrap_unit(bench: Bench) -> None:
    """Recorded as B, it goes into lines that no gauge watches; the top-up for it is not made."""
    tolerant = _tolerant(bench.task)

    def accept(call: Call, memory: Memory) -> Call | None:
        unit = _first(call, "scrap")
        if _order_of(bench, call).order_id != tolerant or unit is None:
            return None
        return _verdict(call, unit, "B")

    bench.reference(once("finalize_units", accept))


def raise_a_terminal_grade(bench: Bench) -> None:
    def raised(call: Call, memory: Memory) -> Call | None:
        unit = _first(call, "B")
        return _verdict(call, unit, "A") if _order_of(bench, call).terminal and unit else None

    bench.reference(once("finalize_units", raised))


class _Forgetful(FactoryPolicy):
    """Leaves one terminal order in the yard."""

    def _note(self, order: dict[str, Any], to_start: int, short: int) -> None:
        super()._note(order, to_start, short)
        if len(self.to_ship) == 1 and not hasattr(self, "left"):
            self.left = self.to_ship.popitem()


def omit_a_dispatch(bench: Bench) -> None:
    bench.reference(policy=_Forgetful())


class _Unclosed(FactoryPolicy):
    def _close(self) -> Any:
        self.closed = True
        yield from ()


def omit_the_close(bench: Bench) -> None:
    bench.reference(policy=_Unclosed())


def leave_a_hedge_booking(bench: Bench) -> None:
    """Before the last run its allocation is booked a second time, some days later."""
    counted = Bench(bench.task)
    counted.reference()
    runs = sum(event.tool == "run_program" for event in counted.gateway.events)

    def hedge(call: Call, memory: Memory) -> Call:
        nonlocal runs
        runs -= call.tool == "run_program"
        if call.tool == "run_program" and runs == 0:
            booking = bench.world.artifacts[call.arguments["booking"]].content
            ticks = booking.end - booking.start
            later = range(booking.end, booking.end + 9 * DAY)
            start = next(t for t in later if not any(bench.world.busy(booking.cell_id, t, t + ticks)))
            fields = ("allocation", "program_id", "revision", "cell_id", "calibration")
            bench.do("book_cell", start=start, ticks=ticks, **{f: getattr(booking, f) for f in fields})
        return call

    bench.reference(hedge)


def rework_a_good_unit(bench: Bench) -> None:
    """The permit allows it; the unit comes back as the B that it was."""

    def hold(call: Call, memory: Memory) -> Call | None:
        order, unit = _order_of(bench, call), _first(call, "B")
        if unit is None or order.rework_permit <= list(call.arguments["verdicts"].values()).count("rework"):
            return None
        return _verdict(call, unit, "rework")

    bench.reference(once("finalize_units", hold))


def _reworks(config: TaskConfig) -> bool:
    return config.family == "selective-rework"


MUTATIONS = [
    Mutation("good terminal unit scrapped", frozenset({"quantity"}), scrap_a_good_terminal_unit),
    Mutation("scrap unit accepted", frozenset({"conforming"}), accept_a_scrap_unit, _has_tolerant),
    Mutation("terminal grade raised", frozenset({"graded"}), raise_a_terminal_grade),
    Mutation("dispatch omitted", frozenset({"terminal_dispatch"}), omit_a_dispatch),
    Mutation("close omitted", frozenset({"material_balance"}), omit_the_close),
    Mutation("hedge booking left open", frozenset({"equipment_released"}), leave_a_hedge_booking),
    Mutation("good unit reworked", frozenset({"rework_justified"}), rework_a_good_unit, _reworks),
]

SURVIVORS: dict[str, str] = {}
"""Kind of mistake -> why it may cost nothing."""
