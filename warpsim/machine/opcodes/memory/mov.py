"""mov, cvta and isspacep: copies, packing, and addresses in windows (PTX ISA 9.1, 9.7.9.7 and 9.7.9.20).

mov.type  d, a;              mov.type d, {a, b};            mov.type {d, _}, a;
mov.v2.type d, a;
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....isa.features import Feature
from ....ptx.constants import Immediate
from ....ptx.operand_types import CONSTANT_NAMES, CONSTANT_TYPES
from ....ptx.operands import Displacement, Operand, Register, Sink, Vector
from ...bind.scope import RegisterName, Variable
from ...bind.value_types import bits_of, dtype_of
from ...run.clusters import own_cta
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ..effect import Effect
from ..operation import Compute
from ..special_registers import type_of
from ..statement_binder import Reader, StatementBinder, Writer
from ..wide import WIDE, needed, word_readers, word_type, word_writers

_TYPES = ("pred", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "b128")
_COUNTS = ((1, 2, 4, 8), (2, 4))  # elements that are packed into up to 64 bits, and into more
_FEW = 256  # lanes, of which arrays of constants may be kept
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
_Since = tuple[tuple[str, ...], tuple[int, int], "Feature | None"]
_SINCE: tuple[_Since, ...] = (  # state spaces, first PTX version and feature of cvta and isspacep with them
    (("global", "const", "shared", "local"), (2, 0), None),
    (("param",),           (7, 7), None),
    (("shared::cta",),     (7, 8), None),
    (("param::entry",),    (8, 3), None),
    (("shared::cluster",), (7, 8), Feature.CLUSTERS),
)  # fmt: skip


def _move(binder: StatementBinder, type_name: str) -> Step:
    binder.count(2)
    binder.check_available(needed((type_name,)))
    target, source = binder.operands
    if isinstance(target, Vector):
        if isinstance(source, Vector):
            raise binder.illegal(f"mov.{type_name} packs or unpacks, but both operands are vectors", 1)
        _check_constant(binder, source, type_name)
        return _unpacked(binder, type_name)
    if isinstance(source, Vector):
        return _packed(binder, type_name)
    if isinstance(target, Sink):
        raise binder.illegal(f"mov.{type_name} writes a register, not '_'", 0)
    _check_constant(binder, source, type_name)
    readers = word_readers(binder, source, type_name, 1)
    if isinstance(source, Immediate):
        readers = [_everywhere(binder, read) for read in readers]
    writers = word_writers(binder, target, type_name, 0)
    binder.computes(None, readers, writers)
    return _move_step(writers, readers)


def _everywhere(binder: StatementBinder, read: Reader) -> Reader:
    """Return a constant in all lanes: of few, one array for all times that it is read."""
    kept: dict[int, Values] = {}
    value = binder.sources[read].constant
    assert value is not None

    def constant(wave: Wave, path: DivergentPath) -> Values:
        if wave.lanes > _FEW:
            return value
        found = kept.get(wave.lanes)
        if found is None:
            found = kept[wave.lanes] = np.full(wave.lanes, value)
        return found

    return binder.constantly(value, constant)


def _check_constant(
    binder: StatementBinder, source: Operand, type_name: str, element: int | None = None
) -> None:
    """Check that a constant stands where ptxas takes it: mov.b32 takes those of f32, but not of f64."""
    if isinstance(source, Immediate) and type_name not in (*CONSTANT_TYPES[source.kind], WIDE):
        message = f"mov.{type_name} does not take {CONSTANT_NAMES[source.kind]}"
        raise binder.illegal(message, 1, element)


def _move_step(writers: list[Writer], readers: list[Reader]) -> Step:
    """Return a step that reads everything before it writes anything."""
    if len(writers) == 1:
        write, read = writers[0], readers[0]
        return lambda wave, path, lanes: write(wave, path, lanes, read(wave, path))

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        for write, values in zip(writers, [read(wave, path) for read in readers], strict=True):
            write(wave, path, lanes, values)

    return step


def _move_vector(binder: StatementBinder, vector: str, type_name: str) -> Step:
    """mov.v2 and mov.v4: element by element; %tid and its like are vectors of four."""
    binder.count(2)
    count = int(vector[1:])
    if isinstance(binder.operands[1], Immediate):
        raise binder.not_modelled(f"'{binder.statement.mnemonic}' of a constant is not modelled", 1)
    targets, sources = binder.elements(0, count), _elements(binder, count)
    readers = [binder.reader(source, type_name, 1, place) for place, source in enumerate(sources)]
    return _move_step(
        [binder.writer(target, type_name, 0, place) for place, target in enumerate(targets)], readers
    )


def _elements(binder: StatementBinder, count: int) -> tuple[Operand, ...]:
    """Return the elements of the source of a mov.v2 or mov.v4."""
    source = binder.operands[1]
    if isinstance(source, Register) and count == len("xyzw") and type_of(f"{source.name}.x"):
        return tuple(Register(f"{source.name}.{axis}") for axis in "xyzw")
    return binder.elements(1, count)


def _short(vector: str, type_name: str) -> bool:
    """Return whether a vector has at most 128 bits."""
    return int(vector[1:]) * bits_of(type_name) <= 128


def _vector(binder: StatementBinder, index: int) -> Vector:
    operand = binder.operands[index]
    if not isinstance(operand, Vector):
        raise binder.illegal(f"expected a vector, not '{operand}'", index)
    return operand


def _element_type(binder: StatementBinder, vector: Vector, type_name: str, operand: int) -> str:
    count = len(vector.elements)
    if (
        count not in _COUNTS[bits_of(type_name) > 64]
        or type_name[0] != "b"
        or bits_of(type_name) // count < 8
    ):
        raise binder.illegal(f"mov.{type_name} does not take a vector of {count} elements", operand)
    return f"b{bits_of(type_name) // count}"


def _packed(binder: StatementBinder, type_name: str) -> Step:
    """Return the step that packs a vector, the first element lowest."""
    vector = _vector(binder, 1)
    part = _element_type(binder, vector, type_name, 1)
    whole, bits = dtype_of(word_type(type_name)[0]), bits_of(part)
    writers = word_writers(binder, binder.operands[0], type_name, 0)
    for place, element in enumerate(vector.elements):
        _check_constant(binder, element, part, place)
    readers = [binder.reader(element, part, 1, place) for place, element in enumerate(vector.elements)]
    each = len(readers) // len(writers)

    def compute(*values: Values) -> tuple[Values, ...]:
        return tuple(
            _concatenate_parts(values[place : place + each], whole, bits)
            for place in range(0, len(values), each)
        )

    return _computed(binder, compute, readers, writers)


def _concatenate_parts(parts: Sequence[Values], whole: np.dtype[Any], bits: int) -> Values:
    """Return words of parts of some bits, the first lowest."""
    word: Values = parts[0].astype(whole)
    for place, part in enumerate(parts[1:], 1):
        word = word | part.astype(whole) << whole.type(bits * place)
    return word


def _computed(
    binder: StatementBinder, compute: Compute, readers: list[Reader], writers: list[Writer]
) -> Step:
    """Return a step that writes what is computed of what it reads."""
    binder.computes(compute, readers, writers)

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        for write, values in zip(writers, compute(*[read(wave, path) for read in readers]), strict=True):
            write(wave, path, lanes, values)

    return step


def _unpacked(binder: StatementBinder, type_name: str) -> Step:
    vector = _vector(binder, 0)
    if all(isinstance(element, Sink) for element in vector.elements):
        raise binder.illegal(f"mov.{type_name} writes nothing: every element is '_'", 0)
    part = _element_type(binder, vector, type_name, 0)
    readers = word_readers(binder, binder.operands[1], type_name, 1)
    bits, narrow, each = bits_of(part), dtype_of(part), len(vector.elements) // len(readers)
    parts = [
        (*divmod(place, each), binder.writer(element, part, 0, place))
        for place, element in enumerate(vector.elements)
        if not isinstance(element, Sink)
    ]

    def compute(*words: Values) -> tuple[Values, ...]:
        return tuple(
            (words[word] >> words[word].dtype.type(bits * place)).astype(narrow) for word, place, _ in parts
        )

    return _computed(binder, compute, readers, [write for *_, write in parts])


def _converted(binder: StatementBinder, to: str, space: str, type_name: str) -> Step:
    """cvta: an address of a space becomes generic, or with ``.to`` the other way round."""
    binder.count(2)
    write, read = (
        binder.writer(binder.operands[0], type_name, 0),
        _window_address(binder, to, space, type_name),
    )
    window, dtype = _WINDOWS[space], dtype_of(type_name)
    shift = dtype.type((-window if to else window) & (1 << bits_of(type_name)) - 1)

    def compute(address: Values) -> tuple[Values]:
        with np.errstate(over="ignore"):
            return (address + shift,)

    return _computed(binder, compute, [read], [write])


def _window_address(binder: StatementBinder, to: str, space: str, type_name: str) -> Reader:
    """Return what cvta reads: an address, or the variable at it, which lies in the space."""
    operand = binder.operands[1]
    if bits_of(type_name) == 32:
        raise binder.narrow("a generic address made of this", 1)
    named = operand.base if isinstance(operand, Displacement) else operand
    found = binder.scope.find(named.name) if isinstance(named, Register) else None
    if isinstance(found, Variable):
        if to and named is operand:
            raise binder.illegal(f"expected a register, not '{operand}'", 1)
        if not to and space.partition("::")[0] != found.space:
            raise binder.illegal(f"{named} is in .{found.space}, not in .{space}", 1)
    return binder.reader(operand, type_name, 1)


def _generic_address(binder: StatementBinder) -> Reader:
    """Return what isspacep reads: a register of 64 bits, or of 32."""
    operand = binder.operands[1]
    found = binder.scope.find(operand.name) if isinstance(operand, Register) else None
    narrow = isinstance(found, RegisterName) and bits_of(found.type) == 32
    return binder.reader(operand, "u32" if narrow else "u64", 1)


def _is_space(binder: StatementBinder, space: str) -> Step:
    """isspacep: whether a generic address lies in a window; global is what lies in none.

    Of shared memory the own CTA's is meant, except by .shared::cluster.
    """
    binder.count(2)
    write, read = binder.writer(binder.operands[0], "pred", 0), _generic_address(binder)
    window, others = _WINDOWS[space], sorted({start for start in _WINDOWS.values() if start})
    own = space in ("shared", "shared::cta")

    def step(wave: Wave, path: DivergentPath, lanes: Lanes) -> None:
        address = read(wave, path).astype(np.int64)
        number = address // spaces.WINDOW_BYTES
        mine = number == window // spaces.WINDOW_BYTES
        if not window:
            mine = ~np.isin(number, [start // spaces.WINDOW_BYTES for start in others])
        if own:
            mine = mine & own_cta(wave, address % spaces.WINDOW_BYTES)
        write(wave, path, lanes, mine)

    return step


ROWS: tuple[Effect, ...] = (
    Effect(opcode="mov", slots=(_TYPES,), bind=_move, any_constant=True),
    Effect(opcode="mov", slots=(("v2", "v4"), _TYPES[1:-1]), bind=_move_vector, legal=_short),
    *(
        Effect(
            opcode="cvta",
            slots=(("", "to"), names, ("u32", "u64")),
            bind=_converted,
            since=since,
            feature=feature,
        )
        for names, since, feature in _SINCE
    ),
    *(
        Effect(opcode="isspacep", slots=(names,), bind=_is_space, since=since, feature=feature)
        for names, since, feature in _SINCE
    ),
)
