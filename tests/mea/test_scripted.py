"""The scripted roles: what a perfect executor reaches, and what an audit finds and has put right."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import skillhorizon as sh
from skillhorizon.agents import mea
from skillhorizon.agents.mea.hands import Faithful, Stopped
from skillhorizon.agents.mea.loop import Limits, Mea, Roles
from skillhorizon.agents.mea.rehearsal import Rehearsal, written
from skillhorizon.agents.mea.roles import Changes, Desk
from skillhorizon.agents.mea.scripted import (
    ScriptedAuditor,
    ScriptedExecutor,
    ScriptedManager,
    TrustingManager,
    Watched,
)
from skillhorizon.agents.mea.state import Contract, Criterion, Report
from skillhorizon.core.policy import ask
from tests.mea.support import rounds, terminal
from tests.support import ENVIRONMENTS, TOY, WITH_TOY, small_task

MOST_AUDIT = 0.40
"""The share of tokens that manager and auditor may take, as published for such harnesses."""


def team(hand=None, *, fresh: bool = True, oversight: float = 0.0, audited: bool = True):
    def make(task, seed):
        policy = task.environment.policy
        executor = ScriptedExecutor(policy, hand or Faithful(), fresh)
        if not audited:
            return Roles(TrustingManager(), executor, None)
        return Roles(ScriptedManager(policy), executor, ScriptedAuditor(policy, seed, oversight))

    return make


def work(env: str, hand=None, *, limits: Limits | None = None, ledger: bool = True, **options):
    task = small_task(env)
    gateway = task.open()
    outcome = Mea(team(hand, **options), limits, ledger).act(task, gateway, 0)
    return outcome, gateway, sh.evaluate(task, gateway)


class Once(Faithful):
    """Makes one kind of mistake, the first time that it is possible."""

    def __init__(self, env: str, kind: str) -> None:
        self.environment, self.kind = small_task(env).environment, kind
        self.made: list[object] = []

    def choose(self, call, memory, context, lost=False):
        if not self.made:
            for confusion in self.environment.confusions(call, memory):
                if confusion.kind == self.kind:
                    self.made.append(confusion)
                    return confusion.call
        return call


# -- a perfect executor ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
def test_with_a_perfect_executor_everything_is_reached_within_the_allowance(env):
    outcome, gateway, evaluation = work(env)
    measures = small_task(env).measures
    assert (outcome.end, evaluation.success) == ("submitted", True)
    assert measures.R <= gateway.used <= gateway.budget
    spent = terminal(gateway).spent
    assert spent["executor"].attempts == measures.R, "nothing is asked twice that the ledger holds"
    both = {name: s.tokens_in + s.tokens_out for name, s in spent.items()}
    assert (both["auditor"] + both["manager"]) / sum(both.values()) <= MOST_AUDIT
    assert terminal(gateway).open == terminal(gateway).blocked == terminal(gateway).risks == ()


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_round_is_bounded_and_audited_by_reads_alone(env):
    limits = Limits(contract_calls=15, audit_calls=3)
    _, gateway, evaluation = work(env, limits=limits)
    assert evaluation.success
    for r in rounds(gateway):
        assert r.executed - r.first <= 15
        assert r.audited - r.executed <= 3
        assert {e.role for e in gateway.events[r.first : r.executed]} <= {"full"}
        assert {e.role for e in gateway.events[r.executed : r.audited]} <= {"read_only"}


@pytest.mark.parametrize("options", [{"audited": False}, {"fresh": False}, {"ledger": False}])
def test_the_ablations_reach_everything_too_where_nothing_goes_wrong(options):
    outcome, gateway, evaluation = work(ENVIRONMENTS[0], **options)
    assert (outcome.end, evaluation.success) == ("submitted", True)
    if options == {"ledger": False}:
        assert terminal(gateway).spent["executor"].attempts > small_task(ENVIRONMENTS[0]).measures.R


def test_a_context_that_is_not_fresh_grows_from_round_to_round():
    fresh, grown = (work(ENVIRONMENTS[0], fresh=f)[1] for f in (True, False))
    first, second = ([e.context_tokens for e in g.events if e.role == "full"] for g in (fresh, grown))
    assert any(after < before for before, after in pairwise(first))
    assert all(after >= before for before, after in pairwise(second))


def test_the_same_seed_makes_the_same_run():
    one, other = (work(ENVIRONMENTS[1])[1] for _ in range(2))
    assert [e.call for e in one.events] == [e.call for e in other.events]
    assert one.notes == other.notes


# -- mistakes --------------------------------------------------------------------------------------------------------

ACCEPTED = [
    ("docs", "grant_left_out"),
    ("factory", "axes_of_another_program"),
    ("field", "a_step_too_low"),
    ("finance", "late_source_recognised"),
    ("logistics", "load_without_bags"),
    ("research", "risk_understated"),
    ("social", "last_touch"),
]
"""A mistake of each environment that is accepted when it is made, and spoils the result."""


@pytest.mark.parametrize(("env", "kind"), ACCEPTED)
def test_a_mistake_that_was_accepted_is_found_and_put_right(env, kind):
    hand = Once(env, kind)
    outcome, gateway, evaluation = work(env, hand)
    assert hand.made
    assert any(r.audit and r.audit.gaps and r.audit.gaps[0].wrong for r in rounds(gateway))
    assert (outcome.end, evaluation.success) == ("submitted", True)
    trusting = work(env, Once(env, kind), audited=False)[2]
    assert not trusting.success, "without an audit it stays"


def test_what_cannot_be_put_right_is_reported_and_the_rest_is_done():
    """A clock that has gone past a due post cannot be turned back."""
    outcome, gateway, evaluation = work("social", Once("social", "clock_past_a_due_post"))
    end = terminal(gateway)
    assert outcome.end == "submitted"
    assert end.blocked
    assert not evaluation.success


def test_an_overlooked_mistake_stays():
    env, kind = ACCEPTED[0]
    assert not work(env, Once(env, kind), oversight=1.0)[2].success


def test_an_executor_that_stops_early_costs_rounds_only():
    class Hasty(Faithful):
        def __init__(self) -> None:
            self.calls = 0

        def choose(self, call, memory, context, lost=False):
            self.calls += 1
            if self.calls % 20 == 0:
                raise Stopped
            return call

    outcome, gateway, evaluation = work(ENVIRONMENTS[0], Hasty())
    assert (outcome.end, evaluation.success) == ("submitted", True)
    assert any(r.report and r.report.end == "stopped" for r in rounds(gateway))
    without = work(ENVIRONMENTS[0], Hasty(), audited=False)[2]
    assert not without.success, "a trusting manager believes that what was claimed is done"


def test_a_notice_that_the_executor_never_reads_is_found_by_the_auditor():
    class Deaf(Faithful):
        def choose(self, call, memory, context, lost=False):
            return None if call.tool == "list_notices" else call

    outcome, gateway, evaluation = work("finance", Deaf())
    reads = [e.tool for e in gateway.events if e.role == "read_only"]
    assert "list_notices" in reads
    assert (outcome.end, evaluation.success) == ("submitted", True)
    assert not work("finance", Deaf(), audited=False)[2].success


# -- the auditor -----------------------------------------------------------------------------------------------------


def test_the_same_state_audited_five_times_gives_the_same_verdict():
    env, kind = ACCEPTED[1]
    task = small_task(env)
    gateway = task.open()
    hand, rehearsal = Once(env, kind), Rehearsal(task.environment.policy())
    while not hand.made or len(gateway.events) % 24:
        call = hand.choose(rehearsal.wanted(), rehearsal.policy.memory, 0)
        gateway.call(call.tool, call.arguments)
        rehearsal.tell(gateway.events[-1].observation)
    made = tuple(range(1, len(gateway.events) + 1))
    contract = Contract("all of it", (Criterion("opening", "read"),), len(made))
    verdicts = []
    for _ in range(5):
        auditor = ScriptedAuditor(task.environment.policy, seed=1, oversight=0.5, spot_checks=0)
        desk = Desk(gateway, "read_only", 6, 10**9)
        verdicts.append(auditor.audit(task, contract, Report("finished", calls=made), Changes(), desk))
    assert all(v == verdicts[0] for v in verdicts)


def test_no_role_reads_a_goal_or_an_evaluator():
    """The package names neither the private side of a task nor its scoring."""
    for path in Path(mea.__file__).parent.glob("*.py"):
        names = {n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)}
        assert not names & {"blueprint", "scoring", "graph", "measures", "evaluate"}, path.name


# -- rehearsal and memory --------------------------------------------------------------------------------------------


def test_a_rehearsal_that_is_told_all_answers_stands_where_the_work_stands():
    task = small_task(TOY.name)
    run = sh.run(task)
    events = run.gateway.events
    for length in (0, 7, len(events) - 1, len(events)):
        rehearsal = Rehearsal(task.environment.policy())
        assert rehearsal.follow(range(1, length + 1), (), events) == []
        wanted = rehearsal.wanted()
        assert (wanted is None) == (length == len(events))
        if wanted is not None:
            assert written(wanted) == events[length].call


def test_a_rehearsal_does_not_take_an_answer_for_another_call():
    task = small_task(TOY.name)
    events = sh.run(task).gateway.events
    rehearsal = Rehearsal(task.environment.policy())
    assert rehearsal.follow([2, 3], (), events) == [2, 3]
    assert rehearsal.follow([2, 3], {2}, events) == [3]


def test_a_job_that_fails_waits_and_is_given_up_in_the_end():
    task = small_task(TOY.name)
    gateway = task.open()
    rehearsal = Rehearsal(task.environment.policy())
    refusal = msgspec.json.encode({"ok": False, "error": {"code": "wrong_rate", "message": "no", "details": {}}})
    while (call := rehearsal.wanted()) is not None:
        if call.tool == "quote_parcel":
            rehearsal.tell(refusal)
            continue
        gateway.call(call.tool, call.arguments)
        rehearsal.tell(gateway.events[-1].observation)
    assert rehearsal.failures
    assert all(rehearsal.hopeless(job) for job in rehearsal.failures)
    assert all(len(failures) == 2 for failures in rehearsal.failures.values())


def test_a_memory_tells_what_is_used_that_was_not_seen_in_this_context():
    used: list[int] = []
    memory = Watched(used.append)
    memory.step = 1
    memory.keep("rates", 7)
    assert (memory.get("rates"), used) == (7, [])
    memory.begin()
    memory.step = 5
    assert (memory.get("rates"), memory.get("rates"), used) == (7, 7, [1])
    steps = memory.lookup("windows", ask("list_windows"))
    assert next(steps).tool == "list_windows"
    assert used == [1]
    assert memory.get("nothing") is None
