"""The flip rate: how often audits of one unchanged state disagree."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import msgspec
import pytest

from skillhorizon import comparison, params
from skillhorizon.agents import mea
from skillhorizon.agents.harness import Reply
from skillhorizon.agents.mea.flips import audited, flip_rate, verdict
from skillhorizon.agents.mea.minds import MindAuditor
from skillhorizon.agents.mea.state import Audit, Finding
from skillhorizon.core.errors import InputError
from tests.mea.support import ALONE, TASK, quote

ROOT = Path(__file__).parents[2]

YES, NO = ("complete", "clean", (("brief", "completed"),)), ("incomplete", "clean", (("brief", "pending"),))


@pytest.mark.parametrize(
    ("verdicts", "rate"),
    [([YES] * 5, 0.0), ([YES, YES, NO, YES, YES], 0.4), ([YES, NO, YES, NO], 4 / 6), ([YES, None], 1.0)],
)
def test_the_rate_is_the_share_of_pairs_that_disagree(verdicts, rate):
    """Of five with one apart, four of ten pairs; of two and two, four of six."""
    assert flip_rate(verdicts) == pytest.approx(rate)


def test_one_audit_has_no_rate():
    assert math.isnan(flip_rate([YES]))


def test_words_and_evidence_make_no_other_verdict():
    one, other = (Audit("complete", "clean", findings=(Finding("a", "completed", (n,), f"text {n}"),)) for n in (1, 2))
    assert verdict(one) == verdict(other)
    assert verdict(one) != verdict(Audit("complete", "suspect", findings=one.findings))


class Wavering:
    """A mind that says the opposite with a certain probability."""

    repeatable = False

    def __init__(self, rng: random.Random, flips: float) -> None:
        self.rng, self.flips = rng, flips

    def respond(self, messages):
        completion, status = ("incomplete", "pending") if self.rng.random() < self.flips else ("complete", "completed")
        finding = {"requirement": "brief", "status": status, "evidence": [1], "text": ""}
        audit = {"type": "audit", "completion": completion, "integrity": "clean", "findings": [finding]}
        return Reply(json.dumps(audit))


@pytest.mark.parametrize(("flips", "expected"), [(0.0, 0.0), (1.0, 0.0), (0.1, 0.18), (0.5, 0.5)])
def test_a_model_auditor_that_wavers_has_the_rate_that_follows_from_its_probability(flips, expected):
    """Two audits disagree with probability 2 p (1 - p)."""
    gateway = TASK.open()
    gateway.call(*quote(ALONE[0]))
    before = gateway.table_digests()
    rng = random.Random(5)
    verdicts = audited(lambda: MindAuditor(Wavering(rng, flips)), TASK, gateway, 400)
    assert flip_rate(verdicts) == pytest.approx(expected, abs=0.04)
    assert gateway.table_digests() == before


def test_an_auditor_without_an_answer_has_no_verdict():
    class Silent(Wavering):
        def respond(self, messages):
            return Reply("well")

    gateway = TASK.open()
    gateway.call(*quote(ALONE[0]))
    assert audited(lambda: MindAuditor(Silent(random.Random(0), 0)), TASK, gateway, 2) == [None, None]


def test_the_table_has_a_row_for_each_state():
    asked = params.load(ROOT / "params.yaml")
    small = msgspec.structs.replace(asked, environments=("social",), mea=msgspec.structs.replace(asked.mea, tasks=1))
    table = comparison.flips(small, "quick", ROOT / "data", 3)
    assert table[["auditor", "env", "audits", "without_verdict", "flip_rate"]].to_numpy().tolist() == [
        ["scripted", "social", 3, 0, 0.0]
    ]


def test_an_unknown_auditor_is_refused():
    with pytest.raises(InputError, match="unknown auditor 'nobody'"):
        mea.auditors("nobody", TASK)
