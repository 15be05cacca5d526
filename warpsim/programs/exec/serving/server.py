"""The server: a socket in a folder of its own, and a thread for each thread of a client.

The folder has mode 700; only descendants are served of a process that has a run here: this process, or one of
the same user that asks for a run of its own (remote.py). A client that leaves, or sends what is no call, is
forgotten with all that it had, and no other notices. Knows sockets and processes; does not know functions of
CUDA.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from ....base.environment import default_environment
from ....base.folders import temporary_folder
from ....machine.state.spaces import DEVICE_BASE
from ..clients.client import Process
from ..clients.client_modules import ModulePool
from ..clients.client_threads import Connection
from ..error_codes import CudaError
from ..libraries import HostError, libraries
from ..messages import ASKS, HELLO, Channel, Gone, Message
from ..processes import adopt_orphans, alive, ancestors
from .programs import ignore_signals, run_program
from .runs import LONGEST_PATH, SOCKET_NAME, Run, has_short_name

_BACKLOG = 128
_PATIENCE, _PAUSE = 50, 0.02  # looks for a process that ends, and seconds between them
_WATCH = 0.5  # seconds between looks for launches of processes that have left
_LAST_CALL = 5.0  # seconds that a call has to write its files when the server ends
Visitor = Callable[["Server", Channel, int], None]  # of a process of the same user


@dataclass(frozen=True, kw_only=True, eq=False)
class Client:
    """A process that is served, and its threads; ``cookie`` is its name."""

    process: Process
    run: Run
    cookie: int
    threads: set[Connection] = field(default_factory=set)


class Server:
    """Serves the CUDA calls of programs; a context.

    ``notice`` shows a text. ``visitor`` serves processes of the same user that ask for a run; without it
    there is none. ``folder`` is a folder of mode 700, by default one of its own.
    """

    def __init__(
        self,
        notice: Callable[[str], object],
        *,
        visitor: Visitor | None = None,
        folder: Path | None = None,
    ) -> None:
        self.notice, self.visitor, self._folder = notice, visitor, folder
        self.lock = threading.Lock()  # of calls: rows run by turns
        self.clients: dict[tuple[int, int], Client] = {}
        self.runs: dict[int, Run] = {}  # by the process whose descendants belong to it
        self.pool = ModulePool()
        self.folder = Path()

    def __enter__(self) -> Server:
        libraries()
        adopt_orphans()
        self._stack = ExitStack()
        self.folder = self._folder or self._stack.enter_context(temporary_folder())
        if not has_short_name(self.folder):
            self._stack.close()
            raise HostError(
                f"no folder for a socket: expected a writable folder with a name of at most {LONGEST_PATH} "
                f"bytes, that of the socket included, but {self.folder} is longer (TMPDIR names another)"
            )
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind(str(self.folder / SOCKET_NAME))
        (self.folder / SOCKET_NAME).chmod(0o600)
        self._listener.listen(_BACKLOG)
        self._ended = threading.Event()
        for work in (self._accept, self._watch):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if error is not None:
            self._stop_calls()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts; close() does not
        self._listener.close()
        (self.folder / SOCKET_NAME).unlink(missing_ok=True)
        self._stack.close()

    def run(
        self, run: Run, command: Sequence[str], *, quiet: bool = False, limit: float | None = None
    ) -> int:
        """Run a program to its end; return its exit code (programs.py). Raises HostError."""
        with self.serving(os.getpid(), run):
            socket_name, on_cpu = self.folder / SOCKET_NAME, run.settings.torch_on_cpu
            return run_program(command, socket_name, quiet=quiet, limit=limit, torch_on_cpu=on_cpu)

    @contextmanager
    def serving(self, root: int, run: Run) -> Iterator[None]:
        """Serve the descendants of a process for a block of code."""
        self.runs[root] = run
        try:
            yield
            self._settle()
        finally:
            if self.runs.get(root) is run:  # and not a later run of the same process
                del self.runs[root]

    def abandon(self, run: Run) -> None:
        """Stop the launches of a run."""
        for client in list(self.clients.values()):
            if client.run is run and client.process.deadline is not None:
                client.process.deadline.stop(Gone)

    @ignore_signals()
    def _stop_calls(self) -> None:
        """Let the present call write its files to their end, and no other begin: the process ends."""
        for client in list(self.clients.values()):
            self.abandon(client.run)
        self.lock.acquire(timeout=_LAST_CALL)  # not released

    def _settle(self) -> None:
        """Wait until the last calls of clients that have left are done, and forget these."""
        with self.lock:
            for key in [key for key in self.clients if not alive(key[0])]:
                self._forget(key)

    # --- clients ---

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _watch(self) -> None:
        """Say which launches take long, and stop those of processes that have left."""
        while not self._ended.wait(_WATCH):
            for client in list(self.clients.values()):
                deadline = client.process.deadline
                if client.process.together.waited() and self.lock.acquire(blocking=False):
                    threading.Thread(target=self._do_held, args=(client,), daemon=True).start()
                if deadline is None:
                    continue
                if not alive(client.process.number):
                    deadline.stop(Gone)
                elif (text := deadline.progress()) is not None:
                    with suppress(Gone):  # what would show it has left
                        client.run.tally.progress(text)

    def _do_held(self, client: Client) -> None:
        """Do the launches that a client has given, which calls nothing; the lock is held, and released."""
        try:
            with default_environment(), suppress(CudaError, Gone):
                client.process.do_held()
        finally:
            self.lock.release()

    def _serve(self, connection: socket.socket) -> None:
        """Serve one thread of a client to its end."""
        channel = Channel(connection)
        with connection, default_environment():
            try:
                self._welcome(channel)
            except (Gone, OSError):
                return

    def _welcome(self, channel: Channel) -> None:
        number, owner = channel.peer()
        run = next((self.runs[each] for each in ancestors(number) if each in self.runs), None)
        if owner != os.geteuid() or (run is None and self.visitor is None):
            whose = "belongs to another user" if owner != os.geteuid() else "is not a child of this run"
            self.notice(f"process {number} {whose}: refused")
            return
        hello = channel.receive()
        if hello.number == ASKS and self.visitor is not None:
            self.visitor(self, channel, number)
        elif hello.number == HELLO and run is not None:
            self._thread(channel, number, hello, run)

    def _thread(self, channel: Channel, number: int, hello: Message, run: Run) -> None:
        """Serve a thread; its first message names its process."""
        key = (number, hello.integers[0])
        with self.lock:
            if key not in self.clients:
                self._forget_earlier(number)
                self.clients[key] = self._admit(channel, number, hello, run)
            client = self.clients[key]
            thread = Connection(self.lock, client.run.trace, channel, client.process)
            client.threads.add(thread)
        try:
            channel.answer(0)
            thread.serve()
        finally:
            with self.lock:
                client.threads.discard(thread)
            self._leave(key)

    def _leave(self, key: tuple[int, int]) -> None:
        """Forget a process that ends: it closes its sockets a little before."""
        for _ in range(_PATIENCE):
            with self.lock:
                if key not in self.clients or self.clients[key].threads:
                    return
                if not alive(key[0]):
                    self._forget(key)
                    return
            time.sleep(_PAUSE)

    def _admit(self, channel: Channel, number: int, hello: Message, run: Run) -> Client:
        """Take a new process, which maps the memory of its device.

        ``hello`` has its name, the address of a function, and after fork the name of its parent.
        """
        cookie, first, parent = hello.integers[0], hello.integers[1], hello.integers[4]
        channel.permit(os.getpid())
        process = Process(number, first, run.settings, run.tally, self.pool)
        try:
            self._map(channel, process)
        except BaseException:  # it has left already
            process.close()
            raise
        run.tally.processes += 1
        if parent in run.registered:
            process.modules = run.registered[parent].forked()
        run.registered[cookie] = process.modules
        return Client(process=process, run=run, cookie=cookie)

    def _map(self, channel: Channel, process: Process) -> None:
        """Let a new process map the memory of its device. Raises Gone."""
        memory = process.memory
        if channel.share(memory.descriptor, DEVICE_BASE, memory.capacity) != DEVICE_BASE:
            place = f"process {process.number} cannot map memory at {DEVICE_BASE:#x}"
            process.tally.say(f"{place}: managed memory will fail")
        process.descriptor = channel.descriptor

    def _forget_earlier(self, number: int) -> None:
        """Forget processes that have ended, and what this process was before exec."""
        for key in [key for key in self.clients if key[0] == number or not alive(key[0])]:
            self._forget(key)

    def _forget(self, key: tuple[int, int]) -> None:
        client = self.clients.pop(key, None)
        if client is not None:
            client.run.registered[client.cookie] = client.process.modules.forked()
            self._last_words(client.process)
            client.process.close()

    def _last_words(self, process: Process) -> None:
        if process.printed:
            process.tally.notice(
                f"process {process.number} ended before it synchronised: device code had printed "
                f"{''.join(process.printed)!r}"
            )
