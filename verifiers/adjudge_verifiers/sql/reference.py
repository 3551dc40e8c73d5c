"""The right query, and the databases that it runs on.

Native form: ``query`` and ``databases``, each ``{"file": base64 of an SQLite file}`` or ``{"script": SQL text}``. One
database may stand beside the query: ``database``, ``script``, or ``schema`` with ``inserts``. The query may have the
name that it has in Spider (``query``) or BIRD (``SQL``).
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from ..code.literals import parse_json
from .rows import Table

__all__ = ["Database", "SqlReference"]

_QUERY = ("query", "SQL", "sql", "gold_sql", "gold_query", "gold", "answer", "ground_truth")
_ONE = ("database", "db", "sqlite", "db_file", "file")
_BESIDE = frozenset(
    """question question_id evidence difficulty db_id query_toks query_toks_no_value question_toks sql_complexity id
    external_knowledge instance_id db_path data_source""".split()  # noqa: SIM905
)
_MAGIC = b"SQLite format 3\0"
_MAGIC_64 = "U1FMaXRlIGZvcm1hdCAz"
_MAX_FILE_BYTES = 64 << 20


class Database(BaseModel):
    """An SQLite file in base64, or a script that makes one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str | None = Field(default=None, description="An SQLite 3 file in base64.")
    script: str | None = Field(default=None, description="SQL statements that make the tables and their rows.")
    _content: bytes = PrivateAttr(default=b"")

    @model_validator(mode="before")
    @classmethod
    def _from_parts(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"file" if "".join(value[:40].split()).startswith(_MAGIC_64) else "script": value}
        if isinstance(value, dict) and "schema" in value:
            rest = {key: item for key, item in value.items() if key not in ("schema", "inserts")}
            return {**rest, "script": ";\n".join(_statements(value["schema"]) + _statements(value.get("inserts")))}
        return value

    @model_validator(mode="after")
    def _one_form(self) -> Database:
        if (self.file is None) == (self.script is None):
            raise ValueError("a database is a `file` in base64 or a `script`")
        if self.script is not None:
            self._content = self.script.encode("utf-8", "surrogatepass")
            return self
        try:
            self._content = base64.b64decode("".join((self.file or "").split()), validate=True)
        except binascii.Error as error:
            raise ValueError(f"`file` is not base64: {error}") from None
        if not self._content.startswith(_MAGIC):
            raise ValueError("`file` is not an SQLite 3 database")
        if len(self._content) > _MAX_FILE_BYTES:
            raise ValueError(f"the database has more than {_MAX_FILE_BYTES >> 20} MiB")
        return self

    @property
    def content(self) -> bytes:
        return self._content


def _statements(value: Any) -> list[str]:
    """Text, or a list of statements."""
    if value is None:
        return []
    parts = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("`schema` and `inserts` are SQL text or lists of it")
    return [part.strip().rstrip(";") for part in parts if part.strip()]


class SqlReference(BaseModel):
    """A right query and its databases; an answer must agree with it on all of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: str = Field(min_length=1, max_length=100_000, description="The right query.")
    databases: list[Database] = Field(min_length=1, max_length=100, description="SQLite databases.")
    _tables: dict[int, list[Table]] = PrivateAttr(default_factory=dict)

    @property
    def tables(self) -> dict[int, list[Table]]:
        """What the query gives, by the limit of rows; kept for the next answer."""
        return self._tables

    @model_validator(mode="before")
    @classmethod
    def _from_any_layout(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = parse_json(value)
        if not isinstance(value, dict):
            return value
        found = {key: item for key, item in value.items() if key not in _BESIDE}
        for key in _QUERY:
            item = found.pop(key, None)
            if isinstance(item, str) and "query" not in found:
                found["query"] = item
                # Spider has a parsed form under `sql` beside the text under `query`
        databases = list(found.pop("databases", None) or [])
        for key in _ONE:
            if found.get(key) is not None:
                databases.append(found.pop(key))
        if "schema" in found:
            databases.append({"schema": found.pop("schema"), "inserts": found.pop("inserts", None)})
        if "script" in found:
            databases.append({"script": found.pop("script")})
        return {**found, "databases": databases}
