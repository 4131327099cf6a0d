"""What the roles hand each other, as data: requirements, contracts, reports, audits, and the ledger over them.

A *call id* is the number of a call in the run's journal, from 1. Evidence is always call ids; what no call of the run
stands behind is no evidence. Texts are for people and models: no rule here reads them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from skillhorizon.core.gateway import Event

Status = Literal["pending", "completed", "blocked", "invalidated"]
Completion = Literal["complete", "incomplete", "blocked"]
Integrity = Literal["clean", "suspect", "violation"]
Route = Literal["execute", "done", "blocked", "ask"]
CallId = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1, max_length=120)]
Sentence = Annotated[str, Meta(max_length=2000)]

_ID = re.compile(rb'"([a-z]{2,5}-[0-9a-z]{5}(?:-[0-9]+)?)(?:@[0-9]+)?"')
_MET = {"completed", "invalidated"}
_WORD = re.compile(r"[a-z_-]{3,}|[0-9]+")


class EvidenceError(ValueError):
    """A role named a call that this run did not make, or that is not the role's to name."""


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what roles exchange."""


class Gap(Data, frozen=True):
    """What is missing: ``wrong`` is an accepted call that was made in place of the right one."""

    requirement: Name
    objects: tuple[str, ...] = ()
    text: Sentence = ""
    wrong: CallId | None = None


class GivenUp(Data, frozen=True):
    """A requirement that is not tried any more, since so many calls had been verified."""

    requirement: Name
    after: int


class Criterion(Data, frozen=True):
    """One thing that a contract asks for, towards one requirement."""

    requirement: Name
    statement: Sentence


class Boundary(Data, frozen=True):
    """What a contract must leave as it is: whole tables of the business, and objects by id."""

    tables: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


class Contract(Data, frozen=True):
    """One bounded piece of work. ``evidence`` are the calls that the executor may look up, ``done`` those that are
    found right so far. ``unverified`` calls were made and are not among them yet: their outcome stands in the journal,
    and none of them is made again. ``doubtful`` ones rest on something wrong: such a write may be made again, and where
    that is refused its outcome stands.

    Without ``calls`` there is nothing to execute: the state is to be audited as it stands.
    """

    goal: Sentence
    criteria: tuple[Criterion, ...]
    calls: Annotated[int, Meta(ge=0)]
    boundary: Boundary = Boundary()
    evidence: tuple[CallId, ...] = ()
    done: tuple[CallId, ...] = ()
    standing: tuple[CallId, ...] = ()
    unverified: tuple[CallId, ...] = ()
    doubtful: tuple[CallId, ...] = ()
    gap: Gap | None = None
    strategy: Sentence = ""
    given_up: tuple[GivenUp, ...] = ()


class Claim(Data, frozen=True):
    """The executor's word that a requirement is met."""

    requirement: Name
    evidence: tuple[CallId, ...] = ()


class Report(Data, frozen=True):
    """What an executor says that it did. All of it are claims, but ``calls``, which the loop takes from the journal.

    ``used`` are the calls that its work rests on, in order; those not among them were made on the side.
    """

    end: Literal["finished", "out_of_calls", "stopped", "failed"]
    issues: tuple[Sentence, ...] = ()
    claims: tuple[Claim, ...] = ()
    artifacts: tuple[Name, ...] = ()
    used: tuple[CallId, ...] = ()
    calls: tuple[CallId, ...] = ()


class Finding(Data, frozen=True):
    """An auditor's verdict on one requirement of the contract; ``invalidated`` means that nothing asks for it now."""

    requirement: Name
    status: Status
    evidence: tuple[CallId, ...] = ()
    text: Sentence = ""


class Fact(Data, frozen=True):
    """Something that an audit found to be so."""

    text: Sentence
    evidence: tuple[CallId, ...]


class Requirement(Data, frozen=True):
    """Something that the task asks for. ``source`` are the words of the task that it traces to.

    Nobody sets its status but an audit. ``audited`` is the number of calls that had been made when it was audited.
    """

    id: Name
    statement: Sentence
    source: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    status: Status = "pending"
    evidence: tuple[CallId, ...] = ()
    audited: int = 0
    note: Sentence = ""


class Audit(Data, frozen=True):
    """Verdicts first: they survive every clip.

    ``verified`` are the calls found right, in the order in which they count; those among them that are ``standing``
    are not the right ones, and stay because they cannot be put right. ``unverified`` and ``doubtful`` are calls that
    may yet count, as in a contract; ``suspects`` are the writes among all that do not. ``found`` are requirements that
    came to light.
    """

    completion: Completion
    integrity: Integrity
    blockers: tuple[Sentence, ...] = ()
    findings: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    found: tuple[Requirement, ...] = ()
    suspects: tuple[CallId, ...] = ()
    verified: tuple[CallId, ...] = ()
    standing: tuple[CallId, ...] = ()
    unverified: tuple[CallId, ...] = ()
    doubtful: tuple[CallId, ...] = ()
    facts: tuple[Fact, ...] = ()


class Decision(Data, frozen=True):
    """The manager's turn. ``requirements`` are new ones, or old ones said otherwise; their status is not its to set."""

    route: Route
    why: Sentence = ""
    contract: Contract | None = None
    requirements: tuple[Requirement, ...] = ()


class Spent(Data, frozen=True):
    """What a role used up in a round. ``tokens_in`` is the sum over its requests of what each one reads."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    attempts: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.requests + other.requests,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.attempts + other.attempts,
        )


class Round(Data, frozen=True):
    """One round as it is kept. ``executed`` and ``audited`` are the numbers of calls when each part was over.

    ``evidence`` has the contract's call ids as ranges; in the contract itself they are left out here, and so are the
    verified calls, which follow from the audits before.
    """

    number: int
    first: int
    executed: int
    audited: int
    route: Route
    contract: Contract | None
    evidence: str
    report: Report | None
    audit: Audit | None
    failures: tuple[str, ...]
    spent: dict[str, Spent]
    completed: int
    known: int


class Terminal(Data, frozen=True):
    """How the work ended, whatever the way out."""

    end: Literal["submitted", "exhausted", "stopped", "failed"]
    why: str
    rounds: int
    completed: int
    open: tuple[str, ...]
    blocked: tuple[str, ...]
    risks: tuple[str, ...]
    spent: dict[str, Spent]


# -- calls as evidence -------------------------------------------------------------------------------------------------


def ids_in(encoded: bytes) -> set[str]:
    """Ids of objects in a call or an observation, references without their versions."""
    return {found.decode() for found in _ID.findall(encoded)}


def is_write(event: Event) -> bool:
    """Whether a call changed the business."""
    return event.kind == "business" and event.ok


def superseded(call: int, events: Sequence[Event]) -> bool:
    """Whether something that a call made has been made anew since."""
    made = {ref.partition("@")[0] for ref in events[call - 1].produced}
    return bool(made) and any(made & {ref.partition("@")[0] for ref in e.produced} for e in events[call:])


def check_evidence(named: Iterable[int], allowed: Collection[int], role: str) -> None:
    """Refuse call ids that were never made or are not the role's to name (``EvidenceError``)."""
    for call in named:
        if call not in allowed:
            raise EvidenceError(f"the {role} names call {call}, which is not among the calls that it may name")


def check_report(report: Report, allowed: Collection[int]) -> None:
    named = (call for claim in report.claims for call in claim.evidence)
    check_evidence((*named, *report.used), allowed, "executor")


def check_audit(audit: Audit, contract: Contract, allowed: Collection[int]) -> None:
    """Refuse foreign evidence, verdicts on what the contract does not ask for, and verdicts that contradict."""
    named = [*(c for f in audit.findings for c in f.evidence), *(c for f in audit.facts for c in f.evidence)]
    listed = (audit.verified, audit.standing, audit.suspects, audit.unverified, audit.doubtful)
    check_evidence((*named, *(call for calls in listed for call in calls)), allowed, "auditor")
    asked = {criterion.requirement for criterion in contract.criteria} | {r.id for r in audit.found}
    if foreign := [f.requirement for f in audit.findings if f.requirement not in asked]:
        raise EvidenceError(f"the auditor judges {foreign[0]!r}, which the contract does not ask for")
    judged = {f.requirement: f.status for f in audit.findings}
    if len(judged) < len(audit.findings):
        raise EvidenceError("the auditor judges one requirement twice")
    if audit.completion == "complete" and (audit.gaps or audit.blockers or set(judged.values()) - _MET):
        raise EvidenceError("the auditor says complete and names what is missing")


def honest(audit: Audit, contract: Contract) -> Audit:
    """The audit with what it does not prove taken back: no completion without evidence, or of what was not judged."""
    findings = tuple(
        f if f.status != "completed" or f.evidence else msgspec.structs.replace(f, status="pending")
        for f in audit.findings
    )
    met = {f.requirement for f in findings if f.status in _MET}
    if audit.completion == "complete" and any(c.requirement not in met for c in contract.criteria):
        return msgspec.structs.replace(audit, findings=findings, completion="incomplete")
    return msgspec.structs.replace(audit, findings=findings)


# -- the ledger --------------------------------------------------------------------------------------------------------


class Ledger:
    """The state of the task between rounds: requirements, verified facts, risks. Only audits move it.

    With ``keep`` off it holds no facts beyond those of the newest audit.
    """

    def __init__(self, task: bytes, keep: bool = True) -> None:
        self._task = ids_in(task) | set(_WORD.findall(task.decode().lower()))
        self.keep = keep
        self.requirements: dict[str, Requirement] = {}
        self.facts: list[Fact] = []
        self.risks: list[str] = []
        self.verified: list[int] = []
        """calls found right, in the order in which they count"""
        self.lookups: list[int] = []
        """those among them that a contract may name as evidence"""
        self.standing: set[int] = set()
        self.unverified: dict[int, None] = {}
        """writes that were made and are not among them"""
        self.known_objects: set[str] = set()
        self.audited = 0
        """calls that had been made at the newest audit"""
        self.gaps: tuple[Gap, ...] = ()
        self.settled: dict[int, int] = {}
        """write -> number of calls at the audit that found it right"""

    def propose(self, requirements: Iterable[Requirement]) -> None:
        """Take new requirements in, and new words for old ones. One that traces to nothing known cannot block."""
        for new in requirements:
            known = self.requirements.get(new.id)
            if known is not None:
                again = known.status == "invalidated" and self.traces(known)
                kept = msgspec.structs.replace(
                    known,
                    statement=new.statement,
                    objects=tuple(sorted({*known.objects, *new.objects})),
                    status="pending" if again else known.status,
                )
            else:
                traced = self.traces(new)
                status: Status = "pending" if traced else "invalidated"
                note = new.note if traced else "traces to nothing that the task asks for"
                kept = msgspec.structs.replace(new, status=status, evidence=(), audited=0, note=note)
            self.requirements[new.id] = kept

    def traces(self, requirement: Requirement) -> bool:
        """Whether each source is an id or a word of the brief, or an id that verified calls showed."""
        found = (s in self.known_objects or s in self._task or s.lower() in self._task for s in requirement.source)
        return bool(requirement.source) and all(found)

    def record(self, events: Sequence[Event], first: int, upto: int) -> None:
        """Calls that were made: their writes stand unverified until an audit finds them right."""
        for event in events[first:upto]:
            if is_write(event):
                self.unverified[event.step] = None

    def apply(self, audit: Audit, events: Sequence[Event]) -> int:
        """Take an audit in; returns how many calls it newly verified. ``events`` are all calls up to it."""
        at = len(events)
        fresh = [call for call in audit.verified if call not in self.settled]
        if not self.keep:
            self.lookups, self.facts = [], []
        self.verified += fresh
        self.lookups += fresh
        self.standing |= set(audit.standing)
        for call in fresh:
            self.settled[call] = at
            self.unverified.pop(call, None)
            self.known_objects |= ids_in(events[call - 1].observation)
        self.propose(audit.found)
        self.facts += audit.facts
        self.audited = at
        self.gaps = audit.gaps
        for finding in audit.findings:
            known = self.requirements.get(finding.requirement)
            if known is None or known.status == "invalidated":
                continue
            made = {ref.partition("@")[0] for call in finding.evidence for ref in events[call - 1].produced}
            self.requirements[known.id] = msgspec.structs.replace(
                known,
                status=finding.status,
                evidence=finding.evidence,
                audited=at,
                note=finding.text,
                objects=tuple(sorted(made.union(known.objects))),
            )
        if audit.integrity != "clean":
            self.risks.append(f"{audit.integrity}: calls {', '.join(map(str, audit.suspects)) or 'unknown'}")
        self._renew(events)
        return len(fresh)

    def _renew(self, events: Sequence[Event]) -> None:
        """Completed requirements whose objects were written to, and where nobody found that write right, are open."""
        for requirement in self.stale(events):
            self.requirements[requirement.id] = msgspec.structs.replace(
                requirement, status="pending", note="written to after its audit"
            )

    def stale(self, events: Sequence[Event]) -> list[Requirement]:
        """Completed requirements with a write to their objects after their audit that no later audit found right."""
        late = [(call, self._objects(events[call - 1])) for call in self.unverified]
        return [
            r
            for r in self.requirements.values()
            if r.status == "completed" and any(call > r.audited and objects & set(r.objects) for call, objects in late)
        ]

    @staticmethod
    def _objects(event: Event) -> set[str]:
        return ids_in(event.call) | {ref.partition("@")[0] for ref in event.produced}

    def missing(self, events: Sequence[Event]) -> list[str]:
        """Why the work is not done: the requirements without current audited evidence. Empty means done.

        A requirement that is blocked is not open: an audit found that nothing can be done about it.
        """
        if not self.requirements:
            return ["no requirement has been found yet"]
        wanting = {r.id for r in self.requirements.values() if r.status == "pending"}
        wanting |= {r.id for r in self.requirements.values() if r.status == "completed" and not r.evidence}
        wanting |= {r.id for r in self.stale(events)}
        late = [call for call in self.unverified if call > self.audited]
        return sorted(wanting) + [f"call {call} has not been audited" for call in late]

    def count(self, status: Status) -> int:
        return sum(r.status == status for r in self.requirements.values())

    def blocked(self) -> tuple[str, ...]:
        return tuple(r.id for r in self.requirements.values() if r.status == "blocked")


# -- no progress -------------------------------------------------------------------------------------------------------


class Progress:
    """Finds rounds that lead nowhere, on the set of gaps: the same one again, an earlier one again, and the same one in
    other words. Its verdict is ``go``, ``strategy`` (try something else) or ``stop``.
    """

    def __init__(self, patience: int = 3) -> None:
        self.patience = patience
        self._last: frozenset[object] | None = None
        self._met: dict[frozenset[object], int] = {}
        """set of gaps -> how often it was met without progress"""

    def judge(self, gaps: Iterable[Gap], fresh: bool) -> Literal["go", "strategy", "stop"]:
        """After each audit. ``fresh``: whether it verified something new.

        An earlier set that comes back is no progress, even where calls were verified in between.
        """
        signature = frozenset(_signature(gap) for gap in gaps)
        if not signature:
            self._last = signature
            return "go"
        if signature not in self._met:
            self._met[signature] = 1
        elif signature != self._last or not fresh:
            self._met[signature] += 1
        self._last = signature
        met = self._met[signature]
        return "stop" if met >= self.patience else "strategy" if met > 1 else "go"


def _signature(gap: Gap) -> object:
    """What a gap is about, however it is worded: its objects, or else the set of its words."""
    if gap.objects:
        return frozenset(gap.objects)
    return frozenset(_WORD.findall(gap.text.lower())) or gap.requirement


# -- clipping ----------------------------------------------------------------------------------------------------------


def clip(value: Data, most: int) -> str:
    """JSON of at most ``most`` characters. What comes first stays; lists at the end lose their tails, and say so."""
    text = msgspec.json.encode(value).decode()
    if len(text) <= most:
        return text
    parts = list(msgspec.to_builtins(value).items())
    dropped: dict[str, int] = {}
    for name, items in reversed(parts):
        while isinstance(items, list | tuple) and items and len(_dump(parts, dropped)) > most:
            half = len(items) // 2
            dropped[name] = dropped.get(name, 0) + len(items) - half
            items = items[:half]
            parts = [(n, items if n == name else v) for n, v in parts]
    return _dump(parts, dropped)


def _dump(parts: Sequence[tuple[str, object]], dropped: Mapping[str, int]) -> str:
    return msgspec.json.encode({**dict(parts), **({"left_out": dict(dropped)} if dropped else {})}).decode()


def ranges(calls: Iterable[int]) -> str:
    """Call ids in few characters: ``1-5,9``."""
    runs: list[list[int]] = []
    for call in sorted(set(calls)):
        if runs and call == runs[-1][1] + 1:
            runs[-1][1] = call
        else:
            runs.append([call, call])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
