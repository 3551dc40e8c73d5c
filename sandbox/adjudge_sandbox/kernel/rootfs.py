"""What a jailed program sees of the file system.

A small read-only tmpfs as root; in it, read-only binds of ``/usr`` (with ``/bin``, ``/lib``... as on the host) and of
the running interpreter, wherever that is installed; a private ``/proc`` with processes only; four harmless devices; a
handful of files in ``/etc`` that belong to nobody. Nothing of the host's ``/etc``, ``/home``, ``/var``, ``/run`` or of
the server's folder is there. The root is built once (:func:`build`); ``/proc``, ``/tmp`` and ``/dev/shm`` are new for
every run (:func:`mount_proc`, :func:`mount_scratch`), on top of a copy of the tree of mounts.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TypedDict

from . import landlock
from . import namespaces as ns

__all__ = ["Plan", "build", "mount_proc", "mount_scratch", "plan", "rules", "shown_at"]

_SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt/python", "etc/alternatives")
_SYSTEM_FILES = ("etc/ld.so.cache", "etc/localtime")
_DEVICES = ("null", "zero", "urandom", "random")
_ETC = {
    "passwd": "nobody:x:65534:65534:nobody:/tmp:/bin/sh\n",
    "group": "nogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_STAGING = ("/mnt", "/media", "/srv", "/sys", "/home", "/tmp")
_MAX_SCRATCH_FILES = 16_384


class Plan(TypedDict):
    """What to mount, worked out once per server."""

    staging: str
    folders: list[str]
    files: list[str]
    links: dict[str, str]


def plan() -> Plan:
    """Look at this host and interpreter. Raises ``OSError`` if there is no place to build a root."""
    folders, links = [], {}
    for name in _SYSTEM_FOLDERS:
        path = f"/{name}"
        if os.path.islink(path):
            links[path] = os.readlink(path)
        elif os.path.isdir(path):
            folders.append(path)
    prefixes = (sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix)
    for prefix in dict.fromkeys(path for name in prefixes for path in (name, os.path.realpath(name))):
        for path in _prefix_folders(prefix):
            if not any(_is_inside(path, known) for known in folders):
                folders.append(path)
    files = [f"/{name}" for name in _SYSTEM_FILES if os.path.isfile(f"/{name}")]
    for staging in _STAGING:
        if os.path.isdir(staging) and not os.path.islink(staging) and not any(_is_inside(f, staging) for f in folders):
            return Plan(staging=staging, folders=folders, files=files, links=links)
    raise OSError(f"no folder of {', '.join(_STAGING)} can carry the root of a jail")


def _prefix_folders(prefix: str) -> list[str]:
    """A prefix as a whole, unless it is a folder that holds other things too (``/``, a home)."""
    home = os.path.realpath(os.path.expanduser("~"))
    if prefix != "/" and not _is_inside(home, prefix) and not _is_inside(os.getcwd(), prefix):
        return [prefix]
    candidates = [os.path.join(prefix, name) for name in ("bin", "lib", "lib64", "include")]
    return [path for path in candidates if os.path.isdir(path) and not os.path.islink(path)]


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def shown_at(path: str) -> str:
    """Where a jail shows a folder of the host: in its place, but for one below a folder that each run gets anew."""
    return f"{_MOVED}{path}" if any(_is_inside(path, folder) for folder in ("/tmp", "/dev/shm")) else path


_MOVED = "/opt/adjudge"


def rules(what: Plan, scratch: str) -> landlock.Rules:
    """The same view of the file system by Landlock, where nothing can be mounted. What is not in it can be named, and
    its attributes seen, but not opened."""
    shown = (
        *what["folders"],
        *what["files"],
        "/etc/passwd",
        "/etc/group",
        "/etc/nsswitch.conf",
        "/etc/hosts",
        "/etc/ssl/openssl.cnf",
    )
    own = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", *_KERNEL_FIGURES)
    devices = tuple(f"/dev/{name}" for name in _DEVICES)
    return landlock.Rules(read=(*shown, *own), write=(scratch,), use=devices)


_KERNEL_FIGURES = ("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count", "/proc/sys/kernel/threads-max")


def build(what: Plan) -> None:
    """Build the root and move into it. In new mount and pid namespaces, with CAP_SYS_ADMIN over both.

    Its ``/proc`` is that of the caller: below a user namespace the kernel lets nobody mount one who sees none.
    """
    root = what["staging"]
    ns.mount("none", "/", None, ns.MS_REC | ns.MS_PRIVATE)
    ns.mount("tmpfs", root, "tmpfs", ns.MS_NOSUID | ns.MS_NODEV, "size=1m,nr_inodes=2048,mode=755")
    for path in what["folders"]:
        target = root + shown_at(path)
        os.makedirs(target, mode=0o755, exist_ok=True)
        ns.mount(path, target, None, ns.MS_BIND | ns.MS_REC)
        ns.make_read_only(target)
    for folder in ("/etc", "/dev/shm", "/proc", "/tmp"):
        os.makedirs(root + folder, mode=0o755, exist_ok=True)
    for path in what["files"]:
        _bind_file(path, root + path)
        ns.make_read_only(root + path)
    for name in _DEVICES:
        _bind_file(f"/dev/{name}", f"{root}/dev/{name}")
    for path, target in {**what["links"], **_DEV_LINKS}.items():
        with contextlib.suppress(FileExistsError):
            os.symlink(target, root + path)
    for name, text in _ETC.items():
        with open(f"{root}/etc/{name}", "w") as file:
            file.write(text)
    mount_proc(root + "/proc")
    ns.pivot_root(root)
    ns.mount("none", "/", None, ns.MS_REMOUNT | ns.MS_BIND | ns.MS_RDONLY | ns.MS_NOSUID | ns.MS_NODEV)


_DEV_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
}


def _bind_file(source: str, target: str) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    ns.mount(source, target, None, ns.MS_BIND)


def mount_proc(target: str = "/proc") -> None:
    """A /proc of this pid namespace. Where the host's own is partly covered (containers) it is refused: then none."""
    for options in (b"subset=pid", None):
        try:
            ns.mount_bytes(b"proc", target.encode(), b"proc", _OF_PROC, options)
            return
        except OSError:
            continue
    ns.mount("tmpfs", target, "tmpfs", _OF_PROC | ns.MS_RDONLY, "size=4k,nr_inodes=2")


_OF_PROC = ns.MS_NOSUID | ns.MS_NODEV | ns.MS_NOEXEC
_OF_SCRATCH = ns.MS_NOSUID | ns.MS_NODEV


def mount_scratch(size_mib: int, uid: int, gid: int) -> None:
    """New, empty /tmp and /dev/shm of ``size_mib`` each, owned by ``uid``; in a new mount namespace."""
    options = b"size=%dm,nr_inodes=%d,mode=755,uid=%d,gid=%d" % (size_mib, _MAX_SCRATCH_FILES, uid, gid)
    ns.mount_bytes(b"tmpfs", b"/tmp", b"tmpfs", _OF_SCRATCH, options)
    ns.mount_bytes(b"tmpfs", b"/dev/shm", b"tmpfs", _OF_SCRATCH, options)
