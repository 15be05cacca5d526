"""What runs and the wave that runs it: records and entries of a loaded module, and CTAs executed together.

    Record   one statement: its guard, and the step that it does
    Entry    what a launch of one kernel needs: code, registers, parameters, static shared memory
    Wave     the state of some CTAs: geometry, memories, scheduler, registers of all lanes

All lanes of a wave execute a statement in one operation. Opcodes and observers keep their own state in
``side_tables`` (state/side_tables.py). Does not know text, arguments, what a statement means or the order of
paths (execute.py).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import Fault, OperandError, UndefinedBehavior, WarpsimError
from ...isa.warps import WARP
from ...ptx.binding import Bound
from ...ptx.statements import InstructionStatement
from ..bind.members import Member
from ..bind.pure_semantics import PureSemantics
from ..bind.scope import NOTHING, Flow, Scope, Variable
from ..bind.tuning import Dimensions, Tuning
from ..state import spaces
from ..state.device_runtime import DeviceRuntime
from ..state.lanes import DivergentPath, Frame, Lanes, Mask, Values
from ..state.spaces import Bytes, InvalidAccess, Offsets
from .engines import DEFAULT_MODES
from .geometry import Cluster, Geometry
from .memories import Memories
from .scheduler import Scheduler
from .warp_scheduling import in_step

_BOUND_TOGETHER = 1024  # statements
_LEAVING = frozenset({"bra", "brx", "ret", "exit"})  # opcodes behind which other statements may come next

Step = Callable[["Wave", DivergentPath, Lanes], "bool | None"]  # true where paths have changed
Places = Callable[["Wave", Lanes, Offsets, int], tuple[Bytes, Offsets]]  # where words of some bytes lie
Uninitialised = Callable[["Wave", DivergentPath, int, Mask], None]  # a register and the lanes that lack it


class Execution(NamedTuple):
    """What a statement does with its own operands.

    ``flow`` are the registers that its results come from, ``matrix`` the operands by role, of a matrix
    instruction. ``semantics`` is set for statements that only compute or load; ``member`` lets it be
    executed with others.
    """

    step: Step
    flow: Flow = NOTHING
    matrix: Bound | None = None
    semantics: PureSemantics | None = None
    member: Member | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Record:
    """One statement as it is executed: ``guard`` is the number of a predicate, -1 for none.

    ``fidelity`` and ``note`` say how exact its results are. ``step``, ``flow``, ``matrix``, ``semantics`` and
    ``member`` are those of ``bind(record)``, which is called when one of them is first asked for: most
    statements of a large module are never executed, and what is wrong with any is known before.
    """

    statement: InstructionStatement
    bind: Callable[[Record], Execution]
    guard: int = -1
    negated: bool = False
    fidelity: str = "exact"
    note: str = ""
    scope: Scope | None = None  # what the names in the statement mean
    step: Step = field(init=False, repr=False)
    flow: Flow = field(init=False, repr=False)
    matrix: Bound | None = field(init=False, repr=False)
    semantics: PureSemantics | None = field(init=False, repr=False)
    member: Member | None = field(init=False, repr=False)
    basic_block: Any = field(
        init=False, repr=False, default=None
    )  # that begins here (basic_blocks.py), if compiled
    bound: bool = field(init=False, repr=False, default=False)

    def __getattr__(self, name: str) -> Any:
        """Bind the statement; called for attributes that are not set."""
        if name not in Execution._fields:
            raise AttributeError(name)
        self.does(self.bind(self))
        return getattr(self, name)

    def does(self, execution: Execution) -> Record:
        """Set what the statement does; return the record."""
        self.step, self.flow, self.matrix, self.semantics, self.member = execution
        self.bound = True
        return self

    def stepping(self, step: Step) -> Record:
        """Return the same statement with another step."""
        other = Record(
            statement=self.statement,
            bind=self.bind,
            guard=self.guard,
            negated=self.negated,
            fidelity=self.fidelity,
            note=self.note,
            scope=self.scope,
        )
        return other.does(Execution(step, self.flow, self.matrix))

    @property
    def function(self) -> int:
        """Return a number of the function that the statement is in."""
        scope = self.scope
        while scope is not None and scope.around is not None and scope.around.around is not None:
            scope = scope.around
        return id(scope)


def bind_from(code: Sequence[Record], pc: int) -> None:
    """Bind a statement and those behind it that are executed next, up to a branch.

    Python's garbage collection pauses meanwhile: bound statements are many objects and no garbage, and to
    look through them takes as long as to bind them.
    """
    paused = gc.isenabled()
    gc.disable()
    try:
        for record in code[pc : pc + _BOUND_TOGETHER]:
            if not record.bound:
                record.does(record.bind(record))
            if record.statement.opcode in _LEAVING:
                return
    finally:
        if paused:
            gc.enable()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a kernel: its place, name, kind ("u64", "b8" for bytes), size and alignment in bytes."""

    index: int
    name: str
    kind: str
    bytes: int
    alignment: int
    offset: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Entry:
    """A kernel, ready to run: ``code`` is that of the whole module, and begins for it at ``start``."""

    name: str
    code: list[Record]
    start: int
    registers: int
    dtypes: list[np.dtype[Any]]
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    static_shared_bytes: int
    shared: tuple[Variable, ...]  # what has a name in shared memory
    dynamic_shared: bool
    local_bytes: int
    tuning: Tuning
    lane_registers: int | None = None  # of a lane at entry, where the directives say
    side_tables: dict[object, Any] = field(default_factory=dict)  # kept for it (state/side_tables.py)


class Wave:
    """Some CTAs of a launch: their geometry, memories and scheduler, and the registers of their lanes.

    ``alive`` counts the lanes that have not exited, ``alive_of_cta`` (CTAs,) those of each CTA.
    """

    def __init__(
        self, entry: Entry, geometry: Geometry, memories: Memories, places: Mapping[str, Places]
    ) -> None:
        self.entry: Entry = entry
        self.geometry = geometry
        self.memories = memories
        self.code: Sequence[Record] = entry.code
        self.side_tables: dict[object, Any] = {}  # of groups of opcodes (state/side_tables.py)
        self.modes = DEFAULT_MODES
        self.compiled = False  # whether basic blocks of statements are (basic_blocks.py),
        self.native = False  # and to machine code where that pays
        self.symbols: Mapping[str, int] = {}  # addresses of the module's variables in device memory
        self.runtime: DeviceRuntime | None = None  # what system calls use
        self.inferred: dict[int, str] = {}  # statements whose results rest on inferred behaviour, and why
        self.with_c: dict[int, set[bool]] = {}  # matrix instructions: whether they have added C
        started = Lanes(geometry.thread < geometry.threads)
        self.alive = started.count
        self.alive_of_cta = np.full(len(geometry.ctas), geometry.threads)
        self.alive_mask: Mask = started.mask
        self.frame = Frame(entry.registers)
        first = DivergentPath(entry.start, self.frame, started)
        self.scheduler = Scheduler(first, len(self.code), in_step)
        self.leaving: list[Callable[[Wave, Lanes], None]] = []  # called with lanes that have exited
        self.uninitialised: Uninitialised | None = None  # called where lanes read what they never wrote
        self._places = places
        memories.reserve_local(entry.local_bytes)

    # --- geometry: properties, since most opcodes and observers use them ---

    @property
    def ctas(self) -> npt.NDArray[np.int64]:
        """Return ``(CTAs, 3)``: the coordinates of the CTAs."""
        return self.geometry.ctas

    @property
    def grid(self) -> Dimensions:
        """Return the CTAs of the grid."""
        return self.geometry.grid

    @property
    def block(self) -> Dimensions:
        """Return the threads of a CTA by axis."""
        return self.geometry.block

    @property
    def cluster(self) -> Cluster:
        """Return the shape of the clusters."""
        return self.geometry.cluster

    @property
    def threads(self) -> int:
        """Return the number of threads of a CTA."""
        return self.geometry.threads

    @property
    def warps(self) -> int:
        """Return the number of warps of a CTA."""
        return self.geometry.warps

    @property
    def lanes(self) -> int:
        """Return the number of lanes, padding included."""
        return self.geometry.lanes

    @property
    def cta(self) -> npt.NDArray[np.int64]:
        """Return ``(lanes,)``: the place of each lane's CTA in the wave."""
        return self.geometry.cta

    @property
    def thread(self) -> npt.NDArray[np.int64]:
        """Return ``(lanes,)``: the number of each lane in its CTA."""
        return self.geometry.thread

    # --- registers ---

    def read(self, path: DivergentPath, register: int) -> Values:
        """Return a register in all lanes; registers never written read as 0, and observers are notified."""
        frame = path.frame
        value = frame.values[register]
        if value is None or (frame.partial and register in frame.partial):
            if self.uninitialised is not None:
                self._notify_of_missing(self.uninitialised, path, register)
            if value is None:
                types = self.entry.dtypes if frame.function is None else frame.function.dtypes
                return np.zeros(self.lanes, types[register])
        return value

    def _notify_of_missing(self, notify: Uninitialised, path: DivergentPath, register: int) -> None:
        """Notify of lanes that execute the statement and have never written a register."""
        written = path.frame.partial.get(register)
        if written is not None and path.lanes.within(written):
            return
        missing, record = path.frame.missing(register, path.lanes), self.code[path.pc]
        if missing.any():
            guard = path.frame.values[record.guard] if record.guard not in (-1, register) else None
            lacking = missing if guard is None else missing & (guard ^ record.negated)
            notify(self, path, register, lacking)

    def write(self, path: DivergentPath, lanes: Lanes, register: int, values: Values) -> None:
        """Write a register in some lanes of a path."""
        path.frame.write(register, values, lanes, lanes.count == self.alive)

    def count_of(self, lanes: Lanes) -> npt.NDArray[np.int64]:
        """Return ``(CTAs,)``: how many of the lanes are in each CTA."""
        return self.geometry.count_of(lanes)

    # --- memories ---

    def local_bytes_of(self, frame: Frame) -> int:
        """Return the bytes of local memory that an activation uses."""
        used: int = self.entry.local_bytes if frame.function is None else frame.function.local_bytes
        return used

    def locate(self, space: str, lanes: Lanes, addresses: Values, size: int) -> tuple[Bytes, Offsets]:
        """Return the memory of a space and the offsets of the words that lanes address. Raises InvalidAccess.

        ``addresses`` has one value for each of the lanes, or is of shape ().
        """
        count = (lanes.count,)
        every = addresses if addresses.shape == count else np.broadcast_to(addresses, count)
        where = spaces.integers_of(every)
        return self._places[space](self, lanes, where, size)

    # --- descriptions ---

    def infer(self, pc: int, why: str) -> None:
        """Record that the result of a statement rests on inferred behaviour, and why."""
        known = self.inferred.get(pc)
        if known is None:
            self.inferred[pc] = why
        elif why not in known:
            self.inferred[pc] = f"{known}; {why}"

    def adds_c(self, pc: int, added: bool) -> None:
        """Record that a matrix instruction has added C, or not."""
        self.with_c.setdefault(pc, set()).add(added)

    def describe_lanes(self, lanes: Lanes) -> str:
        """Return lanes in words: CTA, warp and lane of the first, and how many more."""
        first = int(lanes.index[0])
        more = f" and {lanes.count - 1} more" if lanes.count > 1 else ""
        return f"{self.describe_lane(first)}{more}"

    def describe_lane(self, lane: int) -> str:
        """Return CTA, warp and lane of a lane of the wave, in words."""
        return self.geometry.describe_lane(lane)

    def name_execution(self, error: WarpsimError, warp: int, lanes: int) -> None:
        """Name in the message of an error the first warp of an execution by so many lanes."""
        error.message += f" [{self.name_of_execution(warp)}]"

    def name_of_execution(self, warp: int) -> str:
        """Return CTA and warp of the first warp of an execution, in words."""
        return self.describe_lane(WARP * warp).rpartition(",")[0]

    def operand_error(self, error: WarpsimError, where: str) -> WarpsimError:
        """Return the error of the value of an operand as that of the kernel, with CTA and warpgroup."""
        kind = UndefinedBehavior if isinstance(error, OperandError) else type(error)
        return kind(f"{error.message} [{where}]")

    def fault(self, record: Record, lane: int, message: str) -> Fault:
        """Return the error of a lane at a statement."""
        fault = Fault(f"{message} [{self.describe_lane(lane)}]", record.statement.location())
        fault.lane = lane
        return fault

    def trespass(self, record: Record, invalid: InvalidAccess) -> Fault:
        """Return the error of a lane that addresses memory which it may not access."""
        message = f"{record.statement.mnemonic}: address {invalid.address:#x} {invalid.reason}"
        return self.fault(record, invalid.lane, message)
