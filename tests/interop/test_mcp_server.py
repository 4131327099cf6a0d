"""The MCP server: what a client gets is what any agent gets, whoever else works, and whatever happens to the server."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from contextlib import closing

import anyio
import httpx
import msgspec
import pytest
from mcp import Client, MCPError

import skillhorizon as sh
from skillhorizon.core.errors import InputError
from skillhorizon.core.generation import run_policy
from skillhorizon.core.journal import Journal
from skillhorizon.core.policy import Call, drive
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task
from skillhorizon.interop import mcp_server
from skillhorizon.interop.mcp_server import (
    ALLOWANCE,
    ATTEMPTS,
    BRIEF,
    MAX_ARGUMENT_BYTES,
    MAX_REQUEST_BYTES,
    OBSERVATION_SCHEMA,
    Desks,
    parsed,
    server,
)
from tests.interop.bench import client, over_http, process, stdio, task_file
from tests.support import ENVIRONMENTS, assert_refused, small_task, told
from tests.toy import ENVIRONMENT as TOY

FIRST = ENVIRONMENTS[0]


def in_process(task: Task):
    return client(server(task, Desks(task)))


def left(served) -> dict[str, int]:
    return msgspec.json.decode(served.text(ALLOWANCE))


# -- whole runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_the_reference_driven_through_a_client_scores_full_and_sees_what_it_sees_at_the_gateway(env):
    task = small_task(env)
    desks = Desks(task)
    with client(server(task, desks)) as served:
        drive(task.environment.policy(), served.perform)
        assert task.measures is not None
        assert left(served) == {
            "budget": task.budget,
            "used": task.measures.R,
            "remaining": task.budget - task.measures.R,
        }
        gateway = desks._named[""].gateway
        assert sh.evaluate(task, gateway).success
    direct = run_policy(task)
    assert [r.content[0].text.encode() for r in served.results] == [e.observation for e in direct.trace.raw]
    for result in served.results:
        assert canonical(result.structured_content).decode() == result.content[0].text
        assert result.is_error is not result.structured_content["ok"]


def test_a_whole_task_over_stdio_is_scored_from_its_journal(tmp_path, capsys):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with client(stdio(task_file(task, tmp_path), "--journal", journal)) as served:
        drive(task.environment.policy(), served.perform)
    status, out, _ = told(capsys, "evaluate", journal, "--json")
    found = msgspec.json.decode(out)
    assert status == 0
    assert task.measures is not None
    assert (found["lgc"], found["success"], found["attempts"]) == (1.0, True, task.measures.R)
    assert (found["agent"], found["end"], found["why"]) == ("mcp", "stopped", "the client closed its session")


def test_a_whole_task_over_http(tmp_path):
    task, journal = small_task("finance"), tmp_path / "run.sqlite"
    with over_http(Desks(task, journal)) as url, client(url) as served:
        drive(task.environment.policy(), served.perform)
    assert sh.replay(journal).evaluation.success


def test_both_revisions_of_the_protocol_work_over_stdio(tmp_path):
    file = task_file(small_task(FIRST), tmp_path)
    seen = {}
    for mode in ("auto", "legacy"):
        with client(stdio(file), mode) as served:
            seen[served.client.protocol_version] = served.call("read_task_brief")
    assert list(seen) == ["2026-07-28", "2025-11-25"]
    assert seen["2026-07-28"] == seen["2025-11-25"] == {"ok": True, "result": small_task(FIRST).brief}


def test_over_http_only_the_protocol_with_sessions_is_served():
    with over_http(Desks(small_task(FIRST))) as url:
        with client(url, "auto") as served:
            assert served.client.protocol_version == "2025-11-25"
        with client(url, "2026-07-28") as served, pytest.raises(MCPError, match="begin one with initialize"):
            served.call("read_task_brief")


# -- what is told --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_tools_come_from_their_declarations(env):
    task = small_task(env)
    with in_process(task) as served:
        listed = {t.name: t for t in served.ask("list_tools").tools}
    assert list(listed) == list(task.environment.tools)
    for name, tool in task.environment.tools.items():
        told_of = listed[name]
        assert told_of.description == tool.description
        assert canonical(told_of.input_schema) == canonical(tool.schema)
        assert told_of.output_schema == OBSERVATION_SCHEMA
        assert told_of.annotations is not None
        assert told_of.annotations.read_only_hint is tool.read_only
        assert told_of.annotations.open_world_hint is False
        assert told_of.meta == {"skillhorizon/kind": tool.kind, "skillhorizon/charged": tool.charged}


def test_a_refusal_is_a_result_marked_as_an_error_and_changes_nothing():
    task = small_task(FIRST)
    gateway = task.open()
    with in_process(task) as served:
        for name, arguments, code in (
            ("read_task_brief", {"x": 1}, "bad_argument"),
            ("get_artifact", {"ref": 5}, "bad_argument"),
            ("no_such_tool", {}, "unknown_tool"),
            ("read_skill_file", {"skill": "no-such-skill"}, "unknown_id"),
        ):
            assert served.call(name, arguments) == gateway.call(name, arguments)
            assert served.results[-1].is_error
            assert served.results[-1].structured_content["error"]["code"] == code
            assert served.results[-1].meta[ATTEMPTS] == {"used": gateway.used, "remaining": gateway.remaining}
        assert left(served)["used"] == 4


def test_arguments_beyond_the_limit_are_an_error_of_the_request_and_take_no_attempt():
    task = small_task(FIRST)
    skill = task.brief["skills"][0]
    with in_process(task) as served:
        arguments = {"skill": skill, "script": "none", "input": {"x": ""}}
        room = MAX_ARGUMENT_BYTES - len(canonical(arguments))
        arguments["input"] = {"x": "y" * room}
        assert served.call("run_skill_script", arguments)["error"]["code"] == "unknown_id"
        arguments["input"] = {"x": "y" * (room + 1)}
        with pytest.raises(MCPError, match="arguments of more than"):
            served.call("run_skill_script", arguments)
        assert left(served)["used"] == 1


def test_the_allowance_is_enforced_and_declarations_stay_free(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    skill = task.brief["skills"][0]
    with client(server(task, Desks(task, journal))) as served:
        assert f"{task.budget} attempts" in served.client.instructions
        for _ in range(task.budget):
            assert served.call("list_notices")["ok"]
        assert left(served) == {"budget": task.budget, "used": task.budget, "remaining": 0}
        assert served.call("list_notices")["error"]["code"] == "budget_exhausted"
        assert served.call("begin_skill", {"skill": skill})["ok"]
        with pytest.raises(MCPError, match="attempts have been used"):
            served.text(f"skill://{skill}/SKILL.md")
        assert served.text(BRIEF) == canonical(task.brief).decode()
        assert left(served)["used"] == task.budget
    assert Journal.load(journal).end["end"] == "exhausted"


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_resources_are_the_brief_the_allowance_and_the_skill_files_each_read_charged_as_by_the_tool(env):
    task = small_task(env)
    skills = task.environment.skills.skills
    with in_process(task) as served:
        uris = [r.uri for r in served.ask("list_resources").resources]
        expected = [f"skill://{s.name}/{path}" for s in skills.values() for path in s.files]
        assert uris == [BRIEF, ALLOWANCE, *expected]
        assert served.text(BRIEF) == canonical(task.brief).decode()
        assert left(served)["used"] == 0
        for used, uri in enumerate(expected[:3], 1):
            skill, _, path = uri.removeprefix("skill://").partition("/")
            assert served.text(uri) == skills[skill].files[path].read_text()
            assert left(served)["used"] == used
        (template,) = served.ask("list_resource_templates").resource_templates
        assert template.uri_template == "skill://{skill}/{+path}"


def test_nothing_outside_a_skill_package_can_be_read_and_no_undeclared_script_run():
    task = small_task(FIRST)
    skill, other = list(task.environment.skills.skills)[:2]
    outside = ["../../tools.py", "../__init__.py", "/etc/passwd", "scripts/../../../goals.py", "SKILL.md/../SKILL.md"]
    outside += [f"../{other}/SKILL.md", "%2e%2e/%2e%2e/goals.py", "", ".", "scripts", "SKILL.md\0"]
    with in_process(task) as served:
        for path in outside:
            observation = served.call("read_skill_file", {"skill": skill, "path": path})
            assert observation["error"]["code"] in ("unknown_id", "bad_argument")
            assert not served.call("run_skill_script", {"skill": skill, "script": path, "input": {}})["ok"]
            with pytest.raises(MCPError, match="no such resource"):
                served.text(f"skill://{skill}/{path}")
        for script in ("run", "__init__", "os", "../" + other):
            observation = served.call("run_skill_script", {"skill": skill, "script": script, "input": {}})
            assert observation["error"]["code"] == "unknown_id"
        for uri in ("file:///etc/passwd", f"skill://../{skill}/SKILL.md", "skillhorizon://goal", "skill://", "x"):
            with pytest.raises(MCPError, match="no such resource"):
                served.text(uri)


def test_the_private_goal_is_in_nothing_that_is_served():
    """The toy's goal holds a canary; whatever can be asked is asked, before the reference run and after it."""
    task = small_task(TOY.name)
    canary = task.blueprint.goal.canary
    assert canary in canonical(task.blueprint.goal).decode()
    with in_process(task) as served:
        texts = everything(served)
        drive(task.environment.policy(), served.perform)
        texts += everything(served)
        texts += [str(r) for r in served.results]
    assert len("".join(texts)) > 10_000
    assert not [t for t in texts if canary in t]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_what_is_served_at_rest_tells_one_task_from_another_by_brief_and_allowance_alone(env):
    served_at_rest = []
    for seed in (0, 1):
        task = small_task(env, seed)
        with in_process(task) as served:
            texts = everything(served)
        assert len("".join(texts)) > 10_000
        public = (canonical(task.brief).decode(), f"{task.budget} attempts", f'"budget":{task.budget}')
        for told_to_all in public:
            assert [told_to_all in text for text in texts].count(True) == 1
        for told_to_all in (*public, f'"remaining":{task.budget}'):
            texts = [text.replace(told_to_all, "") for text in texts]
        served_at_rest.append(texts)
    assert served_at_rest[0] == served_at_rest[1]


def everything(served) -> list[str]:
    """All that a client can ask for without a call: the handshake, the lists, every resource."""
    listed = served.ask("list_resources")
    return [
        str(served.client.instructions),
        str(served.client.server_info),
        str(served.client.server_capabilities),
        served.ask("list_tools").model_dump_json(),
        served.ask("list_resource_templates").model_dump_json(),
        listed.model_dump_json(),
        *(served.text(r.uri) for r in listed.resources),
    ]


# -- several clients -----------------------------------------------------------------------------------------------


def reference_calls(task: Task) -> list[Call]:
    made = []
    gateway = task.open()

    def perform(call: Call):
        made.append(call)
        return gateway.call(call.tool, call.arguments)

    drive(task.environment.policy(), perform)
    return made


def test_sessions_side_by_side_each_have_a_world_of_their_own(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    calls = reference_calls(task)[:80]
    expected = [e.observation.decode() for e in run_policy(task).trace.raw[:80]]
    with over_http(Desks(task, journal)) as url, client(url) as one, client(url) as two, client(url) as idle:
        for call in calls:
            one.perform(call)
            two.perform(call)
        assert [r.content[0].text for r in one.results] == expected
        assert [r.content[0].text for r in two.results] == expected
        assert left(idle)["used"] == 0
    for file in (journal, tmp_path / "run-2.sqlite", tmp_path / "run-3.sqlite"):
        assert Journal.load(file).end["why"] == "the client closed its session"
    assert [sh.replay(tmp_path / f"run{n}.sqlite").calls for n in ("", "-2", "-3")] == [80, 80, 0]


def test_sessions_that_name_a_run_share_it_and_it_outlives_them(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with over_http(Desks(task, journal)) as url:
        with client(url + "?run=night-1") as one, client(url + "?run=night-1") as two, client(url) as other:
            one.call("list_notices")
            two.call("list_notices")
            assert (left(one)["used"], left(two)["used"], left(other)["used"]) == (2, 2, 0)
        with client(url + "?run=night-1") as again:
            assert left(again)["used"] == 2
        for name in ("..", "a/b", "", "A"):
            with client(f"{url}?run={name}") as refused, pytest.raises(MCPError, match="a run's name is"):
                refused.call("list_notices")
    assert sh.replay(tmp_path / "run-night-1.sqlite").calls == 2


def test_worlds_are_bounded_and_sessions_without_one_are_not_in_their_way(monkeypatch):
    monkeypatch.setattr(mcp_server, "MAX_WORLDS", 2)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    accept = {"accept": "application/json, text/event-stream"}
    with over_http(Desks(small_task(FIRST))) as url, httpx.Client(headers=accept) as web:
        for _ in range(70):  # clients that crash do not delete their sessions
            assert web.post(url, json=hello).status_code == 200
        with (
            client(url) as one,
            client(f"{url}?run=two") as two,
            client(url) as three,
            client(f"{url}?run=four") as four,
        ):
            assert one.call("list_notices")["ok"]
            assert two.call("list_notices")["ok"]
            for refused in (three, four):
                assert refused.text(BRIEF)
                with pytest.raises(MCPError, match="holds 2 worlds"):
                    refused.call("list_notices")
        with client(f"{url}?run=two") as again, client(url) as other:  # the room of the first session is free
            assert left(again)["used"] == 1
            deadline = time.monotonic() + 10
            while True:
                try:
                    assert other.call("list_notices")["ok"]
                    break
                except MCPError:  # the first session is still being closed
                    assert time.monotonic() < deadline
                    time.sleep(0.01)


def test_a_journal_that_cannot_be_written_fails_its_own_run_alone(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with (
        over_http(Desks(task, journal)) as url,
        client(f"{url}?run=lost") as lost,
        client(f"{url}?run=sound") as sound,
    ):
        assert lost.call("list_notices")["ok"]
        assert sound.call("list_notices")["ok"]
        with closing(sqlite3.connect(tmp_path / "run-lost.sqlite")) as other:  # as another server would
            other.execute(
                "INSERT INTO calls SELECT step + 1, name, arguments, observation, module, goal, "
                "decision, position, context_tokens, role, chain FROM calls"
            )
            other.commit()
        for why in ("cannot write", "is closed"):  # and it stays so: the world has moved on without the journal
            with pytest.raises(MCPError, match=why):
                lost.call("list_notices")
        assert sound.call("list_notices")["ok"]
    ended = Journal.load(tmp_path / "run-sound.sqlite")
    assert (len(ended.rows), ended.end["why"]) == (2, "the client closed its session")


def test_a_shared_server_has_one_world_whatever_a_client_asks_for(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with over_http(Desks(task, journal, shared=True)) as url, client(url) as one, client(url + "?run=other") as two:
        one.call("list_notices")
        two.call("list_notices")
        assert left(one)["used"] == left(two)["used"] == 2
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".sqlite"] == ["run.sqlite"]


@pytest.mark.parametrize("transport", ["in process", "http"])
def test_ten_calls_at_once_are_made_one_after_the_other(transport, tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    skill = task.brief["skills"][0]
    desks = Desks(task, journal)

    async def ten(of) -> list[str]:
        answered = []

        async def begin(inner: Client) -> None:
            result = await inner.call_tool("begin_skill", {"skill": skill})
            answered.append(result.structured_content["result"]["skill_run_id"])
            await inner.call_tool("list_notices", {})

        async with Client(of) as inner, anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(begin, inner)
        return answered

    if transport == "http":
        with over_http(desks) as url:
            answered = anyio.run(ten, url)
    else:
        answered = anyio.run(ten, server(task, desks))
    assert sorted(answered) == sorted(f"run-{n}" for n in range(1, 11))
    run = sh.replay(journal)
    assert (run.calls, run.gateway.used) == (20, 10)


def test_a_world_ends_with_its_session(tmp_path):
    journal = tmp_path / "run.sqlite"
    with over_http(Desks(small_task(FIRST), journal)) as url:
        headers = {"accept": "application/json, text/event-stream"}
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
        answer = httpx.post(url, json=hello, headers=headers)
        headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_notices"}}
        assert httpx.post(url, json=ask, headers=headers).json()["result"]["structuredContent"]["ok"]
        assert Journal.load(journal).end is None
        assert httpx.delete(url, headers=headers).status_code == 200
        deadline = time.monotonic() + 10
        while Journal.load(journal).end is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert httpx.post(url, json=ask, headers=headers).status_code == 404


HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


# -- who may ask ---------------------------------------------------------------------------------------------------


def test_foreign_hosts_and_origins_and_huge_requests_are_refused():
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    with over_http(Desks(small_task(FIRST)), "world") as url:

        def status(**headers: str) -> int:
            accept = {"accept": "application/json, text/event-stream"}
            return httpx.post(url, json=hello, headers={**accept, **headers}).status_code

        assert status() == 200
        for host in ("localhost:1", "127.0.0.1", "[::1]:80", "world", "world:8000"):
            assert status(host=host) == 200
        for origin in ("http://localhost:3000", "http://127.0.0.1", "http://world:1"):
            assert status(origin=origin) == 200
        for host in (
            "evil.example",
            "evil.example:80",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "0.0.0.0",
        ):
            assert status(host=host) == 421
        for origin in ("http://evil.example", "https://localhost.evil.example", "null", "http://worlds"):
            assert status(origin=origin) == 403
        hello["params"] = {**HANDSHAKE, "padding": "x" * MAX_REQUEST_BYTES}
        assert status() == 413


def test_the_address_has_host_and_port():
    assert parsed("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parsed("[::1]:0") == ("::1", 0)
    for wrong in ("", "8000", ":8000", "host:", "host:x", "host:65536", "host:-1"):
        with pytest.raises(InputError, match="is not HOST:PORT"):
            parsed(wrong)


# -- interruptions -------------------------------------------------------------------------------------------------


def test_an_interrupted_server_closes_its_journals(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    with process(task_file(task, tmp_path), "--journal", journal) as (running, url), client(url) as served:
        served.call("list_notices")
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
    assert Journal.load(journal).end["why"] == "the client closed its session"
    assert not journal.with_name("run.sqlite-wal").exists()
    assert sh.replay(journal).calls == 1


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_after_kill_9_of_the_server_the_run_goes_on_with_state_and_allowance(transport, tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    file = task_file(task, tmp_path)
    calls = reference_calls(task)
    half = len(calls) // 2
    if transport == "http":
        with process(file, "--journal", journal) as (running, url), client(url) as served:
            for call in calls[:half]:
                served.perform(call)
            os.kill(running.pid, signal.SIGKILL)
        with process(file, "--journal", journal, "--resume") as (_, url), client(url) as served:
            assert left(served)["used"] == half - sum(free(task, c) for c in calls[:half])
            for call in calls[half:]:
                served.perform(call)
    else:
        killed = tmp_path / "pid"
        script = f'echo $$ > {killed}; exec "$@"'
        parameters = stdio(file, "--journal", journal)
        parameters.args = ["-c", script, "sh", parameters.command, *parameters.args]
        parameters.command = "sh"
        with client(parameters) as served:
            for call in calls[:half]:
                served.perform(call)
            os.kill(int(killed.read_text()), signal.SIGKILL)
        with client(stdio(file, "--journal", journal, "--resume")) as served:
            assert left(served)["used"] == half - sum(free(task, c) for c in calls[:half])
            for call in calls[half:]:
                served.perform(call)
    run = sh.replay(journal)
    direct = run_policy(task)
    assert run.evaluation.success
    assert run.trace.digest == direct.trace.digest


def free(task: Task, call: Call) -> bool:
    return not task.environment.tools[call.tool].charged


def test_a_journal_is_never_overwritten_nor_taken_for_another_run(tmp_path, capsys):
    task = small_task(FIRST)
    file, journal = task_file(task, tmp_path), tmp_path / "run.sqlite"
    Journal.create(journal, {"task": "another"}).close()

    def rows():
        return Journal.load(journal).meta, len(Journal.load(journal).rows)

    before = rows()
    assert_refused(told(capsys, "serve", file, "--journal", journal), "exists already")
    assert_refused(told(capsys, "serve", file, "--journal", journal, "--resume"), "the journal of another task")
    assert_refused(told(capsys, "serve", file, "--journal", tmp_path / "no" / "run.sqlite"), "is not a folder")
    assert_refused(told(capsys, "serve", file, "--resume"), "name its journal")
    assert_refused(told(capsys, "serve", file, "--shared"), "need --http")
    assert_refused(told(capsys, "serve", file, "--http", "nowhere"), "is not HOST:PORT")
    assert_refused(told(capsys, "serve", file, "--http", "256.0.0.1:0"), "cannot listen")
    assert_refused(told(capsys, "serve", tmp_path / "none.json"), "cannot read")
    assert rows() == before


def test_a_journal_that_cannot_be_written_is_an_error_of_the_server_and_no_observation(tmp_path):
    task, journal = small_task(FIRST), tmp_path / "run.sqlite"
    desks = Desks(task, journal)
    with client(server(task, desks)) as served:
        served.call("list_notices")
        desks._named[""].journal.close()
        with pytest.raises(MCPError, match="is closed"):
            served.call("list_notices")
        desks._named.clear()
    assert sh.replay(journal).calls == 1
