"""Long launches, held until the program gives what comes next, to be executed at the same time.

    given       launches of streams that nothing orders, each of them long by what the kernel took before
    done        in the order in which they were given: the first here, others before their turn in forks,
                whose work is taken where it is what this process would do (programs/launch/launch_ahead.py)
    when        the program calls anything but another launch, or has called nothing for a moment

So all that a program sees, bytes, texts, findings, is as if each launch were executed when it is given; but
an error is given by the next call that is no launch. A program whose launches depend on each other although
nothing orders them is held no more. Knows clocks and seconds; does not know how work is done.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ...launch.forks import processors
from ..graphs import GraphNode, NodeKind
from ..settings import Settings, Unobserved
from .pending_work import IN_ORDER, Pending

if TYPE_CHECKING:
    from ...launch.launch_ahead import LaunchAhead

WORTH = 1.0  # seconds that a launch takes by estimate before it is held
_MOMENT = 0.25  # seconds without a call, after which held launches are executed
_MOST = 64  # launches that are held
_MOST_WASTED = 2  # launches that were executed before their turn in vain
_TOGETHER = frozenset(  # functions that may come between launches which are held
    {"cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"}
    | {"__cudaPushCallConfiguration", "__cudaPopCallConfiguration", "__cudaGetKernel"}
    | {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetDevice", "cudaSetDevice", "cuCtxGetCurrent"}
    | {"cudaStreamWaitEvent", "cuStreamWaitEvent", "cudaEventRecord", "cuEventRecord"}
)


class Request(Protocol):
    """What is launched: client_launches.py has it."""

    @property
    def kernel(self) -> Any:
        """What is launched, the same object for each launch."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Its CTAs."""


Begin = Callable[[Any], "LaunchAhead"]  # a launch before its turn, of its request
Do = Callable[[Any, Pending, "LaunchAhead | None"], None]  # work, of its call, in its turn


def goes_together(name: str) -> bool:
    """Return whether a function of CUDA may come between launches that are held."""
    return name.removesuffix("_ptsz") in _TOGETHER


class HeldLaunches:
    """The launches of a process that are held, in the order in which they were given."""

    def __init__(self, settings: Settings) -> None:
        self._possible = (
            settings.schedule == IN_ORDER
            and settings.limit is None
            and settings.scheduler is None
            and not settings.compares
            and isinstance(settings.looking, Unobserved)
            and processors() > 1
        )
        self._given: deque[tuple[Any, Pending]] = deque()
        self._ahead: dict[Pending, LaunchAhead] = {}
        self._seconds: dict[Any, float] = {}  # of a CTA, by kernels
        self._since = 0.0
        self.most_together = 1  # launches that were executed at a time
        self.wasted = 0  # launches that were executed before their turn in vain

    def __bool__(self) -> bool:
        return bool(self._given)

    def note(self, request: Request, seconds: float) -> None:
        """Note how long a launch took."""
        x, y, z = request.grid
        self._seconds[request.kernel] = seconds / (x * y * z)

    def takes(self, work: GraphNode) -> bool:
        """Return whether work is a launch that is long enough to be held."""
        if not self._possible or self.wasted >= _MOST_WASTED:
            return False
        if work.kind is not NodeKind.KERNEL or not work.enabled:
            return False
        x, y, z = work.fields.grid
        seconds = self._seconds.get(work.fields.kernel, 0.0) * (x * y * z)
        return seconds >= WORTH and not work.fields.cooperative and len(self._given) < _MOST

    def add(self, call: Any, pending: Pending) -> None:
        """Hold a launch."""
        self._given.append((call, pending))
        self._since = time.monotonic()

    def waited(self) -> bool:
        """Return whether launches are held that nothing has come behind for a moment."""
        return bool(self._given) and time.monotonic() - self._since > _MOMENT

    def do(self, begin: Begin, do: Do, failed: Callable[[], bool]) -> None:
        """Execute all that is held; what comes behind an error that no call survives is forgotten.

        Raises what ``do`` raises; what is left is then still held.
        """
        try:
            while self._given:
                self._begin(begin)
                call, pending = self._given.popleft()
                do(call, pending, self._ahead.pop(pending, None))
                if failed():
                    self._given.clear()
        finally:
            for ahead in self._ahead.values():
                ahead.end()
            self._ahead.clear()

    def _begin(self, begin: Begin) -> None:
        """Begin launches that nothing before them is ordered with, as many as there are processors."""
        before = list[Pending]()
        for _, pending in self._given:
            if len(self._ahead) + 1 >= processors():
                break
            first = not before
            ready = not any(other.before(pending.clock) for other in before)
            before.append(pending)
            if ready and not first and pending not in self._ahead:
                with suppress(OSError, MemoryError):
                    self._ahead[pending] = begin(pending.work.fields)
        self.most_together = max(self.most_together, 1 + len(self._ahead))
