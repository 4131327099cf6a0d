"""Queries of the ledger office. Each list has a declared total order."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any

from msgspec import Meta, to_builtins
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Items, tool
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.finance.records import (
    Component,
    CreditNote,
    IdentityMap,
    Invoice,
    Obligation,
    Reviewer,
    Source,
    Stage,
)
from skillhorizon.envs.finance.world import FinanceWorld

SourceId = Annotated[Id, Meta(description="A source's id.")]
StageId = Annotated[Id, Meta(description="A stage's id.")]
FormatId = Annotated[Id, Meta(description="A source's format.")]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=24)]


# -- queries ---------------------------------------------------------------------------------------------------------


@tool("query", page=10, order="ordinal")
def list_stages(world: FinanceWorld) -> Items:
    """List the stages: cutoff, latest closure and whether it is stale, publications in order, latest reviewer."""

    def render(stage: Stage) -> dict[str, Any]:
        closure = world.closure_of(stage.stage_id)
        review = world.newest_of("stage_review", stage.stage_id)
        return {
            **asdict(stage),
            "closure": closure and closure.ref,
            "closure_stale": closure is not None and closure.status != CURRENT,
            "publications": [p.ref for p in world.publications_of(stage.stage_id)],
            "reviewer": review and review.content.reviewer_id,
        }

    return Items(world.stages, render)


@tool("query", page=10, order="reviewer id")
def list_reviewers(world: FinanceWorld) -> Items:
    """List the reviewers and their limits of authority in minor units (null: no limit)."""
    rows: list[Reviewer] = sorted(world.tables["reviewers"].values(), key=lambda r: r.reviewer_id)
    return Items(rows)


@tool("query", page=10, order="seq")
def list_sources(world: FinanceWorld, stage_id: StageId) -> Items:
    """List the sources of a stage: their headers, and what has been made of them."""
    world.stage(stage_id)
    return Items(world.sources_of[stage_id], lambda source_id: _source(world, world.source(source_id)))


@tool("query")
def get_source(world: FinanceWorld, source_id: SourceId) -> dict[str, Any]:
    """Read a source: header, detail, aggregate, whether they are stale, historical views kept and required."""
    source = world.source(source_id)
    return {
        **_source(world, source),
        "historical_views": world.views_of.get(source_id, []),
        "history_required": world.history_required(source_id),
    }


def _source(world: FinanceWorld, source: Source) -> dict[str, Any]:
    header = {name: value for name, value in asdict(source).items() if value is not None}
    for name, made in (("detail", world.detail_of(source)), ("aggregate", world.aggregate_of(source.source_id))):
        if made is not None:
            header[name] = made.ref
            header[f"{name}_stale"] = made.status != CURRENT
    return header


@tool("query", page=8, order="row, or seq")
def list_records(world: FinanceWorld, source_id: SourceId) -> Items:
    """List the records of a source. Integration: `columns` names the fields, each item holds them in that order."""
    source = world.source(source_id)
    records = world.tables["records"][source_id]
    if source.format is None:
        return Items(records.lines or records.pack, extra={"revision": source.revision})
    columns = world.tables["formats"][source.format].columns
    return Items(
        records.rows,
        attrgetter(*columns),
        {"columns": columns, "revision": source.revision},
    )


@tool("query", page=10, order="effective_from")
def list_contracts(world: FinanceWorld, format: FormatId) -> Items:
    """List the contracts of a format: effective range, account column, scale exponent, sign."""
    world.get("formats", format)
    return Items(sorted(world.having("contracts", "format", format), key=lambda c: c.effective_from))


@tool("query", page=10, order="effective_from, then id")
def list_identity_maps(world: FinanceWorld, identity_source_id: Id) -> Items:
    """List the released maps of an identity source, without their entries."""
    maps = world.having("identity_maps", "identity_source", identity_source_id)
    if not maps:
        raise Rejected("unknown_id", f"no identity source {identity_source_id!r}", id=identity_source_id)
    return Items(sorted(filter(world.released, maps), key=lambda m: (m.effective_from, m.map_id)))


@tool("query", page=20, order="account", refusals=("not_released",))
def list_map_entries(
    world: FinanceWorld, map_id: Id, accounts: Annotated[list[Id], Meta(max_length=40)] | None = None
) -> Items:
    """List the entries of a released map, account to entity; all, or those of some accounts."""
    released_map(world, map_id)
    entries = world.tables["map_entries"][map_id].entries
    wanted = None if accounts is None else set(accounts)
    return Items([e for e in entries if wanted is None or e[0] in wanted], lambda e: {"account": e[0], "entity": e[1]})


@tool("query", page=8, order="id")
def list_invoices(world: FinanceWorld, invoice_ids: Ids) -> Items:
    """Read invoices: customer, amount, reissue, tolerance, the sources that pay them, what was applied so far."""
    rows: list[Invoice] = [world.get("invoices", i) for i in sorted(set(invoice_ids))]
    return Items(rows, lambda invoice: {**asdict(invoice), "applications": _entries(world, invoice.invoice_id)})


def _entries(world: FinanceWorld, name: str) -> list[dict[str, Any]]:
    """What the sources entered on an invoice or component, in their order."""
    entries = world.entries.get(name, {})
    return [{"source_id": s, "minor": entries[s]} for s in sorted(entries, key=world.place.__getitem__)]


@tool("query", page=8, order="id")
def list_credit_notes(world: FinanceWorld, invoice_ids: Ids) -> Items:
    """List the credit notes on invoices and on their reissues."""
    found: dict[str, CreditNote] = {}
    for invoice_id in invoice_ids:
        world.get("invoices", invoice_id)
        found |= {note.credit_id: note for note in world.notes_about(invoice_id)}
    return Items([found[i] for i in sorted(found)])


@tool("query", page=8, order="id")
def list_components(world: FinanceWorld, component_ids: Ids) -> Items:
    """Read components: class, entity, opening and carrying value, the sources that adjust them, entries so far."""
    rows: list[Component] = [world.get("components", i) for i in sorted(set(component_ids))]

    def render(component: Component) -> dict[str, Any]:
        entries = _entries(world, component.component_id)
        return {**to_builtins(component), "carrying_minor": world.carrying(component), "entries": entries}

    return Items(rows, render)


@tool("query", page=8, order="component, then issued, then seq")
def list_evidence(world: FinanceWorld, component_ids: Ids) -> Items:
    """List the evidence documents of components."""
    for component_id in component_ids:
        world.get("components", component_id)
    documents = [d for c in set(component_ids) for d in world.having("evidence", "component", c)]
    return Items(sorted(documents, key=lambda d: (d.component, d.issued, d.seq)))


@tool("query", page=10, order="id")
def list_obligations(world: FinanceWorld) -> Items:
    """List the obligations of the release: stage, basis (the first publication or the current one), status."""
    rows: list[Obligation] = sorted(world.tables["obligations"].values(), key=lambda o: o.obligation_id)

    def render(obligation: Obligation) -> dict[str, Any]:
        released = world.newest_of("obligation_release", obligation.obligation_id)
        return {**asdict(obligation), "status": "released" if released else "open"}

    return Items(rows, render)


# -- source packages -------------------------------------------------------------------------------------------------


def released_map(world: FinanceWorld, map_id: str) -> IdentityMap:
    identity: IdentityMap = world.get("identity_maps", map_id)
    if not world.released(identity):
        raise Rejected("not_released", f"{map_id} is released by the publication of a later stage", map_id=map_id)
    return identity
