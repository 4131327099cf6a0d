"""The evaluator under suspicion: targeted mistakes cost exactly what they should, and hardly any mistake is free."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from skillhorizon.core.policy import Call, Memory
from skillhorizon.core.world import SUPERSEDED
from tests.envs.bench import ENVIRONMENTS, Bench, calibrated, configurations, table

CASES = [
    pytest.param(env, configuration, mutation, id=f"{env}-{configuration}-{mutation.name}".replace(" ", "_"))
    for env, configuration in configurations("64K", per_family=2)
    for mutation in table(env).MUTATIONS
]


@pytest.mark.parametrize(("env", "configuration", "mutation"), CASES)
def test_a_targeted_mistake_fails_exactly_its_predicate(env, configuration, mutation):
    task = calibrated(env, "64K", configuration)
    if not mutation.applies(task.config):
        pytest.skip("the mistake needs another family")
    bench = Bench(task)
    mutation.act(bench)
    assert bench.failing() == mutation.fails


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_predicate_has_a_mistake_that_fails_exactly_it(env):
    applied = {
        next(iter(m.fails))
        for e, configuration in configurations("64K", per_family=2)
        if e == env
        for m in table(env).MUTATIONS
        if len(m.fails) == 1 and m.applies(calibrated(env, "64K", configuration).config)
    }
    scoring = calibrated(env, "64K", next(c for e, c in configurations("64K", 1) if e == env)).environment.scoring
    assert applied == {p.name for p in (*scoring.local_predicates, *scoring.delivery_predicates)}


def _survivors(env: str) -> dict[str, str]:
    survivors: dict[str, str] = table(env).SURVIVORS
    return survivors


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_confusions_are_refused_or_turn_a_score(env):
    """One plausible wrong call in a reference run that otherwise goes on: found by a refusal or by the score."""
    survived: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for e, configuration in configurations("64K", per_family=2):
        if e != env:
            continue
        task = calibrated(env, "64K", configuration)
        for kind, step in _confusable(task):
            bench = Bench(task)
            bench.reference(_confuse(task, kind, step))
            tried[kind] += 1
            survived[kind] += bench.refused is None and bench.evaluate().success
    assert sum(tried.values()) >= 60
    unexplained = {k: f"{survived[k]} of {tried[k]}" for k in survived if survived[k] and k not in _survivors(env)}
    assert not unexplained
    assert sum(survived.values()) <= 0.05 * sum(tried.values()), survived


def _confusable(task, per_kind: int = 4) -> list[tuple[str, int]]:
    """A few scored steps of the reference at which each kind of confusion is possible."""
    found: dict[str, set[int]] = {}
    bench = Bench(task)

    def look(call: Call, memory: Memory) -> Call:
        for confusion in task.environment.confusions(call, memory):
            found.setdefault(confusion.kind, set()).add(len(bench.gateway.events))
        return call

    bench.reference(look)
    scored = set(_scored(bench))
    rng = random.Random(7)
    return [
        (kind, step)
        for kind, steps in sorted(found.items())
        for step in sorted(rng.sample(sorted(steps & scored), min(per_kind, len(steps & scored))))
    ]


def _scored(bench: Bench) -> list[int]:
    """Operations whose products stand at the end. What an update made the reference do again is not among them: a
    mistake there is mended by doing it again rightly."""
    artifacts = bench.world.artifacts
    return [
        i
        for i, event in enumerate(bench.gateway.events)
        if event.kind == "business" and all(artifacts[ref].status != SUPERSEDED for ref in event.produced)
    ]


def _confuse(task, kind: str, at: int):
    step = -1

    def change(call: Call, memory: Memory) -> Call:
        nonlocal step
        step += 1
        if step != at:
            return call
        return next(c.call for c in task.environment.confusions(call, memory) if c.kind == kind)

    return change


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_dropped_operation_turns_a_score(env):
    """The reference's calls made again without one of its operations: full marks hardly ever remain."""
    tried = survived = 0
    unexplained = Counter()
    for e, configuration in configurations("64K", per_family=1):
        if e != env:
            continue
        task = calibrated(env, "64K", configuration)
        run = Bench(task)
        run.reference()
        calls = [(event.tool, json.loads(event.call)["arguments"]) for event in run.gateway.events]
        business = _scored(run)
        for dropped in random.Random(11).sample(business, min(40, len(business))):
            bench = Bench(task)
            for i, (tool, arguments) in enumerate(calls):
                if i != dropped:
                    bench.gateway.call(tool, arguments)
            tried += 1
            if bench.evaluate().success:
                survived += 1
                unexplained[f"dropped {calls[dropped][0]}"] += f"dropped {calls[dropped][0]}" not in _survivors(env)
    assert tried >= 30
    assert not +unexplained
    assert survived <= 0.05 * tried
