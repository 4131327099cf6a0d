"""Agents over MCP: what they do and what comes of it is what it is at a Gateway."""

from __future__ import annotations

import anyio
import pytest
from mcp import MCPError, StdioServerParameters

import skillhorizon as sh
from skillhorizon.cli import main
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from skillhorizon.interop import mcp_client
from skillhorizon.interop.mcp_client import connected
from skillhorizon.interop.mcp_server import ATTEMPTS, DIGESTS, PLACE, Desks, server
from tests.interop.bench import client, task_file
from tests.mea.support import ALONE, READ, TASK, quote
from tests.mea.test_minds import AUDIT, LOOK, MAKE, NAME, REPORT, decision
from tests.mea.test_minds import FIRST as FIRST_TURN
from tests.support import ENVIRONMENTS, small_task

FIRST = ENVIRONMENTS[0]


def at(task, journal=None):
    return connected(server(task, Desks(task, harness=True)), task, journal)


def test_mea_carries_a_whole_task_out_over_a_server_process(tmp_path, capsys):
    path = task_file(small_task(FIRST), tmp_path)
    journal = tmp_path / "run.sqlite"
    assert main(["run", str(path), "--agent", "mea:perfect", "--mcp", "--journal", str(journal)]) == 0
    assert "task success" in capsys.readouterr().out
    assert sh.replay(journal).evaluation.success


@pytest.mark.parametrize(("env", "agent"), [*((env, "mea:careless") for env in ENVIRONMENTS), (FIRST, "careless")])
def test_an_agent_does_the_same_over_mcp_as_at_a_gateway(env, agent):
    task = small_task(env)
    alone = sh.run(task, agent)
    with at(task) as gateway:
        outcome = sh.agents.agent(agent).act(task, gateway, 0)
        left = gateway.table_digests()
    assert outcome == alone.outcome
    assert gateway.events == alone.gateway.events
    assert (gateway.used, gateway.remaining) == (alone.gateway.used, alone.gateway.remaining)
    assert gateway.notes == alone.gateway.notes
    assert left == alone.gateway.table_digests()


def test_a_model_in_each_role_works_over_mcp(monkeypatch):
    pytest.importorskip("inspect_ai")
    from tests.mea.test_models import AGENT, speaking

    speaking(monkeypatch, FIRST_TURN, MAKE, REPORT, LOOK, AUDIT, decision("done"))
    with at(TASK) as gateway:
        assert sh.agents.agent(AGENT).act(TASK, gateway, 0).end == "submitted"
    assert [(e.tool, e.role) for e in gateway.events] == [(NAME, "full"), ("get_parcel", "read_only")]


def test_a_run_over_mcp_is_taken_up_from_its_journal(tmp_path):
    task, whole, half = small_task(FIRST), tmp_path / "whole.sqlite", tmp_path / "half.sqlite"
    made = mcp_client.run(task, "mea:steady", 3, whole)
    cut = Journal.load(whole)
    rows, notes = cut.rows[:60], [n for n in cut.notes if n.step < 60]
    begun = Journal.create(half, cut.meta)
    for step in range(61):
        for note in (n for n in notes if n.step == step):
            begun.note(note.step, note.kind, note.body)
        if step < 60:
            begun.append(rows[step])
    begun.close()
    cut.close()
    with pytest.raises(InputError, match="another seed"):
        mcp_client.run(task, "mea:steady", 4, half, resume=True)
    again = mcp_client.run(task, "mea:steady", 3, half, resume=True)
    assert again.trace.digest == made.trace.digest
    assert again.evaluation == made.evaluation == sh.replay(half).evaluation


def test_the_server_holds_a_role_to_reading():
    with at(TASK) as gateway:
        before = gateway.table_digests()
        name, arguments = quote(ALONE[0])
        refused = gateway.call(name, arguments, role="read_only")
        assert refused["error"]["code"] == "not_permitted"
        assert (gateway.events[-1].role, gateway.used) == ("read_only", 1)
        assert gateway.call(*READ, role="read_only")["ok"]
        assert gateway.table_digests() == before
        assert gateway.call(name, arguments)["ok"]
        assert gateway.table_digests() != before


@pytest.mark.parametrize("arguments", [[1], "text", {"a": float("nan")}, {"\ud800": 1}, 7], ids=repr)
def test_what_mcp_cannot_carry_is_a_mistake_like_any_other(arguments):
    local = TASK.open()
    with at(TASK) as gateway:
        for name in ("list_routes", "no\ud800tool", 7):
            assert gateway.call(name, arguments) == local.call(name, arguments)
    assert gateway.events == local.events


def test_only_a_harness_is_told_of_events_and_digests():
    with client(server(TASK, Desks(TASK))) as plain:
        told = plain.ask("call_tool", *READ).meta
        assert [key for key in told if key.startswith("skillhorizon/")] == [ATTEMPTS]
        with pytest.raises(MCPError, match="no such resource"):
            plain.text(DIGESTS)
        name, arguments = quote(ALONE[0])
        posing = {PLACE: {"role": "read_only"}}
        answer = plain.portal.call(lambda: plain.client.call_tool(name, arguments, meta=posing))
        assert answer.structured_content["ok"], "a client's own words about itself are nothing to a plain server"
    with connected(server(TASK, Desks(TASK)), TASK) as gateway, pytest.raises(InputError, match="--harness"):
        gateway.call(*READ)


def test_a_place_that_cannot_be_understood_is_refused():
    with client(server(TASK, Desks(TASK, harness=True))) as served, pytest.raises(MCPError, match="owner"):
        served.portal.call(lambda: served.client.call_tool(*READ, meta={PLACE: {"role": "owner"}}))


def test_a_lost_server_ends_the_run_with_one_line():
    class Gone:
        async def call_tool(self, *_, **__):
            raise anyio.ClosedResourceError

    def work():
        with at(TASK) as gateway:
            gateway.call(*READ)
            gateway._client = Gone()
            gateway.call(*READ)

    with pytest.raises(InputError, match="did not answer"):
        work()
    with pytest.raises(InputError, match="no MCP server"), connected(StdioServerParameters(command="/nowhere"), TASK):
        pass
