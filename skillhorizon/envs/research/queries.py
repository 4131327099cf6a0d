"""Queries of the review office. Each list has a declared total order; works of rounds not opened yet are unknown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Items, tool
from skillhorizon.core.world import Artifact
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.records import Contribution, Identity, Reviewer, Work
from skillhorizon.envs.research.seed import AliasKind, Citation, PaperEvent
from skillhorizon.envs.research.world import ResearchWorld

WorkId = Annotated[Id, Meta(description="A work's id.")]
RoundId = Annotated[Id, Meta(description="A round's id.")]
SectionId = Annotated[Id, Meta(description="A section's id.")]
InstrumentId = Annotated[Id, Meta(description="An instrument's id.")]
Printed = Annotated[str, Meta(min_length=1, max_length=120, description="A name as a work prints it.")]
MadeKind = Literal["identity", "study", "screening", "annotation", "calibration", "interpretation", "contribution",
                   "synthesis", "review"]  # fmt: skip


@tool("query")
def read_protocol(world: ResearchWorld) -> dict[str, Any]:
    """Read the protocol: constants, reference instrument, sections (metric, null, populations, designs), rounds."""
    return {
        **asdict(world.protocol),
        "z_squared": "3.8416",
        "missing_limit_percent": rules.MISSING_LIMIT,
        "sections": world.sections,
        "rounds": [
            {
                "round_id": r,
                "ordinal": n,
                "state": world.tables["rounds"][r].state,
                "review": _newest(world, "review", r),
            }
            for n, r in enumerate(world.rounds, 1)
        ],
    }


def _newest(world: ResearchWorld, kind: str, subject: str) -> str | None:
    made = world.newest_of(kind, subject)
    return made.ref if made else None


@tool("query", page=10, order="work id")
def list_round_works(world: ResearchWorld, round_id: RoundId) -> Items:
    """List the works of a round that has been opened: section, role, kind, day, title, whether acquired."""
    listed = world.round(round_id)
    if listed.state == "waiting":
        raise Rejected("wrong_state", f"{round_id} has not been opened", round_id=round_id)

    def render(work_id: str) -> dict[str, Any]:
        work: Work = world.tables["works"][work_id]
        return {
            "work_id": work_id,
            "section_id": work.section_id,
            "role": work.role,
            "kind": work.kind,
            "day": work.day,
            "title": world.get("papers", work.paper_id).title,
            "acquired": work_id in world.tables["receipts"],
        }

    return Items(listed.works, render)


def _text(world: ResearchWorld, work_id: str) -> Work:
    """The work, if its text has been obtained."""
    work = world.work(work_id)
    if work_id not in world.tables["receipts"]:
        raise Rejected("not_acquired", f"the text of {work_id} has not been obtained", work_id=work_id)
    return work


@tool("query", refusals=("not_acquired",))
def read_work(world: ResearchWorld, work_id: WorkId) -> dict[str, Any]:
    """Read an acquired work: header, identity as printed, conduct, authors, abstract, methods, baseline."""
    work = _text(world, work_id)
    paper = world.get("papers", work.paper_id)
    header = {name: value for name, value in asdict(work).items() if name not in ("version", "conduct")}
    return {
        **header,
        "work": work.ref,
        "title": paper.title,
        "conduct": work.conduct,
        "venue": world.get("venues", paper.venue_id).name,
        "authors": [_author(world, a) for a in world.catalogue.authors_of[work.paper_id]],
    }


def _author(world: ResearchWorld, author_id: str) -> dict[str, Any]:
    return {"author_id": author_id, "name": world.get("authors", author_id).name}


@tool("query", page=20, order="row", refusals=("not_acquired",))
def read_outcomes(world: ResearchWorld, work_id: WorkId) -> Items:
    """Read the outcome rows of an acquired work; of a link, the two scales measured on one sample."""
    work = _text(world, work_id)
    return Items(world.tables["outcomes"][work_id].rows, extra={"work": work.ref})


@tool("query", page=20, order="day, then event id")
def list_publication_events(world: ResearchWorld, work_id: WorkId) -> Items:
    """List what happened to a work's paper: posted, published, indexed, corrected, retracted, withdrawn."""
    events = world.events_of(world.work(work_id).paper_id)

    def render(event: PaperEvent) -> dict[str, Any]:
        return {"event_id": event.event_id, "day": event.day, "kind": event.kind}

    return Items(events, render)


@tool("query", page=20, order="citing, then cited paper")
def list_citations(world: ResearchWorld, work_id: WorkId) -> Items:
    """List the citations of a work's paper, either way, with the other end's work where this review has listed it."""
    work = world.work(work_id)

    def render(citation: Citation) -> dict[str, Any]:
        other = citation.cited if citation.citing == work.paper_id else citation.citing
        found = world.work_of.get(other)
        known = found is not None and world.tables["rounds"][world.tables["works"][found].round_id].state != "waiting"
        return {**asdict(citation), "other_work_id": found if known else None}

    return Items(world.citations_of(work.paper_id), render)


@tool("query")
def get_registration(world: ResearchWorld, registry_id: Id) -> dict[str, Any]:
    """Read a registration: the current id (another one's if it was merged), cohort, enrolment, outcomes."""
    found: dict[str, Any] = asdict(world.get("registrations", registry_id))
    return found


@tool("query")
def get_instrument(world: ResearchWorld, instrument_id: InstrumentId) -> dict[str, Any]:
    """Read an instrument: whether higher is better or worse, and its units with their factors to points."""
    found: dict[str, Any] = asdict(world.get("instruments", instrument_id))
    return found


@tool("query", page=10, order="id")
def lookup_alias(world: ResearchWorld, kind: AliasKind, printed: Printed) -> Items:
    """Look up a printed name: every cohort (with its enrolment windows) or instrument that it may mean."""

    def render(identity: str) -> dict[str, Any]:
        if kind == "instrument":
            return {"instrument_id": identity, "name": world.get("instruments", identity).name}
        cohort = world.get("cohorts", identity)
        return {"cohort_id": identity, "name": cohort.name, "windows": cohort.windows}

    return Items(world.matches(kind, printed), render)


@tool("query", page=10, order="work id")
def find_reports(world: ResearchWorld, cohort_id: Id | None = None, registry_id: Id | None = None) -> Items:
    """Find the works that have been declared under a cohort or a registry key, with keys, study and its primary."""
    found = {w for key in (cohort_id, registry_id) if key for w in world.declared.get(key, ())}

    def render(work_id: str) -> dict[str, Any]:
        identity = world.about("identity", work_id)
        assert identity is not None
        content: Identity = identity.content
        work: Work = world.tables["works"][work_id]
        primary = world.primary_of(content.study_id)
        return {**asdict(content), "kind": work.kind, "day": work.day, "enrolled": work.enrolled, "primary": primary}

    return Items(sorted(found), render)


@tool("query", page=10, order="author id")
def list_reviewers(world: ResearchWorld, round_id: RoundId) -> Items:
    """List the reviewers of a round: quota, and what is left of it."""
    world.round(round_id)
    ledger = world.ledgers["reviewers"]

    def render(reviewer: Reviewer) -> dict[str, Any]:
        return {
            **_author(world, reviewer.author_id),
            "quota": reviewer.quota,
            "left": ledger.free(f"{round_id}/{reviewer.author_id}"),
        }

    return Items(world.panels[round_id], render)


@tool("query", page=20, order="author id")
def list_coauthors(world: ResearchWorld, author_id: Id) -> Items:
    """List everyone who shares a paper of the catalogue with an author."""
    world.get("authors", author_id)
    return Items(world.catalogue.coauthors[author_id], lambda a: _author(world, a))


@tool("query", page=20, order="work id")
def list_works(
    world: ResearchWorld, status: Literal["open", "linked", "excluded", "contributed", "calibrating"]
) -> Items:
    """List the works of all opened rounds that stand so: open ones are not disposed of yet."""

    def render(work_id: str) -> dict[str, Any]:
        work: Work = world.tables["works"][work_id]
        return {"work_id": work_id, "round_id": work.round_id, "section_id": work.section_id, "role": work.role}

    return Items(world.works[status], render)


@tool("query", page=10, order="id")
def list_calibrations(
    world: ResearchWorld, instrument_id: InstrumentId, state: Literal["current", "stale"] | None = None
) -> Items:
    """List the newest calibrations from an instrument, of all sections: round, routes, populations, map, depth."""
    world.get("instruments", instrument_id)
    made = (world.newest[i] for i in world.calibrations_of.get(instrument_id, ()))
    return Items([a for a in made if state in (None, a.status)], calibration_shown)


def calibration_shown(artifact: Artifact) -> dict[str, Any]:
    return {**asdict(artifact.content), "calibration": artifact.ref, "status": artifact.status}


@tool("query", page=20, order="id")
def list_contributions(
    world: ResearchWorld, section_id: SectionId, state: Literal["current", "stale", "withdrawn"] = "current"
) -> Items:
    """List the newest contributions to a section in one state: study, report, effect, variance."""
    world.section(section_id)

    def render(identity: str) -> dict[str, Any]:
        artifact = world.newest[identity]
        content: Contribution = artifact.content
        return {
            "contribution": artifact.ref,
            "study": content.study,
            "work_id": content.work_id,
            "effect": content.effect,
            "variance": content.variance,
        }

    return Items(world.contributions[section_id, state], render)


@tool("query", page=20, order="depth, then id")
def list_stale(world: ResearchWorld, kind: MadeKind) -> Items:
    """List the stale artifacts of a kind, with the notice that caused it; calibrations come after their parents."""
    made = [world.artifacts[ref] for ref in world.stale(kind)]
    depth = {a.ref: a.content.depth if kind == "calibration" else 0 for a in made}

    def render(artifact: Artifact) -> dict[str, Any]:
        return {
            "ref": artifact.ref,
            "subject": artifact.subject,
            "depth": depth[artifact.ref],
            "notice_id": world.stale_by[kind][artifact.ref],
            "cause": artifact.cause,
        }

    return Items(sorted(made, key=lambda a: (depth[a.ref], a.id)), render)
