"""A task as an MCP server, over stdio or streamable HTTP, for any client.

What a client gets is what any agent gets: the tools, their observations, the brief, the skills, the allowance. A call
is answered by its observation, as structured content and as text; a refusal is such a result too, marked as an error.
The brief and the allowance are resources that are free to read, as an initial display is; reading a skill's file is
an explicit read and takes an attempt, by the tool or as a resource (paper B.1, B.2).

Whoever works has a world of their own: one process over stdio, one MCP session over HTTP. There is nothing to submit:
the state of the business counts, and the journal can be scored at any time. The revision 2026-07-28 of the protocol
has no sessions over HTTP, so it is served over stdio alone; HTTP clients that speak it fall back to the handshake.
"""

from __future__ import annotations

import itertools
import re
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette

from skillhorizon import api
from skillhorizon.agents.protocol import Outcome
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event, Observation, Role
from skillhorizon.core.journal import Journal
from skillhorizon.core.serial import UNENCODABLE, canonical
from skillhorizon.core.task import Task
from skillhorizon.core.tools import Tool

AGENT = "mcp"
"""Under this name a served run stands in its journal."""

BRIEF = "skillhorizon://brief"
ALLOWANCE = "skillhorizon://allowance"
SKILL_FILE = "skill://{skill}/{+path}"
DIGESTS = "skillhorizon://digests"
ATTEMPTS = "skillhorizon/attempts"
"""Key of a result's ``_meta`` under which ``{"used", "remaining"}`` stands."""
PLACE = "skillhorizon/place"
"""Key of a call's ``_meta`` under which a harness says who calls and what for (``Place``)."""
EVENT = "skillhorizon/event"
"""Key of a result's ``_meta`` under which a harness is told the event, without its observation."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_WORLDS = 64  # held in memory: one for a session that has made a call, to its end; a named one to the server's
MAX_SESSIONS = 1024  # a client that comes back without having taken its leave has a new one each time
IDLE_SECONDS = 24 * 3600.0  # a client that thinks for long keeps its world
MAX_REQUEST_BYTES = 1 << 20
MAX_ARGUMENT_BYTES = 1 << 17
"""Scripts run in the server. None loops over a value, so the size of its input bounds its time and memory: at this size
the slowest takes about a second (tests/interop/test_script_bounds.py). Reference calls stay below an eighth of it."""

OBSERVATION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "result": {"type": "object"},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object"},
            },
            "required": ["code", "message", "details"],
        },
    },
    "required": ["ok"],
}

_NAME = re.compile("[a-z0-9][a-z0-9-]{0,39}")
_DESK = "skillhorizon.desk"

Context = ServerRequestContext[Any, Any]


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """What a harness says of a call, as ``Gateway.call`` takes it. ``role`` binds: the server refuses what that role
    may not do. ``unsendable`` is the JSON of arguments that are no object, which MCP cannot carry."""

    module: str | None = None
    goal: str | None = None
    decision: int | None = None
    position: int = 0
    context_tokens: int | None = None
    role: Role | None = None
    unsendable: str | None = None


class Answer(NamedTuple):
    """An observation, the event that has its canonical text, and the allowance after it."""

    observation: Observation
    event: Event
    attempts: dict[str, int | None]


class Desk:
    """One world and those who work in it: calls are made one at a time, in the order in which they came in."""

    def __init__(self, task: Task, journal: Journal | None = None) -> None:
        self.journal = journal
        self.gateway = task.open(journal=journal)
        self.gateway.catch_up()
        self._lock = anyio.Lock()

    async def call(self, name: str, arguments: dict[str, Any] | None, place: Place) -> Answer:
        # On a thread, so that a slow call holds up nobody else's world; not to be cancelled once it has begun, since
        # what the journal holds has happened.
        async with self._lock:
            return await anyio.to_thread.run_sync(self._call, name, arguments, place)

    @property
    def attempts(self) -> dict[str, int | None]:
        return {"used": self.gateway.used, "remaining": self.gateway.remaining}

    def close(self) -> None:
        """Record how the run ended. It can still be taken up again.

        A journal that can no longer be written stays as it is: each call that it lost was answered by an error.
        """
        if self.journal is not None:
            spent = self.gateway.remaining is not None and self.gateway.remaining <= 0
            outcome = Outcome("exhausted") if spent else Outcome("stopped", "the client closed its session")
            with suppress(InputError):
                self.journal.finish(msgspec.to_builtins(outcome))
            self.journal.close()

    def _call(self, name: str, arguments: Any, place: Place) -> Answer:
        said = msgspec.structs.asdict(place)
        unsendable = said.pop("unsendable")
        if unsendable is not None:
            arguments = msgspec.json.decode(unsendable)
        observation = self.gateway.call(name, arguments, **said)
        return Answer(observation, self.gateway.events[-1], self.attempts)


class Desks:
    """Who works where.

    ``shared`` has one desk for all, open from the start; stdio needs no more. Otherwise every HTTP session has a desk
    of its own, unless its URL names one (``?run=NAME``: all sessions with that name share it, and it outlives them).

    With ``journal`` the first desk is recorded there, others beside it: ``run.sqlite``, ``run-2.sqlite``, …,
    ``run-NAME.sqlite``. With ``resume`` a journal that exists is taken up where it stands; a session that names no
    run takes the first that nobody holds.

    ``harness`` serves a harness that has several roles work on one world (``interop.mcp_client``): its calls say whose
    they are, and it is told their events and the digests of the tables. No model sees any of that.
    """

    def __init__(
        self,
        task: Task,
        journal: str | Path | None = None,
        resume: bool = False,
        shared: bool = False,
        harness: bool = False,
    ) -> None:
        self.task = task
        self.harness = harness
        self.resume = resume
        self.shared = shared
        self._journal = Path(journal) if journal is not None else None
        self._opening = anyio.Lock()
        self._named: dict[str, Desk] = {}
        self._held: set[Path] = set()
        self._worlds = 0
        if self._journal is None:
            if resume:
                raise InputError("only a journaled run can be resumed; name its journal")
        elif self._journal.exists():
            api.record(self._journal, task, AGENT, resume=resume).close()  # refuses what could not be used later
        elif not self._journal.parent.is_dir():
            raise InputError(f"{self._journal.parent} is not a folder")
        if shared:
            self._named[""] = self._begin(self._journal)

    async def desk(self, context: Context) -> Desk:
        """The desk of the client who asks; opened by its first call."""
        connection = _connection(context)
        name = self._name(context, connection)
        desk = connection.state.get(_DESK) if name is None else self._named.get(name)
        if desk is not None:
            return desk
        async with self._opening:
            if name is not None:
                if name not in self._named:
                    self._named[name] = await self._open(self._file(name))
                return self._named[name]
            if _DESK not in connection.state:
                file = self._free_file()
                desk = await self._open(file)
                connection.state[_DESK] = desk
                connection.exit_stack.callback(self._leave, desk, file)
            return connection.state[_DESK]

    def close(self) -> None:
        for desk in self._named.values():
            desk.close()
        self._named.clear()

    async def _open(self, file: Path | None) -> Desk:
        if self._worlds >= MAX_WORLDS:
            raise MCPError(types.INVALID_REQUEST, f"this server holds {MAX_WORLDS} worlds and opens no more")
        try:
            desk = await anyio.to_thread.run_sync(self._begin, file)
        except InputError as error:
            raise MCPError(types.INVALID_REQUEST, str(error)) from None
        self._worlds += 1
        return desk

    def _begin(self, file: Path | None) -> Desk:
        if file is None:
            return Desk(self.task)
        if file in self._held:
            raise InputError(f"{file} is in use by another session")
        desk = Desk(self.task, api.record(file, self.task, AGENT, resume=self.resume and file.exists()))
        self._held.add(file)
        return desk

    def _leave(self, desk: Desk, file: Path | None) -> None:
        self._worlds -= 1
        if file is not None:
            self._held.discard(file)
        desk.close()

    def _name(self, context: Context, connection: Connection) -> str | None:
        """The run that the client works on; None for one of its session's own."""
        if self.shared or connection.session_id is None:
            return ""
        name: str | None = context.request.query_params.get("run") if context.request is not None else None
        if name is not None and not _NAME.fullmatch(name):
            raise MCPError(types.INVALID_REQUEST, "a run's name is up to 40 small letters, digits and hyphens")
        return name

    def _file(self, name: str) -> Path | None:
        if self._journal is None or not name:
            return self._journal
        return self._journal.with_stem(f"{self._journal.stem}-{name}")

    def _free_file(self) -> Path | None:
        if self._journal is None:
            return None
        for number in itertools.count(1):
            file = self._file(str(number) if number > 1 else "")
            assert file is not None
            if file not in self._held and (self.resume or not file.exists()):
                return file
        raise AssertionError("unreachable")


def _connection(context: Context) -> Connection:
    # The one thing taken from behind the SDK's public face: a session's own state and its end are nowhere else.
    return context.session._connection


def server(task: Task, desks: Desks) -> Server[Any]:
    """The low-level server of a task. Nothing that it answers comes from anywhere but the desk and the public task."""
    environment = task.environment
    tools = [described(tool) for tool in environment.tools.values()]
    files = {
        f"skill://{skill.name}/{path}": (skill.name, path)
        for skill in environment.skills.skills.values()
        for path in skill.texts
    }

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await _made(context, params.name, params.arguments, _place(params.meta) if desks.harness else Place())
        meta: dict[str, Any] = {ATTEMPTS: answer.attempts}
        if desks.harness:
            meta[EVENT] = msgspec.to_builtins(msgspec.structs.replace(answer.event, observation=b""))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.event.observation.decode())],
            structured_content=answer.observation,
            is_error=not answer.observation["ok"],
            _meta=meta,
        )

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        listed = [
            types.Resource(
                uri=BRIEF, name="brief", description="The task. Free to read.", mime_type="application/json"
            ),
            types.Resource(
                uri=ALLOWANCE,
                name="allowance",
                description="Attempts: budget, used, remaining. Free to read.",
                mime_type="application/json",
            ),
        ]
        for uri, (skill, path) in files.items():
            about = environment.skills[skill].description if path == "SKILL.md" else f"A file of the skill {skill}."
            listed.append(
                types.Resource(
                    uri=uri,
                    name=f"{skill}/{path}",
                    description=f"{about} Reading it takes one attempt.",
                    mime_type=_mime_type(path),
                )
            )
        return types.ListResourcesResult(resources=listed)

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=SKILL_FILE,
            name="skill-file",
            description="A file of a skill's package. Reading it takes one attempt, as read_skill_file does.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri == BRIEF:
            return _text(uri, _json(task.brief))
        if uri == ALLOWANCE:
            desk = await desks.desk(context)
            return _text(uri, _json({"budget": desk.gateway.budget, **desk.attempts}))
        if uri == DIGESTS and desks.harness:
            desk = await desks.desk(context)
            return _text(uri, msgspec.json.encode(desk.gateway.table_digests()).decode())
        if uri not in files:
            raise MCPError(types.INVALID_PARAMS if _is_modern(context) else -32002, "no such resource", {"uri": uri})
        skill, path = files[uri]
        answer = await _made(context, "read_skill_file", {"skill": skill, "path": path}, Place())
        if not answer.observation["ok"]:
            raise MCPError(types.INVALID_REQUEST, answer.observation["error"]["message"], answer.observation)
        contents = types.TextResourceContents(
            uri=uri, text=answer.observation["result"]["text"], mime_type=_mime_type(path)
        )
        return types.ReadResourceResult(contents=[contents], _meta={ATTEMPTS: answer.attempts})

    async def _made(context: Context, name: str, arguments: dict[str, Any] | None, place: Place) -> Answer:
        if _size(arguments) > MAX_ARGUMENT_BYTES and not desks.harness:
            raise MCPError(types.INVALID_PARAMS, f"arguments of more than {MAX_ARGUMENT_BYTES} bytes")
        desk = await desks.desk(context)
        try:
            return await desk.call(name, arguments, place)
        except InputError as error:  # the journal cannot be written: the call has not been acknowledged
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        try:
            yield {}
        finally:
            desks.close()

    built = Server(
        "skillhorizon",
        version=version("skillhorizon"),
        title=f"SkillHorizon: {environment.title}",
        instructions=instructions(task),
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
    built.middleware.append(_sessions_only)
    return built


def instructions(task: Task) -> str:
    """What a client is told once: how one works here, and the allowance."""
    if task.measures is None:
        allowance = "Attempts are counted and not limited."
    else:
        allowance = f"There are {task.budget} attempts in all."
    return (
        f"One long business task in {task.environment.title}. Read the brief first: the tool read_task_brief, or free "
        f"of charge the resource {BRIEF}. Work through the tools alone. A result with ok false is a refusal: it "
        f"changed nothing, and its error says which public rule stands against it. {allowance} Every call takes one, "
        "refused or not, and so does reading a skill's file; begin_skill and finish_skill take none. "
        f"{ALLOWANCE} tells what is left. When you stop, the state of the business is what counts; there is nothing "
        "to submit."
    )


def described(tool: Tool) -> types.Tool:
    """The MCP form of a declaration."""
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        output_schema=OBSERVATION_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=False,  # history stays readable: nothing that was accepted is ever erased
            idempotent_hint=tool.read_only,
            open_world_hint=False,
        ),
        _meta={"skillhorizon/kind": tool.kind, "skillhorizon/charged": tool.charged},
    )


def _place(meta: Any) -> Place:
    try:
        place = msgspec.convert((meta or {}).get(PLACE, {}), Place)
        msgspec.json.decode(place.unsendable or "null")
        return place
    except msgspec.DecodeError as error:
        raise MCPError(types.INVALID_PARAMS, f"{PLACE}: {error}") from None


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


async def _sessions_only(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Refuse the protocol without sessions where only a session tells one client from another."""
    if ctx.request is not None and _is_modern(ctx):
        raise MCPError(
            types.UNSUPPORTED_PROTOCOL_VERSION,
            "over HTTP a world belongs to a session; begin one with initialize",
            {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": ctx.protocol_version},
        )
    return await call_next(ctx)


def _json(value: Any) -> str:
    return canonical(value).decode()


def _size(arguments: Any) -> int:
    """Bytes of the arguments; none where the Gateway will say that JSON cannot carry them."""
    try:
        return len(canonical(arguments))
    except UNENCODABLE:
        return 0


def _text(uri: str, text: str) -> types.ReadResourceResult:
    contents = types.TextResourceContents(uri=uri, text=text, mime_type="application/json")
    return types.ReadResourceResult(contents=[contents])


def _mime_type(path: str) -> str:
    return {".md": "text/markdown", ".json": "application/json", ".py": "text/x-python"}.get(
        Path(path).suffix, "text/plain"
    )


# -- transports ----------------------------------------------------------------------------------------------------


def serve_stdio(desks: Desks) -> None:
    """Serve one client on standard input and output until it closes them."""

    async def serve() -> None:
        served = server(desks.task, desks)
        async with stdio_server() as (read, write):
            await served.run(read, write, served.create_initialization_options())

    anyio.run(serve)


def http_app(desks: Desks, hosts: Sequence[str] = ()) -> Starlette:
    """The ASGI application, at ``/mcp``. Requests for hosts or from origins other than the loopback's and ``hosts``
    are refused, so no web page can reach it."""
    known = [*LOOPBACK, *hosts]
    return server(desks.task, desks).streamable_http_app(
        json_response=True,  # nothing is ever sent but the answer
        max_request_body_size=MAX_REQUEST_BYTES,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[form for host in known for form in (host, f"{host}:*")],
            allowed_origins=[form for host in known for form in (f"http://{host}", f"http://{host}:*")],
        ),
    )


def serve_http(desks: Desks, address: str, hosts: Sequence[str] = (), announce: Callable[[str], None] = print) -> None:
    """Serve any number of clients at ``HOST:PORT`` (port 0: any free one) until interrupted."""
    host, port = parsed(address)
    with listener(host, port) as listening:
        config = uvicorn.Config(http_app(desks, hosts), log_level="error", timeout_graceful_shutdown=2)
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{listening.getsockname()[1]}/mcp")
        uvicorn.Server(config).run(sockets=[listening])


def listener(host: str, port: int) -> socket.socket:
    """A listening TCP socket."""
    # With the protocol named, asyncio switches Nagle's delay off: 40 ms a call on the loopback otherwise.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(f"cannot listen at {host}:{port}: {error.strerror or error}") from None
    return listening


def parsed(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT`` or ``[HOST]:PORT``."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise InputError(f"{address!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
