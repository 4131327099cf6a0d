"""The loop: the manager decides, the executor carries one contract out, the auditor judges, and the round is kept.

What a round did is taken from the journal, what it changed from digests of the business's tables. A role that fails
costs the round. Every way out leaves a ``Terminal``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar

import msgspec

from skillhorizon.agents.mea.roles import (
    Auditor,
    Changes,
    Desk,
    Executor,
    Manager,
    OutOfCalls,
    RoleFailed,
    View,
)
from skillhorizon.agents.mea.state import (
    Audit,
    Contract,
    Criterion,
    Decision,
    EvidenceError,
    Finding,
    Gap,
    Ledger,
    Progress,
    Report,
    Requirement,
    Round,
    Spent,
    Terminal,
    check_audit,
    check_report,
    honest,
    ids_in,
    is_write,
    ranges,
)
from skillhorizon.agents.protocol import End, Outcome
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task

T = TypeVar("T")
CLAIMED = "claimed"
"""Note of a requirement that is believed to be met though no call is named for it."""
ROLES = ("manager", "executor", "auditor")


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rounds         least limit of rounds; a task whose allowance is larger gets as many as it may need
    contract_calls    attempts of one contract
    audit_calls       attempts of one audit, kept back from every contract
    audit_tries       times that an audit is tried before the round counts as not audited
    patience          rounds with the same gaps, or without any usable answer, after which the work stops
    tokens            of each role in one round, over all its requests
    """

    rounds: int = 25
    contract_calls: int = 24
    audit_calls: int = 6
    audit_tries: int = 2
    patience: int = 3
    tokens: int = 20_000_000

    def rounds_for(self, allowance: int | None) -> int:
        return max(self.rounds, math.ceil(3 * (allowance or 0) / self.contract_calls))


class Roles(NamedTuple):
    manager: Manager
    executor: Executor
    auditor: Auditor | None
    """None: reports are trusted (an ablation)"""


class Ended(Exception):
    """The work is over."""

    def __init__(self, end: End, why: str) -> None:
        super().__init__(end, why)
        self.end: End = end
        self.why = why


class Mea:
    """An agent that keeps the state of its task apart from execution.

    ``team`` makes the roles of one run. ``ledger=False`` is the ablation that forgets facts after a round.
    """

    def __init__(
        self,
        team: Callable[[Task, int], Roles],
        limits: Limits | None = None,
        ledger: bool = True,
        asked: Literal["decline", "stop"] = "decline",
    ) -> None:
        self.team = team
        self.limits = limits or Limits()
        self.ledger = ledger
        self.asked = asked

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        return Work(task, gateway, self.team(task, seed), self.limits, self.ledger, self.asked).run()


class Work:
    """One run of the loop."""

    def __init__(
        self, task: Task, gateway: Gateway, roles: Roles, limits: Limits, keep: bool, asked: Literal["decline", "stop"]
    ) -> None:
        self.task = task
        self.gateway = gateway
        self.roles = roles
        self.limits = limits
        self.asked = asked
        self.ledger = Ledger(canonical(task.brief), keep)
        self.progress = Progress(limits.patience)
        self.audit: Audit | None = None
        self.number = 0
        self.notice = ""
        self.strategy = False
        self.lame = 0
        """rounds without a usable decision, one after the other"""
        self.total = dict.fromkeys(ROLES, Spent())

    def run(self) -> Outcome:
        most = self.limits.rounds_for(self.gateway.budget)
        try:
            while self.number < most:
                self._round()
            raise Ended("stopped", f"{most} rounds")
        except Ended as ended:
            terminal = Terminal(
                end=ended.end,
                why=ended.why,
                rounds=self.number,
                completed=self.ledger.count("completed"),
                open=tuple(self.ledger.missing(self.gateway.events)),
                blocked=self.ledger.blocked(),
                risks=tuple(self.ledger.risks),
                spent=self.total,
            )
            self._keep("terminal", terminal)
            spent = self.total.values()
            return Outcome(
                ended.end,
                ended.why or None,
                decisions=sum(s.requests for s in spent),
                request_tokens=sum(s.tokens_in for s in spent),
                response_tokens=sum(s.tokens_out for s in spent),
            )

    # -- a round ---------------------------------------------------------------------------------------------------

    def _round(self) -> None:
        self.number += 1
        gateway = self.gateway
        first = len(gateway.events)
        failures: list[str] = []
        desks: dict[str, Desk] = {}
        contract = report = audit = None
        decision = self._decide(failures, desks)
        ended: Ended | None = None
        route = decision.route if decision else "blocked"
        if decision is not None:
            self.ledger.propose(decision.requirements)
            try:
                contract = self._follow(decision)
            except Ended as end:
                ended = end
        executed = first
        if contract is not None:
            before = gateway.table_digests()
            report = self._execute(contract, failures, desks)
            executed = len(gateway.events)
            changes = self._changes(contract, report, before, first)
            self.ledger.record(gateway.events, first, executed)
            audit = self._audit(contract, report, changes, failures, desks)
            if audit is not None:
                fresh = self.ledger.apply(audit, gateway.events)
                self.audit = audit
                standing = self.progress.judge(audit.gaps, fresh > 0)
            else:
                self.notice = "the last round could not be audited: nothing of it counts yet"
                standing = self.progress.judge((*self.ledger.gaps, *_unaudited(contract)), False)
            self.strategy = standing == "strategy"
            if standing == "stop":
                ended = Ended("stopped", f"no progress in {self.limits.patience} rounds")
        spent = {name: desk.spent for name, desk in desks.items()}
        for name, used in spent.items():
            self.total[name] += used
        self._keep(
            "round",
            Round(
                number=self.number,
                first=first,
                executed=executed,
                audited=len(gateway.events),
                route=route,
                contract=msgspec.structs.replace(contract, evidence=(), done=()) if contract else None,
                evidence=ranges(contract.evidence) if contract else "",
                report=report,
                audit=audit,
                failures=tuple(failures),
                spent=spent,
                completed=self.ledger.count("completed"),
                known=len(self.ledger.requirements),
            ),
        )
        if ended is not None:
            raise ended

    def _decide(self, failures: list[str], desks: dict[str, Desk]) -> Decision | None:
        desk = desks["manager"] = Desk(self.gateway, "read_only", 0, self.limits.tokens)
        view = View(
            task=self.task,
            ledger=self.ledger,
            audit=self.audit,
            events=self.gateway.events,
            round=self.number,
            calls=self._contract_calls(),
            notice=self.notice,
            strategy=self.strategy,
            tables=tuple(self.gateway.table_digests()),
        )
        try:
            decision = self.roles.manager.decide(view, desk)
        except (RoleFailed, OutOfCalls) as failure:
            failures.append(f"manager: {failure}")
            self.notice = f"the last answer could not be used: {failure}"
            self.lame += 1
            if self.lame >= self.limits.patience:
                raise Ended("failed", f"no usable decision in {self.lame} rounds: {failure}") from None
            return None
        self.notice = ""
        return decision

    def _contract_calls(self) -> int:
        """Attempts of the next contract: what the audit will need is not among them."""
        remaining = self.gateway.remaining
        most = self.limits.contract_calls
        return most if remaining is None else max(0, min(most, remaining - self.limits.audit_calls))

    def _follow(self, decision: Decision) -> Contract | None:
        """What a decision leads to; ``done`` only where the ledger says so, and else to an audit of what is open."""
        if decision.route == "done":
            wanting = self.ledger.missing(self.gateway.events)
            if not wanting:
                raise Ended("submitted", "")
            self.notice = f"not done: {'; '.join(wanting[:20])}"
            self._lame("the manager says done and the ledger does not")
            known = [self.ledger.requirements[r] for r in wanting if r in self.ledger.requirements]
            return (
                Contract("Audit what is open.", tuple(Criterion(r.id, r.statement) for r in known), 0)
                if known
                else None
            )
        if decision.route == "blocked":
            raise Ended("stopped", decision.why or "blocked")
        if decision.route == "ask":
            if self.asked == "stop":
                raise Ended("stopped", f"a person would have to answer: {decision.why}")
            self.notice = "nobody is there to be asked: decide by the brief"
            self._lame("the manager asks, and nobody is there")
            return None
        if decision.contract is None:
            self.notice = "to execute takes a contract"
            self._lame("the manager names no contract")
            return None
        self.lame = 0
        calls = min(decision.contract.calls, self._contract_calls())
        if decision.contract.calls and not calls:
            raise Ended("exhausted", "")
        foreign = [c for c in decision.contract.evidence if not 1 <= c <= len(self.gateway.events)]
        if foreign:
            self.notice = f"no call {foreign[0]} was made"
            self._lame("the manager names evidence that does not exist")
            return None
        return msgspec.structs.replace(decision.contract, calls=calls)

    def _lame(self, why: str) -> None:
        self.lame += 1
        if self.lame > self.limits.patience:
            raise Ended("stopped", why)

    def _execute(self, contract: Contract, failures: list[str], desks: dict[str, Desk]) -> Report:
        """The report, with the calls that the journal has, whatever became of the executor."""
        first = len(self.gateway.events)
        desk = desks["executor"] = Desk(self.gateway, "full", contract.calls, self.limits.tokens)
        report = Report(end="finished")
        if contract.calls:
            try:
                report = self.roles.executor.execute(self.task, contract, desk)
            except OutOfCalls:
                report = Report(end="out_of_calls")
            except RoleFailed as failure:
                failures.append(f"executor: {failure}")
                report = Report(end="failed", issues=(str(failure)[:2000],))
        made = range(first + 1, len(self.gateway.events) + 1)
        try:
            check_report(report, {*made, *contract.evidence, *contract.unverified, *contract.doubtful})
        except EvidenceError as error:
            failures.append(str(error))
            report = msgspec.structs.replace(report, claims=(), used=(), issues=(*report.issues, str(error)))
        return msgspec.structs.replace(report, calls=tuple(made))

    def _changes(self, contract: Contract, report: Report, before: dict[str, str], first: int) -> Changes:
        """What changed, and what of it lies outside the contract's boundary."""
        after = self.gateway.table_digests()
        tables = tuple(sorted(name for name in after if after[name] != before.get(name)))
        writes = [event for event in self.gateway.events[first:] if is_write(event)]
        violations = [f"table {name} was to stay as it is" for name in tables if name in contract.boundary.tables]
        if tables and not writes:
            violations.append(f"{', '.join(tables)} changed, and no call of the round did it")
        suspects = []
        for event in writes:
            touched = ids_in(event.call) | {ref.partition("@")[0] for ref in event.produced}
            if hit := sorted(touched & set(contract.boundary.objects)):
                violations.append(f"call {event.step} concerns {hit[0]}, which was to stay as it is")
                suspects.append(event.step)
        return Changes(tables, tuple(violations), tuple(suspects))

    def _audit(
        self, contract: Contract, report: Report, changes: Changes, failures: list[str], desks: dict[str, Desk]
    ) -> Audit | None:
        """The verdict, or None where none could be had: that is never a pass."""
        if self.roles.auditor is None:
            return trust(contract, report)
        desk = desks["auditor"] = Desk(self.gateway, "read_only", self.limits.audit_calls, self.limits.tokens)
        digests = self.gateway.table_digests()
        for _ in range(self.limits.audit_tries):
            try:
                audit = self.roles.auditor.audit(self.task, contract, report, changes, desk)
                allowed = {*report.calls, *contract.evidence, *contract.unverified, *contract.doubtful}
                allowed |= set(self.ledger.verified)
                first = report.calls[-1] if report.calls else 0
                check_audit(audit, contract, allowed | set(range(first + 1, len(self.gateway.events) + 1)))
            except (RoleFailed, OutOfCalls, EvidenceError) as failure:
                failures.append(f"auditor: {failure}")
                continue
            if self.gateway.table_digests() != digests:
                changes = Changes(changes.tables, (*changes.violations, "the business changed during the audit"))
            return _bounded(honest(audit, contract), changes)
        return None

    def _keep(self, kind: str, value: Round | Terminal) -> None:
        """A checkpoint. A run that is taken up makes it again, and it has to be the same."""
        if canonical(self.gateway.once(kind, lambda: value)) != canonical(value):
            raise InputError(f"the {kind} that the journal holds differs: another agent, seed or version made it")


def trust(contract: Contract, report: Report) -> Audit:
    """What reports are worth where nobody audits: every claim is believed, and every call with it."""
    claimed = {claim.requirement: claim.evidence for claim in report.claims}
    asked = [c.requirement for c in contract.criteria]
    found = tuple(Requirement(r, "as reported", ("skills",)) for r in claimed if r not in asked)
    findings = tuple(
        Finding(r, "completed", evidence or report.calls, "" if evidence else CLAIMED)
        for r, evidence in claimed.items()
    )
    complete = not set(asked) - set(claimed)
    return Audit(
        completion="complete" if complete else "incomplete",
        integrity="clean",
        findings=findings,
        gaps=() if complete else (Gap("rest", text=f"after {report.calls[-1:]} calls"),),
        found=found,
        verified=report.calls,
    )


def _bounded(audit: Audit, changes: Changes) -> Audit:
    """Integrity as the digests have it, where they say worse than the auditor; a violation completes nothing."""
    if not changes.violations:
        return audit
    findings = tuple(
        msgspec.structs.replace(f, status="pending") if f.status == "completed" else f for f in audit.findings
    )
    return msgspec.structs.replace(
        audit,
        integrity="violation",
        completion="incomplete" if audit.completion == "complete" else audit.completion,
        blockers=(*changes.violations, *audit.blockers),
        findings=findings,
        suspects=(*changes.suspects, *audit.suspects),
    )


def _unaudited(contract: Contract) -> tuple[Gap, ...]:
    return tuple(Gap(c.requirement, text=c.statement) for c in contract.criteria)
