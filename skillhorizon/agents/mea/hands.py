"""How an executor carries out what the procedure wants: faithfully, or with the weaknesses of a simulated agent.

The rates are those of ``agents.simulated.Profile``, in the same words. What differs is where they bite. A contract
begins in an empty context and has its evidence before it, so nothing that was verified depends on being recalled; what
was read in this context fades as it does in one long conversation.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from skillhorizon.agents.simulated import Profile
from skillhorizon.core.policy import Call, Confusion, Memory
from skillhorizon.core.tools import Tool

_RECENT = 20


class Stopped(Exception):
    """The hand declares the work finished."""


class Situation(NamedTuple):
    """Where an executor stands when it makes a call.

    ``full`` is how full its context is, from 0 to 1 at the size that a compaction is triggered by; ``distance`` the
    calls since the oldest observation that the work rests on; ``attempts`` those made in this context, and ``stalled``
    those since a piece of work was completed. ``lost`` says that the call rests on something that was not read again.
    """

    full: float = 0.0
    distance: int = 0
    attempts: int = 0
    stalled: int = 0
    lost: bool = False


class Hand(Protocol):
    def choose(self, call: Call, memory: Memory, at: Situation) -> Call | None:
        """The call that is really made, or None where it is left out."""

    def again(self, wrong: Call, refusals: int) -> bool:
        """Whether a wrong call that was refused is made once more, and not put right. Raises ``Stopped``."""

    def recalls(self) -> bool:
        """Whether something that is no longer in the context is read again before it is used."""

    def respond(self, at: Situation) -> Call | None:
        """A request begins: a query that is repeated without need, or None. Raises ``Stopped``."""

    @property
    def batch(self) -> int:
        """Calls of a request: queries up to so many, or up to the first one that changes the business."""


class Faithful:
    """Makes the calls that the procedure wants."""

    batch = 1

    def choose(self, call: Call, memory: Memory, at: Situation) -> Call | None:
        return call

    def again(self, wrong: Call, refusals: int) -> bool:
        return False

    def recalls(self) -> bool:
        return True

    def respond(self, at: Situation) -> Call | None:
        return None


class Simulated:
    """A simulated agent's hand: same seed, same mistakes."""

    def __init__(
        self,
        profile: Profile,
        confusions: Callable[[Call, Memory], list[Confusion]],
        tools: Mapping[str, Tool],
        rng: random.Random,
    ) -> None:
        self.profile = profile
        self.batch = profile.batch
        self._confusions = confusions
        self._tools = tools
        self._rng = rng
        self._recent: deque[Call] = deque(maxlen=_RECENT)

    def choose(self, call: Call, memory: Memory, at: Situation) -> Call | None:
        profile, rng = self.profile, self._rng
        tool = self._tools[call.tool]
        if call.tool == "list_notices" and rng.random() >= profile.awareness:
            return None
        if tool.kind == "query":
            self._recent.append(call)
        if not tool.counts_as_business:
            return call
        chance = profile.slip * (1 + profile.slip_context * min(1.0, at.full))
        chance *= 1 + profile.slip_distance * at.distance / 1000
        if at.lost or (chance and rng.random() < chance):
            wrong = self._confusions(call, memory)
            if wrong:
                return rng.choice(wrong).call
        return call

    def again(self, wrong: Call, refusals: int) -> bool:
        if refusals > self.profile.persistence:
            raise Stopped
        return self._rng.random() >= self.profile.heed

    def recalls(self) -> bool:
        return self._rng.random() < self.profile.recall

    def respond(self, at: Situation) -> Call | None:
        profile, rng = self.profile, self._rng
        hazard = profile.stop * at.attempts / 1000 * (1 + profile.stop_stall * at.stalled / 100)
        if hazard and rng.random() < hazard and rng.random() < profile.confirm:
            raise Stopped
        if self._recent and profile.redundancy and rng.random() < profile.redundancy:
            return rng.choice(self._recent)
        return None
