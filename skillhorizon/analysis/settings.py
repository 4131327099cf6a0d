"""What Tables 7 and 8 say of this project: how its agents are set, and what its evaluators ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pandas as pd

from skillhorizon.core.environment import Environment
from skillhorizon.core.evaluation import Predicate


def table07(agents: Mapping[str, object]) -> pd.DataFrame:
    """Table 7 of this project's agents; a simulated one has no reasoning, so its rates of failure stand there.

    agents   name -> agent; one with a ``profile`` is simulated, and its rates are printed that are not the default
    """
    rows = [(name, *_setting(getattr(agent, "profile", None)), None) for name, agent in agents.items()]
    return pd.DataFrame(rows, columns=["model", "model_identifier", "reasoning_setting", "max_output_tokens"])


def _setting(profile: msgspec.Struct | None) -> tuple[str | None, str | None]:
    if profile is None:
        return None, None
    defaults = {field.name: field.default for field in msgspec.structs.fields(type(profile))}
    rates = [f"{k} {v:g}" for k, v in msgspec.structs.asdict(profile).items() if v != defaults[k]]
    return "simulated agent", "; ".join(rates) or "no weakness"


def table08(environments: Iterable[Environment]) -> pd.DataFrame:
    """Table 8: the local goal of each environment, and every predicate of its evaluator in that one's own words."""
    rows = [
        (
            env.title,
            env.scoring.kind.replace("_", " "),
            _words(env.scoring.local_predicates),
            _words(env.scoring.delivery_predicates),
        )
        for env in environments
    ]
    heads = ["environment", "local_goal_unit", "local_completion", "additional_task_requirements"]
    return pd.DataFrame(rows, columns=heads)


def _words(predicates: Iterable[Predicate]) -> str:
    """The first line of each predicate's docstring, else its name."""
    found = []
    for predicate in predicates:
        first = (predicate.test.__doc__ or predicate.name.replace("_", " ")).strip().splitlines()[0]
        found.append(first.rstrip("."))
    return "; ".join(found)
