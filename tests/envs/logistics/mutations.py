"""Wrong executions of LogisticsOps, each failing exactly its predicate; and the mistakes that may cost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from skillhorizon.core.policy import Call, Job, Memory
from skillhorizon.core.task import TaskConfig
from skillhorizon.envs.logistics.goals import ALLOWANCE_SHARE
from skillhorizon.envs.logistics.policy import LogisticsPolicy
from tests.envs.bench import Bench, Change, Mutation, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def _last_booking(bench: Bench) -> str:
    booking_id: str = bench.world.cohorts[-1].booking_ids[-1]
    return booking_id


class _WithoutJob(LogisticsPolicy):
    """Leaves one job out, and everything that waits for it."""

    def __init__(self, left_out: str) -> None:
        super().__init__()
        self.left_out = left_out

    def ready(self) -> Iterator[Job]:
        return (job for job in super().ready() if not job.key.startswith(self.left_out))


class _Unsubmitted(LogisticsPolicy):
    """Does not submit one booking, and believes that it did."""

    def __init__(self, booking_id: str) -> None:
        super().__init__()
        self.booking_id = booking_id

    def _close(self, cohort: dict[str, Any], booking: dict[str, Any]) -> Any:
        steps = super()._close(cohort, booking)
        call = next(steps)
        while True:
            mine = call.tool == "submit_itinerary" and call.arguments["booking_id"] == self.booking_id
            answer = {"ok": True, "result": {"evaluation": "none", "invalidated": []}} if mine else (yield call)
            try:
                call = steps.send(answer)
            except StopIteration:
                return


def omit_a_submission(bench: Bench) -> None:
    bench.reference(policy=_Unsubmitted(_last_booking(bench)))


def confirm_again_last(bench: Bench) -> None:
    """The same services, so the seat stays valid; but the evaluation saw the version before."""
    bench.reference()
    booking_id = _last_booking(bench)
    itinerary = bench.world.newest_of("itinerary", booking_id).content
    bench.do("confirm_itinerary", booking_id=booking_id, service_ids=[leg.service_id for leg in itinerary.legs])


def join_again_last(bench: Bench) -> None:
    bench.reference()
    booking_id = _last_booking(bench)
    seat = bench.world.newest_of("seat", booking_id).content
    itinerary = bench.world.newest_of("itinerary", booking_id).ref
    bench.do("join_transfer", booking_id=booking_id, transfer_id=seat.transfer_id, itinerary=itinerary)


def deliver_again_last(bench: Bench) -> None:
    bench.reference()
    booking_id = _last_booking(bench)
    delivery = bench.world.newest_of("delivery", booking_id).content
    proofs = [{"item_id": p.item_id, "proof": bench.world.replacement(p.proof).ref} for p in delivery.proofs]
    bench.do(
        "deliver_baggage", booking_id=booking_id, seat=bench.world.newest_of("seat", booking_id).ref, proofs=proofs
    )


def _confuse(bench: Bench, kinds: tuple[str, ...], stands: Callable[[Bench, Call], bool]) -> None:
    """The first confusion of these kinds that no operation refuses and whose product stands at the end."""
    candidates: list[tuple[int, Call]] = []
    scout = Bench(bench.task)

    def look(call: Call, memory: Memory) -> Call:
        found = bench.task.environment.confusions(call, memory)
        candidates.extend((len(scout.gateway.events), c.call) for c in found if c.kind in kinds)
        return call

    scout.reference(look)

    def instead(step: int, wrong: Call, on: Bench) -> Change:
        return lambda call, memory: wrong if len(on.gateway.events) == step else call

    for step, wrong in candidates:
        trial = Bench(bench.task)
        trial.reference(instead(step, wrong, trial))
        if trial.refused is None and stands(trial, wrong):
            bench.reference(instead(step, wrong, bench))
            return
    bench.reference()


def declare_a_classed_item_general(bench: Bench) -> None:
    """A hazardous, live or other classed item goes into a hold that has the room."""

    def stands(trial: Bench, wrong: Call) -> bool:
        carriage: str = trial.world.newest_of("tag", wrong.arguments["item_id"]).content.carriage
        return carriage == "hold"

    _confuse(bench, ("threshold_overlooked", "classed_item_sent_to_the_hold"), stands)


def use_the_lapsed_carrier(bench: Bench) -> None:
    """A movement under permits of which one does not hold at the departure."""

    def stands(trial: Bench, wrong: Call) -> bool:
        given = wrong.arguments
        manifest = trial.world.newest_of("manifest", given["consignment_id"], given["leg"]).content
        return (manifest.service_id, list(manifest.permit_ids)) == (given["service_id"], given["permit_ids"])

    _confuse(bench, ("permit_not_in_force",), stands)


def _issued_once(bench: Bench, call: Call) -> bool:
    given = call.arguments
    version: int = bench.world.newest_of("manifest", given["consignment_id"], given["leg"]).version
    return version == 1


def understate_a_load(bench: Bench) -> None:
    done = Bench(bench.task)
    done.reference()

    def less(call: Call, memory: Memory) -> Call | None:
        return _with(call, load_kg=call.arguments["load_kg"] - 1) if _issued_once(done, call) else None

    bench.reference(once("issue_manifest", less))


def leave_a_relay_unit_off_both(bench: Bench) -> None:
    """Neither the giver nor the receiver ever lists it."""
    unit = next(c for c in bench.world.tables["consignments"].values() if c.received).received[0]

    def without(call: Call, memory: Memory) -> Call:
        given = call.arguments
        if call.tool == "issue_manifest" and unit.unit_id in given["unit_ids"]:
            rest = [u for u in given["unit_ids"] if u != unit.unit_id]
            return _with(call, unit_ids=rest, load_kg=given["load_kg"] - unit.kg)
        return call

    bench.reference(without)


def omit_a_freight_delivery(bench: Bench) -> None:
    bench.reference(policy=_WithoutJob(f"freight:{bench.world.cohorts[-1].consignment_id}"))


def disturb_valid_work(bench: Bench) -> None:
    """After the notice one booking more than allowed is confirmed, tagged, delivered and submitted again."""
    bench.reference()
    world = bench.world
    bookings = [b for cohort in world.cohorts for b in cohort.booking_ids]
    for booking_id in bookings[: -(-len(bookings) // ALLOWANCE_SHARE) + 1]:
        booking = world.booking(booking_id)
        legs = world.newest_of("itinerary", booking_id).content.legs
        itinerary = bench.do("confirm_itinerary", booking_id=booking_id, service_ids=[leg.service_id for leg in legs])[
            "itinerary"
        ]
        proofs = []
        for item_id in booking.item_ids:
            tag = world.newest_of("tag", item_id)
            proof = world.newest.get(world.last_manifest_id(booking))
            if tag.content.carriage == "hold":
                given = {"handling_class": "general", "carriage": "hold", "itinerary": itinerary}
                bench.do("check_in_baggage", item_id=item_id, **given)
                proof = world.newest_of("tag", item_id)
            proofs.append({"item_id": item_id, "proof": proof.ref})
        seat = world.newest_of("seat", booking_id).ref
        delivery = bench.do("deliver_baggage", booking_id=booking_id, seat=seat, proofs=proofs)["delivery"]
        bench.do("submit_itinerary", booking_id=booking_id, itinerary=itinerary, seat=seat, delivery=delivery)


def _disrupted(config: TaskConfig) -> bool:
    return config.family != "restricted-handling"


def _not_weight(config: TaskConfig) -> bool:
    """Where no kg are to spare a hold has no room for what should ride in custody."""
    return config.variant != "weight"


MUTATIONS = [
    Mutation("submission omitted", frozenset({"evaluated"}), omit_a_submission),
    Mutation("itinerary confirmed again last", frozenset({"itinerary_current"}), confirm_again_last),
    Mutation("transfer joined again last", frozenset({"seat_current"}), join_again_last),
    Mutation("baggage delivered again last", frozenset({"delivery_current"}), deliver_again_last),
    Mutation(
        "classed item declared general",
        frozenset({"baggage_truly_declared"}),
        declare_a_classed_item_general,
        _not_weight,
    ),
    Mutation("lapsed carrier used", frozenset({"permits_in_force"}), use_the_lapsed_carrier),
    Mutation("load understated", frozenset({"weights_respected"}), understate_a_load),
    Mutation("relay unit left off both", frozenset({"custody_unbroken"}), leave_a_relay_unit_off_both),
    Mutation("freight not delivered", frozenset({"freight_delivered"}), omit_a_freight_delivery),
    Mutation("valid work disturbed", frozenset({"valid_work_kept"}), disturb_valid_work, _disrupted),
]

SURVIVORS: dict[str, str] = {}
"""Kind of mistake -> why it may cost nothing."""
