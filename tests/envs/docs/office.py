"""Steps that tests of DocOps take by hand on a bench, after a policy has done the rest."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from skillhorizon.core.world import Update
from skillhorizon.envs.docs.policy import DocsPolicy, governing, script_input, statement, usable
from skillhorizon.envs.docs.records import Block, Bulletin, Proposal
from skillhorizon.envs.docs.world import DocsWorld
from tests.envs.bench import Bench, calibrated

CONFIGURATION = "expiry-amendments/uniform/braided"
SCRIPT = {"skill": "reconcile-interface-contracts", "script": "reconcile_contract"}


def contract_arguments(bench: Bench, policy: DocsPolicy, page_id: str) -> dict[str, Any]:
    """Arguments of the contract that the page's blocks, grants and parents give as they stand now."""
    rows = bench.do("list_blocks", page_id=page_id)
    blocks = rows["items"]
    while rows["next_cursor"]:
        rows = bench.do("list_blocks", page_id=page_id, cursor=rows["next_cursor"])
        blocks += rows["items"]
    blocks = governing(blocks)
    grants = usable(bench.do("list_grants", page_id=page_id)["items"], page_id, blocks)
    parents = [bench.do("get_publication", page_id=parent) for parent in policy.parents[page_id]]
    content = bench.do("run_skill_script", **SCRIPT, input=script_input(page_id, blocks, grants, parents))["output"]
    cites = {
        "blocks": [b["block_id"] for b in blocks],
        "grants": [g["grant_id"] for g in grants],
        "parents": [p["publication"] for p in parents],
    }
    return {"page_id": page_id, "proposal": content, "cites": cites}


def revise(bench: Bench, page_id: str, contract: str, stated: Any, clauses: list[str] | None = None) -> str:
    """The next revision on the head, with its clauses unless others are given."""
    head = bench.world.newest_of("revision", page_id)
    answer = bench.do(
        "revise_document",
        page_id=page_id,
        base_revision=head.ref,
        contract=contract,
        statement=stated,
        clauses=list(head.content.clauses) if clauses is None else clauses,
        text="Once more.",
    )
    revision: str = answer["document_revision"]
    return revision


def sign(bench: Bench, policy: DocsPolicy, page_id: str, role: str, contract: str, revision: str) -> dict[str, Any]:
    reviewer = policy.memory.get(("reviewers", policy.rows[page_id]["project_id"]))[role][0]
    request = {"page_id": page_id, "role": role, "reviewer_id": reviewer}
    answer: dict[str, Any] = bench.do("request_signoff", **request, contract=contract, document_revision=revision)
    return answer


def decide(bench: Bench, policy: DocsPolicy, page_id: str) -> str:
    """From a new contract, revision and engineering approval to the decision; the security approval must still hold."""
    arguments = contract_arguments(bench, policy, page_id)
    contract = bench.do("submit_contract", **arguments)["contract"]
    revision = revise(bench, page_id, contract, statement(arguments["proposal"]))
    engineering = sign(bench, policy, page_id, "engineering", contract, revision)["signoff"]
    security = bench.world.signoff_of(page_id, "security").ref
    answer = bench.do(
        "record_decision",
        page_id=page_id,
        contract=contract,
        document_revision=revision,
        signoffs=[security, engineering],
    )
    decision: str = answer["decision"]
    return decision


def publish_and_bind(bench: Bench, page_id: str, decision: str) -> None:
    publication = bench.do("publish_page", page_id=page_id, decision=decision)["publication"]
    bench.do("bind_tracker_item", item_id=bench.world.items[page_id], page_id=page_id, publication=publication)


def republish(bench: Bench, policy: DocsPolicy, page_id: str) -> None:
    """Everything from the contract to the binding once more."""
    publish_and_bind(bench, page_id, decide(bench, policy, page_id))


def affected(world: DocsWorld) -> set[str]:
    """Pages that some bulletin affects."""
    found = (world.impact(b.block.page_id, b.block.body.name) for b in world.bulletins)
    return set().union(*found)


class Office(Bench):
    """A delivered task with two bulletins, and where to find what a wrong call needs."""

    def __init__(self, configuration: str = CONFIGURATION) -> None:
        super().__init__(calibrated("docs", "64K", configuration))
        policy = self.reference()
        assert isinstance(policy, DocsPolicy)
        assert self.evaluate().success
        self.policy = policy
        self.announced = 0
        self.pages = policy.order

    @property
    def child(self) -> str:
        """A page with at least two parents."""
        return next(p for p in self.pages if len(self.policy.parents[p]) > 1)

    @property
    def reworked(self) -> str:
        return next(p for p in self.pages if p in affected(self.world))

    @property
    def preserved(self) -> str:
        return next(p for p in self.pages if p not in affected(self.world))

    @property
    def decoy(self) -> dict[str, Any]:
        """The page of an earlier edition in the project of a preserved page."""
        rows = self.do("list_pages", project_id=self.policy.rows[self.preserved]["project_id"])["items"]
        return next(row for row in rows if row["page_id"] not in self.world.items)

    def newest(self, kind: str, page_id: str) -> str:
        ref: str = self.world.newest_of(kind, page_id).ref
        return ref

    def submission(self, page_id: str) -> dict[str, Any]:
        return contract_arguments(self, self.policy, page_id)

    def block(self, page_id: str, **wanted: Any) -> str:
        """A block of a page that has these values."""
        blocks = (self.world.tables["blocks"][b] for b in self.world.blocks_of[page_id])
        return next(b.block_id for b in blocks if all(getattr(b, k) == v for k, v in wanted.items()))

    def announce(self, page_id: str, field: str, change: int) -> None:
        """Another bulletin, on a field block of a page."""
        block = next(b for b in self.world.governing(page_id) if b.kind == "field" and b.body.name == field)
        self.supersede(block, limit=block.body.limit + change)

    def supersede(self, block: Block, **changes: Any) -> None:
        """Another bulletin, by which a block with other values takes the place of a governing one."""
        number = self.announced = self.announced + 1
        new = replace(
            block,
            block_id=f"blk-extra{number}",
            decided_on=(block.decided_on or 0) + 50,
            supersedes=block.block_id,
            body=replace(block.body, **changes),
            order=90 + number,
        )
        proposal = Proposal(f"prp-extra{number}", block.page_id, block.block_id, "To be discussed.")
        effect = Bulletin(f"bul-extra{number}", new, "One more.", proposal)
        self.world.apply_update(Update(number, "bulletins", 99, effect))

    def own_field(self, page_id: str) -> str:
        """The field of a page that its lane does not carry, so that nobody takes it."""
        terms = self.world.terms(page_id)
        return next(term.name for term, _ in terms.fields if term.name not in terms.carry)
