"""The whole released set: generated, calibrated, validated, written; seconds, memory, and the share of tokenising.

``SKILLHORIZON_BENCH_PROFILE=quick`` takes the small set. The whole one takes minutes: it is one round, over all cores.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path
from time import perf_counter

import pytest

from skillhorizon import construct, envs, validate
from skillhorizon.core import tokens, trace
from skillhorizon.params import load

ROOT = Path(__file__).parents[1]
PROFILE = os.environ.get("SKILLHORIZON_BENCH_PROFILE", "paper")


def test_the_whole_set(benchmark, tmp_path):
    """``tokenising_share``: seconds that counting the reference runs' tokens would take one core, once for each task,
    over the seconds that all cores worked."""
    params = load(ROOT / "params.yaml")

    def make() -> None:
        for env in envs.names():
            construct.construct(env, params, PROFILE, tmp_path)

    benchmark.pedantic(make, rounds=1)
    seconds = benchmark.stats["median"]
    total = sum(int(trace.read(tmp_path / "traces" / "reference" / env, "runs")[["call_tokens", "observation_tokens"]]
                    .to_numpy().sum()) for env in envs.names())  # fmt: skip
    rate = _tokens_per_second()
    cores = len(os.sched_getaffinity(0))
    benchmark.extra_info |= {
        "minutes": round(seconds / 60, 1),
        "reference_tokens": total,
        "tokens_per_second": round(rate),
        "tokenising_share": round(total / rate / (seconds * cores), 3),
        "peak_mb_of_one_process": max(_peak(resource.RUSAGE_CHILDREN), _peak(resource.RUSAGE_SELF)),
        "processes": cores,
    }


@pytest.mark.parametrize("band", ["64K", "1M"])
@pytest.mark.parametrize("env", envs.names())
def test_one_fresh_task(benchmark, env, band):
    """What ``skillhorizon generate`` does; at most 2 s at 64K and 30 s at 1M are wanted."""
    import skillhorizon as sh

    benchmark.group = f"fresh task, {band}"
    seeds = iter(range(100))
    benchmark.pedantic(lambda: sh.generate(env, band=band, seed=next(seeds)), rounds=3 if band == "64K" else 1)


@pytest.mark.parametrize("band", validate.BEYOND)
@pytest.mark.parametrize("env", envs.names())
def test_beyond_the_released_bands(benchmark, env, band):
    """Made, run by the reference and in a random legal order; ``growth`` is time per call over that at 64K."""
    benchmark.group = f"beyond, {band}"
    reached = benchmark.pedantic(lambda: validate.beyond(env, band), rounds=1)
    benchmark.extra_info |= {"growth": reached.growth, "workload": reached.workload, "calls": reached.R}


def _tokens_per_second() -> float:
    """Of counting the text of one reference run."""
    import skillhorizon as sh

    run = sh.run(sh.generate("finance", band="256K", seed=3))
    texts = [text for event in run.trace.raw for text in (event.call, event.observation)]
    tokens.count("")  # the vocabulary is loaded once
    tokens.count.cache_clear()
    begin = perf_counter()
    counted = sum(tokens.count_each(texts))
    return counted / (perf_counter() - begin)


def _peak(who: int) -> int:
    return resource.getrusage(who).ru_maxrss // 1024
