"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls.

Numbers follow from the wrong choice, as they would for someone who made it. Some are refused at once, most are
accepted and only a later operation or the final score finds them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from skillhorizon.core.ids import derived
from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.records import Arm, Cluster, LinkRow

Row = dict[str, Any]
_SOFTER = {"high": "some", "some": "low"}


def _wrong_identities(given: Row, memory: Memory) -> Mistakes:
    work_id, study = given["work_id"], given["study_id"]
    others = [w for w in memory.get(("reports", study), ()) if w != work_id]
    if others and study != derived("std", work_id):  # the work that founded a study is new under the same id
        yield "duplicate_taken_as_new", {"study_id": "new", "primary": work_id}
        if given["primary"] == work_id:
            yield "former_report_kept", {"primary": others[0]}
    for row in memory.get(("found", work_id), ()):
        if study == "new":
            yield "near_miss_joined", {"study_id": row["study_id"], "primary": row["primary"]}
    work = memory.get(("work", work_id))
    if work is not None and work["registry_id"] is not None:
        yield "merger_overlooked", {"registry_key": work["registry_id"]}


def _wrong_screenings(given: Row, memory: Memory) -> Mistakes:
    work_id = given["work_id"]
    if given["decision"] == "exclude":
        for rule in memory.get(("rules", work_id), ()):
            if rule != given["rule"]:
                yield "later_rule", {"rule": rule}
        if given["rule"] == "retracted":
            yield "retraction_taken_as_withdrawal", {"rule": "withdrawn"}
            yield "retracted_study_kept", {"decision": "include", "rule": None}
        return
    reports = [w for w in memory.get(("reports", memory.get(("study", work_id))), ()) if w != work_id]
    if any(e["kind"] == "withdrawn" for w in reports for e in memory.get(("events", w), ())):
        yield "withdrawal_taken_as_retraction", {"decision": "exclude", "rule": "retracted"}


def _wrong_appraisals(given: Row, memory: Memory) -> Mistakes:
    if given["judgement"] in _SOFTER:
        yield "risk_understated", {"judgement": _SOFTER[given["judgement"]]}
    work = memory.get(("work", given["work_id"]))
    authors = {a["author_id"] for a in work["authors"]} if work else set()
    for reviewer, left in memory.get("panel", {}).items():
        together = {a["author_id"] for a in memory.get(("coauthors", reviewer), ())}
        if not left:
            yield "reviewer_without_quota", {"reviewer_id": reviewer}
        elif reviewer in authors:
            yield "author_appraises", {"reviewer_id": reviewer}
        elif together & authors:
            yield "coauthor_appraises", {"reviewer_id": reviewer}


def _work_of(ref: str) -> str:
    return ref.partition("@")[0]


def _wrong_link_annotations(given: Row, memory: Memory) -> Mistakes:
    rows = {r["row"]: r for r in memory.get(("outcomes", _work_of(given["work"])), ())}
    opposed = given["slope"].startswith("-")
    for number, row in rows.items():
        line = _link(row, opposed)
        if number != given["row"]:
            yield "smaller_sample", {"row": number, "populations": row["populations"], **line}
        else:
            yield "direction_ignored", _link(row, not opposed)


def _link(row: Row, opposed: bool) -> Row:
    read = msgspec.convert(row, LinkRow)
    slope, intercept = rules.link_of(read.from_, read.to, opposed)
    return {"slope": slope, "intercept": intercept}


def _wrong_annotations(given: Row, memory: Memory) -> Mistakes:
    work_id = _work_of(given["work"])
    work, rows = memory.get(("work", work_id)), memory.get(("outcomes", work_id), ())
    taken = next((r for r in rows if r["row"] == given["row"]), None)
    scale = memory.get(("scale", given["instrument_id"]))
    if work is None or taken is None or scale is None:
        return
    factors = {u["unit"]: u["factor"] for u in scale["units"]}
    for row in rows:
        if row is taken or row["instrument"] != taken["instrument"] or row["metric"] != given["metric"]:
            continue
        kind = "earlier_row" if row["analysis"] == taken["analysis"] else f"{row['analysis']}_row"
        values = _effect(row, factors[row["unit"]], work["cluster"])
        yield kind, {"row": row["row"], "unit": row["unit"], **values}
    yield "unit_factor_ignored", _effect(taken, "1", work["cluster"])
    yield "design_effect_ignored", _effect(taken, factors[taken["unit"]], None)
    yield "direction_turned", {"effect": rules.fixed(-rules.number(given["effect"]), rules.EFFECT)}
    if not given["work"].endswith("@1"):
        yield "superseded_version_cited", {"work": f"{work_id}@1"}


def _effect(row: Row, factor: str, cluster: Row | None) -> Row:
    treated = msgspec.convert(row["treated"], Arm)
    control = msgspec.convert(row["control"], Arm | None)
    within = msgspec.convert(cluster, Cluster | None)
    effect, variance = rules.effect_of(row["metric"], factor, treated, control, within)
    return {"effect": effect, "variance": variance}


def _map(routes: list[tuple[Row, Row | None]], reverse: bool = False) -> Row:
    maps: list[tuple[rules.Line, rules.Line | None]] = []
    for link, parent in routes:
        first = link["slope"], link["intercept"]
        second = (parent["slope"], parent["intercept"]) if parent else None
        maps.append((second, first) if reverse and second else (first, second))
    slope, intercept = rules.composed(maps)
    return {"slope": slope, "intercept": intercept}


def _wrong_calibrations(given: Row, memory: Memory) -> Mistakes:
    links = [memory.get(("made", r["link"])) for r in given["routes"]]
    parents = [memory.get(("made", r["parent"])) if r["parent"] else None for r in given["routes"]]
    if None in links:
        return
    routes = list(zip(links, parents, strict=True))
    if any(parents):
        yield "composition_reversed", _map(routes, reverse=True)
        yield "link_taken_for_the_map", _map([(link, None) for link in links])
    if len(routes) > 1:
        yield "route_dropped", {"routes": given["routes"][:1], **_scope(routes[:1]), **_map(routes[:1])}
    for n, (link, parent) in enumerate(routes):
        if parent is None:
            continue
        for other in memory.get(("calibrations", link["to_instrument_id"]), ()):
            if other["calibration_id"] == parent["calibration_id"]:
                continue
            changed = [*routes[:n], (link, other), *routes[n + 1 :]]
            named = [{"link": a["annotation"], "parent": p and p["calibration"]} for a, p in changed]
            if (scope := _scope(changed))["populations"]:
                yield "another_parent", {"routes": named, **scope, **_map(changed)}


def _scope(routes: list[tuple[Row, Row | None]]) -> Row:
    scopes = [set(made["populations"]) for route in routes for made in route if made]
    return {"populations": sorted(set.intersection(*scopes))}


def _wrong_interpretations(given: Row, memory: Memory) -> Mistakes:
    annotation, used = memory.get(("made", given["annotation"])), memory.get(("made", given["calibration"]))
    if annotation is None or used is None:
        return
    other_metric = "mean_level" if annotation["metric"] == "mean_difference" else "mean_difference"
    kind = "intercept_dropped" if annotation["metric"] == "mean_level" else "intercept_added"
    yield kind, _moved(annotation, used, other_metric)
    slope, variance = rules.number(used["slope"]), rules.number(annotation["variance"])
    yield "slope_not_squared", {"variance": rules.fixed(abs(slope) * variance, rules.VARIANCE)}
    for other in memory.get(("calibrations", annotation["instrument_id"]), ()):
        if other["calibration_id"] != used["calibration_id"] and annotation["population"] in other["populations"]:
            moved = _moved(annotation, other, annotation["metric"])
            yield "another_calibration", {"calibration": other["calibration"], **moved}


def _moved(annotation: Row, line: Row, metric: str) -> Row:
    used = line["slope"], line["intercept"]
    effect, variance = rules.calibrated(metric, annotation["effect"], annotation["variance"], used)
    return {"effect": effect, "variance": variance}


def _wrong_contributions(given: Row, memory: Memory) -> Mistakes:
    bindings = given["bindings"]
    if len(bindings) > 1:
        yield "ancestor_forgotten", {"bindings": bindings[:-1]}
    for n, ref in enumerate(bindings):
        before = memory.get(("annotation before", f"wrk-{_work_of(ref)[4:]}"))
        if before is not None:
            yield "superseded_version_bound", {"bindings": [*bindings[:n], before["annotation"], *bindings[n + 1 :]]}


def _wrong_syntheses(given: Row, memory: Memory) -> Mistakes:
    pooled, aside = given["pooled"], given["set_aside"]
    null = memory.get(("null", given["section_id"]))
    made = {ref: memory.get(("made", ref)) for ref in (*pooled, *aside)}
    if null is None or None in made.values():
        return

    def numbers(refs: list[str]) -> Row:
        items = [(made[ref]["effect"], made[ref]["variance"]) for ref in refs]
        return rules.pooled(null, items)._asdict()

    if aside:
        both = [*pooled, *aside]
        yield "high_risk_pooled", {"pooled": both, "set_aside": [], **numbers(both)}
    if len(pooled) > 1:
        mean = sum((rules.number(made[ref]["effect"]) for ref in pooled), Fraction(0)) / len(pooled)
        yield "unweighted_mean", {"effect": rules.fixed(mean, rules.EFFECT)}
        yield "older_contribution_forgotten", {"pooled": pooled[1:], **numbers(pooled[1:])}
        yield "heterogeneity_misread", {"verdict": "inconclusive" if given["verdict"] == "mixed" else "mixed"}


def _wrong_settlements(given: Row, memory: Memory) -> Mistakes:
    yield "unused_row_counted", {"revised": given["revised"] + 1}
    if given["withdrawn"]:
        yield (
            "withdrawn_counted_as_revised",
            {"revised": given["revised"] + given["withdrawn"], "withdrawn": 0},
        )


def _wrong_flows(given: Row, memory: Memory) -> Mistakes:
    flow = given["flow"]
    if flow["linked"]:
        yield (
            "linked_reports_counted_as_studies",
            {"flow": {**flow, "linked": 0, "included": flow["included"] + flow["linked"]}},
        )
    if flow["pooled"] != flow["included"]:
        yield "set_aside_counted_as_pooled", {"flow": {**flow, "pooled": flow["included"]}}


confusions = confusing(
    {
        "resolve_identity": _wrong_identities,
        "screen_work": _wrong_screenings,
        "appraise_work": _wrong_appraisals,
        "annotate_link": _wrong_link_annotations,
        "annotate_study": _wrong_annotations,
        "establish_calibration": _wrong_calibrations,
        "interpret_study": _wrong_interpretations,
        "contribute_study": _wrong_contributions,
        "submit_synthesis": _wrong_syntheses,
        "settle_notice": _wrong_settlements,
        "release_review": _wrong_flows,
    }
)
