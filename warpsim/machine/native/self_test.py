"""A test of machine code before a process uses it: a few hundred lanes, against integers of Python.

One function has the shapes for which LLVM has made wrong code (wrong_folds.py): some bits of a register, by a
constant mask, and the others of what is read once from memory, under guards, into a register that is a
source. The other function computes and compares under guards. Both are written and compiled as all statements
are, so that the test finds what the search of objects does not know. Knows no LLVM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..bind.pure_semantics import PureSemantics, Source
from .lane_functions import Piece, Writer

Array = np.ndarray[Any, Any]

# Signs, infinities and NaNs of both kinds, subnormals and alternating bits of binary64; the low halves are
# those of binary32.
_NASTY = (
    *(0, 0xFFFF_FFFF_FFFF_FFFF, 0x8000_0000_8000_0000, 0x7FFF_FFFF_7FFF_FFFF, 0x7FF0_0000_7F80_0000),
    *(0xFFF0_0000_FF80_0000, 0x7FF0_0000_0000_0001, 0xFFF8_0000_7FC0_0001, 0x0000_0000_0000_0001),
    *(0x000F_FFFF_807F_FFFF, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0x0123_4567_89AB_CDEF),
    *(0xFEDC_BA98_7654_3210, 0x00FF_00FF_00FF_00FF, 0xC000_0001_3F80_0000),
)
_SPREAD = 0x9E37_79B9_7F4A_7C15  # an odd number, whose multiples have bits of all kinds
_GUARDS = 3  # registers 0 to 2


class Step(NamedTuple):
    """Where its guard holds, x becomes what ``way`` says. Two temporaries follow the register x."""

    bits: int
    way: str
    mask: int
    guard: int
    negated: bool
    x: int
    y: int


class Way(NamedTuple):
    """What a step computes of x, y, the mask and its complement, in arrays and in integers."""

    compute: Callable[..., tuple[Any, ...]]
    plain: Callable[[int, int, int, int], int]


def failure(function: Callable[[str], Any]) -> str:
    """Return in how many lanes machine code of the steps is wrong, "" for none.

    ``function`` returns the function of a text.
    """
    for ways in (_CHOOSING, _COMPUTING):
        steps, held = _steps(ways)
        made, answer = _call(function, steps, held)
        wrong = sum(made[number] != values for number, values in _expected_values(steps, held).items())
        lanes = int(np.count_nonzero(wrong))
        if lanes or answer:
            return f"{lanes} of {held[0].size} lanes are wrong"
    return ""


def _call(
    function: Callable[[str], Any], steps: list[Step], held: list[Array]
) -> tuple[dict[int, Array], int]:
    """Return what registers hold after the steps, and what their function returns."""
    places = Writer([item.dtype for item in held], (), False).write([*_pieces(steps)])
    made = {number: np.empty_like(held[number]) for number in places.outputs}
    written = [np.empty(held[0].size, np.bool_) for _ in places.guarded]
    objects = [held[number] for number in (*places.reads, *places.olds)]
    objects += [np.ones(held[0].size, np.bool_)] * places.mask + [*made.values(), *written]
    words = (ctypes.c_uint64 * 1)()
    addresses = (ctypes.c_size_t * len(objects))(*map(id, objects))
    return made, function(places.text)(addresses, held[0].size, words, words)


def _steps(ways: Mapping[str, Way]) -> tuple[list[Step], list[Array]]:
    """Return steps of some ways, each of which reads the x of the last, and what registers hold at first.

    Each y and each mask is another; all pairs of x and y are of nasty words.
    """
    pairs = np.array([*product(_NASTY, repeat=2)], np.uint64)
    lanes, steps = np.arange(len(pairs)), list[Step]()
    held: list[Array] = [(lanes >> guard) % (guard + 2) == 0 for guard in range(_GUARDS)]
    for bits in (32, 64):
        x, dtype = len(held), np.dtype(f"u{bits // 8}")
        held += [np.ascontiguousarray(pairs[:, 0]).astype(dtype) for _ in range(3)]  # x, two temporaries
        for number, way in enumerate(ways):
            mask = 1 << bits - 1 if way.startswith("sign") else _SPREAD * (2 * number + 1) & (1 << bits) - 1
            steps.append(Step(bits, way, mask, number % _GUARDS, number % 5 < 2, x, len(held)))
            held.append(np.roll(pairs[:, 1], number).astype(dtype))
    return steps, held


def _expected_values(steps: list[Step], held: list[Array]) -> dict[int, Array]:
    """Return x of each width after all steps, by register, in integers of Python."""
    words = {step.x: held[step.x].tolist() for step in steps}
    for step in steps:
        every, plain = (1 << step.bits) - 1, (_CHOOSING | _COMPUTING)[step.way].plain
        lanes, y, rest = words[step.x], held[step.y].tolist(), every ^ step.mask
        for lane, guard in enumerate(held[step.guard].tolist()):
            if guard != step.negated:
                lanes[lane] = plain(lanes[lane], y[lane], rest, step.mask) & every
    return {number: np.array(lanes, held[number].dtype) for number, lanes in words.items()}


# --- statements of a step ---------------------------------------------------------------------------------


def _pieces(steps: list[Step]) -> Iterator[Piece]:
    for step in steps:
        x, y, parts = Source(register=step.x), Source(register=step.y), (step.x + 1, step.x + 2)
        mask, rest = _constant(step.bits, step.mask), _constant(step.bits, ~step.mask)
        if step.way == "temporaries":
            yield Piece(semantics=PureSemantics(lambda a, b: (a & b,), (x, rest), parts[:1]))
            yield Piece(semantics=PureSemantics(lambda a, b: (a & b,), (y, mask), parts[1:]))
            x, y = (Source(register=part) for part in parts)
        semantics = PureSemantics((_CHOOSING | _COMPUTING)[step.way].compute, (x, y, rest, mask), (step.x,))
        yield Piece(semantics=semantics, guard=step.guard, negated=step.negated)
        if step.way == "temporaries":
            yield from (
                Piece(semantics=PureSemantics(None, (_constant(step.bits, 0),), (part,))) for part in parts
            )


def _constant(bits: int, value: int) -> Source:
    constant = np.asarray(np.dtype(f"u{bits // 8}").type(value & (1 << bits) - 1))
    return Source(read=lambda wave, path: constant, constant=constant)


def _masked_select(x: Any, y: Any, rest: Any, mask: Any) -> tuple[Any, ...]:
    return ((x & rest) | (y & mask),)


def _by_table(x: Any, y: Any, rest: Any, mask: Any) -> tuple[Any, ...]:
    """Return the union of those of the eight products of lop3 that its table has."""
    return ((rest & x & y) | (rest & x & ~y) | (mask & x & y) | (mask & ~x & y),)


def _sign_select(x: Any, y: Any, rest: Any, mask: Any) -> tuple[Any, ...]:
    real = np.dtype(f"f{x.dtype.itemsize}")
    return (np.copysign(x.view(real), y.view(real)).view(x.dtype),)


def _select(x: int, y: int, rest: int, mask: int) -> int:
    return x & rest | y & mask


_CHOOSING = {
    "masks": Way(_masked_select, _select),
    "temporaries": Way(lambda x, y, rest, mask: (x | y,), _select),
    "table": Way(_by_table, _select),
    "sign": Way(_masked_select, _select),
    "sign of a float": Way(_sign_select, _select),
}
_COMPUTING = {
    "sum": Way(lambda x, y, rest, mask: (x + (y ^ mask),), lambda x, y, rest, mask: x + (y ^ mask)),
    "product": Way(lambda x, y, rest, mask: (x * y - mask,), lambda x, y, rest, mask: x * y - mask),
    "least": Way(lambda x, y, rest, mask: (np.minimum(x, y) << 3,), lambda x, y, rest, mask: min(x, y) << 3),
    "choice": Way(
        lambda x, y, rest, mask: (np.where(y < mask, x >> 5, y),),
        lambda x, y, rest, mask: x >> 5 if y < mask else y,
    ),
}
