"""wmma: loads and stores of fragments, and their products.

How a fragment lies in registers is the business of wmma_fragments.py. Products are those of ``mma`` on the
same target, tile by tile along m and n and in steps along k, which is inferred from the code that compilers
generate. PTX ISA 9.1, sections 9.7.14.3 to 9.7.14.4.5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import IllegalInstruction
from ....isa.features import Feature
from ....isa.fragments import codes_from, registers_of
from ....isa.instruction import Instruction
from ....isa.operand_places.placements import Inputs
from ....isa.warps import WARP
from ....ptx.decode import decode
from ....ptx.operands import Vector
from ...run.wave import Step, Wave
from ...state.lanes import DivergentPath, Lanes, Values
from ..effect import Effect
from ..memory.transfers import load, parts, space_of, store
from ..statement_binder import Reader, StatementBinder
from .warpwide import Columns, Warps, unstack, whole_warps
from .wmma_fragments import SHAPES, Fragment

Codes = npt.NDArray[Any]
_CHUNK = 16  # bytes that a lane moves at a time

# Multiplicands -> the shapes of mma that do their products, the first that a target has.
_TILES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n8k16", "m16n8k8"),
    "bf16": ("m16n8k16",),
    "tf32": ("m16n8k8",),
    "f64": ("m8n8k4",),
    **dict.fromkeys(("s8", "u8"), ("m16n8k16", "m8n8k16")),
    **dict.fromkeys(("s4", "u4"), ("m8n8k32",)),
    "b1": ("m8n8k128",),
}


# --- memory ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """A fragment in memory: ``lines`` there of so many bytes, moved in chunks by the lanes of the warp."""

    lines: int
    line_bytes: int
    bits: int  # of an element

    @property
    def chunk(self) -> int:
        """Bytes that one lane moves at a time."""
        return min(_CHUNK, self.line_bytes)

    def rounds(self, lanes: Lanes, stride: Values) -> list[tuple[Lanes, Values]]:
        """Return the lanes of each round and, for each lane of the wave, where its chunk lies behind the
        address.
        """
        chunks, each = self.lines * self.line_bytes // self.chunk, self.line_bytes // self.chunk
        lane, found = np.arange(lanes.mask.size) % WARP, list[tuple[Lanes, Values]]()
        for first in range(0, chunks, WARP):
            place = first + lane
            part = lanes if first + WARP <= chunks else Lanes(lanes.mask & (place < chunks))
            found.append((part, place // each * stride * self.bits // 8 + place % each * self.chunk))
        return found


def _memory(binder: StatementBinder, role: str, layout: str, shape: str, space: str, kind: str) -> Any:
    """Return the fragment, how it lies in memory, whether turned; and readers of address and stride."""
    fragment = Fragment.of(role, shape, kind, binder.module.target)
    turned = layout != ("col" if role == "b" else "row")
    lines, length = (fragment.length, fragment.lines) if turned else (fragment.lines, fragment.length)
    stored = Stored(lines, length * fragment.bits // 8, fragment.bits)
    index = 0 if role == "d" else 1
    address, space = binder.place(index, space_of(space))
    stride: Reader = lambda wave, path: np.array(length, np.int64)  # noqa: E731
    if binder.count(2, 3) == 3:
        stride = binder.reader(binder.operands[2], "u32", 2)
    return fragment, stored, turned, address, stride, space


def _agreed_values(wave: Wave, path: DivergentPath, lanes: Lanes, values: Values, what: str) -> Values:
    """Return values on which the lanes of each warp agree; raises Fault."""
    full = np.broadcast_to(values, (wave.lanes,)).astype(np.int64)
    groups = full.reshape(-1, WARP)
    wrong = lanes.mask & (groups != groups[:, :1]).reshape(-1)
    if wrong.any():
        raise wave.fault(wave.code[path.pc], int(wrong.argmax()), f"{what} differs between lanes of a warp")
    return full


def _load(binder: StatementBinder, _: str, role: str, *more: str) -> Step:
    _, _, layout, shape, space, kind = more
    fragment, stored, turned, address, stride, space = _memory(binder, role, layout, shape, space, kind)
    count = fragment.registers(role)
    writers = [
        (place, binder.writer(register, fragment.type, 0, place))
        for place, register in enumerate(_vector(binder, 0, count))
    ]

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        where = _agreed_values(wave, path, lanes, address(wave, path), "the address")
        steps = _agreed_values(wave, path, lanes, stride(wave, path), "the stride")
        pieces = []
        for part, offset in stored.rounds(lanes, steps):
            places, size = where + offset, min(stored.chunk, 8)
            words = np.zeros((wave.lanes, stored.chunk // size), f"u{size}")
            for piece in parts(part, space, places):
                words[piece.index] = load(wave, path, piece, space, piece.of(places), size, words.shape[1])
            pieces.append(words.view(np.uint8).reshape(-1, WARP * stored.chunk)[warps])
        whole = np.concatenate(pieces, axis=1)[:, : stored.lines * stored.line_bytes]
        lines = fragment.turned(
            np.ascontiguousarray(whole).reshape(-1, stored.lines, stored.line_bytes), turned
        )
        unstack(wave, path, lanes, warps, writers, fragment.words_of(lines, count))

    return whole_warps(act)


def _store(binder: StatementBinder, _: str, role: str, *more: str) -> Step:
    _, _, layout, shape, space, kind = more
    fragment, stored, turned, address, stride, space = _memory(binder, role, layout, shape, space, kind)
    columns = Columns(_readers(binder, 1, fragment, role), fragment.word)

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        where = _agreed_values(wave, path, lanes, address(wave, path), "the address")
        steps = _agreed_values(wave, path, lanes, stride(wave, path), "the stride")
        lines = fragment.bytes_of(columns.by_warp(wave, path, warps))
        rows = fragment.turned(lines, turned).reshape(len(warps), -1, stored.chunk)
        for number, (part, offset) in enumerate(stored.rounds(lanes, steps)):
            here = rows[:, WARP * number : WARP * number + WARP]
            full = np.zeros((wave.lanes // WARP, WARP, stored.chunk), np.uint8)
            full[warps, : here.shape[1]] = here
            words = full.reshape(wave.lanes, -1).view(f"u{min(stored.chunk, 8)}")
            places = where + offset
            for piece in parts(part, space, places):
                store(wave, path, piece, space, piece.of(places), words[piece.index])

    return whole_warps(act)


def _vector(binder: StatementBinder, index: int, count: int) -> Any:
    operand = binder.operands[index]
    if not isinstance(operand, Vector):
        raise binder.illegal(
            f"expected {count} register{'s'[: count != 1]} in braces, not '{operand}'", index
        )
    return binder.elements(index, count)


def _readers(
    binder: StatementBinder, index: int, fragment: Fragment, role: str, kind: str = ""
) -> list[Reader]:
    elements = _vector(binder, index, fragment.registers(role))
    return [
        binder.reader(element, kind or fragment.type, index, place) for place, element in enumerate(elements)
    ]


# --- products ----------------------------------------------------------------------------------------


@cache
def _tile(kinds: tuple[str, str, str, str], target: str, suffix: str) -> Instruction | None:
    """Return the mma that does products of these types d, a, b, c on a target; None where it has none."""
    for shape in _TILES[kinds[1]]:
        try:
            return decode(f"mma.sync.aligned.{shape}.row.col.{suffix % '.'.join(kinds)}", target=target)
        except IllegalInstruction:
            continue
    return None


def _padded(codes: Codes, rows: int) -> Codes:
    """More rows of zeros, up to a multiple."""
    missing = -codes.shape[1] % rows
    return np.pad(codes, ((0, 0), (0, missing), (0, 0))) if missing else codes


Engine = Callable[[Instruction, Inputs], Values]


def product(engine: Engine, form: Instruction, a: Codes, b: Codes, c: Codes) -> Codes:
    """Return codes of D ``(warps, m, n)`` of A ``(warps, m, k)``, B as columns ``(warps, n, k)`` and C."""
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    rows = c.shape[1]
    a, d = _padded(a, m), _padded(c, m).copy()
    for i in range(0, d.shape[1], m):
        for j in range(0, d.shape[2], n):
            tile = d[:, i : i + m, j : j + n]
            for step in range(0, a.shape[2], k):
                given = {
                    "a": a[:, i : i + m, step : step + k],
                    "b": b[:, j : j + n, step : step + k].swapaxes(1, 2),
                    "c": tile,
                }
                words = {
                    role: registers_of(np.ascontiguousarray(codes), form, role)
                    for role, codes in given.items()
                }
                tile = codes_from(engine(form, Inputs.plain(words, 0, False)), form, "d")
            d[:, i : i + m, j : j + n] = tile
    return d[:, :rows]


def _computed(wave: Wave, warps: Warps, form: Instruction, codes: dict[str, Codes]) -> Codes:
    interposed = wave.modes.interposed
    if interposed is not None:
        return interposed.fragments(wave, warps, form, codes)
    return product(wave.modes.engine, form, codes["a"], codes["b"], codes["c"])


def _mma(
    binder: StatementBinder, modifiers: tuple[str, ...], shape: str, kinds: tuple[str, str, str, str]
) -> Step:
    """Return the product of fragments of types d, a, b, c."""
    binder.count(4)
    kind_d, kind_a, kind_b, kind_c = kinds
    if (kind_d, kind_c) == ("f16", "f32"):
        raise binder.not_modelled("wmma.mma with C of f32 and D of f16: where it rounds is not known")
    suffix = "satfinite.%s" if "satfinite" in modifiers else "%s"
    suffix += "".join(f".{name}.popc" for name in ("xor", "and") if name in modifiers)
    rounding = next((name for name in ("rn", "rz", "rm", "rp") if name in modifiers), "")
    suffix = f"{rounding}.{suffix}" if rounding else suffix
    form = _tile((kind_d, kind_a, kind_b, kind_d), binder.module.target, suffix)
    if form is None:
        raise binder.not_modelled(f"wmma.mma of {kind_a} on {binder.module.target}: it has no mma like it")
    fragments = {
        role: Fragment.of(role, shape, kind, binder.module.target)
        for role, kind in zip("dabc", kinds, strict=True)
    }
    # Products take fewer registers than loads do: those of s4, u4 and b1 are of integers.
    columns = dict[str, Columns]()
    for place, role in enumerate("abc", 1):
        kind = fragments[role].type.replace("b32", "s32")
        columns[role] = Columns(_readers(binder, place, fragments[role], role, kind), fragments[role].word)
    width, count = fragments["d"].type, fragments["d"].registers("d")
    writers = [
        (place, binder.writer(register, width, 0, place))
        for place, register in enumerate(_vector(binder, 0, count))
    ]

    def act(wave: Wave, path: DivergentPath, lanes: Lanes, warps: Warps) -> None:
        codes = {
            role: fragments[role].codes_of(fragments[role].bytes_of(words.by_warp(wave, path, warps)))
            for role, words in columns.items()
        }
        c = codes["c"] if kind_c == kind_d else codes["c"].view(np.float16).astype(np.float32).view(np.uint32)
        d = _computed(wave, warps, form, codes | {"c": c})
        lines = np.ascontiguousarray(d).view(np.uint8)
        unstack(wave, path, lanes, warps, writers, fragments["d"].words_of(lines, count))

    return whole_warps(act)


def _halves(binder: StatementBinder, *modifiers: str) -> Step:
    d, c = modifiers[-2:]
    return _mma(binder, modifiers, modifiers[-3], (d, "f16", "f16", c))


def _typed(binder: StatementBinder, *modifiers: str) -> Step:
    """Return forms that spell all four types."""
    words = [modifier for modifier in modifiers if modifier and modifier != "satfinite"]
    d, a, b, c = words[-4:]
    if a != b:
        raise binder.illegal(f"A is .{a}, but B is .{b}: wmma multiplies matrices of one type")
    shape = next(word for word in words if word in SHAPES)
    return _mma(binder, modifiers, shape, (d, a, b, c))


# --- rows --------------------------------------------------------------------------------------------

_LAYOUTS, _ROW, _COLUMN = ("row", "col"), ("row",), ("col",)
_SYNC = (("sync",), ("aligned",))
_BIG = ("m16n16k16", "m8n32k16", "m32n8k16")
_PLACES = (("", "shared", "global"), ("shared::cta",))
_SAT = ("", "satfinite")

# shapes, types of A and B, of C and D; layouts of A, of B; PTX version, feature.
_TABLE: tuple[Any, ...] = (
    (_BIG, ("f16",), ("f16", "f32"), _LAYOUTS, _LAYOUTS, (6, 3), None),
    (_BIG, ("bf16",), ("f32",), _LAYOUTS, _LAYOUTS, (7, 0), Feature.WIDE_MMA),
    (("m16n16k8",), ("tf32",), ("f32",), _LAYOUTS, _LAYOUTS, (7, 0), Feature.WIDE_MMA),
    (("m8n8k4",), ("f64",), ("f64",), _LAYOUTS, _LAYOUTS, (7, 0), Feature.WIDE_MMA),
    (_BIG, ("s8", "u8"), ("s32",), _LAYOUTS, _LAYOUTS, (6, 3), Feature.INTEGER_MMA),
    (("m8n8k32",), ("s4", "u4"), ("s32",), _ROW, _COLUMN, (6, 3), Feature.INTEGER_MMA),
    (("m8n8k128",), ("b1",), ("s32",), _ROW, _COLUMN, (6, 3), Feature.INTEGER_MMA),
)
_NOTE = "products are inferred to be those of mma on the same target, in steps along k"
_PLACES_NOTE = "where an accumulator lies in registers is inferred from SASS of sm_75 to sm_120"


def _row(
    slots: tuple[tuple[str, ...], ...], bind: Any, since: Any, feature: Feature | None, note: str = ""
) -> Effect:
    return Effect(
        opcode="wmma", slots=slots, bind=bind, since=since, feature=feature, together=WARP,
        fidelity="inferred" if note else "exact", note=note,
    )  # fmt: skip


def _transfers() -> tuple[Effect, ...]:
    return tuple(
        _row(
            (("store" if role == "d" else "load",), (role,), *_SYNC, layouts, shapes, places, kinds),
            _store if role == "d" else _load,
            max(since, (7, 8)) if places == _PLACES[1] else since,
            feature,
            _PLACES_NOTE if role in "cd" else "",
        )
        for shapes, multiplicands, sums, a, b, since, feature in _TABLE
        for role, layouts, kinds in (
            ("a", a, multiplicands),
            ("b", b, multiplicands),
            ("c", _LAYOUTS, sums),
            ("d", _LAYOUTS, sums),
        )
        for places in _PLACES
    )


def _products() -> tuple[Effect, ...]:
    """Return rows of mma; those of bits have an operation, those of f64 a rounding."""
    found = list[Effect]()
    for shapes, kinds, sums, a, b, since, feature in _TABLE:
        for kind in kinds:
            head, tail = (("mma",), *_SYNC, a, b, shapes), (sums, (kind,), (kind,), sums)
            if kind == "f16":
                found.append(_row((*head, sums, sums), _halves, since, feature, _NOTE))
            elif kind == "b1":
                for operation, first, own in (("xor", since, feature), ("and", (7, 1), Feature.WIDE_MMA)):
                    bits = (("mma",), (operation,), ("popc",), *_SYNC, a, b, shapes)
                    found.append(_row((*bits, *tail), _typed, first, own, _NOTE))
            else:
                more = {"f64": (("", "rn", "rz", "rm", "rp"),), "s32": (_SAT,)}.get(sums[0], ())
                found.append(_row((*head, *more, *tail), _typed, since, feature, _NOTE))
    return tuple(found)


ROWS: tuple[Effect, ...] = (*_transfers(), *_products())
