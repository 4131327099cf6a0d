"""FinanceOps: sources are turned into aggregates, stages closed over them, one release delivered."""

from skillhorizon.core.environment import Environment, Facts
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import TaskConfig
from skillhorizon.core.tools import toolbox
from skillhorizon.envs.finance import queries, tools
from skillhorizon.envs.finance.build import FAMILIES, build, configurations
from skillhorizon.envs.finance.goals import scoring
from skillhorizon.envs.finance.mistakes import confusions
from skillhorizon.envs.finance.policy import FinancePolicy
from skillhorizon.envs.finance.rules import SKILLS
from skillhorizon.envs.finance.world import FinanceWorld


def _guess(config: TaskConfig) -> int:
    """Sources a stage at which calibration begins."""
    return 10


ENVIRONMENT = Environment(
    name="finance",
    title="FinanceOps",
    families=FAMILIES,
    configurations=configurations,
    world=FinanceWorld,
    own_tools=toolbox(queries, tools),
    skills=SkillLibrary(SKILLS),
    builder=build,
    policy=FinancePolicy,
    scoring=scoring,
    confusions=confusions,
    guess=_guess,
    sizes=(6, 60),
    facts=Facts(
        resources=dict.fromkeys(("financial sources", "transactions", "identity maps", "invoices", "remittances")),
        fixed_factors=("family", "variant", "number of stages", "seed"),
        knob="sources a stage",
    ),
)
