"""The parameters of the pipeline (``params.yaml``), typed, and refused with one clear line before any work."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta

from skillhorizon import agents, envs
from skillhorizon.agents.harness import RULES, Rules
from skillhorizon.agents.simulated import PROFILES
from skillhorizon.agents.simulated import Profile as Weaknesses
from skillhorizon.compute import Compute
from skillhorizon.core.bands import BANDS
from skillhorizon.core.errors import InputError
from skillhorizon.core.generation import EVALUATION_SEEDS

Positive = Annotated[int, Meta(ge=1)]
Tasks = Annotated[int, Meta(ge=1, le=1000)]
"""Planned seeds of one band lie in a block of a thousand."""
Rate = Annotated[float, Meta(ge=0, le=1)]
Factor = Annotated[float, Meta(ge=0)]
Seed = Annotated[int, Meta(ge=EVALUATION_SEEDS, le=2**53)]
"""A set is evaluated on, so its seeds stay out of those for development."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is made. Where ``budget_factor`` or ``processes`` is given it overrides the general value.

    tasks   tasks per environment and band
    bands   the workload bands
    """

    tasks: Tasks
    bands: tuple[str, ...]
    budget_factor: Factor | None = None
    processes: Positive | None = None

    def __post_init__(self) -> None:
        if not self.bands or len(set(self.bands)) < len(self.bands):
            raise ValueError("bands must name at least one band, and each once")
        if unknown := [b for b in self.bands if b not in BANDS]:
            raise ValueError(f"unknown band {unknown[0]!r}; the bands are {', '.join(BANDS)}")


class Construct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What concerns the set of one environment alone."""

    first_seed: Seed


class Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How conversations are held, and the simulated agents by name."""

    rules: Rules = RULES
    profiles: dict[str, Weaknesses] = msgspec.field(default_factory=lambda: dict(PROFILES))


class Evaluate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which simulated agents work on the sets, and after which shares of A beyond R their runs are scored on the way.

    Any other agent is evaluated by the notebook itself or by ``runs.evaluate``.
    """

    agents: tuple[str, ...] = tuple(PROFILES)
    prefixes: tuple[Factor, ...] = (0.0, 0.125, 0.25, 0.375, 0.5)

    def __post_init__(self) -> None:
        if len(set(self.agents)) < len(self.agents):
            raise ValueError("evaluate.agents must name each agent once")
        if list(self.prefixes) != sorted(set(self.prefixes)) or not all(map(math.isfinite, self.prefixes)):
            raise ValueError("evaluate.prefixes must be finite and rise")


class Settings(msgspec.Struct, frozen=True):
    """All that the set of one environment depends on, and the number of processes, which changes nothing in it."""

    tasks: int
    bands: tuple[str, ...]
    first_seed: int
    budget_factor: float
    processes: int


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the comparison with MEA runs.

    tasks             tasks per environment and band: the first of each set
    agents            profiles of the simulated executor; the first one has the ablations and the grid too
    auditors          ``scripted``, ``model:<name>``: audited repeatedly, for their flip rates
    slips, recalls    rates of the sensitivity grid, on ``grid_tasks`` tasks per environment of ``grid_band``
    """

    tasks: Tasks = 1
    agents: tuple[str, ...] = ("steady",)
    auditors: tuple[str, ...] = ("scripted",)
    slips: tuple[Rate, ...] = (0.0, 0.02)
    recalls: tuple[Rate, ...] = (1.0,)
    grid_band: str = "64K"
    grid_tasks: Tasks = 1

    def __post_init__(self) -> None:
        if self.grid_band not in BANDS:
            raise ValueError(f"unknown band {self.grid_band!r}; the bands are {', '.join(BANDS)}")
        if not (self.agents and self.slips and self.recalls):
            raise ValueError("a comparison needs at least one profile, one slip rate and one recall rate")


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    profile: str
    profiles: dict[str, Profile]
    environments: tuple[str, ...]
    construct: dict[str, Construct]
    budget_factor: Factor
    processes: Positive | None = None
    mea: Comparison = Comparison()
    agents: Agents = Agents()
    evaluate: Evaluate = Evaluate()
    compute: Compute = Compute()

    def __post_init__(self) -> None:
        self._profile(self.profile)
        factors = [self.budget_factor, *(p.budget_factor for p in self.profiles.values())]
        if not all(math.isfinite(f) for f in factors if f is not None):
            raise ValueError("budget_factor must be finite")
        if not self.environments or len(set(self.environments)) < len(self.environments):
            raise ValueError("environments must name at least one environment, and each once")
        known = envs.names()
        for name in (*self.environments, *self.construct):
            if name not in known:
                raise ValueError(f"unknown environment {name!r}; the environments are {', '.join(known)}")
        for name in self.environments:
            self._construct(name)
        if twice := [name for name in self.agents.profiles if name in agents.AGENTS and name not in PROFILES]:
            raise ValueError(f"agents.profiles cannot redefine {twice[0]!r}")
        for name in self.evaluate.agents:
            if name not in self.agents.profiles:
                raise ValueError(f"evaluate.agents names {name!r}, which agents.profiles does not describe")

    def cores(self, profile: str | None = None) -> int:
        """Processes that work side by side."""
        return self._profile(profile or self.profile).processes or self.processes or _cores()

    def settings(self, environment: str, profile: str | None = None) -> Settings:
        """The settings of one environment under a profile, by default the file's own; raises ``InputError``."""
        try:
            chosen = self._profile(profile or self.profile)
            own = self._construct(environment)
        except ValueError as error:
            raise InputError(str(error)) from None
        factor = self.budget_factor if chosen.budget_factor is None else chosen.budget_factor
        return Settings(chosen.tasks, chosen.bands, own.first_seed, factor, self.cores(profile))

    def _profile(self, name: str) -> Profile:
        if name not in self.profiles:
            raise ValueError(f"unknown profile {name!r}; the profiles are {', '.join(self.profiles)}")
        return self.profiles[name]

    def _construct(self, environment: str) -> Construct:
        if environment not in self.construct:
            raise ValueError(f"construct has no entry for environment {environment!r}")
        return self.construct[environment]


def load(path: str | Path = "params.yaml") -> Params:
    """Read the parameters; raises ``InputError`` for unknown fields, wrong types and unknown names."""
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    try:
        return msgspec.convert(raw, Params)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}") from None


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
