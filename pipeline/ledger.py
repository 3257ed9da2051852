"""What was measured, kept outside DVC's outputs, so that a run that is killed repeats nothing.

One SQLite file in WAL mode, written by the parent process only. Keys are hashes of everything that a value depends
on; values are JSON texts. A value that has been put survives the death of the process at any moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import JsonValue

from pipeline.errors import UserError
from schemas.record import content_id

BATCH = 500
"""Keys of one query: below SQLite's limit of variables."""
BUSY_SECONDS = 30.0
ELSEWHERE = "set QUARRY_LEDGER to a file on a local disk, in a folder that you may write to"
SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    key TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    created TEXT NOT NULL DEFAULT (datetime('now'))
) WITHOUT ROWID
"""


def ledger_key(kind: str, *parts: JsonValue) -> str:
    """The key of a value that depends on exactly these parts."""
    return content_id([kind, *parts])


def _lock(path: Path) -> int:
    """A descriptor that holds the ledger's lock file; the lock dies with this process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"the ledger {path} cannot be opened ({error.strerror}): {ELSEWHERE}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise UserError(f"the ledger {path} is in use by another run: wait for its end, or {ELSEWHERE}") from error
        raise UserError(f"the ledger {path} cannot be locked ({error.strerror}): {ELSEWHERE}") from error
    return lock


def _connect(path: Path) -> sqlite3.Connection:
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(SCHEMA)
        connection.executescript("BEGIN IMMEDIATE; ROLLBACK")  # a file that cannot be written is found now
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise UserError(f"the ledger {path} cannot be used ({error}): move that file away, or {ELSEWHERE}") from error
    return connection


class Ledger:
    """An open ledger. Use `Ledger.open`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: int) -> None:
        self.path, self._connection, self._lock = path, connection, lock

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open or create the ledger at an absolute path, for this process alone. Raises `UserError`."""
        lock = _lock(path)
        try:
            return cls(path, _connect(path), lock)
        except BaseException:
            os.close(lock)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let others use it."""
        self._connection.close()
        with contextlib.suppress(OSError):
            os.close(self._lock)

    def get(self, key: str) -> str | None:
        """The JSON text at a key, or null. Raises `UserError` for a damaged file."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, str]:
        """The JSON texts of those keys that are known. Raises `UserError` for a damaged file."""
        wanted = list(keys)
        found: dict[str, str] = {}
        for start in range(0, len(wanted), BATCH):
            part = wanted[start : start + BATCH]
            marks = ",".join("?" * len(part))
            found.update(self._run(f"SELECT key, value FROM entries WHERE key IN ({marks})", part))
        return found

    def put(self, key: str, kind: str, value: str) -> None:
        """Keep a JSON text. Raises `UserError` where the disk is full or gone."""
        self._run("INSERT OR REPLACE INTO entries (key, kind, value) VALUES (?, ?, ?)", [key, kind, value])

    def _run(self, statement: str, values: Sequence[str]) -> list[tuple[str, str]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None:  # not SQLite's word on the file, but a misuse of it
                raise
            damaged = code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            remedy = "move that file away" if damaged else "free space on its disk or make it writable"
            raise UserError(f"the ledger {self.path} cannot be used ({error}): {remedy}, and run again") from error

    @staticmethod
    def peek(path: Path) -> dict[str, int]:
        """How many values of each kind a ledger holds, also while a run is using it. Raises `UserError`."""
        if not path.exists():
            return {}
        try:
            with contextlib.closing(
                sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
            ) as reader:
                return dict(reader.execute("SELECT kind, COUNT(*) FROM entries GROUP BY kind ORDER BY kind"))
        except sqlite3.Error as error:
            raise UserError(f"the ledger {path} cannot be read ({error}): move that file away") from error
