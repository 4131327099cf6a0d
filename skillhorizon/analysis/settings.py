"""What Tables 7 and 8 say of this project: how its agents are set, and what its evaluators ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import pandas as pd

from skillhorizon.core.environment import Environment
from skillhorizon.core.evaluation import Predicate


def table07(profiles: Mapping[str, msgspec.Struct]) -> pd.DataFrame:
    """Table 7 of simulated agents: in place of a model's reasoning the rates at which each fails, those that it has."""
    rows = []
    for name, profile in profiles.items():
        rates = {k: v for k, v in msgspec.structs.asdict(profile).items() if not _is_default(profile, k, v)}
        words = "; ".join(f"{key} {value:g}" for key, value in rates.items()) or "no weakness"
        rows.append((name, "simulated agent", words, None))
    return pd.DataFrame(rows, columns=["model", "model_identifier", "reasoning_setting", "max_output_tokens"])


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


def _is_default(profile: msgspec.Struct, name: str, value: Any) -> bool:
    defaults = {f.name: f.default for f in msgspec.structs.fields(type(profile))}
    return bool(defaults[name] == value)


def _words(predicates: Iterable[Predicate]) -> str:
    """The first line of each predicate's docstring, else its name."""
    found = []
    for predicate in predicates:
        first = (predicate.test.__doc__ or predicate.name.replace("_", " ")).strip().splitlines()[0]
        found.append(first.rstrip("."))
    return "; ".join(found)
