"""A server that stays, and programs that others start: ``warpsim exec --serve`` and ``--connect``.

    process that connects                 server
    asks: version                    ->
    settings, program                ->
                                     <-   "ready", or "refused"
    (runs the program, whose processes are clients of the server)
                                     <-   "notice", "progress", "trace": texts, at any time
    "ended"                          ->
                                     <-   "tally"

Both belong to the same user, and so do the folder and the socket, where no other user can write: each end
checks this before it says anything. Knows documents; does not know calls.
"""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ....base.folders import home_cache, made, unlocked, why_untrusted
from ..libraries import HostError, libraries
from ..messages import Channel, Gone
from ..processes import adopt_orphans
from .programs import run_program
from .runs import LONGEST_PATH, SOCKET_NAME, Run, has_short_name

_PATIENCE, _PAUSE = 5.0, 0.05  # seconds that a server has to start, and between looks
_TEXTS = ("notice", "progress", "trace")


def usual_folder() -> Path:
    """Return the folder of a server that none is named for: the first that no other user can change."""
    bases = filter(os.path.isabs, (os.environ.get("XDG_RUNTIME_DIR", ""), home_cache()))
    last = Path("/tmp", f"warpsim-exec-{os.geteuid()}")
    for folder in (*(Path(base, "warpsim-exec") for base in bases), last):
        with suppress(OSError):
            if not _why_shared(made(folder)):
                return folder
    return last


@contextmanager
def prepared(folder: Path) -> Iterator[Path]:
    """Make the folder of a server, and keep it from others for a block of code.

    Raises HostError where other users could use it, or a server has it.
    """
    _check_name(folder)
    try:
        _check(made(folder))
    except OSError as error:
        raise HostError(f"{folder}: {error.strerror}") from None
    with ExitStack() as stack:
        if not _has_lock(stack, folder) or _answers(folder):
            raise HostError(f"{folder} has a server already")
        (folder / SOCKET_NAME).unlink(missing_ok=True)
        yield folder


def _check_name(folder: Path) -> None:
    """Raise HostError for a folder whose socket has a longer name than Linux allows."""
    if not has_short_name(folder):
        raise HostError(f"{folder}: the name is too long for a socket: at most {LONGEST_PATH} bytes with it")


def _has_lock(stack: ExitStack, folder: Path) -> bool:
    """Lock a folder, as one of the servers that start together can."""
    try:
        stack.enter_context(unlocked(str(folder)))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: a server that has started answers
        pass
    return True


def _answers(folder: Path) -> bool:
    """Return whether a server listens in a folder. Raises HostError where it is another user's."""
    connection = _connect(folder)
    if connection is not None:
        connection.close()
    return connection is not None


def _why_shared(folder: Path) -> str:
    """Return why a folder is not one of this user alone; "" where it is. Raises OSError."""
    status = folder.lstat()
    if status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode) and status.st_mode & 0o077:
        return f"{folder} has mode {stat.S_IMODE(status.st_mode):o}"
    if status.st_uid != os.geteuid():
        return f"{folder} belongs to user {status.st_uid}"
    return why_untrusted(folder)


def _check(folder: Path) -> None:
    """Raise HostError for a folder that is not of this user alone. Raises OSError where there is none."""
    reason = _why_shared(folder)
    if reason:
        raise HostError(f"{reason}: the folder of a server is yours, and of mode 700")


def _connect(folder: Path) -> socket.socket | None:
    """Return a connection to the server of a folder, or None. Raises HostError where it is another user's."""
    place = folder / SOCKET_NAME
    try:
        _check(folder)
        status = place.lstat()
    except OSError:
        return None
    if not stat.S_ISSOCK(status.st_mode):
        raise HostError(f"{place} is not a socket: refused")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.connect(str(place))
        others = {status.st_uid, Channel(connection).peer()[1]} - {os.geteuid()}
    except OSError:
        connection.close()
        return None
    if others:
        connection.close()
        raise HostError(f"the server in {folder} belongs to user {others.pop()}: refused")
    return connection


def version() -> str:
    """Return a name that changes with the numbers of functions."""
    return libraries().name


class Remote:
    """Runs programs as clients of a server elsewhere; a context. Raises HostError where there is none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    def __enter__(self) -> Remote:
        _check_name(self.folder)
        past = time.monotonic() + _PATIENCE
        while (connection := _connect(self.folder)) is None:
            if time.monotonic() > past:
                raise HostError(f"there is no server in {self.folder}: start it by warpsim exec --serve")
            time.sleep(_PAUSE)
        adopt_orphans()
        self._connection, self._channel = connection, Channel(connection)
        try:
            self._channel.ask()
            self._channel.send_document(version())
        except Gone:
            raise HostError(f"the server in {self.folder} does not answer") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def run(
        self, run: Run, command: Sequence[str], *, quiet: bool = False, limit: float | None = None
    ) -> int:
        """Run a program to its end; return its exit code (programs.py). Raises HostError."""
        try:
            self._channel.send_document({"settings": run.settings.document(), "program": run.tally.program})
            kind, content = self._channel.receive_item()
            if kind == "refused":
                raise HostError(str(content))
            listener = _Listener(self._channel, run)
            listener.start()
            socket_name, on_cpu = self.folder / SOCKET_NAME, run.settings.torch_on_cpu
            code = run_program(command, socket_name, quiet=quiet, limit=limit, torch_on_cpu=on_cpu)
            self._channel.send_document("ended")
        except Gone:
            raise HostError(f"the server in {self.folder} has ended") from None
        listener.join()
        if listener.document is None:
            raise HostError(f"the server in {self.folder} has ended")
        try:
            run.tally.take(listener.document)
        except ValueError as error:
            raise HostError(f"the server in {self.folder} sent no whole summary: {error}") from None
        return code


class _Listener(threading.Thread):
    """Shows what the server says of a run, until that is over."""

    def __init__(self, channel: Channel, run: Run) -> None:
        super().__init__(daemon=True)
        self._channel = channel
        shows = (run.tally.notice, run.tally.progress, run.trace)
        self._shows = dict(zip(_TEXTS, shows, strict=True))
        self.document: dict[str, Any] | None = None

    def run(self) -> None:
        """Receive until the end of the run, or of the server."""
        with suppress(Gone):
            while self.document is None:
                kind, content = self._channel.receive_item()
                if kind == "tally":
                    self.document = content
                elif kind in self._shows:
                    self._shows[kind](str(content))
