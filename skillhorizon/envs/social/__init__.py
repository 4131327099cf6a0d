"""SocialOps: briefs are tested on two arms, reported and deployed, wave by wave; winners feed later briefs."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.social import queries, tools
from skillhorizon.envs.social.build import FAMILIES, build, configurations, guess
from skillhorizon.envs.social.goals import scoring
from skillhorizon.envs.social.mistakes import confusions
from skillhorizon.envs.social.policy import SocialPolicy
from skillhorizon.envs.social.rules import SKILLS
from skillhorizon.envs.social.seed import seed_tables
from skillhorizon.envs.social.world import SocialWorld

_SIZES = (3, 200)
_BRIEFS = {"512K": (16, 18), "1M": (30, 35)}
"""Where the band's posts and business calls (Table 6) leave fewer briefs than its tokens would."""


def _narrowed(config: TaskConfig) -> tuple[int, int]:
    return _BRIEFS.get(config.band, _SIZES)


ENVIRONMENT = Environment(
    name="social",
    title="SocialOps",
    families=FAMILIES,
    configurations=configurations,
    world=SocialWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=SocialPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=guess,
    sizes=_SIZES,
    seed_tables=seed_tables,
    facts=Facts(
        resources={"posts": "posts", "campaigns": "campaigns", "assets": "assets"},
        fixed_factors=("family", "variant", "pattern", "campaigns a wave", "seed"),
        knob="briefs; waves and the size of the last wave follow from them",
    ),
    narrowed=_narrowed,
)
