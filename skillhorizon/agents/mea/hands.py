"""How an executor carries out what the procedure wants: faithfully, or with the failures of a simulated agent."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from skillhorizon.core.policy import Call, Confusion, Memory

Rate = Annotated[float, Meta(ge=0, le=1)]


class Stopped(Exception):
    """The hand declares the work finished."""


class Hand(Protocol):
    def choose(self, call: Call, memory: Memory, context: int, lost: bool) -> Call | None:
        """The call that is really made, or None where it is left out. Raises ``Stopped``.

        ``context`` is the size of the context in tokens; ``lost`` says that a value on which the call rests was not
        looked up.
        """

    def recalls(self) -> bool:
        """Whether something that left the context is looked up before it is used."""

    def batch(self) -> int:
        """Calls of the next request."""


class Faithful:
    """Makes the calls that the procedure wants."""

    def choose(self, call: Call, memory: Memory, context: int, lost: bool = False) -> Call | None:
        return call

    def recalls(self) -> bool:
        return True

    def batch(self) -> int:
        return 1


class Rates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Failure rates of a simulated executor, as far as they concern one contract.

    slip        that a consequential call becomes a plausible wrong one, in an empty context
    growth      by what share that grows with each 100,000 tokens of context
    recall      that something of an earlier round is looked up; else the call that needs it is a wrong one
    attention   that notices are read when they are due
    stopping    that a contract is declared finished before it is, at each call
    batch       calls of one request
    """

    slip: Rate = 0.0
    growth: Annotated[float, Meta(ge=0)] = 0.0
    recall: Rate = 1.0
    attention: Rate = 1.0
    stopping: Rate = 0.0
    batch: Annotated[int, Meta(ge=1)] = 1


class Simulated:
    """A simulated agent's hand: same seed, same mistakes."""

    def __init__(self, rates: Rates, confusions: Callable[[Call, Memory], list[Confusion]], rng: random.Random) -> None:
        self.rates = rates
        self._confusions = confusions
        self._rng = rng

    def choose(self, call: Call, memory: Memory, context: int, lost: bool = False) -> Call | None:
        rates, rng = self.rates, self._rng
        if rng.random() < rates.stopping:
            raise Stopped
        if call.tool == "list_notices" and rng.random() >= rates.attention:
            return None
        slip = rates.slip * (1 + rates.growth * context / 100_000)
        if rng.random() < (1.0 if lost else slip):
            wrong = self._confusions(call, memory)
            if wrong:
                return rng.choice(wrong).call
        return call

    def recalls(self) -> bool:
        return self._rng.random() < self.rates.recall

    def batch(self) -> int:
        return self.rates.batch
