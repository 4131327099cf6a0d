"""Calls of any shape against every tool of every environment: an observation, no exception, no change on refusal."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from skillhorizon import envs
from skillhorizon.core.errors import COMMON_CODES
from skillhorizon.core.policy import Call
from tests.envs.bench import ENVIRONMENTS, Bench, calibrated, configurations

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@cache
def half_way(env: str) -> tuple[Bench, dict[str, list[dict[str, Any]]]]:
    """A bench stopped half-way through its reference run, and the arguments that each tool was called with."""

    class Enough(Exception):
        pass

    configuration = next(c for e, c in configurations("64K", per_family=1) if e == env)
    task = calibrated(env, "64K", configuration)
    bench = Bench(task)
    assert task.measures is not None
    limit = task.measures.R // 2
    used: dict[str, list[dict[str, Any]]] = {}

    def stop(call: Call, memory: Any) -> Call:
        if len(bench.gateway.events) >= limit:
            raise Enough
        used.setdefault(call.tool, []).append(call.arguments)
        return call

    with pytest.raises(Enough):
        bench.reference(stop)
    return bench, used


def attempt(bench: Bench, tool: str, arguments: Any) -> None:
    gateway = bench.gateway
    before, used = gateway.state_digest(), gateway.used
    observation = gateway.call(tool, arguments)
    json.dumps(observation)
    declared = gateway.tools.get(tool)
    assert gateway.used == used + (declared is None or declared.charged)
    if not observation["ok"]:
        code = observation["error"]["code"]
        assert gateway.state_digest() == before
        assert code in COMMON_CODES or (declared is not None and code in declared.refusals), code


TOOLS = [(env, tool) for env in ENVIRONMENTS for tool in envs.load(env).tools]


@pytest.mark.parametrize(("env", "tool"), TOOLS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(data=st.data())
def test_arguments_drawn_from_the_tools_own_schema(env, tool, data):
    bench, _ = half_way(env)
    attempt(bench, tool, data.draw(from_schema(bench.gateway.tools[tool].schema)))


@pytest.mark.parametrize("env", ENVIRONMENTS)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(data=st.data())
def test_arguments_of_any_shape(env, data):
    bench, _ = half_way(env)
    attempt(bench, data.draw(st.sampled_from(sorted(bench.gateway.tools)) | st.text(max_size=12)), data.draw(JSON))


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_legal_calls_with_one_value_exchanged(env):
    """Arguments of the reference with one leaf replaced by another's, by a neighbour of its own or by nothing."""
    bench, used = half_way(env)
    rng = random.Random(3)
    refused = 0
    for _ in range(400):
        tool = rng.choice(sorted(used))
        arguments = json.loads(json.dumps(rng.choice(used[tool])))
        _exchange(arguments, json.loads(json.dumps(rng.choice(used[rng.choice(sorted(used))]))), rng)
        attempt(bench, tool, arguments)
        refused += not json.loads(bench.gateway.events[-1].observation)["ok"]
    assert refused > 100


def _exchange(target: Any, donor: Any, rng: random.Random) -> None:
    """Replace one value somewhere in ``target``."""
    places = list(_leaves(target))
    if not places:
        return
    holder, key = rng.choice(places)
    value = holder[key]
    others = [h[k] for h, k in _leaves(donor) if type(h[k]) is type(value)]
    neighbours: list[Any] = [value + 1, -value] if type(value) is int else [f"{value}x", "", None]
    holder[key] = rng.choice([*others, *neighbours])


def _leaves(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner)
        else:
            yield value, key
