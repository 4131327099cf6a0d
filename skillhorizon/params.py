"""The parameters of the pipeline (``params.yaml``), typed, and refused with one clear line before any work."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

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
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_TAKEN = ("mea", "reference")
"""Folders beside those of the agents in ``data/traces``."""


def _repeated(values: Sequence[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value in values[:place]]


def _known(key: str, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    listed = list(known)
    if unknown := [name for name in names if name not in listed]:
        raise ValueError(f"{key}: unknown {kind} {unknown[0]!r}; the {kind}s are {', '.join(listed)}")


def _names(key: str, names: Mapping[str, Any]) -> None:
    """Names become parts of paths, stages and commands."""
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        raise ValueError(f"{key}: {wrong[0]!r} is no name; a name is made of letters, digits, - and _")


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
        if not self.bands or _repeated(self.bands):
            raise ValueError("bands must name at least one band, and each once")
        _known("bands", "band", self.bands, BANDS)


class Construct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What concerns the set of one environment alone."""

    first_seed: Seed


class Agents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How conversations are held, and the simulated agents by name."""

    rules: Rules = RULES
    profiles: dict[str, Weaknesses] = msgspec.field(default_factory=lambda: dict(PROFILES))

    def __post_init__(self) -> None:
        _names("profiles", self.profiles)
        if taken := [n for n in self.profiles if n in _TAKEN or (n in agents.AGENTS and n not in PROFILES)]:
            raise ValueError(f"profiles cannot redefine {taken[0]!r}")


class Evaluate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which simulated agents work on the sets, and after which shares of A beyond R their runs are scored on the way.

    Any other agent is evaluated by the notebook itself or by ``runs.evaluate``.
    """

    agents: tuple[str, ...] = tuple(PROFILES)
    prefixes: tuple[Factor, ...] = (0.0, 0.125, 0.25, 0.375, 0.5)

    def __post_init__(self) -> None:
        if not self.agents or _repeated(self.agents):
            raise ValueError("agents must name at least one agent, and each once")
        if not self.prefixes or list(self.prefixes) != sorted(set(self.prefixes)):
            raise ValueError("prefixes must name at least one share of A, and rise")


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
        _known("grid_band", "band", [self.grid_band], BANDS)
        if wrong := [name for name in self.auditors if name != "scripted" and not re.fullmatch("model:.+", name)]:
            raise ValueError(f"auditors: unknown auditor {wrong[0]!r}; an auditor is scripted or model:<name>")
        listed: dict[str, Sequence[Any]] = {"agents": self.agents, "slips": self.slips, "recalls": self.recalls}
        for name, values in listed.items():
            if not values or _repeated(values):
                raise ValueError(f"{name} must hold at least one value, and each once")


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
        _names("profiles", self.profiles)
        _known("profile", "profile", [self.profile], self.profiles)
        if not self.environments or _repeated(self.environments):
            raise ValueError("environments must name at least one environment, and each once")
        known = envs.names()
        _known("environments", "environment", self.environments, known)
        _known("construct", "environment", self.construct, known)
        for name in self.environments:
            self._construct(name)
        for key, named in (("evaluate.agents", self.evaluate.agents), ("mea.agents", self.mea.agents)):
            _known(key, "profile", named, self.agents.profiles)

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
        _known("profile", "profile", [name], self.profiles)
        return self.profiles[name]

    def _construct(self, environment: str) -> Construct:
        if environment not in self.construct:
            raise ValueError(f"construct has no entry for environment {environment!r}")
        return self.construct[environment]


def load(path: str | Path = "params.yaml") -> Params:
    """Read the parameters; raises ``InputError``, which names the key, for whatever is wrong in them."""
    try:
        raw = yaml.load(Path(path).read_text(encoding="utf-8"), _Strict)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if endless := next(_endless(raw), None):
        raise InputError(f"{path}: {endless}: must be finite")
    try:
        _entries(raw)
        return msgspec.convert(raw, Params)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {_located(str(error))}") from None


class _Strict(yaml.SafeLoader):
    """Of a key that stands twice, YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if twice := _repeated(keys):
            raise yaml.constructor.ConstructorError(None, None, f"key {twice[0]!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _endless(raw: Any, path: str = "") -> Iterator[str]:
    """Paths of the numbers that are infinite or none."""
    if isinstance(raw, float) and not math.isfinite(raw):
        yield path
    if isinstance(raw, dict):
        for key, value in raw.items():
            yield from _endless(value, f"{path}.{key}".lstrip("."))
    if isinstance(raw, list):
        for place, value in enumerate(raw):
            yield from _endless(value, f"{path}[{place}]")


def _entries(raw: Any) -> None:
    """Check the entries of sections with free names one by one: msgspec does not say in which of them it fails."""
    for section, kind in (("profiles", Profile), ("construct", Construct), ("agents.profiles", Weaknesses)):
        place = raw
        for key in section.split("."):
            place = place.get(key) if isinstance(place, dict) else None
        for name, value in place.items() if isinstance(place, dict) else ():
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                said = str(error) if "`$" in str(error) else f"{error} - at `$`"
                raise msgspec.ValidationError(said.replace("`$", f"`$.{section}.{name}", 1)) from None


def _located(message: str) -> str:
    """An error of msgspec, its place first: ``profiles.quick.tasks: Expected `int`, got `str```."""
    said, at, place = message.rpartition(" - at ")
    if not at:
        return message
    path = place.removeprefix("key in ").strip("`").removeprefix("$").removeprefix(".").replace("[...]", "")
    return f"{path}: {said}" if path else said


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
