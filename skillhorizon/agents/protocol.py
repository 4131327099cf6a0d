"""What every agent is, and how its run may end."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from skillhorizon.agents.compaction import Compaction
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.task import Task

End = Literal["submitted", "exhausted", "stopped", "failed"]
"""How a run ended: the agent declared the work finished; its allowance was used up; it gave up or was interrupted
before it declared anything; it could not go on."""


class Outcome(msgspec.Struct, frozen=True):
    """``why`` is one line for people, where there is something to say.

    What only a conversation has: ``decisions`` (its responses), ``compactions``, and the tokens and the cost of its
    requests; ``cost`` is None where no price is known.
    """

    end: End
    why: str | None = None
    decisions: int | None = None
    compactions: tuple[Compaction, ...] = ()
    request_tokens: int | None = None
    response_tokens: int | None = None
    cost: float | None = None


class Agent(Protocol):
    """One way of working. Same task, same seed: same calls."""

    def act(self, task: Task, gateway: Gateway, seed: int) -> Outcome:
        """Work on the task until the run ends.

        Of the task an agent takes what is public (``brief``, ``environment.policy()``); the world is behind the
        gateway.
        """
