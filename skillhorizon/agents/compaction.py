"""What of a conversation stays when it has grown too long, and when a summary may take the place of the rest.

Paper B.2, *Summary instruction and history replacement*: the initial instructions stay, so do the last 4, else 2,
else 0 messages as whole action-result pairs, and everything between becomes one summary. Where that part is itself too
long to be summarised at once, it is done in stages. Nothing here asks a model; ``harness`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from skillhorizon.core import tokens

Count = Annotated[int, Meta(ge=0)]
Mode = Literal["full", "staged"]


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In tokens of the estimate, except ``retained``, in messages.

    trigger      from this input on the history is replaced, and a full replacement must fall below it
    guard        no request may be larger
    retained     recent messages that stay, the first choice that fits
    kept_below   instructions and retained messages together stay below
    base         an estimate is the tokens of the texts, ``base``,
    per_message  and this much for each message
    """

    trigger: Count = 200_000
    guard: Count = 480_000
    retained: tuple[Count, ...] = (4, 2, 0)
    kept_below: Count = 64_000
    base: Count = 256
    per_message: Count = 16

    def __post_init__(self) -> None:
        if self.trigger > self.guard:
            raise ValueError("the trigger of a compaction must not exceed its guard")
        if not self.retained or self.retained[-1] != 0 or any(n % 2 for n in self.retained):
            raise ValueError("retained must be even numbers of messages, the last of them 0")


class Message(msgspec.Struct, frozen=True):
    """One message of the conversation. ``steps`` are the calls whose observations it shows.

    ``tokens`` are those of its texts, counted part by part, so that no observation is tokenised twice.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    tokens: int
    steps: tuple[int, ...] = ()


def message(role: Literal["system", "user", "assistant"], *parts: str | bytes, steps: tuple[int, ...] = ()) -> Message:
    """A message of several parts; what Unicode cannot carry becomes a question mark."""
    texts = [part if isinstance(part, bytes) else part.encode(errors="replace") for part in parts]
    return Message(role, b"".join(texts).decode(), sum(map(tokens.count, texts)), steps)


def estimate(messages: Sequence[Message], limits: Limits) -> int:
    """Size of a request in tokens: o200k_base over the texts, plus 256, plus 16 for each message."""
    return sum(m.tokens for m in messages) + limits.base + limits.per_message * len(messages)


class Replacement(NamedTuple):
    """What is to be summarised now (``older``), what waits for a later stage (``rest``), and what stays."""

    mode: Mode
    initial: list[Message]
    older: list[Message]
    rest: list[Message]
    retained: list[Message]

    def request(self, instruction: Message) -> list[Message]:
        """What the summary is made from."""
        return [*self.initial, *self.older, instruction]

    def with_summary(self, summary: Message) -> list[Message]:
        return [*self.initial, summary, *self.rest, *self.retained]

    @property
    def evicted(self) -> tuple[int, ...]:
        """First and last of the steps whose observations leave the context; none where none does."""
        steps = [step for m in self.older for step in m.steps]
        return (min(steps), max(steps)) if steps else ()


class Compaction(msgspec.Struct, frozen=True):
    """One summary that was asked for, in the columns of the table of compactions."""

    decision: int
    mode: Mode
    retained_messages: int
    tokens_before: int
    tokens_after: int
    evicted_steps: tuple[int, ...]
    adopted: bool


def plan(messages: Sequence[Message], instructions: int, instruction: Message, limits: Limits) -> Replacement | None:
    """How the history of a conversation is to be replaced; None where there is nothing to replace.

    The first ``instructions`` messages are the initial ones; ``instruction`` is what will ask for the summary.
    """
    initial, dialogue = list(messages[:instructions]), list(messages[instructions:])
    kept = _retained(initial, dialogue, limits)
    older, retained = dialogue[: len(dialogue) - kept], dialogue[len(dialogue) - kept :]
    if not any(m.role == "assistant" for m in older):
        return None  # at most an earlier summary
    if estimate([*initial, *older, instruction], limits) <= limits.guard:
        return Replacement("full", initial, older, [], retained)
    fits = 0
    for end in _ends_of_pairs(older):
        if estimate([*initial, *older[:end], instruction], limits) > limits.guard:
            break
        fits = end
    return Replacement("staged", initial, older[:fits], older[fits:], retained) if fits else None


def adoptable(replacement: Replacement, summary: str, complete: bool, before: int, after: int, limits: Limits) -> bool:
    """Whether a summary may take the place of what it summarises."""
    if not complete or not summary.strip() or after >= before:
        return False
    return replacement.mode == "staged" or after < limits.trigger


def _retained(initial: list[Message], dialogue: list[Message], limits: Limits) -> int:
    for kept in limits.retained:
        recent = dialogue[len(dialogue) - kept :]
        whole = kept <= len(dialogue) and [m.role for m in recent] == ["assistant", "user"] * (kept // 2)
        if whole and estimate([*initial, *recent], limits) < limits.kept_below:
            return kept
    return 0


def _ends_of_pairs(dialogue: list[Message]) -> list[int]:
    """Where a dialogue may be cut: behind a message of the user that the next one of the assistant follows."""
    return [
        end
        for end in range(1, len(dialogue) + 1)
        if dialogue[end - 1].role == "user"
        and (end == len(dialogue) or dialogue[end].role == "assistant")
        and any(m.role == "assistant" for m in dialogue[:end])
    ]
