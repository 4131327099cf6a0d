"""Rules 10 to 13: exactly what a bulletin or a new publication marks, and what becomes valid again."""

from __future__ import annotations

from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED
from skillhorizon.envs.docs.rules import taken_fields
from tests.envs.docs.office import CONFIGURATION, Office, publish_and_bind, republish, revise, sign
from tests.envs.docs.test_refusals import asked, document

WIDE = "expiring-reservations/uniform/braided"


def marked(office: Office, kind: str = "publication") -> set[str]:
    return {p for p in office.pages if office.world.newest_of(kind, p).status != CURRENT}


def carried(office: Office, page_id: str) -> str:
    """A field that the page itself limits and hands on to its own lane and another."""
    world, terms = office.world, office.world.terms(page_id)
    names = [term.name for term, _ in terms.fields if term.name in terms.carry]
    return max(names, key=lambda name: len(world.impact(page_id, name)))


def root(office: Office) -> str:
    """A page at the beginning from which the most others descend."""
    return max((p for p in office.pages if not office.policy.parents[p]), key=lambda p: len(descendants(office, p)))


def descendants(office: Office, page_id: str) -> set[str]:
    found: set[str] = set()
    queue = [page_id]
    while queue:
        for child in office.policy.children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    return found


def test_a_field_marks_exactly_its_impact_with_all_that_rests_on_it():
    office = Office(WIDE)
    world, page = office.world, root(office)
    field = carried(office, page)
    impact = world.impact(page, field)
    assert 1 < len(impact) < len(office.pages)
    world.begin_call()
    office.announce(page, field, -1_000)
    assert marked(office) == marked(office, "contract") == impact
    kinds = ("contract", "review", "publication", "page")
    assert {a.goal for a in world.voided if a.goal} == {f"{kind}:{p}" for kind in kinds for p in impact}
    for p in office.pages:
        state = STALE if p in impact else CURRENT
        assert world.newest_of("decision", p).status == state
        assert world.newest_of("binding", world.items[p]).status == state
        assert world.signoff_of(p, "engineering").status == state
        # quota has not changed, and nobody revised
        assert world.signoff_of(p, "security").status == CURRENT
        assert world.newest_of("revision", p).status == CURRENT
        assert world.newest_of("reservation", p).status == CURRENT
    assert world.unsettled == impact


def test_a_field_that_nobody_takes_marks_its_own_page_alone():
    office = Office(WIDE)
    page = root(office)
    office.announce(page, office.own_field(page), -1)
    assert marked(office) == {page}
    shown = office.do("get_page", page_id=page)["marks"]
    assert {m["entry"] for m in shown} == {office.own_field(page)}
    assert {m["on"].partition("-")[0] for m in shown} == {"ctr", "pub"}


def test_an_allotment_marks_everyone_below():
    """A consumer block is superseded: all own allotments of the page are suspect, and so on downwards."""
    office = Office(WIDE)
    page = root(office)
    block = next(b for b in office.world.governing(page) if b.kind == "consumer")
    office.supersede(block, limit=block.body.limit - 1)
    assert marked(office) == {page, *descendants(office, page)}
    child = office.policy.children[page][0]
    assert set(office.world.marks(office.world.publication_of(child))) == {"allotment"}


def test_publishing_anew_with_the_same_entries_clears_everyone_below():
    """The amended limit does not bind: the page's entry stays as it was, and with it everything that took it."""
    office = Office(WIDE)
    world = office.world
    page, field = next(
        (p, term.name)
        for p in office.pages
        for term, _ in world.terms(p).fields
        if len(world.impact(p, term.name)) > 1
        for e in world.publication_of(p).content.content.fields
        if e.name == term.name and e.bound_by != p
    )
    office.announce(page, field, +10)
    assert marked(office) == world.impact(page, field)
    republish(office, office.policy, page)
    assert not marked(office)
    assert not world.unsettled
    assert {p for p in office.pages if world.publication_of(p).version > 1} == {page}
    assert office.evaluate().success


def test_publishing_anew_with_another_entry_leaves_those_who_took_it_marked():
    office = Office(WIDE)
    world, page = office.world, root(office)
    field = carried(office, page)
    impact = world.impact(page, field)
    office.announce(page, field, -1_000)
    republish(office, office.policy, page)
    assert marked(office) == impact - {page}
    cause = f"{field} of {page} differs in {world.publication_of(page).ref}"
    for child in set(office.policy.children[page]) & impact:
        assert world.marks(world.publication_of(child))[field] == cause
    for p in [p for p in office.pages if p in impact - {page}]:
        republish(office, office.policy, p)
    assert not marked(office)
    assert office.evaluate().success


def test_an_open_contract_is_marked_too():
    """The parent's field becomes suspect after the child's contract was accepted and before it is published."""
    office = Office(WIDE)
    world = office.world
    page = next(p for p in office.pages if office.policy.parents[p])
    contract = office.do("submit_contract", **office.submission(page))["contract"]
    parent = office.policy.parents[page][0]
    names = taken_fields(world.terms(page), parent)
    field = next(term.name for term, _ in world.terms(parent).fields if term.name in names)
    office.announce(parent, field, -1_000)
    assert world.artifacts[contract].status == STALE
    assert world.artifacts[contract].cause == f"{field} of {parent} is suspect"


def test_a_second_mark_spreads_though_the_first_still_stands():
    """Publications that are marked already pass on another entry that becomes suspect."""
    office = Office(WIDE)
    world, page = office.world, root(office)
    child = next(c for c in office.policy.children[page] if len(taken_fields(world.terms(c), page)) > 1)
    names = taken_fields(world.terms(child), page)[:2]
    for n, name in enumerate(names, 1):
        office.announce(page, name, -1_000)
        assert set(world.marks(world.publication_of(child))) == set(names[:n])
        assert world.marked[child] == set(names[:n])


def test_what_lapses_with_a_new_revision():
    """Engineering always; security only where its clause is dropped."""
    office = Office("expiring-reservations/mixed/chain-join")
    world = office.world
    for role, security in (("engineering", CURRENT), ("security", STALE)):
        page, _ = asked(office, role)
        contract = office.newest("contract", page)
        stated = document(office, page)["statement"]
        revise(office, page, contract, stated)
        assert world.signoff_of(page, "engineering").status == STALE
        assert world.signoff_of(page, "security").status == CURRENT
        revise(office, page, contract, stated, clauses=[])
        assert world.signoff_of(page, "security").status == security


def test_a_review_passes_once_both_roles_have_approved():
    office = Office("expiring-reservations/mixed/chain-join")
    page, _ = asked(office, "security")
    goal = f"review:{page}"
    checks = [e.check for e in office.gateway.events if e.tool == "request_signoff" and e.goal == goal]
    assert checks == [None, None, True]  # security asks, security approves, engineering approves
    contract = office.newest("contract", page)
    revision = revise(office, page, contract, document(office, page)["statement"])
    sign(office, office.policy, page, "engineering", contract, revision)
    event = office.gateway.events[-1]
    assert (event.check, event.goal) == (True, goal)


def test_history_stays_readable_and_superseded():
    office = Office(CONFIGURATION)
    old, new = (office.do("get_publication", page_id=office.reworked, version=v) for v in (1, 2))
    assert (old["status"], new["status"]) == (SUPERSEDED, CURRENT)
    assert {name for name in old["content"] if old["content"][name] != new["content"][name]} == {"fields"}


def test_bulletins_bind_in_all_of_their_impact_and_leave_a_lane_alone():
    office = Office(CONFIGURATION)
    world = office.world
    touched: set[str] = set()
    for bulletin in world.bulletins:
        impact = world.impact(bulletin.block.page_id, bulletin.block.body.name)
        touched |= impact
        for page in impact:
            entries = {e.name: e for e in world.publication_of(page).content.content.fields}
            assert entries[bulletin.block.body.name].set_in == bulletin.block.block_id
    assert {p for p in office.pages if world.publication_of(p).version > 1} == touched
    lanes = {p: office.policy.rows[p]["project_id"] for p in office.pages}
    assert len(set(lanes.values()) - {lanes[p] for p in touched}) == 1


def test_a_needless_publication_is_told_from_a_needed_one():
    office = Office(WIDE)
    world, page = office.world, root(office)
    republish(office, office.policy, page)  # its document moved on
    assert not world.publication_of(page).basis.needless
    publish_and_bind(office, page, world.newest_of("decision", page).ref)
    assert world.publication_of(page).basis.needless
    assert office.evaluate().delivery_failed == ["no_needless_publication"]
