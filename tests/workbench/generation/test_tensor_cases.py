"""Vectors of tcgen05.mma: words of tensor memory and tiles, read back by the manual's formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.tensor_core import SWIZZLES, d_cell, metadata_field, row_bytes, tile_address
from warpsim.base.errors import NotModelled, OperandError, TraceError
from warpsim.isa.families.tcgen05 import form_of, letter_of
from warpsim.workbench.generation.probes import probe
from warpsim.workbench.vectors.outcomes import verify

FORMS = {
    "f16": ("tcgen05.mma.cta_group::1.kind::f16", 0x04020010),
    "sparse": ("tcgen05.mma.sp.cta_group::1.kind::f8f6f4", 0x08020E94),
    "pair": ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale", 0x10880000),
    "ws": ("tcgen05.mma.ws.cta_group::1.kind::tf32", 0x0210A910),
    "nvfp4": ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 0x08020480),
}


def decoded(name: str, **more: Any) -> Any:
    mnemonic, word = FORMS[name]
    return warpsim.decode(mnemonic, target="sm_100a", idesc=word, **more)


def tile_of(form: Any, vectors: Any, side: str, case: int, codes: int) -> Any:
    """Bytes (rows, bytes) of the tile of all CTAs, each found alone."""
    ctas = form.lanes // 128
    word = int(vectors.descriptors[f"{side}_desc"][case])
    start, lbo, sbo = (word & 0x3FFF) << 4, (word >> 16 & 0x3FFF) << 4, (word >> 32 & 0x3FFF) << 4
    mode = SWIZZLES[word >> 61]
    memory = vectors.shared[case].reshape(ctas, -1)
    rows = (form.shape.m if side == "a" else form.shape.n) // ctas
    major = "MN" if form.product.transposed["ab".index(side)] else "K"
    size = max(form.format(side).bits, 8) // 8
    return np.array(
        [
            [
                memory[cta, tile_address(start, lbo, sbo, mode, row, byte, size, major)]
                for byte in range(codes)
            ]
            for cta in range(ctas)
            for row in range(rows)
        ],
        np.uint8,
    )


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("a_in", ["shared", "registers"])
def test_cases_hold_what_they_are_made_of(name: str, a_in: Any) -> None:
    """A and B in the tiles, C, metadata and scales in cells give D by matmul."""
    form = decoded(name)
    if a_in == "registers" and "a" not in form.registers:
        with pytest.raises(OperandError, match=r"does not lie in tensor memory|has no InRegisters"):
            warpsim.generate_vectors(form, kind="random", count=1, a_in=a_in)
        return
    vectors = warpsim.generate_vectors(form, kind="random", count=2, seed=3, a_in=a_in)
    letter = letter_of(form_of(tuple(form.mnemonic.split(".")[1:])), form.shape.m)
    m, n = form.shape.m, form.shape.n
    for case in range(2):
        C = np.zeros((m, n), form.c.code_dtype)
        D = np.zeros((m, n), form.d.code_dtype)
        for r, column in np.ndindex(m, n):
            cta, lane, at = d_cell(letter, r, column, n)
            C[r, column] = vectors.registers["c"][case, 128 * cta + lane, at]
            D[r, column] = vectors.d[case, 128 * cta + lane, at]
        if not vectors.varying()["enable_input_d"][case]:
            C[:] = 0
        doubled = 2 if form.sparse else 1
        B = tile_of(form, vectors, "b", case, 32 * doubled)
        A = tile_of(form, vectors, "a", case, 32) if a_in == "shared" else None
        b = codes_of_rows(B, form, "b").T
        a = (
            codes_of_rows(A, form, "a")
            if A is not None
            else warpsim.unpack(form, "a", vectors.registers["a"][case])
        )
        more = {}
        if form.scale is not None:
            more = {
                name: scales(form, vectors.registers[name][case], name, letter)
                for name in ("scale_a", "scale_b")
            }
        if form.sparse:
            fields = np.zeros((m, form.shape.k // 4), np.uint8)
            for r, chunk in np.ndindex(fields.shape):
                cta, lane, at, bit = metadata_field(letter, form.storage("a").bits, r, chunk)
                fields[r, chunk] = vectors.registers["e"][case, 128 * cta + lane, at] >> bit & 15
            a = (a, np.stack([fields & 3, fields >> 2], -1).reshape(m, -1))
        expected = warpsim.matmul(form, a, b, C, **more).view(form.d.code_dtype)
        np.testing.assert_array_equal(D, expected)


def codes_of_rows(data: Any, form: Any, side: str) -> Any:
    """Codes (rows, k) of bytes: the rows that make these bytes, found by numbers."""
    element = form.format(side)
    if element.bits >= 8:
        return np.ascontiguousarray(data).view(element.code_dtype)
    if form.storage(side).bits == 4:
        return np.stack([data & 15, data >> 4], -1).reshape(len(data), -1)
    found = []
    for row in data:
        chunks = [int.from_bytes(bytes(row[at : at + 16]), "little") for at in range(0, len(row), 16)]
        found.append(
            [chunk >> element.bits * place & element.mask for chunk in chunks for place in range(16)]
        )
    codes = np.array(found, element.code_dtype)
    np.testing.assert_array_equal(row_bytes(codes, element.bits, padded=True), data)
    return codes


def scales(form: Any, words: Any, name: str, letter: str) -> Any:
    """Factors of A (m, chunks) or B (chunks, n); ids of the descriptors here are 0."""
    lines = form.shape.m if name == "scale_a" else form.shape.n
    own = lines // (form.lanes // 128) if name == "scale_a" else lines
    assert letter != "B"
    found = np.zeros((lines, form.scale_chunks), np.uint8)
    for r, j in np.ndindex(found.shape):
        cta, row = divmod(r, own)
        found[r, j] = words[128 * cta + row % 32, row // 32] >> 8 * j & 255
    return found if name == "scale_a" else found.T


@pytest.mark.parametrize("suffix", [".npz", ".jsonl", ".hex", ".csv", ".h"])
def test_files_keep_the_descriptor(tmp_path: Path, suffix: str) -> None:
    form = decoded("nvfp4", numerics="groups_of_4")
    vectors = warpsim.generate_vectors(form, kind="corner", count=2, seed=5)
    path = tmp_path / f"set{suffix}"
    warpsim.write_vectors(path, vectors)
    read = warpsim.read_vectors(path)
    assert read.instruction == form
    np.testing.assert_array_equal(read.d, vectors.d)
    assert verify(path).passed
    again = warpsim.make_vectors(
        form,
        **vectors.registers,
        **vectors.descriptors,
        **vectors.immediates,
        shared=vectors.shared,
    )
    np.testing.assert_array_equal(again.d, vectors.d)


def test_words_that_are_not_of_the_form(tmp_path: Path) -> None:
    form = decoded("f16")
    vectors = warpsim.generate_vectors(form, kind="random", count=1)
    path = tmp_path / "set.jsonl"
    warpsim.write_vectors(path, vectors)
    path.write_text(path.read_text().replace('"idesc": ', '"idesc": 1'))
    with pytest.raises(TraceError, match="manifest"):
        warpsim.read_vectors(path)
    with pytest.raises(NotModelled, match="traces have no tensor memory"):
        probe(vectors, "set.npz")
    arguments = {**vectors.registers, **vectors.descriptors, "shared": vectors.shared}
    with pytest.raises(OperandError, match="has no immediate selector"):
        warpsim.make_vectors(form, **arguments, selector=1)


@pytest.mark.parametrize("name", FORMS)
def test_vectors_have_a_coverage(name: str) -> None:
    """Their descriptors are not those of wgmma; a bin that a case hits is one that the form has."""
    form = decoded(name)
    found = warpsim.coverage(warpsim.generate_vectors(form, count=4, kind="random", seed=5))
    assert any(hits.cases for hits in found.hits.values())
    assert not [title for title in found.hits if "swizzle" in title]
