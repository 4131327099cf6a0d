"""Tasks: a configuration, a seed and a size, from which everything else is built again, and what was measured."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from skillhorizon.core.composition import TaskGraph
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway, Role
from skillhorizon.core.journal import Journal
from skillhorizon.core.serial import digest
from skillhorizon.core.world import Record, Update, World

if TYPE_CHECKING:
    from skillhorizon.core.environment import Environment

FORMAT = 1
BUDGET_FACTOR = 0.5
"""lambda of the paper's budget B = R + ceil(lambda A)."""


class TaskConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One configuration of an environment in a band. ``options`` are its further fixed factors (paper Table 4)."""

    env: str
    family: str
    variant: str
    pattern: str
    band: str
    options: dict[str, int | str] = {}

    @property
    def id(self) -> str:
        return "/".join(part for part in (self.family, self.variant, self.pattern) if part)


class Blueprint(NamedTuple):
    """What a builder makes of a configuration, a seed and a size.

    ``goal`` is the private side of scoring, ``scale`` the work counts by the names of the paper's Table 6.
    """

    tables: Mapping[str, Mapping[str, Record]]
    updates: tuple[Update, ...]
    graph: TaskGraph
    brief: dict[str, Any]
    goal: Any
    scale: dict[str, int]


class Measures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the reference run: ``workload`` L in tokens, ``R`` tool calls, ``A`` business calls (paper 3.1)."""

    workload: int
    R: int
    A: int


class TaskFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task on disk: the recipe, the measures, and the digest that the rebuilt task must have."""

    format: int
    config: TaskConfig
    seed: int
    size: int
    measures: Measures | None
    digest: str


class Task:
    """One task. ``open`` gives a Gateway on a fresh world; ``budget`` is B for lambda = 1/2."""

    def __init__(
        self, environment: Environment, config: TaskConfig, seed: int, size: int, measures: Measures | None = None
    ) -> None:
        self.environment = environment
        self.config = config
        self.seed = seed
        self.size = size
        self.measures = measures

    @property
    def id(self) -> str:
        return f"{self.config.env}-{self.config.band}-{self.config.id.replace('/', '.')}-{self.seed}-{self.size}"

    @cached_property
    def blueprint(self) -> Blueprint:
        blueprint = self.environment.builder(self.config, self.seed, self.size)
        self.environment.scoring.check_declaration(blueprint.goal)
        return blueprint

    @property
    def graph(self) -> TaskGraph:
        return self.blueprint.graph

    @property
    def brief(self) -> dict[str, Any]:
        """The public task: what is asked for, and the skills."""
        return {**self.blueprint.brief, "skills": [s["name"] for s in self.environment.skills.catalog()]}

    @property
    def workload(self) -> int:
        return self._measured().workload

    @property
    def budget(self) -> int:
        return self.budget_at(BUDGET_FACTOR)

    def budget_at(self, factor: float) -> int:
        """B = R + ceil(factor * A), in charged attempts."""
        measures = self._measured()
        return measures.R + math.ceil(Fraction(str(factor)) * measures.A)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the recipe, everything that was built from it, and the measures (they set the budget)."""
        b = self.blueprint
        return digest(
            FORMAT,
            self.config,
            self.seed,
            self.size,
            self.measures,
            b.tables,
            b.updates,
            b.brief,
            b.goal,
            b.scale,
            b.graph.canonical_digest(),
        )

    def world(self) -> World:
        """A fresh world. Agents never get it; ``open`` puts the Gateway before it."""
        environment = self.environment
        return environment.world(self.blueprint.tables, self.blueprint.updates, self.brief, environment.seed_tables())

    def open(self, budget: int | None = None, journal: Journal | None = None, role: Role = "full") -> Gateway:
        """A Gateway on a fresh world; the task's own budget where it has been measured and none is given."""
        if budget is None and self.measures is not None:
            budget = self.budget
        return Gateway(self.world(), self.environment.tools, budget, journal, role)

    def open_unlimited(self) -> Gateway:
        return Gateway(self.world(), self.environment.tools)

    def file(self) -> TaskFile:
        return TaskFile(FORMAT, self.config, self.seed, self.size, self.measures, self.digest)

    def save(self, path: str | Path) -> None:
        """Write the task file (JSON) in one step; refuses to overwrite (``InputError``)."""
        path = Path(path)
        if path.exists():
            raise InputError(f"{path} exists already")
        temporary = path.with_name(path.name + ".tmp")
        try:
            temporary.write_bytes(msgspec.json.format(msgspec.json.encode(self.file()), indent=1) + b"\n")
            os.replace(temporary, path)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror}") from None

    def _measured(self) -> Measures:
        if self.measures is None:
            raise InputError(f"task {self.id} has not been measured; make it with generate()")
        return self.measures


def read_task_file(path: str | Path) -> TaskFile:
    """The recipe in a task file; raises ``InputError`` for anything else."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    return decode_task_file(data, str(path))


def decode_task_file(data: bytes, name: str) -> TaskFile:
    class Head(msgspec.Struct):
        format: int

    try:
        if (found := msgspec.json.decode(data, type=Head).format) != FORMAT:
            raise InputError(f"{name} is a task file of version {found}; this program reads version {FORMAT}")
        return msgspec.json.decode(data, type=TaskFile)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{name} is not a task file ({error})") from None
