"""What an environment hands to the rest of the project: one object, the same for all seven."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from skillhorizon.core import common_tools
from skillhorizon.core.errors import InputError
from skillhorizon.core.evaluation import Scoring
from skillhorizon.core.policy import Call, Confusion, Memory, Policy
from skillhorizon.core.skills import SkillLibrary
from skillhorizon.core.task import Blueprint, Task, TaskConfig
from skillhorizon.core.tools import Tool, toolbox
from skillhorizon.core.world import Record, World

Tables = Mapping[str, Mapping[str, Record]]


def _no_tables() -> Tables:
    return {}


class Facts(NamedTuple):
    """What Tables 3 and 4 of the paper say of an environment.

    resources      named resource -> the seed table that holds its records, or None where each task generates them
    fixed_factors  what a configuration fixes
    knob           what calibration turns
    """

    resources: Mapping[str, str | None] = {}
    fixed_factors: tuple[str, ...] = ()
    knob: str = ""


_NO_FACTS = Facts()


@dataclass(frozen=True)
class Environment:
    """One business environment.

    configurations  band -> its task configurations, in the order in which a set draws them
    world           the class of its worlds
    own_tools       its operations and queries; the common tools are added
    builder         (configuration, seed, size) -> Blueprint
    policy          a fresh reference policy
    scoring         its evaluator
    confusions      (call, memory) -> plausible wrong alternatives of a consequential call
    guess           (configuration) -> size at which calibration begins
    sizes           least and greatest size of the knob that calibration turns
    narrowed        (configuration) -> the sizes of its band, where those are fewer
    seed_tables     records that all its tasks share, read-only
    facts           what the tables of the paper say of it
    """

    name: str
    title: str
    families: tuple[str, ...]
    configurations: Callable[[str], Sequence[TaskConfig]]
    world: type[World]
    own_tools: Mapping[str, Tool]
    skills: SkillLibrary
    builder: Callable[[TaskConfig, int, int], Blueprint]
    policy: Callable[[], Policy]
    scoring: Scoring
    confusions: Callable[[Call, Memory], list[Confusion]]
    guess: Callable[[TaskConfig], int]
    sizes: tuple[int, int]
    seed_tables: Callable[[], Tables] = _no_tables
    facts: Facts = _NO_FACTS
    narrowed: Callable[[TaskConfig], tuple[int, int]] | None = None

    def sizes_of(self, config: TaskConfig) -> tuple[int, int]:
        """Least and greatest size at which calibration may build a configuration."""
        return self.narrowed(config) if self.narrowed else self.sizes

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """All tools by name, sorted: the environment's own and the common ones."""
        found = {**toolbox(common_tools), **common_tools.skill_tools(self.skills), **self.own_tools}
        return dict(sorted(found.items()))

    def configs(self, band: str) -> list[TaskConfig]:
        return list(self.configurations(band))

    def config(self, band: str, identity: str) -> TaskConfig:
        """The configuration with this id (``family/variant/pattern``) or ``InputError``."""
        for config in self.configurations(band):
            if config.id == identity:
                return config
        raise InputError(f"{self.name} has no configuration {identity!r} at {band}")

    def build(self, config: TaskConfig, seed: int, size: int | None = None) -> Task:
        """A task as it comes, not calibrated and not measured."""
        return Task(self, config, seed, self.guess(config) if size is None else size)

    def tool_table(self) -> list[dict[str, Any]]:
        """The documentation table: name, kind, whether it is charged and counts into A, description."""
        return [
            {
                "tool": t.name,
                "kind": t.kind,
                "read_only": t.read_only,
                "charged": t.charged,
                "counts_into_A": t.counts_as_business,
                "refusals": list(t.refusals),
                "description": t.description,
            }
            for t in self.tools.values()
        ]
