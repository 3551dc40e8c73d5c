"""``adjudge serve``: the HTTP server.

What can go wrong on the way up (a setting, the port, the isolation that was asked for) is found before the engine is
started and said in one line. SIGTERM and Ctrl-C drain: running requests get ``drain_s``, and the exit code is 0.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import logging
import math
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import ConfigFile, Setting, load
from .problems import CommandFailed

if TYPE_CHECKING:
    import uvicorn

    from ..settings import Settings

__all__ = ["serve"]

_KEEP_ALIVE_S = 75
"""Longer than any client keeps an idle connection, so that it is never the server who closes it in mid-request."""
_BACKLOG = 2048


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes any free one. Default: 8080.")] = None,
    api_keys: Annotated[
        list[str] | None,
        typer.Option("--api-key", metavar="[NAME=]KEY", help="A key that clients present. Repeatable."),
    ] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="Listen beyond this machine without any API key.")
    ] = None,
    cpu_workers: Annotated[int | None, typer.Option(help="Processes of the `cpu` lane. Default: cores.")] = None,
    sandbox_slots: Annotated[int | None, typer.Option(help="Programs that run at once. Default: cores.")] = None,
    require_isolation: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="Do not start below this: landlock, jail, zygote or container.")
    ] = None,
    allow_no_isolation: Annotated[
        bool | None, typer.Option("--allow-no-isolation", help="Run programs unprotected if nothing better is there.")
    ] = None,
    drain_s: Annotated[float | None, typer.Option(help="Seconds for running requests after SIGTERM.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console, json or auto.")] = None,
    config: ConfigFile = None,
    set_: Setting = None,
) -> None:
    """Start the HTTP server, and print its address and a request to try."""
    settings = load(
        config,
        set_,
        host=host,
        port=port,
        api_keys=api_keys,
        insecure=insecure,
        lanes__cpu_workers=cpu_workers,
        lanes__sandbox_slots=sandbox_slots,
        sandbox__require_isolation=require_isolation,
        sandbox__allow_none=allow_no_isolation,
        drain_s=drain_s,
        log_level=log_level,
        log_format=log_format,
    )
    _run(settings)


def _run(settings: Settings) -> None:
    import uvicorn

    from .. import logs
    from ..app import create_app

    logs.configure(settings)
    with _listen(settings.host, settings.port) as listener:
        url = _url(settings.host, listener.getsockname()[1])

        problem = _StartupProblem()

        app = create_app(settings)

        class Server(uvicorn.Server):
            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                app.state.engine.draining = True  # new requests on open connections are told to go elsewhere
                self.force_exit = self.should_exit  # a second signal hurries
                self.should_exit = True

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                with problem.installed():
                    await super().startup(sockets)
                if self.started:
                    _calm_collector()
                    print(_banner(url, bool(settings.api_keys)), flush=True)

        server = Server(
            uvicorn.Config(
                app,
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=math.ceil(settings.drain_s),
                backlog=_BACKLOG,
            )
        )
        with _quiet_signals(server), contextlib.suppress(SystemExit):
            server.run(sockets=[listener])
        if not server.started and not server.should_exit:
            raise problem.as_error()


def _listen(host: str, port: int) -> socket.socket:
    """A bound socket. Raises :class:`CommandFailed`, which says what to do."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise CommandFailed(f"host {host!r} is not an address of this machine: {error}") from error
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)  # here, not in uvicorn: two servers can bind one port as long as neither listens
    except OSError as error:
        listener.close()
        raise CommandFailed(_bind_problem(host, port, error)) from error
    listener.set_inheritable(True)
    return listener


def _bind_problem(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: stop the other server, or choose one with --port (0: any free port)"
    if error.errno == errno.EACCES:
        return f"port {port} is reserved for root: choose one above 1023 with --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine: choose another with --host"
    return f"cannot listen on {host} port {port}: {error.strerror}"


def _url(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host.strip("[]"), host)
    return f"http://[{shown}]:{port}" if ":" in shown and "[" not in shown else f"http://{shown}:{port}"


def _banner(url: str, with_key: bool) -> str:
    from adjudge._version import __version__

    key = ' -H "Authorization: Bearer $ADJUDGE_API_KEY"' if with_key else ""
    task = r'{"verifier": "math", "response": "It is \\boxed{\\frac{1}{2}}.", "reference": "0.5"}'
    return (
        f"adjudge {__version__} listens on {url} (API: {url}/docs, Ctrl-C stops it). Try:\n"
        f"curl -s {url}/v1/verify{key} -H 'Content-Type: application/json' -d '{task}'"
    )


def _calm_collector() -> None:
    """What has been imported stays for good, and requests make few cycles: look for garbage less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class _StartupProblem(logging.Filter):
    """Until the server has started, keeps the traceback that uvicorn would log."""

    def __init__(self) -> None:
        super().__init__()
        self._traceback = ""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        text = record.getMessage().strip()
        if "\n" in text:
            self._traceback = text
        return False

    def as_error(self) -> CommandFailed:
        """The last line, without the name of the exception's module; ``--traceback`` shows the rest."""
        line = self._traceback.rpartition("\n")[2]
        name, colon, message = line.partition(": ")
        is_sentence = colon and " " in message and name.replace(".", "").isidentifier()
        reason = message if is_sentence else line
        error = CommandFailed(f"the server did not start: {reason or 'see the log above'}")
        error.add_note(self._traceback)
        return error

    @contextlib.contextmanager
    def installed(self) -> Iterator[_StartupProblem]:
        logger = logging.getLogger("uvicorn.error")
        logger.addFilter(self)
        try:
            yield self
        finally:
            logger.removeFilter(self)


@contextlib.contextmanager
def _quiet_signals(server: uvicorn.Server) -> Iterator[None]:
    """uvicorn raises the signals again that it drained for, which would end us with -15; by then all is done."""

    def handle(signum: int, frame: Any) -> None:
        if not server.should_exit:
            sys.exit(0)

    before = {signum: signal.signal(signum, handle) for signum in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
