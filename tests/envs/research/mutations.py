"""Wrong executions of ResearchOps, each failing exactly its predicate; and which mistakes cost nothing, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from skillhorizon.core.policy import Call, Memory, Steps
from skillhorizon.core.world import SUPERSEDED
from skillhorizon.envs.research.mistakes import confusions
from skillhorizon.envs.research.policy import ResearchPolicy
from tests.envs.bench import Bench, Mutation, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def _once(tool: str, kind: str) -> Callable[[Bench], None]:
    """The first call of a tool at which a kind of confusion is possible, and whose product stands at the end."""

    def alternative(call: Call, memory: Memory) -> Call | None:
        return next((c.call for c in confusions(call, memory) if c.kind == kind), None)

    def act(bench: Bench) -> None:
        possible: list[int] = []
        right = Bench(bench.task)

        def look(call: Call, memory: Memory) -> Call:
            if call.tool == tool and alternative(call, memory):
                possible.append(len(right.gateway.events))
            return call

        right.reference(look)
        artifacts, events = right.world.artifacts, right.gateway.events
        chosen = next(i for i in possible if all(artifacts[ref].status != SUPERSEDED for ref in events[i].produced))

        def confuse(call: Call, memory: Memory) -> Call:
            return (alternative(call, memory) if len(bench.gateway.events) == chosen else None) or call

        bench.reference(confuse)

    return act


def declare_an_extra_report_new(bench: Bench) -> None:
    """The two reports of a study are declared two studies, and the subordinate one is excluded."""
    world = bench.world
    parted: list[str] = []

    def change(call: Call, memory: Memory) -> Call:
        given = call.arguments
        work_id = given.get("work_id", "")
        if call.tool == "resolve_identity" and not parted and given["study_id"] != "new":
            group = world.group_of[work_id]
            primary = world.true_primary(group, len(world.rounds))
            if all(world.listed_in[primary] <= world.listed_in[w] for w in world.group[group]):
                parted.extend(w for w in world.group[group] if w != primary)
                return _with(call, study_id="new", primary=work_id)
        if call.tool == "screen_work" and work_id in parted and given["decision"] == "include":
            return _with(call, decision="exclude", rule="no_calibration")
        return call

    bench.reference(change)
    assert parted


def leave_out_a_registry_key(bench: Bench) -> None:
    """A work of the last round is declared without the registration that it names; no later work looks for it."""
    world = bench.world

    def change(call: Call, memory: Memory) -> Call | None:
        given = call.arguments
        late = world.listed_in[given["work_id"]] == len(world.rounds)
        return _with(call, registry_key=None) if late and given["registry_key"] and given["study_id"] == "new" else None

    bench.reference(once("resolve_identity", change))


def cite_a_later_rule(bench: Bench) -> None:
    def change(call: Call, memory: Memory) -> Call | None:
        if call.arguments["decision"] != "exclude":
            return None
        applying = memory.get(("rules", call.arguments["work_id"]), [])
        return _with(call, rule=applying[1] if len(applying) > 1 else "design")

    bench.reference(once("screen_work", change))


class _Unreleased(ResearchPolicy):
    def _commit(self) -> Steps[None]:
        steps = super()._commit()
        call = next(steps)
        while True:
            if call.tool == "release_review":
                self.released = True
                return
            try:
                call = steps.send((yield call))
            except StopIteration:
                return


def omit_the_release(bench: Bench) -> None:
    bench.reference(policy=_Unreleased())


def exchange_two_counts(bench: Bench) -> None:
    """What was excluded under one rule is counted under another one."""

    def change(call: Call, memory: Memory) -> Call:
        flow = call.arguments["flow"]
        counts = dict(flow["excluded"])
        rule = min(counts)
        other = next((r for r in counts if counts[r] != counts[rule]), "design" if rule != "design" else "sample")
        counts[rule], counts[other] = counts.get(other, 0), counts[rule]
        return _with(call, flow={**flow, "excluded": counts})

    bench.reference(once("release_review", change))


MUTATIONS = [
    Mutation(
        "extra report declared new",
        frozenset({"identities_true"}),
        declare_an_extra_report_new,
        # there an event strikes the very study of the one extra report
        lambda config: config.family != "ambiguity-withdrawal",
    ),
    Mutation("registry key left out", frozenset({"identities_true"}), leave_out_a_registry_key),
    Mutation("later rule cited", frozenset({"eligibility_true"}), cite_a_later_rule),
    Mutation("per-protocol row", frozenset({"extraction_true"}), _once("annotate_study", "per_protocol_row")),
    Mutation(
        "composition reversed", frozenset({"calibrations_true"}), _once("establish_calibration", "composition_reversed")
    ),
    Mutation("intercept added", frozenset({"interpretations_true"}), _once("interpret_study", "intercept_added")),
    Mutation("high judged some", frozenset({"appraisals_true"}), _once("appraise_work", "risk_understated")),
    Mutation("unweighted mean", frozenset({"syntheses_true"}), _once("submit_synthesis", "unweighted_mean")),
    Mutation("not released", frozenset({"review_released"}), omit_the_release),
    Mutation("count off by one", frozenset({"notice_log_true"}), _once("settle_notice", "unused_row_counted")),
    Mutation("co-author appraises", frozenset({"independent_appraisal"}), _once("appraise_work", "coauthor_appraises")),
    Mutation("two counts exchanged", frozenset({"flow_true"}), exchange_two_counts),
]

SURVIVORS: dict[str, str] = {
    "coauthor_appraises": "the report is retracted, withdrawn or superseded later, and its appraisal lapses",
}
"""Kind of mistake -> why it may cost nothing."""
