"""The reference procedure of the ledger office, and the plausible mistakes around it.

Packages in order of stage and seq, each stage closed, reviewed and published as soon as its packages are current.
After a notice the packages that used what changed are looked at again, and only the stale ones are renewed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script

_COMMON_SKILLS = (
    "aggregate-source",
    "close-stage",
    "deliver-release",
    "publish-stage",
    "respond-to-correction",
    "review-stage-closure",
)
_KIND_SKILLS = {
    "integration": ("normalize-source", "resolve-identity-map", "select-format-contract"),
    "receivables": ("allocate-remittances", "assess-credit-evidence"),
    "maintenance": ("derive-component-adjustments",),
}
Totals = dict[str, int]


class FinancePolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.brief: dict[str, Any] = {}
        self.stages: list[dict[str, Any]] = []
        self.reviewers: list[dict[str, Any]] = []
        self.place: dict[str, tuple[int, int]] = {}
        self.aggregate: dict[str, str] = {}
        """source -> its aggregate, while current"""
        self.owner: dict[str, str] = {}
        """detail or aggregate -> source"""
        self.due: dict[str, None] = {}
        """sources whose package is to be made (again)"""
        self.predecessors: dict[str, set[str]] = {}
        self.users: dict[str, dict[str, None]] = {}
        """identity source, invoice or component -> sources that used it"""
        self.views: dict[str, list[dict[str, str]]] = {}
        self.closure: dict[str, str] = {}
        """stage -> its closure, while current"""
        self.publications: dict[str, list[str]] = {}
        self.reviewed_by: dict[str, str] = {}
        self.notices_read = 0
        self.delivered = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        self.brief = yield from ask("read_task_brief")
        yield from ask("list_skills")
        for skill in _COMMON_SKILLS:
            yield from ask("read_skill_file", skill=skill)
        self.stages = yield from ask_all("list_stages")
        self.reviewers = yield from ask_all("list_reviewers")
        self.skills_read: set[str] = set()

    def ready(self) -> Iterator[Job]:
        before: dict[str, Any] | None = None
        for stage in self.stages:
            stage_id = stage["stage_id"]
            if stage_id not in self.closure:  # a closed stage has nothing due: what voids a package voids its closure
                yield from self._ready_in(stage, before)
            before = stage
        if len(self.closure) == len(self.stages) > 0 and not self.delivered:
            yield Job("release", self._deliver)

    def _ready_in(self, stage: dict[str, Any], before: dict[str, Any] | None) -> Iterator[Job]:
        stage_id = stage["stage_id"]
        sources = self.memory.get(("sources", stage_id))
        if sources is None:
            yield Job(f"survey:{stage_id}", partial(self._survey, stage_id))
            return
        due = False
        for source in sources:
            source_id = source["source_id"]
            if source_id in self.due:
                due = True
                if self._package_ready(source_id, before):
                    yield Job(f"package:{source_id}", partial(self._package, source_id))
        if not due and (before is None or before["stage_id"] in self.closure):
            yield Job(f"closure:{stage_id}", partial(self._close, stage))

    def _before(self, stage: dict[str, Any]) -> dict[str, Any] | None:
        return self.stages[stage["ordinal"] - 2] if stage["ordinal"] > 1 else None

    def _package_ready(self, source_id: str, before: dict[str, Any] | None) -> bool:
        """A map may wait for an earlier publication; a payment or an adjustment waits for the ones before it."""
        if self.memory.get(("source", source_id))["kind"] == "integration":
            return before is None or before["stage_id"] in self.publications
        return not any(other in self.due for other in self.predecessors.get(source_id, ()))

    def _survey(self, stage_id: str) -> Steps[None]:
        sources = yield from self.memory.lookup(("sources", stage_id), ask_all("list_sources", stage_id=stage_id))
        ordinal = next(s["ordinal"] for s in self.stages if s["stage_id"] == stage_id)
        for source in sources:
            self.place[source["source_id"]] = (ordinal, source["seq"])
            self.memory.keep(("source", source["source_id"]), source)
            self.due[source["source_id"]] = None

    def _void(self, refs: list[str]) -> None:
        """What an answer says became stale: packages are due again, closures are no longer current."""
        for ref in refs:
            if ref in self.owner:
                source_id = self.owner[ref]
                if self.aggregate.pop(source_id, None):
                    self.due[source_id] = None
        stale = set(refs)
        for stage_id in [s for s, closure in self.closure.items() if closure in stale]:
            del self.closure[stage_id]

    # -- a package -------------------------------------------------------------------------------------------------

    def _package(self, source_id: str) -> Steps[None]:
        module = f"package:{source_id}"
        source = self.memory.get(("source", source_id))
        if source_id in self.views or self._published(source_id):
            source = yield from ask("get_source", module=module, source_id=source_id)
            self.memory.keep(("source", source_id), source)
            kept = {view["aggregate"] for view in self.views.get(source_id, [])}
            yield from self._preserve(source_id, [ref for ref in source["history_required"] if ref not in kept])
            if not source["aggregate_stale"]:
                self.aggregate[source_id] = source["aggregate"]
                del self.due[source_id]
                return
        for skill in _KIND_SKILLS[source["kind"]]:
            if skill not in self.skills_read:
                self.skills_read.add(skill)
                yield from ask("read_skill_file", skill=skill)
        make = {"integration": self._normalize, "receivables": self._allocate, "maintenance": self._adjust}
        made = yield from make[source["kind"]](source, module)
        if made is None:
            return
        detail = made["detail"]
        arguments = {"postings": made["postings"]}
        output = yield from run_script("aggregate-source", "aggregate", arguments, module=module, goal=module)
        totals = output["totals"]
        answer = yield from ask(
            "submit_aggregate", module=module, goal=module, source_id=source_id, detail=detail, totals=totals
        )
        self.aggregate[source_id] = answer["aggregate"]
        self.owner[answer["aggregate"]] = source_id
        self.memory.keep(("totals", answer["aggregate"]), totals)
        self.due.pop(source_id, None)
        self._drop_closure_over(source_id)
        self._void(answer["invalidated"])

    def _published(self, source_id: str) -> bool:
        return self._stage_of(source_id)["stage_id"] in self.publications

    def _stage_of(self, source_id: str) -> dict[str, Any]:
        return self.stages[self.place[source_id][0] - 1]

    def _drop_closure_over(self, source_id: str) -> None:
        """A new aggregate is in no closure yet."""
        self.closure.pop(self._stage_of(source_id)["stage_id"], None)

    def _preserve(self, source_id: str, aggregates: list[str]) -> Steps[None]:
        module = f"package:{source_id}"
        for aggregate in aggregates:
            publication = self.memory.get(("carried by", aggregate))
            answer = yield from ask(
                "preserve_view",
                module=module,
                goal=module,
                source_id=source_id,
                aggregate=aggregate,
                publication=publication,
            )
            view = {"ref": answer["historical_view"], "aggregate": aggregate}
            self.views.setdefault(source_id, []).append(view)

    def _submitted(self, source: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        self.owner[answer["detail"]] = source["source_id"]
        self.aggregate.pop(source["source_id"], None)
        self._void(answer["invalidated"])
        self.due[source["source_id"]] = None
        return answer

    def _normalize(self, source: dict[str, Any], module: str) -> Steps[dict[str, Any]]:
        source_id, form, identity = source["source_id"], source["format"], source["identity_source"]
        period = source["booking_period"]
        self.users.setdefault(identity, {})[source_id] = None
        columns, rows = yield from self._rows(source_id, module)
        contracts = yield from self.memory.lookup(
            ("contracts", form), ask_all("list_contracts", module=module, format=form)
        )
        contract = next(c for c in contracts if c["effective_from"] <= period <= c["effective_to"])
        maps = yield from self.memory.lookup(
            ("maps", identity), ask_all("list_identity_maps", module=module, identity_source_id=identity)
        )
        such = [m for m in maps if m["effective_from"] <= period <= m["effective_to"]]
        replaced = {m["supersedes"] for m in such}
        map_id = next(m["map_id"] for m in such if m["map_id"] not in replaced)
        entries = yield from self.memory.lookup(
            ("entries", map_id), ask_all("list_map_entries", module=module, map_id=map_id)
        )
        at = columns.index(contract["account_column"])
        used = {row[at] for row in rows}
        arguments = {
            "columns": columns,
            "rows": rows,
            "entries": [e for e in entries if e["account"] in used],
            "account_column": contract["account_column"],
            "scale_exponent": contract["scale_exponent"],
            "sign": contract["sign"],
            "policy": source["conflict_policy"],
        }
        output = yield from run_script("normalize-source", "normalize", arguments, module=module, goal=module)
        answer = yield from ask(
            "submit_normalization",
            module=module,
            goal=module,
            source_id=source_id,
            revision=source["revision"],
            contract_id=contract["contract_id"],
            identity_source_id=identity,
            identity_map_id=map_id,
            conflict_policy=source["conflict_policy"],
            items=output["items"],
        )
        return self._submitted(source, answer)

    def _rows(self, source_id: str, module: str) -> Steps[tuple[list[str], list[list[Any]]]]:
        page = yield from ask("list_records", module=module, source_id=source_id)
        columns, rows = page["columns"], list(page["items"])
        while page["next_cursor"]:
            page = yield from ask("list_records", module=module, source_id=source_id, cursor=page["next_cursor"])
            rows += page["items"]
        self.memory.keep(("records", source_id), [dict(zip(columns, row, strict=True)) for row in rows])
        return columns, rows

    def _allocate(self, source: dict[str, Any], module: str) -> Steps[dict[str, Any] | None]:
        source_id, period = source["source_id"], source["booking_period"]
        lines = yield from ask_all("list_records", module=module, source_id=source_id)
        self.memory.keep(("records", source_id), lines)
        named = sorted({line["reference"] for line in lines})
        found = yield from ask_all("list_invoices", module=module, invoice_ids=named)
        invoices = {invoice["invoice_id"]: invoice for invoice in found}
        originals = sorted({i["reissue_of"] for i in found if i["reissue_of"]} - set(invoices))
        if originals:
            more = yield from ask_all("list_invoices", module=module, invoice_ids=originals)
            invoices |= {invoice["invoice_id"]: invoice for invoice in more}
        original = {name: invoices[name]["reissue_of"] or name for name in named}
        cited = sorted(set(original.values()))
        if not self._may_follow(source_id, cited, {i: invoices[i]["payment_sources"] for i in cited}):
            return None
        notes = yield from ask_all("list_credit_notes", module=module, invoice_ids=cited)
        about: dict[str, list[dict[str, Any]]] = {invoice_id: [] for invoice_id in cited}
        families = {other["invoice_id"]: other["reissue_of"] or other["invoice_id"] for other in invoices.values()}
        unknown = sorted({n["invoice"] for n in notes} - set(families))
        if unknown:
            more = yield from ask_all("list_invoices", module=module, invoice_ids=unknown)
            families |= {other["invoice_id"]: other["reissue_of"] or other["invoice_id"] for other in more}
        for invoice_id in cited:
            self.memory.keep(("invoice", invoice_id), invoices[invoice_id])
            related = [n for n in notes if families[n["invoice"]] == invoice_id]
            self.memory.keep(("notes", invoice_id), related)
        for note in notes:
            if note["status"] == "approved" and note["approved"] <= period:
                about[families[note["invoice"]]].append(note)
        arguments = {
            "lines": [
                {"line": n["line"], "seq": n["seq"], "paid_minor": n["paid_minor"], "invoice": original[n["reference"]]}
                for n in lines
            ],
            "invoices": [
                {
                    "invoice": i,
                    "amount_minor": invoices[i]["amount_minor"],
                    "tolerance_minor": invoices[i]["tolerance_minor"],
                    "credits": [{"credit": n["credit_id"], "amount_minor": n["amount_minor"]} for n in about[i]],
                }
                for i in cited
            ],
            "prior": [
                {"invoice": i, "minor": a["minor"]}
                for i in cited
                for a in invoices[i]["applications"]
                if self._earlier(a["source_id"], source_id)
            ],
        }
        output = yield from run_script("allocate-remittances", "allocate", arguments, module=module, goal=module)
        answer = yield from ask(
            "submit_allocation",
            module=module,
            goal=module,
            source_id=source_id,
            revision=source["revision"],
            items=output["items"],
        )
        return self._submitted(source, answer)

    def _adjust(self, source: dict[str, Any], module: str) -> Steps[dict[str, Any] | None]:
        source_id, period = source["source_id"], source["booking_period"]
        if "class table" not in self.memory:
            path = "references/component-classes.csv"
            skill = "derive-component-adjustments"
            answer = yield from ask("read_skill_file", module=module, skill=skill, path=path)
            rows = [line.split(",") for line in answer["text"].splitlines()[1:]]
            self.memory.keep("class table", {row[0]: set(row[1].split()) for row in rows})
        admitted = self.memory.get("class table")
        pack = yield from ask_all("list_records", module=module, source_id=source_id)
        names = [entry["component"] for entry in pack]
        found = yield from ask_all("list_components", module=module, component_ids=names)
        components = {c["component_id"]: c for c in found}
        if not self._may_follow(source_id, names, {c: components[c]["pack_sources"] for c in names}):
            return None
        documents = yield from ask_all("list_evidence", module=module, component_ids=names)
        chosen: dict[str, dict[str, Any]] = {}
        for name in names:
            self.memory.keep(("component", name), components[name])
            self.memory.keep(("documents", name), [d for d in documents if d["component"] == name])
            such = [
                d
                for d in documents
                if d["component"] == name
                and d["status"] == "valid"
                and d["class"] in admitted[components[name]["class"]]
                and d["issued"] <= period
            ]
            replaced = {d["supersedes"] for d in such}
            final = [d for d in such if d["document_id"] not in replaced]
            if final:
                chosen[name] = max(final, key=lambda d: (d["issued"], d["seq"]))
        arguments = {
            "components": [
                {
                    "component": name,
                    "class": components[name]["class"],
                    "entity": components[name]["entity"],
                    "carrying_minor": components[name]["opening_minor"]
                    + sum(e["minor"] for e in components[name]["entries"] if self._earlier(e["source_id"], source_id)),
                }
                for name in names
            ],
            "evidence": [
                {"component": name, "document": d["document_id"], "amount_minor": d["amount_minor"]}
                for name, d in chosen.items()
            ],
        }
        output = yield from run_script("derive-component-adjustments", "adjust", arguments, module=module, goal=module)
        answer = yield from ask(
            "submit_adjustment",
            module=module,
            goal=module,
            source_id=source_id,
            revision=source["revision"],
            items=output["items"],
        )
        return self._submitted(source, answer)

    def _earlier(self, other: str, source_id: str) -> bool:
        return other in self.place and self.place[other] < self.place[source_id]

    def _may_follow(self, source_id: str, names: list[str], sources: dict[str, list[str]]) -> bool:
        """Whether every source that comes before on one of these objects has been dealt with."""
        for name in names:
            self.users.setdefault(name, {})[source_id] = None
        before = {s for name in names for s in sources[name][: sources[name].index(source_id)]}
        self.predecessors[source_id] = before
        return all(s in self.aggregate for s in before)

    # -- a stage ---------------------------------------------------------------------------------------------------

    def _close(self, stage: dict[str, Any]) -> Steps[None]:
        stage_id = stage["stage_id"]
        module, goal = f"closure:{stage_id}", f"stage:{stage_id}"
        before = self._before(stage)
        preceding = self.closure[before["stage_id"]] if before else None
        sources = [self.memory.get(("source", s["source_id"])) for s in self.memory.get(("sources", stage_id))]
        current = [s["source_id"] for s in sources if s["booking_period"] <= stage["cutoff"]]
        deferred = [s["source_id"] for s in sources if s["booking_period"] > stage["cutoff"]]
        views = [self.memory.get(("totals", self.aggregate[s])) for s in current]
        opening = self.memory.get(("closing", preceding), {})
        output = yield from run_script(
            "close-stage", "roll_forward", {"opening": opening, "views": views}, module=module, goal=goal
        )
        answer = yield from ask(
            "close_stage",
            module=module,
            goal=goal,
            stage_id=stage_id,
            preceding=preceding,
            current=[self.aggregate[s] for s in current],
            deferred=[self.aggregate[s] for s in deferred],
            history=[view["ref"] for s in sources for view in self.views.get(s["source_id"], [])],
            closing=output["closing"],
        )
        closure = answer["closure"]
        self.memory.keep(("closing", closure), answer["closing"])
        self._void(answer["invalidated"])
        reviewer = self._reviewer(stage, answer["gross_minor"])
        answer = yield from ask("review_stage", module=module, goal=goal, closure=closure, reviewer_id=reviewer)
        self.reviewed_by[stage_id] = reviewer
        self._void(answer["invalidated"])
        answer = yield from ask("publish_stage", module=module, goal=goal, closure=closure, review=answer["review"])
        self.closure[stage_id] = closure
        self.publications.setdefault(stage_id, []).append(answer["publication"])
        for source in sources:
            aggregate = self.aggregate[source["source_id"]]
            if ("carried by", aggregate) not in self.memory:
                self.memory.keep(("carried by", aggregate), answer["publication"])
        for identity in answer["released_maps"]:
            self.memory.forget(("maps", identity["identity_source"]))
        self._void(answer["invalidated"])
        yield from self._read_notices()

    def _reviewer(self, stage: dict[str, Any], gross: int) -> str:
        """The first with the authority who did not review a neighbouring stage."""
        ordinals = (stage["ordinal"] - 1, stage["ordinal"] + 1)
        barred = {self.reviewed_by.get(s["stage_id"]) for s in self.stages if s["ordinal"] in ordinals}
        return self._first_reviewer(barred, gross)

    def _first_reviewer(self, barred: set[str | None], gross: int | None) -> str:
        for reviewer in self.reviewers:
            limit = reviewer["authority_limit_minor"]
            if reviewer["reviewer_id"] not in barred and (limit is None or (gross is not None and limit >= gross)):
                found: str = reviewer["reviewer_id"]
                return found
        raise LookupError("no reviewer is free")

    def _read_notices(self) -> Steps[None]:
        notices = yield from ask_all("list_notices", since=self.notices_read)
        suspects: dict[str, None] = {}
        for notice in notices:
            self.notices_read = max(self.notices_read, notice["sequence"])
            for subject in notice["subject_ids"]:
                self.memory.forget(("maps", subject))
                users = [subject] if subject in self.place else list(self.users.get(subject, ()))
                suspects |= dict.fromkeys(users)
        for source_id in sorted(suspects, key=self.place.__getitem__):
            if source_id not in self.aggregate:
                continue
            source = yield from ask("get_source", source_id=source_id)
            self.memory.keep(("source", source_id), source)
            if source["detail_stale"] or source["aggregate_stale"]:
                self._void([source["aggregate"]])
        if suspects:
            stages = yield from ask_all("list_stages")
            self._void([s["closure"] for s in stages if s["closure_stale"]])

    # -- the release -----------------------------------------------------------------------------------------------

    def _deliver(self) -> Steps[None]:
        obligations = yield from ask_all("list_obligations", module="release")
        stages = yield from ask_all("list_stages", module="release")
        latest = {s["stage_id"]: s["publications"] for s in stages}
        self.memory.keep("publications", latest)
        reviewer = self._first_reviewer({stages[-1]["reviewer"]}, None)
        answer = yield from ask(
            "review_release",
            module="release",
            goal="release",
            publications=[p[-1] for p in latest.values()],
            restated=[stage_id for stage_id, p in latest.items() if len(p) > 1],
            reviewer_id=reviewer,
        )
        review = answer["review"]
        yield from ask("publish_release", module="release", goal="release", review=review)
        for obligation in obligations:
            published = latest[obligation["stage"]]
            yield from ask(
                "release_obligation",
                module="release",
                goal=f"obligation:{obligation['obligation_id']}",
                obligation_id=obligation["obligation_id"],
                publication=published[0] if obligation["basis"] == "as_first_published" else published[-1],
                review=review,
            )
        self.delivered = True
