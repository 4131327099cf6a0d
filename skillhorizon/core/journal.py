"""The durable record of a run: a SQLite file, one transaction a call, written before the observation is returned.

``calls(step, name, arguments, observation, module, goal, decision, position, context_tokens, role, chain)`` and
``meta(key, value)``; ``notes(number, step, kind, value, chain)`` once an agent keeps something beside its calls (a
role's answer, a checkpoint). ``chain`` is the SHA-256 over the previous row's chain and this row; ``meta`` holds the
newest ones as ``head`` and ``notes_head``, the ``end`` of a finished run, and the SHA-256 of its other values as
``seal``. So whatever was altered, cut or lost is found when the file is opened.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from skillhorizon.core.errors import InputError
from skillhorizon.core.serial import canonical, digest

FORMAT = 1
_COLUMNS = "step, name, arguments, observation, module, goal, decision, position, context_tokens, role, chain"

_ALL_NOTES = "SELECT number, step, kind, value, chain FROM notes ORDER BY number"


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
    """What an agent keeps beside its calls: ``value`` in canonical JSON, written when ``step`` calls had been made."""

    step: int
    kind: str
    value: bytes
    chain: str = ""


class Journal:
    """Append-only. ``durable=True`` survives a power cut (synchronous FULL), else a killed process.

    ``meta`` describes the run, ``rows`` and ``notes`` are the calls and notes that were there on opening, ``end`` is
    how the run ended.
    """

    def __init__(
        self,
        path: Path,
        durable: bool,
        meta: dict[str, Any],
        rows: list[Row],
        end: Any = None,
        notes: list[Note] | None = None,
    ) -> None:
        self.path = path
        self.durable = durable
        self.meta = meta
        self.rows = rows
        self.end = end
        self.notes = notes or []
        self._chain = rows[-1].chain if rows else ""
        self._noted = len(self.notes)
        self._notes_chain = self.notes[-1].chain if self.notes else ""
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
                noted = connection.execute(_ALL_NOTES).fetchall() if any(k == "notes_head" for k, _ in found) else []
            meta = {str(key): msgspec.json.decode(value) for key, value in found}
        except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
            raise InputError(f"{path} is not a whole journal ({error})") from None
        if meta.get("journal_format") != FORMAT:
            raise InputError(f"{path} is a journal of another format ({meta.get('journal_format')}, not {FORMAT})")
        head, notes_head, seal, end = (meta.pop(key, None) for key in ("head", "notes_head", "seal", "end"))
        if seal != digest(meta, end):
            raise InputError(f"{path} has been altered in its description of the run")
        rows: list[Row] = []
        chain = ""
        for number, values in enumerate(calls, 1):
            row = Row(*values)._replace(arguments=str(values[2]).encode(), observation=str(values[3]).encode())
            chain = _chain(chain, row)
            if row.step != number or row.chain != chain:
                raise InputError(f"{path} has been altered or truncated at call {number}")
            rows.append(row)
        if head != chain:
            raise InputError(f"{path} has been truncated after call {len(rows)}")
        return cls(path, durable, meta, rows, end, _whole_notes(path, noted, notes_head))

    def append(self, row: Row) -> None:
        """Write one call in one transaction; returns once it would survive a killed process.

        Where that fails (a full disk, another process on the same journal) the journal takes no further call.
        """
        chain = _chain(self._chain, row)
        values = (*row[:2], row.arguments.decode(), row.observation.decode(), *row[4:-1], chain)
        self._write((f"INSERT INTO calls({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)", values), _set("head", chain))
        self._chain = chain

    def keep(self, note: Note) -> None:
        """Write one note in one transaction, like a call."""
        chain = _note_chain(self._notes_chain, note)
        number = self._noted + 1
        values = (number, note.step, note.kind, note.value.decode(), chain)
        self._write(
            (
                "CREATE TABLE IF NOT EXISTS notes(number INTEGER PRIMARY KEY, step INTEGER NOT NULL, "
                "kind TEXT NOT NULL, value TEXT NOT NULL, chain TEXT NOT NULL)",
            ),
            ("INSERT INTO notes VALUES (?,?,?,?,?)", values),
            _set("notes_head", chain),
        )
        self._noted, self._notes_chain = number, chain

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


def _whole_notes(path: Path, found: list[Any], head: str | None) -> list[Note]:
    notes: list[Note] = []
    chain = ""
    for number, (written, step, kind, value, kept) in enumerate(found, 1):
        note = Note(step, kind, str(value).encode(), kept)
        chain = _note_chain(chain, note)
        if written != number or kept != chain:
            raise InputError(f"{path} has been altered or truncated at note {number}")
        notes.append(note)
    if (head or "") != chain:
        raise InputError(f"{path} has been truncated after note {len(notes)}")
    return notes


def _set(key: str, value: Any) -> tuple[str, tuple[str, str]]:
    return "INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, canonical(value).decode())


def _note_chain(before: str, note: Note) -> str:
    return digest(before, note.step, note.kind, note.value)


def _chain(before: str, row: Row) -> str:
    return digest(before, row.arguments, row.observation, row[:2], row[4:-1])
