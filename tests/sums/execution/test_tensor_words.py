"""execute with words of tensor memory: every operand where the manual's formulas have it, against matmul."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.described_products import Product, mnemonic
from tests.helpers.tensor_core import BASE, d_cell
from warpsim.base.errors import IllegalInstruction, NotModelled, OperandError, UndefinedBehavior

PLACES = {"c": 0, "a": 300, "e": 320, "scale_a": 330, "scale_b": 340}


def words_of(product: Product) -> dict[str, Any]:
    """The arguments of execute: cells of a run from the address of each operand on, and its shared memory."""
    run, form = product.run(), product.instruction
    ctas = product.form.ctas
    given: dict[str, Any] = {}
    for name, first in PLACES.items():
        if name in form.registers and (name != "a" or product.in_memory):
            cells = run.cells[:ctas, :, first : first + form.registers[name]]
            given[name] = cells.reshape(ctas * 128, -1)
    shared = np.zeros((ctas, BASE + run.image.shape[1]), np.uint8)
    shared[:, BASE:] = run.image[:ctas]
    given |= {"shared": shared.reshape(-1), "b_desc": run.b}
    if not product.in_memory:
        given["a_desc"] = run.a
    return given


def check(product: Product, **more: Any) -> None:
    given = words_of(product)
    d = warpsim.execute(product.instruction, **given, **more)
    expected, codes = given["c"].copy(), product.expected
    for (r, n), code in np.ndenumerate(codes):
        cta, lane, column = d_cell(product.letter, r, n, codes.shape[1])
        expected[128 * cta + lane, column] = code
    np.testing.assert_array_equal(d, expected)


FORMS = [
    ("f16", {}, {}),
    ("f16", {}, {"m": 64, "d_type": 0}),
    ("tf32", {"sp": True}, {"selector": 1}),
    ("f16", {"sp": True}, {"m": 64, "selector": 3}),
    ("f8f6f4", {}, {"a_type": 5, "b_type": 3, "negate_a": 1}),
    ("i8", {"sp": True}, {"a_type": 1, "saturate": 1}),
    ("f16", {"ws": True}, {"m": 64, "n": 128}),
    ("i8", {"ws": True}, {"m": 32, "n": 128}),
    ("f16", {"ws": True, "sp": True}, {"m": 32}),
    ("f16", {"ctas": 2}, {"m": 256, "n": 32}),
    ("f8f6f4", {"ctas": 2}, {"m": 128, "n": 64}),
    ("f16", {"ctas": 2, "sp": True}, {"m": 128, "n": 32}),
    ("i8", {"ctas": 2, "sp": True}, {"m": 256, "n": 32}),
    ("mxf8f6f4", {}, {"scale_a_id": 3, "scale_b_id": 1, "n": 40}),
    ("mxf8f6f4", {"ctas": 2}, {"m": 128, "n": 128}),
    ("mxf4", {"sp": True, "vector": "block32"}, {"scale_a_id": 2, "n": 72}),
    ("mxf4nvf4", {"vector": "block16"}, {"scale_type": 0}),
    ("mxf4nvf4", {"vector": "block16"}, {"scale_a_id": 2, "n": 136, "k_96": 1}),
]


@pytest.mark.parametrize(("kind", "form", "fields"), FORMS)
def test_operands_behind_descriptors(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    check(Product(mnemonic(kind, **form), **fields))


@pytest.mark.parametrize(
    ("kind", "form", "fields"),
    [FORMS[number] for number in (1, 2, 4, 9, 10, 11, 13, 15, 17)],
)
def test_a_in_tensor_memory(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    check(Product(mnemonic(kind, **form), in_memory=True, **fields))


def test_a_shifted_a_in_words_and_nowhere_else() -> None:
    product = Product(mnemonic("f16") + ".ashift", in_memory=True, n=16)
    given = words_of(product)
    product.a[:127] = product.a[1:].copy()
    found = warpsim.unpack(product.instruction, "d", warpsim.execute(product.instruction, **given))
    np.testing.assert_array_equal(found.view(product.expected.dtype), product.expected)
    with pytest.raises(OperandError, match="shifts A in tensor memory: give a= as uint32 words"):
        warpsim.execute(product.instruction, **given | {"a": product.a.view(np.float16)})


def test_transposed_tiles_and_the_slow_engine() -> None:
    check(Product(mnemonic("f16"), transpose_a=1, transpose_b=1, n=16), engine="reference")


@pytest.mark.parametrize(("kind", "form", "fields"), [FORMS[0], FORMS[2], FORMS[14], FORMS[15], FORMS[16]])
def test_matrices_and_batches(kind: str, form: dict[str, Any], fields: dict[str, int]) -> None:
    """A, B and scales as matrices; two cases, of which only C differs."""
    product = Product(mnemonic(kind, **form), **fields)
    given = words_of(product)
    words = kind == "tf32"  # uint32 would be words of tensor memory
    given["a"], given["b"] = product.a.view(np.float32) if words else product.a, product.b
    for name in ("a_desc", "b_desc", "shared"):
        del given[name]
    given |= product.scales
    given["c"] = np.stack([given["c"], np.zeros_like(given["c"])])
    d = warpsim.execute(product.instruction, **given)
    assert d.shape == given["c"].shape
    expected = warpsim.unpack(product.instruction, "d", d)
    np.testing.assert_array_equal(expected[0].view(product.expected.dtype), product.expected)
    product.c[:] = 0
    np.testing.assert_array_equal(expected[1].view(product.expected.dtype), product.expected)


def test_text_takes_its_descriptor() -> None:
    a, b = np.ones((128, 16), np.float16), np.ones((16, 64), np.float16)
    text = "tcgen05.mma.cta_group::1.kind::f16"
    d = warpsim.execute(text, target="sm_100a", idesc=0x08100010, a=a, b=b, enable_input_d=0)
    assert (d.view(np.float32) == 16).all()
    D = warpsim.matmul(text, a, b, target="sm_100a", idesc=0x08100010)
    assert (D == 16).all()
    form = warpsim.decode(text, target="sm_100a", idesc=0x08100010)
    with pytest.raises(OperandError, match="idesc goes with text"):
        warpsim.execute(form, idesc=0x08100010, a=a, b=b, enable_input_d=0)


def test_disabled_lanes_scaled_d_and_unread_d() -> None:
    product = Product(mnemonic("f16", ctas=2), m=256, n=32)
    given = words_of(product)
    lanes = [0, 1, 0x80000000, 0xFFFFFFFF, 2, 0, 0, 0x10]
    d = warpsim.execute(product.instruction, **given, disable_output_lane=lanes)
    kept = [32, 95, *range(96, 128), 129, 228]
    whole = warpsim.execute(product.instruction, **given)
    np.testing.assert_array_equal(d[kept], given["c"][kept])
    rest = np.setdiff1d(np.arange(256), kept)
    np.testing.assert_array_equal(d[rest], whole[rest])
    scaled = warpsim.execute(product.instruction, **given, scale_input_d=3)
    lower = given | {"c": (given["c"].view(np.float32) / 8).view(np.uint32)}
    np.testing.assert_array_equal(scaled, warpsim.execute(product.instruction, **lower))
    unread = warpsim.execute(product.instruction, **given, enable_input_d=0)
    zeros = given | {"c": np.zeros_like(given["c"])}
    np.testing.assert_array_equal(unread, warpsim.execute(product.instruction, **zeros))


def columns_by_hand(skip: int, use: int, first: int, start: int, columns: int) -> list[bool]:
    """A sub-mask column by column: runs of use + 1 kept and skip + 1 zeroed columns."""
    found, value, left = [], bool(first), (skip if first else use) + 1
    while len(found) < start + columns:
        if not left:
            value = not value
            left = (skip if value else use) + 1
        found.append(value)
        left -= 1
    return found[start:]


@pytest.mark.parametrize("m", [32, 64, 128])
def test_columns_of_b_that_a_mask_zeroes(m: int) -> None:
    product = Product(mnemonic("f16", ws=True), m=m, n=64)
    given = words_of(product)
    starts, firsts = (3, 0, 7, 1), (0, 1, 0, 1)
    mask = 1 << 39 | 2 << 40 | 3 << 48
    mask |= sum(
        start << 8 * part | first << 32 + part
        for part, (start, first) in enumerate(zip(starts, firsts, strict=True))
    )
    d = warpsim.execute(product.instruction, **given, zero_column_mask=mask)
    parts = 128 // m
    off = [
        zeroed
        for part in range(parts)
        for zeroed in columns_by_hand(2, 3, firsts[part], starts[part], 64 // parts)
    ]
    assert 0 < sum(off) < 64
    product.b[:, off] = 0
    np.testing.assert_array_equal(
        warpsim.unpack(product.instruction, "d", d).view(np.uint32), product.expected
    )
    off_bit = warpsim.execute(product.instruction, **given, zero_column_mask=mask & ~(1 << 39))
    np.testing.assert_array_equal(off_bit, warpsim.execute(product.instruction, **given))


def test_the_manuals_example_of_a_mask() -> None:
    """Skip field 2, use field 3: columns 0-3 used, 4-6 zero, 7-10 used, 11-13 zero."""
    off = columns_by_hand(2, 3, 0, 0, 14)
    assert [number for number, zeroed in enumerate(off) if zeroed] == [4, 5, 6, 11, 12, 13]


A_WORDS, B_SHAPE = np.zeros((128, 8), np.uint32), np.zeros((128, 8), np.float16)


@pytest.mark.parametrize(
    ("form", "fields", "more", "kind", "phrase"),
    [
        ({}, {}, {"scale_d": 0, "imm_trans_a": 1}, OperandError, "its descriptor says signs and majors"),
        ({}, {}, {"zero_column_mask": 1 << 39}, OperandError, "zero_column_mask belongs to tcgen05.mma.ws"),
        ({}, {}, {"scale_input_d": 16}, OperandError, "scale_input_d is 0 to 15, not 16"),
        ({}, {}, {"disable_output_lane": [0]}, OperandError, "disable_output_lane has 1 words"),
        ({}, {}, {"selector": 1}, OperandError, "in its instruction descriptor"),
        ({}, {}, {"shared": np.zeros(64, np.uint8)}, OperandError, "outside the 64 bytes of shared memory"),
        ({}, {}, {"c": np.zeros((128, 63), np.uint32)}, OperandError, "come as (..., 128, 64)"),
        ({}, {}, {"a": A_WORDS}, OperandError, "A is given twice"),
        ({}, {}, {"b": B_SHAPE, "b_desc": None}, OperandError, "the matrix B is (..., 16, 64)"),
        ({}, {}, {"b_desc": None}, OperandError, "needs B: a matrix b=, or b_desc= and shared="),
        ({}, {}, {"b_desc": 0x4000_0040_0001_0000}, OperandError, "looks like a descriptor of wgmma"),
        ({"ws": True}, {}, {"zero_column_mask": 1 << 56}, NotModelled, "a column shift of 1 (bits 61:56)"),
        ({"ws": True}, {}, {"zero_column_mask": 1 << 36}, OperandError, "reserved bits 36"),
        ({"ws": True}, {"m": 64}, {"a_desc": None, "a": A_WORDS}, NotModelled, "layout E"),
        ({}, {"transpose_a": 1}, {"a_desc": None, "a": A_WORDS}, UndefinedBehavior, "K-major"),
    ],
)  # fmt: skip
def test_what_execute_refuses(form: Any, fields: Any, more: Any, kind: Any, phrase: str) -> None:
    product = Product(mnemonic("f16", **form), **fields)
    given = {name: value for name, value in (words_of(product) | more).items() if value is not None}
    with pytest.raises(kind) as found:
        warpsim.execute(product.instruction, **given)
    assert phrase in found.value.message


def test_metadata_copies_and_other_families() -> None:
    product = Product(mnemonic("f16", sp=True))
    given = words_of(product)
    given["e"][27, 0] = 0
    with pytest.raises(UndefinedBehavior, match=r"lane 27, column 0, bits 3\.\.0 \(row 19, chunk 4\)"):
        warpsim.execute(product.instruction, **given)
    scaled = Product(mnemonic("mxf8f6f4"))
    given = words_of(scaled)
    given["scale_a"][40, 0] ^= 1
    with pytest.raises(UndefinedBehavior, match="scale_a: lane 40, column 0 holds other bits than lane 8"):
        warpsim.execute(scaled.instruction, **given)
    form = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90")
    registers = {name: np.zeros((32, count), np.uint32) for name, count in form.registers.items()}
    del registers["d"]
    with pytest.raises(OperandError, match=r"tcgen05\.mma does"):
        warpsim.execute(form, **registers, scale_input_d=1)
    with pytest.raises((OperandError, IllegalInstruction), match="is the instruction descriptor of tcgen05"):
        warpsim.execute(form.mnemonic, target="sm_90", idesc=0, **registers)


def test_pack_and_unpack_are_inverse() -> None:
    for kind, form, fields in FORMS:
        product = Product(mnemonic(kind, **form), **fields)
        ins = product.instruction
        for name in ("a", "c", "d"):
            if name in ins.registers:
                codes = {"a": product.a, "c": product.c, "d": product.c}[name]
                words = warpsim.pack(ins, name, codes)
                found = warpsim.unpack(ins, name, words)
                np.testing.assert_array_equal(found.view(codes.dtype), codes)
        if ins.sparse:
            words = warpsim.pack_metadata(ins, product.indices)
            np.testing.assert_array_equal(warpsim.unpack_metadata(ins, words), product.indices)
