"""Seconds and memory of making calibrated tasks, per environment and band."""

from __future__ import annotations

import random
import resource
import subprocess
import sys

import pytest

from skillhorizon import envs
from skillhorizon.core import bands, generation


@pytest.mark.parametrize("band", bands.PAPER_BANDS)
@pytest.mark.parametrize("env", envs.names())
def test_one_calibrated_task(benchmark, env, band):
    """Search of the knob, reference runs and exact token counts included; configurations in turn."""
    environment = envs.load(env)
    configs = environment.configs(band)
    numbers = iter(range(1000))
    runs: list[float] = []

    def make() -> None:
        number = next(numbers)
        task, _ = generation.generate(environment, configs[number % len(configs)], number)
        runs.append(task.workload / bands.band(band).upper)

    benchmark.group = f"calibrated task, {env}"
    benchmark.pedantic(make, rounds=6 if band in ("64K", "128K") else 3, warmup_rounds=0)
    benchmark.extra_info["workload_over_bound"] = [round(r, 3) for r in runs]


@pytest.mark.parametrize("env", envs.names())
def test_validation_in_a_random_legal_order(benchmark, env):
    environment = envs.load(env)
    task, _ = generation.generate(environment, environment.configs("256K")[0], 3)
    benchmark.group = "random legal order at 256K"
    run = benchmark.pedantic(lambda: generation.run_policy(task, random.Random(1)), rounds=3, warmup_rounds=1)
    assert run.evaluation.success


@pytest.mark.parametrize("env", envs.names())
def test_memory_of_one_1m_task(benchmark, env):
    """Peak resident memory of a process that calibrates a 1M task, in MB."""
    script = (
        "import resource, sys\n"
        "from skillhorizon import envs\n"
        "from skillhorizon.core import generation\n"
        "e = envs.load(sys.argv[1])\n"
        "task, run = generation.generate(e, e.configs('1M')[0], 11)\n"
        "run.trace.table()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )

    def measure() -> int:
        done = subprocess.run([sys.executable, "-c", script, env], capture_output=True, text=True, check=True)
        return int(done.stdout)

    benchmark.group = "memory of a 1M task"
    benchmark.extra_info["peak_mb"] = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["this_process_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
