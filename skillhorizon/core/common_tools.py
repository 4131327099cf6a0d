"""The tools that every environment has: brief, skills, notices, artifacts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw

from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.tools import Id, Items, Name, Ref, Tool, tool
from skillhorizon.core.world import Artifact, World

Path = Annotated[str, Meta(min_length=1, max_length=120, description="A file of the package, e.g. SKILL.md.")]


@tool("query")
def read_task_brief(world: World) -> dict[str, Any]:
    """Read the task: what is asked for, which objects it concerns, which skills help."""
    return world.brief


@tool("query", page=20, order="sequence")
def list_notices(world: World, since: Annotated[int, Meta(ge=0)] = 0) -> Items:
    """List public notices whose sequence is greater than `since`. Changes to the business are announced here."""
    return Items(world.notices[since:])


@tool("query")
def get_artifact(world: World, ref: Ref) -> dict[str, Any]:
    """Read one version of an artifact: content, inputs, status, and the cause if it is no longer current."""
    return world.artifact(ref).public()


def _summary(artifact: Artifact) -> dict[str, Any]:
    return {"ref": artifact.ref, "kind": artifact.kind, "subject": artifact.subject, "status": artifact.status}


@tool("query", page=10, order="id, then version")
def list_artifacts(
    world: World,
    kind: Name | None = None,
    subject_id: Id | None = None,
    status: Literal["current", "superseded", "stale", "withdrawn"] | None = None,
) -> Items:
    """List versions of artifacts, of one kind, about one subject or in one status."""
    return Items(world.list_artifacts(kind, subject_id, status), render=_summary)


@tool("declaration")
def begin_skill(world: World, skill: Name) -> dict[str, Any]:
    """Declare that you begin to work by a skill. Free of charge; the answer is a label and changes nothing."""
    world.skill_runs += 1
    return {"skill_run_id": f"run-{world.skill_runs}", "skill": skill}


@tool("declaration")
def finish_skill(world: World, skill: Name, outcome: Literal["completed", "abandoned", "blocked"]) -> dict[str, Any]:
    """Declare the end of the work by a skill. A claim of yours, not a certificate."""
    return {"skill": skill, "outcome": outcome}


def skill_tools(library: SkillLibrary) -> dict[str, Tool]:
    """The three tools that read and run the packages of one environment."""

    @tool("skill")
    def list_skills(world: World) -> dict[str, Any]:
        """List the skills: name, and what each is for."""
        return {"items": library.catalog()}

    @tool("skill")
    def read_skill_file(world: World, skill: Name, path: Path = "SKILL.md") -> dict[str, Any]:
        """Read a file of a skill's package: SKILL.md, a reference, or a script's source."""
        return {"skill": skill, "path": path, "text": library[skill].read(path)}

    @tool("script")
    def run_skill_script(world: World, skill: Name, script: Name, input: dict[str, Any]) -> dict[str, Any]:
        """Run a script of a skill over the input that you hand it. It sees nothing else of the business."""
        return {"output": Raw(library[skill].encoded(script, input))}

    return {t.name: t for t in (list_skills, read_skill_file, run_skill_script)}
