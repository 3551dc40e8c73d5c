"""The system call filter of a jail: a deny list as a classic BPF program, built by hand.

A deny list and not an allow list, because ordinary programs use several hundred calls; the namespaces are the wall, and
the filter takes away what a wall cannot hold: calls that build new namespaces or mounts, that reach into other
processes, that are not namespaced at all (vsock, keyrings, the clock, the host's quota of asynchronous input and
output), and the large young interfaces that most kernel exploits of the last years began with (io_uring, bpf,
userfaultfd, perf). A refused call returns EPERM, as it would for an ordinary user; a call of another architecture kills
the process.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import platform
import struct

from . import namespaces

__all__ = ["build", "install"]

_LOAD, _JUMP, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_SET, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_CLONE_PARENT = 0x8000
_FIRST_ARGUMENT, _SECOND_ARGUMENT = 16, 24  # their low halves
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_DENY, _UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that fits into the argument of clone
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_F_SETLEASE, _F_NOTIFY = 1024, 1026
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# name: (x86_64, aarch64); None where the architecture has no such call
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "fanotify_init": (300, 262),
    "inotify_init": (253, None),  # what others do to the files that all jails share
    "inotify_init1": (294, 26),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "sched_setaffinity": (203, 122),
    "personality": (135, 92),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "nfsservctl": (180, 42),
}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_SOCKET = {"x86_64": 41, "aarch64": 198}
_FCNTL = {"x86_64": 72, "aarch64": 25}


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


# What the namespaces keep apart, and Landlock does not: sockets of all kinds (pairs of them are made otherwise), System
# V and POSIX IPC, and watching files.
_DENIED_ALONE: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
}
# What would outlive the processes of a test in a jail that is used for the next one too. Other things are counted as
# files there, or end with whoever holds them.
_DENIED_BESIDE_A_STEM = {name: _DENIED_ALONE[name] for name in ("shmget", "semget", "msgget", "mq_open")}
# Calls by which a test could leave its mark on the process that the next test is forked from, which has its user: the
# number of the process is the first argument, or the second after a kind of which 0 (or, for ioprio_set, 1) stands for
# a process.
_ON_A_PROCESS: dict[str, tuple[int | None, int | None]] = {
    "prlimit64": (302, 261),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
}
_ON_A_KIND: dict[str, tuple[int, tuple[int | None, int | None]]] = {
    "setpriority": (0, (141, 140)),
    "ioprio_set": (1, (251, 30)),
}
# What the owner of files and processes may do, and a program that runs as the very user of the server must not:
# attributes of files, and the scheduling of other processes.
_DENIED_TO_SAME_USER: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}


@functools.cache
def build(*, alone: bool = False, same_user: bool = False, stem: int = 0) -> bytes:
    """The filter for this machine. Raises ``OSError`` on an architecture without a table.

    ``alone``: no namespace stands behind it. ``same_user``: nor does another user. ``stem``: the number of a process in
    the jail that several tests are forked from.

    A search tree over the numbers of the calls: every call of the program goes through it, and so does every number of
    the kernel's table when the filter is installed (the kernel works out which calls are always allowed).
    """
    machine = platform.machine()
    if machine not in _AUDIT_ARCHITECTURE:
        raise OSError(f"no system call filter for {machine}")
    column = list(_AUDIT_ARCHITECTURE).index(machine)
    verdicts = {number: _DENIED_LEAF for names in _DENIED.values() if (number := names[column]) is not None}
    # clone3 passes its flags in memory, where no filter can see them: without it the C library falls back to clone
    clone = _clone_leaf(_NEW_NAMESPACES if stem else _NEW_NAMESPACES | _CLONE_PARENT)
    verdicts |= {_CLONE3: _UNKNOWN_LEAF, _CLONE[machine]: clone, _SOCKET[machine]: _SOCKET_LEAF}
    verdicts[_FCNTL[machine]] = _FCNTL_LEAF
    more = (_DENIED_ALONE if alone else {}) | (_DENIED_TO_SAME_USER if same_user else {})
    more |= _DENIED_BESIDE_A_STEM if stem else {}
    verdicts |= {number: _DENIED_LEAF for names in more.values() if (number := names[column]) is not None}
    if same_user:
        verdicts[_PRLIMIT[machine]] = _OWN_PROCESS_LEAF
    if stem:
        spare = _not_on(stem)
        verdicts |= {number: spare for names in _ON_A_PROCESS.values() if (number := names[column]) is not None}
        for kind, names in _ON_A_KIND.values():
            if (number := names[column]) is not None:
                verdicts[number] = _not_on(stem, kind)
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_EQUAL, _AUDIT_ARCHITECTURE[machine], 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        program += [_instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _instruction(_RETURN, _DENY)]
    return b"".join([*program, *_tree(sorted(verdicts.items()))])


def _tree(ordered: list[tuple[int, tuple[bytes, ...]]]) -> list[bytes]:
    """Instructions that return the verdict on the number in the accumulator: that of its pair, or to allow it."""
    if not ordered:
        return [_instruction(_RETURN, _ALLOW)]
    if len(ordered) == 1:
        number, leaf = ordered[0]
        return [_instruction(_JUMP_EQUAL, number, 0, len(leaf)), *leaf, _instruction(_RETURN, _ALLOW)]
    middle = len(ordered) // 2
    below, above = _tree(ordered[:middle]), _tree(ordered[middle:])
    if len(below) > _FARTHEST_JUMP:
        return [_instruction(_JUMP_AT_LEAST, ordered[middle][0], 0, 1), _instruction(_JUMP, len(below)), *below, *above]
    return [_instruction(_JUMP_AT_LEAST, ordered[middle][0], len(below), 0), *below, *above]


_FARTHEST_JUMP = 255
_DENIED_LEAF: tuple[bytes, ...] = (_instruction(_RETURN, _DENY),)
_UNKNOWN_LEAF = (_instruction(_RETURN, _UNKNOWN),)


def _clone_leaf(flags: int) -> tuple[bytes, ...]:
    """Without these flags. A sibling (``CLONE_PARENT``) of the program would be the keeper's child."""
    return (
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_JUMP_SET, flags, 0, 1),
        _instruction(_RETURN, _DENY),
        _instruction(_RETURN, _ALLOW),
    )


def _not_on(pid: int, kind: int | None = None) -> tuple[bytes, ...]:
    """Not where the first argument is ``pid``; or, with ``kind``: only where the first is ``kind`` and the second is
    not ``pid``."""
    if kind is None:
        return (
            _instruction(_LOAD, _FIRST_ARGUMENT),
            _instruction(_JUMP_EQUAL, pid, 0, 1),
            _instruction(_RETURN, _DENY),
            _instruction(_RETURN, _ALLOW),
        )
    return (
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_JUMP_EQUAL, kind, 0, 2),
        _instruction(_LOAD, _SECOND_ARGUMENT),
        _instruction(_JUMP_EQUAL, pid, 0, 1),
        _instruction(_RETURN, _DENY),
        _instruction(_RETURN, _ALLOW),
    )


_SOCKET_LEAF = (
    _instruction(_LOAD, _FIRST_ARGUMENT),
    _instruction(_JUMP_EQUAL, _AF_UNIX, 3, 0),
    _instruction(_JUMP_EQUAL, _AF_INET, 2, 0),
    _instruction(_JUMP_EQUAL, _AF_INET6, 1, 0),
    _instruction(_RETURN, _DENY),
    _instruction(_RETURN, _ALLOW),
)
_OWN_PROCESS_LEAF = (
    _instruction(_LOAD, _FIRST_ARGUMENT),
    _instruction(_JUMP_EQUAL, 0, 1, 0),
    _instruction(_RETURN, _DENY),
    _instruction(_RETURN, _ALLOW),
)
_FCNTL_LEAF = (
    _instruction(_LOAD, _SECOND_ARGUMENT),
    _instruction(_JUMP_EQUAL, _F_SETLEASE, 1, 0),
    _instruction(_JUMP_EQUAL, _F_NOTIFY, 0, 1),
    _instruction(_RETURN, _DENY),
    _instruction(_RETURN, _ALLOW),
)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def install(program: bytes) -> None:
    """Put this process and its descendants behind the filter. ``no_new_privs`` must be set before."""
    loaded = _Program(len(program) // 8, program)
    namespaces.set_seccomp(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(loaded))
