"""The store of finished runs: one SQLite file that several processes may write and that survives ``kill -9``."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wcll.checks import InputError
from wcll.results.owner import STALE, Owner
from wcll.results.row import Row

APPLICATION = 0x77636C6C  # "wcll": what SQLite's header says the file is

#: Step i leads from schema i to schema i + 1; a new store takes them all. Steps are added, never changed.
MIGRATIONS = (
    """
    CREATE TABLE runs (
        key TEXT PRIMARY KEY, config TEXT NOT NULL, metrics TEXT NOT NULL, history BLOB NOT NULL,
        provenance TEXT NOT NULL, finished REAL NOT NULL
    );
    CREATE TABLE claims (
        key TEXT PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
        started TEXT NOT NULL, heartbeat REAL NOT NULL
    );
    """,
)
BUSY = 60.0  # seconds to wait for another process's write


class Store:
    """Finished runs by key, and claims on those in progress."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        if not create and not path.exists():
            raise InputError("--store", "a store of results", f"{path}, which does not exist", "run a suite first")
        with self._saying():
            self.connection = sqlite3.connect(path.absolute(), timeout=BUSY, isolation_level=None)
            try:
                self._open(create)
            except BaseException:
                self.connection.close()
                raise
        self._file = _identity(path)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def rows(self, keys: Iterable[str] | None = None) -> Iterator[Row]:
        """Finished runs, in the order of their keys' appearance, or all in the order in which they finished."""
        columns = "SELECT key, config, metrics, history, provenance FROM runs"
        with self._saying():
            if keys is None:
                yield from map(_row, self.connection.execute(f"{columns} ORDER BY finished, key"))
                return
            for key in keys:
                yield from map(_row, self.connection.execute(f"{columns} WHERE key = ?", (key,)))

    def data_seen(self, keys: Sequence[str]) -> dict[str, set[str]]:
        """For every data set that finished runs have used, the stamps of the files that they read."""
        seen: dict[str, set[str]] = {}
        query = "SELECT config, provenance FROM runs WHERE key = ?"
        with self._saying():
            for key in keys:
                for config, provenance in self.connection.execute(query, (key,)):
                    stamp = json.loads(provenance)["data"].get("stamp", "")
                    seen.setdefault(json.loads(config)["dataset"], set()).add(stamp)
        return seen

    def finished(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` that are finished."""
        query = "SELECT 1 FROM runs WHERE key = ?"
        with self._saying():
            return {key for key in keys if self.connection.execute(query, (key,)).fetchone()}

    def claim(self, keys: Sequence[str], owner: Owner) -> list[str] | None:
        """Claim what is left of a unit (nothing if all is done); None if a living process has a part of it."""
        with self._writing():
            done = self.finished(keys)
            left = [key for key in keys if key not in done]
            if any(self._taken(key, owner) for key in left):
                return None
            now = time.time()
            self.connection.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?, ?, ?)",
                [(key, owner.token, owner.host, owner.pid, owner.started, now) for key in left],
            )
        return left

    def beat(self, owner: Owner) -> None:
        """Say that the owner is alive."""
        with self._writing():
            self.connection.execute("UPDATE claims SET heartbeat = ? WHERE token = ?", (time.time(), owner.token))

    def claimed(self) -> int:
        """How many runs are claimed, by whomever."""
        with self._saying():
            return int(self.connection.execute("SELECT count(*) FROM claims").fetchone()[0])

    def release(self, owner: Owner) -> None:
        """Give back what the owner has claimed."""
        with self._writing():
            self.connection.execute("DELETE FROM claims WHERE token = ?", (owner.token,))

    def add(self, rows: Iterable[Row]) -> int:
        """Write finished runs, all or none, and drop their claims; returns how many were new."""
        values = [_values(row) for row in rows]
        if _identity(self.path) != self._file:
            remedy = "what was not yet written is lost: run the same command again"
            raise InputError("--store", f"the file {self.path} to stay where it is", "another or none", remedy)
        with self._writing():
            before = self.connection.total_changes
            self.connection.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?)", values)
            added = self.connection.total_changes - before
            self.connection.executemany("DELETE FROM claims WHERE key = ?", [value[:1] for value in values])
        return added

    def _taken(self, key: str, owner: Owner) -> bool:
        """Whether somebody else has claimed the key and lives."""
        claim = self.connection.execute(
            "SELECT token, host, pid, started, heartbeat FROM claims WHERE key = ?", (key,)
        ).fetchone()
        if claim is None or claim[0] == owner.token:
            return False
        token, host, pid, started, heartbeat = claim
        return Owner(token, host, pid, started).alive(owner, time.time() - heartbeat > STALE)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction that has the right to write from its start."""
        with self._saying():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """SQLite's errors in one line."""
        try:
            yield
        except sqlite3.ProgrammingError as error:  # of another thread, or closed
            raise InputError("store", "an open store of this thread", str(error)) from None
        except sqlite3.DatabaseError as error:
            text = str(error)
            if "not a database" in text or "malformed" in text or "encrypted" in text:
                raise self._no_store(f"which is not one ({text})") from None
            remedy = "free space, check the folder, and run the same command again"
            raise InputError("--store", "a file that can be written", f"{self.path} ({text})", remedy) from None

    def _no_store(self, what: str) -> InputError:
        return InputError("--store", "a store of results", f"{self.path}, {what}", "name another file")

    def _open(self, create: bool) -> None:
        version, application, fresh = self._header()
        if application != APPLICATION and not (fresh and create):
            raise self._no_store("a database of something else")
        if version > len(MIGRATIONS):
            newest = f"a store of schema {len(MIGRATIONS)} or older"
            raise InputError("--store", newest, f"{self.path} of schema {version}", "update wcll")
        self._write_ahead()
        if version < len(MIGRATIONS):
            self._migrate()

    def _header(self) -> tuple[int, int, bool]:
        """Schema, kind and whether nothing is in the file, all of one moment: another process may be making it."""
        execute = self.connection.execute
        execute("BEGIN")
        try:
            version = execute("PRAGMA user_version").fetchone()[0]
            application = execute("PRAGMA application_id").fetchone()[0]
            return version, application, not execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        finally:
            execute("ROLLBACK")

    def _write_ahead(self) -> None:
        """Switch to WAL; SQLite does not wait for others here, so this does."""
        deadline = time.monotonic() + BUSY
        while True:
            try:
                if self.connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] == "wal":
                    return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def _migrate(self) -> None:
        """Bring the schema up to date, in one transaction: another process may be doing the same."""
        with self._writing():
            version = self.connection.execute("PRAGMA user_version").fetchone()[0]
            for step in MIGRATIONS[version:]:
                for statement in filter(str.strip, step.split(";")):
                    self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")


def _values(row: Row) -> tuple[Any, ...]:
    history = zlib.compress(json.dumps(row.history, separators=(",", ":")).encode(), 1)
    return (row.key, *map(json.dumps, (row.config, row.metrics)), history, json.dumps(row.provenance), time.time())


def _row(values: tuple[str, str, str, bytes, str]) -> Row:
    key, config, metrics, history, provenance = values
    try:
        return Row(key, *(json.loads(part) for part in (config, metrics, zlib.decompress(history), provenance)))
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        remedy = "export the others with --where, or run into a new store"
        raise InputError("--store", "whole runs", f"the damaged run {key} ({error})", remedy) from None


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path names now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
