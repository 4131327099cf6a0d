"""Clients that others wrote, against the server as they start it."""

from __future__ import annotations

import os
import sys

import anyio
import fastmcp
import msgspec
import pytest
from fastmcp.client.transports import StdioTransport
from inspect_ai import Task as InspectTask
from inspect_ai import eval as inspect_eval
from inspect_ai.agent import AgentPrompt, as_solver, react
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.tool import mcp_server_stdio

import skillhorizon as sh
from skillhorizon.core.generation import run_policy
from skillhorizon.interop.mcp_server import BRIEF, Desks
from tests.interop.bench import SERVE, over_http, task_file
from tests.support import ENVIRONMENTS, small_task

FIRST = ENVIRONMENTS[0]


def used_by_reference(task) -> list[tuple[str, dict]]:
    calls = [msgspec.json.decode(e.call) for e in run_policy(task).trace.raw]
    return [(c["name"], c["arguments"]) for c in calls]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_fastmcp_client_works_on_both_transports(transport, tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    calls = used_by_reference(task)[:20]

    async def work(of) -> None:
        async with fastmcp.Client(of) as client:
            assert [t.name for t in await client.list_tools()] == list(task.environment.tools)
            (brief,) = await client.read_resource(BRIEF)
            assert msgspec.json.decode(brief.text) == msgspec.json.decode(msgspec.json.encode(task.brief))
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                assert result.structured_content["ok"] is True
            refused = await client.call_tool("get_artifact", {"ref": "a@0"}, raise_on_error=False)
            assert refused.is_error
            assert refused.structured_content["error"]["code"] == "unknown_id"

    if transport == "stdio":
        arguments = [*SERVE, str(task_file(task, tmp_path)), "--journal", str(journal)]
        anyio.run(work, StdioTransport(sys.executable, arguments, env=dict(os.environ), keep_alive=False))
    else:
        with over_http(Desks(task, journal)) as url:
            anyio.run(work, url)
    run = sh.replay(journal)
    assert (run.gateway.used, len(run.trace.raw)) == (21, 21)


def test_the_react_agent_of_inspect_does_a_whole_task_with_a_scripted_model(tmp_path):
    """A foreign harness from end to end: its loop, its MCP client, its submit tool; only the model is scripted."""
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    arguments = [*SERVE, str(task_file(task, tmp_path)), "--journal", str(journal)]
    tools = mcp_server_stdio(name="skillhorizon", command=sys.executable, args=arguments, env=dict(os.environ))
    calls = used_by_reference(task)
    script = iter([*calls, ("submit", {"answer": "done"})])
    seen: list[str] = []

    def answer(messages, tools, choice, config):
        if messages[-1].role == "tool":
            seen.append(messages[-1].text)
        made = ModelOutput.for_tool_call("mockllm/model", *next(script))
        made.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return made

    (log,) = inspect_eval(
        InspectTask(
            dataset=[Sample(input="Do the task that the tools serve.")],
            solver=as_solver(react(prompt=AgentPrompt(), tools=[tools])),
        ),
        model=get_model("mockllm/model", custom_outputs=answer, memoize=False),
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success", log.error
    run = sh.replay(journal)
    assert [msgspec.json.decode(e.call) for e in run.trace.raw] == [{"name": n, "arguments": a} for n, a in calls]
    assert [text.encode() for text in seen] == [e.observation for e in run.trace.raw]
    assert (run.gateway.used, run.gateway.remaining) == (task.measures.R, task.budget - task.measures.R)
    assert (run.evaluation.success, run.evaluation.lgc) == (True, 1.0)
