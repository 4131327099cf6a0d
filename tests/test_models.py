"""Models through Inspect AI, on its mock model: scripted with a reference transcript, cut short, failing, resumed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pandas as pd
import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai.model import ModelAPI, ModelCall, ModelOutput, ModelUsage, get_model, modelapi

import skillhorizon as sh
from skillhorizon.agents import models
from skillhorizon.agents.models import ModelAgent, Requests
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal

FINAL = '{"type":"final","text":"All that was asked for has been delivered."}'


@pytest.fixture(scope="module")
def task():
    return sh.generate("docs", band="64K", seed=5)


@pytest.fixture(scope="module")
def transcript(task):
    """The reference's calls as responses of a model, one call each, and the two finals."""
    calls = [json.loads(e.call) for e in sh.run(task).trace.raw]
    said = [json.dumps({"type": "actions", "actions": [call]}) for call in calls]
    return [*said, FINAL, FINAL]


def output(text, tokens=(100, 7), stop="stop", cost=None):
    made = ModelOutput.from_content("mock", text, stop_reason=stop)
    made.usage = ModelUsage(input_tokens=tokens[0], output_tokens=tokens[1], total_tokens=sum(tokens), total_cost=cost)
    return made


def speaking(monkeypatch, outputs):
    """``model:…`` runs say these things, and every request is kept."""
    asked = []
    outputs = iter(outputs)

    def answer(messages, tools, choice, config):
        asked.append((messages, tools, config))
        found = next(outputs)
        if isinstance(found, Exception):
            raise found
        return found

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    monkeypatch.setattr(models, "load", lambda name: model)
    return asked


def test_a_reference_transcript_succeeds_and_is_accounted_for(monkeypatch, task, transcript):
    asked = speaking(monkeypatch, [output(t, cost=0.25) for t in transcript])
    run = sh.run(task, agent="model:mockllm/model")
    assert (run.end, run.evaluation.success, run.evaluation.lgc) == ("submitted", True, 1.0)
    row = run.row()
    assert row["decisions"] == len(transcript) == len(asked)
    assert row["attempts"] == task.measures.R == len(transcript) - 2
    assert (row["request_tokens"], row["response_tokens"]) == (100 * len(transcript), 7 * len(transcript))
    assert row["cost"] == 0.25 * len(transcript)


def test_requests_carry_the_settings_and_no_tools(monkeypatch, task, transcript):
    asked = speaking(monkeypatch, [output(FINAL), output(FINAL)])
    sh.run(task, agent="model:mockllm/model")
    messages, tools, config = asked[0]
    assert [m.role for m in messages] == ["system", "user"]
    assert tools == []
    assert (config.max_tokens, config.reasoning_effort, config.temperature, config.top_p) == (
        8192,
        "medium",
        None,
        None,
    )
    assert [m.role for m in asked[1][0]] == ["system", "user", "assistant", "user"]


def test_a_response_cut_short_is_said_to_be(monkeypatch, task):
    asked = speaking(monkeypatch, [output('{"type":"act', stop="max_tokens"), output(FINAL), output(FINAL)])
    run = sh.run(task, agent="model:mockllm/model")
    assert (run.end, run.calls) == ("submitted", 0)
    assert "cut short (max_tokens)" in asked[1][0][-1].text


def test_a_provider_that_fails_leaves_a_journal_that_is_taken_up(monkeypatch, task, transcript, tmp_path):
    path, cut = tmp_path / "run.sqlite", 40
    speaking(monkeypatch, [*[output(t) for t in transcript[:cut]], ConnectionError("lost\nthe line")])
    with pytest.raises(InputError, match="gave no answer: ConnectionError: lost the line"):
        sh.run(task, agent="model:mockllm/model", journal=path)
    assert len(Journal.load(path).rows) == cut
    asked = speaking(monkeypatch, [output(t) for t in transcript[cut:]])
    resumed = sh.run(task, agent="model:mockllm/model", journal=path, resume=True)
    assert len(asked) == len(transcript) - cut  # nothing that was answered is asked again
    speaking(monkeypatch, [output(t) for t in transcript])
    whole = sh.run(task, agent="model:mockllm/model")
    assert resumed.row() == whole.row()
    assert sh.replay(path).trace.digest == whole.trace.digest


@modelapi(name="strict")
class Strict(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        request = {"messages": [m.text for m in input]}
        return ValueError("the context is 8,192 tokens"), ModelCall.create(request, None)


def test_what_a_provider_says_against_a_request_is_what_the_user_reads(task):
    """Inspect's own text of the error begins with the request: thousands of lines here."""
    with pytest.raises(InputError) as caught:
        sh.run(task, agent="model:strict/small")
    assert str(caught.value) == "small gave no answer: ModelGenerateError: the context is 8,192 tokens"


@modelapi(name="away")
class Away(ModelAPI):
    def should_retry(self, error):
        return True

    async def generate(self, input, tools, tool_choice, config):
        raise ConnectionError("nobody listens")


def test_what_failed_is_named_when_the_attempts_are_used_up(task):
    """Inspect raises an error about the attempts alone."""
    away = ModelAgent("away/model", Requests(max_retries=0))
    with pytest.raises(InputError, match=r"^model gave no answer: ConnectionError: nobody listens$"):
        away.act(task, task.open(), 0)


ENDPOINT = """
import json, os, signal, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
said, log, last = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        roles = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = roles.count("assistant")
        with open(log, "a") as file:
            file.write(f"{number}\\n")
        if number == last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(said[number].encode())
    def log_message(self, *_):
        pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
"""Says the next response of a transcript, notes each request, and at one of them is killed before it answers."""


@modelapi(name="endpoint")
class Endpoint(ModelAPI):
    async def generate(self, input, tools, tool_choice, config):
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            answer = await client.post(os.environ["ENDPOINT_URL"], json=[m.role for m in input])
        return output(answer.text)


def test_an_endpoint_that_is_killed_in_the_middle_costs_nothing(monkeypatch, task, transcript, tmp_path):
    said, log, path, cut = tmp_path / "said.json", tmp_path / "log", tmp_path / "run.sqlite", 40
    said.write_text(json.dumps(transcript))

    @contextmanager
    def endpoint(last):
        line = [sys.executable, "-c", ENDPOINT, str(said), str(log), str(last)]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
            try:
                monkeypatch.setenv("ENDPOINT_URL", f"http://127.0.0.1:{process.stdout.readline().strip()}")
                yield process
            finally:
                process.kill()

    with endpoint(cut) as process:
        with pytest.raises(InputError, match="gave no answer"):
            sh.run(task, agent="model:endpoint/model", journal=path)
        assert process.wait() == -signal.SIGKILL
    left = sh.replay(path)
    assert (left.end, left.gateway.used, left.gateway.remaining) == ("stopped", cut, task.budget - cut)
    with endpoint(-1):
        resumed = sh.run(task, agent="model:endpoint/model", journal=path, resume=True)
    # the request that was never answered is the only one that was made twice
    asked = [int(line) for line in log.read_text().split()]
    assert asked == [*range(cut + 1), *range(cut, len(transcript))]
    speaking(monkeypatch, [output(t) for t in transcript])
    assert resumed.row() == sh.run(task, agent="model:endpoint/model").row()
    assert (resumed.evaluation.success, resumed.gateway.used) == (True, task.measures.R)


def test_a_loop_that_runs_already_does_not_matter(monkeypatch, task):
    async def in_a_notebook():
        speaking(monkeypatch, [output(FINAL), output(FINAL)])
        return sh.run(task, agent="model:mockllm/model")

    assert asyncio.run(in_a_notebook()).end == "submitted"


@pytest.mark.parametrize("name", ["nosuch/model", "noslash"])
def test_an_unknown_model_is_one_clear_line(task, name):
    with pytest.raises(InputError) as caught:
        sh.run(task, agent=f"model:{name}")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_inspect_task_scores_what_the_conversation_left(monkeypatch, tmp_path, task, transcript):
    from skillhorizon.interop import inspect_task

    other = sh.generate("docs", band="64K", seed=6)
    rows = [
        {
            "env": "docs",
            "band": "64K",
            "family": one.config.family,
            "configuration": one.config.id,
            "seed": one.seed,
            "size": one.size,
            "digest": one.digest,
            "workload": one.workload,
            "R": one.measures.R,
            "A": one.measures.A,
        }
        for one in (task, other)
    ]
    released = tmp_path / "tasks"
    released.mkdir()
    pd.DataFrame(rows).to_parquet(released / "docs.parquet")
    # the first sample's model does the work, the second one's gives up at once
    model = get_model("mockllm/model", custom_outputs=[output(t) for t in [*transcript, FINAL, FINAL]], memoize=False)
    (log,) = inspect_eval(
        inspect_task.docs(band="64K", tasks=2, set=str(tmp_path)),
        model=model,
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
    )
    assert log.status == "success", log.error
    values = {s.metadata["task"]["seed"]: s.scores["final_state"].value for s in log.samples}
    assert values == {task.seed: {"lgc": 1.0, "ts": 1.0}, other.seed: {"lgc": 0.0, "ts": 0.0}}
    found = {score.name: {m: v.value for m, v in score.metrics.items()} for score in log.results.scores}
    # mean 1/2; standard error of two values 1 and 0: sd = sqrt(1/2), divided by sqrt(2), is 1/2
    assert found["lgc"] == {"mean": 0.5, "stderr": pytest.approx(0.5)}
    assert found["ts"] == {"mean": 0.5, "stderr": pytest.approx(0.5)}
    assert log.samples[0].messages[0].role == "system"


def test_a_limit_of_inspects_ends_a_sample_and_what_was_done_is_scored(tmp_path, task, transcript):
    """No sample is lost: every one that was begun counts."""
    calls = transcript[:30]
    model = get_model("mockllm/model", custom_outputs=[output(t) for t in transcript], memoize=False)
    (log,) = inspect_eval(
        "skillhorizon/docs",
        task_args={"tasks": 1, "first_seed": task.seed},
        model=model,
        token_limit=107 * len(calls) - 1,  # exceeded by the last of them
        log_dir=str(tmp_path),
        display="none",
    )
    (sample,) = log.samples
    assert (log.status, sample.limit.type, sample.error) == ("success", "token", None)
    gateway = task.open()
    for text in calls[:-1]:
        (call,) = json.loads(text)["actions"]
        gateway.call(call["name"], call["arguments"])
    score = sample.scores["final_state"]
    assert score.value == {"lgc": sh.evaluate(task, gateway).lgc, "ts": 0.0}
    assert (score.metadata["end"], score.metadata["attempts"]) == ("stopped", len(calls) - 1)


def test_inspect_finds_the_tasks_by_name(tmp_path):
    """By the package's entry point. A model that never says anything of the protocol is given up."""
    model = get_model("mockllm/model", custom_outputs=lambda *_: output("I shall begin shortly."), memoize=False)
    arguments = {"tasks": 1, "first_seed": 5}
    (log,) = inspect_eval("skillhorizon/docs", task_args=arguments, model=model, log_dir=str(tmp_path), display="none")
    assert (log.status, log.eval.task) == ("success", "docs")
    (sample,) = log.samples
    assert sample.scores["final_state"].value == {"lgc": 0.0, "ts": 0.0}
    assert sample.scores["final_state"].metadata["end"] == "failed"
