"""Jobs on a Dask cluster: send pure tasks, yield every result exactly once.

Tasks that Dask cannot recover by itself are sent again: those whose data was on a worker that died. So
results depend neither on the number of workers, nor on which of them live. Does not know what a task
computes, nor how a cluster is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import starmap
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from ..environment import in_default_environment
from ..errors import ClusterError, WarpsimError
from .connection import connected, thread_total
from .versions import versions

if TYPE_CHECKING:
    from distributed import Client, Future

Argument = TypeVar("Argument")
Result = TypeVar("Result")

ABSENCE = 15.0  # seconds without any worker after which a job fails
ATTEMPTS = 8  # times that a task is sent whose data is lost with a worker
_IN_FLIGHT = 2  # tasks for each thread of the cluster: a task computes while the data of the next is sent
_LEAD = 16  # tasks for each thread by which the newest may be ahead of the oldest in flight
_WATCH = 5.0  # seconds to wait for a result before checking for workers
_COUNT = 1.0  # seconds between two counts of the workers
_PAUSE = 0.5  # seconds in which a scheduler notices that a worker has died
STALL = 20.0  # seconds without a result, or a worker at work on it, after which tasks are sent again
_SAME = "the scheduler and its workers need what the client has installed"
_LOST = "the connection to the Dask scheduler was lost"


# --- tasks -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sent:
    """An argument that is sent separately, once for all tasks that take it, and held while a task may take
    it.

    It is sent to a single worker, from which others fetch it; or ``everywhere``, if it is small. Dask gives a
    task to a worker that holds some of its data: a common argument on a single worker would gather all tasks
    there.
    """

    value: Any
    everywhere: bool = False


def run_tasks(
    function: Callable[..., Result], pieces: Iterable[tuple[Any, ...]], scheduler: str | Client
) -> Iterator[tuple[int, Result]]:
    """Yield ``(index, function(*piece))`` of every piece, exactly once, in the order in which tasks end.

    ``function`` is pure and defined in a module, so that it may run anywhere, and again. Pieces are taken as
    the cluster keeps up: some for each of its threads are in flight. Raises the WarpsimError of the task with
    the lowest index among those that failed, and ClusterError.
    """
    with connected(scheduler) as client:
        yield from _Job(client, function, pieces).results()


def spread(
    scheduler: str | Client,
) -> Callable[[Callable[[Argument], Result], Iterable[Argument]], Iterator[Result]]:
    """Return ``map`` over the cluster, in the order in which tasks end, for functions of one argument."""

    def schedule(function: Callable[[Argument], Result], arguments: Iterable[Argument]) -> Iterator[Result]:
        pieces = ((Sent(argument),) for argument in arguments)
        for _, result in run_tasks(function, pieces, scheduler):
            yield result

    return schedule


def in_order(
    function: Callable[..., Result], pieces: Iterable[tuple[Any, ...]], scheduler: str | Client | None
) -> Iterator[Result]:
    """Yield ``function(*piece)`` of every piece, in order; computed here and lazily, without a scheduler.

    There may be endless pieces: the caller closes the iterator.
    """
    if scheduler is None:
        yield from starmap(function, pieces)
        return
    early: dict[int, Result] = {}
    number = 0
    for index, result in run_tasks(function, pieces, scheduler):
        early[index] = result
        while number in early:
            yield early.pop(number)
            number += 1


@in_default_environment
def _checked_task(expected: dict[str, str], function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a worker executes: the function, if its bits would be those of the client."""
    here = versions()
    for name in expected:
        if here.get(name) != expected[name]:
            from distributed import get_worker

            raise ClusterError(
                f"worker {get_worker().address} has {name} {here.get(name)}, but the client has "
                f"{expected[name]}: their bits could differ; install the same on both"
            )
    return function(*arguments)


@dataclass(kw_only=True, eq=False)
class _Task:
    """A piece in flight, and its current future."""

    index: int
    arguments: tuple[Any, ...]
    attempts: int = 0
    future: Future = None


class _Job:
    """The tasks of a call of run_tasks.

    ``running`` has the tasks by the keys of their current futures, so that a result is taken once, even if
    Dask repeats it; ``ended`` receives the futures that have ended, in any way.
    """

    def __init__(
        self, client: Client, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]]
    ) -> None:
        self.client = client
        self.function = Sent(function, everywhere=True)  # else the scheduler, too, would import its module
        self.name = getattr(function, "__name__", "task")
        self.pieces = enumerate(pieces)
        self.ended: SimpleQueue[Future] = SimpleQueue()
        self.running: dict[str, _Task] = {}
        self.sent: WeakKeyDictionary[Sent, Future] = WeakKeyDictionary()
        self.taken = 0  # pieces
        self.exhausted = False  # no more pieces exist or are wanted
        self.failure: Exception | None = None  # the failure with the lowest index
        self.threads = 0
        self.counted, self.populated = float("-inf"), monotonic()
        self.moved = monotonic()  # when a result came, or a worker was seen at work

    def results(self) -> Iterator[tuple[int, Any]]:
        """Yield what run_tasks returns."""
        try:
            while self._fill_window():
                try:
                    future = self.ended.get(timeout=_WATCH)
                except Empty:
                    self._send_what_stalls()
                    continue
                self.moved = monotonic()
                task = self.running.get(future.key)
                if task is not None and (outcome := self._outcome(task)):
                    yield outcome
        finally:
            self._drop(self.running.values())
        if self.failure:
            raise self.failure

    # --- sending ---

    def _fill_window(self) -> bool:
        """Send as many tasks as there is room for; return whether tasks are in flight or to come."""
        self._count()
        while not self.exhausted and self._room():
            try:
                index, arguments = next(self.pieces)
            except StopIteration:
                self.exhausted = True
            except Exception as error:
                self._fail(self.taken, error)
            else:
                self.taken += 1
                self._send(_Task(index=index, arguments=arguments))
        return bool(self.running) or not self.exhausted

    def _room(self) -> bool:
        """Return whether the cluster keeps up, and the newest task is not too far ahead of the oldest."""
        oldest = min((task.index for task in self.running.values()), default=self.taken)
        few = len(self.running) < _IN_FLIGHT * self.threads
        return few and self.taken - oldest < _LEAD * self.threads

    def _count(self) -> None:
        """Count the cluster's threads, now and then. Raises ClusterError: none for long, or no scheduler."""
        now = monotonic()
        if now - self.counted < _COUNT:
            return
        self._check_connection()
        try:
            self.threads, self.counted = thread_total(self.client), now
        except OSError as error:
            raise ClusterError(f"{_LOST}: {error}") from error
        if self.threads:
            self.populated = now
        elif now - self.populated > ABSENCE:
            raise ClusterError(f"the Dask cluster has had no workers for {ABSENCE:g} s")

    def _check_connection(self) -> None:
        if self.client.status != "running":
            raise ClusterError(_LOST)

    def _send(self, task: _Task) -> None:
        """Send a task, for the first time or again."""
        self._check_connection()
        task.attempts += 1
        if task.attempts > ATTEMPTS:
            raise ClusterError(
                f"task {task.index} was sent {ATTEMPTS} times, and each time a worker died that held its data"
            )
        arguments = [
            self._future_of(item) if isinstance(item, Sent) else item
            for item in (self.function, *task.arguments)
        ]
        key = f"{self.name}-{uuid4()}"  # Dask remembers by the name how long tasks take
        task.future = self.client.submit(_checked_task, versions(), *arguments, key=key, pure=False)
        self.running[task.future.key] = task
        task.future.add_done_callback(self.ended.put)

    def _send_again(self, task: _Task) -> None:
        """Send a task whose data or result was lost, when the scheduler knows which workers live.

        From the second time on its data are sent again, too: they may be lost although they seem to be there.
        """
        del self.running[task.future.key]
        sleep(_PAUSE)
        if task.attempts > 1:
            for argument in (self.function, *task.arguments):
                if isinstance(argument, Sent):
                    self.sent.pop(argument, None)
        self._send(task)

    def _send_what_stalls(self) -> None:
        """Send all tasks again if no worker has any for long: a scheduler may wait for lost data."""
        if monotonic() - self.moved < STALL or not self.threads:
            return
        self._check_connection()
        computed = {key for keys in self.client.processing().values() for key in keys}
        if computed.isdisjoint(self.running):
            for task in list(self.running.values()):
                self.client.cancel([task.future])
                self._send_again(task)
        self.moved = monotonic()

    def _future_of(self, argument: Sent) -> Future:
        """Return the argument on the cluster; send it unless it is there."""
        future = self.sent.get(argument)
        if future is None or future.status != "finished":
            future = self.sent[argument] = self._scatter(argument)
        return future

    def _scatter(self, argument: Sent) -> Future:
        """Send data to a worker, or to all; to others if a worker has just died."""
        attempts = 0
        while attempts < ATTEMPTS:
            options = {"hash": False, "broadcast": argument.everywhere, "timeout": _WATCH}
            try:
                (future,) = self.client.scatter([argument.value], **options)
            except (OSError, KeyError) as error:  # the latter: a worker that was there at the beginning died
                failure = error
                self._check_connection()
                sleep(_PAUSE)
                self.counted = float("-inf")
                self._count()  # raises where there are no workers for long
                attempts += bool(self.threads)
            except Exception as error:  # the worker cannot unpack it; Dask has no class for this error
                raise ClusterError(f"a worker cannot load what the tasks need: {error}; {_SAME}") from error
            else:
                return future
        raise ClusterError(f"no worker takes data: {failure}") from failure

    # --- receiving ---

    def _outcome(self, task: _Task) -> tuple[int, Any] | None:
        """Return index and result of a task that has ended; None if it failed or is sent again."""
        future = task.future
        try:
            result = future.result(timeout=_WATCH)
        except CancelledError:  # its input or its result was lost with a worker
            self._send_again(task)
        except Exception as error:
            if isinstance(error, TimeoutError) and future.status != "error":
                future.add_done_callback(self.ended.put)  # its result is being computed again
                return None
            del self.running[future.key]
            self._fail(task.index, _user_error(error, task.index))
        else:
            del self.running[future.key]
            return task.index, result
        return None

    def _fail(self, index: int, error: Exception) -> None:
        """Record a failure. Only earlier tasks go on; the failure of an earlier task
        replaces this failure.
        """
        self.exhausted = True
        self.failure = error
        self._drop([task for task in self.running.values() if task.index > index])

    def _drop(self, tasks: Iterable[_Task]) -> None:
        """Cancel tasks in flight."""
        futures = [task.future for task in tasks]
        for future in futures:
            del self.running[future.key]
        if futures and self.client.status == "running":
            self.client.cancel(futures)


def _user_error(error: Exception, index: int) -> WarpsimError:
    """Return the error of a task as its user should see it."""
    from distributed import KilledWorker

    if isinstance(error, WarpsimError):
        return error
    *_, root = _chain(error)
    if isinstance(error, KilledWorker):
        reason = "every worker that took it died, perhaps for want of memory"
    elif isinstance(root, ImportError):
        reason = f"{root}; {_SAME}"
    else:
        reason = f"{type(root).__name__}: {root}"
    explained = ClusterError(f"task {index} failed on the Dask cluster: {reason}")
    explained.__cause__ = error
    return explained


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
