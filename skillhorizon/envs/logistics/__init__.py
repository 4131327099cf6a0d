"""LogisticsOps: bookings, baggage and freight are brought over the legs of a network, in custody and on time."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.logistics import queries, tools
from skillhorizon.envs.logistics.build import FAMILIES, build, configurations
from skillhorizon.envs.logistics.goals import scoring
from skillhorizon.envs.logistics.mistakes import confusions
from skillhorizon.envs.logistics.policy import LogisticsPolicy
from skillhorizon.envs.logistics.rules import SKILLS
from skillhorizon.envs.logistics.seed import seed_tables
from skillhorizon.envs.logistics.world import LogisticsWorld

_COHORTS = {"64K": 4, "128K": 8, "256K": 16, "512K": 33, "1M": 66, "2M": 132, "4M": 256}


def _guess(config: TaskConfig) -> int:
    """Cohorts at which calibration begins."""
    return _COHORTS[config.band]


ENVIRONMENT = Environment(
    name="logistics",
    title="LogisticsOps",
    families=tuple(FAMILIES),
    configurations=configurations,
    world=LogisticsWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=LogisticsPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=_guess,
    sizes=(3, 320),
    seed_tables=seed_tables,
    facts=Facts(
        resources={"passengers": "passengers", "flights": "flights", "bookings": "bookings"},
        fixed_factors=("family", "topology", "legs per route"),
        knob="cohorts of four bookings; where their step is too coarse, the next planned seed",
    ),
)
