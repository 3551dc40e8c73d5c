"""What test code finds when it imports the program: modules whose names are looked up over there.

The names under which the program may be imported are given by the test's side. ``*`` among them stands for whatever
else this interpreter does not have: it is asked of the program, whose own files are modules too. A module that this
interpreter has is never taken from the program, so that an answer cannot bring a ``json`` or a ``pytest`` of its own.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .examiner import ExaminerPeer

__all__ = ["provide"]


def provide(peer: ExaminerPeer, names: Sequence[str]) -> None:
    """Let ``names`` be imported. The first one, and every other that is named, is the program's main module."""
    for name in names:
        if name != "*":
            sys.modules[name] = _RemoteModule(peer, name, "")
            parent, _, child = name.rpartition(".")
            while parent:
                sys.modules.setdefault(parent, types.ModuleType(parent)).__path__ = []
                setattr(sys.modules[parent], child, sys.modules[f"{parent}.{child}"])
                parent, _, child = parent.rpartition(".")
    if "*" in names:
        sys.meta_path.append(_Finder(peer))


class _RemoteModule(types.ModuleType):
    """One module of the program. ``there``: its name there; empty for the main one."""

    def __init__(self, peer: ExaminerPeer, name: str, there: str) -> None:
        super().__init__(name)
        self.__dict__["_where"] = (peer, there)

    def __getattr__(self, name: str) -> Any:
        peer, there = self.__dict__["_where"]
        if name == "__all__":
            return peer.request("public_names", there)
        if name.startswith("__"):
            raise AttributeError(name)
        found = peer.request("globals", [name], there)
        if name not in found:
            if there and peer.request("has_module", f"{there}.{name}"):
                raise AttributeError(name)  # `from package import module`: to be imported
            peer.not_found.add(name)
            raise NameError(f"name {name!r} is not defined", name=name)
        self.__dict__[name] = found[name]
        return found[name]

    def __setattr__(self, name: str, value: Any) -> None:
        """``monkeypatch.setattr(solution, "limit", 3)`` changes the program."""
        self.__dict__[name] = value
        if not (name.startswith("__") or isinstance(value, types.ModuleType)):  # the import system sets those
            peer, there = self.__dict__["_where"]
            peer.request("set_global", name, value, there)

    def __delattr__(self, name: str) -> None:
        peer, there = self.__dict__["_where"]
        self.__dict__.pop(name, None)
        peer.request("delete_global", name, there)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asks the program for modules that are not here."""

    def __init__(self, peer: ExaminerPeer) -> None:
        self._peer = peer

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not self._peer.request("has_module", name):
            self._peer.not_found.add(name)
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _RemoteModule(self._peer, spec.name, spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None
