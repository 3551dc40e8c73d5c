"""Stand-ins for objects of the other side.

What is done to a proxy is done to the object, by a request; with these exceptions, which are the point of the whole
arrangement:

* ``==``, ``!=``, ``hash`` and ``bool`` are never asked of the object. A proxy equals itself and nothing else, and is
true. So
  an object that claims to equal everything equals nothing.
* ``<`` and its like do not exist, and arithmetic exists between two proxies only: an expected value is never handed to
  an object of the answer by an operator.
* ``in`` iterates here and compares here.
* A question that is answered with yes or no, and that plain values answer (``startswith``, ``isdigit``, ``issubset``),
  is asked of an object only if the test made it by calling its class. What a function returns has to be such a value to
  be asked; else an object whose methods all say yes would pass.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rpc import Peer

__all__ = ["BINARY", "UNARY", "ClassProxy", "NotSupported", "Proxy", "RemoteIterator", "awaited", "peer_and_number"]

_SINGLE_FETCHES, _MOST_AT_ONCE = 16, 512

UNARY: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "repr": repr,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "abs": abs,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "len": len,
    "round": round,
    "reversed": lambda value: list(reversed(value)),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
    ]
}


_QUESTIONS = frozenset(
    name
    for kind in (str, bytes, set, frozenset, int, float)
    for name in dir(kind)
    if name.startswith("is")
    or name in ("startswith", "endswith", "__contains__", "__lt__", "__le__", "__gt__", "__ge__")
)
_HOOKS = ("__array", "__cuda_array", "__dlpack")
"""By these attributes an object tells numpy and its like where its memory is."""


class NotSupported(Exception):
    """The test code does something to an object of the answer that cannot be done from outside."""


class Proxy:
    """An object of the other side. See the module for what is not passed on."""

    __slots__ = ("__weakref__", "_adjudge")

    def __init__(self, peer: Peer, number: int, name: str) -> None:
        object.__setattr__(self, "_adjudge", (peer, number, name))

    def __getattr__(self, name: str) -> Any:
        if name in _QUESTIONS or name.startswith(_HOOKS):
            peer, number, kind = peer_and_number(self)
            if peer.made is not None and (number not in peer.made or name.startswith(_HOOKS)):
                raise AttributeError(f"a {kind} that the program returned is not asked for {name}")
        return _ask(self, "get", self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", self, name, value)

    def __delattr__(self, name: str) -> None:
        _ask(self, "delete", self, name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return _ask(self, "call", self, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        return _ask(self, "get_item", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _ask(self, "set_item", self, key, value)

    def __delitem__(self, key: Any) -> None:
        _ask(self, "delete_item", self, key)

    def __iter__(self) -> Iterator[Any]:
        return iter(_ask(self, "iterate", self))

    def __next__(self) -> Any:
        items, _ = _ask(self, "next", self, 1)
        if not items:
            raise StopIteration
        return items[0]

    def __enter__(self) -> Any:
        return _ask(self, "call_method", self, "__enter__", ())

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _ask(self, "call_method", self, "__exit__", (None, None, None))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self) >> 4

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __dir__(self) -> list[str]:
        return list(_ask(self, "names_of", self))


def _add_operators() -> None:
    def unary(name: str) -> Callable[[Proxy], Any]:
        return lambda self: _ask(self, "unary", self, name)

    def binary(name: str) -> Callable[[Proxy, Any], Any]:
        return lambda self, other: (
            _ask(self, "binary", self, name, other) if isinstance(other, Proxy) else NotImplemented
        )

    for name in UNARY:
        setattr(Proxy, f"__{name}__", unary(name))
    for name in BINARY:
        setattr(Proxy, f"__{name.rstrip('_')}__", binary(name))

    def rounded(self: Proxy, digits: int | None = None) -> Any:
        return (
            round(_ask(self, "unary", self, "float"), digits)
            if digits is not None
            else _ask(self, "unary", self, "round")
        )

    Proxy.__round__ = rounded  # type: ignore[attr-defined]


_add_operators()


class ClassProxy(Proxy):
    """A class of the other side: can be called, asked for attributes, and used with ``isinstance``."""

    __slots__ = ()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        made = _ask(self, "call", self, args, kwargs)
        peer, number, _ = peer_and_number(made) if type(made) is Proxy else (None, 0, "")
        if peer is not None and peer.made is not None:
            peer.made.add(number)
        return made

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Proxy) and bool(_ask(self, "is_instance", instance, self))

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        raise NotSupported(f"the test code derives a class from the answer's class {peer_and_number(self)[2]}")

    def __or__(self, other: Any) -> Any:
        if not (other is None or isinstance(other, type | ClassProxy)):
            return NotImplemented  # a class where a value belongs is the answer's fault
        raise NotSupported("the test code builds a union with a class of the answer")


class RemoteIterator:
    """An iterator of the other side. Fetches items one by one at first, then in growing portions."""

    def __init__(self, peer: Peer, number: int, name: str) -> None:
        self._adjudge = (peer, number, name)
        self._buffer: list[Any] = []
        self._fetched = 0
        self._exhausted = False

    def __iter__(self) -> RemoteIterator:
        return self

    def __next__(self) -> Any:
        if not self._buffer:
            self._fetch()
        if not self._buffer:
            raise StopIteration
        return self._buffer.pop()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._adjudge[0].request("get", self, name)

    def _fetch(self) -> None:
        if self._exhausted:
            return
        count = 1 if self._fetched < _SINGLE_FETCHES else min(_MOST_AT_ONCE, self._fetched)
        items, self._exhausted = self._adjudge[0].request("next", self, count)
        self._fetched += len(items)
        self._buffer = list(reversed(items))


async def awaited(proxy: Proxy) -> Any:
    """A coroutine that runs the other side's coroutine to its end."""
    return _ask(proxy, "await", proxy)


def peer_and_number(value: object) -> tuple[Any, int, str]:
    """Peer, number and type name of a proxy."""
    found: tuple[Any, int, str] = object.__getattribute__(value, "_adjudge")
    return found


def _ask(proxy: Proxy, operation: str, *operands: Any) -> Any:
    peer: Peer = object.__getattribute__(proxy, "_adjudge")[0]
    return peer.request(operation, *operands)


def builtin_exception(name: str) -> type[Exception] | None:
    """The built-in exception class of that name, if it is one that may cross."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, AssertionError):
        return kind
    return None
