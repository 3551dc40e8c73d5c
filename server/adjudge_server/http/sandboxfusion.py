"""What SandboxFusion's routes reply with: the result of a run in its words.

========================== ============ =================== ===========================================================
what a program did         ``status``   of the run          ``return_code``
========================== ============ =================== ===========================================================
exit status 0              Success      Finished            0
another exit status        Failed       Finished            that
killed by a signal         Failed       Finished            minus its number
over its time              Failed       TimeLimitExceeded   null
over its memory, output    Failed       Finished            minus 9; ``message`` says which limit
does not compile           Failed       Finished            1, in ``compile_result`` where the language has a compiler
========================== ============ =================== ===========================================================

``SandboxError`` is ours, and comes as HTTP 504: the only status that verl's client tries again (the ``sandbox-fusion``
package tries every one again).
"""

from __future__ import annotations

import signal
from base64 import b64encode
from typing import Any

from starlette.responses import Response

from adjudge_sandbox.base import Outcome, RunResult

from ..engine import NotExecuted
from .problems import Problem
from .programs import json_reply, shown, why

__all__ = ["ERRORS", "no_result", "run_response", "sandbox_error"]

ERRORS: dict[int | str, dict[str, Any]] = {
    504: {
        "description": "SandboxError: not the request's fault, try again",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}
"""What the routes reply with beside results and problems, for the OpenAPI document."""
_LATE_COMPILER = ("the compiler used more than", "the compiler did not end")
_KILLED = -signal.SIGKILL


def run_response(result: RunResult, *, compiled: bool) -> dict[str, Any]:
    """The reply to ``/run_code``, and ``exec_info`` of a test."""
    broken = compiled and result.outcome is Outcome.COMPILE_ERROR
    ran = _command(result)
    built = ran if broken else {"status": "Finished", "return_code": 0, "stdout": "", "stderr": ""}
    return {
        "status": "Success" if result.outcome is Outcome.FINISHED else "Failed",
        "message": why(result),
        "compile_result": built if compiled else None,
        "run_result": None if broken else ran,
        "executor_pod_name": None,
        "files": {name: b64encode(content).decode() for name, content in result.files.items()},
    }


def no_result(message: str) -> dict[str, Any]:
    """``exec_info`` of a test that was not run because of what the answer is."""
    return {
        "status": "Failed",
        "message": message,
        "compile_result": None,
        "run_result": None,
        "executor_pod_name": None,
        "files": {},
    }


def _command(result: RunResult) -> dict[str, Any]:
    late = result.outcome is Outcome.TIME_LIMIT or result.detail.startswith(_LATE_COMPILER)
    stdout, raw_stdout = shown(result.stdout)
    stderr, raw_stderr = shown(result.stderr)
    if result.outcome is Outcome.COMPILE_ERROR and not stderr:
        stderr = result.detail
    command: dict[str, Any] = {
        "status": "TimeLimitExceeded" if late else "Finished",
        "execution_time": round(result.wall_ms / 1000, 6),
        "cpu_time": round(result.cpu_ms / 1000, 6),
        "return_code": None if late else _return_code(result),
        "stdout": stdout,
        "stderr": stderr,
    }
    if raw_stdout is not None:
        command["stdout_base64"] = raw_stdout
    if raw_stderr is not None:
        command["stderr_base64"] = raw_stderr
    return command


def _return_code(result: RunResult) -> int:
    """As Python's ``Popen.returncode``; never 0 for a program that did not finish."""
    if result.outcome is Outcome.FINISHED:
        return 0
    if result.signal:
        return -result.signal
    if result.outcome in (Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT):
        return result.exit_status or _KILLED
    return result.exit_status or 1


def sandbox_error(error: NotExecuted, request_id: str) -> Response:
    """Not the program's fault. Raises :class:`Problem` if it is the request's."""
    if error.status == "invalid_task":
        raise Problem("invalid-request", error.reason)
    body = {
        **no_result(error.reason),
        "status": "SandboxError",
        "type": "urn:adjudge:no-result-now",
        "request_id": request_id,
        "retryable": True,
    }
    return json_reply(body, 504, {"Retry-After": "1"})
