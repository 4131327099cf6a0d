"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

from typing import Any

from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.social.policy import Answer
from skillhorizon.envs.social.records import GRACE, WINDOW
from skillhorizon.envs.social.rules import contribution, winner_of

_NO_REPORT: Answer = {"winner": {"role": "control", "audience_ids": [], "cta_id": None}}


def _wrong_drafts(given: Answer, memory: Memory) -> Mistakes:
    brief = memory.get(("brief", given["brief_id"]))
    lists = memory.get(("lists", given["brief_id"]))
    if brief is None or lists is None:
        return
    audiences, role = given["audience_ids"], given["role"]
    if role == "deployment":
        return
    batch = [a for a in audiences if a in lists["new"]]
    if batch and len(audiences) > 1:
        yield "batch_audience_omitted", {"audience_ids": [a for a in audiences if a != batch[-1]]}
    other = lists["challenger" if role == "control" else "control"]
    if set(other) != set(audiences):
        yield "list_of_the_other_arm", {"audience_ids": other}
    if inherited := [a for a in audiences if a not in lists["new"]]:
        for spare in lists["dropped"]:
            if spare not in lists["new"]:
                yield "ranked_otherwise", {"audience_ids": [spare if a == inherited[-1] else a for a in audiences]}
        for parent in brief["audience_parents"]:
            lost = memory.get(("lists", parent), {"control": [], "challenger": []})
            won = memory.get(("report", parent), _NO_REPORT)["winner"]
            for a in lost["challenger" if won["role"] == "control" else "control"]:
                if a not in audiences and a not in won["audience_ids"]:
                    yield "losers_audience", {"audience_ids": [*(x for x in audiences if x != inherited[-1]), a]}
    if role == "control":
        yield "call_of_the_other_arm", {"cta_id": brief["challenger_cta"]}
        for parent in brief["audience_parents"]:
            won = memory.get(("report", parent), _NO_REPORT)["winner"]
            yield "call_of_another_parent", {"cta_id": won["cta_id"] or given["cta_id"]}
        source = memory.get(("brief", brief["cta_parent"]))
        if source and source["opening_cta"]:
            for cta_id in (source["opening_cta"], source["challenger_cta"]):
                yield "losers_call", {"cta_id": cta_id}
    elif brief["opening_cta"]:
        yield "call_of_the_other_arm", {"cta_id": brief["opening_cta"]}


def _wrong_assets(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    brief = memory.get(("brief", post["brief_id"])) if post else None
    if post is None or brief is None:
        return
    pool = memory.get(("pool", brief["asset_tag"]), [])
    grants = {grant["grant_id"]: grant for asset in pool for grant in asset["grants"]}
    chosen = grants.get(given["grant_id"], {"until_tick": 0})
    for asset in pool:
        for grant in asset["grants"]:
            choice = {"asset_id": asset["asset_id"], "grant_id": grant["grant_id"]}
            if post["role"] not in grant["roles"] or brief["channel"] not in grant["channels"]:
                if grant["until_tick"] > 0 and asset["format"] == brief["format"]:
                    yield "grant_of_another_use", choice
            elif grant["until_tick"] < 0:
                yield "grant_that_is_over", choice
            elif asset["format"] != brief["format"]:
                yield "asset_of_another_format", choice
            elif post["role"] == "deployment" and grant["until_tick"] < chosen["until_tick"]:
                yield "asset_that_ends_early", choice


def _wrong_evidence(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    brief = memory.get(("brief", post["brief_id"])) if post else None
    if post is None or brief is None:
        return
    kept = given["evidence_post_ids"][0]
    rows = memory.get(("past posts", post["brief_id"]), [])
    campaign = next((r["campaign_id"] for r in rows if r["post_id"] == kept), None)
    for row in rows:
        fits = row["objective"] == brief["evidence"]["objective"]
        choice = {"evidence_post_ids": [kept, row["post_id"]]}
        if row["post_id"] in given["evidence_post_ids"]:
            continue
        if row["status"] != "live":
            yield "post_that_was_corrected", choice
        elif not fits:
            yield "evidence_of_another_objective", choice
        elif row["campaign_id"] == campaign:
            yield "evidence_of_one_campaign", choice


def _wrong_slots(given: Answer, memory: Memory) -> Mistakes:
    post = memory.get(("post", given["post_id"]))
    slots = memory.get(("slots", post["brief_id"])) if post else None
    if slots is None or post["role"] != "challenger":
        return
    tick = next((t for t, slot_id in slots.items() if slot_id == given["slot_id"]), None)
    cooldown = max(
        memory.get(("audience", a), {"cooldown_hours": WINDOW})["cooldown_hours"] for a in post["audience_ids"]
    )
    for later, slot_id in slots.items():
        if tick is not None and later >= tick + cooldown:
            yield "arms_in_different_ticks", {"slot_id": slot_id}
            return


def _wrong_advances(given: Answer, memory: Memory) -> Mistakes:
    if given["to_tick"] in memory.get("booked ticks", ()):
        yield "clock_past_a_due_post", {"to_tick": given["to_tick"] + GRACE + 1}


def _wrong_publications(given: Answer, memory: Memory) -> Mistakes:
    read = memory.get(("exposures", given["post_id"]))
    if read is None:
        return
    rows, half_lives, now = read

    def declare(listed: list[Answer], lives: dict[str, int]) -> dict[str, Any]:
        sources: list[str] = []
        loads = dict.fromkeys(lives, 0)
        for row in listed:
            if row["audience_id"] in lives and row["state"] == "past" and row["at"] <= now:
                left = contribution(row["points"], now - row["at"], lives[row["audience_id"]])
                loads[row["audience_id"]] += left
                sources += [row["publication_id"]] if left else []
        return {"historical_publication_ids": sorted(sources), "audience_loads": loads}

    known = [row for row in memory.get(("forecast", given["post_id"]), []) if row["state"] == "past"]
    yield "exposures_read_before", declare(known, half_lives)
    before = [row for row in rows if "post_id" not in row or row["at"] < now]
    if len(before) < len(rows):
        yield "evidence_before_the_other_arm", declare(before, half_lives)
    repeated = sorted(set(given["historical_publication_ids"]))
    if len(repeated) < len(given["historical_publication_ids"]):
        yield "repeats_removed", {"historical_publication_ids": repeated}
    if len(rows) > 20:
        yield "page_unread", declare(rows[:20], half_lives)
    swapped = {a: 72 - hours for a, hours in half_lives.items()}
    yield "half_life_of_another", {"audience_loads": declare(rows, swapped)["audience_loads"]}
    yield "loads_read_before", {"audience_loads": declare(known, half_lives)["audience_loads"]}


def _wrong_reports(given: Answer, memory: Memory) -> Mistakes:
    measured = memory.get(("measured", given["brief_id"]))
    if measured is None:
        return
    rows, delivered = measured
    excluded = set(memory.get(("excluded", given["brief_id"]), ()))

    def report(credited: dict[str, list[str]]) -> dict[str, Any]:
        counts = {role: len(members) for role, members in credited.items()}
        return {"credited": credited, "winner": winner_of(counts, delivered)}

    def attribute(barred: set[str], sign: int) -> dict[str, list[str]]:
        best: dict[str, tuple[int, int]] = {}
        for place, role in enumerate(("control", "challenger")):
            for row in rows[role]:
                if row["member_id"] not in barred:
                    claim = (sign * row["hour"], place)
                    best[row["member_id"]] = min(best.get(row["member_id"], claim), claim)
        return {
            role: sorted(m for m, (_, at) in best.items() if at == place)
            for place, role in enumerate(("control", "challenger"))
        }

    yield "last_touch", report(attribute(excluded, -1))
    if excluded:
        yield "members_of_parents_kept", report(attribute(set(), 1))
    yield "page_of_conversions_unread", report({**given["credited"], "control": given["credited"]["control"][:-1]})


def _wrong_acknowledgements(given: Answer, memory: Memory) -> Mistakes:
    if len(given["affected_post_ids"]) > 1:
        yield "affected_post_forgotten", {"affected_post_ids": given["affected_post_ids"][:-1]}


def _wrong_reactivations(given: Answer, memory: Memory) -> Mistakes:
    for row in memory.get(("seen", given["audience_id"]), [])[:-1]:
        yield "earlier_publication_as_basis", {"basis_publication_id": row["publication_id"]}


confusions = confusing(
    {
        "create_draft": _wrong_drafts,
        "attach_asset": _wrong_assets,
        "cite_evidence": _wrong_evidence,
        "schedule_post": _wrong_slots,
        "advance_clock": _wrong_advances,
        "publish_post": _wrong_publications,
        "submit_report": _wrong_reports,
        "acknowledge_notice": _wrong_acknowledgements,
        "reactivate_audience": _wrong_reactivations,
    }
)
