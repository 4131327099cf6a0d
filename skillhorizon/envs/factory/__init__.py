"""FactoryOps: units are made, graded, reworked and passed on over levels of orders until the last ones ship."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.factory import queries, tools
from skillhorizon.envs.factory.build import FAMILIES, build, configurations, guess
from skillhorizon.envs.factory.goals import scoring
from skillhorizon.envs.factory.mistakes import confusions
from skillhorizon.envs.factory.policy import FactoryPolicy
from skillhorizon.envs.factory.rules import SKILLS
from skillhorizon.envs.factory.seed import seed_tables
from skillhorizon.envs.factory.world import FactoryWorld

ENVIRONMENT = Environment(
    name="factory",
    title="FactoryOps",
    families=FAMILIES,
    configurations=configurations,
    world=FactoryWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=FactoryPolicy,
    scoring=scoring,
    confusions=confusions,
    guess=guess,
    sizes=(4, 300),
    seed_tables=seed_tables,
    facts=Facts(
        resources={"robot cells": "cells", "programs": "programs", "waypoints": "waypoints"},
        fixed_factors=("family", "seed", "levels", "topology", "terminal quantities"),
        knob="orders per level; upstream quantities and raw stock follow from the supply graph",
    ),
)
