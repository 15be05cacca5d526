"""st.bulk: zeros in shared memory, many at a time (PTX ISA 9.3, section 9.7.9.13).

st.bulk{.weak}{.shared::cta}  [a], size, 0;      // a and size are multiples of 8
"""

from __future__ import annotations

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operands import Register
from ...bind.scope import RegisterName
from ...bind.value_types import bits_of
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes
from ..asynchronous.tensor_boxes import single, values_of
from ..effect import Effect
from ..statement_binder import Reader, StatementBinder
from .transfers import store

_WORD = 8  # bytes
_MOST = 1 << 24  # bytes


def _size(binder: StatementBinder) -> Reader:
    """Return the number of bytes, of 32 or 64 bits; raises IllegalInstruction for constants out of range."""
    operand = binder.operands[1]
    constant = operand.value if isinstance(operand, Immediate) and operand.kind == "integer" else 0
    if not 0 <= constant <= _MOST or constant % _WORD:
        raise binder.illegal(f"a size of {operand}: expected a multiple of {_WORD}, 0 to {_MOST}", 1)
    found = binder.scope.find(operand.name) if isinstance(operand, Register) else None
    narrow = isinstance(found, RegisterName) and bits_of(found.type) == 32
    if narrow:
        binder.check_available((9, 0), name="st.bulk with a size of 32 bits")
    return binder.reader(operand, "u32" if narrow else "u64", 1)


def _fill(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(3)
    value = binder.operands[2]
    if not isinstance(value, Immediate) or value.kind != "integer" or value.value:
        raise binder.illegal(f"st.bulk stores zeros: its value is 0, not '{value}'", 2)
    space = "shared" if "shared::cta" in modifiers else "generic"
    address, size = binder.address(0, space), _size(binder)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        places, sizes = (values_of(read, wave, path, lanes) for read in (address, size))
        zero = np.zeros((1, 1), np.uint64)
        for lane, where, count in zip(lanes.index.tolist(), places, sizes, strict=True):
            _check(wave, path, lane, space, where, count)
            for offset in range(0, count, _WORD):
                store(wave, path, single(wave, lane), space, np.array([where + offset], np.int64), zero)

    return step


def _check(wave: Wave, path: DivergentPath, lane: int, space: str, where: int, count: int) -> None:
    """Raise Fault for a size that is not a multiple of a word, and for addresses outside shared memory."""
    record = wave.code[path.pc]
    if count % _WORD or count > _MOST:
        raise wave.fault(
            record, lane, f"st.bulk: a size of {count}: expected a multiple of {_WORD}, 0 to {_MOST}"
        )
    if space == "generic" and spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW):
        raise wave.fault(record, lane, f"st.bulk: the generic address {where:#x} is not in shared memory")
    if count:  # nothing is written before the last word is known to be inside
        last = np.array([where + count - _WORD], np.int64)
        wave.locate(space, single(wave, lane), last, _WORD)


ROWS: tuple[Effect, ...] = (
    Effect(
        opcode="st",
        slots=(("bulk",), ("", "weak"), ("", "shared::cta")),
        bind=_fill,
        since=(8, 6),
        feature=Feature.BULK_STORE,
    ),
)
