"""Queries of the portfolio office. Each list has a declared total order."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Items, tool
from skillhorizon.envs.docs.records import Member, Project, TrackerItem
from skillhorizon.envs.docs.world import ROLES, DocsWorld

PageId = Annotated[Id, Meta(description="A page's id.")]
Version = Annotated[int, Meta(ge=1, le=1_000_000, description="A version; by default the newest.")]


# -- queries ---------------------------------------------------------------------------------------------------------


@tool("query", page=25, order="page id")
def list_pages(world: DocsWorld, project_id: Id) -> Items:
    """List the pages of a project, requested ones and earlier editions: kind, title, head revision."""
    world.get("projects", project_id)
    ids = sorted((*world.standing.pages_of.get(project_id, ()), *world.pages_of.get(project_id, ())))

    def render(page_id: str) -> dict[str, Any]:
        page = world.page(page_id)
        return {**asdict(page), "head_revision": world.head_revision(page)}

    return Items(ids, render)


@tool("query")
def get_page(world: DocsWorld, page_id: PageId) -> dict[str, Any]:
    """Read a page: team, head revision, newest contract, reservation and publication, and the marks on them."""
    page = world.page(page_id)
    project: Project = world.get("projects", page.project_id)
    made = {kind: world.newest_of(kind, page_id) for kind in ("contract", "reservation", "publication")}
    marks = [
        {"on": artifact.ref, "entry": entry, "cause": cause}
        for kind in ("contract", "publication")
        if (artifact := made[kind]) is not None
        for entry, cause in sorted(world.marks(artifact).items())
    ]
    return {
        **asdict(page),
        "team_id": project.team_id,
        "tracker_id": project.tracker_id,
        "head_revision": world.head_revision(page),
        **{kind: artifact and artifact.ref for kind, artifact in made.items()},
        "marks": marks,
    }


@tool("query", page=8, order="order")
def list_blocks(world: DocsWorld, page_id: PageId) -> Items:
    """List the blocks of a page, of every state."""
    world.page(page_id)
    ids = world.blocks_of.get(page_id) or world.standing.blocks_of.get(page_id, [])
    return Items(ids, lambda block_id: world.get("blocks", block_id))


@tool("query", page=25, order="link id")
def list_dependencies(world: DocsWorld, page_id: PageId) -> Items:
    """List the links that go out from a page, active and retired."""
    world.page(page_id)
    ids = world.links_from.get(page_id) or world.standing.links_from.get(page_id, [])
    return Items(ids, lambda link_id: world.get("page_links", link_id))


@tool("query", page=25, order="grant id")
def list_grants(world: DocsWorld, page_id: PageId) -> Items:
    """List the grants that a page owns, active and proposed."""
    world.page(page_id)
    return Items([world.tables["grants"][g] for g in world.grants_of.get(page_id, ())])


def _version(world: DocsWorld, kind: str, page_id: str, version: int | None) -> dict[str, Any]:
    world.page(page_id)
    newest = world.newest_of(kind, page_id)
    if newest is None:
        raise Rejected("unknown_id", f"{page_id} has no {kind}", id=page_id)
    artifact = newest if version is None else world.artifact(f"{newest.id}@{version}", kind)
    return {
        kind: artifact.ref,
        "status": artifact.status,
        "marks": sorted(world.marks(artifact)) if artifact.ref == newest.ref else [],
        **asdict(artifact.content),
    }


@tool("query")
def get_contract(world: DocsWorld, page_id: PageId, version: Version | None = None) -> dict[str, Any]:
    """Read a version of a page's contract: content, what it cites, quota digest."""
    return _version(world, "contract", page_id, version)


@tool("query")
def get_publication(world: DocsWorld, page_id: PageId, version: Version | None = None) -> dict[str, Any]:
    """Read a version of a page's publication: contract content, what it cites, and the document that it published."""
    found = _version(world, "publication", page_id, version)
    return {**found, "text": world.artifacts[found["document_revision"]].content.text}


@tool("query", page=25, order="from_day, then reservation id")
def list_reservations(world: DocsWorld, service_id: Id) -> Items:
    """List the reservations of a service, and its capacity on each day of its calendar."""
    service = world.get("services", service_id)

    def render(row: tuple[int, str]) -> dict[str, Any]:
        held = world.held[row[1]]
        return {
            "reservation_id": row[1],
            "team_id": held.team_id,
            "amount": held.amount,
            "from_day": held.from_day,
            "until_day": held.until_day,
        }

    return Items(world.reserved.get(service_id, ()), render, {"service": service})


@tool("query", page=25, order="person id, then role")
def list_reviewers(world: DocsWorld, project_id: Id) -> Items:
    """List the members of a project with role and team, beside the project's own team."""
    project: Project = world.get("projects", project_id)

    def render(member: Member) -> dict[str, Any]:
        person = world.get("people", member.person_id)
        return {"person_id": person.person_id, "role": member.role, "team_id": person.team_id}

    return Items(world.standing.members_of.get(project_id, ()), render, {"team_id": project.team_id})


@tool("query")
def get_review(world: DocsWorld, page_id: PageId) -> dict[str, Any]:
    """Read the newest sign-off of each role on a page, whether it still holds, and the clauses asked for."""
    world.page(page_id)
    made = [s for role in ROLES if (s := world.signoff_of(page_id, role)) is not None]
    return {
        "signoffs": [
            {"signoff": s.ref, "status": s.status, "cause": s.cause, **asdict(s.content)}
            for s in sorted(made, key=lambda s: s.id)
        ],
        "clauses": [
            {"role": s.content.role, "clause": clause}
            for s in made
            if (clause := world.clause_of(page_id, s.content.role)) is not None
        ],
    }


@tool("query")
def get_tracker_item(world: DocsWorld, item_id: Id) -> dict[str, Any]:
    """Read a tracker item: its tracker, and the publication that it names."""
    item: TrackerItem = world.get("tracker_items", item_id)
    binding = world.newest_of("binding", item_id)
    return {
        **asdict(item),
        "binding": binding and {"binding": binding.ref, "status": binding.status, **asdict(binding.content)},
    }
