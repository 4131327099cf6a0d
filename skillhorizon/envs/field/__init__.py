"""FieldOps: devices of a water mesh are repaired, its services commissioned on their feeds' records."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.field import queries, tools
from skillhorizon.envs.field.build import FAMILIES, build, configurations
from skillhorizon.envs.field.goals import scoring
from skillhorizon.envs.field.mistakes import confusions
from skillhorizon.envs.field.policy import FieldPolicy
from skillhorizon.envs.field.rules import SKILLS
from skillhorizon.envs.field.world import FieldWorld

_SERVICES = {
    "64K": {"sparse": 17, "even": 13, "paired": 12, "cluster": 9, "dense": 9},
    "128K": {"sparse": 31, "even": 26, "paired": 24, "cluster": 18, "dense": 18},
    "256K": {"sparse": 66, "even": 51, "paired": 43, "cluster": 38, "dense": 33},
    "512K": {"sparse": 136, "even": 114, "paired": 103, "cluster": 76, "dense": 78},
    "1M": {"sparse": 360, "even": 281, "paired": 237, "cluster": 213, "dense": 183},
}
_DOUBLINGS = {"2M": 2, "4M": 4}


def _guess(config: TaskConfig) -> int:
    """Services at which calibration begins."""
    return _SERVICES.get(config.band, _SERVICES["1M"])[config.variant] * _DOUBLINGS.get(config.band, 1)


ENVIRONMENT = Environment(
    name="field",
    title="FieldOps",
    families=FAMILIES,
    configurations=configurations,
    world=FieldWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=FieldPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=_guess,
    sizes=(8, 2400),
    facts=Facts(
        resources=dict.fromkeys(("devices", "service networks", "maintenance windows", "crews", "spare parts")),
        fixed_factors=("profile", "scenario"),
        knob="services and devices together",
    ),
)
