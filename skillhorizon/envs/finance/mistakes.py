"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

from typing import Any

from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.finance.records import Contract, Row
from skillhorizon.envs.finance.rules import account_of, allocation, minor_of


def _wrong_normalizations(given: dict[str, Any], memory: Memory) -> Mistakes:
    source = memory.get(("source", given["source_id"]))
    rows = [Row(**row) for row in memory.get(("records", given["source_id"]), [])]
    contracts = [Contract(**c) for c in memory.get(("contracts", source["format"]), [])]
    entries = {e["account"]: e["entity"] for e in memory.get(("entries", given["identity_map_id"]), [])}
    contract = next((c for c in contracts if c.contract_id == given["contract_id"]), None)
    if contract is None or not rows or not entries:
        return

    def items(chosen: list[Row], terms: Contract) -> list[dict[str, Any]] | None:
        made = []
        for row in chosen:
            minor, entity = minor_of(row.amount, terms), entries.get(account_of(row, terms))
            if minor is None or entity is None:
                return None
            made.append({"order": row.order, "row": row.row, "entity": entity, "minor": minor})
        return made

    by_label = {row.row: row for row in rows}
    chosen = [by_label[item["row"]] for item in given["items"]]
    for other in contracts:
        if other.contract_id != contract.contract_id and (made := items(chosen, other)):
            yield "contract_of_another_period", {"contract_id": other.contract_id, "items": made}
    for other_map in memory.get(("maps", given["identity_source_id"]), []):
        yield "map_of_another_range", {"identity_map_id": other_map["map_id"]}
    for kind in ("metadata", "correction", "sale"):
        swapped = [
            next((r for r in rows if r.order == row.order and r.kind == kind and r != row), row) for row in chosen
        ]
        if made := items(swapped, contract):
            yield f"{kind}_row_taken", {"items": made}
    taken = {row.order for row in chosen}
    withdrawn = [r for r in rows if r.order not in taken and r.kind == "sale"]
    if withdrawn and (made := items([*chosen, withdrawn[0]], contract)):
        yield "withdrawn_order_taken", {"items": made}
    if len(given["items"]) > 1:
        yield "page_skipped", {"items": given["items"][:-1]}


def _with_item(items: list[dict[str, Any]], index: int, **changes: Any) -> dict[str, Any]:
    return {"items": [*items[:index], {**items[index], **changes}, *items[index + 1 :]]}


def _settled(invoice: dict[str, Any], paid: int, credits: list[dict[str, Any]], prior: int) -> dict[str, Any]:
    owed = max(0, invoice["amount_minor"] - sum(c["amount_minor"] for c in credits) - prior)
    applied, writeoff, unapplied = allocation(paid, owed, invoice["tolerance_minor"])
    names = sorted(c["credit_id"] for c in credits)
    return {"credits": names, "applied": applied, "writeoff": writeoff, "unapplied": unapplied}


def _wrong_allocations(given: dict[str, Any], memory: Memory) -> Mistakes:
    lines = {line["line"]: line for line in memory.get(("records", given["source_id"]), [])}
    items = given["items"]
    for index, item in enumerate(items):
        invoice = memory.get(("invoice", item["invoice"]))
        if invoice is None or item["line"] not in lines:
            continue
        line = lines[item["line"]]
        paid = line["paid_minor"]
        prior = sum(a["minor"] for a in invoice["applications"] if a["source_id"] != given["source_id"])
        notes = memory.get(("notes", item["invoice"]), [])
        counted = [n for n in notes if n["credit_id"] in item["credits"]]
        if (reissue := line["reference"]) != item["invoice"]:
            own = [n for n in counted if n["invoice"] == reissue]
            yield "reissue_cited", _with_item(items, index, invoice=reissue, **_settled(invoice, paid, own, 0))
        for note in notes:
            if note in counted:
                yield (
                    "credit_forgotten",
                    _with_item(items, index, **_settled(invoice, paid, [n for n in counted if n != note], prior)),
                )
            else:
                yield (
                    "ineligible_note_counted",
                    _with_item(items, index, **_settled(invoice, paid, [*counted, note], prior)),
                )
        if prior:
            yield "earlier_application_forgotten", _with_item(items, index, **_settled(invoice, paid, counted, 0))
    if len(items) > 1:
        yield "page_skipped", {"items": items[:-1]}


def _wrong_adjustments(given: dict[str, Any], memory: Memory) -> Mistakes:
    items = given["items"]
    for index, item in enumerate(items):
        component = memory.get(("component", item["component"]))
        documents = {d["document_id"]: d for d in memory.get(("documents", item["component"]), [])}
        if component is None:
            continue

        right = documents.get(item["document"])
        carrying = right["amount_minor"] - item["minor"] if right else component["carrying_minor"]
        for document_id, other in documents.items():
            if document_id != item["document"]:
                yield (
                    "undecisive_document",
                    _with_item(items, index, document=document_id, minor=other["amount_minor"] - carrying),
                )
        if right and carrying != component["opening_minor"]:
            yield (
                "opening_for_carrying",
                _with_item(items, index, minor=right["amount_minor"] - component["opening_minor"]),
            )
        if right:
            yield "document_overlooked", _with_item(items, index, document=None, minor=0)


def _wrong_closings(given: dict[str, Any], memory: Memory) -> Mistakes:
    if given["deferred"]:
        late = given["deferred"][0]
        totals = memory.get(("totals", late), {})
        closing = dict(given["closing"])
        for entity, minor in totals.items():
            closing[entity] = closing.get(entity, 0) + minor
        yield (
            "late_source_recognised",
            {"current": [*given["current"], late], "deferred": given["deferred"][1:], "closing": closing},
        )
    if given["history"]:
        yield "view_left_out", {"history": given["history"][:-1]}


def _wrong_release_reviews(given: dict[str, Any], memory: Memory) -> Mistakes:
    if given["restated"]:
        yield "restated_stage_forgotten", {"restated": given["restated"][:-1]}
    first = [p[0] for p in memory.get("publications", {}).values()]
    if first:
        yield "first_publications_listed", {"publications": first}


def _wrong_obligations(given: dict[str, Any], memory: Memory) -> Mistakes:
    for published in memory.get("publications", {}).values():
        if given["publication"] in published and len(published) > 1:
            other = published[-1] if given["publication"] == published[0] else published[0]
            yield "other_publication", {"publication": other}


confusions = confusing(
    {
        "submit_normalization": _wrong_normalizations,
        "submit_allocation": _wrong_allocations,
        "submit_adjustment": _wrong_adjustments,
        "close_stage": _wrong_closings,
        "review_release": _wrong_release_reviews,
        "release_obligation": _wrong_obligations,
    }
)
