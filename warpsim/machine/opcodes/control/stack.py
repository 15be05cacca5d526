"""alloca, stacksave, stackrestore: local memory taken at run time (PTX ISA 9.1, section 9.7.17), and its end.

Memory that a lane allocates lies behind the variables of its frame, and is freed when the function returns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....base.errors import StackOverflow, UndefinedBehavior
from ....isa.architectures import LARGEST
from ....ptx.constants import Immediate
from ....ptx.symbols import shown
from ...bind.functions import Function
from ...bind.value_types import dtype_of
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Frame, Lanes
from ..effect import Effect
from ..statement_binder import StatementBinder

_ALIGNMENT = 8  # where none is given
_LEAST = 16  # bytes of the frame of a function that calls
_MOST_KEPT = 1 << 29  # bytes of the frames that lanes return to, in chains of more than _DEEP calls
_DEEP = 64
_MOST = LARGEST.local_bytes  # of a thread, on every chip
Places = npt.NDArray[np.int64]


def check_stack(wave: Wave, path: DivergentPath, lanes: Lanes, frame: Frame, function: Function) -> None:
    """Raise StackOverflow where the frame of a function that is called does not fit the memory of a thread.

    Frames that are kept for all lanes to return to take memory here, too, which limits deep chains.
    """
    frame.kept = path.frame.kept + _kept_bytes(path.frame)
    if frame.local + function.local_bytes > _MOST:
        limit = f"a thread has {_MOST:,} bytes of local memory"
    elif frame.depth > _DEEP and frame.kept + frame.local * wave.lanes > _MOST_KEPT:
        limit = f"{wave.lanes:,} lanes keep {_MOST_KEPT:,} bytes for returns at most"
    else:
        return
    place = wave.code[path.pc].statement.location()
    name = shown(function.name)
    message = f"stack overflow: {name} is called in a chain of {frame.depth:,} calls: {limit}"
    raise StackOverflow(f"{message} [{wave.describe_lanes(lanes)}]", place)


def _kept_bytes(frame: Frame) -> int:
    """Return the bytes of the registers of a frame, in all lanes."""
    return sum(values.nbytes for values in frame.values if values is not None)


def _start(wave: Wave, frame: Frame) -> int:
    """Return where the stack of a frame begins in local memory."""
    return frame.local + -(-wave.local_bytes_of(frame) // 16) * 16


def _top(wave: Wave, frame: Frame) -> Places:
    """Return (lanes,): the first byte behind what each lane has taken."""
    return np.full(wave.lanes, _start(wave, frame)) if frame.top is None else frame.top


def end_of(wave: Wave, frame: Frame) -> int:
    """Return where the frame of a function that is called begins: the same place in all lanes.

    What a chip keeps for the return takes 16 bytes at least, which ptxas 13.0 states for such a function.
    """
    end = -(-int(_top(wave, frame).max()) // 16) * 16
    return end if frame.function is None else max(end, frame.local + _LEAST)


def _alloca(binder: StatementBinder, type_name: str) -> Step:
    count = binder.count(2, 3)
    alignment = _alignment(binder) if count == 3 else _ALIGNMENT
    write, read = (
        binder.writer(binder.register_operand(0), type_name, 0),
        binder.reader(binder.operands[1], type_name, 1),
    )
    dtype = dtype_of(type_name)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        top, size = _top(wave, path.frame), np.broadcast_to(read(wave, path), (wave.lanes,))
        begin = (top + alignment - 1) // alignment * alignment
        over = lanes.mask & (size > np.maximum(_MOST - begin, 0).astype(np.uint64))
        if over.any():
            lane = int(over.argmax())
            message = f"alloca of {int(size[lane])} bytes: a thread has {_MOST} bytes of local memory"
            raise wave.fault(wave.code[path.pc], lane, message)
        ends = begin + np.where(lanes.mask, size, 0).astype(np.int64)
        path.frame.top = np.where(lanes.mask, ends, top)
        wave.memories.reserve_local(int(path.frame.top.max()))
        write(wave, path, lanes, begin.astype(dtype))

    return step


def _alignment(binder: StatementBinder) -> int:
    given = binder.operands[2]
    if not isinstance(given, Immediate):
        raise binder.illegal(f"the alignment of alloca is a constant, not '{given}'", 2)
    if given.kind != "integer" or given.value <= 0 or given.value & given.value - 1:
        raise binder.illegal(f"an alignment of {given}: expected a power of two", 2)
    return given.value


def _save(binder: StatementBinder, type_name: str) -> Step:
    binder.count(1)
    write, dtype = binder.writer(binder.register_operand(0), type_name, 0), dtype_of(type_name)
    return lambda wave, path, lanes: write(wave, path, lanes, _top(wave, path.frame).astype(dtype))


def _restore(binder: StatementBinder, type_name: str) -> Step:
    binder.count(1)
    read = binder.reader(binder.register_operand(0), type_name, 0)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        top, start = _top(wave, path.frame), _start(wave, path.frame)
        given = np.broadcast_to(read(wave, path), (wave.lanes,)).astype(np.int64)
        wrong = lanes.mask & ((given < start) | (given > top))
        if wrong.any():
            lane = int(wrong.argmax())
            message = f"stackrestore of {int(given[lane]):#x}, which no stacksave of this function gave"
            location = binder.statement.location()
            raise UndefinedBehavior(f"{message} [{wave.describe_lane(lane)}]", location)
        path.frame.top = np.where(lanes.mask, given, top)

    return step


_TYPES = ("u32", "u64")
ROWS: tuple[Effect, ...] = (
    Effect(opcode="alloca", slots=(_TYPES,), bind=_alloca, since=(7, 3)),
    Effect(opcode="stacksave", slots=(_TYPES,), bind=_save, since=(7, 3)),
    Effect(opcode="stackrestore", slots=(_TYPES,), bind=_restore, since=(7, 3)),
)
