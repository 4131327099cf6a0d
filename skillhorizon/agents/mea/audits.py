"""The scripted auditor: what the reference procedure wants next has to be among the calls that were made.

It follows the environment's own procedure and knows nothing but calls and answers. One mechanism finds what is missing,
what is wrong, what rests on something wrong, and what was overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from skillhorizon.agents.mea.minds import AUDITOR, AUDITOR_FORM, tool_list
from skillhorizon.agents.mea.rehearsal import Rehearsal, written
from skillhorizon.agents.mea.roles import Changes, Desk, OutOfCalls, size, text_of
from skillhorizon.agents.mea.scripted import NAMED, described, follow, requirement, shown
from skillhorizon.agents.mea.state import (
    Audit,
    Contract,
    Fact,
    Finding,
    Gap,
    Report,
    Requirement,
    ids_in,
    is_write,
    superseded,
)
from skillhorizon.core import tokens
from skillhorizon.core.gateway import Event
from skillhorizon.core.ids import stream
from skillhorizon.core.policy import Call, Policy
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task


class ScriptedAuditor:
    """Tells the procedure the answers in the journal, call by call, and looks at the business itself where it doubts.

    A write that the procedure does not want is no evidence of anything; a wanted one that is missing is a gap. With
    probability ``oversight`` a wrong write is taken for the right one, the same one every time it is looked at.
    """

    def __init__(
        self, policy: Callable[[], Policy], seed: int = 0, oversight: float = 0.0, spot_checks: int = 1
    ) -> None:
        self._policy = policy
        self._rehearsal = Rehearsal(policy())
        self._seed = seed
        self.oversight = oversight
        self.spot_checks = spot_checks
        self._finished = 0
        self._job_calls: dict[str, list[int]] = {}
        self._gap: Gap | None = None
        self._context = 0
        self._tools = ""
        self._given_up = 0
        self._left: dict[int, int] = {}
        """accepted call that nothing asked for -> audits in which it was left"""

    def audit(self, task: Task, contract: Contract, report: Report, changes: Changes, desk: Desk) -> Audit:
        rehearsal = self._rehearsal
        for given_up in contract.given_up[self._given_up :]:
            rehearsal.give_up(given_up.requirement)
        self._given_up = len(contract.given_up)
        self._tools = self._tools or tool_list(desk, reading=True)
        self._context = size(AUDITOR, AUDITOR_FORM, self._tools, text_of(shown(contract)), text_of(shown(report)))
        desk.request(self._context, 0)
        verified, standing, left = self._rehearse(contract, report, desk)
        retracted = self._overwritten(left, contract, desk.events)
        if retracted:
            left = [*left, *retracted]
            verified, standing = ([c for c in calls if c not in retracted] for calls in (verified, standing))
        rehearsal = self._rehearsal
        wanted = rehearsal.wanted()
        self._gap = None if wanted is None else self._missing(wanted, left, desk.events, len(rehearsal.answers))
        done = rehearsal.finished[self._finished :]
        self._finished = len(rehearsal.finished)
        findings, found = self._findings(contract, done, desk)
        facts = self._look(done, desk)
        suspects = tuple(call for call in left if is_write(desk.events[call - 1]) and call not in retracted)
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
            retracted=tuple(call for call in retracted if call in contract.done),
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
                other = next((c for c in writes if c not in old and events[c - 1].tool == wanted.tool), None)
                if other is None or not self._passes(events[other - 1], wanted):
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

    def _overwritten(self, left: list[int], contract: Contract, events: Sequence[Event]) -> list[int]:
        """Verified calls that count no more: a write that nothing asks for has overwritten what one of them made. The
        rehearsal begins anew and ends before that one; it and those after it may count again once it is put right.

        A write that was left in one audit only may still be asked for, and one in the place of the wanted call is about
        to be overwritten itself.
        """
        self._left = {call: self._left.get(call, 0) + 1 for call in left if is_write(events[call - 1])}
        stray = {call for call, times in self._left.items() if times > 1}
        stray.discard((self._gap.wrong if self._gap else None) or 0)
        counted = [call for call in self._rehearsal.sources if call]
        newest: dict[str, int] = {}
        for call in sorted({*stray, *counted}):
            newest.update({ref.partition("@")[0]: call for ref in events[call - 1].produced})
        lost = {identity for identity, call in newest.items() if call in stray}
        place = next(
            (n for n, call in enumerate(counted) if lost & {r.partition("@")[0] for r in events[call - 1].produced}),
            None,
        )
        if place is None:
            return []
        standing = {call for call in counted if call in contract.standing}
        self._rehearsal = Rehearsal(self._policy())
        kept = msgspec.structs.replace(contract, done=tuple(counted[:place]), standing=tuple(standing))
        follow(self._rehearsal, kept, events)
        self._finished = len(self._rehearsal.finished)
        return counted[place:]

    def _passes(self, event: Event, wanted: Call) -> bool:
        """Whether this wrong call is overlooked: a property of the two calls, so every look at them agrees."""
        if not self.oversight or not _akin(event, wanted):
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
        tainted = {ref.partition("@")[0] for ref in first.produced}
        tainted = tainted or ids_in(canonical(first.goal)) or ids_in(first.call)
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
