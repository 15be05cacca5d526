"""Matrices to vector sets, for every form, and random ones.

Knows how the operands of an instruction come into registers and shared memory; does not know which numbers
decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim.isa.codes import codes_of
from warpsim.isa.descriptors.matrix_descriptor import Major
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor, canonical_image
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.formats import Format
from warpsim.isa.fragments import known_fields, metadata_map, registers_of, write_fields
from warpsim.isa.instruction import Instruction
from warpsim.isa.layouts.swizzle import Swizzle
from warpsim.sums.execution.pipeline import Engine
from warpsim.workbench.vectors.sets import VectorSet, make_vectors

Array = npt.NDArray[Any]
Rng = np.random.Generator

ENGINE: Engine = "kernel" if find_spec("numba") else "reference"
_TILE_ALIGNMENT = 1024


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the tiles of a wgmma lie: A in registers or not, and how both lie in shared memory."""

    a_shared: bool = False
    swizzle: Swizzle = "128B"
    majors: tuple[Major, Major] = ("K", "K")


def vector_set(
    form: Instruction,
    a: Array,
    b: Array,
    c: Array,
    *,
    title: str,
    fields: Array | None = None,
    e: Array | None = None,
    immediates: Mapping[str, Any] | None = None,
    scales: Mapping[str, Array] | None = None,
    placement: Placement = Placement(),
    labels: Sequence[str] = (),
    seed: int | None = None,
) -> VectorSet:
    """Return the set of matrices of codes, cases in front: ``a`` as it is stored, ``b (k, n)`` and ``c (m,
    n)``.

    Sparse forms take metadata ``fields (m, chunks)`` for one selector, or the registers ``e``. D is what the
    model computes, fields without a meaning being read literally.
    """
    immediates = dict(immediates or {})
    arguments: dict[str, Any] = {"c": registers_of(c, form, "c")}
    if form.family.opcode == "wgmma":
        arguments |= _tiles(form, a, b, placement)
        immediates |= _major_immediates(form, placement)
    else:
        arguments |= {"a": registers_of(a, form, "a"), "b": registers_of(b, form, "b")}
    if form.sparse:
        written = write_fields(form, fields, immediates.get("selector", 0)) if e is None else e  # type: ignore[arg-type]
        arguments["e"] = written
    return make_vectors(
        form,
        title=title,
        seed=seed,
        labels=tuple(labels),
        engine=ENGINE,
        undefined="fallback",
        **arguments,
        **(scales or {}),
        **immediates,
    )


def _tiles(form: Instruction, a: Array, b: Array, placement: Placement) -> dict[str, Any]:
    """Return a (in registers, or a tile) and B in shared memory, each as canonical as CuTe packs it."""
    arguments: dict[str, Any] = {}
    image = np.zeros((len(b), 0), np.uint8)
    tiles = {"b": (np.swapaxes(b, 1, 2), form.b, placement.majors[1])}
    if placement.a_shared:
        tiles = {"a": (a, form.a, placement.majors[0]), **tiles}
    else:
        arguments["a"] = registers_of(a, form, "a")
    for name, (codes, element, major) in tiles.items():
        tile = _stored(codes, element)
        start = -(-image.shape[1] // _TILE_ALIGNMENT) * _TILE_ALIGNMENT
        packed = canonical_image(tile, major=major, swizzle=placement.swizzle)
        image = np.concatenate([np.pad(image, ((0, 0), (0, start - image.shape[1]))), packed], axis=1)
        descriptor = canonical_descriptor(
            start,
            TileShape.of(tile, major),
            swizzle=placement.swizzle,
        )
        arguments[f"{name}_desc"] = np.full(len(b), descriptor.encode(), np.uint64)
    arguments["shared"] = image
    return arguments


def _stored(codes: Array, element: Format) -> Array:
    """Return a tile as shared memory has it: eight 1-bit elements make a byte."""
    if element.bits == 1:
        return np.packbits(codes.astype(np.bool_), axis=-1, bitorder="little")
    return np.ascontiguousarray(codes).astype(element.code_dtype)


def _major_immediates(form: Instruction, placement: Placement) -> dict[str, int]:
    if form.a.bits != 16:
        return {}
    a, b = (int(major == "MN") for major in placement.majors)
    return {"imm_trans_a": a if placement.a_shared else 0, "imm_trans_b": b}


def values(element: Format, array: npt.ArrayLike) -> Array:
    """Return codes of the nearest values of a format."""
    with np.errstate(over="ignore"):
        return codes_of(np.asarray(array, np.float64).astype(element.dtype), element, "values")


def joined(parts: Sequence[tuple[Array, Array, Array, list[str]]]) -> tuple[Array, Array, Array, list[str]]:
    """Return codes of A, B and C and labels, part after part."""
    a, b, c = (np.concatenate([part[place] for part in parts]) for place in range(3))  # type: ignore[misc]
    return a, b, c, [label for part in parts for label in part[3]]


def uniform_fields(form: Instruction, field: npt.ArrayLike, cases: int) -> Array:
    """Return ``(cases, m, chunks)``: one field, or one a case, in all places."""
    assert form.pattern is not None
    shape = (cases, form.shape.m, form.shape.k // form.pattern.chunk)
    return np.broadcast_to(np.asarray(field, np.uint8).reshape(-1, 1, 1), shape)


# --- random ----------------------------------------------------------------------------------------


def random_codes(rng: Rng, element: Format, shape: tuple[int, ...], low: int, high: int) -> Array:
    """Return numbers of both signs with exponents from ``low`` to ``high``; integers and bits as they
    come.
    """
    if not element.is_float:
        return raw_codes(rng, element, shape)
    exponent = rng.integers(low, high + 1, shape).astype(np.float64)
    magnitude = np.ldexp(1 + rng.random(shape), exponent.astype(np.int64))
    codes = values(element, np.where(rng.random(shape) < 0.5, -magnitude, magnitude))
    kept: Array = codes & ~codes.dtype.type((1 << element.ignored_bits) - 1)
    return kept


def raw_codes(rng: Rng, element: Format, shape: tuple[int, ...]) -> Array:
    """Any bits that a format has."""
    return rng.integers(0, 1 << element.bits, shape, dtype=np.uint64).astype(element.code_dtype)


def random_fields(rng: Rng, form: Instruction, cases: int) -> Array:
    """Metadata with a meaning; descending pairs too where plain ``.sp`` has one for them on this chip."""
    assert form.pattern is not None
    shape = (cases, form.shape.m, form.shape.k // form.pattern.chunk)
    return rng.choice(np.flatnonzero(known_fields(form)).astype(np.uint8), shape)


def combinations_of(form: Instruction, *, a_shared: bool) -> list[dict[str, int]]:
    """Return immediates that between them have every value, each combination being a kernel; the plainest
    first.
    """
    chosen = [{"selector": selector} for selector in form.selectors] or [{}]
    if form.scale:
        step = max(form.scale_chunks, 1)
        ids = [(0, 0, 0, 0), (4 - step, 1, 0, 3), (0, 1, 4 - step, 1), (4 - step, 0, 4 - step, 2)]
        names = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")
        sets = [dict(zip(names, item, strict=True)) for item in ids]
        chosen = [sets[i] | chosen[i % len(chosen)] for i in range(max(len(sets), len(chosen)))]
    if form.family.opcode == "wgmma":
        ways: list[dict[str, int]] = [{"scale_d": 1}, {"scale_d": 0}]
        if form.a.is_float:
            ways += [{"scale_d": 1, "imm_scale_a": -1}, {"scale_d": 1, "imm_scale_b": -1}]
        chosen = [ways[i % len(ways)] | chosen[i % len(chosen)] for i in range(max(len(ways), len(chosen)))]
    return chosen


def random_set(form: Instruction, cases: int, seed: int, *, placement: Placement = Placement()) -> VectorSet:
    """Return cases of three sorts in turn: numbers of a size, numbers of any size, and any bits.

    Immediates take every value in turn. Lanes whose metadata the selector ignores hold garbage.
    """
    rng = np.random.default_rng(seed)
    products = (form.products,) if form.products > 1 else ()
    shapes = {name: (cases, *products, *form.matrix_shape(name)) for name in "abc"}
    codes = {name: _three_sorts(rng, form.format(name), shape) for name, shape in shapes.items()}
    combinations = combinations_of(form, a_shared=placement.a_shared)
    which = np.arange(cases) % len(combinations)
    immediates: dict[str, Any] = {}
    for name in combinations[0]:
        column = np.array([combination.get(name, 1) for combination in combinations], np.int8)[which]
        immediates[name] = column if len(set(column.tolist())) > 1 else int(column[0])
    for name in {name for combination in combinations for name in combination} - set(combinations[0]):
        immediates[name] = np.array([combination.get(name, 1) for combination in combinations], np.int8)[
            which
        ]
    e = _metadata(rng, form, cases, immediates.get("selector", 0)) if form.sparse else None
    scales = {f"scale_{side}": _scale_words(rng, form, cases) for side in "ab"} if form.scale else None
    title = "random" + (" shared" if placement.a_shared else "")
    return vector_set(
        form,
        codes["a"],
        codes["b"],
        codes["c"],
        title=title,
        e=e,
        immediates=immediates,
        scales=scales,
        placement=placement,
        seed=seed,
    )


def _three_sorts(rng: Rng, element: Format, shape: tuple[int, ...]) -> Array:
    if not element.is_float:
        return raw_codes(rng, element, shape)
    widest = (element.minimum_exponent // 2, -element.minimum_exponent // 2)
    sorts = (random_codes(rng, element, shape, -5, 3), random_codes(rng, element, shape, *widest))
    case = np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) % 3
    return np.where(case == 0, sorts[0], np.where(case == 1, sorts[1], raw_codes(rng, element, shape)))


def _metadata(rng: Rng, form: Instruction, cases: int, selector: Any) -> Array:
    fields = random_fields(rng, form, cases)
    e = rng.integers(0, 1 << 32, (cases, form.lanes, 1), dtype=np.uint64).astype(np.uint32)
    selectors = np.broadcast_to(np.asarray(selector), cases)
    for value in form.selectors:
        mine = np.flatnonzero(selectors == value)
        lanes = np.unique(metadata_map(form, value)[:, 0])
        e[mine[:, None], lanes] = write_fields(form, fields[mine], value)[:, lanes]
    return e


def _scale_words(rng: Rng, form: Instruction, cases: int) -> Array:
    """Return four scales around one in every lane."""
    assert form.scale is not None
    one = form.scale.bias << form.scale.fraction_bits
    codes = rng.integers(one - 6, one + 7, (cases, form.lanes, 4)).astype(np.uint8)
    return codes.view(np.uint32)
