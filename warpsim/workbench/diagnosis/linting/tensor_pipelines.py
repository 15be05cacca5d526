"""What is wrong with the tcgen05 statements of a function, whatever it is given: found in the text alone.

    commit       no path leads from a tcgen05.mma, cp or shift to a tcgen05.commit
    stores       no path leads from a tcgen05.st to a tcgen05.wait::st
    wait         a tcgen05.commit, and nowhere in the function a wait for an mbarrier
    dealloc      a tcgen05.alloc, and nowhere a tcgen05.dealloc
    permit       a path leads from tcgen05.relinquish_alloc_permit to tcgen05.alloc
    threads      nothing before a tcgen05.mma, cp or commit chooses a thread: all threads issue it
    descriptor   a constant that the tcgen05.mma does not take: a descriptor of wgmma, an illegal word,
                 a K of 96 or an absolute LBO that the target lacks

A function that calls others, or is called, is judged by its constants alone: others may have what is missing.
Knows names and constants; does not know lanes, values or which barrier is meant. PTX ISA 9.3, section 9.7.17.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ....base.errors import IllegalInstruction, OperandError, WarpsimError
from ....isa.architectures import least_targets, targets_with
from ....isa.descriptors.tensor_descriptor import TensorDescriptor
from ....isa.families.tcgen05 import form_of, spelling_of
from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import Operand, Register, Vector
from ....ptx.statements import InstructionStatement, Kernel, Program
from .pipelines import ControlFlow, PipelineFinding

_OPCODE = "tcgen05"
_ASYNCHRONOUS = ("mma", "cp", "shift")
_BY_ONE = (*_ASYNCHRONOUS, "commit")
_WAITS = ("try_wait", "test_wait")
_LOW = 1 << 46  # values below cannot set the constant of a descriptor
_DEEPEST = 16


def tensor_findings(program: Program, target: str) -> list[PipelineFinding]:
    """Return what is wrong with the tcgen05 statements of each function on a target, in the order of the
    text.
    """
    kernels = (item for item in program.statements if isinstance(item, Kernel) and item.body is not None)
    return [finding for kernel in kernels for finding in _Function(kernel, target).findings()]


@dataclass(frozen=True, kw_only=True)
class _Need:
    """A rule: statements of ``verbs`` need another on a path behind them, or with ``anywhere`` in the
    function, where other warps may execute it."""

    rule: str
    verbs: tuple[str, ...]
    anywhere: bool = False
    message: str
    fix: str


_NEEDS = (
    _Need(
        rule="commit",
        verbs=_ASYNCHRONOUS,
        message="no tcgen05.commit follows on any path: nothing says when this is complete",
        fix="let the same thread execute tcgen05.commit, with the mbarrier that the readers of D wait for",
    ),
    _Need(
        rule="wait",
        verbs=("commit",),
        anywhere=True,
        message="nothing in the function waits for an mbarrier: nothing waits until the work is complete",
        fix="wait for the phase with mbarrier.try_wait.parity before D, or a stage, is used again",
    ),
    _Need(
        rule="stores",
        verbs=("st",),
        message="no tcgen05.wait::st follows on any path: what is stored may not be there when it is read",
        fix="put tcgen05.wait::st.sync.aligned; behind the last tcgen05.st, before the barrier",
    ),
    _Need(
        rule="dealloc",
        verbs=("alloc",),
        anywhere=True,
        message="the function has no tcgen05.dealloc: the columns must be freed before the CTA exits",
        fix="let a warp execute tcgen05.dealloc.cta_group::N.sync.aligned.b32 with the same address and size",
    ),
)


class _Function:
    """The statements of one function, and where each register is written."""

    def __init__(self, kernel: Kernel, target: str) -> None:
        self.kernel, self.target = kernel, target
        self.flow = ControlFlow(kernel)
        self.statements = self.flow.statements
        self.verbs = [_verb(statement) for statement in self.statements]

    def findings(self) -> Iterator[PipelineFinding]:
        """Yield the findings, a single finding for each rule of paths."""
        if not any(self.verbs):
            return
        calls = any(statement.opcode == "call" for statement in self.statements)
        if self.kernel.kind == "entry" and not calls:
            for need in _NEEDS:
                yield from self._missing_statements(need)
            yield from self._permit()
            yield from self._threads()
        for place, verb in enumerate(self.verbs):
            if verb == "mma":
                yield from self._constants(place)

    def _missing_statements(self, need: _Need) -> Iterator[PipelineFinding]:
        gives = {at for at in range(len(self.statements)) if self._gives(need.rule, at)}
        for place, verb in enumerate(self.verbs):
            if verb in need.verbs and not (gives if need.anywhere else gives & self.flow.behind(place)):
                yield self._finding(need.rule, place, need.message, need.fix)
                return

    def _gives(self, rule: str, place: int) -> bool:
        statement = self.statements[place]
        if rule == "wait":
            return statement.opcode == "mbarrier" and statement.modifiers[:1] in [(word,) for word in _WAITS]
        wanted = {"commit": "commit", "stores": "wait::st", "dealloc": "dealloc"}[rule]
        return self.verbs[place] == wanted

    def _permit(self) -> Iterator[PipelineFinding]:
        for place, verb in enumerate(self.verbs):
            if verb == "relinquish_alloc_permit":
                later = [at for at in sorted(self.flow.behind(place)) if self.verbs[at] == "alloc"]
                for at in later[:1]:
                    line = self.statements[place].location().line
                    message = f"tcgen05.alloc follows the tcgen05.relinquish_alloc_permit at line {line}"
                    yield self._finding("permit", at, message, "allocate before the permit is given up")

    def _threads(self) -> Iterator[PipelineFinding]:
        """Yield the first statement of a thread that every thread of the CTA executes."""
        if re.search(r"ntid\s+1\s*(,\s*1\s*)*(\D|$)", self.kernel.tuning):
            return
        for place, statement in enumerate(self.statements):
            if (
                statement.guard is not None and statement.opcode in ("bra", "exit", "ret")
            ) or statement.opcode == "brx":
                return
            if self.verbs[place] in _BY_ONE and statement.guard is None:
                message = (
                    f"every thread executes this tcgen05.{self.verbs[place]}: it is issued once a thread"
                )
                fix = "choose a single thread before, with elect.sync or a branch on %tid.x"
                yield self._finding("threads", place, message, fix)
                return

    def _finding(self, rule: str, place: int, message: str, fix: str) -> PipelineFinding:
        location = self.statements[place].location()
        return PipelineFinding(rule=rule, message=message, location=location, fix=fix)

    # --- constants ---

    def _constants(self, place: int) -> Iterator[PipelineFinding]:
        statement = self.statements[place]
        try:
            form = form_of(statement.modifiers)
        except IllegalInstruction:
            return
        operands = statement.operands or ()
        at = 4 if form.sparse else 3
        word = self._constant(operands[at]) if len(operands) > at else None
        if word is not None:
            try:
                spelling_of(form, self.target).described(word & 0xFFFFFFFF)
            except OperandError as error:
                yield self._finding("descriptor", place, error.message, "put a legal value there")
            except WarpsimError:
                pass  # not known, but legal
        for side in (1, 2):
            yield from self._check_tile_descriptor(place, operands[side]) if len(operands) > side else ()

    def _check_tile_descriptor(self, place: int, operand: Operand) -> Iterator[PipelineFinding]:
        """Yield a descriptor of A or B whose constant bits leave 0 in bits 48 to 46, or have a mode of
        the LBO that the target lacks.
        """
        bits = self._bits(operand, 0)
        if bits is None or not bits >> 32:
            return
        if bits >> 46 & 7:
            # a descriptor whose LBO is absolute, which belongs to a K of 96, where the target has none
            if bits >> 52 & 1 and self.target not in targets_with(Feature.TENSOR_DEPTH_96):
                message = (
                    f"matrix descriptor: LBO mode is 1 (bit 52); legal on {self.target}: 0, as an absolute "
                    f"LBO belongs to a K of 96, which needs {least_targets(Feature.TENSOR_DEPTH_96)}"
                )
                yield self._finding("descriptor", place, message, "clear bit 52")
            return
        try:
            TensorDescriptor.decode(bits)
        except OperandError as error:
            yield self._finding(
                "descriptor", place, error.message, "set bit 46, and take the codes of swizzles of tcgen05"
            )

    @cached_property
    def _definitions(self) -> dict[str, list[InstructionStatement]]:
        found: dict[str, list[InstructionStatement]] = {}
        for statement in self.statements:
            for name in _first_names(statement):
                found.setdefault(name, []).append(statement)
        return found

    def _definition(self, operand: Operand) -> InstructionStatement | None:
        """Return the only statement that writes a register; None where there is another."""
        name = operand.name if isinstance(operand, Register) else ""
        found = self._definitions.get(name, [])
        single = len(found) == 1 and self.flow.declared.get(name, 1) == 1 and found[0].guard is None
        return found[0] if single else None

    def _constant(self, operand: Operand) -> int | None:
        if isinstance(operand, Immediate):
            return operand.value
        made = self._definition(operand)
        if made is None or made.opcode != "mov" or not made.operands or len(made.operands) != 2:
            return None
        source = made.operands[1]
        return source.value if isinstance(source, Immediate) else None

    def _bits(self, operand: Operand, depth: int) -> int | None:
        """Return the constant bits of a value whose others lie below bit 46; None where that is not known."""
        if isinstance(operand, Immediate):
            return operand.value & (1 << 64) - 1
        made = self._definition(operand)
        if made is None or depth > _DEEPEST or not made.operands:
            return None
        sources = made.operands[1:]
        if made.opcode in ("or", "add", "mov"):
            return self._combined_constant(sources, depth)
        narrow = made.opcode == "cvt" and made.modifiers[-1:] in (("u32",), ("u16",))
        masks = [source.value for source in sources if isinstance(source, Immediate)]
        masked = made.opcode == "and" and any(0 <= mask < _LOW for mask in masks)
        return 0 if narrow or masked else None

    def _combined_constant(self, sources: Sequence[Operand], depth: int) -> int | None:
        found = 0
        for source in sources:
            bits = self._bits(source, depth + 1)
            if bits is None:
                return None
            found |= bits
        return found


def _verb(statement: InstructionStatement) -> str:
    """Return the first modifier of a tcgen05 statement: mma, cp, wait::st and so on; "" for others."""
    return statement.modifiers[0] if statement.opcode == _OPCODE and statement.modifiers else ""


def _first_names(statement: InstructionStatement) -> Iterator[str]:
    """Yield the registers of the first operand, which a statement may write."""
    first = (statement.operands or (None,))[0]
    elements = first.elements if isinstance(first, Vector) else (first,)
    yield from (element.name for element in elements if isinstance(element, Register))
