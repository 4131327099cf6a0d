"""The state of one task's business: records, artifacts with provenance, notices, updates, a logical clock.

A world is a pure function of the task and the accepted calls. Every value it holds is immutable (frozen structs,
tuples, strings, integers), so a world opens by copying dictionaries and an observation can never alias the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.serial import canonical, digest

CURRENT, SUPERSEDED, STALE, WITHDRAWN = "current", "superseded", "stale", "withdrawn"
_OWN_TABLES = {"artifacts", "notices", "progress", "ledgers"}


class Record(msgspec.Struct, frozen=True, gc=False):
    """Base of all records: frozen, and public as it stands (what agents must not see lives elsewhere).

    Frozen values made of frozen values form no cycles, so the garbage collector need not walk them (``gc``).
    """


R = TypeVar("R", bound=Record)


class Artifact(msgspec.Struct, frozen=True, gc=False):
    """One version of something made during the run. ``id@version`` names it everywhere.

    ``inputs`` are the exact references it consumed. ``basis`` is what the environment keeps beside the public
    content to judge staleness and score; no observation ever shows it.
    """

    id: str
    version: int
    kind: str
    subject: str
    content: Any
    inputs: tuple[str, ...]
    status: str = CURRENT
    cause: str | None = None
    module: str | None = None
    goal: str | None = None
    basis: Any = None

    @property
    def ref(self) -> str:
        return f"{self.id}@{self.version}"

    def public(self) -> dict[str, Any]:
        return {
            "ref": self.ref,
            "kind": self.kind,
            "subject": self.subject,
            "status": self.status,
            "cause": self.cause,
            "inputs": self.inputs,
            "content": self.content,
        }


class Notice(msgspec.Struct, frozen=True):
    notice_id: str
    sequence: int
    kind: str
    subject_ids: tuple[str, ...]
    text: str


class Update(msgspec.Struct, frozen=True):
    """A change declared with the task: when ``counter`` reaches ``at``, the environment applies ``effect``.

    ``effect`` is a record of the environment's own; ``World.apply_update`` carries it out and announces it.
    """

    ordinal: int
    counter: str
    at: int
    effect: Any


class Check(msgspec.Struct, frozen=True):
    """The verdict of an operation on the business requirement it names (paper C.2)."""

    goal: str
    passed: bool
    reason: str | None = None


class World:
    """Base of each environment's world. Tools read and change it; nothing else does."""

    prefixes: ClassVar[Mapping[str, str]] = {}
    """Artifact kind -> prefix of its ids."""

    def __init__(
        self,
        tables: Mapping[str, Mapping[str, Record]],
        updates: Sequence[Update] = (),
        brief: Mapping[str, Any] | None = None,
        seed_tables: Mapping[str, Mapping[str, Record]] | None = None,
    ) -> None:
        if taken := _OWN_TABLES & tables.keys():
            raise ValueError(f"{', '.join(sorted(taken))} are the core's own tables")
        self.tables: dict[str, dict[str, Any]] = {name: dict(rows) for name, rows in tables.items()}
        self.seed_tables = seed_tables or {}
        self.brief = dict(brief or {})
        self.artifacts: dict[str, Artifact] = {}
        self.newest: dict[str, Artifact] = {}
        self.notices: list[Notice] = []
        self.counters: dict[str, int] = {}
        self.fired: list[int] = []
        self.ledgers: dict[str, Ledger] = {}
        self.clock = 0
        self.skill_runs = 0
        self._pending = list(updates)
        self._due = bool(updates)
        """whether the trigger of a pending update may have been reached"""
        self._readers: dict[str, dict[str, int]] = {}
        """key -> references of its readers -> their place in the order of publication"""
        self._reads: dict[str, tuple[str, ...]] = {}
        self._stale: set[str] = set()
        self._listed: dict[tuple[str, str], list[tuple[str, int]]] = {}
        """what lists are asked for by -> (id, version) of the artifacts; put in order when a list is asked for"""
        self._digests: dict[str, str] = {}
        self.begin_call()

    # -- one call ----------------------------------------------------------------------------------------------

    def begin_call(self) -> None:
        """Forget what the previous call left for the event record."""
        self.attempted: str | None = None
        self.verdict: Check | None = None
        self.published: list[str] = []
        self.voided: list[Artifact] = []

    def attempt(self, goal: str) -> None:
        """Name the requirement that this call checks; a business refusal after it is a failed check."""
        self.attempted = goal

    def judge(self, goal: str, passed: bool, reason: str | None = None) -> None:
        """Record a verdict that differs from 'accepted means passed' (a test that was run and failed)."""
        self.verdict = Check(goal, passed, reason)

    @property
    def invalidated(self) -> list[str]:
        """References that became stale during this call, sorted."""
        return sorted(a.ref for a in self.voided)

    # -- records -----------------------------------------------------------------------------------------------

    def get(self, table: str, key: str) -> Any:
        """The record, or the refusal ``unknown_id``. Looks in the task's table, then in the shared seed table."""
        rows = self.tables.get(table)
        record = rows.get(key) if rows is not None else None
        if record is None and table in self.seed_tables:
            record = self.seed_tables[table].get(key)
        if record is None:
            raise Rejected("unknown_id", f"no {table.removesuffix('s').replace('_', ' ')} {key!r}", id=key)
        return record

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record
        self._digests.pop(table, None)

    def amend(self, table: str, key: str, **changes: Any) -> Any:
        """Replace fields of a record and return the new record, which from now on hides a shared seed record."""
        record = replace(self.get(table, key), **changes)
        self.put(table, key, record)
        return record

    # -- artifacts ---------------------------------------------------------------------------------------------

    def publish(
        self,
        kind: str,
        subject: str,
        content: Any,
        inputs: Iterable[str],
        *,
        reads: Iterable[str] | None = None,
        basis: Any = None,
        goal: str | None = None,
        module: str | None = None,
        ordinal: int | None = None,
    ) -> Artifact:
        """Make the next version of an artifact; the version before it becomes superseded.

        ``reads`` are the keys whose change makes the core ask ``staleness`` again; by default the ids of the
        inputs. Use finer keys where only a part was consumed.
        """
        identity = derived(self.prefixes[kind], subject, ordinal)
        before = self.newest.get(identity)
        inputs = tuple(inputs)
        artifact = Artifact(
            id=identity,
            version=before.version + 1 if before else 1,
            kind=kind,
            subject=subject,
            content=content,
            inputs=inputs,
            goal=goal,
            module=module,
            basis=basis,
        )
        ref = artifact.ref
        keys = tuple(dict.fromkeys(reads if reads is not None else [i.partition("@")[0] for i in inputs]))
        if before is not None and before.status != WITHDRAWN:
            self._restate(before, SUPERSEDED, ref)
        self._store(artifact)
        self._reads[ref] = keys
        place = len(self.artifacts)
        for key in keys:
            self._readers.setdefault(key, {})[ref] = place
        entry = (identity, artifact.version)
        for name in (("kind", kind), ("subject", subject), ("all", "")):
            self._listed.setdefault(name, []).append(entry)
        self.published.append(ref)
        if before is not None:
            self.changed(identity, cause=f"{identity} superseded by version {artifact.version}")
        return artifact

    def withdraw(self, ref: str, cause: str) -> None:
        """Take an artifact back; what consumed it is asked for its staleness."""
        artifact = self._restate(self.artifacts[ref], WITHDRAWN, cause)
        self.changed(artifact.id, cause=cause)

    def changed(self, *keys: str, cause: str) -> None:
        """Something that artifacts may have read is different now: ask each reader, and on down the graph.

        Becoming stale spreads to the readers of the artifact, and so does becoming valid again. Readers are asked in
        the order of their publication, so each is asked once, after everything that it consumed has settled.
        """
        waiting: list[tuple[int, str]] = []
        known: set[str] = set()

        def wait(key: str) -> None:
            for ref, place in self._readers.get(key, {}).items():
                if ref not in known:
                    known.add(ref)
                    heappush(waiting, (place, ref))

        for key in keys:
            wait(key)
        while waiting:
            _, ref = heappop(waiting)
            known.remove(ref)
            artifact = self.artifacts[ref]
            why = self.staleness(artifact, cause)
            if (why is None) == (artifact.status == CURRENT):
                continue
            artifact = self._restate(artifact, CURRENT if why is None else STALE, why)
            if why is not None:
                self.voided.append(artifact)
            wait(artifact.id)

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        """The environment's rule: why the artifact is no longer supported, or None while it is.

        Default: as soon as any input is not current. It is asked only of current and stale artifacts.
        """
        for ref in artifact.inputs:
            source = self.artifacts.get(ref)
            if source is not None and source.status != CURRENT:
                return cause
        return None

    def artifact(self, ref: str, kind: str | None = None) -> Artifact:
        """Any version, by reference; refuses ``unknown_id``."""
        artifact = self.artifacts.get(ref)
        if artifact is None or (kind is not None and artifact.kind != kind):
            raise Rejected("unknown_id", f"no {(kind or 'artifact').replace('_', ' ')} {ref!r}", id=ref)
        return artifact

    def current(self, ref: str, kind: str | None = None) -> Artifact:
        """The artifact if it is the newest version and not stale; refuses ``unknown_id`` and ``stale_input``."""
        artifact = self.artifact(ref, kind)
        if artifact.status != CURRENT:
            raise Rejected("stale_input", f"{ref} is {artifact.status}", ref=ref, status=artifact.status)
        return artifact

    def list_artifacts(self, kind: str | None, subject: str | None, status: str | None) -> list[Artifact]:
        """By id, then version."""
        if status == STALE:  # what an agent asks for after a notice: few among many
            found = sorted((self.artifacts[ref] for ref in self._stale), key=lambda a: (a.id, a.version))
            return [a for a in found if kind in (None, a.kind) and subject in (None, a.subject)]
        index = ("subject", subject) if subject else ("kind", kind) if kind else ("all", "")
        listed = self._listed.get(index, [])
        listed.sort()  # it was in order but for what has been published since, so this is nearly one pass
        found = [self.artifacts[f"{i}@{v}"] for i, v in listed]
        return [a for a in found if (kind is None or a.kind == kind) and (status is None or a.status == status)]

    def _restate(self, artifact: Artifact, status: str, cause: str | None) -> Artifact:
        artifact = replace(artifact, status=status, cause=cause)
        self._store(artifact)
        if status in (SUPERSEDED, WITHDRAWN):
            ref = artifact.ref
            for key in self._reads.pop(ref, ()):
                del self._readers[key][ref]
        return artifact

    def _store(self, artifact: Artifact) -> None:
        ref = artifact.ref
        self.artifacts[ref] = artifact
        newest = self.newest.get(artifact.id)
        if newest is None or newest.version <= artifact.version:
            self.newest[artifact.id] = artifact
        (self._stale.add if artifact.status == STALE else self._stale.discard)(ref)
        self._digests.pop("artifacts", None)
        self.index(artifact)

    def index(self, artifact: Artifact) -> None:
        """Called with each new version and each new status of one: an environment keeps its own indexes here."""

    # -- notices and updates -----------------------------------------------------------------------------------

    def announce(self, kind: str, subject_ids: Iterable[str], text: str) -> None:
        sequence = len(self.notices) + 1
        self.notices.append(Notice(f"ntc-{sequence:04d}", sequence, kind, tuple(subject_ids), text))
        self._digests.pop("notices", None)

    def count(self, counter: str, amount: int = 1) -> int:
        """Advance a counter that updates may wait for."""
        value = self.counters.get(counter, 0) + amount
        self.counters[counter] = value
        self._due = bool(self._pending)
        self._digests.pop("progress", None)
        return value

    def advance(self, to: int) -> None:
        """Move the logical clock forward; no other clock exists."""
        if to < self.clock:
            raise ValueError(f"the clock stands at {self.clock} and cannot go back to {to}")
        self.clock = to
        self._digests.pop("progress", None)

    def fire_updates(self) -> None:
        """Carry out, in their order, the updates whose trigger has been reached. Only the Gateway calls this."""
        if not self._due:
            return
        while due := next((u for u in self._pending if self.counters.get(u.counter, 0) >= u.at), None):
            self._pending.remove(due)
            self.fired.append(due.ordinal)
            self._digests.pop("progress", None)
            self.apply_update(due)
        self._due = False

    def apply_update(self, update: Update) -> None:
        raise TypeError(f"{type(self).__name__} declares no updates")

    # -- digests and tables ------------------------------------------------------------------------------------

    def table_digests(self) -> dict[str, str]:
        """SHA-256 of each table's content; a table that was not touched keeps its digest without rehashing."""
        tables: dict[str, Any] = {
            **self.tables,
            "artifacts": self.artifacts,
            "notices": self.notices,
            "progress": (self.counters, self.fired, self.clock),
        }
        for name, rows in tables.items():
            if name not in self._digests:
                self._digests[name] = digest(canonical(rows))
        ledgers = {name: (ledger.capacity, ledger.entries()) for name, ledger in self.ledgers.items()}
        return {name: self._digests[name] for name in tables} | {"ledgers": digest(ledgers)}

    def state_digest(self) -> str:
        """SHA-256 of the whole business state; extra reads and skill declarations do not change it."""
        return digest(self.table_digests())
