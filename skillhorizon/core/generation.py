"""From a configuration and a seed to a calibrated, measured, validated task; and the plan of a whole set."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from skillhorizon.core import bands, tokens
from skillhorizon.core.environment import Environment
from skillhorizon.core.errors import InputError
from skillhorizon.core.evaluation import Evaluation
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.policy import Call, drive
from skillhorizon.core.task import Measures, Task, TaskConfig
from skillhorizon.core.trace import Trace

EVALUATION_SEEDS = 1_000_000
"""Seeds of a published set begin here; everything below is for development."""
SEED_STEP = 10_000
"""Distance to the next planned seed of a task, where no size of the knob lands in the target interval."""
_SEEDS_TRIED = 8
_SAMPLE = 8


class ReferenceRun(NamedTuple):
    gateway: Gateway
    trace: Trace
    evaluation: Evaluation


def run_policy(task: Task, rng: random.Random | None = None) -> ReferenceRun:
    """Carry the reference policy out on a fresh world without a budget; with ``rng`` in a random legal order."""
    gateway = task.open_unlimited()

    def perform(call: Call) -> dict[str, object]:
        return gateway.call(call.tool, call.arguments, module=call.module, goal=call.goal)

    drive(task.environment.policy(), perform, rng)
    evaluation = task.environment.scoring.evaluate(gateway.world, task.blueprint.goal)
    return ReferenceRun(gateway, Trace(gateway.events, task.id, gateway.world.artifacts), evaluation)


def generate(environment: Environment, config: TaskConfig, seed: int) -> tuple[Task, ReferenceRun]:
    """The calibrated task of a configuration and seed, with its reference run.

    Where the knob is too coarse for the target interval, the next planned seed is taken; raises ``InputError`` when
    none of a handful lands, and ``RuntimeError`` when the reference does not succeed (a fault of the environment).
    """
    for attempt in range(_SEEDS_TRIED):
        planned = seed + attempt * SEED_STEP
        if seed < EVALUATION_SEEDS:
            planned %= EVALUATION_SEEDS
        found = bands.calibrate(
            partial(_measure, environment, config, planned),
            bands.band(config.band).target,
            environment.guess(config),
            *environment.sizes_of(config),
        )
        if found is not None:
            run = found.result
            measures = Measures(found.workload, run.trace.calls, run.trace.business_calls)
            return Task(environment, config, planned, found.size, measures), run
    raise InputError(f"no size of {environment.name} {config.id} lands in band {config.band} for seed {seed}")


def _measure(environment: Environment, config: TaskConfig, seed: int, size: int) -> tuple[int, ReferenceRun]:
    """Workload of the task's reference run. Far from the target a sample of its calls is precise enough."""
    task = environment.build(config, seed, size)
    run = run_policy(task)
    if not run.evaluation.success:
        failed = [g.goal for g in run.evaluation.local if not g.met][:3] + run.evaluation.delivery_failed
        raise RuntimeError(f"the reference does not succeed on {task.id}: {failed}")
    events = run.trace.raw
    least, most = bands.band(task.config.band).target
    sampled = [text for e in events[::_SAMPLE] for text in (e.call, e.observation)]
    size = sum(len(e.call) + len(e.observation) for e in events)
    estimate = sum(tokens.count_each(sampled)) * size // sum(map(len, sampled))
    if estimate < least * 0.96 or estimate > most * 1.04:
        return estimate, run
    return run.trace.tokens, run


class Planned(NamedTuple):
    env: str
    configuration: str
    band: str
    seed: int


def plan(environment: Environment, band: str, tasks: int, first_seed: int = EVALUATION_SEEDS) -> Iterator[Planned]:
    """The tasks of a set: families in equal shares, the configurations of each in turn, a seed of its own each.

    Independent of any agent's outcome, and a shorter plan is the beginning of a longer one.
    """
    configs = environment.configs(band)
    by_family = {family: [c for c in configs if c.family == family] for family in environment.families}
    block = list(bands.BANDS).index(band) * 1000
    for number in range(tasks):
        family = environment.families[number % len(environment.families)]
        turn = number // len(environment.families)
        config = by_family[family][turn % len(by_family[family])]
        yield Planned(environment.name, config.id, band, first_seed + block + number)
