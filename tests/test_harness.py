"""The rules of the conversation (paper appendix B), each with values worked out by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import msgspec
import pytest

from skillhorizon.agents.compaction import Message
from skillhorizon.agents.harness import (
    CONFIRM,
    INSTRUCTIONS,
    Conversation,
    Reply,
    Request,
    Rules,
    Usage,
    converse,
    converse_async,
    opening,
)
from skillhorizon.agents.protocol import Outcome
from skillhorizon.core.gateway import Gateway
from tests.support import small_task

TASK = small_task("toy")
FINAL = '{"type":"final","text":"done"}'


def acts(*names: str, **arguments: object) -> str:
    return json.dumps({"type": "actions", "actions": [{"name": n, "arguments": arguments} for n in names]})


class Script:
    """A mind that says what it was told to say, then asks to end; it keeps what it was shown."""

    repeatable = False

    def __init__(self, *texts: str | Reply, summaries: Sequence[str | Reply] = ()) -> None:
        self.texts = list(texts)
        self.summaries = list(summaries)
        self.seen: list[list[Message]] = []
        self.summarised: list[list[Message]] = []

    def respond(self, messages: Sequence[Message]) -> Reply:
        self.seen.append(list(messages))
        return self._reply(self.texts.pop(0) if self.texts else FINAL)

    def summarise(self, messages: Sequence[Message]) -> Reply:
        self.summarised.append(list(messages))
        return self._reply(self.summaries.pop(0))

    @staticmethod
    def _reply(said: str | Reply) -> Reply:
        return said if isinstance(said, Reply) else Reply(said)

    def told(self, request: int) -> dict[str, object]:
        """The newest message of a request, counted from 0."""
        return msgspec.json.decode(self.seen[request][-1].text)


def held(mind: Script, budget: int | None = None, rules: Rules = Rules()) -> tuple[Gateway, Outcome]:  # noqa: B008
    gateway = TASK.open(budget=budget)
    return gateway, converse(Conversation(gateway, opening(TASK, gateway, rules), rules), mind)


# -- what the agent is told ----------------------------------------------------------------------------------------


def test_the_brief_stands_in_the_first_message_or_only_behind_the_tool():
    gateway = TASK.open()
    brief = json.dumps(TASK.brief["depot"])
    assert brief in opening(TASK, gateway)[1].text
    discovery = opening(TASK, gateway, Rules(entry="discovery"))
    assert not any(brief in m.text for m in discovery)
    assert "read_task_brief" in discovery[1].text
    mind = Script(acts("read_task_brief"))
    gateway, _ = held(mind, rules=Rules(entry="discovery"))
    assert mind.told(1)["results"][0]["observation"]["result"] == TASK.brief
    assert gateway.used == 1  # an explicit read is an attempt, the initial display is none


def test_the_instructions_name_allowance_and_every_tool_with_its_schema():
    gateway = TASK.open(budget=77)
    system = opening(TASK, gateway)[0]
    assert (system.role, system.text.startswith(INSTRUCTIONS)) == ("system", True)
    assert "Allowance: 77 attempts." in system.text
    tools = json.loads(system.text.partition("\n\nTools:\n")[2])
    assert [t["name"] for t in tools] == list(gateway.tools)
    assert all(t["arguments"]["type"] == "object" and t["description"] for t in tools)


# -- batches and charges -------------------------------------------------------------------------------------------


def test_a_batch_runs_in_order_up_to_the_first_refusal_and_only_that_is_charged():
    mind = Script(acts("list_skills", "read_task_brief", "no_such_tool", "list_routes", "list_rates"))
    gateway, outcome = held(mind, budget=50)
    assert [e.tool for e in gateway.events] == ["list_skills", "read_task_brief", "no_such_tool"]
    assert [(e.decision, e.position) for e in gateway.events] == [(1, 0), (1, 1), (1, 2)]
    assert (gateway.used, gateway.remaining) == (3, 47)
    told = mind.told(1)
    assert (told["not_attempted"], told["attempts_left"]) == (2, 47)
    assert [r["name"] for r in told["results"]] == ["list_skills", "read_task_brief", "no_such_tool"]
    assert [r["observation"]["ok"] for r in told["results"]] == [True, True, False]
    assert (outcome.end, outcome.decisions) == ("submitted", 3)


def test_declarations_are_free():
    mind = Script(acts("begin_skill", skill="quote-parcel"))
    gateway, _ = held(mind, budget=5)
    assert (gateway.used, len(gateway.events), mind.told(1)["attempts_left"]) == (0, 1, 5)


def test_the_size_of_the_request_stands_beside_its_calls():
    mind = Script(acts("list_skills"), acts("list_routes"))
    gateway, _ = held(mind)
    for event, request in zip(gateway.events, mind.seen[:2], strict=True):
        assert event.context_tokens == sum(m.tokens for m in request) + 256 + 16 * len(request)
    assert [len(request) for request in mind.seen] == [2, 4, 6, 8]


# -- malformed responses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "charged", "words"),
    [
        ("I shall begin.", 0, "not one JSON object"),
        ('{"type":"actions","actions":[]}', 0, "at least one call"),
        (acts(*["list_skills"] * 33), 0, "33 calls"),
        ('{"type":"actions","actions":[{"name":"list_skills","arguments":[]}]}', 1, 'no "arguments"'),
        ('{"type":"actions","actions":[{"name":"begin_skill","arguments":[]}]}', 0, 'no "arguments"'),
        ('{"type":"actions","actions":[{"name":"nothing_such"}]}', 1, 'no "arguments"'),
        ('{"type":"actions","actions":[{"arguments":{}}]}', 0, 'no "name"'),
        ("```json\n" + FINAL + "\n```", 0, "a final stands alone"),
        ("I am done. " + FINAL, 0, "not one JSON object"),
    ],
)
def test_a_malformed_response_is_told_what_was_wrong_and_costs_an_identified_action_only(text, charged, words):
    mind = Script(text)
    gateway, outcome = held(mind, budget=10)
    error = mind.told(1)["error"]
    assert error["code"] == "malformed_response"
    assert words in error["message"]
    assert '{"type":"final"' in error["expected"]
    assert gateway.used == charged
    assert not any(e.ok for e in gateway.events)
    assert outcome.end == "submitted"


def test_a_response_that_was_cut_short_is_told_so():
    mind = Script(Reply('{"type":"actions","actions":[{"na', "max_tokens"))
    held(mind)
    assert "cut short (max_tokens)" in mind.told(1)["error"]["message"]


def test_responses_without_an_attempt_do_not_go_on_for_ever():
    mind = Script(*["nonsense"] * 9)
    gateway, outcome = held(mind, rules=Rules(idle_responses=4))
    assert (outcome.end, outcome.decisions, gateway.used) == ("failed", 4, 0)
    assert "4 responses in a row" in outcome.why


# -- the end -------------------------------------------------------------------------------------------------------


def test_a_first_final_is_answered_by_a_question_and_a_second_ends():
    mind = Script()
    gateway, outcome = held(mind)
    assert mind.told(1) == {"confirmation": CONFIRM}
    assert (outcome.end, outcome.decisions, gateway.events) == ("submitted", 2, [])


@pytest.mark.parametrize(
    ("between", "requests"),
    [
        (acts("list_skills"), 4),  # final, actions, final, final
        (acts("no_such_tool"), 4),
        ('{"type":"actions","actions":[{"name":"list_skills"}]}', 4),
        (acts("begin_skill", skill="quote-parcel"), 3),  # a declaration leaves the first final standing
        ("nonsense", 3),
    ],
)
def test_an_attempt_between_withdraws_the_first_final(between, requests):
    mind = Script(FINAL, between)
    _, outcome = held(mind)
    assert (outcome.end, len(mind.seen)) == ("submitted", requests)


def test_the_run_stops_after_the_last_permitted_attempt_has_been_evaluated():
    mind = Script(acts("list_skills"), acts("read_task_brief", "list_routes", "list_rates", "begin_skill"))
    gateway, outcome = held(mind, budget=3)
    assert [e.tool for e in gateway.events] == ["list_skills", "read_task_brief", "list_routes"]
    assert all(e.ok for e in gateway.events)
    assert (outcome.end, outcome.decisions, gateway.remaining) == ("exhausted", 2, 0)


def test_tokens_and_costs_are_those_that_the_provider_gives():
    mind = Script(Reply(acts("list_skills"), usage=Usage(100, 7, 0.25)), Reply(FINAL, usage=Usage(120, 5)))
    _, outcome = held(mind)
    last = mind.seen[-1]
    estimated = sum(m.tokens for m in last) + 256 + 16 * len(last)
    assert outcome.request_tokens == 100 + 120 + estimated
    assert outcome.cost == 0.25


def test_a_mind_may_have_to_be_waited_for():
    class Waiting(Script):
        async def respond(self, messages):
            await asyncio.sleep(0)
            return Script.respond(self, messages)

    mind, gateway = Waiting(acts("list_skills")), TASK.open()
    outcome = asyncio.run(converse_async(Conversation(gateway, opening(TASK, gateway)), mind))
    assert (outcome.end, outcome.decisions, gateway.used) == ("submitted", 3, 1)


def test_the_loop_itself_asks_nobody():
    conversation = Conversation(TASK.open(), opening(TASK, TASK.open()))
    steps = conversation.steps()
    assert isinstance(next(steps), Request)
    assert steps.send(Reply(FINAL)).kind == "respond"
    with pytest.raises(StopIteration) as stop:
        steps.send(Reply(FINAL))
    assert stop.value.value.end == "submitted"
