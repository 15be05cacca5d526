"""mov, cvta and isspacep: copies, packing, and addresses in windows (PTX ISA 9.1, 9.7.9.7 and 9.7.9.20).

mov.type  d, a;              mov.type d, {a, b};            mov.type {d, _}, a;
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ptx.operands import Sink, Vector
from .. import spaces
from ..lanes import Front, Lanes, Values
from .effect import Effect
from .operation import bits_of, dtype_of

if TYPE_CHECKING:
    from ..site import Site
    from ..wave import Step, Wave

_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
_WINDOWS = {
    "shared": spaces.SHARED_WINDOW,
    "shared::cta": spaces.SHARED_WINDOW,
    "shared::cluster": spaces.SHARED_WINDOW,
    "local": spaces.LOCAL_WINDOW,
    "param": spaces.PARAM_WINDOW,
    "param::entry": spaces.PARAM_WINDOW,
    "global": 0,
    "const": 0,
}
_SPACES = tuple(_WINDOWS)


def _move(site: Site, type_name: str) -> Step:
    site.count(2)
    target, source = site.operands
    if isinstance(target, Vector):
        return _unpacked(site, type_name)
    if isinstance(source, Vector):
        return _packed(site, type_name)
    write, read = site.writer(target, type_name, 0), site.reader(source, type_name, 1)
    return lambda wave, front, lanes: write(wave, front, lanes, read(wave, front))


def _vector(site: Site, index: int) -> Vector:
    operand = site.operands[index]
    if not isinstance(operand, Vector):
        raise site.illegal(f"expected a vector, not '{operand}'", index)
    return operand


def _element_type(site: Site, vector: Vector, type_name: str, operand: int) -> str:
    count = len(vector.elements)
    if count not in (2, 4, 8) or type_name[0] != "b" or bits_of(type_name) // count < 8:
        raise site.illegal(f"mov.{type_name} does not take a vector of {count} elements", operand)
    return f"b{bits_of(type_name) // count}"


def _packed(site: Site, type_name: str) -> Step:
    """The first element is lowest."""
    vector = _vector(site, 1)
    part = _element_type(site, vector, type_name, 1)
    write, whole, bits = site.writer(site.operands[0], type_name, 0), dtype_of(type_name), bits_of(part)
    readers = [site.reader(one, part, 1, place) for place, one in enumerate(vector.elements)]

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        joined: Values = np.zeros((), whole)
        for place, read in enumerate(readers):
            joined = joined | read(wave, front).astype(whole) << whole.type(bits * place)
        write(wave, front, lanes, joined)

    return step


def _unpacked(site: Site, type_name: str) -> Step:
    vector = _vector(site, 0)
    part = _element_type(site, vector, type_name, 0)
    read, bits, narrow = site.reader(site.operands[1], type_name, 1), bits_of(part), dtype_of(part)
    writers = [
        (bits * place, site.writer(one, part, 0, place))
        for place, one in enumerate(vector.elements)
        if not isinstance(one, Sink)
    ]

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        value = read(wave, front)
        for shift, write in writers:
            write(wave, front, lanes, (value >> value.dtype.type(shift)).astype(narrow))

    return step


def _converted(site: Site, to: str, space: str, type_name: str) -> Step:
    """cvta: an address of a space becomes generic, or with ``.to`` the other way round."""
    site.count(2)
    write, read = site.writer(site.operands[0], type_name, 0), site.reader(site.operands[1], type_name, 1)
    window, dtype = _WINDOWS[space], dtype_of(type_name)
    shift = dtype.type((-window if to else window) & (1 << bits_of(type_name)) - 1)

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        with np.errstate(over="ignore"):
            write(wave, front, lanes, read(wave, front) + shift)

    return step


def _is_space(site: Site, space: str) -> Step:
    """isspacep: whether a generic address lies in a window; global is what lies in none."""
    site.count(2)
    write, read = site.writer(site.operands[0], "pred", 0), site.reader(site.operands[1], "u64", 1)
    window, others = _WINDOWS[space], sorted({one for one in _WINDOWS.values() if one})

    def step(wave: Wave, front: Front, lanes: Lanes) -> None:
        number = read(wave, front).astype(np.int64) // spaces.WINDOW_BYTES
        mine = number == window // spaces.WINDOW_BYTES
        if not window:
            mine = ~np.isin(number, [one // spaces.WINDOW_BYTES for one in others])
        write(wave, front, lanes, mine)

    return step


ROWS: tuple[Effect, ...] = (
    Effect(opcode="mov", slots=(_TYPES,), bind=_move),
    Effect(
        opcode="cvta", slots=(("", "to"), _SPACES, ("u32", "u64")), bind=_converted, since=(2, 0), chip=20
    ),
    Effect(opcode="isspacep", slots=(_SPACES,), bind=_is_space, since=(2, 0), chip=20),
)
