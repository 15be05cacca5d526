"""ldmatrix, stmatrix and movmatrix: matrices between shared memory and registers, and transposed.

A matrix is 8 or 16 rows of 16 bytes, each at an address that one lane gives: lane t that of row t, counted
through all matrices. Where each byte goes is a table, written down once as a formula; loads and stores differ
in its direction. PTX ISA 9.1, sections 9.7.14.5.15 to 9.7.14.5.17; the layouts of 8-bit elements that are
transposed are inferred from the layouts that CUTLASS gives these instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import UndefinedBehavior
from ....isa.features import Feature
from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ....ptx.operands import Register, Sink, Vector
from ...run.wave import Step, Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values, for_each
from ..effect import Effect
from ..memory.transfers import load, store
from ..statement_binder import Reader, StatementBinder
from .warpwide import Columns, Warps, unstack, whole_warps

_ROW = 16  # bytes
_WORD = np.dtype(np.uint32)
_SHARED, _CTA = ("", "shared"), ("shared::cta",)  # since PTX 6.5, and 7.8
_ALL = _SHARED + _CTA
Bytes = npt.NDArray[np.uint8]
Table = npt.NDArray[np.intp]
Place = Callable[[Any, Any, Any, Any], Any]

# --- layouts: (g, q, j, i) -> byte among all rows, for byte i of register j in lane 4g + q --------------


def _rows(g: Any, q: Any, j: Any, i: Any) -> Any:
    return (8 * j + g) * _ROW + 4 * q + i


def _columns_of_halves(g: Any, q: Any, j: Any, i: Any) -> Any:
    return (8 * j + 2 * q + i // 2) * _ROW + 2 * g + i % 2


def _columns_of_bytes(g: Any, q: Any, j: Any, i: Any) -> Any:
    return (16 * (j // 2) + 4 * q + 2 * (j % 2) + i % 2) * _ROW + g + 8 * (i // 2)


def _columns_of_stored_bytes(g: Any, q: Any, j: Any, i: Any) -> Any:
    return (8 * j + 2 * q + i % 2) * _ROW + g + 8 * (i // 2)


_UNITS: dict[Place, int] = {_rows: 4, _columns_of_halves: 2}  # bytes that stay together


@cache
def _table(place: Place, registers: int) -> Table:
    """For each unit of the registers, register by register, its place among those of the rows."""
    j, lane, i = np.meshgrid(np.arange(registers), np.arange(WARP), np.arange(4), indexing="ij")
    found: Table = np.asarray(place(lane // 4, lane % 4, j, i), np.intp).reshape(-1)
    unit = _UNITS.get(place, 1)
    return found[::unit] // unit


@cache
def _inverse(place: Place, registers: int) -> Table:
    """For each unit among the rows, its place among those of the registers."""
    return np.argsort(_table(place, registers))


@lru_cache(maxsize=64)
def _warps_table(
    table: Callable[[Place, int], Table], place: Place, registers: int, warps: int
) -> Table | None:
    """Return a table for the units of so many warps, one behind the other; None where all stay in place."""
    each = table(place, registers)
    if (each == np.arange(each.size)).all():
        return None
    return (np.arange(warps)[:, None] * each.size + each).reshape(-1)


def _reordered_bytes(
    data: Values, table: Callable[[Place, int], Table], place: Place, registers: int, warps: int
) -> Values:
    """Return all bytes of some warps in the order of a table of a layout."""
    units = data.reshape(-1).view(f"u{_UNITS.get(place, 1)}")
    places = _warps_table(table, place, registers, warps)
    return (units if places is None else units.take(places)).view(np.uint8)


# --- packed elements ---------------------------------------------------------------------------------


def _plain(rows: Bytes) -> Bytes:
    return rows


def _fours(rows: Bytes) -> Bytes:
    """16 elements of 4 bits in the low 8 bytes, each to a byte."""
    low = rows[..., :8]
    return np.stack([low & 15, low >> 4], axis=-1).reshape(rows.shape)


def _sixes(rows: Bytes) -> Bytes:
    """16 elements of 6 bits in the low 12 bytes, four in three bytes, each to a byte."""
    three = rows[..., :12].reshape(*rows.shape[:-1], 4, 3).astype(_WORD)
    word = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    shifts = np.arange(0, 24, 6, dtype=_WORD)
    return (word[..., None] >> shifts & 63).astype(np.uint8).reshape(rows.shape)


_UNPACKED = {"b16": _plain, "b8": _plain, "b6x16_p32": _sixes, "b4x16_p64": _fours}

# (shape, transposed) -> layout, registers of a matrix.
_LOADS: dict[tuple[str, bool], tuple[Place, int]] = {
    ("m8n8", False): (_rows, 1),
    ("m8n8", True): (_columns_of_halves, 1),
    ("m8n16", False): (_rows, 1),
    ("m16n16", True): (_columns_of_bytes, 2),
}
_STORES: dict[tuple[str, bool], Place] = {
    ("m8n8", False): _rows,
    ("m8n8", True): _columns_of_halves,
    ("m16n8", True): _columns_of_stored_bytes,
}


def byte_places(opcode: str, modifiers: Sequence[str]) -> Table | None:
    """Return ``(registers, 32, 4)``: where among all rows, one behind the other, each byte of the registers
    lies.

    ``modifiers`` are those of a statement; None where elements of 4 or 6 bits are unpacked on their way.
    """
    place: Place = _columns_of_halves
    registers = 1
    if opcode != "movmatrix":
        shape, transposed = next(word for word in modifiers if word in _SHAPES), "trans" in modifiers
        if not set(_PACKED).isdisjoint(modifiers):
            return None
        place, each = _LOADS[shape, transposed] if opcode == "ldmatrix" else (_STORES[shape, transposed], 1)
        registers = int(modifiers[3][1:]) * each
    j, lane, i = np.meshgrid(np.arange(registers), np.arange(WARP), np.arange(4), indexing="ij")
    return np.asarray(place(lane // 4, lane % 4, j, i), np.intp)


_SHAPES = ("m8n8", "m8n16", "m16n16", "m16n8")

# --- statements --------------------------------------------------------------------------------------


def _load(binder: StatementBinder, *modifiers: str) -> Step:
    _, _, shape, number, transposed, space, *kinds = modifiers
    _in_order(binder, kinds)
    place, each = _LOADS[shape, bool(transposed)]
    registers = int(number[1:]) * each
    writers = [
        (j, binder.writer(target, "b32", 0, j)) for j, target in enumerate(_targets(binder, registers))
    ]
    address, unpack = _address(binder, 1, space), _UNPACKED[kinds[-1]]

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        where = address(wave, path)
        givers = lanes.first_of_warps(8 * registers)
        words = load(wave, path, givers, "shared", givers.of(where), 8, 2)
        rows = unpack(np.ascontiguousarray(words).view(np.uint8))
        taken = (
            _reordered_bytes(rows, _table, place, registers, len(warps))
            .view(_WORD)
            .reshape(-1, registers, WARP)
        )
        unstack(wave, path, lanes, warps, writers, taken.swapaxes(1, 2))

    return whole_warps(act)


def _store(binder: StatementBinder, *modifiers: str) -> Step:
    _, _, shape, number, transposed, space, _ = modifiers
    registers = int(number[1:])
    place = _STORES[shape, bool(transposed)]
    columns = Columns(_sources(binder, registers), _WORD)
    address = _address(binder, 0, space)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        where = address(wave, path)
        given = _bytes(columns.by_warp(wave, path, warps))
        rows = (
            _reordered_bytes(given, _inverse, place, registers, len(warps)).reshape(-1, _ROW).view(np.uint64)
        )
        givers = lanes.first_of_warps(8 * registers)
        store(wave, path, givers, "shared", givers.of(where), rows)

    return whole_warps(act)


def _move(binder: StatementBinder, *modifiers: str) -> Step:
    """movmatrix: what a store by rows and a load by columns would do."""
    binder.count(2)
    for index, operand in enumerate(binder.operands):
        if not isinstance(operand, Register):
            raise binder.illegal(f"movmatrix takes a register, not '{operand}'", index)
    write = binder.writer(binder.operands[0], "b32", 0)
    source = Columns([binder.reader(binder.operands[1], "b32", 1)], _WORD)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        given = _bytes(source.by_warp(wave, path, warps))  # by rows, the registers are in order
        taken = (
            _reordered_bytes(given, _table, _columns_of_halves, 1, len(warps))
            .view(_WORD)
            .reshape(-1, WARP, 1)
        )
        unstack(wave, path, lanes, warps, [(0, write)], taken)

    return whole_warps(act)


def _bytes(words: Values) -> Bytes:
    """Return all bytes of registers ``(warps, 32, n)``, register by register in each warp."""
    return np.ascontiguousarray(words.swapaxes(1, 2)).view(np.uint8)


def _address(binder: StatementBinder, index: int, space: str) -> Reader:
    """Return addresses (lanes,) in shared memory; a generic one elsewhere is undefined, and reported."""
    binder.count(2)
    operand = binder.operands[index]
    if getattr(operand, "base", None) is None:
        raise binder.illegal(f"'{operand}' is not an address that {binder.statement.opcode} takes", index)
    read = binder.address(index, "shared" if space else "generic")

    def shared(wave: Wave, path: DivergentPath) -> Values:
        return for_each(read(wave, path), wave.lanes)

    def generic(wave: Wave, path: DivergentPath) -> Values:
        where = shared(wave, path)
        outside = path.lanes.mask & (spaces.window_of(where) != spaces.window_of(spaces.SHARED_WINDOW))
        if outside.any():
            lane = int(outside.argmax())
            message = f"the generic address {int(where[lane]):#x} is not in shared memory"
            raise wave.fault(wave.code[path.pc], lane, message)
        return where - spaces.SHARED_WINDOW

    return shared if space else generic


def _vector(binder: StatementBinder, index: int, count: int) -> Sequence[Any]:
    """Return the elements of a vector, which is in braces even where it has only one."""
    operand = binder.operands[index]
    if not isinstance(operand, Vector):
        raise binder.illegal(
            f"expected {count} register{'s'[: count != 1]} in braces, not '{operand}'", index
        )
    return binder.elements(index, count)


def _targets(binder: StatementBinder, count: int) -> Sequence[Any]:
    """Return registers and sinks of an ldmatrix; no register twice."""
    binder.count(2)
    elements = _vector(binder, 0, count)
    if all(isinstance(element, Sink) for element in elements):
        raise binder.illegal("all sinks '_', which leaves the type open: name one register", 0)
    for place, element in enumerate(elements):
        if isinstance(element, Register) and element in elements[:place]:
            message = f"{element} is written twice: PTX does not define which value stays"
            raise binder.at(UndefinedBehavior(message), 0, place)
    return elements


def _sources(binder: StatementBinder, count: int) -> list[Reader]:
    """Return readers of registers, among which constants may stand."""
    binder.count(2)
    elements = _vector(binder, 1, count)
    if all(isinstance(element, Immediate) for element in elements):
        raise binder.illegal("all constants, which leaves the type open: name one register", 1)
    return [binder.reader(element, "b32", 1, place) for place, element in enumerate(elements)]


def _in_order(binder: StatementBinder, kinds: Sequence[str]) -> None:
    """Check that the destination format precedes the source format."""
    places = [binder.statement.modifiers.index(kind) for kind in kinds]
    if places != sorted(places):
        raise binder.illegal(
            f"the formats of {binder.statement.mnemonic} are {'.'.join(kinds)}, in this order"
        )


_TOGETHER = (("sync",), ("aligned",))
_COUNTS = ("x1", "x2", "x4")
_PACKED = ("b6x16_p32", "b4x16_p64")
_INFERRED = "the layout is that of CUTLASS; PTX shows it only in a figure"


def _load_row(*slots: tuple[str, ...], since: tuple[int, int], feature: Feature) -> Effect:
    note = _INFERRED if feature is Feature.BYTE_MATRICES and slots[2] == ("trans",) else ""
    return _row("ldmatrix", _load, slots, since, feature, note)


def _store_row(*slots: tuple[str, ...], since: tuple[int, int], feature: Feature) -> Effect:
    note = _INFERRED if feature is Feature.BYTE_MATRICES else ""
    return _row("stmatrix", _store, slots, since, feature, note)


def _row(opcode: str, bind: Any, slots: Any, since: Any, feature: Feature, note: str) -> Effect:
    return Effect(
        opcode=opcode, slots=(*_TOGETHER, *slots), bind=bind, together=WARP, since=since, feature=feature,
        fidelity="inferred" if note else "exact", note=note,
    )  # fmt: skip


_TRANS, _BOTH, _NOT = ("trans",), ("", "trans"), ("",)

_BYTES, _OLD, _STMATRIX = Feature.BYTE_MATRICES, Feature.LDMATRIX, Feature.STMATRIX
ROWS: tuple[Effect, ...] = (
    _load_row(("m8n8",), _COUNTS, _BOTH, _SHARED, ("b16",), since=(6, 5), feature=_OLD),
    _load_row(("m8n8",), _COUNTS, _BOTH, _CTA, ("b16",), since=(7, 8), feature=_OLD),
    _load_row(("m16n16",), ("x1", "x2"), _TRANS, _ALL, ("b8",), since=(8, 6), feature=_BYTES),
    _load_row(("m16n16",), ("x1", "x2"), _TRANS, _ALL, ("b8x16",), _PACKED, since=(8, 6), feature=_BYTES),
    _load_row(("m8n16",), _COUNTS, _NOT, _ALL, ("b8x16",), _PACKED, since=(8, 6), feature=_BYTES),
    _store_row(("m8n8",), _COUNTS, _BOTH, _ALL, ("b16",), since=(7, 8), feature=_STMATRIX),
    _store_row(("m16n8",), _COUNTS, _TRANS, _ALL, ("b8",), since=(8, 6), feature=_BYTES),
    Effect(
        opcode="movmatrix",
        slots=(*_TOGETHER, ("m8n8",), ("trans",), ("b16",)),
        bind=_move,
        together=WARP,
        since=(7, 8),
        feature=_OLD,
    ),
)  # fmt: skip
