"""Vector sets of random bits, for every form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import warpsim
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.instruction import Instruction
from warpsim.workbench.vectors.sets import DESCRIPTORS, IMMEDIATES, VectorSet, make_vectors

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TARGETS = ("sm_70", "sm_80", "sm_89", "sm_90a", "sm_120a")


def sparse_form(target: str = "sm_90a") -> Instruction:
    return warpsim.decode(SPARSE, target=target)


def kinds_of_form() -> Iterator[Instruction]:
    """One form of every combination of family, element types, scales and k, small n, over the targets."""
    seen = set()
    for target in TARGETS:
        for form in warpsim.instructions(target):
            key = (form.family.name, form.a.bits, form.b.bits, form.c, form.d, form.kind, form.scale_vector)
            key = (*key, form.shape.k, form.products)
            if key not in seen and form.shape.n <= 8:
                seen.add(key)
                yield form


def example(form: Instruction, cases: int = 2, seed: int = 0, **options: Any) -> VectorSet:
    """A set of random words and legal metadata, as the model executes it."""
    return make_vectors(form, seed=seed, **(arguments(form, cases, seed) | options))


def unexecuted(form: Instruction, cases: int = 2, seed: int = 0, **options: Any) -> VectorSet:
    """A set whose D is random too, and whose cases have labels."""
    given = arguments(form, cases, seed)
    rng = np.random.default_rng([seed, 1])
    shape = (cases, form.lanes, form.registers["d"])
    values: dict[str, Any] = {
        "registers": {name: given[name] for name in given if name in form.registers},
        "d": rng.integers(0, 1 << form.register_bits, shape, np.dtype(f"u{form.register_bits // 8}")),
        "immediates": {name: given[name] for name in given if name in IMMEDIATES},
        "descriptors": {name: given[name] for name in given if name in DESCRIPTORS},
        "shared": given.get("shared"),
        "provenance": {"kind": "hardware", "chip": "NVIDIA H100 */ 80GB"},
        "title": "random, é",
        "labels": tuple(f"case {index} */ é" for index in range(cases)),
    }
    return VectorSet(**({"instruction": form, "seed": seed} | values | options))


def arguments(form: Instruction, cases: int, seed: int) -> dict[str, Any]:
    """Arguments of warpsim.execute; immediates differ from case to case where they can."""
    rng = np.random.default_rng(seed)
    given = _warpgroup(form, cases, rng) if form.family.opcode == "wgmma" else {}
    in_memory = {"a"} if "a_desc" in given else set()
    for name in sorted(form.registers.keys() - {"d", "e"} - in_memory):
        bits = form.register_bits if name in "abc" else 32
        shape = (cases, form.lanes, form.registers[name])
        given[name] = rng.integers(0, 1 << bits, shape, np.dtype(f"u{bits // 8}"))
    if form.sparse:
        selectors = rng.choice(form.selectors, cases)
        words = [warpsim.pack_metadata(form, _indices(form, rng), int(one)) for one in selectors]
        noise = rng.integers(0, 1 << 32, (cases, form.lanes, 1), np.uint32)
        given |= {"e": _kept(form, np.stack(words), noise, selectors), "selector": selectors}
    if form.scale:
        given["thread_id_b"] = rng.integers(0, 4, cases)
    return given


def _kept(form: Instruction, words: Any, noise: Any, selectors: Any) -> Any:
    """Random words in the lanes that a selector ignores."""
    lanes = np.arange(form.lanes)
    used = [np.isin(lanes, warpsim.metadata_map(form, int(selector))[:, 0]) for selector in selectors]
    return np.where(np.stack(used)[..., None], words, noise)


def _indices(form: Instruction, rng: np.random.Generator) -> Any:
    assert form.pattern is not None
    shape = (form.shape.m, form.shape.k // form.pattern.chunk, form.pattern.choices)
    return np.sort(np.argsort(rng.random(shape))[..., : form.pattern.kept]).reshape(form.shape.m, -1)


def _warpgroup(form: Instruction, cases: int, rng: np.random.Generator) -> dict[str, Any]:
    """B, and in every other seed A, behind canonical descriptors in shared memory of random bytes."""
    shared = rng.integers(0, 256, (cases, 8192), np.uint8)
    given: dict[str, Any] = {"shared": shared}
    bits = max(form.a.bits, 8)
    for name, start in (("a", 4096), ("b", 0))[int(rng.integers(2)) :]:
        rows, columns = form.matrix_shape(name) if name == "a" else form.matrix_shape(name)[::-1]
        k = columns * form.a.bits // bits
        word = canonical_descriptor(
            start, TileShape(mn=rows, k=k, element_bits=bits, major="K"), swizzle="none"
        )
        given[f"{name}_desc"] = np.full(cases, word.encode(), np.uint64)
    return given | {"scale_d": rng.integers(0, 2, cases)}
