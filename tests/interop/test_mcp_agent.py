"""Agents by name as clients of a server: what they do there is what they do at the gateway."""

from __future__ import annotations

import os
import signal

import pytest
from mcp import MCPError

import skillhorizon as sh
from skillhorizon import agents
from skillhorizon.core.errors import InputError
from skillhorizon.interop import mcp_agent
from skillhorizon.interop.mcp_server import CALLER, MAX_ARGUMENT_BYTES, Desks, server
from tests.interop.bench import client, over_http, process, task_file
from tests.support import ENVIRONMENTS, assert_refused, small_task, told
from tests.test_models import FINAL, output, speaking
from tests.toy import ENVIRONMENT as TOY

FIRST = ENVIRONMENTS[0]


def at_the_gateway(task, agent, seed=0):
    run = sh.run(task, agent, seed)
    return run.outcome, run.trace, run.evaluation


def over_mcp(task, agent, seed=0, where=None):
    desks = Desks(task, shared=True)
    with mcp_agent.connected(task, where or server(task, desks)) as gateway:
        outcome = agents.agent(agent).act(task, gateway, seed)
        behind = desks._named[""].gateway
        return outcome, api_trace(task, agent, seed, outcome, behind), sh.evaluate(task, behind)


def api_trace(task, agent, seed, outcome, gateway):
    return sh.api.scored(task, agent, seed, outcome, gateway).trace


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_mea_with_a_perfect_executor_succeeds_over_mcp(env):
    task = small_task(env)
    outcome, trace, evaluation = over_mcp(task, "mea:perfect")
    assert (outcome.end, evaluation.success) == ("submitted", True)
    assert {e.role for e in trace.raw} == {"full", "read_only"}


@pytest.mark.parametrize("agent", ["reference", "steady", "mea:steady", "mea:hasty/no-ledger"])
def test_an_agent_does_over_mcp_what_it_does_at_the_gateway(agent):
    task = small_task("finance")
    outcome, trace, evaluation = over_mcp(task, agent, seed=4)
    expected = at_the_gateway(task, agent, seed=4)
    assert (outcome, evaluation) == (expected[0], expected[2])
    assert trace.events.equals(expected[1].events)  # to the last label: module, goal, decision, position, role


def test_a_model_works_over_mcp(monkeypatch):
    task = small_task(FIRST)
    calls = [e.call.decode() for e in sh.run(task, "reference").trace.raw]
    said = [*(f'{{"type":"actions","actions":[{call}]}}' for call in calls), FINAL, FINAL]
    speaking(monkeypatch, [output(text) for text in said])
    outcome, trace, evaluation = over_mcp(task, "model:mockllm/model")
    assert (outcome.end, outcome.decisions, evaluation.success) == ("submitted", len(said), True)
    assert [e.decision for e in trace.raw] == list(range(1, len(calls) + 1))


def test_over_http(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with over_http(Desks(task, journal)) as url, mcp_agent.connected(task, url) as gateway:
        agents.agent("mea:perfect").act(task, gateway, 0)
        assert gateway.used == len([e for e in gateway.events if e.charged])
    assert sh.replay(journal).evaluation.success


def test_the_command_scores_the_run_and_keeps_its_journal(tmp_path, capsys):
    task = small_task(FIRST)
    file, journal = task_file(task, tmp_path), tmp_path / "run.sqlite"
    status, out, _ = told(capsys, "run", file, "--agent", "mea:perfect", "--mcp", "--journal", journal)
    assert status == 0
    assert f"mea:perfect on {task.id}: submitted" in out
    assert "task success" in out
    assert sh.replay(journal).evaluation.success
    refused = told(capsys, "run", file, "--agent", "mea:perfect", "--mcp", "--journal", journal)
    assert_refused(refused, "run.sqlite", "exists already")
    refused = told(capsys, "run", file, "--agent", "noop", "--mcp", "--journal", journal, "--resume")
    assert_refused(refused, "over MCP a run begins anew")


# -- what a harness tells the server, and what it is told ------------------------------------------------------------


def test_who_only_reads_is_held_to_it_by_the_server():
    task = small_task(TOY.name)
    run = sh.run(task, "reference")
    write = next(e for e in run.trace.raw if e.kind == "business")
    desks = Desks(task)
    with mcp_agent.connected(task, server(task, desks)) as gateway:
        before = gateway.table_digests()
        answer = gateway.call(write.tool, {}, role="read_only")
        assert answer["error"]["code"] == "not_permitted"
        assert gateway.table_digests() == before
        assert gateway.events[-1].charged


@pytest.mark.parametrize(
    ("caller", "words"),
    [({"role": "owner"}, "role"), ({"goal": "x" * 401}, "goal"), ({"passed": True}, "passed"), ("me", "object")],
)
def test_what_is_said_of_the_caller_is_checked(caller, words):
    with client(server(task := small_task(TOY.name), Desks(task))) as served:

        async def ask():
            return await served.client.call_tool("read_task_brief", {}, meta={CALLER: caller})

        with pytest.raises(MCPError, match=words):
            served.portal.call(ask)


def test_a_table_s_revision_rises_when_it_has_changed_and_tells_no_more():
    task = small_task(FIRST)
    with mcp_agent.connected(task, server(task, Desks(task))) as gateway:
        first = gateway.table_digests()
        assert set(first.values()) == {"0"}
        gateway.call("read_task_brief")
        assert gateway.table_digests() == first
        told_of = 0
        for event in sh.run(task, "reference").trace.raw:
            call = sh.api.msgspec.json.decode(event.call)
            gateway.call(call["name"], call["arguments"])
            assert gateway.events[-1].produced == event.produced
            told_of += bool(event.produced)
            if told_of == 2:
                break
        changed = {name: value for name, value in gateway.table_digests().items() if value != first[name]}
        assert changed["artifacts"] == "1"  # two writes, one reading
        assert set(changed.values()) == {"1"}


def test_what_the_protocol_does_not_carry_is_an_observation():
    task = small_task(TOY.name)
    with mcp_agent.connected(task, server(task, Desks(task))) as gateway:
        for arguments in ([1], "x", 7, {"x": "\ud800"}):
            assert gateway.call("read_task_brief", arguments)["error"]["code"] == "bad_argument"
        assert gateway.used == 4
        large = gateway.call("read_task_brief", {"x": "y" * MAX_ARGUMENT_BYTES})
        assert (large["error"]["code"], gateway.used) == ("bad_argument", 4)
        assert gateway.call(3, {})["error"]["code"] == "unknown_tool"
        assert gateway.call("read_task_brief")["ok"]


def test_a_server_that_dies_or_has_begun_is_one_line(tmp_path):
    task = small_task(FIRST)
    with process(task_file(task, tmp_path)) as (running, url):
        with mcp_agent.connected(task, url) as gateway:
            assert gateway.call("read_task_brief")["ok"]
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
            with pytest.raises(InputError, match="server"):
                gateway.call("read_task_brief")
        with pytest.raises(InputError, match="no MCP server answers"), mcp_agent.connected(task, url):
            pass
    desks = Desks(task, shared=True)
    with over_http(desks) as url:
        with mcp_agent.connected(task, url) as gateway:
            gateway.call("read_task_brief")
        with pytest.raises(InputError, match="has begun already"), mcp_agent.connected(task, url):
            pass
