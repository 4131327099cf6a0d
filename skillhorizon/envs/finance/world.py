"""The ledger office: records, the rules of the trade, and what makes work stale.

Amounts are integer minor units; months are ``YYYY-MM`` and compare as text; ranges are inclusive. Rule numbers are
those of the skills: each rule stands once, in ``rules`` or here, for the operations, for staleness and for scoring.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from skillhorizon.core.world import CURRENT, Artifact, Update, World
from skillhorizon.envs.finance.records import (
    Amendment,
    Component,
    Contract,
    CreditNote,
    Detail,
    Evidence,
    IdentityMap,
    Invoice,
    MapEntries,
    Row,
    Source,
    Stage,
    Totals,
)
from skillhorizon.envs.finance.rules import account_of, admitted_classes, allocation, head, minor_of, totals_of

DETAIL_KINDS = {"integration": "normalization", "receivables": "allocation", "maintenance": "adjustment"}
_NEVER_STALE = ("historical_view", "stage_publication", "release_publication", "obligation_release")


# -- arithmetic ------------------------------------------------------------------------------------------------------


class FinanceWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        "normalization": "nrm",
        "allocation": "alc",
        "adjustment": "adj",
        "aggregate": "agg",
        "historical_view": "hsv",
        "closure": "cls",
        "stage_review": "rvw",
        "stage_publication": "pub",
        "release_review": "rrv",
        "release_publication": "rpb",
        "obligation_release": "obr",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.suspense: str = self.brief.get("suspense_entity", "")
        self.release_id: str = self.brief.get("release_id", "")
        self.stages: list[Stage] = sorted(t["stages"].values(), key=lambda s: s.ordinal)
        self.place = {s.source_id: (t["stages"][s.stage].ordinal, s.seq) for s in t["sources"].values()}
        self.sources_of: dict[str, list[str]] = {s.stage_id: [] for s in self.stages}
        for source in sorted(t["sources"].values(), key=lambda s: s.seq):
            self.sources_of[source.stage].append(source.source_id)
        self._ids_by = {
            (table, field): _group(t[table], field)
            for table, field in (
                ("contracts", "format"),
                ("identity_maps", "identity_source"),
                ("identity_maps", "released_by"),
                ("invoices", "reissue_of"),
                ("credit_notes", "invoice"),
                ("evidence", "component"),
            )
        }
        self.entries: dict[str, dict[str, int]] = {}
        """invoice -> source -> applied and written off; component -> source -> minor; of each source's newest detail"""
        self.carried: dict[str, dict[str, str]] = {}
        """source -> aggregate -> first publication that carried it"""
        self.views_of: dict[str, list[str]] = {}
        self._orders: dict[str, dict[str, list[Row]]] = {}
        self._heads: dict[tuple[str, str], dict[str, Row | None]] = {}
        self._entities: dict[str, dict[str, str]] = {}
        self._notes: dict[str, list[CreditNote]] = {}
        self._credits: dict[tuple[str, str], list[CreditNote]] = {}
        self._decisive: dict[tuple[str, str], Evidence | None] = {}

    # -- looking up ------------------------------------------------------------------------------------------------

    def source(self, source_id: str) -> Source:
        source: Source = self.get("sources", source_id)
        return source

    def stage(self, stage_id: str) -> Stage:
        stage: Stage = self.get("stages", stage_id)
        return stage

    def having(self, table: str, field: str, value: str) -> list[Any]:
        """The records of a table that have this value in an indexed field, by id (those of updates come last)."""
        return [self.tables[table][key] for key in self._ids_by[table, field].get(value, ())]

    def newest_of(self, kind: str, subject: str) -> Artifact | None:
        """The newest version of the artifact of this kind about this subject."""
        return self.newest.get(f"{self.prefixes[kind]}-{subject.partition('-')[2]}")

    def detail_of(self, source: Source) -> Artifact | None:
        return self.newest_of(DETAIL_KINDS[source.kind], source.source_id)

    def aggregate_of(self, source_id: str) -> Artifact | None:
        return self.newest_of("aggregate", source_id)

    def closure_of(self, stage_id: str) -> Artifact | None:
        return self.newest_of("closure", stage_id)

    def publications_of(self, stage_id: str) -> list[Artifact]:
        """In order of publication."""
        newest = self.newest_of("stage_publication", stage_id)
        return [self.artifacts[f"{newest.id}@{v}"] for v in range(1, newest.version + 1)] if newest else []

    def neighbours(self, stage: Stage) -> list[Stage]:
        return [self.stages[o - 1] for o in (stage.ordinal - 1, stage.ordinal + 1) if 1 <= o <= len(self.stages)]

    def preceding(self, stage: Stage) -> Stage | None:
        return self.stages[stage.ordinal - 2] if stage.ordinal > 1 else None

    def history_required(self, source_id: str) -> list[str]:
        """Rule 12: aggregates that a publication carried and that are now superseded or stale."""
        carried = self.carried.get(source_id, {})
        return [ref for ref in carried if self.artifacts[ref].status != CURRENT]

    # -- rules 1 to 7: the right selections ------------------------------------------------------------------------

    def contract_for(self, source: Source) -> Contract:
        """Rule 1."""
        contract: Contract
        for contract in self.having("contracts", "format", source.format or ""):
            if contract.effective_from <= source.booking_period <= contract.effective_to:
                return contract
        raise LookupError(f"no contract of {source.format} holds {source.booking_period}")

    def released(self, identity: IdentityMap) -> bool:
        by = identity.released_by
        return by is None or self.newest_of("stage_publication", by) is not None

    def authority(self, identity_source: str, period: str) -> IdentityMap | None:
        """Rule 2: the released map in force in ``period`` that no other such map supersedes."""
        such: list[IdentityMap] = [
            m
            for m in self.having("identity_maps", "identity_source", identity_source)
            if self.released(m) and m.effective_from <= period <= m.effective_to
        ]
        replaced = {m.supersedes for m in such}
        return next((m for m in such if m.map_id not in replaced), None)

    def entities_of(self, map_id: str) -> dict[str, str]:
        """Account -> entity."""
        entities = self._entities.get(map_id)
        if entities is None:
            entries: MapEntries = self.tables["map_entries"][map_id]
            entities = self._entities[map_id] = dict(entries.entries)
        return entities

    def rows_by_order(self, source_id: str) -> dict[str, list[Row]]:
        orders = self._orders.get(source_id)
        if orders is None:
            orders = self._orders[source_id] = {}
            for row in self.tables["records"][source_id].rows:
                orders.setdefault(row.order, []).append(row)
        return orders

    def heads(self, source_id: str, policy: str) -> dict[str, Row | None]:
        """Rule 3: the row that counts of each order of a source, under a policy."""
        heads = self._heads.get((source_id, policy))
        if heads is None:
            rows = self.rows_by_order(source_id)
            heads = self._heads[source_id, policy] = {order: head(of_order, policy) for order, of_order in rows.items()}
        return heads

    def original(self, invoice_id: str) -> str:
        """Rule 6: follow ``reissue_of`` to the invoice that was issued first."""
        invoice: Invoice = self.get("invoices", invoice_id)
        while invoice.reissue_of is not None:
            invoice = self.tables["invoices"][invoice.reissue_of]
        return invoice.invoice_id

    def family(self, invoice_id: str) -> list[str]:
        """An invoice and its reissues."""
        return [invoice_id, *(i.invoice_id for i in self.having("invoices", "reissue_of", invoice_id))]

    def notes_about(self, invoice_id: str) -> list[CreditNote]:
        """Notes on an invoice and on its reissues, by id."""
        notes = self._notes.get(invoice_id)
        if notes is None:
            found = [n for i in self.family(invoice_id) for n in self.having("credit_notes", "invoice", i)]
            notes = self._notes[invoice_id] = sorted(found, key=lambda note: note.credit_id)
        return notes

    def counted_credits(self, invoice_id: str, period: str) -> list[CreditNote]:
        """Rule 6: approved notes on the invoice or its reissue, approved by ``period``."""
        counted = self._credits.get((invoice_id, period))
        if counted is None:
            counted = self._credits[invoice_id, period] = [
                n
                for n in self.notes_about(invoice_id)
                if n.status == "approved" and n.approved is not None and n.approved <= period
            ]
        return counted

    def entered_before(self, name: str, source_id: str) -> int:
        """Rules 6 and 7: entries on an invoice or component by sources earlier by (stage ordinal, seq)."""
        entries = self.entries.get(name, {})
        return sum(minor for s, minor in entries.items() if self.place[s] < self.place[source_id])

    def authoritative(self, component: Component, period: str) -> Evidence | None:
        """Rule 7: the document that decides the component's value at ``period``, or None."""
        key = (component.component_id, period)
        if key not in self._decisive:
            self._decisive[key] = self._decided(component, period)
        return self._decisive[key]

    def _decided(self, component: Component, period: str) -> Evidence | None:
        admitted = admitted_classes()[component.class_]
        such: list[Evidence] = [
            d
            for d in self.having("evidence", "component", component.component_id)
            if d.status == "valid" and d.class_ in admitted and d.issued <= period
        ]
        replaced = {d.supersedes for d in such}
        return max((d for d in such if d.document_id not in replaced), key=lambda d: (d.issued, d.seq), default=None)

    def carrying(self, component: Component, source_id: str | None = None) -> int:
        """Rule 7: opening and all entries, or those of packs earlier than ``source_id``."""
        name = component.component_id
        entered = self.entered_before(name, source_id) if source_id else sum(self.entries.get(name, {}).values())
        return component.opening_minor + entered

    # -- true amounts ----------------------------------------------------------------------------------------------

    def true_postings(self, source: Source) -> Totals:
        """What the right selections give on the present state (rules 1 to 8)."""
        if source.kind == "integration":
            contract = self.contract_for(source)
            identity = self.authority(source.identity_source or "", source.booking_period)
            postings = []
            for row in self.heads(source.source_id, source.conflict_policy or "first").values():
                if row is not None and identity is not None:
                    entity = self.entities_of(identity.map_id).get(account_of(row, contract))
                    postings.append((entity or "", minor_of(row.amount, contract) or 0))
            return totals_of(postings)
        if source.kind == "receivables":
            return totals_of(self._true_allocation(source))
        return totals_of(
            (component.entity, self._true_adjustment(component, source))
            for component in self.components_of(source.source_id)
        )

    def _true_allocation(self, source: Source) -> list[tuple[str, int]]:
        postings: list[tuple[str, int]] = []
        here: dict[str, int] = {}
        for line in sorted(self.tables["records"][source.source_id].lines, key=lambda line: line.seq):
            invoice: Invoice = self.tables["invoices"][self.original(line.reference)]
            credits = sum(c.amount_minor for c in self.counted_credits(invoice.invoice_id, source.booking_period))
            before = self.entered_before(invoice.invoice_id, source.source_id) + here.get(invoice.invoice_id, 0)
            open_minor = max(0, invoice.amount_minor - credits - before)
            applied, writeoff, unapplied = allocation(line.paid_minor, open_minor, invoice.tolerance_minor)
            here[invoice.invoice_id] = here.get(invoice.invoice_id, 0) + applied + writeoff
            postings += [(invoice.customer, -(applied + writeoff)), (self.suspense, -unapplied)]
        return postings

    def _true_adjustment(self, component: Component, source: Source) -> int:
        document = self.authoritative(component, source.booking_period)
        return document.amount_minor - self.carrying(component, source.source_id) if document else 0

    def components_of(self, source_id: str) -> list[Component]:
        return [self.tables["components"][e.component] for e in self.tables["records"][source_id].pack]

    # -- staleness (rule 11) ---------------------------------------------------------------------------------------

    def values_cited(self, content: Detail, authority_cited: bool) -> dict[str, Any]:
        """The present values of what a detail cites."""
        source = self.source(content.source_id)
        if source.kind == "integration":
            return self._normalization_values(source, content, authority_cited)
        if source.kind == "receivables":
            return self._allocation_values(source, content)
        return self._adjustment_values(source, content)

    def _normalization_values(self, source: Source, content: Detail, authority_cited: bool) -> dict[str, Any]:
        """Head of each cited order under the cited policy; entity of each used account where authority was cited."""
        cited = content.cited
        contract: Contract = self.tables["contracts"][cited["contract_id"]]
        authority = self.authority(cited["identity_source_id"], source.booking_period) if authority_cited else None
        orders = self.rows_by_order(source.source_id)
        heads = self.heads(source.source_id, cited["conflict_policy"])
        entities = self.entities_of(authority.map_id) if authority is not None else {}
        values: dict[str, Any] = {}
        for item in content.items:
            row = heads[item.order]
            values[f"order {item.order}"] = row and (row.amount, row.debit, row.credit)
            if authority is not None:
                account = account_of(next(r for r in orders[item.order] if r.row == item.row), contract)
                values[f"account {account}"] = entities.get(account)
        return values

    def _allocation_values(self, source: Source, content: Detail) -> dict[str, Any]:
        paid = {line.line: line.paid_minor for line in self.tables["records"][source.source_id].lines}
        values: dict[str, Any] = {}
        for item in content.items:
            credits = self.counted_credits(item.invoice, source.booking_period)
            values[f"line {item.line}"] = paid[item.line]
            values[f"credits of {item.invoice}"] = sum(c.amount_minor for c in credits)
            values[f"applications to {item.invoice}"] = self.entered_before(item.invoice, source.source_id)
        return values

    def _adjustment_values(self, source: Source, content: Detail) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for item in content.items:
            component: Component = self.tables["components"][item.component]
            document = self.authoritative(component, source.booking_period)
            values[f"document of {item.component}"] = document and (document.document_id, document.amount_minor)
            values[f"carrying of {item.component}"] = self.carrying(component, source.source_id)
        return values

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        if artifact.kind in _NEVER_STALE:
            return None
        if isinstance(artifact.content, Detail):
            now, then = self.values_cited(artifact.content, artifact.basis.authority_cited), artifact.basis.values
            return next((f"{name} has changed" for name, value in then.items() if now.get(name) != value), None)
        return super().staleness(artifact, cause)

    # -- updates ---------------------------------------------------------------------------------------------------

    def apply_update(self, update: Update) -> None:
        effect: Amendment = update.effect
        for put in effect.puts:
            if put.key not in self.tables[put.table]:
                for (table, field), ids in self._ids_by.items():
                    if table == put.table:
                        ids.setdefault(getattr(put.record, field), []).append(put.key)
            self.put(put.table, put.key, put.record)
        for derived in (self._orders, self._heads, self._entities, self._notes, self._credits, self._decisive):
            derived.clear()
        self.announce(effect.kind, effect.subjects, effect.text)
        self.changed(*effect.keys, cause=effect.text)


def _group(records: Mapping[str, Any], field: str) -> dict[Any, list[str]]:
    """Value of the field -> ids of the records that have it, in order."""
    groups: dict[Any, list[str]] = {}
    for key in sorted(records):
        groups.setdefault(getattr(records[key], field), []).append(key)
    return groups
