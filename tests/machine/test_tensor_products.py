"""tcgen05.mma in launched kernels: every kind, major, swizzle and layout against matmul and the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.described_products import Product, mnemonic
from tests.helpers.families import sample
from tests.helpers.tensor_core import d_cell
from warpsim.base.errors import Fault, UndefinedBehavior, WarpsimError
from warpsim.isa.descriptors.instruction_descriptor import KINDS

SCHEDULES = ("program", "latest", 1)


SIZES = {"f16": 2, "tf32": 4}
PLAIN = ("f16", "tf32", "f8f6f4", "i8")
VECTORS = {"mxf8f6f4": ("", "block32"), "mxf4": ("block32",), "mxf4nvf4": ("scale_vec::2X", "block16")}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("code", [0, 2, 4, 6])
@pytest.mark.parametrize("kind", PLAIN)
def test_every_plain_kind_and_swizzle(kind: str, code: int, sparse: bool) -> None:
    b = 4 if sparse and code == 6 else code  # rows of a sparse instruction's B have 64 bytes
    Product(mnemonic(kind, sp=sparse), tiles=(code, b), seed=code).check()


@pytest.mark.parametrize("a_type", KINDS["f8f6f4"].multiplicands)
def test_every_pair_of_narrow_types(a_type: int) -> None:
    for b_type in KINDS["f8f6f4"].multiplicands:
        Product(mnemonic("f8f6f4"), a_type=a_type, b_type=b_type, n=16).check()


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("f16", {"a_type": 1, "b_type": 1}),
        ("f16", {"d_type": 0}),
        ("f8f6f4", {"d_type": 0}),
        ("f8f6f4", {"a_type": 5, "b_type": 3}),
        ("i8", {"a_type": 1, "saturate": 1}),
        ("f16", {"negate_a": 1}),
        ("tf32", {"negate_b": 1, "negate_a": 1}),
    ],
)
def test_types_signs_and_saturation(kind: str, fields: dict[str, int], in_memory: bool) -> None:
    Product(mnemonic(kind), in_memory=in_memory, **fields).check()


@pytest.mark.parametrize(
    ("kind", "codes"),
    [("f16", (0, 2, 4, 6)), ("i8", (0, 2, 4, 6)), ("f8f6f4", (2,)), ("tf32", (1,))],
)
def test_transposed_tiles(kind: str, codes: tuple[int, ...]) -> None:
    for code in codes:
        for sides in ((1, 0), (0, 1), (1, 1)):
            tiles = tuple(code if side else 2 for side in sides)
            fields = {"transpose_a": sides[0], "transpose_b": sides[1]}
            Product(mnemonic(kind), tiles=tiles, n=32, **fields).check()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("kind", "vector"), [(kind, word) for kind, words in VECTORS.items() for word in words]
)
def test_block_scaled_kinds(kind: str, vector: str, sparse: bool) -> None:
    for ids in (0, 2):
        fields = (
            {}
            if ids and vector in ("block16", "scale_vec::4X")
            else {"scale_a_id": ids, "scale_b_id": 2 - ids}
        )
        if vector in ("block16", "scale_vec::4X"):
            fields = {}
        Product(mnemonic(kind, sp=sparse, vector=vector), n=40, **fields).check()


def test_scales_of_ue4m3_and_ids_of_single_factors() -> None:
    Product(mnemonic("mxf4nvf4", vector="block16"), scale_type=0).check()
    for number in range(4):
        Product(mnemonic("mxf8f6f4"), scale_a_id=number, scale_b_id=3 - number, n=72).check()


@pytest.mark.parametrize("fields", [{}, {"m": 256, "n": 32}])
@pytest.mark.parametrize("kind", ["f16", "f8f6f4"])
def test_a_shifted_a(kind: str, fields: dict[str, int]) -> None:
    name = mnemonic(kind, ctas=2 if fields else 1) + ".ashift"
    made = Product(name, in_memory=True, **fields)
    given, own = made.a.copy(), 128
    run = made.run()
    for row in range(len(made.a)):
        made.a[row] = given[row if row % own == own - 1 else row + 1]
    d = made.expected
    report = run.report()
    for (r, n), code in np.ndenumerate(d):
        cta, lane, column = d_cell(made.letter, r, n, d.shape[1])
        assert run.after[cta, lane, column] == code
    assert any("row i of A takes row i + 1" in kind.note for kind in report.fidelity["inferred"])


def test_a_shifted_a_of_other_forms() -> None:
    small = Product(mnemonic("f16") + ".ashift", in_memory=True, m=64)
    assert ".ashift has M of 128, of a pair 256, not 64" in error_of(small).message
    sparse = Product(mnemonic("f16", sp=True) + ".ashift", in_memory=True)
    assert "whether metadata move with the rows is not documented" in error_of(sparse).message


DEEP = [  # kind, vector, settings of the tiles, further fields
    ("mxf4", "block32", {}, {"n": 40, "scale_a_id": 3, "scale_b_id": 1}),
    ("mxf4nvf4", "block16", {"start": 96, "second": 16 * 1024}, {"scale_type": 0, "scale_b_id": 2}),
    ("mxf4nvf4", "scale_vec::2X", {"start": 112, "second": 16 * 1024 + 16}, {"n": 128, "scale_a_id": 2}),
    ("mxf4", "", {"start": 80, "second": 16 * 1024}, {"n": 24, "scale_b_id": 3}),
]


@pytest.mark.parametrize(("kind", "vector", "settings", "fields"), DEEP)
def test_a_k_of_96(kind: str, vector: str, settings: dict[str, int], fields: dict[str, int]) -> None:
    made = Product(mnemonic(kind, vector=vector), settings=settings, k_96=1, **fields)
    assert made.instruction.shape.k == 96
    made.check(schedule="latest")


def test_a_k_of_96_of_a_pair_and_with_a_in_tensor_memory() -> None:
    scales = {"scale_a_id": 2, "scale_b_id": 2}
    pair = mnemonic("mxf4nvf4", ctas=2, vector="block16")
    Product(pair, settings={"start": 96, "second": 16 * 1024}, m=256, n=144, k_96=1, **scales).check()
    Product(mnemonic("mxf4", vector="block32"), in_memory=True, k_96=1, **scales).check()
    small = Product(mnemonic("mxf4", ctas=2, vector="block32"), m=128, k_96=1)
    assert "known in figures only" in error_of(small, r4=small.descriptor.encode() | 2 << 29).message


@pytest.mark.parametrize(
    ("code", "settings", "warned"),
    [
        (2, {"start": 128}, False),
        (4, {"start": 384}, False),
        (6, {"start": 64}, False),
        (2, {"start": 128, "base": 1}, True),
        (2, {"start": 32, "base": 7}, True),
        (4, {"start": 128, "base": 1}, True),
        (2, {"start": 32}, False),
    ],
)
def test_tiles_that_begin_in_a_pattern(code: int, settings: dict[str, int], warned: bool) -> None:
    """Base offset 0 is common, and warned of nowhere."""
    made = Product(mnemonic("f16"), tiles=(code, code), settings=settings, n=16)
    made.check(checks="warn")
    run = made.run()
    report = run.report(checks="warn")
    found = [hazard for hazard in report.hazards if hazard.kind == "descriptor"]
    assert [hazard.severity for hazard in found] == ["warning"] * warned
    if warned:
        assert "bytes (inferred: rows are swizzled by their distance from there" in found[0].message
    inferred = any("where the base offset places" in kind.note for kind in report.fidelity["inferred"])
    assert inferred == (warned or settings["start"] > 32)


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ({}, {"m": 64}),
        ({"sp": True}, {"m": 64}),
        ({"ws": True}, {"m": 128}),
        ({"ws": True}, {"m": 64, "n": 128}),
        ({"ws": True}, {"m": 32, "n": 128}),
        ({"ws": True, "sp": True}, {"m": 64}),
        ({"ws": True, "sp": True}, {"m": 32}),
        ({"ctas": 2}, {"m": 256, "n": 32}),
        ({"ctas": 2}, {"m": 128, "n": 64}),
        ({"ctas": 2, "sp": True}, {"m": 256, "n": 32}),
        ({"ctas": 2, "sp": True}, {"m": 128, "n": 32}),
    ],
)
@pytest.mark.parametrize("kind", ["f16", "i8"])
def test_every_layout(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    for schedule in sample(SCHEDULES, 3, kind == "i8"):
        Product(mnemonic(kind, **form), **fields).check(schedule=schedule)


@pytest.mark.parametrize(
    ("kind", "form", "fields"),
    [
        ("f16", {}, {"m": 64}),
        ("tf32", {"sp": True}, {}),
        ("f8f6f4", {"ctas": 2}, {"m": 256, "n": 32, "a_type": 4}),
        ("f16", {"ctas": 2}, {"m": 128}),
        ("f16", {"ctas": 2, "sp": True}, {"m": 128, "n": 32}),
        ("mxf4", {"vector": "block32"}, {}),
        ("mxf8f6f4", {}, {"a_type": 5}),
    ],
)
def test_a_in_tensor_memory(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    Product(mnemonic(kind, **form), in_memory=True, **fields).check()


@pytest.mark.parametrize(
    ("kind", "form", "fields"),
    [
        ("mxf8f6f4", {"ctas": 2}, {"m": 256, "n": 32}),
        ("mxf8f6f4", {"ctas": 2}, {"m": 128, "n": 128}),
        ("mxf4", {"ctas": 2, "sp": True, "vector": "block32"}, {"m": 256, "n": 32}),
    ],
)
def test_block_scales_of_pairs(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    Product(mnemonic(kind, **form), **fields).check()


def test_the_selector_names_a_column_of_metadata() -> None:
    for selector in range(4):
        Product(mnemonic("f16", sp=True), selector=selector).check()


def test_a_disabled_accumulator_is_not_read_and_disabled_lanes_stay() -> None:
    product = Product(mnemonic("f16"))
    run = product.run()
    run.words["r5"] = 0
    product.c[:] = 0
    found = run.results()
    np.testing.assert_array_equal(found[0, :, :64], product.expected)
    product = Product(mnemonic("f16"))
    run = product.run()
    run.statement = run.statement.replace("r4, enable", "r4, {r8, r9, r10, r11}, enable")
    run.words |= {"r8": 0, "r9": 1, "r10": 0x80000000, "r11": 0xFFFFFFFF}
    found, before = run.results(), run.cells
    kept = [32, 95, *range(96, 128)]
    rest = [lane for lane in range(128) if lane not in kept]
    np.testing.assert_array_equal(found[0, kept], before[0, kept])
    np.testing.assert_array_equal(found[0, rest, :64], product.expected[rest])


def test_d_is_scaled_down_before_the_sum() -> None:
    product = Product(mnemonic("f16"))
    run = product.run()
    run.statement = run.statement.replace("enable;", "enable, 3;")
    product.c = (product.c.view(np.float32) / 8).view(np.uint32)
    np.testing.assert_array_equal(run.results()[0, :, :64], product.expected)


@pytest.mark.parametrize("m", [128, 32])
def test_a_mask_zeroes_columns_of_b(m: int) -> None:
    """Runs of four used and three zeroed columns, in every part of N of its own."""
    product = Product(mnemonic("f16", ws=True), m=m, n=64)
    run = product.run()
    run.statement = run.statement.replace("enable;", "enable, q6;")
    run.words["q6"] = 1 << 39 | 2 << 40 | 3 << 48
    part = 64 * m // 128
    off = [n for n in range(64) if n % part % 7 >= 4]
    product.b[:, off] = 0
    found = run.results()
    for (r, n), code in np.ndenumerate(product.expected):
        _, lane, column = d_cell(product.letter, r, n, 64)
        assert found[0, lane, column] == code


# --- what is wrong -----------------------------------------------------------------------------------


def error_of(product: Product, **words: int) -> WarpsimError:
    run = product.run()
    for name, value in words.items():
        if name in ("a", "b"):
            setattr(run, name, value)
        else:
            run.words[name] = value
    with pytest.raises(WarpsimError) as found:
        run.results()
    return found.value


@pytest.mark.parametrize(
    ("words", "kind", "phrase"),
    [
        ({"r4": 0x0A100010}, UndefinedBehavior, "M is 160 (bits 28:24); legal: 64, 128"),
        ({"r4": 0x08100014}, UndefinedBehavior, "sparse is 1 (bit 2), but the mnemonic has no .sp"),
        ({"a": 0x4000_0040_0001_0000}, UndefinedBehavior, "looks like a descriptor of wgmma"),
        ({"b": 0x4000_4040_0001_0FC0}, Fault, "outside the 66560 bytes"),
        ({"r0": 480}, Fault, "D takes columns 480..543: tensor memory has 512"),
        ({"r0": 16 << 16}, Fault, "D begins at lane 16; legal here: 0"),
    ],
)
def test_operands_that_no_machine_takes(words: dict[str, int], kind: type[WarpsimError], phrase: str) -> None:
    error = error_of(Product(mnemonic("f16")), **words)
    assert isinstance(error, kind)
    assert phrase in error.message
    assert "thread 0" in error.message or "lane 0" in error.message


def test_overlap_copies_and_metadata_are_checked() -> None:
    scaled = Product(mnemonic("mxf8f6f4"))
    assert "D and scale factors of A overlap in columns 60..63" in error_of(scaled, r6=60).message
    run = scaled.run()
    run.cells[0, 40, 330] ^= 1
    with pytest.raises(UndefinedBehavior, match="lane 40, column 330 holds other bits than lane 8"):
        run.results()
    pair = Product(mnemonic("mxf8f6f4", ctas=2), m=256, n=32)
    run = pair.run()
    run.cells[1, 5::32, 340] ^= 1
    with pytest.raises(UndefinedBehavior, match="column 5 of B is another in the odd CTA of the pair"):
        run.results()
    sparse = Product(mnemonic("f16", sp=True))
    run = sparse.run()
    run.cells[0, 27, 320] = 0
    with pytest.raises(UndefinedBehavior, match="metadata field 0b0000 in row 19, chunk 4"):
        run.results()
    hazards = run.report(undefined="fallback").hazards
    (message,) = (found.message for found in hazards if found.kind == "undefined metadata")
    assert "metadata field 0b0000 in row 19, chunk 4: indices 0, 0 are equal" in message
    assert "its row of D reaches a result" in message
