"""Simulated agents: without weaknesses they succeed, each weakness shows as what it is, and chance is in the seed."""

from __future__ import annotations

import dataclasses
from collections import Counter

import msgspec
import pytest
from msgspec.structs import replace

import skillhorizon as sh
from skillhorizon import agents, params
from skillhorizon.agents.compaction import Limits
from skillhorizon.agents.harness import Rules
from skillhorizon.agents.simulated import PROFILES, Profile, Simulated
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.policy import Confusion
from skillhorizon.core.task import Task
from tests.support import WITH_TOY, small_task
from tests.toy import ENVIRONMENT as TOY

NARROW = Rules(compaction=Limits(trigger=30_000, guard=60_000, kept_below=28_000))
"""So narrow that a 64K task is compacted several times."""


def act(task: Task, profile: Profile, seed: int = 0, rules: Rules = NARROW, budget: int | None = None):
    gateway = task.open(budget=budget)
    outcome = Simulated("tried", profile, rules).act(task, gateway, seed)
    return gateway, outcome, sh.evaluate(task, gateway)


def calls(gateway: Gateway) -> list[tuple[bytes, bytes]]:
    return [(e.call, e.observation) for e in gateway.events]


# -- without weaknesses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("profile", [Profile(), Profile(batch=4), Profile(shuffled=True, batch=2)])
def test_without_weaknesses_everything_is_reached_under_the_harness(env, profile):
    task = small_task(env)
    gateway, outcome, evaluation = act(task, profile)
    assert (outcome.end, evaluation.success) == ("submitted", True)
    assert any(c.adopted for c in outcome.compactions) or env == TOY.name
    assert any(e.position for e in gateway.events) == (profile.batch > 1)


@pytest.mark.parametrize("env", WITH_TOY)
def test_the_reference_under_the_harness_makes_the_reference_s_calls(env):
    task = small_task(env)
    run = sh.run(task, "simulated:perfect")
    assert [(e.call, e.observation) for e in run.trace.raw] == [(e.call, e.observation) for e in sh.run(task).trace.raw]
    assert run.outcome.decisions == task.measures.R + 2  # one call each, and two finals
    assert sh.run(task, "simulated:shuffled", seed=3).evaluation.success


def test_rates_may_be_set_behind_the_name_of_a_profile():
    made = agents.agent("simulated:steady,slip=0.25,batch=2,shuffled=true")
    assert made.profile == replace(PROFILES["steady"], slip=0.25, batch=2, shuffled=True)
    task = small_task("toy")
    assert sh.run(task, "simulated:steady").trace.digest == sh.run(task, "steady").trace.digest


@pytest.mark.parametrize(
    ("name", "words"),
    [("random", "unknown profile 'random'"), ("steady,sleep=1", "sleep"), ("steady,slip=2", "<= 1"), ("steady,", "``")],
)
def test_an_unknown_profile_or_rate_is_one_clear_line(name, words):
    with pytest.raises(InputError, match=words):
        agents.agent(f"simulated:{name}")


# -- seeds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROFILES)
def test_the_same_seed_gives_the_same_run_and_another_one_another(name):
    task = small_task("toy")
    digests = [sh.run(task, name, seed).trace.digest for seed in (1, 1, *range(2, 12))]
    assert digests[0] == digests[1]
    assert len(set(digests)) > 1


def test_profiles_of_the_parameters_are_those_of_the_package():
    found = params.load("params.yaml").agents
    assert found.profiles == PROFILES
    assert found.rules == Rules()


@pytest.mark.parametrize(
    "wrong", [{"slip": 1.5}, {"slip": "often"}, {"persistence": -1}, {"batch": 0}, {"stop": -0.1}, {"sleep": 0.5}]
)
def test_a_wrong_rate_is_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Profile)


# -- weaknesses ----------------------------------------------------------------------------------------------------


def test_a_slip_is_a_confusion_of_the_environment_and_stays_where_it_is_accepted():
    """Toy accepts any amount, so each of its quotes is wrong by a cent."""
    task = small_task("toy")
    gateway, outcome, evaluation = act(task, Profile(slip=1.0))
    quotes = [msgspec.json.decode(e.call)["arguments"] for e in gateway.events if e.tool == "quote_parcel"]
    right = [
        msgspec.json.decode(e.call)["arguments"] for e in sh.run(task).trace.raw if e.tool == "quote_parcel"
    ]  # fmt: skip
    assert {q["parcel_id"]: q["cents"] - 1 for q in quotes} == {r["parcel_id"]: r["cents"] for r in right}
    assert (outcome.end, evaluation.success, evaluation.goals_met) == ("submitted", False, 0)


def confused(confusions) -> Task:
    task = small_task("toy")
    return Task(dataclasses.replace(TOY, confusions=confusions), task.config, task.seed, task.size, task.measures)


def half(call, memory):
    """A closure over half of what belongs to it: refused at once."""
    if call.tool != "close_group":
        return []
    return [Confusion("half", replace(call, arguments={**call.arguments, "inputs": call.arguments["inputs"][:1]}))]


def test_a_refused_slip_that_is_understood_is_put_right():
    gateway, _, evaluation = act(confused(half), Profile(slip=1.0, heed=1.0))
    closures = [e.ok for e in gateway.events if e.tool == "close_group"]
    assert closures == [False, True] * (len(closures) // 2)
    assert evaluation.success


@pytest.mark.parametrize("persistence", [0, 2])
def test_one_that_is_not_understood_is_repeated_until_the_work_is_given_up(persistence):
    gateway, outcome, evaluation = act(confused(half), Profile(slip=1.0, heed=0.0, persistence=persistence))
    tries = Counter(e.call for e in gateway.events if e.tool == "close_group")
    assert set(tries.values()) == {1 + persistence}
    assert not any(e.ok for e in gateway.events if e.tool == "close_group")
    assert (outcome.end, evaluation.success) == ("submitted", False)
    assert evaluation.goals_met > 0  # the rest of the work went on


def test_a_confused_procedure_is_left_and_the_agent_ends_by_itself():
    """Quotes for a parcel that is not there are refused, so what rests on them never becomes ready."""

    def elsewhere(call, memory):
        if call.tool != "quote_parcel":
            return []
        return [Confusion("elsewhere", replace(call, arguments={**call.arguments, "parcel_id": "prc-zzzzz"}))]

    gateway, outcome, evaluation = act(confused(elsewhere), Profile(slip=1.0, heed=0.0, persistence=1))
    assert (outcome.end, evaluation.goals_met) == ("submitted", 0)
    assert not any(e.tool == "close_group" for e in gateway.events)


def test_stopping_is_a_hazard_that_grows_with_the_length():
    task = small_task("toy")
    whole = act(task, Profile())[0].used
    early = [act(task, Profile(stop=2.0), seed)[0].used for seed in range(20)]
    assert sum(early) / 20 < whole * 0.9
    assert all(act(task, Profile(stop=2.0), seed)[1].end == "submitted" for seed in range(3))
    stalled = [act(task, Profile(stop=2.0, stop_stall=50.0), seed)[0].used for seed in range(20)]
    assert sum(stalled) < sum(early)
    again = [act(task, Profile(stop=2.0, confirm=0.0), seed)[0].used for seed in range(3)]
    assert again == [whole] * 3  # asked, it always thinks again


def test_redundancy_costs_queries_and_nothing_else():
    task = small_task("toy")
    plain, spare = act(task, Profile())[0], act(task, Profile(redundancy=0.1))[0]
    business = [[e.call for e in g.events if e.kind == "business"] for g in (plain, spare)]
    assert business[0] == business[1]
    assert spare.used > plain.used
    assert sh.evaluate(task, spare).success


def test_who_does_not_look_at_the_notices_misses_the_updates():
    task = small_task("toy")
    gateway, outcome, evaluation = act(task, Profile(awareness=0.0))
    assert not any(e.tool == "list_notices" for e in gateway.events)
    assert (outcome.end, evaluation.success) == ("submitted", False)


@pytest.mark.parametrize("env", ["finance", "research"])
def test_what_left_the_context_is_read_again_or_goes_wrong(env):
    task = small_task(env)
    kept, _, _ = act(task, Profile(kept=1.0))
    reading, _, evaluation = act(task, Profile(kept=0.0))
    assert evaluation.success
    assert calls(kept) == calls(act(task, Profile(kept=1.0), seed=9)[0])  # nothing is left to chance
    assert Counter(e.kind for e in reading.events)["query"] > Counter(e.kind for e in kept.events)["query"]
    forgotten, _, evaluation = act(task, Profile(kept=0.0, recall=0.0))
    assert not evaluation.success
    first = next(i for i, (a, b) in enumerate(zip(calls(kept), calls(forgotten), strict=False)) if a != b)
    assert forgotten.events[first].decision >= forgotten_from(task)


def forgotten_from(task: Task) -> int:
    """The first decision after a compaction."""
    return act(task, Profile())[1].compactions[0].decision


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("env", WITH_TOY)
def test_no_profile_breaks_off_or_goes_beyond_its_allowance(name, env):
    task = small_task(env)
    gateway, outcome, _ = act(task, PROFILES[name])
    assert outcome.end in ("submitted", "exhausted")
    assert gateway.used <= task.budget
    assert (outcome.end == "exhausted") == (gateway.remaining == 0)


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("seed", range(2))
def test_the_worst_agent_still_ends_by_itself(env, seed):
    worst = Profile(
        slip=0.5, slip_context=2.0, kept=0.2, recall=0.3, heed=0.3, persistence=1, redundancy=0.2, awareness=0.3
    )
    _, outcome, evaluation = act(small_task(env), worst, seed)
    assert outcome.end in ("submitted", "exhausted")
    assert not evaluation.success
