"""tcgen05.ld, tcgen05.st and their waits: registers of a warp from and to tensor memory.

A load reads where it is issued: its registers may be used at once, so that it needs no wait for them. A store
writes when it completes: at the latest when the warp waits for its stores. Loaded registers of cells that
were never written count as never written. PTX ISA 9.3, sections 9.7.17.8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ....isa.features import Feature
from ....isa.layouts.tensor_memory import LANES, TRANSFERS, Transfer
from ....isa.warps import WARP
from ....ptx.constants import Immediate
from ....ptx.operands import Register, Vector
from ...bind.value_types import bits_of
from ...run.asynchronous import commit, drain, issue
from ...run.events import Observer, observers_of
from ...run.pending import Moved, Pending
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.tensor_cells import Block, TensorMemory, byte_places
from ..effect import Effect
from ..matrix.warpwide import Warps, whole_warps
from ..statement_binder import Reader, StatementBinder
from .issue_order import notifies, notify
from .tensor_places import TENSOR_MEMORY, Place, check_columns, check_lane, common, misused, tensor_address
from .touched_cells import trimmed

LOADS, STORES = "tcgen05.ld", "tcgen05.st"  # families of groups
Index = npt.NDArray[np.intp]
_OWN_LANES = "inferred: an address that leaves out the lanes of its warp names them, as DeepGEMM relies on"
_UPPER = "inferred: .unpack::16b writes zeros to the upper halves of cells; the manual does not say"


@dataclass(frozen=True, eq=False)
class _Shape:
    """The cells of a statement: lanes and columns (32, registers) from the address; packed takes cell
    pairs.
    """

    transfer: Transfer
    lanes: Index
    columns: Index
    packed: bool

    @property
    def width(self) -> int:
        """Columns from the first to behind the last."""
        return int(self.columns.max()) + 1 + self.packed

    @cached_property
    def _touched(self) -> tuple[slice, int, npt.NDArray[np.bool_] | None]:
        lowest = min(int(self.columns.min()), 0)
        touched = np.zeros((self.width - lowest, LANES), np.bool_)
        for half in range(1 + self.packed):
            touched[self.columns + half - lowest, self.lanes] = True
        return trimmed(touched)

    def block(self, name: str, cta: int, place: Place) -> Block:
        """Return the cells that a warp touches."""
        lanes, width, mask = self._touched
        past = place.column + self.width
        return Block(
            name=name,
            cta=cta,
            lanes=slice(lanes.start + place.lane, lanes.stop + place.lane),
            columns=slice(past - width, past),
            mask=mask,
        )

    def cells(self, place: Place) -> tuple[Index, Index]:
        """Return lanes and columns, absolute."""
        return self.lanes + place.lane, self.columns + place.column


def _shape(binder: StatementBinder, modifiers: tuple[str, ...], offset: int | None) -> _Shape:
    """Return the cells that a statement names; raises IllegalInstruction and NotModelled."""
    name = next(word for word in modifiers if word in TRANSFERS)
    transfer, packed = TRANSFERS[name], bool({"pack::16b", "unpack::16b"} & set(modifiers))
    count = int(next(word for word in modifiers if word in _COUNTS)[1:])
    if offset is not None and packed:
        raise binder.not_modelled(f"{name} with halves packed: how its offset counts is not documented")
    cells = transfer.cells(count, offset or 0)
    return _Shape(transfer, cells[..., 0], cells[..., 1] * (1 + packed), packed)


def _offset(binder: StatementBinder, modifiers: tuple[str, ...], index: int) -> int | None:
    """Return the column offset of 16x32bx2, which is a constant; None for other shapes.

    Raises IllegalInstruction, for a wrong number of operands too.
    """
    split = "16x32bx2" in modifiers
    binder.count((3 if "red" in modifiers else 2) + split)
    if not split:
        return None
    operand = binder.operands[index]
    if not isinstance(operand, Immediate) or operand.kind != "integer":
        raise binder.illegal(f"expected a constant column offset, not '{operand}'", index)
    return operand.value


def _vector(binder: StatementBinder, index: int, count: int) -> tuple[object, ...]:
    """Return the elements of a vector of registers of 32 bits; raises IllegalInstruction."""
    operand = binder.operands[index]
    if not isinstance(operand, Vector):
        raise binder.illegal(f"expected registers in braces, not '{operand}'", index)
    given = operand.elements
    if len(given) != count:
        raise binder.illegal(f"expected {count} registers in braces, but {len(given)} are given", index)
    for place, element in enumerate(given):
        if isinstance(element, Immediate):
            continue
        found = binder.register(element, index, place)
        if bits_of(found.type) != 32:
            raise binder.illegal(f"{element} is .{found.type}: registers of 32 bits hold cells", index, place)
    return given


def _checked_place(
    wave: Wave, path: DivergentPath, warp: int, addresses: Values, shape: _Shape
) -> tuple[int, Place]:
    """Return the CTA and the place that a warp addresses. Raises Fault, as the checks of ptxas -g trap."""
    lane = WARP * warp
    place, cta = Place.of(common(wave, path, addresses, warp, "the address")), int(wave.cta[lane])
    quarter = int(wave.thread[lane]) // WARP % 4
    if place.lane // 32 != quarter:
        place = _place_in_own_lanes(wave, path, warp, place, quarter)
    legal = (32 * quarter,) if shape.transfer.lanes == 32 else (32 * quarter, 32 * quarter + 16)
    check_lane(wave, path, lane, "the address", place.lane, legal)
    lowest = int(shape.columns.min())
    if place.column + lowest < 0:
        raise misused(wave, path, lane, f"the offset reaches column {place.column + lowest}")
    first, past = place.column + min(lowest, 0), place.column + shape.width
    check_columns(wave, path, lane, (cta,), ("the access", first, past))
    return cta, place


def _place_in_own_lanes(wave: Wave, path: DivergentPath, warp: int, place: Place, quarter: int) -> Place:
    """Return the place in the warp's own lanes of an address that leaves the warp out; raises Fault for lanes
    of another warp.

    DeepGEMM's kernels add no lanes for their warps, and state that chips ignore these bits.
    """
    lane = WARP * warp
    message = (
        f"the address has lane {place.lane}, but warp {int(wave.thread[lane]) // WARP} of the CTA "
        f"reaches lanes {32 * quarter}..{32 * quarter + 31}"
    )
    if place.lane >= 32:
        raise misused(wave, path, lane, message)
    said = _OWN_LANES in wave.inferred.values()  # a kernel that does so does it everywhere
    wave.infer(path.pc, _OWN_LANES)
    if observers_of(wave).hear(Observer.unspecified) and not said:
        what = f"takes these lanes: {message}, and chips are reported to ignore the bits of the warp"
        mask = np.arange(wave.lanes) // WARP == warp
        observers_of(wave).unspecified(wave, path, Lanes(mask), what)
    return place._replace(lane=place.lane + 32 * quarter)


# --- loads -------------------------------------------------------------------------------------------


def _read(memory: TensorMemory, cta: int, place: Place, shape: _Shape) -> tuple[Values, Values]:
    """Return ``(32, registers)``: words, and whether they were written."""
    lanes, columns = shape.cells(place)
    words, known = memory.cells[cta, lanes, columns], memory.written[cta, lanes, columns]
    if shape.packed:
        upper = memory.cells[cta, lanes, columns + 1]
        words = words & np.uint32(0xFFFF) | upper << np.uint32(16)
        known = known & memory.written[cta, lanes, columns + 1]
    return words, known


def _load(binder: StatementBinder, *modifiers: str) -> Step:
    offset = _offset(binder, modifiers, 2)
    shape = _shape(binder, modifiers, offset)
    count = shape.lanes.shape[1]
    numbers = _targets(binder, 0, count)
    _check_once(binder, numbers)
    address = tensor_address(binder, 1)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        words, known = _gathered(wave, path, warps, address, shape)
        _put(wave, path, lanes, numbers, words, known)

    return whole_warps(act)


def _targets(binder: StatementBinder, index: int, count: int) -> list[int]:
    """Return the numbers of the registers that a load writes: a vector, or a single register for 0."""
    numbers = list[int]()
    elements = _vector(binder, index, count) if count else (binder.operands[index],)
    for place, element in enumerate(elements):
        if not isinstance(element, Register):
            raise binder.illegal(f"expected a register, not '{element}'", index)
        found = binder.register(element, index, place if count else None)
        if bits_of(found.type) != 32:
            raise binder.illegal(f"{element} is .{found.type}: registers of 32 bits hold cells", index)
        numbers.append(found.number)
        binder.writing(numbers[-1])
    return numbers


def _check_once(binder: StatementBinder, numbers: list[int]) -> None:
    """Raise IllegalInstruction where a load names a register twice."""
    if len(set(numbers)) < len(numbers):
        raise binder.illegal("a load names a register twice, and writes each of them", 0)


def _gathered(
    wave: Wave, path: DivergentPath, warps: Warps, address: Reader, shape: _Shape
) -> tuple[Values, Values]:
    """Return ``(lanes of the wave, registers)``: words, and whether they were written."""
    addresses, memory = address(wave, path), TENSOR_MEMORY.of(wave)
    found = np.zeros((wave.lanes, shape.lanes.shape[1]), np.uint32)
    known = np.ones(found.shape, np.bool_)
    for warp in warps.tolist():
        cta, place = _checked_place(wave, path, warp, addresses, shape)
        if notifies(wave):
            block = shape.block("the load", cta, place)
            notify(wave, path, WARP * warp, LOADS, ((block,), ()))
        rows = slice(WARP * warp, WARP * warp + WARP)
        found[rows], known[rows] = _read(memory, cta, place, shape)
    return found, known


def _put(
    wave: Wave, path: DivergentPath, lanes: Lanes, numbers: list[int], words: Values, known: Values
) -> None:
    """Write registers; those of cells that were never written count as never written in these lanes."""
    frame, columns = path.frame, words.T.copy()
    for number, column in zip(numbers, columns, strict=True):
        wave.write(path, lanes, number, column)
    if known.all():
        return
    for number, mask in zip(numbers, known.T, strict=True):
        if not mask.all():
            before = frame.partial.get(number)
            frame.partial[number] = mask & (True if before is None else before)


def _reduce(binder: StatementBinder, *modifiers: str) -> Step:
    """tcgen05.ld.red: the registers, and the least or greatest of each lane's."""
    offset = _offset(binder, modifiers, 3)
    shape = _shape(binder, modifiers, offset)
    count = shape.lanes.shape[1]
    numbers = [*_targets(binder, 0, count), *_targets(binder, 1, 0)]
    _check_once(binder, numbers)
    address, reduce = tensor_address(binder, 2), _reduction(modifiers)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        words, known = _gathered(wave, path, warps, address, shape)
        least = reduce(words)[:, None]
        all_known = known.all(axis=1, keepdims=True)
        _put(wave, path, lanes, numbers, np.hstack([words, least]), np.hstack([known, all_known]))

    return whole_warps(act)


def _reduction(modifiers: tuple[str, ...]) -> Callable[[Values], Values]:
    """Return the reduction of rows ``(lanes, registers)`` of words."""
    greatest, kind = "max" in modifiers, modifiers[-1]
    if kind != "f32":
        dtype = np.uint32 if kind == "u32" else np.int32
        fold = np.max if greatest else np.min
        return lambda words: fold(words.view(dtype), axis=1).view(np.uint32)
    return lambda words: _float_reduction(words, greatest, "abs" in modifiers, "NaN" in modifiers)


def _float_reduction(words: Values, greatest: bool, absolute: bool, spread: bool) -> Values:
    """Return the least or greatest f32 of rows, as min and max order them: -0 below +0, NaN left out."""
    if absolute:
        words = words & np.uint32(0x7FFFFFFF)
    nan = words & np.uint32(0x7FFFFFFF) > np.uint32(0x7F800000)
    ordered = np.where(words >> np.uint32(31), ~words, words | np.uint32(1 << 31))  # ascends as the floats do
    neutral = np.uint32(0 if greatest else 0xFFFFFFFF)
    chosen = (np.max if greatest else np.min)(np.where(nan, neutral, ordered), axis=1)
    found = np.where(chosen >> np.uint32(31), chosen & np.uint32(0x7FFFFFFF), ~chosen)
    missing = nan.any(axis=1) if spread else nan.all(axis=1)
    return np.where(missing, np.uint32(0x7FFFFFFF), found).astype(np.uint32)


# --- stores ------------------------------------------------------------------------------------------


def _store(binder: StatementBinder, *modifiers: str) -> Step:
    offset = _offset(binder, modifiers, 1)
    shape = _shape(binder, modifiers, offset)
    source = 1 if offset is None else 2
    count = shape.lanes.shape[1]
    readers = [
        binder.reader(element, "b32", source, place)
        if isinstance(element, Immediate)
        else binder.reading(binder.register(element, source, place).number)  # type: ignore[arg-type]
        for place, element in enumerate(_vector(binder, source, count))
    ]
    address = tensor_address(binder, 0)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        if shape.packed:
            wave.infer(path.pc, _UPPER)
        words = np.stack([np.broadcast_to(read(wave, path), (wave.lanes,)) for read in readers], axis=1)
        words = words.astype(np.uint32, copy=False)
        addresses, made = address(wave, path), list[Pending]()
        for warp in warps.tolist():
            cta, place = _checked_place(wave, path, warp, addresses, shape)
            own = words[WARP * warp : WARP * warp + WARP]
            if notifies(wave):
                block = shape.block("the store", cta, place)
                notify(wave, path, WARP * warp, STORES, ((), (block,)))
            made.append(_storing(wave, path, warp, _Landing(cta, place, shape, own)))
        issue(wave, path, *made)

    return whole_warps(act)


@dataclass(frozen=True, eq=False)
class _Landing:
    """Words ``(32, registers)`` of a warp on their way to cells."""

    cta: int
    place: Place
    shape: _Shape
    words: Values

    def write(self, wave: Wave) -> None:
        """Write the cells."""
        memory, (lanes, columns) = TENSOR_MEMORY.of(wave), self.shape.cells(self.place)
        if not self.shape.packed:
            memory.cells[self.cta, lanes, columns] = self.words
            memory.written[self.cta, lanes, columns] = True
            return
        for half in (0, 1):
            memory.cells[self.cta, lanes, columns + half] = self.words >> np.uint32(16 * half) & np.uint32(
                0xFFFF
            )
            memory.written[self.cta, lanes, columns + half] = True

    def moved(self, wave: Wave) -> Moved:
        """Return where each byte of the registers goes; of halves that are unpacked, the upper bytes are
        filled."""
        lanes, columns = self.shape.cells(self.place)
        count = lanes.size
        source = np.arange(4 * count).reshape(-1, 4)
        if not self.shape.packed:
            target = byte_places(self.cta, lanes, columns)
        else:
            pairs = [byte_places(self.cta, lanes, columns + half) for half in (0, 1)]
            target = np.stack(pairs, axis=-2)
            filled = np.full((count, 2), -1)
            low, high = (np.concatenate([source[:, half : half + 2], filled], axis=1) for half in (0, 2))
            source = np.stack([low, high], axis=1)
        ends = (("tensor", target.reshape(-1)),)
        return Moved(space="registers", source=source.reshape(-1), targets=ends, lanes=WARP)


def _storing(wave: Wave, path: DivergentPath, warp: int, landing: _Landing) -> Pending:
    return Pending(
        record=wave.code[path.pc],
        lane=WARP * warp,
        kind="store to tensor memory",
        complete=landing.write,
        moved=landing.moved,
        group=STORES,
    )


# --- waits -------------------------------------------------------------------------------------------


def _wait(binder: StatementBinder, *modifiers: str) -> Step:
    binder.count(0)
    family = STORES if "wait::st" in modifiers else LOADS

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        commit(wave, lanes, family)
        drain(wave, path, lanes, family)

    return whole_warps(act)


# --- rows --------------------------------------------------------------------------------------------

_COUNTS = tuple(f"x{1 << power}" for power in range(8))
_SYNC = (("sync",), ("aligned",))


def _fits(name: str, *modifiers: str) -> bool:
    """Return whether a shape has so many repetitions."""
    shape = next(word for word in modifiers if word in TRANSFERS)
    count = next(word for word in modifiers if word in _COUNTS)
    return int(count[1:]) in TRANSFERS[shape].counts


def _reduces(name: str, *modifiers: str) -> bool:
    """ld.red has two repetitions or more; abs and NaN belong to f32."""
    more = {"abs", "NaN"} & set(modifiers)
    return "x1" not in modifiers and (not more or modifiers[-1] == "f32")


def _row(bind: Callable[..., Step], *slots: tuple[str, ...], **more: object) -> Effect:
    need = {"since": (8, 6), "feature": Feature.TCGEN05} | more
    return Effect(opcode="tcgen05", slots=slots, bind=bind, together=WARP, **need)  # type: ignore[arg-type]


ROWS: tuple[Effect, ...] = (
    _row(_load, ("ld",), *_SYNC, tuple(TRANSFERS), _COUNTS, ("", "pack::16b"), ("b32",), legal=_fits),
    _row(_store, ("st",), *_SYNC, tuple(TRANSFERS), _COUNTS, ("", "unpack::16b"), ("b32",), legal=_fits),
    _row(
        _reduce,
        ("ld",),
        ("red",),
        *_SYNC,
        ("32x32b", "16x32bx2"),
        _COUNTS,
        ("min", "max"),
        ("", "abs"),
        ("", "NaN"),
        ("f32", "u32", "s32"),
        legal=_reduces,
        since=(8, 8),
        feature=Feature.TENSOR_REDUCTION,
    ),
    _row(_wait, ("wait::ld", "wait::st"), *_SYNC),
)
