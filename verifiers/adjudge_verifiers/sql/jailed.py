"""What runs in the jail: one query on one database, rows out as JSON.

This file is the whole program; its text is sent into the jail and imports nothing of adjudge. On standard input it
gets a line of JSON and, behind it, the database: the bytes of a file, or an SQL script that makes one. The query runs
on a read-only, immutable connection under an authorizer that knows reading and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from typing import Any

FILE = "database.sqlite"
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
NAMES = {
    getattr(sqlite3, name): name.removeprefix("SQLITE_").replace("_", " ")
    for name in ("SQLITE_ATTACH", "SQLITE_DETACH", "SQLITE_PRAGMA", "SQLITE_INSERT", "SQLITE_UPDATE", "SQLITE_DELETE")
}
STEP = 20_000
LONGEST_VALUE = 16 << 20


class Fault(Exception):
    """The query was not run to its end."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Guard:
    """Allows reading; remembers what it has refused."""

    def __init__(self) -> None:
        self.refused = ""

    def __call__(self, action: int, first: str | None, second: str | None, *rest: Any) -> int:
        if action in ALLOWED and not (action == sqlite3.SQLITE_FUNCTION and second in FORBIDDEN_FUNCTIONS):
            return sqlite3.SQLITE_OK
        self.refused = NAMES.get(action) or (second if action == sqlite3.SQLITE_FUNCTION else "") or "a statement"
        return sqlite3.SQLITE_DENY


def build(script: bytes) -> None:
    """Make the database from the data set's own statements."""
    connection = sqlite3.connect(FILE, isolation_level=None)

    def no_other_files(action: int, *rest: Any) -> int:
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK

    try:
        connection.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;")
        connection.set_authorizer(no_other_files)
        text = script.decode("utf-8", "surrogatepass")
        connection.executescript(text)
        if connection.in_transaction:
            connection.commit()
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise Fault("database", f"its script fails: {error}") from None
    finally:
        connection.close()


def opened(max_value: int) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{FILE}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        raise Fault("database", f"it cannot be opened: {error}") from None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_value)
    return connection


def cell(value: Any) -> Any:
    return {"blob": value.hex()} if isinstance(value, bytes) else value


def read(connection: sqlite3.Connection, query: str, max_rows: int, deadline_s: float) -> dict[str, Any]:
    """Columns and rows of the query. Raises :class:`Fault`."""
    guard = Guard()
    connection.set_authorizer(guard)
    connection.set_progress_handler(lambda: time.process_time() > deadline_s, STEP)
    kind = "syntax"
    try:
        connection.execute(f"EXPLAIN {query}").close()
        kind = "runtime"
        cursor = connection.execute(query)
        if cursor.description is None:
            raise Fault("nothing", "it is no query")
        rows = cursor.fetchmany(max_rows + 1)
    except (sqlite3.Warning, sqlite3.ProgrammingError) as error:
        raise Fault("several" if "one statement" in str(error) else "syntax", str(error)) from None
    except sqlite3.Error as error:
        if guard.refused:
            raise Fault("forbidden", guard.refused) from None
        if time.process_time() > deadline_s:
            raise Fault("deadline", str(error)) from None
        raise Fault(kind, str(error)) from None
    except (ValueError, OverflowError) as error:  # a NUL, a lone surrogate
        raise Fault("syntax", str(error)) from None
    return {"columns": len(cursor.description), "rows": [[cell(value) for value in row] for row in rows[:max_rows]],
            "more": len(rows) > max_rows}  # fmt: skip


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    database = sys.stdin.buffer.read()
    with contextlib.suppress(FileNotFoundError):
        os.unlink(FILE)
    try:
        if request["script"]:
            build(database)
        else:
            with open(FILE, "wb") as file:
                file.write(database)
        reply = read(opened(LONGEST_VALUE), request["query"], request["max_rows"], request["deadline_s"])
    except Fault as fault:
        reply = {"fault": fault.kind, "detail": str(fault)[:500]}
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
