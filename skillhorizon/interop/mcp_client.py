"""Any agent over MCP: the world is in a server process, and every call goes through the SDK's client.

The journal is kept on this side. A run that is taken up gets a fresh server, and makes the recorded calls there again.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters

from skillhorizon import agents, api
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event, Gateway, Observation, Role, encode_arguments
from skillhorizon.core.journal import Journal, Row
from skillhorizon.core.task import Task
from skillhorizon.core.world import World
from skillhorizon.interop.mcp_server import ATTEMPTS, DIGESTS, EVENT, PLACE, Place

T = TypeVar("T")
LOST = (MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


class RemoteGateway(Gateway):
    """A Gateway whose world is behind an MCP server that serves a harness (``serve --harness``).

    Whoever works at it sees what a Gateway shows: observations, events, allowance, digests of tables. The server holds
    the roles to what they may do. There is no world here. A lost server raises ``InputError``.
    """

    def __init__(self, task: Task, portal: BlockingPortal, client: Client, journal: Journal | None = None) -> None:
        budget = task.budget if task.measures is not None else None
        super().__init__(cast(World, None), task.environment.tools, budget, journal)
        self._portal = portal
        self._client = client

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        module: str | None = None,
        goal: str | None = None,
        decision: int | None = None,
        position: int = 0,
        context_tokens: int | None = None,
        role: Role | None = None,
    ) -> Observation:
        name, _ = self._encode_name(name)
        encoded = encode_arguments(arguments)
        sent = msgspec.json.decode(encoded)
        place = Place(module, goal, decision, position, context_tokens, role or self.role)
        if not isinstance(sent, dict):  # MCP carries objects only
            place.unsendable, sent = encoded.decode(), {}
        meta = {PLACE: msgspec.to_builtins(place)}
        result = self._answer(lambda: self._client.call_tool(name, sent, meta=cast(Any, meta)))
        if result.meta is None or EVENT not in result.meta:
            raise InputError("the MCP server does not serve a harness; start it with --harness")
        event = msgspec.convert(result.meta[EVENT], Event)
        event.observation = _text(result.content).encode()
        if self._recorded:
            self._verify(event)
        elif self._journal is not None:
            said = (event.decision, position, context_tokens, event.role)
            self._journal.append(Row(event.step, name, encoded, event.observation, module, event.goal, *said))
        self.events.append(event)
        self.used = result.meta[ATTEMPTS]["used"]
        return cast(Observation, copy.deepcopy(result.structured_content))

    def table_digests(self) -> dict[str, str]:
        answer = self._answer(lambda: self._client.read_resource(DIGESTS, cache_mode="bypass"))
        return msgspec.json.decode(_text(answer.contents), type=dict[str, str])

    def _answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return self._portal.call(ask)
        except LOST as error:
            raise InputError(f"the MCP server did not answer: {error or type(error).__name__}") from None


def _text(contents: Sequence[Any]) -> str:
    return cast(str, contents[0].text)


@contextmanager
def connected(server: Any, task: Task, journal: Journal | None = None) -> Iterator[RemoteGateway]:
    """A gateway at an MCP server: ``StdioServerParameters`` that start one, a URL, or a server in this process."""
    failed: BaseException | None = None
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        try:
            client = stack.enter_context(portal.wrap_async_context_manager(Client(server)))
        except (ExceptionGroup, *LOST) as error:
            raise InputError(f"no MCP server can be reached: {error}") from None
        try:
            yield RemoteGateway(task, portal, client, journal)
        except BaseException as error:  # on its way out through the SDK it would become one of a group
            failed = error
    if failed is not None:
        raise failed


def run(
    task: Task, agent: str = "reference", seed: int = 0, journal: str | Path | None = None, resume: bool = False
) -> api.Run:
    """As ``skillhorizon.run``, with the world in a server process. What it left is scored by making the calls again
    here; the digests of the server's tables have to come out the same."""
    worker = agents.agent(agent)
    with api.recording(journal, task, agent, seed, resume) as written, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "task.json"
        task.save(file)
        line = ["-m", "skillhorizon", "serve", str(file), "--harness"]
        server = StdioServerParameters(command=sys.executable, args=line, env=dict(os.environ))
        with connected(server, task, written) as gateway:
            outcome = api.carry_out(worker, task, agent, seed, gateway, written)
            left = gateway.table_digests()
    made = api.rescored(task, agent, seed, outcome, gateway)
    if made.gateway.table_digests() != left:
        raise InputError("the server's tables differ from those that the same calls make here: another version")
    return made
