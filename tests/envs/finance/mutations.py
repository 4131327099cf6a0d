"""Wrong executions of FinanceOps, each failing exactly its predicate; and the mistakes that cost nothing, explained."""

from __future__ import annotations

from typing import Any

import msgspec

from skillhorizon.core.policy import Call, Memory, Steps
from skillhorizon.envs.finance.build import DECOY_LANE, DECOY_STAGE, LATE_LANE
from skillhorizon.envs.finance.policy import FinancePolicy
from tests.envs.bench import Bench, Mutation, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def _source_at(bench: Bench, stage: int, lane: int) -> str:
    return bench.world.sources_of[bench.world.stages[stage - 1].stage_id][lane]


def equal_effect_decoy(bench: Bench) -> None:
    """The superseded map, the reissue or the memo where it gives the same amounts."""
    source_id = _source_at(bench, DECOY_STAGE, DECOY_LANE)
    world = bench.world

    def cite(call: Call, memory: Memory) -> Call | None:
        given = call.arguments
        if given["source_id"] != source_id:
            return None
        if call.tool == "submit_normalization":
            table = world.tables["identity_maps"]
            return _with(call, identity_map_id=table[given["identity_map_id"]].supersedes)
        items = given["items"]
        if call.tool == "submit_allocation":
            lines = {line["line"]: line for line in memory.get(("records", source_id))}
            last = next(i for i in items if lines[i["line"]]["reference"] != i["invoice"] and not i["credits"])
            other = {**last, "invoice": lines[last["line"]]["reference"]}
        else:
            documents = [d for i in items for d in memory.get(("documents", i["component"]))]
            memo, last = next(
                (d, i)
                for i in items
                for d in documents
                if d["class"] == "memo"
                and d["component"] == i["component"]
                and d["amount_minor"] == world.tables["evidence"][i["document"]].amount_minor
            )
            other = {**last, "document": memo["document_id"]}
        return _with(call, items=[other if item == last else item for item in items])

    tool = {"integration": "submit_normalization", "receivables": "submit_allocation"}
    kind = world.source(source_id).kind
    bench.reference(once(tool.get(kind, "submit_adjustment"), cite))


def leave_out_an_item(bench: Bench) -> None:
    """An item of the last stage is left out: nothing later uses it, and the amount is missing."""
    world = bench.world
    last = set(world.sources_of[world.stages[-1].stage_id])

    def shorten(call: Call, memory: Memory) -> Call | None:
        items = call.arguments["items"]
        if call.arguments["source_id"] not in last or len(items) < 2:
            return None
        for item in reversed(items):
            moved = item.get("minor", 0) or item.get("applied", 0)
            shared = [i for i in items if i is not item and i.get("invoice", 0) == item.get("invoice")]
            if moved and not shared:
                return _with(call, items=[i for i in items if i is not item])
        return None

    kind = world.source(next(iter(last))).kind
    tool = {"integration": "submit_normalization", "receivables": "submit_allocation"}
    bench.reference(once(tool.get(kind, "submit_adjustment"), shorten))


class _NoViews(FinancePolicy):
    def _preserve(self, source_id: str, aggregates: list[str]) -> Steps[None]:
        yield from ()


def redo_without_a_view(bench: Bench) -> None:
    bench.reference(policy=_NoViews())


def resubmit_without_closing(bench: Bench) -> None:
    """At the end an aggregate is submitted again and the old one preserved, but the stage is not closed over them."""
    bench.reference()
    source_id = _source_at(bench, 1, 5)
    aggregate = bench.world.aggregate_of(source_id)
    publication = bench.world.carried[source_id][aggregate.ref]
    detail = bench.world.detail_of(bench.world.source(source_id)).ref
    bench.do("submit_aggregate", source_id=source_id, detail=detail, totals=aggregate.content.totals)
    bench.do("preserve_view", source_id=source_id, aggregate=aggregate.ref, publication=publication)


def recognise_a_late_source(bench: Bench) -> None:
    """Lane 3 of the last stage, which books after the cutoff, stands among the current views."""
    world = bench.world
    stage = world.stages[-1]
    late = world.sources_of[stage.stage_id][LATE_LANE]

    def recognise(call: Call, memory: Memory) -> Call | None:
        if call.arguments["stage_id"] != stage.stage_id:
            return None
        aggregate = world.aggregate_of(late)
        closing = dict(call.arguments["closing"])
        for entity, minor in aggregate.content.totals.items():
            closing[entity] = closing.get(entity, 0) + minor
        deferred = [ref for ref in call.arguments["deferred"] if ref != aggregate.ref]
        return _with(call, current=[*call.arguments["current"], aggregate.ref], deferred=deferred, closing=closing)

    bench.reference(once("close_stage", recognise))


def forget_a_restated_stage(bench: Bench) -> None:
    bench.reference(once("review_release", lambda call, memory: _with(call, restated=call.arguments["restated"][1:])))


class _Unpublished(FinancePolicy):
    def _deliver(self) -> Steps[None]:
        steps = super()._deliver()
        call = next(steps)
        while True:
            # the answer that the step expects, without the step
            answer = {"ok": True, "result": {}} if call.tool == "publish_release" else (yield call)
            try:
                call = steps.send(answer)
            except StopIteration:
                return


def omit_the_release_publication(bench: Bench) -> None:
    bench.reference(policy=_Unpublished())


def release_on_the_other_publication(bench: Bench) -> None:
    """An obligation on a restated stage whose basis is the first publication, released on the latest."""

    def latest(call: Call, memory: Memory) -> Call | None:
        obligation = bench.world.tables["obligations"][call.arguments["obligation_id"]]
        published = bench.world.publications_of(obligation.stage)
        if obligation.basis != "as_first_published" or len(published) < 2:
            return None
        return _with(call, publication=published[-1].ref)

    bench.reference(once("release_obligation", latest))


MUTATIONS = [
    Mutation("equal-effect decoy", frozenset({"bindings"}), equal_effect_decoy),
    Mutation("item left out", frozenset({"amounts"}), leave_out_an_item),
    Mutation("no view preserved", frozenset({"history_kept"}), redo_without_a_view),
    Mutation("aggregate resubmitted last", frozenset({"incorporated"}), resubmit_without_closing),
    Mutation("late source recognised", frozenset({"stage_accounting"}), recognise_a_late_source),
    Mutation("restated stage forgotten", frozenset({"release_review"}), forget_a_restated_stage),
    Mutation("release not published", frozenset({"publication"}), omit_the_release_publication),
    Mutation("latest for first publication", frozenset({"obligations_released"}), release_on_the_other_publication),
]

SURVIVORS: dict[str, str] = {}
"""Kind of mistake -> why it may cost nothing."""
