"""The loop between an agent's mind and a world: instructions, batches, confirmation, allowance, compaction (paper B).

A ``Mind`` is whatever answers a list of messages: a model, or a simulated agent. ``Conversation.steps`` is a generator
that yields requests and is sent replies, so the same loop serves minds that answer at once (``converse``) and minds
that wait (``converse_async``). A crash loses nothing: calls are in the journal, and so is each reply of a mind whose
replies could not be had again, before it is acted on; everything else follows from them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Generator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from skillhorizon.agents import actions, compaction
from skillhorizon.agents.actions import Action, Actions, Final, Malformed
from skillhorizon.agents.compaction import Compaction, Limits, Message, message
from skillhorizon.agents.protocol import Agent, End, Outcome
from skillhorizon.core import tokens
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task
from skillhorizon.core.tools import Tool

Entry = Literal["brief", "discovery"]


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How conversations are held.

    entry           ``brief``: the first message holds the task brief; ``discovery``: only ``read_task_brief`` gives it
    idle_responses  a run fails after so many responses in a row without an attempt: they cost no allowance
    """

    entry: Entry = "brief"
    idle_responses: Annotated[int, Meta(ge=1)] = 20
    compaction: Limits = Limits()


RULES = Rules()


class Usage(msgspec.Struct, frozen=True):
    """What a provider says that a request took, in its own tokens; ``cost`` where it gives prices."""

    request_tokens: int
    response_tokens: int
    cost: float | None = None


class Reply(msgspec.Struct, frozen=True):
    """A mind's answer. It is complete when ``stop_reason`` is ``stop``; any other word says how it was cut short."""

    text: str
    stop_reason: str = "stop"
    usage: Usage | None = None


class Mind(Protocol):
    """What thinks. It never sees a world, only messages: the instructions, its own words, and what came of them.

    ``repeatable`` minds answer the same when they are asked the same again, at no cost, so a resumed run asks them
    again; the replies of all others are kept in the journal.
    """

    repeatable: bool

    def respond(self, messages: Sequence[Message]) -> Reply:
        """The next response of the protocol."""

    def summarise(self, messages: Sequence[Message]) -> Reply:
        """A summary of the messages; the last of them asks for it. No tools."""


class AsyncMind(Protocol):
    """A ``Mind`` that has to wait for its answers."""

    repeatable: bool

    def respond(self, messages: Sequence[Message]) -> Awaitable[Reply]: ...

    def summarise(self, messages: Sequence[Message]) -> Awaitable[Reply]: ...


class Request(NamedTuple):
    kind: Literal["respond", "summarise"]
    messages: list[Message]


# -- what the agent is told ----------------------------------------------------------------------------------------

INSTRUCTIONS = """\
You carry out a business project for a user. The business is reached through the public tools listed below and through \
nothing else: there is no shell, no code execution and no place to keep files.

Every response is a single JSON object, with no Markdown around it.
- To call tools: {"type":"actions","actions":[{"name":"TOOL","arguments":{…},"skill_run_id":"LABEL"}]}. A response \
holds 1 to 32 calls that do not depend on each other. Write every argument out in full; an argument cannot refer to \
a result that has not come yet. Calls run in order, and after the first one that is refused the rest of the response \
is not attempted and not charged. skill_run_id is an optional label and no argument of the tool.
- To end the whole task, finished or not: {"type":"final","text":"…"}. Say truthfully what is done and what is not; if \
something is open, say why you end all the same. A final is no progress report: to go on, call tools.

Skills are packages of instructions. Read them with read_skill_file; their scripts run through run_skill_script only. \
begin_skill and finish_skill announce that you start or stop working by a skill; a finish is your own claim and \
certifies nothing. What tools have accepted stays in the business, whatever happens to this conversation.
Nobody tells you how the work will be judged beyond what the tools answer. Before you end, compare the user's goal \
with the results that you have really seen."""

_ENTRIES: dict[Entry, str] = {
    "brief": "Complete the business task below with the public tools. read_task_brief gives the same brief again.",
    "discovery": "Complete a business task with the public tools. Call read_task_brief without arguments to learn it.",
}
CONFIRM = (
    "Do you want to end the entire task and hand in the present state? Once confirmed, it is evaluated and nothing "
    "more can be done. Send a final again to confirm, or actions to go on. After any attempt at a tool other than a "
    "declaration, even a refused one, a later final has to be confirmed anew. Allowance and limits stay as they are."
)
SUMMARISE = (
    "Write a summary of the conversation above from which the work can be continued. Keep the user's goal, decisions "
    "about skills, the real ids of artifacts and what they depend on, revisions of sources, notices, errors, what is "
    "still owed, and the next steps you meant to take. Keep apart what tools have confirmed and what you assume, and "
    "claim no progress that was not made. Plain text only, no tool calls. The summary takes the place of the older "
    "conversation; the first instructions and recent messages that are kept remain."
)
SUMMARY = "Summary of the conversation so far:\n"


def tool_schemas(tools: Mapping[str, Tool]) -> bytes:
    """The public tools as the agent reads them: name, description, JSON Schema of the arguments."""
    return canonical([{"name": t.name, "description": t.description, "arguments": t.schema} for t in tools.values()])


def opening(task: Task, gateway: Gateway, rules: Rules = RULES) -> list[Message]:
    """The initial messages, which no compaction touches: how to work, and the task as its entry gives it."""
    budget = gateway.budget
    allowance = f"{budget} attempts" if budget is not None else "no limit of attempts"
    system = message(
        "system",
        INSTRUCTIONS,
        f"\n\nAllowance: {allowance}. Every call is one attempt, refused ones too, but for the two declarations.",
        "\n\nTools:\n",
        tool_schemas(gateway.tools),
    )
    brief = (b"\n\n", canonical(task.brief)) if rules.entry == "brief" else ()
    return [system, message("user", _ENTRIES[rules.entry], *brief)]


_NAME = 64  # characters of a tool's name that are repeated; no tool has a longer one
_CALLS = b'{"type":"actions","actions":['

# -- the loop ------------------------------------------------------------------------------------------------------


class Conversation:
    """One agent at work through one gateway. ``messages`` begins as ``initial``; its replies are numbered as decisions.

    ``record`` keeps replies in the journal and takes those that an earlier process kept.
    """

    def __init__(self, gateway: Gateway, initial: Sequence[Message], rules: Rules = RULES, record: bool = True) -> None:
        self.gateway = gateway
        self.rules = rules
        self.record = record
        self.messages = list(initial)
        self.instructions = len(initial)
        self.decision = 0
        self.confirming = False
        self.idle = 0
        self.context = 0
        """estimated tokens of the newest request"""
        self._size = compaction.estimate(self.messages, rules.compaction)
        self.compactions: list[Compaction] = []
        self.request_tokens = self.response_tokens = 0
        self.cost: float | None = None

    def steps(self) -> Generator[Request, Reply, Outcome]:
        """The whole run: requests out, replies in."""
        limits = self.rules.compaction
        while not self.exhausted:
            yield from self._make_room()
            if self.context > limits.guard:
                return self._outcome("failed", f"the conversation exceeds {limits.guard:,} tokens and cannot be cut")
            reply = yield from self._ask("respond", self.messages)
            self.decision += 1
            response = actions.parse(reply.text)
            self._add(_spoken(reply.text, response))
            self._account(reply, self.context, self.messages[-1].tokens)
            if isinstance(response, Final):
                if self.confirming:
                    return self._outcome("submitted")
                self.confirming = True
                self._tell({"confirmation": CONFIRM})
                continue
            attempts = self.gateway.used
            if isinstance(response, Actions):
                self._carry_out(response.calls)
            else:
                self._refuse(response, reply)
            self.idle = self.idle + 1 if self.gateway.used == attempts else 0
            if self.idle >= self.rules.idle_responses:
                return self._outcome("failed", f"{self.idle} responses in a row without an attempt")
        return self._outcome("exhausted")

    @property
    def exhausted(self) -> bool:
        return self.gateway.remaining is not None and self.gateway.remaining <= 0

    def _carry_out(self, calls: Sequence[Action]) -> None:
        """A batch in order, until the first refusal or the end of the allowance."""
        first = len(self.gateway.events)
        for position, action in enumerate(calls):
            if not self._attempt(action.name, action.arguments, position) or self.exhausted:
                break
        self._report(first, len(calls) - (len(self.gateway.events) - first))

    def _refuse(self, response: Malformed, reply: Reply) -> None:
        """Say what was wrong. A faulty action that names its tool is an attempt, and refused like any other."""
        first = len(self.gateway.events)
        if response.rejected is not None:
            self._attempt(response.rejected, f"<{response.problem}>", 0)
        cut = "" if reply.stop_reason == "stop" else f"; the response was cut short ({reply.stop_reason})"
        error = {"code": "malformed_response", "message": response.problem + cut, "expected": actions.EXPECTED}
        self._report(first, 0, error)

    def _attempt(self, name: str, arguments: Any, position: int) -> bool:
        answer = self.gateway.call(
            name, arguments, decision=self.decision, position=position, context_tokens=self.context
        )
        if self.gateway.events[-1].charged:
            self.confirming = False
        return bool(answer["ok"])

    def _report(self, first: int, unattempted: int, error: dict[str, str] | None = None) -> None:
        """What came of a response: one JSON object, with the observations as the gateway gave them."""
        parts: list[bytes] = [b'{"results":[']
        events = self.gateway.events[first:]
        for number, event in enumerate(events):
            head = b'%b{"name":%b,"observation":' % (b"," if number else b"", canonical(event.tool[:_NAME]))
            parts += (head, event.observation, b"}")
        left = canonical(self.gateway.remaining)
        parts += (b'],"attempts_left":', left, b',"not_attempted":%d' % unattempted)
        parts.append(b"}" if error is None else b',"error":%b}' % canonical(error))
        self._add(message("user", *parts, steps=tuple(e.step for e in events)))

    def _tell(self, content: dict[str, Any]) -> None:
        self._add(message("user", canonical(content)))

    def _add(self, new: Message) -> None:
        self.messages.append(new)
        self._size += new.tokens + self.rules.compaction.per_message

    # -- requests --------------------------------------------------------------------------------------------------

    def _ask(self, kind: Literal["respond", "summarise"], messages: list[Message]) -> Generator[Request, Reply, Reply]:
        kept = self.gateway.recorded(kind) if self.record else None
        if kept is not None:
            reply = msgspec.convert(json.loads(kept), Reply)
        else:
            reply = yield Request(kind, messages)
            if self.record:
                # json, for it carries lone surrogates there and back
                self.gateway.record(kind, json.dumps(msgspec.to_builtins(reply)))
        return reply

    def _account(self, reply: Reply, asked: int, said: int) -> None:
        """Tokens and cost of a request, as the provider gives them, else as estimated."""
        usage = reply.usage or Usage(asked, said)
        self.request_tokens += usage.request_tokens
        self.response_tokens += usage.response_tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost

    def _make_room(self) -> Generator[Request, Reply, None]:
        """Replace the history where it has reached the trigger; a summary that is refused leaves it as it was."""
        limits = self.rules.compaction
        self.context = self._size  # kept along, for a sum over all messages at each request would grow as the square
        while self.context >= limits.trigger:
            instruction = message("user", SUMMARISE)
            replacement = compaction.plan(self.messages, self.instructions, instruction, limits)
            if replacement is None:
                return
            asked = replacement.request(instruction)
            reply = yield from self._ask("summarise", asked)
            summary = message("user", SUMMARY, reply.text)
            self._account(reply, compaction.estimate(asked, limits), summary.tokens - tokens.count(SUMMARY.encode()))
            changed = replacement.with_summary(summary)
            after = compaction.estimate(changed, limits)
            complete = reply.stop_reason == "stop"
            adopted = compaction.adoptable(replacement, reply.text, complete, self.context, after, limits)
            self.compactions.append(
                Compaction(
                    decision=self.decision + 1,
                    mode=replacement.mode,
                    retained_messages=len(replacement.retained),
                    tokens_before=self.context,
                    tokens_after=after,
                    evicted_steps=replacement.evicted,
                    adopted=adopted,
                )
            )
            if not adopted:
                return
            self.messages, self.context, self._size = changed, after, after

    def _outcome(self, end: End, why: str | None = None) -> Outcome:
        return Outcome(
            end=end,
            why=why,
            decisions=self.decision,
            compactions=tuple(self.compactions),
            request_tokens=self.request_tokens,
            response_tokens=self.response_tokens,
            cost=self.cost,
        )


def _spoken(text: str, response: actions.Response) -> Message:
    """A response as a message. Calls in canonical form are counted one by one, as the trace counts them too."""
    if isinstance(response, Actions):
        calls = [canonical({"arguments": a.arguments, "name": a.name}) for a in response.calls]
        parts = [_CALLS, calls[0], *(part for call in calls[1:] for part in (b",", call)), b"]}"]
        if b"".join(parts) == text.encode(errors="replace"):
            return message("assistant", *parts)
    return message("assistant", text)


def converse(conversation: Conversation, mind: Mind) -> Outcome:
    """Hold a conversation with a mind that answers at once; whatever it raises leaves a journal that can be resumed."""
    steps = conversation.steps()
    try:
        request = next(steps)
        while True:
            request = steps.send(getattr(mind, request.kind)(request.messages))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome


async def converse_async(conversation: Conversation, mind: AsyncMind) -> Outcome:
    """``converse`` with a mind that waits for its answers."""
    steps = conversation.steps()
    try:
        request = next(steps)
        while True:
            request = steps.send(await getattr(mind, request.kind)(request.messages))
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome


class Harnessed(Agent, Protocol):
    """An agent made of a mind for each run; ``repeatable`` as its minds are."""

    rules: Rules
    repeatable: bool

    def mind(self, task: Task, gateway: Gateway, seed: int) -> Mind: ...

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        mind = self.mind(task, gateway, seed)
        conversation = Conversation(gateway, opening(task, gateway, self.rules), self.rules, not mind.repeatable)
        return converse(conversation, mind)
