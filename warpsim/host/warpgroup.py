"""The warpgroup: four warps with a shared memory, which execute ``wgmma`` and what belongs to it.

Knows what ``wgmma.mma_async`` reads and writes, and reports every statement to the hazard checker (see
hazards.py) before it takes effect. The machine itself knows no delay: D is written at the wgmma, and the
checker tells of everybody who looks before the wait. The warps run in step, and races.py tells where they
would need a barrier. Does not know files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ..checks.hazard import Hazard, Mode, by_warps
from ..checks.hazards import HazardChecker
from ..checks.races import RaceChecker
from ..errors import Location, NotModelled, UndefinedBehavior, located
from ..execution.pipeline import Undefined, is_literal
from ..isa.instruction import Inputs
from ..isa.memory import SHARED_BYTES
from ..isa.placements import tile_bytes
from ..isa.warps import WARP
from ..machine.opcodes.matrix.wgmma_groups import is_wgmma_order
from ..machine.run.engines import Engine, EngineName
from ..ptx.statements import InstructionStatement
from ..ptx.warpgroup import WarpgroupBound, bind_warpgroup
from ..recording.events import Event
from .machine import Machine, Place, host_place
from .matrix_operands import MatrixOperands, Plan
from .register_file import Mask
from .warpgroup_watch import WarpgroupWatch

_LANES = 128
_WARPS = tuple(range(_LANES // WARP))


class Warpgroup(Machine):
    """Four warps of 32 lanes with named registers, and a shared memory of ``shared_bytes``.

    Executes ``wgmma``, and what a Warp does: ``mma``, ``ldmatrix`` and their like in each warp by itself.

    ``engine`` and ``undefined`` are those of warpsim.execute. ``hazards`` says what becomes of broken
    ordering rules: "error" raises HazardError, an UndefinedBehavior, "warn" collects them in ``hazards``,
    "off" looks at none; descriptors that differ between warps are then those of lane 0. Raises as Warp
    does, and OperandError for a size that no CTA has.
    """

    name = "warpgroup"
    lanes = _LANES
    together: ClassVar[Mapping[str, int]] = {
        **dict.fromkeys(("mma", "ldmatrix", "stmatrix"), WARP),
        "wgmma": _LANES,
    }

    def __init__(
        self,
        target: str = "sm_90a",
        shared_bytes: int = SHARED_BYTES,
        *,
        engine: EngineName | Engine = "kernel",
        undefined: Undefined = "error",
        hazards: Mode = "error",
    ) -> None:
        super().__init__(target, shared_bytes, engine=engine, undefined=undefined)
        self._checker = HazardChecker(hazards, shared_bytes)
        self._races = RaceChecker(hazards, shared_bytes)
        self._executes["wgmma"] = self._wgmma

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Broken rules that were collected, and warnings: those of asynchrony, then those of barriers."""
        return self._checker.hazards + self._races.hazards

    def finish(self, place: Location | None = None) -> None:
        """The end of the program: whatever is still in flight is reported."""
        self._checker.finish(place or host_place("finish()"))

    # --- hooks of the machine ---

    def _access(self, names: Iterable[str], kind: Literal["read", "write"], place: Place) -> None:
        if self._checker.mode != "off" and (unique := [self._file.unique(name) for name in names]):
            self._checker.access(unique, kind, place)

    def _copied(self, start: int, size: int, place: Place) -> None:
        self._checker.shared_write([(start, start + size)], place, proxy="async")

    def _observers(self) -> tuple[WarpgroupWatch]:
        return (WarpgroupWatch(self._checker, self._races),)

    # --- wgmma ---

    def _wgmma(self, statement: InstructionStatement, lanes: Mask) -> Iterable[Event]:
        if is_wgmma_order(statement):
            return self._stepped(statement, lanes)
        plan = self._bind(statement, bind_warpgroup)
        return [self._multiplied(statement, plan, plan.bound)] if lanes.all() else ()

    def _multiplied(
        self, statement: InstructionStatement, plan: Plan[WarpgroupBound], bound: WarpgroupBound
    ) -> Event:
        """One wgmma: executed, reported, and its D written."""
        form, inputs = bound.instruction, self._inputs(statement, bound)
        ranges = self._touched(statement, bound, inputs)
        meta = partial(statement.operand_location, bound.places.get("e", 0))
        with located(meta, (UndefinedBehavior, NotModelled)):
            d = self._multiply(form, inputs)
        # Computed from the memory itself; whoever looks at the event later finds it as it was now.
        kept = replace(inputs, shared=self.shared.snapshot())
        event = Event(statement=statement, bound=bound, inputs=kept, d=d, warps=_WARPS)
        self._report(statement, plan, bound, inputs.scale_d, ranges)
        self._keep(event, self._file.everyone)
        return event

    def _inputs(self, statement: InstructionStatement, bound: WarpgroupBound) -> Inputs:
        """What a wgmma reads; the shared memory is not a copy."""
        operands = self._operands(statement, bound.instruction, self._file.everyone)
        scale_d = self._scale_d(statement, operands, bound)
        registers: dict[str, npt.NDArray[Any]] = {}
        if bound.a is not None:
            registers["a"] = operands.vector(bound.places["a"], "a", bound.a)
        if bound.e is not None:
            registers["e"] = operands.single(bound.places["e"], "sp-meta", bound.e)
        before = tuple(filter(None, bound.d))
        if scale_d:
            registers["c"] = operands.vector(bound.places["d"], "d", before)
        elif callable(self.engine) and (d := self._file.columns(before, np.dtype(np.uint32))) is not None:
            registers["c"] = d  # a chip might read it
        return Inputs(
            registers=registers,
            selector=bound.selector,
            literal=is_literal(self.undefined),
            shared=self.shared.peek(),
            a_descriptor=self._descriptor(operands, bound, "a"),
            b_descriptor=self._descriptor(operands, bound, "b"),
            scale_d=scale_d,
            negate=(bound.imm_scale[0] < 0, bound.imm_scale[1] < 0),
            transposed=(bool(bound.imm_trans[0]), bool(bound.imm_trans[1])),
        )

    def _descriptor(
        self, operands: MatrixOperands, bound: WarpgroupBound, side: str
    ) -> npt.NDArray[np.uint64] | None:
        """The matrix descriptor of A or B, which is the same in all lanes; None where A is in registers."""
        source = bound.a_descriptor if side == "a" else bound.b_descriptor
        if source is None or isinstance(source, int):
            return None if source is None else np.array(source, np.uint64)
        role = f"{side}-desc"
        place = partial(operands.statement.operand_location, bound.places[f"{side}_descriptor"])
        with located(place):
            values = operands.register(role, source, 64)
        self._uniform_in_group(role, values, place)
        return np.array(values[0], np.uint64)

    def _scale_d(
        self, statement: InstructionStatement, operands: MatrixOperands, bound: WarpgroupBound
    ) -> bool:
        if isinstance(bound.scale_d, bool):
            return bound.scale_d
        negated, name = bound.scale_d
        place = partial(statement.operand_location, bound.places["scale_d"])
        with located(place):
            values = operands.register("scale-d", name, 1)
        self._uniform_in_group("scale-d", values, place)
        return bool(values[0]) ^ negated

    def _uniform_in_group(self, what: str, values: npt.NDArray[Any], place: Place) -> None:
        """Report an operand that differs, by warps if the lanes of each warp agree."""
        if (values == values[0]).all():
            return
        self._checker.uniform(what, by_warps(values), place)

    def _touched(
        self, statement: InstructionStatement, bound: WarpgroupBound, inputs: Inputs
    ) -> npt.NDArray[np.int64]:
        """The bytes ``(n, 2)`` that A and B take up in shared memory."""
        form, ranges = bound.instruction, [np.zeros((0, 2), np.int64)]
        for side, descriptor in enumerate((inputs.a_descriptor, inputs.b_descriptor)):
            if descriptor is not None:
                with located(partial(statement.operand_location, bound.places[f"{'ab'[side]}_descriptor"])):
                    memory_bytes, literal = len(self.shared), inputs.literal
                    tile, major = form.in_shared_memory("ab"[side]), inputs.transposed[side]
                    ranges.append(tile_bytes(tile, int(descriptor), memory_bytes, literal, major))
        return np.concatenate(ranges)

    def _report(
        self,
        statement: InstructionStatement,
        plan: Plan[WarpgroupBound],
        bound: WarpgroupBound,
        scale_d: bool,
        ranges: npt.NDArray[np.int64],
    ) -> None:
        """Tell the checker of a wgmma; descriptors and predicates are read like by any other statement."""
        if self._checker.mode == "off":
            return
        others = [bound.b_descriptor, bound.a_descriptor, *plan.reads[4 if bound.e else 2]]
        self._access([one for one in others if isinstance(one, str)], "read", statement.location)
        unique = self._file.unique
        self._races.wgmma(ranges, statement.location)
        self._checker.wgmma(
            str(bound.instruction.shape),
            d=[unique(name) for name in plan.writes],
            a=[unique(name) for name in bound.a or () if isinstance(name, str)],
            metadata=None if bound.e is None else unique(bound.e),
            shared=ranges,
            accumulate=scale_d,
            place=statement.location,
        )
