"""Where the client's settings come from: an argument, else the environment, else a default.

============================ ======================== ========= =====================================================
argument                     environment              default   meaning
============================ ======================== ========= =====================================================
``base_url``                 ``ADJUDGE_BASE_URL``     loopback  address of the server, port 8080
``api_key``                  ``ADJUDGE_API_KEY``      none      sent as a bearer token
``timeout_s``                ``ADJUDGE_TIMEOUT_S``    600       seconds for one whole call, its retries included
``max_retries``              ``ADJUDGE_MAX_RETRIES``  2         further tries of a request that may yet succeed
``max_concurrency``          none                     16        requests in flight at a time, for each event loop
``retry_failed``             none                     true      send tasks again whose verdict may yet become better
============================ ======================== ========= =====================================================

The environment is read when a client is made, never at import.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from .errors import ConfigurationError

__all__ = ["DEFAULT_BASE_URL", "Settings"]

DEFAULT_BASE_URL = "http://127.0.0.1:8080"
DEFAULT_TIMEOUT_S = 600.0
DEFAULT_MAX_RETRIES = 2
DEFAULT_MAX_CONCURRENCY = 16

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Settings:
    """Checked settings of one client. Printing it does not show the key."""

    base_url: str = DEFAULT_BASE_URL
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_retries: int = DEFAULT_MAX_RETRIES
    max_concurrency: int = DEFAULT_MAX_CONCURRENCY
    retry_failed: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", _checked_url(self.base_url))
        _check_key(self.api_key)
        _check(self.timeout_s > 0, "timeout_s", self.timeout_s, "a number of seconds above 0")
        _check(self.max_retries >= 0, "max_retries", self.max_retries, "0 or more")
        _check(self.max_concurrency >= 1, "max_concurrency", self.max_concurrency, "1 or more")

    @classmethod
    def resolve(
        cls,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float | None = None,
        max_retries: int | None = None,
        max_concurrency: int | None = None,
        retry_failed: bool = True,
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Fill what is ``None`` from the environment. Raises :class:`ConfigurationError` naming the bad setting."""
        env = os.environ if environ is None else environ
        return cls(
            base_url=base_url or env.get("ADJUDGE_BASE_URL") or DEFAULT_BASE_URL,
            api_key=api_key or env.get("ADJUDGE_API_KEY") or None,
            timeout_s=_number(timeout_s, env, "ADJUDGE_TIMEOUT_S", float, DEFAULT_TIMEOUT_S),
            max_retries=_number(max_retries, env, "ADJUDGE_MAX_RETRIES", int, DEFAULT_MAX_RETRIES),
            max_concurrency=DEFAULT_MAX_CONCURRENCY if max_concurrency is None else max_concurrency,
            retry_failed=retry_failed,
        )

    def changed(self, **changes: Any) -> Settings:
        """A copy with other values. Raises :class:`ConfigurationError` for a name that is no setting."""
        unknown = sorted(set(changes) - set(self.__slots__))
        if unknown:
            raise ConfigurationError(f"There is no client setting {unknown[0]!r}. Known: {', '.join(self.__slots__)}.")
        return replace(self, **changes)

    @property
    def is_loopback(self) -> bool:
        """Is the server on this machine? Then proxies from the environment are not for it."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "localhost" or host.startswith("127.") or host == "::1"


def _number(given: N | None, env: Mapping[str, str], name: str, parse: Callable[[str], N], default: N) -> N:
    if given is not None:
        return given
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        return parse(text)
    except ValueError:
        raise ConfigurationError(f"The environment variable {name} is {text[:50]!r}, which is not a number.") from None


def _check(holds: bool, name: str, value: float, wanted: str) -> None:
    if not holds or math.isnan(value):
        raise ConfigurationError(f"The client setting {name} is {value!r}; it has to be {wanted}.")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        usable = usable and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"base_url is {url!r}; it has to be like {DEFAULT_BASE_URL!r} (http or https, no query). "
            "Set it by argument or by ADJUDGE_BASE_URL."
        )
    return url.rstrip("/")


def _check_key(key: str | None) -> None:
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigurationError("api_key has characters that cannot be sent; check ADJUDGE_API_KEY for a line break.")
