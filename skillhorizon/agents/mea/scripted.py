"""Roles that need no model. They follow the environment's reference procedure, and know nothing but calls and answers.

The manager plans by a procedure that has been told what audits verified. The executor carries the procedure on from
there, with a hand that may err. The auditor is in ``audits``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from skillhorizon.agents.mea.hands import Hand, Situation, Stopped
from skillhorizon.agents.mea.minds import (
    EXECUTOR,
    EXECUTOR_FORM,
    MANAGER,
    MANAGER_FORM,
    tool_list,
)
from skillhorizon.agents.mea.rehearsal import Rehearsal, written
from skillhorizon.agents.mea.roles import LIMITS, Desk, OutOfCalls, View, size, text_of
from skillhorizon.agents.mea.state import (
    Claim,
    Contract,
    Criterion,
    Decision,
    GivenUp,
    Report,
    Requirement,
    clip,
    ids_in,
    ranges,
    superseded,
)
from skillhorizon.core import tokens
from skillhorizon.core.gateway import Event
from skillhorizon.core.policy import Call, Memory, Policy
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task
from skillhorizon.core.world import CURRENT

NAMED = 12
"""Requirements that a contract names; what follows from them is done too."""
FEW = 6
"""Calls of a contract after the same gap was found twice."""
SHOWN = 400
"""Characters of a call in a gap."""
SHOWN_AUDIT = 12_000
"""Characters of the newest audit that a manager reads."""
SUMMARY = 1_000
"""Tokens of the summary that takes the place of a context grown too long."""
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
        self._policy = policy
        self._given_up: list[GivenUp] = []
        self._begin()

    def _begin(self) -> None:
        self._rehearsal = Rehearsal(self._policy())
        for given_up in self._given_up:
            self._rehearsal.give_up(given_up.requirement)
        self._taken: list[int] = []
        """calls that it has been told"""
        self._waiting: list[int] = []

    def decide(self, view: View, desk: Desk) -> Decision:
        ledger = view.ledger
        if ledger.verified[: len(self._taken)] != self._taken:
            self._begin()  # something counts no more
        rehearsal = self._rehearsal
        new = ledger.verified[len(self._taken) :]
        self._taken = list(ledger.verified)
        self._waiting = rehearsal.follow([*self._waiting, *new], ledger.standing, view.events)
        wanted = rehearsal.wanted()
        gap = next((g for g in ledger.gaps if g.wrong), None)
        if view.strategy and wanted is not None and gap is None:
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
            # after two wrong calls in the same place one step at a time; where there was none, the job is given up
            calls = min(view.calls, FEW) if view.strategy else view.calls
            decision = self._contract(view, f"Carry on at {rehearsal.job}.", criteria, calls or 1)
            decision = msgspec.structs.replace(decision, requirements=tuple(ready))
        known = _summary(ledger.requirements.values(), ledger.risks)
        said = tokens.count(text_of(shown(decision.contract)) if decision.contract else decision.route)
        audit = clip(view.audit, SHOWN_AUDIT) if view.audit else ""
        desk.request(size(MANAGER, MANAGER_FORM, text_of(view.task.brief), known, audit), said)
        return decision

    def _contract(self, view: View, goal: str, criteria: tuple[Criterion, ...], calls: int) -> Decision:
        ledger = view.ledger
        contract = Contract(
            goal=goal,
            criteria=criteria,
            calls=calls,
            evidence=tuple(ledger.lookups),
            done=tuple(ledger.verified),
            standing=tuple(sorted(ledger.standing)),
            unverified=view.audit.unverified if view.audit else (),
            doubtful=view.audit.doubtful if view.audit else (),
            gap=next((g for g in ledger.gaps if g.wrong), None),
            strategy="Do only the next step, or leave what could not be done." if view.strategy else "",
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
        said = tokens.count(text_of(shown(decision.contract)) if decision.contract else decision.route)
        desk.request(size(MANAGER, MANAGER_FORM, text_of(view.task.brief), known), said)
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
    """A memory that tells when something is used that was not seen since ``begin``.

    ``used`` are the keys used since it was cleared. Nothing is told or counted while it is ``quiet``.
    """

    def __init__(self, missed: Callable[[int], None]) -> None:
        super().__init__()
        self._missed = missed
        self._read_at: dict[Any, int] = {}
        self.used: set[Any] = set()
        self.quiet = False

    def begin(self) -> None:
        self._read_at.clear()

    @property
    def distance(self) -> int:
        """Calls since the oldest observation that is in use, as it stands in this context."""
        return self.step - min((self._read_at[key] for key in self.used if key in self._read_at), default=self.step)

    def keep(self, key: Any, value: Any) -> None:
        self._read_at[key] = self.step
        super().keep(key, value)

    def get(self, key: Any, default: Any = None) -> Any:
        self._touch(key)
        return super().get(key, default)

    def lookup(self, key: Any, query: Any) -> Any:
        self._touch(key)
        return (yield from super().lookup(key, query))

    def _touch(self, key: Any) -> None:
        if self.quiet:
            return
        self.used.add(key)
        at = None if key in self._read_at else self.seen_at(key)
        if at:
            self._read_at[key] = self.step
            self._missed(at)


class ScriptedExecutor:
    """Carries the procedure on from where the contract says that it stands.

    Its context begins with the contract. What the contract names as evidence it has before it, at the price of its
    tokens; what it does not name has to be recalled and asked for again, at the price of a call. With ``fresh`` off the
    context goes on from round to round, and is cut like any other when it has grown too long.
    """

    def __init__(self, policy: Callable[[], Policy], hand: Hand, fresh: bool = True) -> None:
        self._policy = policy
        self.hand = hand
        self.fresh = fresh
        self.context = 0
        self._base = 0
        self._tools = ""
        self._attempts = self._completed_at = 0
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

    def execute(self, task: Task, contract: Contract, desk: Desk) -> Report:
        self._desk, self._contract = desk, contract
        self._evidence = set(contract.evidence)
        self._synchronise(contract, desk.events)
        memory, rehearsal = self._memory, self._rehearsal
        memory.quiet = False
        self._tools = self._tools or tool_list(desk, reading=False)
        self._base = size(EXECUTOR, EXECUTOR_FORM, self._tools, text_of(shown(contract)))
        if self.fresh or not self.context:
            memory.begin()
            self.context = self._base
            self._attempts = self._completed_at = 0
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
        in_batch = refusals = 0
        again: Call | None = None
        while True:
            if rehearsal.between:
                self._memory.used.clear()
            self._memory.quiet = False
            wanted = rehearsal.wanted()
            self._memory.quiet = True
            self._read_again()
            if wanted is None:
                return
            if not in_batch:
                extra = self.hand.respond(self._situation())
                self._request()
                in_batch = self.hand.batch
                if extra is not None:
                    self._call(extra)
            chosen = again or self.hand.choose(wanted, self._memory, self._situation())
            if chosen is None:
                rehearsal.tell(canonical({"ok": True, "result": {"items": [], "next_cursor": None}}))
                continue
            if chosen != wanted:
                self._lost = False
            in_batch -= 1
            before = made.get(written(chosen))
            once = before.pop(0) if before else None
            if once is not None and not superseded(once, desk.events):
                event = desk.events[once - 1]
                self._read(event)
            else:
                once = once or doubtful.get(written(chosen))
                stands = once is not None and desk.gateway.tools[chosen.tool].kind == "business" and self._stands(once)
                event = desk.events[once - 1] if once is not None and stands else self._call(chosen)
                if once is not None and not event.ok:
                    event = desk.events[once - 1]
                if chosen != wanted and not event.ok:
                    # a mistake that is refused shows itself: the call is thought over again, or simply repeated
                    in_batch, refusals = 0, refusals + 1
                    again = chosen if self.hand.again(chosen, refusals) else wanted
                    continue
            again, refusals = None, 0
            if not event.ok:
                in_batch = 0
                if wrong is not None and event.tool == desk.events[wrong - 1].tool:
                    event = desk.events[wrong - 1]  # it cannot be put right: what was done stands
            if event.kind == "business":
                wrong, in_batch = None, 0
            self._memory.quiet = False
            finished = len(rehearsal.finished)
            if not rehearsal.tell(event.observation, event.step):
                raise Stuck
            if len(rehearsal.finished) > finished:
                self._completed_at = self._attempts

    def _stands(self, call: int) -> bool:
        """Look up what came of an earlier write: whether what it made is current."""
        made = self._desk.events[call - 1].produced
        if not made:
            return False
        event = self._call(Call("get_artifact", {"ref": made[-1]}))
        return event.ok and bool(msgspec.json.decode(event.observation)["result"]["status"] == CURRENT)

    def _situation(self) -> Situation:
        return Situation(
            full=self.context / LIMITS.trigger,
            distance=self._memory.distance,
            attempts=self._attempts,
            stalled=self._attempts - self._completed_at,
            lost=self._lost,
        )

    def _request(self) -> None:
        """One request reads the whole context; where that has grown too long, a summary of it takes its place."""
        if self.context >= LIMITS.trigger:
            self._desk.request(self.context, SUMMARY)
            self.context = self._base + SUMMARY
            self._memory.begin()
        self._desk.request(self.context, 0)

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
        self._attempts += 1
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
        if source in self._evidence or self.hand.recalls():
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
        told = self._rehearsal.answers
        same = self._rehearsal.barred == {g.requirement for g in contract.given_up}
        if same and told == [events[call - 1].observation for call in contract.done]:
            return
        self._begin()
        follow(self._rehearsal, contract, events)


def follow(rehearsal: Rehearsal, contract: Contract, events: Sequence[Event]) -> None:
    """Stand where a contract says that the work stands."""
    standing = set(contract.standing)
    waiting = list(contract.done)
    for given_up in contract.given_up:
        upto = given_up.after - len(rehearsal.answers)
        waiting = [*rehearsal.follow(waiting[:upto], standing, events), *waiting[upto:]]
        rehearsal.give_up(given_up.requirement)
    rehearsal.follow(waiting, standing, events)


def shown(data: Contract | Report) -> dict[str, Any]:
    """A contract or a report as it is read: call ids as ranges."""
    shown: dict[str, Any] = msgspec.to_builtins(data)
    for name in ("evidence", "done", "standing", "unverified", "doubtful", "used", "calls"):
        if isinstance(shown.get(name), list | tuple):
            shown[name] = ranges(shown[name])
    return shown
