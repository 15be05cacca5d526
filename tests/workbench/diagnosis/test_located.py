"""Dumps located in matrices: maps made lane by lane are found again, and what chance gives is not."""

from __future__ import annotations

import re
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.case import E4M3, F16, S8, SPARSE, WGMMA
from tools.mistakes.dumps import packings
from tools.mistakes.judging import Case, answered
from warpsim.show.views.held_operands import holding_document, holding_lines
from warpsim.workbench.diagnosis import held
from warpsim.workbench.diagnosis.contents.dump_places import places_of, several

FORM = warpsim.decode(F16[0], target=F16[1])
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mistake", sample(packings.LIST, 2), ids=lambda each: each.name)
def test_packings_of_other_people_are_named(mistake: Case) -> None:
    found, _, text = answered(mistake)
    assert found == "named", text


def located(matrices: dict[str, Any], dumps: dict[str, Any], form: Any = FORM, **more: Any) -> Any:
    return held(form, matrices, dumps, **more)[0]


def lines(found: Any) -> str:
    return "\n".join(holding_lines(found))


@pytest.mark.parametrize("seed", range(6))
def test_any_sum_of_bits_is_found_again(seed: int) -> None:
    """A base and a step in rows and columns for each bit of lane, register and half, by plain loops."""
    rng = np.random.default_rng(seed)
    A = (
        rng.permutation(np.arange(0x400, 0x400 + 64 * 256))
        .astype(np.uint16)
        .reshape(64, 256)
        .view(np.float16)
    )
    rows, columns = rng.integers(0, 8, 8).tolist(), rng.integers(0, 24, 8).tolist()
    a, source = np.zeros((32, 4), np.uint32), {}
    for lane in range(32):
        for register in range(4):
            for half in range(2):
                bits = [half, register & 1, register >> 1, *(lane >> b & 1 for b in range(5))]
                at = (
                    sum(r * b for r, b in zip(rows, bits, strict=True)),
                    sum(c * b for c, b in zip(columns, bits, strict=True)),
                )
                source[lane, register, half] = at
                a[lane, register] |= int(A.view(np.uint16)[at]) << 16 * half
    found = located({"A": A}, {"a": a})
    assert [part.count for part in found.location.parts] == [256]
    held_by = _evaluated(found.location.parts[0].formula)
    assert all(held_by(*place) == at for place, at in source.items())


def _evaluated(formula: str) -> Any:
    """Evaluate the formula that is printed, as a reader would."""
    row, column = (text.partition(" = ")[2] for text in formula.split(", column"))
    column = formula.partition("column = ")[2]

    def at(lane: int, register: int, half: int) -> tuple[int, int]:
        names = {"l": lane, "t": lane % 4, "g": lane // 4, "i": register, "h": half}
        names |= {f"t{b}": lane % 4 >> b & 1 for b in range(2)}
        names |= {f"g{b}": lane // 4 >> b & 1 for b in range(3)}
        names |= {f"i{b}": register >> b & 1 for b in range(2)} | {"h0": half}
        values = (eval(text.replace("/", "//"), {}, names) for text in (row, column))
        first, second = values
        return first, second

    return at


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_swizzles_are_found_as_exclusive_or(shift: int) -> None:
    A = RNG.standard_normal((16, 64)).astype(np.float16)
    codes = A.view(np.uint16)
    a = packings.a_of(lambda r, c: codes[r, ((c // 8 + 2) ^ (r >> shift & 7 >> shift)) * 8 + c % 8])
    (part,) = located({"A": A}, {"a": a}).location.parts
    assert (part.kind, part.count) == ("swizzled" if shift < 2 else "bit added", 256)
    by = f"row / {1 << shift} & {7 >> shift}" if shift else "row & 7"
    assert shift == 2 or part.name.text == f"swizzled: 16-byte chunk ^ ({by})"


def test_random_words_follow_no_map() -> None:
    A = RNG.standard_normal((16, 16)).astype(np.float16)
    a = RNG.integers(0, 1 << 32, (32, 4)).astype(np.uint32)
    found = located({"A": A}, {"a": a})
    assert not found.holds
    assert not found.location.parts
    assert "follow no map" in lines(found)


def test_a_permutation_by_chance_is_no_map() -> None:
    """Every value is there, in no order: nothing is named."""
    A = RNG.standard_normal((16, 16)).astype(np.float16)
    codes = RNG.permutation(A.view(np.uint16).reshape(-1)).reshape(16, 16)
    assert not located({"A": A}, {"a": packings.a_of(lambda r, c: codes[r, c])}).location.parts


def test_few_values_do_not_make_a_map() -> None:
    A, other = (RNG.integers(0, 2, (16, 16)).astype(np.float16) for _ in range(2))
    a = packings.a_of(lambda r, c: other.view(np.uint16)[r, c])
    assert not located({"A": A}, {"a": a}).location.parts


def test_a_right_dump_of_equal_values_holds() -> None:
    A = np.ones((16, 16), np.float16)
    assert located({"A": A}, {"a": warpsim.pack(FORM, "a", A)}).holds


@pytest.mark.parametrize("form", [F16, S8, E4M3, SPARSE])
def test_every_operand_is_found_in_its_own_matrix(form: tuple[str, str]) -> None:
    """Places agree with pack: right dumps hold, also at a tile further on."""
    ins = warpsim.decode(form[0], target=form[1])
    k = ins.shape.k
    A = RNG.integers(-50, 50, (16, 2 * k)).astype(ins.a.dtype)
    A = np.concatenate([warpsim.prune(A[:, i : i + k], ins) for i in (0, k)], axis=1) if ins.sparse else A
    values, indices = warpsim.compress(A[:, k:], ins) if ins.sparse else (A[:, k:], None)
    dumps = {"a": warpsim.pack(ins, "a", values)}
    if ins.sparse:
        dumps["e"] = warpsim.pack_metadata(ins, indices)
    for found in held(ins, {"A": A}, dumps):
        assert found.holds
        assert "k step 1" in lines(found)


def test_registers_of_a_warpgroup() -> None:
    ins = warpsim.decode(WGMMA[0], target=WGMMA[1])
    D = RNG.standard_normal((64, 64)).astype(np.float32)
    right = warpsim.pack(ins, "d", D)
    assert located({"D": D}, {"d": right}, ins).holds
    moved = right.reshape(4, 32, -1)[[1, 0, 3, 2]].reshape(right.shape)
    (part,) = located({"D": D}, {"d": moved}, ins).location.parts
    assert (part.kind, part.count, part.name.text) == ("xor", 4096, "warps i and i ^ 1 exchanged")
    assert places_of(ins, "d").digits[-1] == ("w", 1)


def test_the_first_element_that_leaves_a_map_is_named() -> None:
    A = RNG.standard_normal((16, 16)).astype(np.float16)
    a = warpsim.pack(FORM, "a", A)
    a[9, 2] = a[0, 0]
    text = lines(located({"A": A}, {"a": a}))
    assert "2 elements follow none of these, the first: lane 9, a2, half 0" in text
    assert "where A[2, 10] = " in text
    assert "it is A[0, 0]" in text


def test_documents_have_what_lines_have() -> None:
    A = RNG.standard_normal((16, 16)).astype(np.float16)
    document = holding_document(located({"A": A}, {"a": warpsim.pack(FORM, "a", A)[:, [0, 2, 1, 3]]}))
    assert document["location"]["parts"][0]["elements"] == 256
    assert "registers 1 and 2" in document["location"]["parts"][0]["name"]


@pytest.mark.parametrize(
    ("values", "text"),
    [([1], "1"), ([1, 2, 3, 7], "1 to 3, 7"), (list(range(0, 40, 2)), "0, 2, 4, 6, 8, 10, 12, 14, …")],
)
def test_numbers_are_listed_with_their_ranges(values: list[int], text: str) -> None:
    assert several(values) == text


def test_shapes_that_do_not_fit_are_refused() -> None:
    A = np.zeros((12, 100), np.float16)
    with pytest.raises(warpsim.WarpsimError, match="a has 8 steps, but A of 16 x 112 has 7 along k"):
        held(FORM, {"A": A}, {"a": np.zeros((8, 32, 4), np.uint32)})


def test_few_values_in_a_large_matrix_are_found_soon() -> None:
    A = RNG.integers(-2, 3, (512, 512)).astype(np.float16)
    a = warpsim.pack(FORM, "a", np.ascontiguousarray(A[96:112, 64:80].T))
    begin = time.process_time()
    (part,) = located({"A": A}, {"a": a}).location.parts
    assert (part.tile, part.count, part.kind) == ((96, 64), 256, "transposed")
    other = warpsim.pack(FORM, "a", RNG.integers(-2, 3, (16, 16)).astype(np.float16))
    assert not located({"A": A}, {"a": other}).location.parts
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(("row", "column", "kind"), [(35, 11, "shift"), (32, 16, "swapped")])
def test_a_tile_of_a_large_matrix(row: int, column: int, kind: str) -> None:
    """At a tile with two registers exchanged, and between tiles."""
    C = RNG.permutation(1 << 17).reshape(256, 512).astype(np.uint32).view(np.float32)
    words = warpsim.pack(FORM, "c", np.ascontiguousarray(C[row : row + 16, column : column + 8]))
    words = words[:, [0, 2, 1, 3]] if kind == "swapped" else words
    (part,) = located({"C": C}, {"c": words}).location.parts
    assert (part.kind, part.count) == (kind, 128)
    assert part.formula.startswith(f"row = {row} + g")
    assert part.tile == ((row, column) if kind == "swapped" else None)


def test_parts_have_their_places() -> None:
    """Rows 8 on are of the next step; the upper registers are zero."""
    A = RNG.standard_normal((16, 64)).astype(np.float16)
    a = packings.a_of(lambda r, c: A.view(np.uint16)[r, c + 16 * (r >= 8)])
    parts = located({"A": A}, {"a": a}).location.parts
    assert [(part.kind, part.where, part.tile) for part in parts] == [
        ("own", "rows 0 to 7", (0, 0)),
        ("tile", "rows 8 to 15", (0, 16)),
    ]
    a = warpsim.pack(FORM, "a", np.ascontiguousarray(A[:, :16]))
    a[:, 2:] = 0
    own, zero = located({"A": A[:, :16]}, {"a": a}).location.parts
    assert (own.kind, zero.kind, zero.source, zero.where) == ("own", "zero", "", "a2, a3")


@pytest.mark.parametrize(
    ("element", "kinds", "formula"),
    [
        (lambda r, c: (15 - r, c), ["xor"], "row = 15 - g - 8*i0, column = 2*t + 8*i1 + h"),
        (lambda r, c: (r, c ^ 3), ["xor"], ""),
        (lambda r, c: (r, (c + r) % 16), ["skewed"], ""),
        (lambda r, c: (min(r, 9), c), ["own", "constant"], ""),
        (lambda r, c: (r, c * 5 % 16), ["scaled"], ""),
    ],
)
def test_kinds_of_maps(element: Any, kinds: list[str], formula: str) -> None:
    A = RNG.standard_normal((16, 16)).astype(np.float16)
    dump = packings.a_of(lambda r, c: A.view(np.uint16)[element(r, c)])
    parts = located({"A": A}, {"a": dump}).location.parts
    assert [part.kind for part in parts] == kinds
    assert sum(part.count for part in parts) == 256
    assert formula in parts[0].formula


@pytest.mark.parametrize(
    ("change", "kind", "fact"),
    [
        (lambda A: -A, "negated", "negated"),
        (lambda A: np.trunc(A), "integers", "trunc"),
        (lambda A: A.astype(ml_dtypes.float8_e5m2).astype(np.float16), "rounded", "float8_e5m2|e5m2"),
    ],
)
def test_values_that_change_on_the_way_are_named(change: Any, kind: str, fact: str) -> None:
    """Alone, and where two registers are exchanged besides."""
    A = (RNG.standard_normal((16, 16)) * 4).astype(np.float16)
    dump = warpsim.pack(FORM, "a", change(A))
    (part,) = located({"A": A}, {"a": dump}).location.parts
    assert (part.kind, part.count) == (kind, 256)
    assert re.search(fact, part.name.text)
    (part,) = located({"A": A}, {"a": dump[:, [0, 2, 1, 3]]}).location.parts
    assert part.count == 256
    assert re.search(f"{fact}.*registers 1 and 2 exchanged", part.name.text)


def test_halves_of_words_as_elements_of_another_type() -> None:
    C = RNG.standard_normal((16, 8)).astype(np.float16)
    words = warpsim.pack(FORM, "c", C.astype(np.float32))
    halves = C.reshape(-1).view(np.uint32)
    words[:, :2] = halves.reshape(32, 2)
    words[:, 2:] = 0
    found = located({"C": C.astype(np.float32)}, {"c": words})
    assert (found.note, found.location) == ("its 16-bit halves are elements of C as f16", None)
    words[:] = RNG.integers(1, 1 << 32, words.shape)
    assert not located({"C": C.astype(np.float32)}, {"c": words}).note
