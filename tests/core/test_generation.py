from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from skillhorizon.core import bands, generation
from skillhorizon.core.bands import band
from skillhorizon.core.errors import InputError
from skillhorizon.core.generation import EVALUATION_SEEDS, SEED_STEP, generate, plan, run_policy
from skillhorizon.core.ids import stream
from skillhorizon.core.task import Blueprint, Measures, TaskConfig
from tests.toy import ENVIRONMENT
from tests.toy.build import build


@pytest.mark.parametrize("name", ["64K", "128K"])
@pytest.mark.parametrize("identity", ["letters/chain", "crates/fan"])
def test_a_task_is_brought_into_its_band_and_measured_by_its_reference(name, identity):
    config = ENVIRONMENT.config(name, identity)
    task, run = generate(ENVIRONMENT, config, 5)
    assert (task.config, task.seed) == (config, 5)
    least, most = band(name).target
    assert least <= task.workload <= most
    again = run_policy(task)
    assert (again.trace.tokens, again.trace.digest) == (task.workload, run.trace.digest)
    kinds = Counter(e.kind for e in again.trace.raw)
    assert task.measures == Measures(
        workload=again.trace.tokens, R=kinds.total(), A=kinds["business"] + kinds["script"]
    )
    assert run.evaluation.success


def test_the_same_arguments_give_the_same_task():
    config = ENVIRONMENT.config("64K", "letters/fan")
    one, other = (generate(ENVIRONMENT, config, 9)[0] for _ in range(2))
    assert (one.size, one.measures, one.digest) == (other.size, other.measures, other.digest)


def test_the_guess_changes_the_search_but_not_the_task():
    config = ENVIRONMENT.config("64K", "letters/fan")
    sizes = set()
    for guess in (60, 100, 200):
        begun_at = replace(ENVIRONMENT, guess=partial(lambda size, _: size, guess))
        sizes.add(generate(begun_at, config, 9)[0].size)
    assert len(sizes) == 1


def test_a_band_may_narrow_the_sizes():
    config = ENVIRONMENT.config("64K", "letters/fan")
    assert ENVIRONMENT.sizes_of(config) == ENVIRONMENT.sizes
    free = generate(ENVIRONMENT, config, 9)[0].size
    narrow = replace(ENVIRONMENT, narrowed=lambda config: (4, free - 1))
    assert narrow.sizes_of(config) == (4, free - 1)
    assert generate(narrow, config, 9)[0].size == free - 1


def test_a_random_legal_order_succeeds_and_takes_another_way(task):
    orders = [run_policy(task), *(run_policy(task, stream("order", n)) for n in range(5))]
    assert all(run.evaluation.success for run in orders)
    assert len({run.trace.digest for run in orders}) == 6


@pytest.mark.parametrize("seed", [7, EVALUATION_SEEDS + 7])
def test_the_next_planned_seed_is_taken_where_no_size_lands(seed):
    coarse = replace(ENVIRONMENT, builder=lambda c, s, size: build(c, s, 4 if s == seed else size))
    task, _ = generate(coarse, ENVIRONMENT.config("64K", "letters/fan"), seed)
    assert task.seed == seed + SEED_STEP


def test_a_seed_of_development_never_becomes_one_of_evaluation():
    last = EVALUATION_SEEDS - 1

    def only_the_first_seed_is_coarse(config: TaskConfig, seed: int, size: int) -> Blueprint:
        return build(config, seed, 4 if seed == last else size)

    coarse = replace(ENVIRONMENT, builder=only_the_first_seed_is_coarse)
    task, _ = generate(coarse, ENVIRONMENT.config("64K", "letters/fan"), last)
    assert task.seed == SEED_STEP - 1


def test_a_configuration_that_never_lands_is_refused(monkeypatch):
    monkeypatch.setattr(generation, "_SEEDS_TRIED", 2)
    never = replace(ENVIRONMENT, builder=lambda config, seed, size: build(config, seed, 4))
    with pytest.raises(InputError, match="no size of toy letters/fan lands in band 64K for seed 7"):
        generate(never, ENVIRONMENT.config("64K", "letters/fan"), 7)


def test_a_reference_that_fails_is_a_fault_of_the_environment():
    class Idle(ENVIRONMENT.policy):  # type: ignore[name-defined]
        def ready(self):
            return iter(())

    with pytest.raises(RuntimeError, match="the reference does not succeed on toy-64K"):
        generate(replace(ENVIRONMENT, policy=Idle), ENVIRONMENT.config("64K", "letters/fan"), 1)


# -- plans ---------------------------------------------------------------------------------------------------------


def test_families_have_equal_shares_and_the_configurations_of_each_take_turns():
    planned = list(plan(ENVIRONMENT, "64K", 10))
    assert Counter(p.configuration.split("/")[0] for p in planned) == {"crates": 5, "letters": 5}
    assert [p.configuration for p in planned[:5]] == [
        "crates/chain", "letters/chain", "crates/fan", "letters/fan", "crates/chain",
    ]  # fmt: skip
    shares = Counter(p.configuration.split("/")[0] for p in plan(ENVIRONMENT, "64K", 11))
    assert max(shares.values()) - min(shares.values()) == 1


def test_a_shorter_plan_is_the_beginning_of_a_longer_one():
    longer = list(plan(ENVIRONMENT, "128K", 40))
    for tasks in (0, 1, 7, 39):
        assert list(plan(ENVIRONMENT, "128K", tasks)) == longer[:tasks]


def test_every_planned_task_has_a_seed_of_its_own_above_those_of_development():
    seeds = [p.seed for name in bands.BANDS for p in plan(ENVIRONMENT, name, 1000)]
    retried = {s + n * SEED_STEP for s in seeds for n in range(generation._SEEDS_TRIED)}
    assert len(set(seeds)) == 7000
    assert len(retried) == 7000 * generation._SEEDS_TRIED
    assert min(seeds) >= EVALUATION_SEEDS


def test_a_plan_may_begin_elsewhere():
    assert [p.seed for p in plan(ENVIRONMENT, "64K", 3, first_seed=5)] == [5, 6, 7]
    assert {(p.env, p.band) for p in plan(ENVIRONMENT, "64K", 3)} == {("toy", "64K")}
