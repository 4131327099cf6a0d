"""DocOps: interface contracts between pages are reconciled, reviewed and published, and kept current."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.docs import queries, tools
from skillhorizon.envs.docs.build import FAMILIES, build, configurations
from skillhorizon.envs.docs.goals import scoring
from skillhorizon.envs.docs.mistakes import confusions
from skillhorizon.envs.docs.policy import DocsPolicy
from skillhorizon.envs.docs.rules import SKILLS
from skillhorizon.envs.docs.seed import seed_tables
from skillhorizon.envs.docs.world import DocsWorld

_GUESSES = {
    "64K": (9, 6),
    "128K": (17, 12),
    "256K": (31, 22),
    "512K": (56, 39),
    "1M": (98, 68),
    "2M": (190, 115),
    "4M": (340, 180),
}


def _guess(config: TaskConfig) -> int:
    """Pages at which calibration begins, fewer where bulletins make some of the work be done again."""
    return _GUESSES[config.band][config.family != FAMILIES[0]]


ENVIRONMENT = Environment(
    name="docs",
    title="DocOps",
    families=FAMILIES,
    configurations=configurations,
    world=DocsWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=DocsPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=_guess,
    sizes=(6, 420),
    seed_tables=seed_tables,
    facts=Facts(
        {"projects": "projects", "pages": "pages", "document blocks": "blocks"},
        ("family", "topology", "seed"),
        "pages n; depth follows as ceil(n / 3)",
    ),
)
