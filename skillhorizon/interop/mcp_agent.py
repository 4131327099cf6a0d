"""Any agent by name as a client of a served task: what it does goes through the Model Context Protocol.

The agent gets a ``Gateway`` as ever. Behind it is a session with a server; what a harness has to know beside
observations (what a call produced, which tables changed) the server tells, and for whom a call is made it is told.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import mcp_types as types
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError, StdioServerParameters
from mcp.server import Server

from skillhorizon import agents, api
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event, Gateway, Observation, Role, encode_arguments
from skillhorizon.core.progress import watch
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task
from skillhorizon.core.world import World
from skillhorizon.interop.mcp_server import ALLOWANCE, ATTEMPTS, CALLER, PRODUCED, TABLES, Caller

Where = str | StdioServerParameters | Server[Any]
"""The URL of a server, or how to start one, or one in this process."""


class RemoteGateway(Gateway):
    """A gateway whose world is behind an MCP server.

    Events lack what the server keeps to itself: the check, the goal's cycle, what became invalid. Nothing is kept on
    disk here; the server's journal is the record of the run.
    """

    def __init__(self, task: Task, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client
        allowance = self._resource(ALLOWANCE)
        super().__init__(World({}), task.environment.tools, allowance["budget"])
        self.used = allowance["used"]
        if self.used:
            raise InputError("the server's run has begun already; serve the task with a new journal")

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
        """As ``Gateway.call``. What the protocol cannot carry is a refusal that is not charged."""
        name, encoded_name = self._encode_name(name)
        encoded = encode_arguments(arguments)
        step = len(self.events) + 1
        decision = step if decision is None else decision
        caller = Caller(module, goal, decision, position, context_tokens, role or "full")
        given = msgspec.json.decode(encoded)
        # the protocol has objects alone; under a name that no tool knows anything else is refused as it would be
        given = given if isinstance(given, dict) else {"": given}
        used, produced = self.used, ()
        try:
            answer = self._ask("call_tool", name, given, meta={CALLER: msgspec.to_builtins(caller)})
        except MCPError as error:
            refusal = {"code": "bad_argument", "message": str(error), "details": {}}
            observation = canonical({"ok": False, "error": refusal})
        else:
            (content,) = answer.content
            assert isinstance(content, types.TextContent)
            observation = content.text.encode()
            self.used = answer.meta[ATTEMPTS]["used"]
            produced = tuple(answer.meta[PRODUCED])
        told: Observation = msgspec.json.decode(observation)
        tool = self.tools.get(name)
        self.events.append(
            Event(
                step=step,
                decision=decision,
                position=position,
                tool=name,
                kind=tool.kind if tool else "unknown",
                charged=self.used > used,
                ok=told["ok"],
                code=None if told["ok"] else told["error"]["code"],
                module=module,
                goal=goal,
                cycle=None,
                check=None,
                reason=None,
                invalidated=(),
                produced=produced,
                call=b'{"arguments":%b,"name":%b}' % (encoded, encoded_name),
                observation=observation,
                context_tokens=context_tokens,
                role=caller.role,
            )
        )
        return told

    def table_digests(self) -> dict[str, str]:
        """Of each table what differs from an earlier reading's where the table does: the server's revisions."""
        return {name: str(revision) for name, revision in self._resource(TABLES).items()}

    def state_digest(self) -> NoReturn:
        raise InputError("the state of a served run is the server's")

    frames = state_digest

    def _resource(self, uri: str) -> Any:
        (contents,) = self._ask("read_resource", uri, cache_mode="bypass").contents
        return msgspec.json.decode(contents.text)

    def _ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        async def ask() -> Any:
            return await getattr(self._client, method)(*arguments, **named)

        try:
            return self._portal.call(ask)
        except MCPError as error:
            if error.error.code == types.CONNECTION_CLOSED:
                raise InputError(f"the server is gone: {error}") from None
            raise


@contextmanager
def connected(task: Task, server: Where) -> Iterator[RemoteGateway]:
    """A gateway to the task that a server holds; ``InputError`` where none answers or its run has begun."""
    with start_blocking_portal() as portal:
        try:
            opened = portal.wrap_async_context_manager(Client(server))
            client = opened.__enter__()
        except Exception as error:
            raise InputError(f"no MCP server answers: {error}") from None
        try:
            yield RemoteGateway(task, portal, client)
        finally:
            # told of an exception, the client would wrap it; and of a server that is gone there is nothing to end
            with suppress(Exception):
                opened.__exit__(None, None, None)


def run(task: Task, agent: str = "reference", seed: int = 0, journal: str | Path | None = None) -> api.Run:
    """As ``api.run``, the world in a server of its own that is started for it; ``journal`` is the server's."""
    worker = agents.agent(agent)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "task.json"
        task.save(file)
        kept = Path(journal) if journal is not None else Path(folder) / "run.sqlite"
        if kept.exists():
            raise InputError(f"{kept} exists already")
        line = ["-m", "skillhorizon", "serve", str(file), "--journal", str(kept)]
        with (
            connected(task, StdioServerParameters(command=sys.executable, args=line, env=dict(os.environ))) as gateway,
            watch(lambda: len(gateway.events), f"calls of {agent} over MCP", gateway.budget),
        ):
            outcome = worker.act(task, gateway, seed)
        return api.scored(task, agent, seed, outcome, api.replay(kept).gateway)
