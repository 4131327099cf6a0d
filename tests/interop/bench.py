"""A task behind its MCP server, and a client of the SDK before it, from code that does not wait for anything."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult

from skillhorizon.core.gateway import Observation
from skillhorizon.core.policy import Call
from skillhorizon.interop.mcp_server import Desks, http_app, listener

SERVE = ["-m", "skillhorizon", "serve"]


def stdio(*arguments: object) -> StdioServerParameters:
    """``skillhorizon serve …`` as the server of a client's own."""
    return StdioServerParameters(command=sys.executable, args=[*SERVE, *map(str, arguments)], env=dict(os.environ))


class Served:
    """One client of the SDK. ``results`` are all that it was answered."""

    def __init__(self, portal: Any, client: Client) -> None:
        self.portal = portal
        self.client = client
        self.results: list[CallToolResult] = []

    def ask(self, method: str, *arguments: Any) -> Any:
        return self.portal.call(getattr(self.client, method), *arguments)

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Observation:
        result = self.ask("call_tool", name, arguments)
        self.results.append(result)
        return copy.deepcopy(result.structured_content)  # a policy may keep it and write in it

    def perform(self, call: Call) -> Observation:
        """What a policy's driver wants."""
        return self.call(call.tool, call.arguments)

    def text(self, uri: str) -> str:
        (contents,) = self.ask("read_resource", uri).contents
        return contents.text


@contextmanager
def client(of: Any, mode: str = "auto") -> Iterator[Served]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(of, mode=mode)) as inner:
        yield Served(portal, inner)


@contextmanager
def over_http(desks: Desks, *hosts: str) -> Iterator[str]:
    """The URL of a server in this process."""
    server = uvicorn.Server(uvicorn.Config(http_app(desks, hosts), log_level="error", timeout_graceful_shutdown=1))
    with listener("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """``skillhorizon serve … --http`` in a process of its own, and its URL."""
    line = [sys.executable, *SERVE, *map(str, arguments), "--http", "127.0.0.1:0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            url = running.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), url
            yield running, url
        finally:
            running.kill()


def task_file(task: Any, folder: Path) -> Path:
    path = folder / "task.json"
    task.save(path)
    return path
