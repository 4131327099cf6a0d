"""The only way into a world: validate, charge, execute, journal, record (paper 3.1 and B.1).

Whatever the call, the answer is an observation: ``{"ok": true, "result": …}`` or ``{"ok": false, "error": {"code",
"message", "details"}}``. A refusal leaves the state as it was.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from skillhorizon.core.errors import InputError, Rejected
from skillhorizon.core.journal import Journal, Note, Row
from skillhorizon.core.serial import UNENCODABLE, canonical
from skillhorizon.core.tools import Tool
from skillhorizon.core.world import Check, World

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["full", "read_only"]
Observation = dict[str, Any]

_DEEPEST = 64
_TOO_DEEP = canonical(f"<arguments nested more than {_DEEPEST} deep>")
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_MARKS = bytes(set(range(256)) - set(b'[]{}"'))


class Event(msgspec.Struct, gc=False):
    """One attempted call, as the trace keeps it; the strings are the canonical ones that were counted."""

    step: int
    decision: int
    position: int
    tool: str
    kind: str
    charged: bool
    ok: bool
    code: str | None
    module: str | None
    goal: str | None
    cycle: int | None
    check: bool | None
    reason: str | None
    invalidated: tuple[str, ...]
    produced: tuple[str, ...]
    call: bytes
    observation: bytes
    context_tokens: int | None
    role: Role


class Gateway:
    """A fresh world and its tools.

    ``used`` attempts have been charged, ``remaining`` are left (None without a budget). With a journal each call is
    on disk before its observation is returned; over a journal that already holds calls, those calls are first made
    again (by ``catch_up`` or by an agent that repeats them) and their observations compared.
    """

    def __init__(
        self,
        world: World,
        tools: Mapping[str, Tool],
        budget: int | None = None,
        journal: Journal | None = None,
        role: Role = "full",
    ) -> None:
        self.world = world
        self.tools = dict(tools)
        self.budget = budget
        self.role: Role = role
        self.used = 0
        self.events: list[Event] = []
        self._names = {name: canonical(name) for name in self.tools}
        self._journal = journal
        self._recorded = deque(journal.rows if journal else ())
        self._notes = deque(journal.notes if journal else ())
        self.notes: list[Note] = []
        """what ``once`` kept in this run"""
        self._accepted: set[str] = set()
        self._cycles: dict[str, int] = {}

    @property
    def remaining(self) -> int | None:
        return None if self.budget is None else self.budget - self.used

    @property
    def replaying(self) -> bool:
        """Whether something of an earlier process is still to be repeated."""
        return bool(self._recorded or self._notes)

    @property
    def journaled(self) -> bool:
        """Whether calls and notes are kept on disk."""
        return self._journal is not None

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        module: str | None = None,
        goal: str | None = None,
        decision: int | None = None,
        position: int = 0,
        context_tokens: int | None = None,
        role: Role | None = None,
    ) -> Observation:
        """Attempt one call and return its observation.

        ``module`` and ``goal`` say what the caller works for; ``decision`` and ``position`` place the call in the
        agent's batches and ``context_tokens`` is the size of the request that made it. None of them reaches the
        world. ``role`` is the caller's where it is not the gateway's own: several roles may share one world.
        """
        name, encoded_name = self._encode_name(name)
        encoded = encode_arguments(arguments)
        role = role or self.role
        world, tool = self.world, self.tools.get(name)
        world.begin_call()
        code: str | None = None
        ok = charged = False
        try:
            if self.budget is not None and self.used >= self.budget and (tool is None or tool.charged):
                raise Rejected("budget_exhausted", f"all {self.budget} attempts have been used", budget=self.budget)
            charged = tool is None or tool.charged
            if tool is None:
                raise Rejected("unknown_tool", f"no tool {name[:64]!r}")
            if role == "read_only" and not tool.read_only:
                raise Rejected("not_permitted", f"{name} changes the business and this role only reads", role=role)
            observation = canonical({"ok": True, "result": tool.run(world, encoded)})
            ok = True
        except Rejected as refusal:
            code = refusal.code
            error = {"code": code, "message": refusal.message, "details": refusal.details}
            observation = canonical({"ok": False, "error": error})
        if ok and tool is not None and tool.kind == "business":
            world.fire_updates()
        self.used += charged
        verdict = _verdict(world, tool, code)
        goal = verdict.goal if verdict else world.attempted or goal
        step = len(self.events) + 1
        event = Event(
            step=step,
            decision=step if decision is None else decision,
            position=position,
            tool=name,
            kind=tool.kind if tool else "unknown",
            charged=charged,
            ok=ok,
            code=code,
            module=module,
            goal=goal,
            cycle=self._cycles.get(goal, 1) if goal else None,
            check=verdict.passed if verdict else None,
            reason=verdict.reason if verdict else None,
            invalidated=self._void(verdict),
            produced=tuple(world.published),
            call=b'{"arguments":%b,"name":%b}' % (encoded, encoded_name),
            observation=observation,
            context_tokens=context_tokens,
            role=role,
        )
        if self._recorded:
            self._verify(event)
        elif self._journal is not None:
            place = (event.decision, position, context_tokens, role)
            self._journal.append(Row(step, name, encoded, observation, module, event.goal, *place))
        self.events.append(event)
        answer: Observation = msgspec.json.decode(observation)
        return answer

    def recorded(self, kind: str) -> str | None:
        """What an earlier process kept at this place, the next note of its journal; None once all is repeated."""
        if not self._notes:
            return None
        note = self._notes[0]
        if (note.step, note.kind) != (len(self.events), kind):
            raise InputError(f"note {note.number} of the journal differs: another agent or version made it")
        self._notes.popleft()
        return note.body

    def record(self, kind: str, body: str) -> None:
        """Keep what could not be had again, such as a response of a model, before it is acted on."""
        if self.replaying:
            raise InputError("the journal holds more than this agent does here: another agent or version made it")
        if self._journal is not None:
            self._journal.note(len(self.events), kind, body)

    def once(self, kind: str, make: Callable[[], Any]) -> Any:
        """What ``make`` gives, kept before it is returned; where an earlier process kept it at this place, that.

        So a role's answer is asked for once, and a checkpoint can be compared with what it was.
        """
        step = len(self.events)
        body = self.recorded(kind)
        if body is None:
            body = canonical(make()).decode()
            self.record(kind, body)
        self.notes.append(Note(len(self.notes) + 1, step, kind, body))
        return msgspec.json.decode(body)

    def catch_up(self) -> None:
        """Make the journal's calls again, as a server does that takes over a run; its notes are the agent's own."""
        self._notes.clear()
        while self._recorded:
            row = self._recorded[0]
            self.call(
                row.name,
                msgspec.json.decode(row.arguments),
                module=row.module,
                goal=row.goal,
                decision=row.decision,
                position=row.position,
                context_tokens=row.context_tokens,
                role=row.role,
            )

    def table_digests(self) -> dict[str, str]:
        """Digest of each table of the business: what changed between two moments, without showing it."""
        return self.world.table_digests()

    def state_digest(self) -> str:
        return self.world.state_digest()

    def frames(self) -> dict[str, pd.DataFrame]:
        """The whole business state as tables: one DataFrame per table of records, plus artifacts and notices."""
        import pandas as pd  # heavy, and a run that is not looked at needs none of it

        world = self.world
        tables: dict[str, list[Any]] = {name: list(rows.values()) for name, rows in world.tables.items()}
        tables["artifacts"] = [a.public() for a in world.artifacts.values()]
        tables["notices"] = list(world.notices)
        return {name: pd.DataFrame(msgspec.to_builtins(rows)) for name, rows in tables.items()}

    def _encode_name(self, name: Any) -> tuple[str, bytes]:
        """The name as it is kept. What is no string that JSON can carry becomes one that no tool has."""
        known = self._names.get(name) if isinstance(name, str) else None
        if known is not None:
            return name, known
        text = name if isinstance(name, str) else f"<{type(name).__name__}>"
        try:
            return text, canonical(text)
        except UNENCODABLE:
            text = ascii(text)[:64]
            return text, canonical(text)

    def _void(self, verdict: Check | None) -> tuple[str, ...]:
        """Keep the goal cycles: acceptance closes one, invalidation of an accepted goal opens the next (C.2)."""
        if verdict is not None and verdict.passed:
            self._accepted.add(verdict.goal)
        if not self.world.voided:
            return ()
        voided = []
        for artifact in self.world.voided:
            if artifact.goal in self._accepted:
                self._accepted.remove(artifact.goal)
                self._cycles[artifact.goal] = self._cycles.get(artifact.goal, 1) + 1
                voided.append(artifact.goal)
        return tuple(sorted(voided))

    def _verify(self, event: Event) -> None:
        """Compare with the journal. A call that differs stays expected, so nothing can be written behind it."""
        row = self._recorded[0]
        expected = b'{"arguments":%b,"name":%b}' % (row.arguments, canonical(row.name))
        if event.call != expected:
            raise InputError(f"call {row.step} differs from the journal: another agent, seed or version made it")
        if event.observation != row.observation:
            raise InputError(f"the observation of call {row.step} differs from the journal: another task or version")
        self._recorded.popleft()


def _verdict(world: World, tool: Tool | None, code: str | None) -> Check | None:
    """The check that this call was: what the operation judged, else acceptance or a refusal of its own (C.2)."""
    if tool is None:
        return None
    if code is None and world.verdict is not None:
        return world.verdict
    if world.attempted is None:
        return None
    if code is None:
        return Check(world.attempted, True) if tool.checks else None
    return Check(world.attempted, False, code) if code in tool.refusals else None


def encode_arguments(arguments: Any) -> bytes:
    """Canonical JSON; null is no arguments. What JSON cannot carry becomes a text, which is no object to any tool."""
    try:
        encoded = canonical(arguments)
    except RecursionError:
        return _TOO_DEEP
    except UNENCODABLE:
        pass
    else:
        if encoded == b"null":
            return b"{}"
        return _TOO_DEEP if _nested_too_deeply(encoded) else encoded
    try:
        return canonical(ascii(arguments)[:200])
    except Exception:  # the caller's own objects print themselves, and may fail in any way
        return canonical(f"<{type(arguments).__name__}>")


def _nested_too_deeply(encoded: bytes) -> bool:
    """Whether more than ``_DEEPEST`` brackets are open at once: a limit of our own, since Python's own one depends on
    who calls, and a replay must answer as the run did."""
    most = encoded.count(b"[") + encoded.count(b"{")
    # an object that stands behind another one in a list opens where that one closed: the two are never open at once
    if most <= _DEEPEST or most - encoded.count(b"},{") <= _DEEPEST:
        return False
    marks = (_STRINGS.sub(b"", encoded) if b"\\" in encoded else encoded).translate(_ONE_KIND, _NO_MARKS)
    # what stands between quotes is text; quotes side by side enclose, or leave outside, nothing
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    # each round takes away the innermost pairs, so as many rounds empty it as brackets are open at once
    for _ in range(_DEEPEST):
        brackets = brackets.replace(b"[]", b"")
        if not brackets:
            return False
    return True
