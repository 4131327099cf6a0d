"""``mea:model:<name>``: one model of Inspect's in all three roles, here its mock model."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai.model import ModelOutput, ModelUsage, get_model

import skillhorizon as sh
from skillhorizon.agents import models
from skillhorizon.core.errors import InputError
from tests.mea.support import TASK, rounds, terminal
from tests.mea.test_minds import AUDIT, FIRST, LOOK, MAKE, NAME, REPORT, decision

AGENT = "mea:model:mockllm/model"


def output(said: object) -> ModelOutput:
    made = ModelOutput.from_content("mock", said if isinstance(said, str) else json.dumps(said))
    made.usage = ModelUsage(input_tokens=100, output_tokens=7, total_tokens=107)
    return made


def speaking(monkeypatch, *said: object) -> list[list[object]]:
    """What the model says, one answer after the other; an error among them is raised by the provider."""
    asked: list[list[object]] = []
    answers = iter(said)

    def answer(messages, tools, choice, config):
        asked.append(messages)
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return output(found)

    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    monkeypatch.setattr(models, "load", lambda name: model)
    return asked


def test_a_model_in_each_role_carries_a_task_out(monkeypatch):
    asked = speaking(monkeypatch, FIRST, MAKE, REPORT, LOOK, AUDIT, decision("done"))
    run = sh.run(TASK, agent=AGENT)
    assert run.end == "submitted"
    assert [(e.tool, e.role) for e in run.gateway.events] == [(NAME, "full"), ("get_parcel", "read_only")]
    assert len(asked) == 6
    spent = terminal(run.gateway).spent
    assert {name: (s.requests, s.tokens_in, s.tokens_out) for name, s in spent.items()} == {
        "manager": (2, 200, 14),
        "executor": (2, 200, 14),
        "auditor": (2, 200, 14),
    }


def test_a_provider_that_fails_costs_the_round_and_not_the_run(monkeypatch):
    speaking(monkeypatch, RuntimeError("503"), FIRST, MAKE, REPORT, LOOK, AUDIT, decision("done"))
    run = sh.run(TASK, agent=AGENT)
    assert run.end == "submitted"
    assert "cannot be reached" in rounds(run.gateway)[0].failures[0]


def test_a_model_that_does_not_exist_is_refused_at_once():
    with pytest.raises(InputError, match="no-such-provider"):
        sh.run(TASK, agent="mea:model:no-such-provider/model")
