"""The durable record of a run: a SQLite file, one transaction a call, written before the observation is returned.

``calls(step, name, arguments, observation, module, goal, decision, position, context_tokens, chain)`` and
``meta(key, value)``. ``chain`` is the SHA-256 over the previous row's chain and this row, and ``meta`` holds the
newest one, so an altered, missing or truncated row is found when the file is opened.
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from skillhorizon.core.errors import InputError

FORMAT = 1
_COLUMNS = "step, name, arguments, observation, module, goal, decision, position, context_tokens, chain"


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
    chain: str


class Journal:
    """Append-only. ``durable=True`` survives a power cut (synchronous FULL), else a killed process."""

    def __init__(self, path: Path, connection: sqlite3.Connection, meta: dict[str, Any], rows: list[Row]) -> None:
        self.path = path
        self.meta = meta
        self.rows = rows
        self._connection = connection
        self._chain = rows[-1].chain if rows else ""

    @classmethod
    def create(cls, path: str | Path, meta: dict[str, Any], durable: bool = False) -> Journal:
        """A new journal; refuses to touch a file that exists."""
        path = Path(path)
        if path.exists():
            raise InputError(f"{path} exists already; resume it or choose another file")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} is not a folder")
        connection = cls._open(path, durable)
        meta = {**meta, "journal_format": FORMAT}
        with connection:
            connection.execute("BEGIN")
            connection.execute(
                "CREATE TABLE calls(step INTEGER PRIMARY KEY, name TEXT NOT NULL, arguments TEXT NOT NULL, "
                "observation TEXT NOT NULL, module TEXT, goal TEXT, decision INTEGER NOT NULL, "
                "position INTEGER NOT NULL, context_tokens INTEGER, chain TEXT NOT NULL)"
            )
            connection.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL)")
            rows = [(key, msgspec.json.encode(value).decode()) for key, value in meta.items()]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", [*rows, ("head", '""')])
        return cls(path, connection, meta, [])

    @classmethod
    def load(cls, path: str | Path, durable: bool = False) -> Journal:
        """An existing journal, verified row by row; raises ``InputError`` for anything that is not one, whole."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"no journal at {path}")
        try:
            connection = cls._open(path, durable)
            meta = {k: msgspec.json.decode(v) for k, v in connection.execute("SELECT key, value FROM meta")}
            found = connection.execute(f"SELECT {_COLUMNS} FROM calls ORDER BY step").fetchall()
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise InputError(f"{path} is not a whole journal ({error})") from None
        if meta.get("journal_format") != FORMAT:
            raise InputError(f"{path} is a journal of another format ({meta.get('journal_format')}, not {FORMAT})")
        rows: list[Row] = []
        chain = ""
        for number, values in enumerate(found, 1):
            row = Row(*values)._replace(arguments=str(values[2]).encode(), observation=str(values[3]).encode())
            chain = _chain(chain, row)
            if row.step != number or row.chain != chain:
                raise InputError(f"{path} has been altered or truncated at call {number}")
            rows.append(row)
        if meta.pop("head", None) != chain:
            raise InputError(f"{path} has been truncated after call {len(rows)}")
        return cls(path, connection, meta, rows)

    def append(self, row: Row) -> None:
        """Write one call in one transaction; returns once it would survive a killed process."""
        self._chain = _chain(self._chain, row)
        values = (*row[:2], row.arguments.decode(), row.observation.decode(), *row[4:-1], self._chain)
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.execute(f"INSERT INTO calls({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", values)
            self._connection.execute("UPDATE meta SET value = ? WHERE key = 'head'", (f'"{self._chain}"',))

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def _open(path: Path, durable: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        return connection


def _chain(before: str, row: Row) -> str:
    state = hashlib.sha256(before.encode())
    for part in row[:-1]:
        state.update(part if isinstance(part, bytes) else str(part).encode())
        state.update(b"\x1f")
    return state.hexdigest()
