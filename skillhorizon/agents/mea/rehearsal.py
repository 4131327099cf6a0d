"""A reference procedure as something that is asked for its next call and told the answer.

What has been verified of a run is a sequence of calls. A fresh procedure that is told their answers one after the other
stands where the work stands, and the call that it wants next is what is missing: no goal and no evaluator is needed to
know it. So one mechanism plans, finds what is wrong, puts it right and takes a run up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec

from skillhorizon.core.gateway import Event, Observation
from skillhorizon.core.policy import Call, Job, Policy, Refused, Steps
from skillhorizon.core.serial import canonical

FAILURES = (Refused, LookupError, TypeError, ValueError, AssertionError, RuntimeError)
"""How a procedure fails where the state of the business is not what it can have expected."""
OPENING = "opening"


def written(call: Call) -> bytes:
    """A call as the journal has it."""
    return b'{"arguments":%b,"name":%b}' % (canonical(call.arguments), canonical(call.tool))


class Rehearsal:
    """A procedure under way.

    A job that failed waits until nothing else is left. It is not taken up again once it has failed ``patience`` times
    with nothing carried out in between, or thrice as often in all; nor are those in ``barred``.
    """

    def __init__(self, policy: Policy, patience: int = 2) -> None:
        self.policy = policy
        self.patience = patience
        self.barred: set[str] = set()
        self.failures: dict[str, list[int]] = {}
        """job -> jobs finished before each of its failures"""
        self.finished: list[str] = []
        """jobs carried out to their end, in order"""
        self.job = OPENING
        self.answers: list[bytes] = []
        """the answers told so far"""
        self.sources: list[int | None] = []
        """of each answer, the call id"""
        self.reason = ""
        self._steps: Steps[None] | None = policy.opening()
        self._wanted: Call | None = None

    def wanted(self) -> Call | None:
        """The next call, or None where nothing is left to do."""
        while self._wanted is None:
            if self._steps is None:
                job = self._next()
                if job is None:
                    return None
                self.job, self._steps = job.key, job.steps()
            self._advance(lambda steps: next(steps))
        return self._wanted

    def tell(self, answer: bytes, source: int | None = None) -> bool:
        """The answer to the call that was wanted; returns whether the job goes on or has been carried out."""
        self.answers.append(answer)
        self.sources.append(source)
        self._wanted = None
        self.policy.memory.step += 1
        observation: Observation = msgspec.json.decode(answer)
        return self._advance(lambda steps: steps.send(observation))

    def follow(self, calls: Sequence[int], standing: Collection[int], events: Sequence[Event]) -> list[int]:
        """Tell the answers of verified calls as they are wanted; returns those that were not.

        A call among ``standing`` answers for whatever is wanted when its turn comes.
        """
        waiting = list(calls)
        while waiting and (wanted := self.wanted()) is not None:
            sought = written(wanted)
            place = 0 if waiting[0] in standing else None
            if place is None:
                place = next((n for n, call in enumerate(waiting) if events[call - 1].call == sought), None)
            if place is None:
                break
            call = waiting.pop(place)
            self.tell(events[call - 1].observation, call)
        return waiting

    def give_up(self, job: str) -> None:
        """Do not take a job up again, and leave it where it is under way."""
        self.barred.add(job)
        if self._steps is not None and self.job == job:
            self._steps = self._wanted = None

    def ready(self) -> list[str]:
        """Keys of the jobs that can be carried out now, the one under way first."""
        found = {self.job: None} if self._steps is not None else {}
        try:
            found |= {job.key: None for job in self._jobs()}
        except FAILURES as failure:
            self.reason = str(failure) or type(failure).__name__
        return list(found)

    def _next(self) -> Job | None:
        try:
            return next(iter(self._jobs()), None)
        except FAILURES as failure:
            self.reason = str(failure) or type(failure).__name__
            return None

    def hopeless(self, job: str) -> bool:
        """Whether a job is not taken up again."""
        failures = self.failures.get(job, [])
        in_vain = sum(finished == len(self.finished) for finished in failures)
        return job in self.barred or in_vain >= self.patience or len(failures) >= 3 * self.patience

    def _jobs(self) -> Iterator[Job]:
        waiting = []
        for job in self.policy.ready():
            if job.key in self.failures:
                waiting.append(job)
            elif job.key not in self.barred:
                yield job
        yield from (job for job in waiting if not self.hopeless(job.key))

    def _advance(self, step: Callable[[Any], Call]) -> bool:
        assert self._steps is not None
        try:
            self._wanted = step(self._steps)
        except StopIteration:
            self._steps = None
            self.finished.append(self.job)
        except FAILURES as failure:
            self._steps = None
            self.failures.setdefault(self.job, []).append(len(self.finished))
            self.reason = str(failure) or type(failure).__name__
            return False
        return True
