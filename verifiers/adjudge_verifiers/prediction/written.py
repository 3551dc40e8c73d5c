"""Read what a model says a value is, without running any of it.

What ``repr`` writes is read: literals, negative numbers, ``set()``, ``Counter({'a': 1})``, ``deque([1], maxlen=3)``,
``float('nan')``, ``Decimal('0.1')`` and the like, nested as they come. The text is parsed, and values are built from
its syntax by the functions of this module; no name in it is ever looked up. Everything else is an *expression* and
raises :class:`NotWritten`.

Text comes from data sets and from answers. Both are bounded: length, depth, and keys with one hash.
"""

from __future__ import annotations

import ast
import collections
import datetime
import decimal
import fractions
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

__all__ = ["MAX_CHARS", "CallText", "NotWritten", "Statement", "arguments", "statement", "value_of"]

MAX_CHARS = 100_000
"""A longer text is not read: a tenth of a second in which the process does nothing else."""
_MAX_DEPTH = 90
_MAX_SAME_HASH = 500
_MAX_DIGITS = 400


class NotWritten(ValueError):
    """The text is not a value; the message says why."""


class CallText:
    """``f(1, x=2)`` as it was written: the name, and its arguments as syntax."""

    def __init__(self, node: ast.Call) -> None:
        self.name = _dotted(node.func)
        self.node = node

    @classmethod
    def of(cls, node: ast.expr) -> CallText:
        """A call with ``node`` as its only argument."""
        return cls(ast.Call(ast.Name("f"), [node], []))

    def values(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments. Raises :class:`NotWritten` if one of them is an expression."""
        args = tuple(value_of(node) for node in self.node.args)
        if any(word.arg is None for word in self.node.keywords):
            raise NotWritten("** in a call")
        return args, {cast("str", word.arg): value_of(word.value) for word in self.node.keywords}

    def source(self) -> str:
        """The arguments as one line of code. Raises :class:`NotWritten`."""
        try:
            written = ast.unparse(ast.Call(ast.Name("f"), self.node.args, self.node.keywords))
        except (RecursionError, ValueError) as error:
            raise NotWritten(f"it cannot be written down again: {type(error).__name__}") from None
        return written[2:-1]


class Statement:
    """What an answer says: that ``call`` is ``value``, or only one of the two."""

    def __init__(self, call: CallText | None, value: ast.expr | None) -> None:
        self.call = call
        self.value = value


def statement(text: str, function: str) -> Statement:
    """``assert f(1) == 2``, ``f(1) == 2``, ``2 == f(1)``, ``x = 2``, ``f(1)`` or ``2``, however much else is before it.

    Raises:
        NotWritten: the text is no Python, says nothing, or asserts more than one thing.
    """
    body = [node for node in _parse(text, "exec").body if not _is_setting(node)]
    claims = [node for node in body if isinstance(node, ast.Assert)] or body[-1:]
    if len(claims) != 1:
        raise NotWritten("it asserts several things" if claims else "it is empty")
    (claim,) = claims
    if isinstance(claim, ast.Assert):
        node: ast.expr | None = claim.test
    elif isinstance(claim, ast.Assign | ast.AnnAssign | ast.Expr):
        node = claim.value
    else:
        node = None
    if node is None:
        raise NotWritten(f"it is a {type(claim).__name__} statement, not a value")
    return _compared(node, function)


def _is_setting(node: ast.stmt) -> bool:
    """Code that a model repeats around its answer."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)


def _compared(node: ast.expr, function: str) -> Statement:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
        left, right = node.left, node.comparators[0]
        if _calls(left, function):
            return Statement(CallText(cast("ast.Call", left)), right)
        if _calls(right, function):
            return Statement(CallText(cast("ast.Call", right)), left)
    if _calls(node, function):
        return Statement(CallText(cast("ast.Call", node)), None)
    return Statement(None, node)


def _calls(node: ast.expr, function: str) -> bool:
    return isinstance(node, ast.Call) and _dotted(node.func) == function


def _dotted(node: ast.expr) -> str:
    """``f``, ``Solution().f``; the empty text for what is neither."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = node.value
        if isinstance(owner, ast.Call) and not owner.args and not owner.keywords and isinstance(owner.func, ast.Name):
            return f"{owner.func.id}().{node.attr}"
        if isinstance(owner, ast.Name):
            return f"{owner.id}.{node.attr}"
    return ""


def arguments(text: str) -> CallText:
    """The arguments ``1, x=2`` as they stand between the parentheses of a call. Raises :class:`NotWritten`."""
    node = cast("ast.Expression", _parse(f"f(\n{text}\n)", "eval")).body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NotWritten("these are not the arguments of a call")
    return CallText(node)


def _parse(text: str, mode: Literal["exec", "eval"]) -> Any:
    if len(text) > MAX_CHARS:
        raise NotWritten(f"it has {len(text):,} characters; {MAX_CHARS:,} is the limit")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip() if mode == "exec" else text, mode=mode)
    except (SyntaxError, ValueError, MemoryError, RecursionError, SystemError) as error:
        raise NotWritten(f"it is not Python: {error}"[:200]) from None


def value_of(node: ast.expr | str, depth: int = 0) -> Any:
    """The value that an expression's syntax (or its text) writes down. Raises :class:`NotWritten`."""
    if isinstance(node, str):
        node = cast("ast.Expression", _parse(node.strip(), "eval")).body
    if depth > _MAX_DEPTH:
        raise NotWritten("it is nested too deeply")
    match node:
        case ast.Constant(value):
            return value
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return _display(node, depth)
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            return _signed(node.op, value_of(operand, depth + 1))
        case ast.BinOp(left, ast.Add() | ast.Sub(), ast.Constant(complex() as imaginary)):
            return _complex(value_of(left, depth + 1), node.op, imaginary)
        case ast.Name("inf" | "nan" as name):
            return float(name)
        case ast.Call(function, args, words):
            return _made(_dotted(function), args, words, depth)
    raise NotWritten("it is an expression, not a value")


def _display(node: ast.List | ast.Tuple | ast.Set | ast.Dict, depth: int) -> Any:
    if isinstance(node, ast.Dict):
        if any(key is None for key in node.keys):
            raise NotWritten("** in a dict")
        keys = _items(cast("list[ast.expr]", node.keys), depth)
        return _dict(zip(keys, _items(node.values, depth), strict=True))
    items = _items(node.elts, depth)
    if isinstance(node, ast.Set):
        return set(_hashable(items))
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _items(nodes: list[ast.expr], depth: int) -> list[Any]:
    return [value_of(node, depth + 1) for node in nodes]


def _hashable(items: Iterable[Any]) -> list[Any]:
    """Items that can be keys, few of them with one hash."""
    found, hashes = list(items), collections.Counter[int]()
    try:
        hashes.update(map(hash, found))
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        raise NotWritten("a key that cannot be hashed") from None
    if hashes and hashes.most_common(1)[0][1] > _MAX_SAME_HASH and len(set(map(repr, found))) > _MAX_SAME_HASH:
        raise NotWritten("too many keys with one hash")
    return found


def _dict(pairs: Iterable[Any]) -> dict[Any, Any]:
    found = list(pairs)
    if any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):
        raise NotWritten("these are not pairs of keys and values")
    _hashable(key for key, _ in found)
    return dict(found)


def _signed(sign: ast.unaryop, value: Any) -> Any:
    if type(value) not in (int, float, complex):
        raise NotWritten("a sign before what is no number")
    return -value if isinstance(sign, ast.USub) else +value


def _complex(real: Any, sign: ast.operator, imaginary: complex) -> complex:
    if type(real) not in (int, float):
        raise NotWritten("it is an expression, not a value")
    try:
        return complex(real) + (imaginary if isinstance(sign, ast.Add) else -imaginary)
    except OverflowError:
        raise NotWritten("a number too large") from None


# ---------------------------------------------------------------------------------------------------------------------
# Constructors that ``repr`` writes. Their arguments are values that have been read already.


def _made(name: str, nodes: list[ast.expr], words: list[ast.keyword], depth: int) -> Any:
    maker = _MAKERS.get(name.rpartition(".")[2]) if "(" not in name else None
    if maker is None or any(word.arg is None for word in words):
        raise NotWritten(f"it calls {name or 'something'}; say what comes out instead"[:100])
    if name.endswith("defaultdict") and nodes and isinstance(nodes[0], ast.Name | ast.Constant):
        nodes = nodes[1:]  # the factory
    args = _items(nodes, depth)
    named = {cast("str", word.arg): value_of(word.value, depth + 1) for word in words}
    try:
        return maker(*args, **named)
    except NotWritten:
        raise
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise NotWritten(f"{name}(...) cannot be made: {error}"[:150]) from None


def _collection(of: Callable[[list[Any]], Any], *, hashed: bool) -> Callable[..., Any]:
    def make(items: Any = ()) -> Any:
        if not isinstance(items, list | tuple | set | frozenset | dict | str):
            raise NotWritten("not a collection of items")
        return of(_hashable(items) if hashed else list(items))

    return make


def _mapping(of: Callable[[dict[Any, Any]], Any]) -> Callable[..., Any]:
    def make(items: Any = (), **named: Any) -> Any:
        return of(_dict(items.items() if isinstance(items, dict) else items) | named)

    return make


def _counter(items: Any = (), **named: Any) -> collections.Counter[Any]:
    if isinstance(items, dict):
        return collections.Counter(items | named)
    return collections.Counter(_hashable(items)) + collections.Counter(named)


def _float(value: Any = 0.0) -> float:
    if not isinstance(value, int | float | str) or len(str(value)) > _MAX_DIGITS:
        raise NotWritten("not a number")
    return float(value)


def _decimal(value: Any = 0) -> decimal.Decimal:
    if not isinstance(value, str | int) or len(str(value)) > _MAX_DIGITS:
        raise NotWritten("not a number")
    number = decimal.Decimal(value)
    if number.is_finite() and abs(number.adjusted()) > 10_000:
        raise NotWritten("a number too large")
    return number


def _fraction(numerator: Any = 0, denominator: Any = 1) -> fractions.Fraction:
    if type(numerator) is not int or type(denominator) is not int:
        raise NotWritten("not two whole numbers")
    return fractions.Fraction(numerator, denominator)


def _deque(items: Any = (), maxlen: Any = None) -> collections.deque[Any]:
    if not isinstance(items, list | tuple) or type(maxlen) not in (int, type(None)):
        raise NotWritten("not a list of items")
    return collections.deque(items, maxlen)


def _bytearray(data: Any = b"") -> bytearray:
    if not isinstance(data, bytes):
        raise NotWritten("not bytes")
    return bytearray(data)


def _none(*args: Any, **named: Any) -> Any:
    raise NotWritten("a time zone")


_MAKERS: dict[str, Callable[..., Any]] = {
    "set": _collection(set, hashed=True),
    "frozenset": _collection(frozenset, hashed=True),
    "list": _collection(list, hashed=False),
    "tuple": _collection(tuple, hashed=False),
    "dict": _mapping(dict),
    "dict_keys": _collection(list, hashed=False),
    "dict_values": _collection(list, hashed=False),
    "dict_items": _collection(list, hashed=False),
    "OrderedDict": _mapping(collections.OrderedDict),
    "defaultdict": _mapping(dict),
    "Counter": _counter,
    "deque": _deque,
    "float": _float,
    "Decimal": _decimal,
    "Fraction": _fraction,
    "bytearray": _bytearray,
    "range": range,
    "date": datetime.date,
    "datetime": datetime.datetime,
    "time": datetime.time,
    "timedelta": datetime.timedelta,
}
"""By the last part of the name: ``collections.Counter`` and ``Counter`` are the same."""
