"""The smallest environment that uses all of core: a mail room that quotes parcels, closes routes, then the depot."""

from __future__ import annotations

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.tools import toolbox
from tests.toy import tools
from tests.toy.build import FAMILIES, build, configurations, seed_tables
from tests.toy.goals import scoring
from tests.toy.policy import ToyPolicy, confusions
from tests.toy.world import SKILLS, ToyWorld

ENVIRONMENT = Environment(
    name="toy",
    title="ToyOps",
    families=FAMILIES,
    configurations=configurations,
    world=ToyWorld,
    own_tools=toolbox(tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=ToyPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=lambda config: 100,
    sizes=(4, 10_000),
    seed_tables=seed_tables,
    facts=Facts({"rates": None, "zones": "zones"}, ("family", "pattern"), "parcels"),
)
