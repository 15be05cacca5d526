"""The warpgroup: four warps with a shared memory, which execute ``wgmma`` and what belongs to it.

Knows what ``wgmma.mma_async`` reads and writes, and reports every statement to the hazard checker (see
hazards.py) before it takes effect. The machine itself knows no delay: D is written at the wgmma, and the
checker tells of everybody who looks before the wait. The warps run in step, and races.py tells where they
would need a barrier. Does not know files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..errors import IllegalInstruction, Location, NotModelled, UndefinedBehavior, located
from ..execution.pipeline import Engine, Undefined, execute_inputs, is_literal
from ..isa.descriptor import Descriptor, touched_bytes
from ..isa.instruction import Inputs
from ..isa.memory import SHARED_BYTES, bytes_of
from ..ptx.statements import InstructionStatement, Statement, VariableDeclaration
from ..ptx.warpgroup import WarpgroupBound, bind_warpgroup
from .hazards import Hazard, HazardChecker, Mode
from .machine import WARP, Event, Machine, Place, declare_once, host_place, operand_names
from .races import RaceChecker
from .register_file import Mask
from .shared_memory import SharedMemory
from .shared_statements import SharedStatements
from .synchronization import Synchronization, barrier, is_wgmma_order, proxy_fence, wgmma_order
from .variables import SharedVariables

_LANES = 128
_SHARED = ("ld", "st", "ldmatrix", "stmatrix")
_ORDERS: Mapping[str, Callable[[InstructionStatement], Synchronization]] = {
    "fence": proxy_fence,
    "bar": barrier,
    "barrier": barrier,
}
# What older chips lack: the first chip, and the first PTX version. PTX ISA 9.1, "Target ISA Notes".
_SINCE = {"ldmatrix": (75, (6, 5)), "stmatrix": (90, (7, 8)), "fence": (90, (8, 0)), "wgmma": (90, (8, 0))}


class Warpgroup(Machine):
    """Four warps of 32 lanes with named registers, and a shared memory of ``shared_bytes``.

    Executes ``wgmma``; ``mma``, ``mma.sp``, ``ldmatrix`` and ``stmatrix`` in each warp by itself; ``mov``,
    ``ld.shared``, ``st.shared``, ``fence.proxy.async`` and ``bar.sync``. ``shared`` is the memory, zero at
    first: what Python writes into ``shared.data`` counts as visible to everybody. ``.shared`` declarations
    get addresses from 0 on.

    ``engine`` and ``undefined`` are those of warpsim.execute. ``hazards`` says what becomes of broken
    ordering rules: "error" raises HazardError, an UndefinedBehavior, "warn" collects them in ``hazards``,
    "off" looks at none; descriptors that differ between warps are then those of lane 0. Raises as Warp
    does, and OperandError for a size that no CTA has.
    """

    name = "warpgroup"
    lanes = _LANES
    modelled = (
        "wgmma, mma, mma.sp, mov, ld.shared, st.shared, ldmatrix, stmatrix, fence.proxy.async and bar.sync"
    )
    together: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("mma", "ldmatrix", "stmatrix"), WARP),
        **dict.fromkeys(("wgmma", "bar", "barrier"), _LANES),
    }

    def __init__(
        self,
        target: str = "sm_90a",
        shared_bytes: int = SHARED_BYTES,
        *,
        engine: Engine = "kernel",
        undefined: Undefined = "error",
        hazards: Mode = "error",
    ) -> None:
        super().__init__(target, engine=engine, undefined=undefined)
        self.shared = SharedMemory(shared_bytes)
        self._last_snapshot = np.empty(0, np.uint8)  # of shared memory, for events to keep
        self._variables = SharedVariables(shared_bytes)
        self._checker = HazardChecker(hazards, shared_bytes)
        self._races = RaceChecker(hazards, shared_bytes)
        self._executes |= dict.fromkeys(_SHARED, self._transfer) | dict.fromkeys(_ORDERS, self._order)
        self._executes["wgmma"] = self._wgmma

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Broken rules that were collected, and warnings: those of asynchrony, then those of barriers."""
        return self._checker.hazards + self._races.hazards

    def finish(self, place: Location | None = None) -> None:
        """The end of the program: whatever is still in flight is reported."""
        self._checker.finish(place or host_place("finish()"))

    # --- shared memory from outside ---

    def address(self, where: str | int) -> int:
        """The address of ``"tile"``, ``"tile+16"``, ``"0x400"`` or 1024. Raises OperandError."""
        return where if isinstance(where, int) else self._variables.place(where)

    def write_shared(self, where: str | int, array: npt.ArrayLike, place: Location | None = None) -> None:
        """Write the bytes of an array, little-endian and in C order, as a finished bulk copy would.

        wgmma sees them without a fence. Raises OperandError where they leave the memory.
        """
        start, content = self.address(where), bytes_of(np.asarray(array))
        view = self.shared.view(start, content.size)
        place = place or host_place(f"write_shared({where!r}, …)")
        self._checker.shared_write([(start, start + content.size)], place, proxy="async")
        view[:] = content

    # --- hooks of the machine ---

    def _access(self, names: Iterable[str], kind: Literal["read", "write"], place: Place) -> None:
        unique = [self._file.unique(name) for name in names]
        if unique and self._checker.mode != "off":
            self._checker.access(unique, kind, place())

    def _addresses(self) -> Mapping[str, int]:
        return self._variables.addresses()

    def _scope(self) -> AbstractContextManager[None]:
        return _both(super()._scope(), self._variables.scope())

    def _direct(self, statement: Statement, declared: set[str]) -> None:
        if isinstance(statement, VariableDeclaration):
            declare_once([statement.name], declared)
            self._variables.declare(statement)
        else:
            super()._direct(statement, declared)

    # --- statements ---

    def _transfer(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        """ld, st, ldmatrix and stmatrix."""
        self._check_since(statement)
        if lanes.any():  # what is in flight is nobody's address: that comes before complaints about it
            for operand in (statement.operands or ())[int(statement.opcode.startswith("ld")) :]:
                self._access(operand_names(operand), "read", statement.location)
        literal = is_literal(self.undefined)
        statements = SharedStatements(self._file, self.shared, self._addresses(), literal)
        access, place = statements.plan(statement, lanes), statement.location()
        if not lanes.any():
            return ()
        if access.store is not None:
            self._checker.shared_write(access.ranges, place)
            self._races.write(access.ranges, access.lanes // WARP, place)
            access.store.write(self.shared)
            return ()
        self._checker.shared_read(access.ranges, place)
        self._races.read(access.ranges, access.lanes // WARP, place)
        self._access(access.written, "write", statement.location)
        for name, value in access.written.items():
            self._file.write(name, value, lanes)
        return ()

    def _order(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        """Fences, groups, waits and barriers."""
        self._check_since(statement)
        order = _ORDERS.get(statement.opcode, wgmma_order)(statement)
        for name in order.registers:
            self._file.read(name, lanes)
        self._access(order.registers, "read", statement.location)
        if lanes.any() and not lanes.all():
            raise NotModelled(
                f"{statement.mnemonic} is modelled where all lanes execute it, not some of them"
            )
        if lanes.any():
            self._ordered(order, statement.location())
        return ()

    def _ordered(self, order: Synchronization, place: Location) -> None:
        if order.verb == "wait":
            self._checker.wait(order.groups, place)
            self._races.wait(order.groups)
            return
        events = {
            "fence": self._checker.fence,
            "commit": self._checker.commit,
            "proxy": self._checker.proxy_fence,
            "barrier": self._checker.barrier,
        }
        events[order.verb](place)
        if order.verb == "barrier":
            self._races.barrier()
        if order.verb == "commit":
            self._races.commit()

    def _check_since(self, statement: InstructionStatement) -> None:
        """The chip and the PTX version have the statement."""
        chip, version = _SINCE.get(statement.opcode, (0, (0, 0)))
        number = int("".join(filter(str.isdecimal, self.target)))
        if number < chip or (statement.opcode == "wgmma" and self.target != "sm_90a"):
            needs = "sm_90a" if statement.opcode == "wgmma" else f"sm_{chip} or higher"
            raise IllegalInstruction(f"{statement.mnemonic} is not on {self.target}: it needs {needs}")
        if self.version < version:
            major, minor = self.version
            needs = f"{version[0]}.{version[1]}"
            raise IllegalInstruction(
                f"{statement.mnemonic} needs PTX {needs}, but the version is {major}.{minor}"
            )

    # --- wgmma ---

    def _wgmma(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        if is_wgmma_order(statement):
            return self._order(statement, lanes)
        bound = self._bind(statement, bind_warpgroup)
        return [self._multiplied(statement, bound)] if lanes.all() else ()

    def _multiplied(self, statement: InstructionStatement, bound: WarpgroupBound) -> Event:
        """One wgmma: executed, reported, and its D written."""
        everyone = np.ones(_LANES, np.bool_)
        inputs = self._inputs(statement, bound)
        ranges = self._touched(statement, bound, inputs)
        meta = partial(statement.operand_location, bound.places.get("e", 0))
        with located(meta, (UndefinedBehavior, NotModelled)):
            d = execute_inputs(bound.instruction, inputs, self.engine)
        event = Event(
            statement=statement, bound=bound, inputs=inputs, d=d, warps=tuple(range(_LANES // WARP))
        )
        self._report(statement, bound, inputs, ranges)
        self._keep(event, everyone)
        return event

    def _inputs(self, statement: InstructionStatement, bound: WarpgroupBound) -> Inputs:
        """What a wgmma reads."""
        everyone, scale_d = np.ones(_LANES, np.bool_), self._scale_d(statement, bound)
        registers: dict[str, npt.NDArray[Any]] = {}
        if bound.a is not None:
            registers["a"] = self._vector(statement, "a", bound.a, bound, everyone)
        if bound.e is not None:
            registers["e"] = self._single(statement, bound.places["e"], "sp-meta", bound.e, everyone)
        if scale_d:
            accumulator = tuple(filter(None, bound.d))
            registers["c"] = self._vector(statement, "d", accumulator, bound, everyone)
        return Inputs(
            registers=registers,
            selector=bound.selector,
            literal=is_literal(self.undefined),
            shared=self._snapshot(),
            a_descriptor=self._descriptor(statement, bound, "a"),
            b_descriptor=self._descriptor(statement, bound, "b"),
            scale_d=scale_d,
            negate=(bound.imm_scale[0] < 0, bound.imm_scale[1] < 0),
            transposed=(bool(bound.imm_trans[0]), bool(bound.imm_trans[1])),
        )

    def _snapshot(self) -> npt.NDArray[np.uint8]:
        """A copy of shared memory; the last one, where nothing has changed since."""
        if not np.array_equal(self._last_snapshot, self.shared.data):
            self._last_snapshot = self.shared.data.copy()
            self._last_snapshot.flags.writeable = False
        return self._last_snapshot

    def _descriptor(
        self, statement: InstructionStatement, bound: WarpgroupBound, side: str
    ) -> npt.NDArray[np.uint64] | None:
        """The matrix descriptor of A or B, which is the same in all lanes; None where A is in registers."""
        source = bound.a_descriptor if side == "a" else bound.b_descriptor
        if source is None or isinstance(source, int):
            return None if source is None else np.array(source, np.uint64)
        index = bound.places[f"{side}_descriptor"]
        with located(partial(statement.operand_location, index)):
            values = self._register(f"{side}-desc", source, 64, np.ones(_LANES, np.bool_))
        self._uniform_in_group(f"{side}-desc", values, statement, index)
        return np.array(values[0], np.uint64)

    def _scale_d(self, statement: InstructionStatement, bound: WarpgroupBound) -> bool:
        if isinstance(bound.scale_d, bool):
            return bound.scale_d
        negated, name = bound.scale_d
        index = bound.places["scale_d"]
        with located(partial(statement.operand_location, index)):
            values = self._register("scale-d", name, 1, np.ones(_LANES, np.bool_))
        self._uniform_in_group("scale-d", values, statement, index)
        return bool(values[0]) ^ negated

    def _uniform_in_group(
        self, what: str, values: npt.NDArray[Any], statement: InstructionStatement, index: int
    ) -> None:
        """Report an operand that differs, by warps if the lanes of each warp agree."""
        warps = values.reshape(-1, WARP)
        agree = (warps == warps[:, :1]).all()
        self._checker.uniform(
            what, (warps[:, 0] if agree else values).tolist(), statement.operand_location(index)
        )

    def _touched(
        self, statement: InstructionStatement, bound: WarpgroupBound, inputs: Inputs
    ) -> npt.NDArray[np.int64]:
        """The bytes ``(n, 2)`` that A and B take up in shared memory."""
        form, ranges = bound.instruction, [np.zeros((0, 2), np.int64)]
        for side, descriptor in enumerate((inputs.a_descriptor, inputs.b_descriptor)):
            if descriptor is not None:
                m, k = form.matrix_shape("a")
                rows, columns = (m, k) if side == 0 else (form.shape.n, form.shape.k)
                bits = form.format("ab"[side]).bits
                place = bound.places[f"{'ab'[side]}_descriptor"]
                with located(partial(statement.operand_location, place)):
                    touched = touched_bytes(
                        Descriptor.decode(descriptor),
                        mn=rows,
                        k=columns * bits // max(bits, 8),
                        element_bits=max(bits, 8),
                        major="MN" if inputs.transposed[side] else "K",
                        memory_bytes=len(self.shared),
                        literal=inputs.literal,
                    )
                ranges.append(touched)
        return np.concatenate(ranges)

    def _report(
        self,
        statement: InstructionStatement,
        bound: WarpgroupBound,
        inputs: Inputs,
        ranges: npt.NDArray[np.int64],
    ) -> None:
        """Tell the checker of a wgmma; descriptors and predicates are read like by any other statement."""
        operands = statement.operands or ()
        others = [bound.b_descriptor, bound.a_descriptor, *operand_names(operands[bound.places["scale_d"]])]
        self._access([one for one in others if isinstance(one, str)], "read", statement.location)
        unique = self._file.unique
        self._races.wgmma(ranges, statement.location())
        self._checker.wgmma(
            str(bound.instruction.shape),
            d=[unique(name) for name in bound.d if name],
            a=[unique(name) for name in bound.a or () if isinstance(name, str)],
            metadata=None if bound.e is None else unique(bound.e),
            shared=ranges,
            accumulate=inputs.scale_d,
            place=statement.location(),
        )


@contextmanager
def _both(*contexts: AbstractContextManager[None]) -> Iterator[None]:
    with ExitStack() as stack:
        for context in contexts:
            stack.enter_context(context)
        yield
