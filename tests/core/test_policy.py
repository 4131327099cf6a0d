from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skillhorizon.core.policy import Call, Job, Memory, Refused, Steps, ask, ask_all, drive, run_script
from tests.toy import ENVIRONMENT


def play(steps: Steps[Any], *observations: dict[str, Any]) -> tuple[list[Call], Any]:
    """The calls that a procedure makes when it is answered so, and what it returns."""
    calls, answers = [], iter(observations)
    try:
        call = next(steps)
        while True:
            calls.append(call)
            call = steps.send(next(answers))
    except StopIteration as end:
        return calls, end.value


def fine(result: Any) -> dict[str, Any]:
    return {"ok": True, "result": result}


def page(items: list[Any], cursor: str | None = None) -> dict[str, Any]:
    return fine({"items": items, "next_cursor": cursor})


def test_asking_makes_one_call_and_returns_its_result():
    assert play(ask("get", module="m", goal="g", id="x"), fine({"a": 1})) == (
        [Call("get", {"id": "x"}, "m", "g")],
        {"a": 1},
    )


def test_a_refusal_that_was_not_expected_is_raised_with_call_and_error():
    error = {"code": "wrong_state", "message": "no", "details": {}}
    with pytest.raises(Refused, match="get was refused: wrong_state: no") as refusal:
        play(ask("get", id="x"), {"ok": False, "error": error})
    assert (refusal.value.call, refusal.value.error) == (Call("get", {"id": "x"}), error)


def test_asking_for_all_follows_the_cursors():
    calls, rows = play(ask_all("list", module="m", of="x"), page([1, 2], "p2"), page([3], "p3"), page([]))
    assert rows == [1, 2, 3]
    assert [c.arguments for c in calls] == [{"of": "x"}, {"of": "x", "cursor": "p2"}, {"of": "x", "cursor": "p3"}]
    assert {c.module for c in calls} == {"m"}


def test_running_a_script_returns_its_output():
    calls, output = play(run_script("s", "f", {"x": 1}, goal="g"), fine({"output": {"y": 2}}))
    assert calls == [Call("run_skill_script", {"skill": "s", "script": "f", "input": {"x": 1}}, None, "g")]
    assert output == {"y": 2}


# -- memory --------------------------------------------------------------------------------------------------------


def test_what_is_remembered_is_not_asked_again_until_it_is_forgotten():
    memory = Memory()
    query = lambda: memory.lookup("rates", ask("list_rates"))  # noqa: E731
    assert len(play(query(), fine({"a": 1}))[0]) == 1
    assert play(query()) == ([], {"a": 1})
    memory.forget("rates", "never known")
    assert len(play(query(), fine({"a": 2}))[0]) == 1
    assert memory.get("rates") == {"a": 2}


def test_memory_knows_when_a_value_was_seen():
    memory = Memory()
    memory.keep("a", 1)
    memory.step = 7
    memory.keep(("b", 1), None)
    assert (memory.seen_at("a"), memory.seen_at(("b", 1)), memory.seen_at("c")) == (0, 7, None)
    assert ("b", 1) in memory
    assert "c" not in memory
    assert (memory.get(("b", 1), "default"), memory.get("c", "default")) == (None, "default")


def test_forgetting_by_a_test_takes_the_keys_that_pass_it():
    memory = Memory()
    for n in range(6):
        memory.keep(n, n)
    memory.forget_where(lambda key: key % 2 == 0)
    assert [n for n in range(6) if n in memory] == [1, 3, 5]


# -- driving -------------------------------------------------------------------------------------------------------


class Letters:
    """Writes a, b and c, each once, in any order; then d."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.written: list[str] = []
        self.steps: list[int] = []

    def opening(self) -> Steps[None]:
        yield from ask("open")

    def ready(self) -> Iterator[Job]:
        left = [letter for letter in "abc" if letter not in self.written]
        for letter in left or ["d"] * ("d" not in self.written):
            yield Job(letter, self._write(letter))

    def _write(self, letter: str) -> Callable[[], Steps[None]]:
        def steps() -> Steps[None]:
            result = yield from ask("write", letter=letter)
            self.steps.append(self.memory.step)
            self.written.append(result["letter"])

        return steps


def driven(rng: random.Random | None = None) -> Letters:
    policy, calls = Letters(), []

    def perform(call: Call) -> dict[str, Any]:
        calls.append(call.tool)
        return fine(call.arguments)

    drive(policy, perform, rng)
    assert calls == ["open", *["write"] * 4]
    return policy


def test_the_reference_takes_the_jobs_in_their_order():
    policy = driven()
    assert policy.written == list("abcd")
    assert policy.steps == [2, 3, 4, 5]


def test_a_random_order_takes_any_legal_one_and_the_same_for_the_same_stream():
    orders = {"".join(driven(random.Random(n)).written) for n in range(60)}
    assert orders == {"abcd", "acbd", "bacd", "bcad", "cabd", "cbad"}
    assert driven(random.Random(5)).written == driven(random.Random(5)).written


def test_what_stops_the_performer_stops_the_policy():
    class Exhausted(Exception):
        pass

    def perform(call: Call) -> dict[str, Any]:
        if call.arguments.get("letter") == "b":
            raise Exhausted
        return fine(call.arguments)

    policy = Letters()
    with pytest.raises(Exhausted):
        drive(policy, perform)
    assert policy.written == ["a"]


def test_the_toys_confusions_are_plausible_alternatives_of_its_consequential_call():
    call = Call("quote_parcel", {"cents": 5}, "m", "g")
    (confusion,) = ENVIRONMENT.confusions(call, Memory())
    assert confusion.call == Call("quote_parcel", {"cents": 6}, "m", "g")
    assert ENVIRONMENT.confusions(Call("list_rates", {}), Memory()) == []
