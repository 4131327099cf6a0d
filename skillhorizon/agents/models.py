"""Language models as minds, through Inspect AI's model API: its providers, retries and caching come with it.

``model:<name>`` takes any name that Inspect knows (``openai/…``, ``anthropic/…``; ``openai-api/<server>/…`` for a
server of one's own). What the requests ask for is in ``Requests`` (paper B.1, Table 7).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from skillhorizon.agents import harness
from skillhorizon.agents.compaction import Message
from skillhorizon.agents.harness import Conversation, Reply, Rules, Usage
from skillhorizon.agents.protocol import Agent, Outcome
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.task import Task

if TYPE_CHECKING:  # an optional package, and slow to load
    from inspect_ai.model import ChatMessage, Model, ModelUsage

T = TypeVar("T")
Count = Annotated[int, Meta(ge=1)]


class Requests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request asks of a model; temperature and top-p are left to the provider (paper B.1).

    max_tokens        most tokens of a response, reasoning included where the provider counts it
    reasoning_effort  for models that reason
    max_retries       attempts at a request that the provider fails; they take nothing of the allowance
    timeout           seconds for a request with all its retries
    """

    max_tokens: Count = 8192
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high"] | None = "medium"
    max_retries: Annotated[int, Meta(ge=0)] = 8
    timeout: Count | None = None


REQUESTS = Requests()
_MARKUP = re.compile(r"\[/?[a-z ]+\]")


class ModelMind:
    """A model behind the messages of a conversation. Its answers cost, so the journal keeps them."""

    repeatable = False

    def __init__(self, model: Model, requests: Requests = REQUESTS) -> None:
        from inspect_ai.model import GenerateConfig

        self.model = model
        self.config = GenerateConfig(
            max_tokens=requests.max_tokens,
            reasoning_effort=requests.reasoning_effort,
            max_retries=requests.max_retries,
            timeout=requests.timeout,
        )

    async def respond(self, messages: Sequence[Message]) -> Reply:
        """Raises ``InputError`` where the provider gives no answer; what came before stays in the journal."""
        from inspect_ai.util import LimitExceededError

        try:
            output = await self.model.generate([_chat(m) for m in messages], config=self.config)
        except LimitExceededError:  # one that the user set in an evaluation of Inspect's, which scores what there is
            raise
        except Exception as error:  # providers raise types of their own
            cause = _cause(error)
            raise InputError(f"{self.model.name} gave no answer: {type(cause).__name__}: {_line(cause)}") from error
        if output.error:
            raise InputError(f"{self.model.name} gave no answer: {_line(output.error)}")
        return Reply(output.completion, output.stop_reason, _usage(output.usage))

    summarise = respond
    """Neither request offers the provider's own tools: the calls of the protocol are text."""


class ModelAgent(Agent):
    """One model under the harness, with Inspect's name for it."""

    def __init__(self, name: str, requests: Requests = REQUESTS, rules: Rules = harness.RULES) -> None:
        self.name = name
        self.requests = requests
        self.rules = rules

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        """The seed plays no part: a model is what it is."""
        mind = ModelMind(load(self.name), self.requests)
        conversation = Conversation(gateway, harness.opening(task, gateway, self.rules), self.rules)
        return wait_for(harness.converse_async(conversation, mind))


def load(name: str) -> Model:
    """Inspect's model of this name; raises ``InputError`` where it has none or its provider is not set up."""
    try:
        from inspect_ai.model import get_model
    except ImportError:
        raise InputError("models need Inspect AI: pip install 'skillhorizon[agents]'") from None
    try:
        return get_model(name)
    except Exception as error:  # a missing provider, key or package: each provider says it in its own way
        raise InputError(f"model {name!r} cannot be used: {_line(error)}") from None


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def _chat(message: Message) -> ChatMessage:
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return kinds[message.role](content=message.text)


def _usage(usage: ModelUsage | None) -> Usage | None:
    if usage is None:
        return None
    # providers report what they took from or put into a cache beside the rest of the input
    read = usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(read, usage.output_tokens, usage.total_cost)


def _cause(error: BaseException) -> BaseException:
    """What the last attempt raised, where the error only says that the attempts are used up."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() if attempt is not None else None) or error


def _line(error: object) -> str:
    """What an error says, on one line and without markup for terminals; where the provider said it, its own words.

    Inspect's text begins with the request, which fills any line.
    """
    error = getattr(error, "provider_message", None) or error
    return " ".join(_MARKUP.sub("", str(error)).split())[:300] or type(error).__name__
