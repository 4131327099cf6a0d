"""The three roles, and the desk at which each one works: bounded calls, bounded tokens, its own permissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from skillhorizon.agents.compaction import Limits
from skillhorizon.agents.mea.state import Audit, Contract, Decision, Ledger, Report, Spent, ids_in
from skillhorizon.core import tokens
from skillhorizon.core.gateway import Event, Gateway, Observation, Role
from skillhorizon.core.serial import canonical
from skillhorizon.core.task import Task

LIMITS = Limits()
"""How the harness estimates a request."""


class RoleFailed(Exception):
    """A role gave no usable answer. It costs the round, never the run."""


class OutOfCalls(Exception):
    """The role has used up its calls, or the task its allowance."""


class OutOfTokens(RoleFailed):
    """The role has used up its tokens."""


@dataclass
class Desk:
    """A role's place of work in one round. Whatever it does there is charged to it."""

    gateway: Gateway
    role: Role
    calls: int
    tokens: int
    spent: Spent = field(default_factory=Spent)

    @property
    def events(self) -> Sequence[Event]:
        return self.gateway.events

    @property
    def left(self) -> int:
        """Calls that the role may still make."""
        mine = self.calls - self.spent.attempts
        return mine if self.gateway.remaining is None else min(mine, self.gateway.remaining)

    def request(self, tokens_in: int, tokens_out: int) -> None:
        """One request that reads and writes so many tokens; raises ``OutOfTokens`` where the role has not so many."""
        self.spent += Spent(requests=1, tokens_in=tokens_in, tokens_out=tokens_out)
        if self.spent.tokens_in + self.spent.tokens_out > self.tokens:
            raise OutOfTokens(f"more than {self.tokens} tokens in one round")

    def call(
        self, name: str, arguments: dict[str, Any], *, module: str | None = None, goal: str | None = None, **place: Any
    ) -> Observation:
        """Make one call; raises ``OutOfCalls`` before one that the role is not allowed."""
        gateway = self.gateway
        tool = gateway.tools.get(name)
        charged = tool is None or tool.charged
        if charged and self.left <= 0:
            raise OutOfCalls(f"{self.calls} calls")
        if tool is not None and not tool.read_only and self.role == "full" and gateway.journaled:
            in_flight = self._intend(name, arguments)
            if in_flight is not None:
                return in_flight
        before = gateway.used
        observation = gateway.call(name, arguments, module=module, goal=goal, role=self.role, **place)
        self.spent += Spent(attempts=gateway.used - before)
        return observation

    def _intend(self, name: str, arguments: dict[str, Any]) -> Observation | None:
        """Write down what is about to be done. Where an earlier process got no further than that, look first: an
        artifact that no call of the journal made is the outcome of the call that it lost."""
        gateway = self.gateway
        replaying = gateway.replaying
        gateway.once("intent", lambda: {"name": name, "arguments": arguments})
        if not replaying or gateway.replaying:
            return None
        for subject in sorted(ids_in(canonical(arguments))):
            if self.left <= 1:
                return None
            answer = self.call("list_artifacts", {"subject_id": subject, "status": "current"})
            made = {ref for event in gateway.events for ref in event.produced}
            lost = [row["ref"] for row in answer["result"]["items"] if row["ref"] not in made] if answer["ok"] else []
            if lost:
                return self.call("get_artifact", {"ref": lost[0]})
        return None


@dataclass(frozen=True)
class View:
    """All that a manager sees: the brief, the ledger, the newest audit, and what the loop has to say."""

    task: Task
    ledger: Ledger
    audit: Audit | None
    events: Sequence[Event]
    round: int
    calls: int
    """the most that a contract may ask for"""
    notice: str = ""
    """why the last decision was not followed, or what failed"""
    strategy: bool = False
    """the same gaps again: try something else"""
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Changes:
    """What the loop itself saw of an execution: tables of the business that differ after it."""

    tables: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    suspects: tuple[int, ...] = ()


class Manager(Protocol):
    def decide(self, view: View, desk: Desk) -> Decision:
        """The next turn; raises ``RoleFailed``."""


class Executor(Protocol):
    def execute(self, task: Task, contract: Contract, desk: Desk) -> Report:
        """Carry a contract out; raises ``RoleFailed`` and ``OutOfCalls``. What was called until then counts."""


class Auditor(Protocol):
    def audit(self, task: Task, contract: Contract, report: Report, changes: Changes, desk: Desk) -> Audit:
        """Judge the state that an execution left; raises ``RoleFailed`` and ``OutOfCalls``."""


def size(*texts: str | bytes) -> int:
    """Estimated tokens of a request made of these texts."""
    return LIMITS.base + sum(tokens.count(text) + LIMITS.per_message for text in texts)


def text_of(value: Any) -> str:
    return msgspec.json.encode(value).decode()
