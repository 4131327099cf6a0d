"""Reference policies as generators: they yield calls, are sent observations, and know nothing else.

A policy is a set of jobs. Some job is ready as long as work is left; the driver takes the first (the reference) or a
random one (a run in a random legal order). What a policy has seen it keeps in a ``Memory``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from skillhorizon.core.gateway import Observation

T = TypeVar("T")


class Call(msgspec.Struct, frozen=True):
    """A call to make, and the module and goal that it serves."""

    tool: str
    arguments: dict[str, Any]
    module: str | None = None
    goal: str | None = None


Steps = Generator[Call, Observation, T]


class Refused(Exception):
    """A policy's call was refused where it did not expect that."""

    def __init__(self, call: Call, error: dict[str, Any]) -> None:
        super().__init__(call, error)  # its arguments are those of this class, so it survives pickling
        self.call = call
        self.error = error

    def __str__(self) -> str:
        return f"{self.call.tool} was refused: {self.error['code']}: {self.error['message']}"


def ask(tool: str, *, module: str | None = None, goal: str | None = None, **arguments: Any) -> Steps[dict[str, Any]]:
    """Make one call and return its result; raises ``Refused`` on a refusal."""
    call = Call(tool, arguments, module, goal)
    observation = yield call
    if not observation["ok"]:
        raise Refused(call, observation["error"])
    result: dict[str, Any] = observation["result"]
    return result


def ask_all(tool: str, *, module: str | None = None, **arguments: Any) -> Steps[list[Any]]:
    """All rows of a paged query."""
    rows: list[Any] = []
    page = yield from ask(tool, module=module, **arguments)
    rows += page["items"]
    while page["next_cursor"]:
        page = yield from ask(tool, module=module, **arguments, cursor=page["next_cursor"])
        rows += page["items"]
    return rows


def run_script(
    skill: str, script: str, input: dict[str, Any], *, module: str | None = None, goal: str | None = None
) -> Steps[dict[str, Any]]:
    """What a skill's script computes over ``input``."""
    arguments = {"skill": skill, "script": script, "input": input}
    result = yield from ask("run_skill_script", module=module, goal=goal, **arguments)
    output: dict[str, Any] = result["output"]
    return output


class Memory:
    """What was observed, by key, with the step at which it was seen. Compaction is forgetting."""

    def __init__(self) -> None:
        self.step = 0
        self._entries: dict[Hashable, tuple[Any, int]] = {}

    def lookup(self, key: Hashable, query: Steps[T]) -> Steps[T]:
        """The remembered value, or the query's, which is then remembered."""
        if key in self._entries:
            value: T = self._entries[key][0]
            return value
        value = yield from query
        self.keep(key, value)
        return value

    def keep(self, key: Hashable, value: Any) -> None:
        self._entries[key] = (value, self.step)

    def get(self, key: Hashable, default: Any = None) -> Any:
        return self._entries[key][0] if key in self._entries else default

    def seen_at(self, key: Hashable) -> int | None:
        return self._entries[key][1] if key in self._entries else None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def forget(self, *keys: Hashable) -> None:
        for key in keys:
            self._entries.pop(key, None)

    def forget_where(self, test: Callable[[Any], bool]) -> None:
        self.forget(*[key for key in self._entries if test(key)])


class Job(NamedTuple):
    """A module's procedure that can be carried out now."""

    key: str
    steps: Callable[[], Steps[None]]


class Policy(Protocol):
    """The reference procedure of one environment."""

    memory: Memory

    def opening(self) -> Steps[None]:
        """Read the brief, the skills and what the plan needs."""

    def ready(self) -> Iterator[Job]:
        """Jobs that can be carried out now, in the reference's own order; none when the work is done."""


class Confusion(NamedTuple):
    """A plausible wrong alternative of a consequential call; ``kind`` names the trap it falls into."""

    kind: str
    call: Call


Mistakes = Iterator[tuple[str, dict[str, Any]]]
"""Kinds of mistake, each with the arguments that it changes."""


def confusing(
    makers: Mapping[str, Callable[[dict[str, Any], Memory], Mistakes]],
) -> Callable[[Call, Memory], list[Confusion]]:
    """The confusions of an environment, from what makes the mistakes of each tool.

    A maker gets the arguments of the call and what has been observed. Its mistakes are well typed, and what follows
    from a wrong choice follows: some are refused at once, most are accepted, and only a later operation or the final
    score finds them.
    """

    def confusions(call: Call, memory: Memory) -> list[Confusion]:
        found = []
        for kind, changes in makers[call.tool](call.arguments, memory) if call.tool in makers else ():
            arguments = {**call.arguments, **changes}
            if arguments != call.arguments:
                found.append(Confusion(kind, Call(call.tool, arguments, call.module, call.goal)))
        return found

    return confusions


Perform = Callable[[Call], Observation]


def drive(policy: Policy, perform: Perform, rng: random.Random | None = None) -> None:
    """Carry a policy out: jobs in the policy's order, or with ``rng`` in a random legal order."""
    _carry_out(policy.opening(), policy.memory, perform)
    while True:
        jobs = policy.ready()
        job = next(jobs, None) if rng is None else _one_of(jobs, rng)
        if job is None:
            return
        _carry_out(job.steps(), policy.memory, perform)


def _one_of(jobs: Iterable[Job], rng: random.Random) -> Job | None:
    listed = list(jobs)
    return rng.choice(listed) if listed else None


def _carry_out(steps: Steps[None], memory: Memory, perform: Perform) -> None:
    try:
        call = next(steps)
        while True:
            observation = perform(call)
            memory.step += 1
            call = steps.send(observation)
    except StopIteration:
        return
