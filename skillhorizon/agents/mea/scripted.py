"""Roles that need no model. They follow the environment's reference procedure, and know nothing but calls and answers.

The manager plans by a procedure that has been told what audits verified. The executor carries the procedure on from
there, with a hand that may err. The auditor rehearses: what the procedure wants next has to be among the calls made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from skillhorizon.agents.mea.hands import Hand, Stopped
from skillhorizon.agents.mea.rehearsal import Rehearsal, written
from skillhorizon.agents.mea.roles import LIMITS, Changes, Desk, OutOfCalls, View, size, text_of
from skillhorizon.agents.mea.state import (
    Audit,
    Claim,
    Contract,
    Criterion,
    Decision,
    Fact,
    Finding,
    Gap,
    GivenUp,
    Report,
    Requirement,
    ids_in,
    is_write,
    ranges,
    superseded,
)
from skillhorizon.core import tokens
from skillhorizon.core.gateway import Event
from skillhorizon.core.ids import stream
from skillhorizon.core.policy import Call, Memory, Policy
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task

NAMED = 12
"""Requirements that a contract names; what follows from them is done too."""
SHOWN = 400
"""Characters of a call in a gap."""
REST = "rest"
"""The requirement of a manager that trusts reports: that the executor says nothing is left."""
_BETWEEN = re.compile("[:/]")
_OWN = ("skills",)
"""The word of the brief to which work traces that is about no single object."""


def requirement(job: str) -> Requirement:
    """The requirement that a job of the procedure is carried out."""
    objects = tuple(sorted(ids_in(b" ".join(b'"%b"' % word.encode() for word in _BETWEEN.split(job)))))
    return Requirement(job[:120], f"Carry out {job} as the skills say."[:2000], objects or _OWN, objects)


def described(call: Call) -> str:
    return f"{call.tool} {canonical(call.arguments).decode()}"[:SHOWN]


class ScriptedManager:
    """Contracts the next stretch of the procedure, until nothing is left of it."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._rehearsal = Rehearsal(policy())
        self._taken = 0
        self._waiting: list[int] = []
        self._given_up: list[GivenUp] = []

    def decide(self, view: View, desk: Desk) -> Decision:
        ledger, rehearsal = view.ledger, self._rehearsal
        new = ledger.verified[self._taken :]
        self._taken = len(ledger.verified)
        self._waiting = rehearsal.follow([*self._waiting, *new], ledger.standing, view.events)
        wanted = rehearsal.wanted()
        if view.strategy and wanted is not None:
            self._given_up.append(GivenUp(rehearsal.job[:120], len(rehearsal.answers)))
            rehearsal.give_up(rehearsal.job)
            wanted = rehearsal.wanted()
        ready = [requirement(job) for job in rehearsal.ready()[:NAMED]]
        open_ones = [r for r in ledger.requirements.values() if r.status == "pending"]
        if wanted is None:
            if ledger.missing(view.events):
                criteria = tuple(Criterion(r.id, r.statement) for r in open_ones)
                decision = self._contract(view, "Audit what is open.", criteria, 0)
            else:
                decision = Decision("done")
        else:
            criteria = tuple(Criterion(r.id, r.statement) for r in ready)
            decision = self._contract(view, f"Carry on at {rehearsal.job}.", criteria, view.calls or 1)
            decision = msgspec.structs.replace(decision, requirements=tuple(ready))
        known = _summary(ledger.requirements.values(), ledger.risks)
        desk.request(size(text_of(view.task.brief), known, text_of(view.audit)), tokens.count(text_of(decision)))
        return decision

    def _contract(self, view: View, goal: str, criteria: tuple[Criterion, ...], calls: int) -> Decision:
        ledger = view.ledger
        gap = next((g for g in ledger.gaps if g.wrong), None)
        contract = Contract(
            goal=goal,
            criteria=criteria,
            calls=calls,
            evidence=tuple(ledger.lookups),
            done=tuple(ledger.verified),
            standing=tuple(sorted(ledger.standing)),
            unverified=view.audit.unverified if view.audit else (),
            doubtful=view.audit.doubtful if view.audit else (),
            gap=gap,
            strategy="Leave what could not be done." if view.strategy else "",
            given_up=tuple(self._given_up),
        )
        return Decision("execute", contract=contract)


class TrustingManager:
    """Carries on until the executor says that nothing is left: the ablation without an auditor."""

    def decide(self, view: View, desk: Desk) -> Decision:
        ledger = view.ledger
        if view.audit is not None and not view.audit.gaps:
            decision = Decision("done")
        else:
            believed = tuple(GivenUp(r.id, 0) for r in ledger.requirements.values() if r.note == "claimed")
            contract = Contract(
                goal="Carry on.",
                criteria=(Criterion(REST, "Carry out all that the brief asks for."),),
                calls=view.calls or 1,
                evidence=tuple(ledger.lookups),
                given_up=believed,
            )
            decision = Decision("execute", contract=contract, requirements=(Requirement(REST, "All of it.", _OWN),))
        known = _summary(ledger.requirements.values(), ledger.risks)
        desk.request(size(text_of(view.task.brief), known), tokens.count(text_of(decision)))
        return decision


def _summary(requirements: Any, risks: Sequence[str]) -> str:
    """The ledger as a manager reads it: open ones in full, finished ones as counts, so that it stays bounded."""
    listed = list(requirements)
    shown = [r for r in listed if r.status != "completed"][: 2 * NAMED]
    completed = sum(r.status == "completed" for r in listed)
    return text_of({"completed": completed, "open": shown, "risks": risks[-NAMED:]})


# -- executing ---------------------------------------------------------------------------------------------------------


class Stuck(Exception):
    """A job failed. Going on would build on what may be wrong; the auditor is to look first."""


class Watched(Memory):
    """A memory that tells when something is used that was not seen since ``begin``."""

    def __init__(self, used: Callable[[int], None]) -> None:
        super().__init__()
        self._used = used
        self._fresh: set[Any] = set()
        self.quiet = False

    def begin(self) -> None:
        self._fresh.clear()

    def keep(self, key: Any, value: Any) -> None:
        self._fresh.add(key)
        super().keep(key, value)

    def get(self, key: Any, default: Any = None) -> Any:
        self._touch(key)
        return super().get(key, default)

    def lookup(self, key: Any, query: Any) -> Any:
        self._touch(key)
        return (yield from super().lookup(key, query))

    def _touch(self, key: Any) -> None:
        at = None if self.quiet or key in self._fresh else self.seen_at(key)
        if at:
            self._fresh.add(key)
            self._used(at)


class ScriptedExecutor:
    """Carries the procedure on from where the contract says that it stands.

    Its context begins with the contract. What the contract names as evidence can be read there again, at the price of
    its tokens; what it does not name is asked for again, at the price of a call. With ``fresh`` off the context goes on
    from round to round.
    """

    def __init__(self, policy: Callable[[], Policy], hand: Hand, fresh: bool = True) -> None:
        self._policy = policy
        self.hand = hand
        self.fresh = fresh
        self.context = 0
        self._begin()

    def _begin(self) -> None:
        policy = self._policy()
        self._memory = Watched(self._need)
        self._needed: list[int] = []
        self._lost = False
        """something was used that was not looked up: the next consequential call rests on it"""
        policy.memory = self._memory
        self._memory.quiet = True
        self._rehearsal = Rehearsal(policy)
        self._checked = 0

    def execute(self, task: Task, contract: Contract, desk: Desk) -> Report:
        self._desk, self._contract = desk, contract
        self._evidence = set(contract.evidence)
        self._synchronise(contract, desk.events)
        memory, rehearsal = self._memory, self._rehearsal
        memory.quiet = False
        if self.fresh or not self.context:
            memory.begin()
            self.context = size(text_of(task.brief), text_of(_shown(contract)))
        finished, told, issues = len(rehearsal.finished), len(rehearsal.sources), []
        end: str = "out_of_calls"
        claimed: list[str] = []
        try:
            self._work(task, contract, desk)
            end = "finished"
        except OutOfCalls:
            pass
        except Stuck:
            end = "failed"
        except Stopped:
            end = "stopped"
            claimed = [c.requirement for c in contract.criteria if c.requirement != REST] or [rehearsal.job[:120]]
        finally:
            memory.quiet = True
        if rehearsal.reason:
            issues.append(rehearsal.reason[:2000])
            rehearsal.reason = ""
        done = [job[:120] for job in rehearsal.finished[finished:]]
        made = tuple(source for source in rehearsal.sources[-1:] if source)
        rest = [REST] if end == "finished" and any(c.requirement == REST for c in contract.criteria) else []
        claims = (*(Claim(job, made) for job in dict.fromkeys([*done, *rest])), *(Claim(job) for job in claimed))
        used = tuple(source for source in rehearsal.sources[told:] if source)
        report = Report(end=end, issues=tuple(issues), claims=claims, used=used)  # type: ignore[arg-type]
        desk.request(0, tokens.count(text_of(report)))
        return report

    def _work(self, task: Task, contract: Contract, desk: Desk) -> None:
        rehearsal = self._rehearsal
        wrong = contract.gap.wrong if contract.gap else None
        made: dict[bytes, list[int]] = {}
        for call in contract.unverified:
            made.setdefault(desk.events[call - 1].call, []).append(call)
        doubtful = {desk.events[call - 1].call: call for call in contract.doubtful}
        in_batch = 0
        while True:
            self._memory.quiet = False
            wanted = rehearsal.wanted()
            self._memory.quiet = True
            self._read_again()
            if wanted is None:
                return
            consequential = desk.gateway.tools[wanted.tool].kind == "business"
            chosen = self.hand.choose(wanted, self._memory, self.context, self._lost and consequential)
            self._lost = self._lost and not consequential
            if chosen is None:
                rehearsal.tell(canonical({"ok": True, "result": {"items": [], "next_cursor": None}}))
                continue
            if not in_batch:
                in_batch = self.hand.batch()
                desk.request(self.context, 0)
            in_batch -= 1
            before = made.get(written(chosen))
            once = before.pop(0) if before else None
            if once is not None and not superseded(once, desk.events):
                event = desk.events[once - 1]
                self._read(event)
            else:
                event = self._call(chosen)
                once = once or doubtful.get(event.call)
                if once is not None and not event.ok:
                    event = desk.events[once - 1]
                if chosen != wanted and not event.ok:
                    in_batch = 0
                    continue  # a mistake that is refused shows itself; the call is thought over again
            if not event.ok:
                in_batch = 0
                if wrong is not None and event.tool == desk.events[wrong - 1].tool:
                    event = desk.events[wrong - 1]  # it cannot be put right: what was done stands
            wrong = None if event.kind == "business" else wrong
            self._memory.quiet = False
            if not rehearsal.tell(event.observation, event.step):
                raise Stuck

    def _call(self, call: Call) -> Event:
        desk = self._desk
        desk.call(
            call.tool,
            call.arguments,
            module=call.module,
            goal=call.goal,
            context_tokens=self.context,
        )
        event = desk.events[-1]
        self._read(event)
        desk.spent += msgspec.structs.replace(type(desk.spent)(), tokens_out=tokens.count(event.call))
        return event

    def _read(self, event: Event) -> None:
        self.context += tokens.count(event.call) + tokens.count(event.observation) + 2 * LIMITS.per_message

    def _need(self, at: int) -> None:
        """Something of an earlier round is used. The procedure is in the middle of a step: it is read afterwards."""
        source = self._rehearsal.sources[at - 1]
        if source is None:
            return
        if self.hand.recalls():
            self._needed.append(source)
        else:
            self._lost = True

    def _read_again(self) -> None:
        """Read what was needed of earlier rounds: in the evidence, or else by asking again."""
        while self._needed:
            event = self._desk.events[self._needed[0] - 1]
            if event.step not in self._evidence and event.kind not in ("business", "declaration"):
                call = msgspec.json.decode(event.call)
                self._call(Call(call["name"], call["arguments"], event.module, event.goal))
            else:
                self._read(event)
            self._needed.pop(0)

    def _synchronise(self, contract: Contract, events: Sequence[Event]) -> None:
        """Stand where the contract says that the work stands. Where that is not where the last one ended, begin anew
        and follow what has been verified."""
        if not contract.done:
            for given_up in contract.given_up:
                self._rehearsal.give_up(given_up.requirement)
            return
        told, done = self._rehearsal.answers, contract.done
        same = len(told) == len(done) and self._rehearsal.barred == {g.requirement for g in contract.given_up}
        while same and self._checked < len(done):
            same = told[self._checked] == events[done[self._checked] - 1].observation
            self._checked += same
        if same:
            return
        self._begin()
        follow(self._rehearsal, contract, events)
        self._checked = len(self._rehearsal.answers)


def follow(rehearsal: Rehearsal, contract: Contract, events: Sequence[Event]) -> None:
    """Stand where a contract says that the work stands."""
    standing = set(contract.standing)
    waiting = list(contract.done)
    for given_up in contract.given_up:
        upto = given_up.after - len(rehearsal.answers)
        waiting = [*rehearsal.follow(waiting[:upto], standing, events), *waiting[upto:]]
        rehearsal.give_up(given_up.requirement)
    rehearsal.follow(waiting, standing, events)


def _shown(contract: Contract) -> dict[str, Any]:
    """A contract as it is read: call ids as ranges."""
    shown: dict[str, Any] = msgspec.to_builtins(contract)
    for name in ("evidence", "done", "standing", "unverified", "doubtful"):
        shown[name] = ranges(shown[name])
    return shown


# -- auditing ----------------------------------------------------------------------------------------------------------


class ScriptedAuditor:
    """Tells the procedure the answers in the journal, call by call, and looks at the business itself where it doubts.

    A write that the procedure does not want is no evidence of anything; a wanted one that is missing is a gap. With
    probability ``oversight`` a wrong write is taken for the right one, the same one every time it is looked at.
    """

    def __init__(
        self, policy: Callable[[], Policy], seed: int = 0, oversight: float = 0.0, spot_checks: int = 1
    ) -> None:
        self._rehearsal = Rehearsal(policy())
        self._seed = seed
        self.oversight = oversight
        self.spot_checks = spot_checks
        self._finished = 0
        self._job_calls: dict[str, list[int]] = {}
        self._gap: Gap | None = None
        self._context = 0
        self._newest: dict[str, str] = {}
        self._given_up = 0

    def audit(self, task: Task, contract: Contract, report: Report, changes: Changes, desk: Desk) -> Audit:
        rehearsal = self._rehearsal
        for given_up in contract.given_up[self._given_up :]:
            rehearsal.give_up(given_up.requirement)
        self._given_up = len(contract.given_up)
        self._context = size(text_of(_shown(contract)), text_of(report.issues))
        desk.request(self._context, 0)
        verified, standing, left = self._rehearse(contract, report, desk)
        wanted = rehearsal.wanted()
        self._gap = None if wanted is None else self._missing(wanted, left, desk.events, len(rehearsal.answers))
        done = rehearsal.finished[self._finished :]
        self._finished = len(rehearsal.finished)
        findings, found = self._findings(contract, done, desk)
        facts = self._look(done, desk)
        suspects = tuple(call for call in left if is_write(desk.events[call - 1]))
        doubtful = self._doubtful(left, desk.events)
        pending = any(f.status == "pending" for f in findings)
        blocked = [f.text for f in findings if f.status == "blocked"]
        audit = Audit(
            completion="blocked" if blocked else "incomplete" if pending or self._gap else "complete",
            integrity="suspect" if suspects else "clean",
            blockers=tuple(blocked),
            findings=findings,
            gaps=(self._gap,) if self._gap else (),
            found=found,
            suspects=suspects,
            verified=tuple(verified),
            standing=tuple(standing),
            unverified=tuple(call for call in left if call not in doubtful),
            doubtful=tuple(call for call in left if call in doubtful),
            facts=facts,
        )
        desk.request(0, tokens.count(text_of(audit)))
        return audit

    def _rehearse(self, contract: Contract, report: Report, desk: Desk) -> tuple[list[int], list[int], list[int]]:
        """Calls that count, those among them that only stand, and accepted ones that nothing asked for yet."""
        rehearsal, events = self._rehearsal, desk.events
        # what was read on the side answers for nothing: it may have been read at another time
        made = [call for call in report.calls if not report.used or events[call - 1].kind == "business"]
        queue = list(dict.fromkeys([*report.used, *made, *contract.unverified, *contract.doubtful]))
        old = {*contract.unverified, *contract.doubtful}
        wrong = contract.gap.wrong if contract.gap else None
        verified: list[int] = []
        standing: list[int] = []
        while (wanted := rehearsal.wanted()) is not None:
            sought = written(wanted)
            place = next((n for n, call in enumerate(queue) if events[call - 1].call == sought), None)
            writes = [call for call in queue if is_write(events[call - 1])]
            if place is not None:
                call = queue.pop(place)
                if not events[call - 1].ok:
                    before = next((c for c in queue if events[c - 1].call == sought and events[c - 1].ok), None)
                    if before is not None:
                        queue.remove(before)
                        call = before
                    elif wrong in queue and events[wrong - 1].tool == wanted.tool:
                        queue.remove(wrong)
                        call = wrong
                        standing.append(call)
            elif not writes:
                break
            elif desk.gateway.tools[wanted.tool].kind != "business":
                try:
                    desk.call(wanted.tool, wanted.arguments, module=wanted.module, context_tokens=self._context)
                except OutOfCalls:
                    break
                call = len(events)
            else:
                other = next((c for c in writes if c not in old and self._passes(events[c - 1], wanted)), None)
                if other is None:
                    break
                queue.remove(other)
                call = other
                standing.append(call)
            event = events[call - 1]
            wrong = None if event.kind == "business" else wrong
            verified.append(call)
            self._context += tokens.count(event.call) + tokens.count(event.observation)
            self._job_calls.setdefault(rehearsal.job, []).append(call)
            rehearsal.tell(event.observation, call)
        return verified, standing, [call for call in queue if events[call - 1].ok]

    def _passes(self, event: Event, wanted: Call) -> bool:
        """Whether this wrong call is overlooked: a property of the two calls, so every look at them agrees."""
        if event.tool != wanted.tool or not self.oversight:
            return False
        return stream("oversight", self._seed, event.call.decode(), event.step).random() < self.oversight

    def _missing(self, wanted: Call, left: list[int], events: Sequence[Event], after: int) -> Gap:
        tool = wanted.tool
        wrong = next((c for c in left if events[c - 1].tool == tool and _akin(events[c - 1], wanted)), None)
        text = described(wanted)
        if wrong is None and self._gap is not None and self._gap.text.endswith(text) and self._gap.wrong in left:
            wrong = self._gap.wrong
        return Gap(self._rehearsal.job[:120], text=f"after {after} calls: {text}", wrong=wrong)

    def _doubtful(self, left: list[int], events: Sequence[Event]) -> set[int]:
        """Calls that rest on the wrong one: what it made, or else what it named, occurs in them, or in what they rest
        on."""
        if self._gap is None or self._gap.wrong is None:
            return set()
        first = events[self._gap.wrong - 1]
        tainted = {ref.partition("@")[0] for ref in first.produced} | ids_in(first.call)
        doubtful = {first.step}
        for call in sorted(left):
            event = events[call - 1]
            if is_write(event) and superseded(call, events):
                doubtful.add(call)
            elif call > first.step and tainted & (ids_in(event.call) | ids_in(event.observation)):
                doubtful.add(call)
                tainted |= {ref.partition("@")[0] for ref in event.produced}
        return doubtful

    def _findings(
        self, contract: Contract, done: list[str], desk: Desk
    ) -> tuple[tuple[Finding, ...], tuple[Requirement, ...]]:
        rehearsal = self._rehearsal
        verdicts: dict[str, Finding] = {}
        for job in done:
            calls = tuple(self._job_calls.pop(job, ()))
            verdicts[job] = Finding(job[:120], "completed" if calls else "pending", calls)
        for job in rehearsal.ready()[:NAMED]:
            verdicts[job] = Finding(job[:120], "pending")
        for job in rehearsal.failures:
            if rehearsal.hopeless(job):
                verdicts[job] = Finding(job[:120], "blocked", text="it cannot be done as the business stands")
        for job in rehearsal.barred:
            verdicts[job] = Finding(job[:120], "blocked", text="given up")
        asked = {c.requirement for c in contract.criteria}
        for name in asked - {f.requirement for f in verdicts.values()}:
            verdicts[name] = Finding(name, "invalidated", text="nothing asks for it any more")
        found = tuple(requirement(job) for job in verdicts if job[:120] not in asked)
        return tuple(verdicts.values()), found

    def _look(self, done: list[str], desk: Desk) -> tuple[Fact, ...]:
        """Read a few of the artifacts that were made: what stands in the journal has to stand in the business."""
        facts: list[Fact] = []
        made = [ref for call in self._rehearsal.sources[-40:] if call for ref in desk.events[call - 1].produced]
        for ref in made[-self.spot_checks :] if self.spot_checks else ():
            try:
                answer = desk.call("get_artifact", {"ref": ref}, context_tokens=self._context)
            except OutOfCalls:
                break
            event = desk.events[-1]
            self._context += tokens.count(event.call) + tokens.count(event.observation)
            desk.request(self._context, tokens.count(event.call))
            if answer["ok"]:
                facts.append(Fact(f"{ref} is {answer['result']['status']}", (event.step,)))
        return tuple(facts)


def _akin(event: Event, wanted: Call) -> bool:
    """Whether a call was made in place of another: same tool, some object in common."""
    mine = ids_in(canonical(wanted.arguments))
    return not mine or bool(mine & ids_in(event.call))
