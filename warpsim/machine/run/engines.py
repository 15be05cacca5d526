"""What computes the matrix instructions of a launch, and what becomes of metadata without a meaning.

Knows names and what they stand for; does not know instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, get_args

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.instruction import Instruction
from ...isa.operand_places.placements import Inputs
from ...isa.products import Codes, Operands
from ...isa.rules import Rule
from ...sums.execution.pipeline import Engine as EngineName
from ...sums.execution.pipeline import Undefined, execute_inputs, execute_operands

Engine = Callable[[Instruction, Inputs], npt.NDArray[Any]]
Multiply = Callable[[Operands, Rule], Codes]


class Interposed(Protocol):
    """What computes matrix instructions in place of ``Modes.engine``, and knows which warps execute them.

    ``warps`` (executions,) are the numbers in the wave of the warps, of the first warp of each warpgroup.
    """

    def registers(
        self, wave: Any, warps: npt.NDArray[Any], form: Instruction, inputs: Inputs
    ) -> npt.NDArray[Any]:
        """Return D ``(executions, lanes, registers)`` of mma and wgmma."""

    def fragments(
        self, wave: Any, warps: npt.NDArray[Any], form: Instruction, codes: Mapping[str, Codes]
    ) -> Codes:
        """Return codes of D ``(executions, m, n)`` of wmma, from A, B as its columns, and C."""

    def descriptors(self, pc: int, role: str, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the descriptors ``(warpgroups,)`` of operand a or b of a wgmma that are used for these."""

    def tensor_operands(self, wave: Any, pc: int, lane: int, given: Any) -> Any:
        """Return the operands of a tcgen05.mma (``Given`` of its statement) that are used for these."""

    def tensor_product(self, wave: Any, work: Any) -> Codes:
        """Return codes of D ``(..., m, n)`` of a tcgen05.mma, a ``Multiplication`` that completes."""


@dataclass(frozen=True, kw_only=True)
class Modes:
    """What computes matrix instructions, and how.

    ``literal`` computes with metadata that have no meaning instead of refusing them. ``given`` says that
    ``engine`` is a function of the user: it gets D as it was before as ``c`` whatever scale-d says, as a chip
    might read it. ``interposed`` computes in place of ``engine``.
    """

    engine: Engine = execute_inputs
    multiply: Multiply = execute_operands  # of instructions whose operands lie in no registers
    literal: bool = False
    given: bool = False
    interposed: Interposed | None = None

    def engine_of(self, wave: Any, warps: npt.NDArray[Any]) -> Engine:
        """Return what computes an instruction that these warps execute."""
        return self.engine if self.interposed is None else partial(self.interposed.registers, wave, warps)


DEFAULT_MODES = Modes()


def modes_of(engine: EngineName | Engine, undefined: Undefined) -> Modes:
    """Return the modes of a launch; raises OperandError for an engine or mode that does not exist.

    A function may have one more, ``multiply``, for instructions whose operands lie in no registers.
    """
    if undefined not in get_args(Undefined):
        raise OperandError(f"undefined={undefined!r}: expected {_join_names(Undefined)}")
    own = getattr(engine, "multiply", execute_operands)
    multiply = own if callable(engine) else partial(execute_operands, engine=engine)
    literal = undefined == "fallback"
    return Modes(engine=_engine(engine), multiply=multiply, literal=literal, given=callable(engine))


def _engine(engine: EngineName | Engine) -> Engine:
    if callable(engine):
        return partial(_user_result, engine)
    if engine not in get_args(EngineName):
        raise OperandError(f"engine={engine!r}: expected {_join_names(EngineName)}, or a function")
    return partial(execute_inputs, engine=engine)


def _user_result(engine: Engine, form: Instruction, inputs: Inputs) -> npt.NDArray[Any]:
    """D of an engine that a user gives; raises OperandError where it is not a D."""
    d = engine(form, inputs.by_rows())
    wanted = (*executions_of(inputs), *form.held("d").shape)
    dtype = np.dtype(f"u{form.register_bits // 8}")
    if not isinstance(d, np.ndarray) or d.shape != wanted or d.dtype != dtype:
        given = f"{d.dtype} {d.shape}" if isinstance(d, np.ndarray) else type(d).__name__
        raise OperandError(f"the engine returns {given} for {form.mnemonic}: expected {dtype} {wanted}")
    return d.copy()  # it may give the same array again


def executions_of(inputs: Inputs) -> tuple[int, ...]:
    """Return the leading axes of all that an instruction reads: a wgmma need not read registers."""
    registers = [words.shape[:-2] for words in inputs.registers.values()]
    memories = [] if inputs.shared is None else [inputs.shared.shape[:-1]]
    return np.broadcast_shapes(*registers, *memories)


def _join_names(names: Any) -> str:
    return " or ".join(map(repr, get_args(names)))


__all__ = [
    "DEFAULT_MODES",
    "Engine",
    "EngineName",
    "Interposed",
    "Modes",
    "Undefined",
    "executions_of",
    "modes_of",
]
