"""What this host can isolate: each mechanism is tried for real, in a process of its own that is thrown away.

For `adjudge doctor` and for the message of a sandbox that cannot start.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

from .backends.zygote import check_landlock
from .kernel import cgroups, landlock, rootfs, seccomp
from .kernel import namespaces as ns
from .supervisor.jail import Identity

__all__ = ["Probe", "probe"]

_TRY_S = 10
_TIMEOUT_S = 60
_USER_NAMESPACES = (
    "Run as root, or allow user namespaces: sysctl -w user.max_user_namespaces=65536 "
    "kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0; in Docker add "
    "--security-opt seccomp=unconfined --cap-add SYS_ADMIN."
)
_LANDLOCK = "Needed only where namespaces are refused. Boot with lsm=landlock,... on Linux 6.12 or later."
_CGROUPS = (
    "Run as root, or delegate a group (systemd: Delegate=yes): without one, memory limits are approximate and "
    "process limits count per user."
)


@dataclass(frozen=True, slots=True)
class Probe:
    """One mechanism: does it work here, and what would make it work?"""

    name: str
    ok: bool
    detail: str
    fix: str = ""


def probe() -> list[Probe]:
    """Try everything, in a process of its own: this one may have threads, and a fork of it would be unsafe."""
    command = [sys.executable, "-m", "adjudge_sandbox.probe"]
    done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    try:
        return [Probe(**finding) for finding in json.loads(done.stdout)]
    except ValueError:
        return [Probe("probe", False, f"it ended with status {done.returncode}: {done.stderr.decode()[-500:]}")]


def try_everything() -> list[Probe]:
    """Forks; call it in a process without threads."""
    return [
        _attempt("namespaces", _try_namespaces, "mount, pid, ipc, uts, net", _USER_NAMESPACES),
        _attempt("user mapping", _try_user, "programs are nobody (65534) without capabilities", _USER_NAMESPACES),
        _attempt("root file system", _try_root, "tmpfs, read-only binds, pivot_root", _USER_NAMESPACES),
        _attempt(
            "seccomp",
            _try_seccomp,
            "system call filter",
            "Use a kernel with CONFIG_SECCOMP_FILTER on x86_64 or aarch64.",
        ),
        _attempt("landlock", _try_landlock, "file rights given up without privilege", _LANDLOCK),
        _control_groups(),
    ]


def _control_groups() -> Probe:
    groups = cgroups.open_groups()
    groups.remove()
    if groups.kind == "rlimits":
        return Probe("control groups", False, f"resource limits only: {groups.reason}", _CGROUPS)
    return Probe("control groups", True, f"memory and pids, version {groups.kind[1:]}")


def _attempt(name: str, action: Callable[[], None], detail: str, fix: str) -> Probe:
    """Run ``action`` in a forked process; an exception there is the finding."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(_TRY_S)
            action()
            status = 0
        except OSError as error:
            os.write(write, str(error).encode())
        except BaseException:  # noqa: BLE001 - it must not unwind into the caller's stack
            os.write(write, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        problem = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 0:
        return Probe(name, True, detail)
    return Probe(name, False, problem or f"the attempt ended with status {status}", fix)


def _try_landlock() -> None:
    check_landlock()
    ns.forbid_new_privileges()
    landlock.restrict(landlock.Rules(read=("/usr",)))
    try:
        os.listdir("/proc")
    except PermissionError:
        return
    raise OSError("a folder can be read that should not be")


def _try_namespaces() -> None:
    identity, uid, gid = Identity.of_runner(0), os.geteuid(), os.getegid()
    flags = ns.NEW_NS | ns.NEW_PID | ns.NEW_IPC | ns.NEW_UTS | ns.NEW_NET
    if identity.privileged:
        ns.unshare(flags)
        return
    uid, gid = os.geteuid(), os.getegid()
    ns.unshare(flags | ns.NEW_USER)
    ns.map_user(65534, uid, gid)


def _try_user() -> None:
    _try_namespaces()
    ns.drop_capabilities()
    ns.forbid_new_privileges()


def _try_root() -> None:
    plan = rootfs.plan()
    _try_namespaces()
    pid = os.fork()
    if pid == 0:
        try:
            rootfs.build(plan)
            if not os.path.isdir(sys.prefix):
                raise OSError(f"the interpreter's folder {sys.prefix} is not in the jail")
        except OSError as error:
            os.write(2, f"adjudge: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise OSError("the root of a jail could not be built")


def _try_seccomp() -> None:
    program = seccomp.build()
    ns.forbid_new_privileges()
    seccomp.install(program)
    try:
        ns.unshare(ns.NEW_NS)
    except PermissionError:
        return
    raise OSError("the filter lets unshare through")


if __name__ == "__main__":
    print(json.dumps([asdict(finding) for finding in try_everything()]))
