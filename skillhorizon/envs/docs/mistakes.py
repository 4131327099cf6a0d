"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

import msgspec

from skillhorizon.core.errors import Rejected
from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.docs.policy import Row, script_input
from skillhorizon.envs.docs.records import Charter, Consumer, Entry, FieldTerm, Lot
from skillhorizon.envs.docs.rules import Given, Terms, reconcile


def _reconciled(given: Row) -> Row | None:
    """What the rules give for the script's input, or None where they cannot be satisfied."""
    terms, consumers = given["terms"], [Consumer(**c) for c in given["terms"]["consumers"]]
    fields = [(FieldTerm(f["name"], f["type"], f["limit"], f["required"]), f["block_id"]) for f in terms["fields"]]
    charter = Charter(terms["purpose"], terms["effective_day"], terms["horizon_day"], terms["demand"])
    consumers.sort(key=lambda c: c.page_id)
    own = Terms(
        terms["page_id"], charter, tuple(terms["carry"]), terms["service_id"], tuple(fields), {}, tuple(consumers)
    )
    parents = [
        Given(msgspec.convert(p["fields"], tuple[Entry, ...]), msgspec.convert(p["lots"], tuple[Lot, ...]))
        for p in given["parents"]
    ]
    try:
        content = reconcile(own, parents, msgspec.convert(given["grants"], tuple[Lot, ...]))
    except Rejected:
        return None
    found: Row = msgspec.json.decode(msgspec.json.encode(content))
    return found


def _earlier(ref: str) -> str | None:
    """The version before, where there was one."""
    identity, _, version = ref.partition("@")
    return f"{identity}@{int(version) - 1}" if version != "1" else None


def _wrong_contracts(given: Row, memory: Memory) -> Mistakes:
    page_id, cites, proposal = given["page_id"], given["cites"], given["proposal"]
    blocks, grants = memory.get(("blocks", page_id), []), memory.get(("grants", page_id), [])
    publications = []
    for ref in cites["parents"]:
        if before := _earlier(ref):
            yield (
                "remembered_parent_version",
                {"cites": {**cites, "parents": [before if r == ref else r for r in cites["parents"]]}},
            )
    for link in memory.get(("links", page_id), []):
        publication = memory.get(("publication", link["to_page"]))
        if publication is not None and publication["publication"] in cites["parents"]:
            publications.append(publication)
    if len(cites["parents"]) > 1:
        yield "parent_forgotten", {"cites": {**cites, "parents": cites["parents"][:-1]}}
    used = proposal["used"]
    if used:
        wrong = [{**used[0], "amount": used[0]["amount"] + 1}, *used[1:]]
        yield "lot_miscopied", {"proposal": {**proposal, "used": wrong}}
    if not blocks or not grants or len(publications) != len(cites["parents"]):
        return
    chosen = [b for b in blocks if b["block_id"] in cites["blocks"]]
    cited = [g for g in grants if g["grant_id"] in cites["grants"]]

    def changed(kind: str, blocks: list[Row], grants: list[Row]) -> Mistakes:
        content = _reconciled(script_input(page_id, blocks, grants, publications))
        if content is not None and content != proposal:
            named = [b["block_id"] for b in blocks], [g["grant_id"] for g in grants]
            yield kind, {"proposal": content, "cites": {**cites, "blocks": named[0], "grants": named[1]}}

    for block in blocks:
        twin = next((b for b in chosen if b["key"] == block["key"] and b is not block), None)
        if twin is not None and block["state"] == "approved":
            yield from changed("overtaken_block", [block if b is twin else b for b in chosen], cited)
    if len(cited) > 1:
        yield from changed("grant_left_out", chosen, cited[:-1])
    decoys = [g for g in grants if g["grant_id"] not in cites["grants"]]
    if decoys:
        yield from changed("decoy_grant", chosen, [*cited, decoys[0]])


def _wrong_reservations(given: Row, memory: Memory) -> Mistakes:
    yield "oversized", {"amount": given["amount"] * 5 // 4 + 1}
    yield "day_early", {"from_day": given["from_day"] - 1}
    blocks = memory.get(("blocks", given["page_id"]), [])
    horizon = next((b["body"]["horizon_day"] for b in blocks if b["kind"] == "charter"), 0)
    if horizon > given["until_day"]:
        yield "to_the_horizon", {"until_day": horizon}


def _wrong_revisions(given: Row, memory: Memory) -> Mistakes:
    if given["clauses"]:
        yield "clause_dropped", {"clauses": given["clauses"][:-1]}
    requested = {row["page_id"] for row in memory.get("brief", {"pages": []})["pages"]}
    for link in memory.get(("links", given["page_id"]), []):
        if link["to_page"] not in requested:
            yield "earlier_edition", {"page_id": link["to_page"]}


def _wrong_reviews(given: Row, memory: Memory) -> Mistakes:
    row = next((r for r in memory.get("brief", {"pages": []})["pages"] if r["page_id"] == given["page_id"]), None)
    inside = memory.get(("reviewers", row["project_id"]), {}).get(f"{given['role']} inside") if row else None
    if inside:
        yield "reviewer_of_the_team", {"reviewer_id": inside[0]}
    if before := _earlier(given["document_revision"]):
        yield "earlier_revision", {"document_revision": before}
    if before := _earlier(given["contract"]):
        yield "earlier_contract", {"contract": before}


def _wrong_decisions(given: Row, memory: Memory) -> Mistakes:
    yield "approval_left_out", {"signoffs": given["signoffs"][:1]}
    for n, ref in enumerate(given["signoffs"]):
        if before := _earlier(ref):
            yield "earlier_approval", {"signoffs": [*given["signoffs"][:n], before, *given["signoffs"][n + 1 :]]}


def _wrong_publications(given: Row, memory: Memory) -> Mistakes:
    if before := _earlier(given["decision"]):
        yield "earlier_decision", {"decision": before}


def _wrong_bindings(given: Row, memory: Memory) -> Mistakes:
    rows = memory.get("brief", {"pages": []})["pages"]
    own = next((row for row in rows if row["page_id"] == given["page_id"]), None)
    for row in rows:
        if own is not None and row is not own and row["project_id"] == own["project_id"]:
            yield "item_of_a_sister", {"item_id": row["item_id"]}
            break
    if before := _earlier(given["publication"]):
        yield "earlier_publication", {"publication": before}


def _wrong_statements(given: Row, memory: Memory) -> Mistakes:
    rows = memory.get("brief", {"pages": []})["pages"]
    named = set(given["page_ids"])
    lanes = {row["project_id"] for row in rows if row["page_id"] in named}
    for lane in sorted(lanes):
        tail = [row["page_id"] for row in rows if row["page_id"] in named and row["project_id"] == lane]
        if len(lanes) > 1:
            yield "importers_missed", {"page_ids": tail}
    others = [row["page_id"] for row in rows if row["page_id"] not in named]
    if others:
        yield "preserved_page_named", {"page_ids": sorted([*named, others[0]])}
        yield "everything_named", {"page_ids": sorted([*named, *others])}
    yield "page_left_out", {"page_ids": given["page_ids"][:-1]}
    for notice in memory.get("notices", []):
        if notice["kind"] == "proposal":
            yield "proposal_taken_for_bulletin", {"bulletin_id": notice["subject_ids"][0]}


confusions = confusing(
    {
        "submit_contract": _wrong_contracts,
        "reserve_capacity": _wrong_reservations,
        "revise_document": _wrong_revisions,
        "request_signoff": _wrong_reviews,
        "record_decision": _wrong_decisions,
        "publish_page": _wrong_publications,
        "bind_tracker_item": _wrong_bindings,
        "file_impact_statement": _wrong_statements,
    }
)
