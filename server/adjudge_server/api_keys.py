"""API keys: read once, kept as hashes, never shown.

A key is written ``KEY`` or ``NAME=KEY``, and ``KEY`` itself or as ``sha256:HEX``, so that a configuration file need not
hold the secret. Only the hash stays in memory; the name is what logs and metrics may say.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ApiKey", "name_of_key", "parse_api_key"]

_NAMED = re.compile(r"([A-Za-z0-9_.-]{1,64})=(.*)", re.DOTALL)
_HASHED = re.compile(r"sha256:([0-9a-fA-F]{64})")


class ApiKey(BaseModel):
    """One key: who it belongs to, and its SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str
    sha256: str = Field(repr=False, pattern=r"^[0-9a-f]{64}$")

    def __str__(self) -> str:
        return self.name


def parse_api_key(text: Any, unnamed: str = "key") -> ApiKey:
    """Read a key as it is written in a flag, the environment or the file; ``unnamed`` is the name if it has none.

    Raises ``ValueError``, which never echoes the text.
    """
    if isinstance(text, ApiKey):
        return text
    if not isinstance(text, str):
        raise ValueError("an API key is a string: KEY, NAME=KEY or NAME=sha256:HEX")
    name, secret = "", text.strip()
    named = _NAMED.fullmatch(secret)
    if named and named[2].strip("="):  # 'c2VjcmV0==' is a key with padding, not a key called '=' of 'c2VjcmV0'
        name, secret = named[1], named[2]
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError("an API key is one word of printable ASCII characters, and not empty")
    hashed = _HASHED.fullmatch(secret)
    if secret.startswith("sha256:") and not hashed:
        raise ValueError("an API key that starts with 'sha256:' goes on with 64 hexadecimal digits")
    digest = hashed[1].lower() if hashed else hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
    return ApiKey(name=name or unnamed, sha256=digest)


def name_of_key(keys: Iterable[ApiKey], presented: str) -> str | None:
    """The name of the key that ``presented`` is, or ``None``. Takes as long for a wrong key as for a right one."""
    digest = hashlib.sha256(presented.encode("utf-8", "surrogatepass")).hexdigest()
    found = None
    for key in keys:
        if hmac.compare_digest(key.sha256, digest):
            found = key.name
    return found
