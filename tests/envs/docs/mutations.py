"""Wrong executions of DocOps, each failing exactly its predicate; and the mistakes that cost nothing, explained."""

from __future__ import annotations

from skillhorizon.core.policy import Call, Memory, Steps
from skillhorizon.core.task import TaskConfig
from skillhorizon.envs.docs.mistakes import confusions
from skillhorizon.envs.docs.policy import DocsPolicy
from skillhorizon.envs.docs.world import DocsWorld
from tests.envs.bench import Bench, Mutation, once
from tests.envs.docs.office import affected, publish_and_bind, republish, revise


def has_bulletins(config: TaskConfig) -> bool:
    return bool(config.options["bulletins"])


def _overtaken_field(world: DocsWorld, call: Call, memory: Memory, carried: bool) -> Call | None:
    """The call with an overtaken field block that binds, on a page that no bulletin touches."""
    page_id = call.arguments["page_id"]
    if page_id in affected(world) or (carried and not world.children_of.get(page_id)):
        return None
    for confusion in confusions(call, memory):
        if confusion.kind != "overtaken_block":
            continue
        blocks = set(confusion.call.arguments["cites"]["blocks"]) - set(call.arguments["cites"]["blocks"])
        block = world.tables["blocks"][blocks.pop()]
        if block.kind == "field" and (not carried or block.body.name in world.terms(page_id).carry):
            return confusion.call
    return None


def cite_an_overtaken_field(bench: Bench) -> None:
    def cite(call: Call, memory: Memory) -> Call | None:
        return _overtaken_field(bench.world, call, memory, carried=False)

    bench.reference(once("submit_contract", cite))


def correct_a_parent_too_late(bench: Bench) -> None:
    """A parent is published with an overtaken field and corrected after the window; its children are left."""
    wrong: list[str] = []

    def cite(call: Call, memory: Memory) -> Call | None:
        other = _overtaken_field(bench.world, call, memory, carried=True)
        wrong.extend([call.arguments["page_id"]] if other else [])
        return other

    policy = bench.reference(once("submit_contract", cite))
    assert isinstance(policy, DocsPolicy)
    republish(bench, policy, wrong[0])


def revise_after_publishing(bench: Bench) -> None:
    bench.reference()
    page_id = bench.task.blueprint.goal.pages[-1]
    head = bench.world.newest_of("revision", page_id)
    stated = head.content.statement
    revise(bench, page_id, head.content.contract, {f: getattr(stated, f) for f in stated.__struct_fields__})


class _Unbound(DocsPolicy):
    """Never binds the first page."""

    def _bind(self, page_id: str) -> Steps[None]:
        if page_id == self.order[0]:
            del self.pending[page_id]
        else:
            yield from super()._bind(page_id)


def skip_a_binding(bench: Bench) -> None:
    bench.reference(policy=_Unbound())


class _Early(DocsPolicy):
    """Takes the window for closed once as many bulletins as there are have been answered."""

    def __init__(self, bulletins: int) -> None:
        super().__init__()
        self.left = bulletins

    def _window(self) -> Steps[None]:
        if self.left:
            self.left -= 1
            yield from super()._window()
        else:
            self.closed = True


def omit_the_last_poll(bench: Bench) -> None:
    bench.reference(policy=_Early(len(bench.world.bulletins)))


def name_a_preserved_page(bench: Bench) -> None:
    def name(call: Call, memory: Memory) -> Call | None:
        return next(c.call for c in confusions(call, memory) if c.kind == "preserved_page_named")

    bench.reference(once("file_impact_statement", name))


def reserve_a_day_early(bench: Bench) -> None:
    """After delivery a page exchanges its reservation for one that begins a day earlier, where there is room."""
    bench.reference()
    world: DocsWorld = bench.world
    for page_id in bench.task.blueprint.goal.pages:
        held = world.newest_of("reservation", page_id).content
        wanted = {"amount": held.amount, "from_day": held.from_day - 1, "until_day": held.until_day}
        call = {"page_id": page_id, "service_id": held.service_id, **wanted}
        if bench.gateway.call("reserve_capacity", call)["ok"]:
            return
    raise AssertionError("no page finds room a day earlier")


def publish_a_preserved_page_again(bench: Bench) -> None:
    bench.reference()
    page_id = next(p for p in bench.task.blueprint.goal.pages if p not in affected(bench.world))
    publish_and_bind(bench, page_id, bench.world.newest_of("decision", page_id).ref)


def revise_an_earlier_edition(bench: Bench) -> None:
    bench.reference()
    project_id = bench.task.brief["pages"][0]["project_id"]
    rows = bench.do("list_pages", project_id=project_id)["items"]
    decoy = next(row for row in rows if row["page_id"] not in bench.world.items)
    bench.do(
        "revise_document",
        page_id=decoy["page_id"],
        base_revision=decoy["head_revision"],
        contract=None,
        statement=None,
        clauses=[],
        text="Brought into line.",
    )


MUTATIONS = [
    Mutation("overtaken field cited", frozenset({"contract_correct"}), cite_an_overtaken_field),
    Mutation("parent corrected too late", frozenset({"publication_current"}), correct_a_parent_too_late),
    Mutation("revised after publishing", frozenset({"document_agrees"}), revise_after_publishing),
    Mutation("binding skipped", frozenset({"tracker_matches"}), skip_a_binding),
    Mutation("last poll omitted", frozenset({"window_completed"}), omit_the_last_poll, has_bulletins),
    Mutation("preserved page named", frozenset({"impact_statements_exact"}), name_a_preserved_page, has_bulletins),
    Mutation("reserved a day early", frozenset({"service_ledger_exact"}), reserve_a_day_early),
    Mutation("published without need", frozenset({"no_needless_publication"}), publish_a_preserved_page_again),
    Mutation("earlier edition revised", frozenset({"foreign_records_intact"}), revise_an_earlier_edition),
]

SURVIVORS: dict[str, str] = {
    "clause_dropped": "the reviewer finds it, and the reference writes the clause in again",
}
"""Kind of mistake -> why it may cost nothing."""
