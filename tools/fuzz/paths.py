"""Random legal instructions and operands, computed on every path: all of them give the same bits.

One case alone and in a batch, compiled and in plain integers, from registers and as matrices, in a launched
kernel; wgmma with A in registers and in shared memory. Products of several instructions along k are those of
one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from warpsim.base.errors import present
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.codes import codes_of, matrix_of
from warpsim.isa.fragments import registers_of
from warpsim.isa.instruction import Instruction
from warpsim.workbench.generation.cases.drafts import Draft
from warpsim.workbench.generation.cases.placement import arguments_of
from warpsim.workbench.vectors.sets import Part, VectorSet, make_vectors

from .kernels import launched
from .mixes import drafted

Words = npt.NDArray[Any]
Found = Iterator[tuple[str, Words, Words]]  # a path, its D, and the D that it should give
_BY_REFERENCE = 1 << 15  # products of a case that plain integers manage in no time


@cache
def kinds() -> tuple[tuple[Instruction, ...], ...]:
    """Return forms by what they compute, whatever their shape and target: rare kinds are as likely as
    others.
    """
    found = dict[tuple[Any, ...], list[Instruction]]()
    for target in ARCHITECTURES:
        for form in warpsim.instructions(target):
            formats = (form.a.name, form.c.name, form.d.name, str(form.scale))
            key = (form.family.opcode, form.sparse, *formats, form.products)
            found.setdefault(key, []).append(form)
    return tuple(map(tuple, found.values()))


def random_paths(random: Random) -> tuple[str, list[str]]:
    """Return a form with its target, and the paths whose bits differ."""
    form = random.choice(random.choice(kinds()))
    name = f"{form.mnemonic} on {form.target}"
    try:
        return name, different(form, random.randrange(1 << 30), random.randint(1, 12))
    except warpsim.NotModelled:
        return f"{name} (not modelled)", []


def different(form: Instruction, seed: int, cases: int) -> list[str]:
    """Return the paths whose bits differ from what they should be, and where."""
    rng = np.random.default_rng(seed)
    draft = drafted(form, cases, rng)
    place: Any = rng.choice(["shared", "registers"])
    vectors = make_vectors(form, **arguments_of(form, draft, np.random.default_rng(seed), place))
    part = max(vectors.inputs(), key=lambda one: one.arguments["c"].shape[0])
    tiles = _tiles(form, draft, vectors, part)
    paths = (
        _in_batches(form, vectors),
        _alone(form, part.arguments, vectors.d[part.cases], rng),
        _as_matrices(form, tiles, vectors.d[part.cases]),
        _in_a_kernel(form, part.arguments, vectors.d[part.cases], rng),
        _elsewhere(form, draft, vectors, seed, place),
        _along_k(form, tiles, rng),
    )
    return [f"{path}{_where(got, wanted)}" for path, got, wanted in chain(*paths) if not _same(got, wanted)]


def _same(got: Words, wanted: Words) -> bool:
    return got.shape == wanted.shape and got.dtype == wanted.dtype and np.array_equal(got, wanted)


def _where(got: Words, wanted: Words) -> str:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f": {got.dtype} {got.shape} for {wanted.dtype} {wanted.shape}"
    places = np.argwhere(got != wanted)
    first = tuple(places[0])
    return f": {len(places)} differ, first {places[0].tolist()}: {got[first]:#x} for {wanted[first]:#x}"


# --- what an instruction is given ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Logical matrices of cases, as matmul takes them: left is A, or its values and indices."""

    left: Any
    b: Words
    c: Words | None  # None where wgmma does not read it
    scales: tuple[Words, ...]


def _tiles(form: Instruction, draft: Draft, vectors: VectorSet, part: Part) -> Tiles:
    """Return the matrices of a part of the cases, which a draft has by products."""
    chosen = np.arange(len(vectors))[part.cases]
    rows = (chosen[:, None] * form.products + np.arange(form.products)).ravel()
    a, b, c = (matrix_of(getattr(draft, name)[rows], form.format(name)) for name in "abc")
    left: Any = a
    if form.sparse:
        left = a, warpsim.unpack_metadata(form, part.arguments["e"], part.arguments["selector"])
    scales = () if draft.scale_a is None else (draft.scale_a[rows], present(draft.scale_b, "scale b")[rows])
    return Tiles(left=left, b=b, c=c if part.arguments.get("scale_d", 1) else None, scales=scales)


# --- paths of one instruction ----------------------------------------------------------------------


def _in_batches(form: Instruction, vectors: VectorSet) -> Found:
    """Yield cases with the same immediates together."""
    for part in vectors.inputs():
        yield "a batch", warpsim.execute(form, **part.arguments), vectors.d[part.cases]


def _alone(form: Instruction, arguments: dict[str, Any], d: Words, rng: np.random.Generator) -> Found:
    """One case, compiled and in plain integers."""
    one = int(rng.integers(len(d)))
    alone = {name: value[one] if np.ndim(value) else value for name, value in arguments.items()}
    yield "one alone", warpsim.execute(form, **alone), d[one]
    shape = form.shape
    if shape.m * shape.n * form.stored_k * form.products <= _BY_REFERENCE:
        yield "the reference", warpsim.execute(form, engine="reference", **alone), d[one]


def _as_matrices(form: Instruction, tiles: Tiles, d: Words) -> Found:
    """Yield the same tiles by matmul."""
    product = warpsim.matmul(form, tiles.left, tiles.b, tiles.c, *tiles.scales)
    codes = codes_of(product, form.d, "D").reshape(-1, form.products, *product.shape[1:])
    yield "matmul", registers_of(codes if form.products > 1 else codes[:, 0], form, "d"), d


def _in_a_kernel(form: Instruction, arguments: dict[str, Any], d: Words, rng: np.random.Generator) -> Found:
    """Yield a CTA a case."""
    schedule = str(rng.choice(["program", "latest", "random:1"]))
    yield f"a kernel ({schedule})", launched(form, arguments, schedule), d


def _elsewhere(form: Instruction, draft: Draft, vectors: VectorSet, seed: int, place: str) -> Found:
    """wgmma with the same A in the other place, other swizzles and signs."""
    if "b_desc" not in vectors.descriptors:
        return
    other: Any = "registers" if place == "shared" else "shared"
    arguments = arguments_of(form, draft, np.random.default_rng(seed), other)
    arguments["scale_d"] = vectors.immediates["scale_d"]
    yield f"A in {other}", make_vectors(form, **arguments).d, vectors.d


# --- paths of products along k ---------------------------------------------------------------------


def _along_k(form: Instruction, tiles: Tiles, rng: np.random.Generator) -> Found:
    """Yield the tiles one behind the other along k: gemm does what matmul does one after the other."""
    if form.c != form.d or tiles.c is None:
        return
    steps = min(len(tiles.b), 4)
    first = tiles.c[0]
    wanted = first
    for step in range(steps):
        left = tuple(item[step] for item in tiles.left) if form.sparse else tiles.left[step]
        wanted = warpsim.matmul(form, left, tiles.b[step], wanted, *(scale[step] for scale in tiles.scales))
    sides = tiles.left if form.sparse else (tiles.left,)
    whole = [np.concatenate(side[:steps], axis=1) for side in sides]
    scales = [
        np.concatenate(scale[:steps], axis=axis) for scale, axis in zip(tiles.scales, (1, 0), strict=False)
    ]
    b = np.concatenate(tiles.b[:steps], axis=0)
    threads = int(rng.integers(1, 3))
    given: Any = tuple(whole) if form.sparse else whole[0]
    found = warpsim.gemm(
        form, given, b, first, **dict(zip(("scale_a", "scale_b"), scales, strict=False)), threads=threads
    )
    yield f"gemm of {steps} along k", codes_of(found, form.d, "D"), codes_of(wanted, form.d, "D")
