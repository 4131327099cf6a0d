"""Speed of the Gateway and of tokenising, per environment and band, over the calls of a reference run.

Run with ``make bench``. Each row says how many calls or tokens a second; ``growth`` compares bands within one run.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from skillhorizon import envs
from skillhorizon.core import generation, tokens
from skillhorizon.core.journal import Journal
from skillhorizon.core.task import Task
from skillhorizon.core.trace import Trace

BANDS = ["64K", "1M"]
SEED = 11


@cache
def reference(env: str, band: str, family: str) -> tuple[Task, list[tuple[str, dict[str, object]]]]:
    environment = envs.load(env)
    config = next(c for c in environment.configs(band) if c.family == family)
    task, run = generation.generate(environment, config, SEED)
    return task, [(e.tool, json.loads(e.call)["arguments"]) for e in run.trace.raw]


CASES = [(env, band, family) for env in envs.names() for family in envs.load(env).families for band in BANDS]


def repeat(gateway, calls) -> None:
    for name, arguments in calls:
        gateway.call(name, arguments)


@pytest.mark.parametrize(("env", "band", "family"), CASES)
def test_calls_without_token_counting(benchmark, env, band, family):
    task, calls = reference(env, band, family)
    benchmark.group = f"gateway, {env}"
    benchmark.pedantic(
        repeat, setup=lambda: ((task.open_unlimited(), calls), {}), rounds=9 if band == "64K" else 4, warmup_rounds=1
    )
    benchmark.extra_info |= {"calls": len(calls), "calls_per_second": round(len(calls) / benchmark.stats["median"])}


@pytest.mark.parametrize(("env", "band", "family"), CASES)
def test_reference_run_beside_tokenising_its_text(benchmark, env, band, family):
    """The whole reference run, policy and token counting included; ``tokenising`` is the share of counting alone."""
    task, _ = reference(env, band, family)
    benchmark.group = f"reference run, {env}"

    def run() -> Trace:
        tokens.count.cache_clear()
        trace = generation.run_policy(task).trace
        assert trace.tokens == task.workload
        return trace

    trace = benchmark.pedantic(run, rounds=4 if band == "64K" else 2, warmup_rounds=1)
    texts = [text for e in trace.raw for text in (e.call, e.observation)]
    seconds = _seconds(lambda: tokens.count_each(texts))
    benchmark.extra_info |= {
        "tokens": task.workload,
        "tokens_per_second": round(task.workload / seconds),
        "run_over_tokenising": round(benchmark.stats["median"] / seconds, 2),
    }


@pytest.mark.parametrize("env", envs.names())
def test_journaled_calls(benchmark, env, tmp_path: Path):
    """One SQLite transaction a call, before the observation is returned."""
    task, calls = reference(env, "64K", envs.load(env).families[0])
    benchmark.group = "gateway with a journal"
    numbers = iter(range(1000))

    def fresh():
        journal = Journal.create(tmp_path / f"{next(numbers)}.sqlite", {"task": task.id})
        return (task.open(budget=10**9, journal=journal), calls), {}

    benchmark.pedantic(repeat, setup=fresh, rounds=5, warmup_rounds=1)
    benchmark.extra_info["calls_per_second"] = round(len(calls) / benchmark.stats["median"])


def _seconds(work) -> float:
    """Best of three, each on strings that are not in the cache of counts."""
    from time import perf_counter

    best = float("inf")
    for _ in range(3):
        tokens.count.cache_clear()
        begin = perf_counter()
        work()
        best = min(best, perf_counter() - begin)
    return best
