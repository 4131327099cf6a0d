"""Each way in which such harnesses are known to fail, and that this one does not."""

from __future__ import annotations

import msgspec
import pytest

from skillhorizon.agents.mea.loop import Limits
from skillhorizon.agents.mea.roles import OutOfCalls, OutOfTokens, RoleFailed
from skillhorizon.agents.mea.state import (
    Audit,
    Boundary,
    Claim,
    Decision,
    Fact,
    Finding,
    Gap,
    Ledger,
    Progress,
    Report,
    Requirement,
    clip,
    ranges,
)
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from skillhorizon.core.serial import canonical
from tests.mea.support import (
    ALONE,
    DONE,
    READ,
    TASK,
    ToldAuditor,
    ToldExecutor,
    ToldManager,
    calling,
    failed,
    needed,
    passed,
    quote,
    rounds,
    run,
    terminal,
    work,
)

A, B = ALONE[:2]


# -- done is computed ------------------------------------------------------------------------------------------------


def test_done_is_refused_until_every_requirement_has_audited_evidence():
    manager = ToldManager(work("a"), DONE, DONE)
    outcome, gateway = run(manager, auditor=ToldAuditor(failed("a"), passed("a")))
    assert outcome.end == "submitted"
    first, claimed, last = rounds(gateway)
    assert (first.completed, claimed.route, claimed.completed, last.route) == (0, "done", 1, "done")
    assert claimed.contract.calls == 0, "it was audited, not executed"


def test_done_without_any_requirement_is_not_done():
    outcome, gateway = run(ToldManager(DONE))
    assert outcome.end == "stopped"
    assert terminal(gateway).open == ("no requirement has been found yet",)


def test_one_audited_part_is_not_the_whole():
    manager = ToldManager(work("a", "b"), DONE)
    auditor = ToldAuditor(Audit("incomplete", "clean", findings=(Finding("a", "completed", (1,)),), verified=(1,)))
    outcome, gateway = run(manager, auditor=auditor)
    assert outcome.end == "stopped"
    assert "b" in terminal(gateway).open
    assert "a" not in terminal(gateway).open


def test_a_late_write_makes_evidence_stale_and_calls_for_a_new_audit():
    """The second round writes to what the first one completed, and nobody finds that write right."""
    manager = ToldManager(work(A), work(B), DONE)
    executor = ToldExecutor(calling(quote(A)), calling(quote(A, cents=5)), calling(READ))
    auditor = ToldAuditor(passed(A), Audit("incomplete", "clean"), passed(A, evidence=(2,)), failed(B))
    _, gateway = run(manager, executor, auditor)
    assert [r.completed for r in rounds(gateway)][:2] == [1, 0]
    assert gateway.events[1].tool == "quote_parcel"


def test_a_late_write_that_an_audit_finds_right_renews_the_evidence():
    manager = ToldManager(work(A), work(B), DONE)
    executor = ToldExecutor(calling(quote(A)), calling(quote(A, cents=5)))
    auditor = ToldAuditor(passed(A), passed(B, evidence=(2,)))
    outcome, _ = run(manager, executor, auditor)
    assert outcome.end == "submitted"


def test_a_write_after_the_newest_audit_keeps_the_work_open():
    ledger = Ledger(canonical(TASK.brief))
    gateway = TASK.open()
    gateway.call(*quote(A))
    ledger.propose([needed(A, A)])
    ledger.record(gateway.events, 0, 1)
    ledger.apply(passed(A), gateway.events)
    assert ledger.missing(gateway.events) == []
    gateway.call(*quote(B))
    ledger.record(gateway.events, 1, 2)
    assert ledger.missing(gateway.events) == ["call 2 has not been audited"]


# -- rounds that fail ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [OutOfCalls("time"), RoleFailed("it died")])
def test_what_a_round_did_before_it_ended_badly_is_handed_on(end):
    def turn(contract, desk):
        desk.call(*quote(A))
        raise end

    auditor = ToldAuditor(failed("a"))
    manager = ToldManager(work("a"))
    _, gateway = run(manager, ToldExecutor(turn), auditor)
    _, report, _, _ = auditor.turns[0]
    assert report.calls == (1,)
    assert 1 in manager.turns[1][0].ledger.unverified, "the next manager knows of the write"
    assert report.end == ("out_of_calls" if isinstance(end, OutOfCalls) else "failed")
    assert rounds(gateway)[0].report.calls == (1,)


def test_an_audit_that_fails_is_tried_again_without_executing_again():
    auditor = ToldAuditor(RoleFailed("no answer"), passed("a"))
    outcome, gateway = run(ToldManager(work("a"), DONE), auditor=auditor)
    assert outcome.end == "submitted"
    assert len(gateway.events) == 1
    first, last = rounds(gateway)
    assert (first.failures, first.completed, last.contract) == (("auditor: no answer",), 1, None)


@pytest.mark.parametrize("failure", [RoleFailed("refused"), OutOfCalls("time"), OutOfTokens("long")])
def test_an_audit_that_could_not_be_had_is_no_pass(failure):
    outcome, gateway = run(ToldManager(work("a"), DONE), auditor=ToldAuditor(failure))
    assert outcome.end == "stopped"
    assert all(r.audit is None for r in rounds(gateway))
    assert terminal(gateway).completed == 0


def test_an_audit_is_tried_a_bounded_number_of_times():
    auditor = ToldAuditor(RoleFailed("no answer"))
    run(ToldManager(work("a")), auditor=auditor, limits=Limits(audit_tries=2, patience=1))
    assert len(auditor.turns) == 2


def test_a_manager_that_fails_costs_rounds_and_not_at_once_the_run():
    manager = ToldManager(RoleFailed("no JSON"), work("a"), DONE)
    outcome, gateway = run(manager, auditor=ToldAuditor(passed("a")))
    assert outcome.end == "submitted"
    assert rounds(gateway)[0].failures == ("manager: no JSON",)
    assert "no JSON" in manager.turns[1][0].notice


def test_a_manager_that_only_fails_ends_the_run_with_a_report():
    outcome, gateway = run(ToldManager(RoleFailed("no JSON")))
    assert (outcome.end, terminal(gateway).end) == ("failed", "failed")
    assert "no JSON" in outcome.why


def test_an_error_of_a_tool_is_no_outage_of_a_model():
    """Nothing looks for words such as 401 or timeout in what tools say."""
    executor = ToldExecutor(calling(("get_artifact", {"ref": "401 timeout@1"}), READ))
    outcome, gateway = run(ToldManager(work("a"), DONE), executor, ToldAuditor(passed("a")))
    assert not gateway.events[0].ok
    assert outcome.end == "submitted"


# -- evidence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [0, 7, 10_000])
def test_an_audit_with_evidence_that_does_not_exist_is_refused(call):
    bad = msgspec.structs.replace(passed("a"), findings=(Finding("a", "completed", (call,)),))
    outcome, gateway = run(ToldManager(work("a"), DONE), auditor=ToldAuditor(bad))
    assert outcome.end == "stopped"
    assert f"names call {call}" in rounds(gateway)[0].failures[0]


def test_an_audit_with_evidence_of_a_round_that_it_was_not_given_is_refused():
    """Call 1 belongs to the first round, and no contract named it."""
    auditor = ToldAuditor(failed("a"), passed("b", evidence=(1,)))
    _, gateway = run(ToldManager(work("a"), work("b"), DONE), auditor=auditor)
    assert "names call 1" in rounds(gateway)[1].failures[0]


def test_a_report_with_foreign_evidence_loses_its_claims_and_says_so():
    executor = ToldExecutor(lambda contract, desk: Report(end="finished", claims=(Claim("a", (99,)),)))
    auditor = ToldAuditor(failed("a"))
    run(ToldManager(work("a")), executor, auditor)
    report = auditor.turns[0][1]
    assert report.claims == ()
    assert "99" in report.issues[0]


def test_success_without_a_call_is_incomplete():
    empty = Audit("complete", "clean", findings=(Finding("a", "completed"),))
    outcome, gateway = run(ToldManager(work("a"), DONE), auditor=ToldAuditor(empty))
    assert outcome.end == "stopped"
    assert rounds(gateway)[0].audit.completion == "incomplete"
    assert rounds(gateway)[0].completed == 0


def test_a_verdict_that_contradicts_itself_is_refused():
    odd = Audit("complete", "clean", findings=(Finding("a", "pending"),))
    _, gateway = run(ToldManager(work("a")), auditor=ToldAuditor(odd))
    assert "says complete and names what is missing" in rounds(gateway)[0].failures[0]


def test_a_contract_with_evidence_that_does_not_exist_is_refused():
    manager = ToldManager(work("a", evidence=(5,)), work("a"), DONE)
    outcome, gateway = run(manager, auditor=ToldAuditor(passed("a")))
    assert outcome.end == "submitted"
    assert rounds(gateway)[0].contract is None
    assert manager.turns[1][0].notice == "no call 5 was made"


def test_an_invented_requirement_cannot_block():
    invented = Requirement("gold-plating", "paint the depot", source=("painters-guild",))
    manager = ToldManager(msgspec.structs.replace(work("a"), requirements=(needed("a"), invented)), DONE)
    outcome, _ = run(manager, auditor=ToldAuditor(passed("a")))
    assert outcome.end == "submitted"


def test_a_requirement_may_trace_to_what_verified_calls_showed():
    ledger = Ledger(canonical(TASK.brief))
    shown = Requirement("r", "a route", source=(ALONE[0],))
    ledger.propose([shown])
    assert ledger.requirements["r"].status == "invalidated"
    gateway = TASK.open()
    gateway.call("get_parcel", {"parcel_id": ALONE[0]})
    ledger.apply(Audit("incomplete", "clean", verified=(1,)), gateway.events)
    ledger.propose([shown])
    assert ledger.requirements["r"].status == "pending"


def test_a_verified_call_that_is_taken_back_opens_what_rested_on_it():
    ledger = Ledger(canonical(TASK.brief))
    gateway = TASK.open()
    gateway.call(*quote(A))
    gateway.call(*quote(B))
    ledger.propose([needed(A, A), needed(B, B)])
    ledger.record(gateway.events, 0, 2)
    ledger.apply(passed(A, evidence=(1,)), gateway.events)
    ledger.apply(passed(B, evidence=(2,)), gateway.events)
    assert (ledger.verified, list(ledger.unverified), ledger.missing(gateway.events)) == ([1, 2], [], [])
    newly = ledger.apply(Audit("incomplete", "suspect", retracted=(1,)), gateway.events)
    assert newly == -1
    assert (ledger.verified, list(ledger.unverified), ledger.missing(gateway.events)) == ([2], [1], [A])


def test_only_audits_move_a_status():
    ledger = Ledger(canonical(TASK.brief))
    ledger.propose([msgspec.structs.replace(needed("a"), status="completed", evidence=(1,))])
    assert (ledger.requirements["a"].status, ledger.requirements["a"].evidence) == ("pending", ())
    gateway = TASK.open()
    gateway.call(*READ)
    ledger.apply(passed("a"), gateway.events)
    ledger.propose([needed("a")])
    assert ledger.requirements["a"].status == "completed"


def test_a_completed_requirement_that_is_void_goes_back_to_pending_by_the_next_audit():
    manager = ToldManager(work("a"), work("a"), DONE)
    _, gateway = run(manager, auditor=ToldAuditor(passed("a"), failed("a")))
    assert [r.completed for r in rounds(gateway)][:2] == [1, 0]


# -- permissions and boundaries --------------------------------------------------------------------------------------


def test_an_auditor_that_writes_is_refused_and_recorded_and_the_round_stays_usable():
    def turn(contract, report, changes, desk):
        answer = desk.call(*quote(A))
        assert answer["error"]["code"] == "not_permitted"
        return passed("a", evidence=(2,))

    outcome, gateway = run(ToldManager(work("a"), DONE), auditor=ToldAuditor(turn))
    assert outcome.end == "submitted"
    assert [(e.role, e.code) for e in gateway.events] == [("full", None), ("read_only", "not_permitted")]


def test_a_manager_cannot_call_at_all():
    def turn(view, desk):
        with pytest.raises(OutOfCalls):
            desk.call(*READ)
        return work("a")

    _, gateway = run(ToldManager(turn), auditor=ToldAuditor(failed("a")))
    assert all(e.role == "full" for e in gateway.events)


def test_a_table_that_was_to_stay_is_watched_by_its_digest():
    manager = ToldManager(work("a", boundary=Boundary(tables=("artifacts",))), DONE)
    _, gateway = run(manager, ToldExecutor(calling(quote(A))), ToldAuditor(passed("a")))
    audit = rounds(gateway)[0].audit
    assert (audit.integrity, audit.completion) == ("violation", "incomplete")
    assert audit.blockers == ("table artifacts was to stay as it is",)
    assert rounds(gateway)[0].completed == 0
    assert terminal(gateway).risks == ("violation: calls unknown",)


def test_the_wrong_but_similar_record_is_a_violation():
    manager = ToldManager(work(A, boundary=Boundary(objects=(B,))))
    _, gateway = run(manager, ToldExecutor(calling(quote(B))), ToldAuditor(passed(A)))
    audit = rounds(gateway)[0].audit
    assert audit.integrity == "violation"
    assert audit.suspects == (1,)
    assert rounds(gateway)[0].completed == 0


def test_a_change_that_no_call_made_is_a_violation():
    def turn(contract, desk):
        desk.call(*READ)
        desk.gateway.world.announce("rumour", [], "something happened")
        return Report(end="finished")

    _, gateway = run(ToldManager(work("a")), ToldExecutor(turn), ToldAuditor(passed("a")))
    assert rounds(gateway)[0].audit.blockers == ("notices changed, and no call of the round did it",)


def test_a_business_that_changes_during_an_audit_is_a_violation():
    def turn(contract, report, changes, desk):
        desk.gateway.world.announce("rumour", [], "something happened")
        return passed("a")

    _, gateway = run(ToldManager(work("a")), auditor=ToldAuditor(turn))
    assert rounds(gateway)[0].audit.integrity == "violation"


# -- limits ----------------------------------------------------------------------------------------------------------


def test_no_role_can_starve_the_auditor():
    """The executor would use every attempt; those of the audit are kept back."""
    gateway = TASK.open(budget=9)
    executor = ToldExecutor(calling(*[READ] * 100))
    auditor = ToldAuditor(lambda contract, report, changes, desk: [desk.call(*READ), failed("a")][1])
    outcome, _ = run(ToldManager(work("a", calls=100)), executor, auditor, Limits(audit_calls=4), gateway=gateway)
    first = rounds(gateway)[0]
    assert (first.executed, first.audited) == (5, 6)
    assert outcome.end == "exhausted"


def test_calls_of_all_roles_share_the_budget():
    gateway = TASK.open(budget=30)
    auditor = ToldAuditor(lambda contract, report, changes, desk: [desk.call(*READ), failed("a")][1])
    run(ToldManager(work("a", calls=3)), ToldExecutor(calling(*[READ] * 3)), auditor, gateway=gateway)
    spent = terminal(gateway).spent
    assert spent["executor"].attempts + spent["auditor"].attempts == gateway.used
    assert spent["auditor"].attempts == sum(r.audit is not None for r in rounds(gateway)) > 3


def test_tokens_of_a_role_have_a_limit():
    def turn(contract, desk):
        desk.request(60, 0)
        desk.request(60, 0)
        return Report(end="finished")

    _, gateway = run(ToldManager(work("a")), ToldExecutor(turn), limits=Limits(tokens=100, patience=1))
    assert rounds(gateway)[0].failures == ("executor: more than 100 tokens in one round",)


def test_rounds_are_limited_and_grow_with_the_allowance():
    assert Limits(rounds=25, contract_calls=24).rounds_for(None) == 25
    assert Limits(rounds=25, contract_calls=24).rounds_for(195) == 25
    assert Limits(rounds=25, contract_calls=24).rounds_for(8000) == 1000
    names = [f"{word}" for word in "abcdefghijklmnopqrstuvwxyz"]
    manager = ToldManager(*[work(name) for name in names])
    auditor = ToldAuditor(*[failed(name, gaps=(Gap(name, text=name * 3),)) for name in names])
    outcome, gateway = run(manager, auditor=auditor, limits=Limits(rounds=6), gateway=TASK.open(budget=40))
    assert (outcome.end, outcome.why) == ("stopped", "6 rounds")
    assert len(rounds(gateway)) == 6


@pytest.mark.parametrize(
    ("manager", "end"),
    [
        (ToldManager(Decision("blocked", why="no way on")), "stopped"),
        (ToldManager(Decision("ask", why="may I?")), "stopped"),
        (ToldManager(Decision("execute")), "stopped"),
        (ToldManager(DONE), "stopped"),
        (ToldManager(RoleFailed("?")), "failed"),
        (ToldManager(work("a")), "stopped"),
    ],
)
def test_every_way_out_leaves_a_terminal_report(manager, end):
    outcome, gateway = run(manager)
    assert (outcome.end, terminal(gateway).end) == (end, end)
    assert terminal(gateway).why
    assert terminal(gateway).rounds == len(rounds(gateway)) or end == "failed"


def test_nobody_is_there_to_be_asked():
    manager = ToldManager(Decision("ask", why="may I?"), work("a"), DONE)
    outcome, _ = run(manager, auditor=ToldAuditor(passed("a")))
    assert outcome.end == "submitted"
    assert manager.turns[1][0].notice == "nobody is there to be asked: decide by the brief"
    outcome, _ = run(ToldManager(Decision("ask", why="may I?")), asked="stop")
    assert (outcome.end, outcome.why) == ("stopped", "a person would have to answer: may I?")


# -- no progress -----------------------------------------------------------------------------------------------------


def gap(text: str, *objects: str) -> list[Gap]:
    return [Gap("a", objects, text)]


@pytest.mark.parametrize(
    ("sets", "verdicts"),
    [
        ([gap("quote the parcel")] * 3, ["go", "strategy", "stop"]),
        ([gap("one"), gap("two"), gap("one"), gap("two"), gap("one")], ["go", "go", "strategy", "strategy", "stop"]),
        ([gap("quote it", A), gap("it has no quote", A), gap("nothing was quoted", A)], ["go", "strategy", "stop"]),
        ([gap("quote the parcel"), gap("The parcel: quote!"), gap("parcel quote the")], ["go", "strategy", "stop"]),
        ([gap("one"), gap("two"), gap("three"), gap("four")], ["go"] * 4),
    ],
    ids=["the same", "to and fro", "other words, same objects", "other order", "progress"],
)
def test_no_progress_is_seen_on_the_set_of_gaps(sets, verdicts):
    progress = Progress(patience=3)
    assert [progress.judge(gaps, fresh=False) for gaps in sets] == verdicts


def test_the_same_gaps_are_progress_while_calls_are_newly_verified_but_not_when_they_come_back():
    progress = Progress(patience=3)
    assert [progress.judge(gap("one"), fresh=True) for _ in range(4)] == ["go"] * 4
    assert progress.judge(gap("two"), fresh=True) == "go"
    assert progress.judge(gap("one"), fresh=True) == "strategy"


def test_without_progress_another_strategy_is_asked_for_and_then_the_work_stops_honestly():
    manager = ToldManager(work("a"))
    outcome, gateway = run(manager, auditor=ToldAuditor(failed("a", gaps=tuple(gap("quote it", A)))))
    assert [turn[0].strategy for turn in manager.turns] == [False, False, True]
    assert (outcome.end, outcome.why) == ("stopped", "no progress in 3 rounds")
    assert terminal(gateway).open == ("a",)


# -- what is kept ----------------------------------------------------------------------------------------------------


def long_audit() -> Audit:
    facts = tuple(Fact(f"fact number {n} " + "x" * 100, (n + 1,)) for n in range(500))
    return Audit(
        "blocked",
        "violation",
        blockers=("the depot burnt down",),
        findings=(Finding("a", "blocked", (1,)),),
        facts=facts,
    )


def test_verdict_and_blockers_come_first_and_survive_every_clip():
    text = clip(long_audit(), 1000)
    assert len(text) <= 1000
    assert text.startswith('{"completion":"blocked","integrity":"violation","blockers":["the depot burnt down"]')
    left = msgspec.json.decode(text)
    assert len(left["facts"]) + left["left_out"]["facts"] == 500
    assert left["findings"]
    assert clip(passed("a"), 10_000) == msgspec.json.encode(passed("a")).decode()


def test_early_facts_stay_reachable_in_a_long_run():
    """Thirty rounds: the first verified call can still be named as evidence."""
    names = [f"need{n}" for n in range(30)]
    manager = ToldManager(*[work(name, evidence=tuple(range(1, n + 1))) for n, name in enumerate(names)], DONE)
    auditor = ToldAuditor(*[passed(name, evidence=(n + 1,)) for n, name in enumerate(names)])
    outcome, _ = run(manager, auditor=auditor, limits=Limits(rounds=40))
    assert outcome.end == "submitted"
    view = manager.turns[-1][0]
    assert view.ledger.lookups == list(range(1, 31))
    assert ranges(view.ledger.lookups) == "1-30"
    assert view.ledger.requirements["need0"].evidence == (1,)


def test_without_a_ledger_facts_last_one_round():
    manager = ToldManager(work("a"), work("b"), DONE)
    run(manager, auditor=ToldAuditor(passed("a"), passed("b", evidence=(2,))), ledger=False)
    assert [turn[0].ledger.lookups for turn in manager.turns][-1] == [2]


def test_ranges():
    assert ranges([3, 1, 2, 9, 11, 12]) == "1-3,9,11-12"
    assert ranges([]) == ""


# -- the journal is the write-ahead record ---------------------------------------------------------------------------


def journaled(path, manager, executor, auditor, *, resume: bool = False):
    journal = Journal.load(path) if resume else Journal.create(path, {"of": "a test"})
    try:
        return run(manager, executor, auditor, gateway=TASK.open(journal=journal))
    finally:
        journal.close()


class Killed(BaseException):
    """The process dies here."""


def two_rounds(die_at: int | None = None):
    """A quote in each of two rounds; dies before the call with this number."""
    made = []

    def turn(parcel_id):
        def act(contract, desk):
            if die_at == len(desk.events) + 1:
                raise Killed
            made.append(parcel_id)
            desk.call(*quote(parcel_id))
            return Report(end="finished")

        return act

    manager = ToldManager(work(A), work(B), DONE)
    auditor = ToldAuditor(passed(A), passed(B, evidence=(2,)))
    return (manager, ToldExecutor(turn(A), turn(B)), auditor), made


@pytest.mark.parametrize("die_at", [1, 2])
def test_a_killed_run_goes_on_at_its_round_and_repeats_no_write(die_at, tmp_path):
    path = tmp_path / "journal"
    with pytest.raises(Killed):
        journaled(path, *two_rounds(die_at)[0])
    outcome, gateway = journaled(path, *two_rounds()[0], resume=True)
    whole, undisturbed = journaled(tmp_path / "whole", *two_rounds()[0])
    assert outcome == whole
    assert [(e.call, e.observation) for e in gateway.events] == [(e.call, e.observation) for e in undisturbed.events]
    assert rounds(gateway) == rounds(undisturbed)
    assert sum(e.kind == "business" for e in gateway.events) == 2


def test_the_intent_is_on_disk_before_the_effect(tmp_path):
    path = tmp_path / "journal"
    seen = []

    def turn(contract, desk):
        call = desk.gateway.call
        desk.gateway.call = lambda *a, **k: (seen.append([n.kind for n in Journal.load(path).notes]), call(*a, **k))[1]
        desk.call(*quote(A))
        return Report(end="finished")

    journaled(path, ToldManager(work(A), DONE), ToldExecutor(turn), ToldAuditor(passed(A)))
    assert seen == [["intent"]]


@pytest.mark.parametrize("took_effect", [False, True])
def test_between_intent_and_result_the_outcome_is_looked_up_before_a_write_is_repeated(took_effect, tmp_path):
    """The process dies after the intent. Where the write took effect nonetheless, it is not made again."""
    path = tmp_path / "journal"

    def dies(contract, desk):
        desk.gateway.call = None
        with pytest.raises(TypeError):
            desk.call(*quote(A))
        raise Killed

    manager, executor, auditor = two_rounds()[0]
    with pytest.raises(Killed):
        journaled(path, manager, ToldExecutor(dies), auditor)
    journal = Journal.load(path)
    gateway = TASK.open(journal=journal)
    if took_effect:
        name, arguments = quote(A)
        gateway.tools[name].run(gateway.world, canonical(arguments))
    run(ToldManager(work(A)), executor, ToldAuditor(failed(A)), Limits(patience=1), gateway=gateway)
    journal.close()
    tools = [e.tool for e in gateway.events if B.encode() not in e.call]
    assert tools[0] == "list_artifacts"
    assert ("quote_parcel" in tools, "get_artifact" in tools) == (not took_effect, took_effect)


def test_a_corrupt_ledger_fails_loudly(tmp_path):
    path = tmp_path / "journal"
    with pytest.raises(Killed):
        journaled(path, *two_rounds(2)[0])
    other = ToldAuditor(failed(A), passed(B, evidence=(2,)))
    with pytest.raises(InputError, match="the round that the journal holds differs"):
        journaled(path, two_rounds()[0][0], two_rounds()[0][1], other, resume=True)
