"""The action protocol's parser: every accepted form, every fault, and nothing that makes it fall over."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillhorizon.agents.actions import Action, Actions, Final, Malformed, parse
from skillhorizon.agents.harness import Conversation, Reply, Rules, converse, opening
from tests.support import small_task

CALL = {"name": "list_skills", "arguments": {}}
FINAL = '{"type":"final","text":"done"}'


def acts(*calls: object, **more: object) -> str:
    return json.dumps({"type": "actions", "actions": list(calls), **more})


# -- what is accepted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        acts(CALL),
        f"\n  {acts(CALL)}  \n",
        f"```json\n{acts(CALL)}\n```",
        f"```\n{acts(CALL)}```",
        f"{'b' * 1024}\n```json\n{acts(CALL)}\n```\n{'a' * 1024}",
        acts(CALL).encode(),
    ],
)
def test_actions_stand_alone_or_in_a_fence_with_up_to_1024_characters_on_each_side(text):
    assert parse(text) == Actions((Action("list_skills", {}),))


def test_a_fence_inside_an_argument_ends_nothing():
    call = {"name": "note", "arguments": {"text": "```json\n{}\n```"}, "skill_run_id": "run-1"}
    assert parse(f"Now:\n```json\n{acts(call)}\n```") == Actions(
        (Action("note", {"text": "```json\n{}\n```"}, "run-1"),)
    )


@pytest.mark.parametrize("count", [1, 32])
def test_one_to_32_calls_are_accepted(count):
    parsed = parse(acts(*[CALL] * count))
    assert isinstance(parsed, Actions)
    assert len(parsed.calls) == count


def test_a_final_is_bare_json():
    assert parse(f" {FINAL}\n") == Final("done")


# -- what is not ---------------------------------------------------------------------------------------------------

DEEP = '{"type":"actions","actions":' + "[" * 100_000 + "]" * 100_000 + "}"
WRONG = {
    "nothing": ("", "empty", None),
    "white space": (" \n", "empty", None),
    "prose": ("I shall look first.", "json", None),
    "two objects": (acts(CALL) + acts(CALL), "json", None),
    "prose around actions without a fence": (f"Look: {acts(CALL)}", "json", None),
    "too much before": (f"{'b' * 1025}```{acts(CALL)}```", "commentary", None),
    "too much behind": (f"```{acts(CALL)}```{'b' * 1025}", "commentary", None),
    "an open fence": (f"```json\n{acts(CALL)}", "fence", None),
    "no json in the fence": ("```json\nnothing\n```", "json", None),
    "a list": ("[]", "object", None),
    "a number": ("5", "object", None),
    "another type": ('{"type":"thought"}', "type", None),
    "no type": ('{"actions":[]}', "type", None),
    "a type of no string": ('{"type":{"a":[1]}}', "type", None),
    "no actions": ('{"type":"actions"}', "actions", None),
    "empty actions": (acts(), "actions", None),
    "actions of no list": ('{"type":"actions","actions":{"name":"x"}}', "actions", None),
    "an unknown field": (acts(CALL, plan="first"), "actions", None),
    "33 calls": (acts(*[CALL] * 33), "calls", None),
    "a call of no object": (acts("list_skills"), "action", None),
    "no name": (acts({"arguments": {}}), "action", None),
    "an empty name": (acts({"name": "", "arguments": {}}), "action", None),
    "a name of no string": (acts({"name": 5, "arguments": {}}), "action", None),
    "no arguments": (acts({"name": "list_skills"}), "action", "list_skills"),
    "arguments of no object": (acts({"name": "x", "arguments": "{}"}), "action", "x"),
    "an unknown field of a call": (acts({**CALL, "id": 1}), "action", "list_skills"),
    "a label of no string": (acts({**CALL, "skill_run_id": 1}), "action", "list_skills"),
    "a fault behind a good call": (acts(CALL, {"name": "y", "arguments": []}), "action", "y"),
    "a fenced final": (f"```json\n{FINAL}\n```", "final", None),
    "prose before a final": (f"Done. {FINAL}", "json", None),
    "a final without text": ('{"type":"final"}', "final", None),
    "a final with a list": ('{"type":"final","text":[]}', "final", None),
    "a final with more": ('{"type":"final","text":"","actions":[]}', "final", None),
    "deep nesting": (DEEP, "nesting", None),
    "invalid UTF-8": (b'{"type":"final","text":"\xff"}', "encoding", None),
    "a lone surrogate": ('{"type":"final","text":"\ud800"}', "encoding", None),
    "an escaped lone surrogate": ('{"type":"final","text":"\\ud800"}', "json", None),
    "NaN": ('{"type":"actions","actions":[{"name":"x","arguments":{"a":NaN}}]}', "json", None),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_fault_has_its_diagnostic(name):
    text, kind, rejected = WRONG[name]
    found = parse(text)
    assert isinstance(found, Malformed)
    assert (found.kind, found.rejected) == (kind, rejected)
    assert found.problem
    assert len(found.problem) < 400


# -- whatever a model may write ------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["list_skills", "read_task_brief", "begin_skill", "quote_parcel", "no_such_tool", "", "\ud800"])
CALLS = st.fixed_dictionaries({}, optional={"name": NAMES | VALUES, "arguments": VALUES, "skill_run_id": VALUES})
ENVELOPES = st.fixed_dictionaries(
    {"type": st.sampled_from(["actions", "final"]) | VALUES},
    optional={"actions": st.lists(CALLS | VALUES, max_size=35), "text": VALUES, "more": VALUES},
)
PROSE = st.text(max_size=30) | st.integers(1000, 1100).map(lambda n: "x" * n) | st.just("```")
RESPONSES = st.one_of(
    st.text(),
    ENVELOPES.map(json.dumps),
    st.tuples(PROSE, ENVELOPES.map(json.dumps), PROSE).map(lambda t: f"{t[0]}```json\n{t[1]}\n```{t[2]}"),
    st.tuples(PROSE, ENVELOPES.map(json.dumps), PROSE).map("".join),
    st.integers(1, 10**5).map(lambda n: acts({"name": "x" * n, "arguments": {"a": "y" * n}})),
    st.integers(1, 3000).map(lambda n: '{"type":"actions","actions":[{"name":"list_skills","arguments":{"a":'
                             + "[" * n + "]" * n + "}}]}"),
)  # fmt: skip


class Says:
    repeatable = False

    def __init__(self, text: str) -> None:
        self.texts = [text]

    def respond(self, messages: object) -> Reply:
        return Reply(self.texts.pop() if self.texts else FINAL)

    def summarise(self, messages: object) -> Reply:
        return Reply("a summary")


@given(RESPONSES)
@settings(max_examples=300, deadline=None)
def test_no_response_makes_the_loop_fall_over_or_charges_what_was_not_attempted(text):
    gateway = small_task("toy").open()
    outcome = converse(Conversation(gateway, opening(small_task("toy"), gateway), Rules()), Says(text))
    parsed = parse(text)
    assert outcome.end == "submitted"
    if isinstance(parsed, Actions):
        oks = [e.ok for e in gateway.events]
        assert oks[:-1] == [True] * (len(oks) - 1)  # nothing behind the first refusal
        assert len(oks) == len(parsed.calls) or oks[-1] is False
    elif isinstance(parsed, Malformed) and parsed.rejected is not None:
        assert [(e.tool, e.ok) for e in gateway.events] == [(parsed.rejected, False)]
    else:
        assert gateway.events == []
    free = {"begin_skill", "finish_skill"}
    assert gateway.used == sum(e.tool not in free for e in gateway.events)


def test_a_response_beyond_the_guard_ends_the_run_with_its_reason():
    """No model's limit allows it; were it so, no request could hold it."""
    gateway = small_task("toy").open()
    huge = acts({"name": "x" * 2_000_000, "arguments": {"a": "0 " * 600_000}})
    outcome = converse(Conversation(gateway, opening(small_task("toy"), gateway)), Says(huge))
    assert outcome.end == "failed"
    assert "480,000 tokens" in outcome.why
    assert (gateway.used, gateway.events[0].code) == (1, "unknown_tool")


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_no_bytes_make_the_parser_fall_over(data):
    assert isinstance(parse(data), Actions | Final | Malformed)
