"""The scripted agents: what they reach, how they end, and that they stay on their side of the Gateway."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest

import skillhorizon as sh
from skillhorizon import agents
from skillhorizon.agents.scripted import CALLS, RandomCalls, Seen
from skillhorizon.core.errors import InputError
from tests.support import TOY, WITH_TOY, small_task

FILES = sorted(Path(agents.__file__).parent.rglob("*.py"))


# -- names ---------------------------------------------------------------------------------------------------------


def test_the_scripted_agents_have_their_names():
    assert {"reference", "shuffled", "noop", "random"} <= set(agents.names())


@pytest.mark.parametrize("name", ["", "nobody", "Reference", "reference:", "reference:1", "nobody:x", ":", "random "])
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(InputError, match="noop, random, reference, shuffled") as refused:
        agents.agent(name)
    assert repr(name) in str(refused.value)


def test_a_family_makes_its_agents_from_the_rest_of_the_name(monkeypatch):
    made = []
    monkeypatch.setitem(agents.FAMILIES, "family", lambda argument: made.append(argument) or agents.agent("noop"))
    assert agents.agent("family:a:b") is agents.agent("noop")
    assert made == ["a:b"]
    assert "family:…" in agents.names()
    with pytest.raises(InputError):
        agents.agent("family:")


# -- what they reach -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
def test_the_reference_reaches_everything_within_its_measures(env):
    run = sh.run(small_task(env))
    assert run.end == "submitted"
    assert run.evaluation.success
    assert run.evaluation.lgc == 1
    assert (run.calls, run.trace.business_calls, run.tokens) == (
        run.task.measures.R,
        run.task.measures.A,
        run.task.workload,
    )


@pytest.mark.parametrize("env", WITH_TOY)
def test_any_legal_order_reaches_everything(env):
    task = small_task(env)
    runs = [sh.run(task, "shuffled", seed) for seed in range(4)]
    assert all(run.evaluation.success and run.end == "submitted" for run in runs)
    assert len({run.trace.digest for run in runs}) == 4
    assert sh.run(task, "shuffled", 3).trace.digest == runs[3].trace.digest


@pytest.mark.parametrize("env", WITH_TOY)
def test_doing_nothing_reaches_nothing(env):
    run = sh.run(small_task(env), "noop")
    assert (run.end, run.calls) == ("submitted", 0)
    assert run.evaluation.lgc == 0
    assert not run.evaluation.success


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("seed", range(5))
def test_blind_activity_never_succeeds(env, seed):
    task = small_task(env)
    run = sh.run(task, "random", seed)
    assert run.end == "exhausted"
    assert run.trace.attempts == task.budget
    assert not run.evaluation.success


@pytest.mark.parametrize("env", WITH_TOY)
def test_blind_activity_without_a_budget_ends_by_itself(env):
    task = small_task(env)
    gateway = task.open_unlimited()
    assert agents.agent("random").act(task, gateway, seed=0).end == "stopped"
    assert len(gateway.events) == CALLS
    assert not sh.evaluate(task, gateway).success
    share = {code: sum(e.code == code for e in gateway.events) / CALLS for code in (None, "bad_argument")}
    assert share[None] > 0.2  # it sees a good part of the business
    assert share["bad_argument"] < 0.3  # and most of its arguments have the form that is asked for


@pytest.mark.parametrize("env", WITH_TOY)
def test_blind_activity_is_determined_by_its_seed(env):
    task = small_task(env)
    digests = [sh.run(task, "random", seed).trace.digest for seed in (1, 1, 2)]
    assert digests[0] == digests[1] != digests[2]


# -- how they end --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("name", ["reference", "shuffled", "random"])
def test_no_attempt_is_made_beyond_the_allowance(env, name):
    task = small_task(env)
    # another legal order may need fewer calls than the reference, so the others get an allowance far below it
    allowance = task.measures.R - 1 if name == "reference" else task.measures.R // 2
    gateway = task.open(budget=allowance)
    assert agents.agent(name).act(task, gateway, seed=0).end == "exhausted"
    assert gateway.used == allowance
    assert not any(e.code == "budget_exhausted" for e in gateway.events)


@pytest.mark.parametrize("env", WITH_TOY)
def test_the_last_attempt_of_the_allowance_may_be_the_one_that_finishes(env):
    task = small_task(env)
    gateway = task.open(budget=task.measures.R)
    assert agents.agent("reference").act(task, gateway, seed=0).end == "submitted"
    assert gateway.remaining == 0


@pytest.mark.parametrize("env", WITH_TOY)
def test_a_refusal_that_the_reference_cannot_expect_is_a_failed_run_with_its_reason(env):
    task = small_task(env)
    outcome = agents.agent("reference").act(task, task.open(role="read_only"), seed=0)
    assert outcome.end == "failed"
    assert "not_permitted" in outcome.why


def test_a_number_of_calls_may_be_chosen():
    task = TOY.build(TOY.configs("64K")[0], seed=0)
    gateway = task.open_unlimited()
    assert RandomCalls(7).act(task, gateway, seed=0).end == "stopped"
    assert len(gateway.events) == 7


# -- the walls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_agents_never_reach_behind_the_gateway(file):
    behind = {"blueprint", "world", "graph", "open", "open_unlimited", "builder", "scoring", "goal_of", "_journal"}
    touched = {node.attr for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute)}
    assert not touched & behind


# -- random arguments ----------------------------------------------------------------------------------------------

ODD = {
    "type": "object",
    "required": ["thing", "pair", "table", "flag", "share", "fixed", "anything", "many", "none", "far"],
    "properties": {
        "thing": {"$ref": "#/$defs/Thing"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        "table": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 5, "maximum": 6}},
        "flag": {"type": "boolean"},
        "share": {"type": "number"},
        "fixed": {"const": "as it is"},
        "anything": {},
        "many": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"enum": ["a", "b"]}},
        "none": {"type": "null"},
        "far": {"type": "integer", "minimum": 1000, "maximum": 2000},
    },
    "$defs": {"Thing": {"type": "object", "required": ["thing_id"], "properties": {"thing_id": {"type": "string"}}}},
}


def test_arguments_follow_any_schema_and_use_what_was_seen_under_the_same_name():
    seen = Seen(random.Random(0))
    assert seen.arguments(ODD) is not None
    seen.harvest("", {"items": [{"thing_id": "thg-7qk2m"}, {"thing": "thg-aaaaa"}], "next_cursor": None, "n": 1.5})
    made = [m for m in (seen.arguments(ODD) for _ in range(200)) if isinstance(m, dict) and "thing" in m]
    assert len(made) > 180
    assert sum(m["thing"]["thing_id"] == "thg-7qk2m" for m in made) > 150
    for m in made:
        assert len(m["pair"]) == 2
        assert isinstance(m["pair"][1], int)
        assert set(m["table"].values()) <= {5, 6}
        assert m["fixed"] == "as it is"
        assert m["none"] is None
        assert set(m["many"]) <= {"a", "b"}
        assert 1000 <= m["far"] <= 2000


def test_what_was_seen_is_bounded():
    seen = Seen(random.Random(0))
    for number in range(5000):
        seen.harvest("row", f"row-{number}")
    assert len(seen._values["row"]) <= 400
