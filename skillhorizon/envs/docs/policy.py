"""The reference procedure of the portfolio office, and the plausible mistakes around it.

Pages in an order that the links allow, each reconciled, reviewed, published and bound; then the change window, where
exactly the pages that a bulletin affects are done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script

_SKILLS = (
    "coordinate-document-review",
    "publish-reviewed-decision",
    "reconcile-interface-contracts",
    "revise-planning-document",
    "synchronize-planning-trackers",
    "trace-planning-dependencies",
)
_RECONCILE = "reconcile-interface-contracts"
_ROLES = ("security", "engineering")
Row = dict[str, Any]


class DocsPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.window_id = ""
        self.rows: dict[str, Row] = {}
        self.order: list[str] = []
        """requested pages, parents first"""
        self.parents: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        self.pending: dict[str, None] = {}
        """pages to be delivered (again), in order"""
        self.contract: dict[str, str] = {}
        """page -> its contract, while current"""
        self.digest: dict[str, str] = {}
        self.booked: dict[str, Row] = {}
        """page -> the reservation that it holds"""
        self.head: dict[str, str] = {}
        self.stated: set[str] = set()
        """pages whose head revision states their contract"""
        self.clauses: dict[str, list[str]] = {}
        self.approved: dict[tuple[str, str], str] = {}
        """(page, role) -> sign-off, while it holds"""
        self.published: dict[str, str] = {}
        self.notices_read = 0
        self.closed = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        brief = yield from ask("read_task_brief")
        self.window_id = brief["window_id"]
        self.rows = {row["page_id"]: row for row in brief["pages"]}
        self.memory.keep("brief", brief)
        yield from ask("list_skills")
        for skill in _SKILLS:
            yield from ask("read_skill_file", skill=skill)
        yield from ask("read_skill_file", skill=_RECONCILE, path="references/contract-rules.md")
        for project_id in sorted({row["project_id"] for row in self.rows.values()}):
            yield from self._reviewers(project_id)
        for page_id in self.rows:
            links = yield from ask_all("list_dependencies", page_id=page_id)
            self.memory.keep(("links", page_id), links)
            self.parents[page_id] = [
                link["to_page"] for link in links if link["kind"] == "derives_from" and link["state"] == "active"
            ]
            for parent in self.parents[page_id]:
                self.children.setdefault(parent, []).append(page_id)
        waiting = {page_id: len(parents) for page_id, parents in self.parents.items()}
        free = [page_id for page_id, count in waiting.items() if not count]
        while free:
            page_id = free.pop(0)
            self.order.append(page_id)
            for child in self.children.get(page_id, ()):
                waiting[child] -= 1
                if not waiting[child]:
                    free.append(child)
        self.pending = dict.fromkeys(self.order)

    def ready(self) -> Iterator[Job]:
        if not self.pending and not self.closed and self.order:
            yield Job(f"window:{self.window_id}", self._window)
        for page_id in list(self.pending):
            if page_id not in self.contract:
                if not any(parent in self.pending for parent in self.parents[page_id]):
                    yield Job(f"contract:{page_id}", partial(self._contract, page_id))
                continue
            if page_id in self.published:
                yield Job(f"tracker:{page_id}", partial(self._bind, page_id))
                continue
            if page_id not in self.booked:
                yield Job(f"reservation:{page_id}", partial(self._reserve, page_id))
            if page_id not in self.stated:
                yield Job(f"document:{page_id}", partial(self._revise, page_id))
                continue
            lacking = [role for role in _ROLES if (page_id, role) not in self.approved]
            for role in lacking:
                yield Job(f"{role}:{page_id}", partial(self._review, page_id, role))
            if not lacking and page_id in self.booked:
                yield Job(f"publication:{page_id}", partial(self._publish, page_id))

    def _void(self, refs: list[str]) -> None:
        """What an answer says became stale: approvals lapse."""
        gone = set(refs)
        for key in [k for k, signoff in self.approved.items() if signoff in gone]:
            del self.approved[key]

    def _reviewers(self, project_id: str) -> Steps[dict[str, list[str]]]:
        """Role -> those who may sign, and those of the team itself, who may not."""

        def query() -> Steps[dict[str, list[str]]]:
            page = yield from ask("list_reviewers", project_id=project_id)
            found: dict[str, list[str]] = {}
            for row in page["items"]:
                inside = row["team_id"] == page["team_id"]
                found.setdefault(f"{row['role']} inside" if inside else row["role"], []).append(row["person_id"])
            return found

        return (yield from self.memory.lookup(("reviewers", project_id), query()))

    # -- a contract ------------------------------------------------------------------------------------------------

    def _blocks(self, page_id: str) -> Steps[list[Row]]:
        return (
            yield from self.memory.lookup(
                ("blocks", page_id), ask_all("list_blocks", module=f"contract:{page_id}", page_id=page_id)
            )
        )

    def _publication(self, page_id: str, module: str) -> Steps[Row]:
        return (
            yield from self.memory.lookup(
                ("publication", page_id), ask("get_publication", module=module, page_id=page_id)
            )
        )

    def _contract(self, page_id: str) -> Steps[None]:
        module = f"contract:{page_id}"
        blocks = governing((yield from self._blocks(page_id)))
        grants = yield from self.memory.lookup(
            ("grants", page_id), ask_all("list_grants", module=module, page_id=page_id)
        )
        cited = usable(grants, page_id, blocks)
        publications = []
        for parent in self.parents[page_id]:
            publications.append((yield from self._publication(parent, module)))
        given = script_input(page_id, blocks, cited, publications)
        output = yield from run_script(_RECONCILE, "reconcile_contract", given, module=module, goal=module)
        answer = yield from ask(
            "submit_contract",
            module=module,
            goal=module,
            page_id=page_id,
            proposal=output,
            cites={
                "blocks": [block["block_id"] for block in blocks],
                "grants": [grant["grant_id"] for grant in cited],
                "parents": [publication["publication"] for publication in publications],
            },
        )
        self._void(answer["invalidated"])
        self.approved.pop((page_id, "engineering"), None)
        if self.digest.get(page_id) != answer["quota_digest"]:
            self.approved.pop((page_id, "security"), None)
        self.digest[page_id] = answer["quota_digest"]
        self.contract[page_id] = answer["contract"]
        self.memory.keep(("contract", page_id), answer)
        if self.booked.get(page_id) != answer["content"]["reservation"]:
            self.booked.pop(page_id, None)

    def _content(self, page_id: str) -> Steps[Row]:
        """The content of the page's own contract."""
        answer = yield from self.memory.lookup(("contract", page_id), ask("get_contract", page_id=page_id))
        content: Row = answer["content"]
        return content

    def _reserve(self, page_id: str) -> Steps[None]:
        module = f"contract:{page_id}"
        needed = (yield from self._content(page_id))["reservation"]
        yield from ask_all("list_reservations", module=module, service_id=needed["service_id"])
        yield from ask("reserve_capacity", module=module, goal=module, page_id=page_id, **needed)
        self.booked[page_id] = needed

    # -- document and review ---------------------------------------------------------------------------------------

    def _revise(self, page_id: str) -> Steps[None]:
        module = f"review:{page_id}"
        content = yield from self._content(page_id)
        answer = yield from ask(
            "revise_document",
            module=module,
            goal=module,
            page_id=page_id,
            base_revision=self.head.get(page_id),
            contract=self.contract[page_id],
            statement=statement(content),
            clauses=self.clauses.get(page_id, []),
            text=document(content),
        )
        self._void(answer["invalidated"])
        self.approved.pop((page_id, "engineering"), None)
        self.head[page_id] = answer["document_revision"]
        self.stated.add(page_id)

    def _review(self, page_id: str, role: str) -> Steps[None]:
        module = f"review:{page_id}"
        reviewers = yield from self._reviewers(self.rows[page_id]["project_id"])
        while True:
            answer = yield from ask(
                "request_signoff",
                module=module,
                goal=module,
                page_id=page_id,
                role=role,
                reviewer_id=reviewers[role][0],
                contract=self.contract[page_id],
                document_revision=self.head[page_id],
            )
            if answer["outcome"] == "approved":
                self.approved[page_id, role] = answer["signoff"]
                return
            if answer["clause"] and answer["clause"] not in self.clauses.setdefault(page_id, []):
                self.clauses[page_id].append(answer["clause"])
            yield from self._revise(page_id)

    # -- publication -----------------------------------------------------------------------------------------------

    def _publish(self, page_id: str) -> Steps[None]:
        module = f"publication:{page_id}"
        decided = yield from ask(
            "record_decision",
            module=module,
            goal=module,
            page_id=page_id,
            contract=self.contract[page_id],
            document_revision=self.head[page_id],
            signoffs=[self.approved[page_id, role] for role in _ROLES],
        )
        answer = yield from ask(
            "publish_page", module=module, goal=module, page_id=page_id, decision=decided["decision"]
        )
        self.published[page_id] = answer["publication"]
        self.memory.forget(("publication", page_id))
        self._void(answer["invalidated"])

    def _bind(self, page_id: str) -> Steps[None]:
        yield from ask(
            "bind_tracker_item",
            module=f"tracker:{page_id}",
            goal=f"page:{page_id}",
            item_id=self.rows[page_id]["item_id"],
            page_id=page_id,
            publication=self.published[page_id],
        )
        del self.pending[page_id]

    # -- the change window -----------------------------------------------------------------------------------------

    def _window(self) -> Steps[None]:
        answer = yield from ask("poll_change_window", module="window")
        self.closed = answer["state"] == "closed"
        if answer["state"] == "waiting":
            yield from self._look_again()
        if answer["state"] != "open":
            return
        notices = yield from ask_all("list_notices", module="window", since=self.notices_read)
        self.memory.keep("notices", notices)
        for notice in notices:
            self.notices_read = max(self.notices_read, notice["sequence"])
            if notice["kind"] == "bulletin":
                yield from self._answer_bulletin(*notice["subject_ids"])

    def _look_again(self) -> Steps[None]:
        """After a mistake: which pages are marked or unpublished; where none is, the window is given up."""
        open_pages = []
        for page_id in self.order:
            page = yield from ask("get_page", module="window", page_id=page_id)
            if page["publication"] is None or page["marks"]:
                open_pages.append(page_id)
        self._reopen(open_pages)
        self.closed = not open_pages

    def _answer_bulletin(self, bulletin_id: str, page_id: str, block_id: str) -> Steps[None]:
        self.memory.forget(("blocks", page_id))
        blocks = yield from self._blocks(page_id)
        field = next(b["body"]["name"] for b in blocks if b["block_id"] == block_id)
        affected, queue = {page_id}, [page_id]
        while queue:
            parent = queue.pop()
            for child in self.children.get(parent, ()):
                if child not in affected and field in taken((yield from self._blocks(child)), parent):
                    affected.add(child)
                    queue.append(child)
        pages = sorted(affected)
        yield from ask("file_impact_statement", module="window", bulletin_id=bulletin_id, page_ids=pages)
        self._reopen([p for p in self.order if p in affected])

    def _reopen(self, pages: list[str]) -> None:
        """Pages to be reconciled and published again, in order."""
        for page_id in pages:
            self.pending[page_id] = None
            self.memory.forget(("blocks", page_id))
            self.stated.discard(page_id)
            for made in (self.contract, self.published):
                made.pop(page_id, None)


# -- what follows from observations ------------------------------------------------------------------------------------


def governing(blocks: list[Row]) -> list[Row]:
    """Rule 1, in the order of the page."""
    best: dict[str, Row] = {}
    for block in blocks:
        if block["state"] == "approved" and block["kind"] != "note":
            known = best.get(block["key"])
            if known is None or known["decided_on"] < block["decided_on"]:
                best[block["key"]] = block
    return [block for block in blocks if best.get(block["key"]) is block]


def taken(blocks: list[Row], parent: str) -> list[str]:
    """Rule 2: the fields that a page with these blocks takes from a parent."""
    imports = {b["body"]["page_id"]: b["body"]["fields"] for b in governing(blocks) if b["kind"] == "import"}
    carry: list[str] = next(b["body"]["fields"] for b in blocks if b["kind"] == "carry")
    return imports.get(parent, carry)


def usable(grants: list[Row], page_id: str, blocks: list[Row]) -> list[Row]:
    """Rule 8: own, active, valid by the effective day."""
    day = next(b["body"]["effective_day"] for b in blocks if b["kind"] == "charter")
    return [g for g in grants if g["owner_page"] == page_id and g["state"] == "active" and g["valid_from"] <= day]


def script_input(page_id: str, blocks: list[Row], grants: list[Row], publications: list[Row]) -> Row:
    """What the script needs of governing blocks, usable grants and the parents' publications."""
    single = {b["kind"]: b["body"] for b in blocks if b["kind"] in ("charter", "carry", "service")}
    terms = {
        "page_id": page_id,
        **single["charter"],
        "carry": single["carry"]["fields"],
        "service_id": single["service"]["service_id"],
        "fields": [{**b["body"], "block_id": b["block_id"]} for b in blocks if b["kind"] == "field"],
        "consumers": [b["body"] for b in blocks if b["kind"] == "consumer"],
    }
    parents = []
    for publication in publications:
        content = publication["content"]
        names = taken(blocks, publication["page_id"])
        lots = [a["lots"] for a in content["allotments"] if a["consumer"] == page_id]
        parents.append(
            {
                "page_id": publication["page_id"],
                "fields": [e for e in content["fields"] if e["name"] in names],
                "lots": lots[0] if lots else [],
            }
        )
    lot = ("grant_id", "owner_page", "purposes", "amount", "expires_on")
    return {"terms": terms, "parents": parents, "grants": [{name: g[name] for name in lot} for g in grants]}


def statement(content: Row) -> Row:
    """Rule 9."""
    return {
        "limits": {e["name"]: e["limit"] for e in content["fields"]},
        "used": sum(lot["amount"] for lot in content["used"]),
        "allotted": {a["consumer"]: sum(lot["amount"] for lot in a["lots"]) for a in content["allotments"]},
        "until_day": content["reservation"]["until_day"],
    }


def document(content: Row) -> str:
    """The prose of a revision."""
    lines = [
        f"{e['name']} is {'required' if e['required'] else 'optional'}, at most {e['limit']} as set by {e['bound_by']}."
        for e in content["fields"]
    ]
    allotted = statement(content)["allotted"]
    lines += [f"{consumer} may draw {amount} calls a minute." for consumer, amount in allotted.items()]
    booking = content["reservation"]
    lines.append(f"{booking['amount']} are used here from day {booking['from_day']} to day {booking['until_day']}.")
    return " ".join(lines)
