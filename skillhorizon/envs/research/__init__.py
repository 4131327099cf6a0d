"""ResearchOps: studies are identified, calibrated onto one scale and pooled, round by round, into a living review."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.research import queries, tools
from skillhorizon.envs.research.build import FAMILIES, SCALES, build, configurations
from skillhorizon.envs.research.goals import scoring
from skillhorizon.envs.research.mistakes import confusions
from skillhorizon.envs.research.policy import ResearchPolicy
from skillhorizon.envs.research.rules import SKILLS
from skillhorizon.envs.research.seed import seed_tables
from skillhorizon.envs.research.world import ResearchWorld


def _guess(config: TaskConfig) -> int:
    """Works at which calibration begins."""
    return SCALES[config.band].works[1]


def _narrowed(config: TaskConfig) -> tuple[int, int]:
    """Least and most works of the band (Table 6)."""
    least, _, most = SCALES[config.band].works
    return least, most


ENVIRONMENT = Environment(
    name="research",
    title="ResearchOps",
    families=FAMILIES,
    configurations=configurations,
    world=ResearchWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=ResearchPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=_guess,
    sizes=(SCALES["64K"].works[0], SCALES["4M"].works[2]),
    seed_tables=seed_tables,
    facts=Facts(
        {"papers": "papers", "authors": "authors", "citations": "citations"},
        ("family", "seed", "sections", "rounds", "aliases", "exclusions", "topology"),
        "studies per section, and terminal studies dropped, in one number of works",
    ),
    narrowed=_narrowed,
)
