"""The server: a socket in a folder of its own, and a thread for each thread of a client.

The folder has mode 700; only descendants of this process are served. A client that leaves, or sends what is
no call, is forgotten with all that it had, and no other notices. Knows sockets and processes; does not know
functions of CUDA.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from ..environment import default_environment
from ..machine.state.spaces import DEVICE_BASE
from .client import Process
from .client_modules import Modules
from .client_threads import Connection
from .libraries import JIT_LINKERS, RUNTIMES, TRITON_PTXAS, HostError, libraries
from .messages import HELLO, Channel, Gone
from .processes import adopt_orphans, alive, descends_from, runs_python
from .settings import Settings
from .tally import Tally

SOCKET = "WARPSIM_EXEC_SOCKET"
_BACKLOG = 128
_PATIENCE, _PAUSE = 50, 0.02  # looks for a process that ends, and seconds between them
_GRACE = 2.0  # seconds that a client has to leave after a signal


class Server:
    """Serves the CUDA calls of the processes that it starts; a context."""

    def __init__(self, settings: Settings, tally: Tally, trace: Callable[[str], object]) -> None:
        self.settings, self.tally, self.trace = settings, tally, trace
        self.lock = threading.Lock()  # of calls: rows run by turns
        self.processes: dict[tuple[int, int], tuple[Process, set[Connection]]] = {}
        self._registered: dict[int, Modules] = {}  # by the name of the process, for its children
        self.folder = Path()

    def __enter__(self) -> Server:
        self._libraries = libraries()
        adopt_orphans()
        self.folder = Path(tempfile.mkdtemp(prefix="warpsim-"))  # of mode 700
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(str(self.folder / "socket"))
        self._listener.listen(_BACKLOG)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """Return the environment of clients."""
        paths = [str(self._libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        own = {SOCKET: str(self.folder / "socket"), "LD_LIBRARY_PATH": os.pathsep.join(paths)}
        return {**self._for_triton(), **os.environ, **own}

    def _for_triton(self) -> dict[str, str]:
        """Return what lets Triton keep PTX, in a cache of its own."""
        ptxas = str(self._libraries / TRITON_PTXAS)
        return {
            "TRITON_PTXAS_PATH": ptxas,
            "TRITON_PTXAS_BLACKWELL_PATH": ptxas,
            "TRITON_LIBCUDA_PATH": str(self._libraries),
            "TRITON_CACHE_DIR": str(self._libraries.parent / "triton"),
        }

    def _preloaded(self, command: Sequence[str]) -> dict[str, str]:
        """Return what Python packages would find first: their runtime, and nvJitLink, which makes SASS."""
        if not runs_python(command[0]):
            return {}
        paths = [str(self._libraries / name) for name in (*RUNTIMES, *JIT_LINKERS)]
        return {"LD_PRELOAD": os.pathsep.join([*paths, *filter(None, [os.environ.get("LD_PRELOAD")])])}

    def run(self, command: Sequence[str], *, quiet: bool = False) -> int:
        """Run a program to its end; return its exit code, 128 and the number of a signal that ended it.

        What a ``quiet`` program prints is not shown.

        Raises HostError where there is no such program.
        """
        try:
            environment = {**self.environment(), **self._preloaded(command)}
            out = subprocess.DEVNULL if quiet else None
            child = subprocess.Popen(list(command), env=environment, stdout=out, stderr=out)
        except OSError as error:
            raise HostError(f"{command[0]}: {error.strerror or error}") from None
        try:
            code = child.wait()
        except BaseException:
            _end(child)
            raise
        self._settle()
        return code if code >= 0 else 128 - code

    def _settle(self) -> None:
        """Wait until the last calls of clients that have left are done, and forget these."""
        with self.lock:
            for key in [key for key in self.processes if not alive(key[0])]:
                self._forget(key)

    # --- clients ---

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Serve one thread of a client to its end."""
        channel = Channel(connection)
        with connection, default_environment():
            try:
                number, owner = channel.peer()
                if owner != os.getuid() or not descends_from(number, os.getpid()):
                    self.tally.say(f"process {number} is no child of this run: refused")
                    return
                hello = channel.receive()
                if hello.number == HELLO:
                    self._thread(channel, number, hello.integers)
            except (Gone, OSError):
                return

    def _thread(self, channel: Channel, number: int, hello: tuple[int, ...]) -> None:
        """Serve a thread; ``hello`` names its process, an address, and after fork its parent."""
        cookie, first, parent = hello[0], hello[1], hello[4]
        key = (number, cookie)
        with self.lock:
            if key not in self.processes:
                self._forget_earlier(number)
                self.processes[key] = (self._admit(channel, number, first), set())
                if parent in self._registered:
                    self.processes[key][0].modules = self._registered[parent].forked()
                self._registered[cookie] = self.processes[key][0].modules
            process, threads = self.processes[key]
            thread = Connection(self.lock, self.trace, channel, process)
            threads.add(thread)
        try:
            channel.answer(0)
            thread.serve()
        finally:
            with self.lock:
                threads.discard(thread)
            self._leave(key)

    def _leave(self, key: tuple[int, int]) -> None:
        """Forget a process that ends: it closes its sockets a little before."""
        for _ in range(_PATIENCE):
            with self.lock:
                if key not in self.processes or self.processes[key][1]:
                    return
                if not alive(key[0]):
                    self._forget(key)
                    return
            time.sleep(_PAUSE)

    def _admit(self, channel: Channel, number: int, first: int) -> Process:
        """Take a new process; it maps the memory of its device."""
        process = Process(number, first, self.settings, self.tally)
        self.tally.processes += 1
        memory = process.memory
        if channel.share(memory.descriptor, DEVICE_BASE, memory.capacity) != DEVICE_BASE:
            self.tally.say(
                f"process {number} cannot map memory at {DEVICE_BASE:#x}: managed memory will fail"
            )
        process.descriptor = channel.descriptor
        return process

    def _forget_earlier(self, number: int) -> None:
        """Forget processes that have ended, and what this process was before exec."""
        for key in [key for key in self.processes if key[0] == number or not alive(key[0])]:
            self._forget(key)

    def _forget(self, key: tuple[int, int]) -> None:
        found = self.processes.pop(key, None)
        if found is not None:
            self._last_words(found[0])
            found[0].close()

    def _last_words(self, process: Process) -> None:
        if process.printed:
            self.tally.notice(
                f"process {process.number} ended before it synchronised: device code had printed "
                f"{''.join(process.printed)!r}"
            )


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, as Ctrl-C does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        child.send_signal(number)
        try:
            child.wait(_GRACE)
            return
        except subprocess.TimeoutExpired:
            continue
