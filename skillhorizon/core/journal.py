"""The durable record of a run: a SQLite file, one transaction a call, written before the observation is returned.

``calls(step, name, arguments, observation, module, goal, decision, position, context_tokens, role, chain)`` and
``meta(key, value)``. ``chain`` is the SHA-256 over the previous row's chain and this row; ``meta`` holds the newest one
as ``head``, the ``end`` of a finished run, and the SHA-256 of its other values as ``seal``. So whatever was altered,
cut or lost is found when the file is opened.

Where an agent has something that could not be had again, as a model's responses, there is a third table,
``notes(number, step, kind, body, chain)``: ``step`` calls stood before the note, and its chain goes on with theirs.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from skillhorizon.core.errors import InputError
from skillhorizon.core.serial import canonical, digest

FORMAT = 1
_NOTES = "number, step, kind, body, chain"
_COLUMNS = "step, name, arguments, observation, module, goal, decision, position, context_tokens, role, chain"


class Row(NamedTuple):
    step: int
    name: str
    arguments: bytes
    observation: bytes
    module: str | None
    goal: str | None
    decision: int
    position: int
    context_tokens: int | None
    role: Literal["full", "read_only"]
    chain: str = ""


class Note(NamedTuple):
    """What an agent keeps beside its calls; ``step`` is the number of calls before it."""

    number: int
    step: int
    kind: str
    body: str
    chain: str = ""


class Journal:
    """Append-only. ``durable=True`` survives a power cut (synchronous FULL), else a killed process.

    ``meta`` describes the run, ``rows`` and ``notes`` are what was there on opening, ``end`` is how the run ended.
    """

    def __init__(
        self,
        path: Path,
        durable: bool,
        meta: dict[str, Any],
        rows: list[Row],
        notes: Sequence[Note] = (),
        end: Any = None,
        chain: str = "",
    ) -> None:
        self.path = path
        self.durable = durable
        self.meta = meta
        self.rows = rows
        self.notes = list(notes)
        self.end = end
        self._chain = chain
        self._noted = len(self.notes)
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @classmethod
    def create(cls, path: str | Path, meta: dict[str, Any], durable: bool = False) -> Journal:
        """A new journal; refuses to touch a file that exists."""
        path = Path(path)
        try:
            path.open("xb").close()
        except FileExistsError:
            raise InputError(f"{path} exists already; resume it or choose another file") from None
        except OSError as error:
            raise InputError(f"cannot create {path}: {error.strerror}") from None
        journal = cls(path, durable, {**meta, "journal_format": FORMAT}, [])
        journal._write(
            (
                "CREATE TABLE calls(step INTEGER PRIMARY KEY, name TEXT NOT NULL, arguments TEXT NOT NULL, "
                "observation TEXT NOT NULL, module TEXT, goal TEXT, decision INTEGER NOT NULL, "
                "position INTEGER NOT NULL, context_tokens INTEGER, role TEXT NOT NULL, chain TEXT NOT NULL)",
            ),
            ("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL)",),
            *(_set(key, value) for key, value in journal.meta.items()),
            _set("head", ""),
            _set("seal", digest(journal.meta, None)),
        )
        return journal

    @classmethod
    def load(cls, path: str | Path, durable: bool = False) -> Journal:
        """An existing journal, verified row by row; raises ``InputError`` for anything that is not one, whole.

        Opening changes nothing in the file; only a call that is appended does.
        """
        path = Path(path)
        if not path.is_file():
            raise InputError(f"no journal at {path}")
        try:
            # Where no log is left to be merged, nothing is locked and no file is made beside the journal.
            mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as connection:
                connection.execute("BEGIN")  # one view of both tables, though another process may be writing
                found = connection.execute("SELECT key, value FROM meta").fetchall()
                calls = connection.execute(f"SELECT {_COLUMNS} FROM calls ORDER BY step").fetchall()
                noted = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'notes'").fetchone()
                kept = connection.execute(f"SELECT {_NOTES} FROM notes ORDER BY number").fetchall() if noted else []
            meta = {str(key): msgspec.json.decode(value) for key, value in found}
        except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
            raise InputError(f"{path} is not a whole journal ({error})") from None
        if meta.get("journal_format") != FORMAT:
            raise InputError(f"{path} is a journal of another format ({meta.get('journal_format')}, not {FORMAT})")
        head, seal, end = (meta.pop(key, None) for key in ("head", "seal", "end"))
        if seal != digest(meta, end):
            raise InputError(f"{path} has been altered in its description of the run")
        rows: list[Row] = []
        notes: list[Note] = []
        waiting = deque(Note(*values) for values in kept)
        chain = ""
        for number, values in enumerate([*calls, None], 1):
            while waiting and waiting[0].step == number - 1:
                note = waiting.popleft()
                chain = _chain_note(chain, note)
                if note.number != len(notes) + 1 or note.chain != chain:
                    raise InputError(f"{path} has been altered or truncated at note {len(notes) + 1}")
                notes.append(note)
            if values is None:
                break
            row = Row(*values)._replace(arguments=str(values[2]).encode(), observation=str(values[3]).encode())
            chain = _chain(chain, row)
            if row.step != number or row.chain != chain:
                raise InputError(f"{path} has been altered or truncated at call {number}")
            rows.append(row)
        if head != chain or waiting:
            raise InputError(f"{path} has been truncated after call {len(rows)}")
        return cls(path, durable, meta, rows, notes, end, chain)

    def append(self, row: Row) -> None:
        """Write one call in one transaction; returns once it would survive a killed process.

        Where that fails (a full disk, another process on the same journal) the journal takes no further call.
        """
        chain = _chain(self._chain, row)
        values = (*row[:2], row.arguments.decode(), row.observation.decode(), *row[4:-1], chain)
        self._write((f"INSERT INTO calls({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", values), _set("head", chain))
        self._chain = chain

    def note(self, step: int, kind: str, body: str) -> None:
        """Write one note in one transaction, as ``append`` does a call."""
        note = Note(self._noted + 1, step, kind, body)
        chain = _chain_note(self._chain, note)
        self._write(
            (
                "CREATE TABLE IF NOT EXISTS notes(number INTEGER PRIMARY KEY, step INTEGER NOT NULL, "
                "kind TEXT NOT NULL, body TEXT NOT NULL, chain TEXT NOT NULL)",
            ),
            (f"INSERT INTO notes({_NOTES}) VALUES (?,?,?,?,?)", (*note[:-1], chain)),
            _set("head", chain),
        )
        self._chain = chain
        self._noted += 1

    def finish(self, end: Any) -> None:
        """Record how the run ended."""
        self._write(_set("end", end), _set("seal", digest(self.meta, end)))
        self.end = end

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _write(self, *statements: tuple[Any, ...]) -> None:
        if self._closed:
            raise InputError(f"{self.path} is closed")
        try:
            if self._connection is None:
                self._connection = self._open()
            with self._connection as connection:
                connection.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    connection.execute(*statement)
        except sqlite3.Error as error:
            self.close()
            raise InputError(f"cannot write to {self.path} ({error})") from None

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        return connection


def _set(key: str, value: Any) -> tuple[str, tuple[str, str]]:
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, canonical(value).decode())


def _chain(before: str, row: Row) -> str:
    return digest(before, row.arguments, row.observation, row[:2], row[4:-1])


def _chain_note(before: str, note: Note) -> str:
    return digest(before, "note", note[:-1])
