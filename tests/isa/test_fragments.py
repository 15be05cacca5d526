"""Registers and matrices: packing, metadata words and what may be wrong with either.

Where each element and field belongs is checked against the manual in test_manual_layouts.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import manual_layouts, nasty
from tests.helpers.families import each_of
from warpsim import IllegalInstruction, OperandError, UndefinedBehavior
from warpsim.isa.codes import matrix_of
from warpsim.isa.instruction import Instruction

FORMS = [form for form in warpsim.instructions() if form.lanes == 32]
SPARSE = [form for form in FORMS if form.sparse]
SELECTED = [(form, selector) for form in SPARSE for selector in form.selectors]
SCALED = [form for form in FORMS if form.scale]

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
F64 = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", target="sm_80")
QUADS = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", target="sm_70")
SP = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80")
ORDERED = warpsim.decode(SP.mnemonic.replace("sp", "sp::ordered_metadata"), target="sm_80")


def matrix_codes(form: Instruction, operand: str, lead: tuple[int, ...], rng: nasty.Rng) -> Any:
    products = (form.products,) if form.products > 1 else ()
    shape = (*lead, *products, *form.matrix_shape(operand))
    return nasty.random_codes(form.format(operand), shape, rng)


def random_words(form: Instruction, operand: str, lead: tuple[int, ...], rng: nasty.Rng) -> Any:
    shape = (*lead, 32, form.registers[operand])
    bits = 32 if operand in ("e", "scale_a", "scale_b") else form.register_bits
    return rng.integers(0, 2**bits - 1, shape, np.uint64, endpoint=True).astype(f"u{bits // 8}")


def bits(matrix: Any) -> Any:
    return matrix.view(f"u{matrix.dtype.itemsize}")


# --- pack and unpack -------------------------------------------------------------------------------


@each_of(FORMS)
def test_unpack_undoes_pack(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    for operand in "abcd":
        matrix = matrix_of(matrix_codes(form, operand, (2, 1), rng), form.format(operand))
        words = warpsim.pack(form, operand, matrix)
        assert words.shape == (2, 1, 32, form.registers[operand])
        assert words.dtype == (np.uint64 if form.a.bits == 64 else np.uint32)
        back = warpsim.unpack(form, operand, words)
        assert back.dtype == form.format(operand).dtype
        assert back.shape == matrix.shape
        assert np.array_equal(bits(back), bits(matrix))


def used_bits(form: Instruction, operand: str) -> int:
    """The bits of a register that elements occupy: all but the padding of byte containers."""
    element, storage = form.format(operand), form.storage(operand)
    each = form.register_bits // storage.bits
    return sum(element.mask << (storage.bits * i + storage.shift) for i in range(each))


@each_of(FORMS)
def test_pack_undoes_unpack_and_clears_only_padding(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    for operand in "abcd":
        words = random_words(form, operand, (3,), rng)
        matrix = warpsim.unpack(form, operand, words)
        assert bits(matrix).max() <= form.format(operand).mask or not form.format(operand).is_float
        back = warpsim.pack(form, operand, matrix)
        assert np.array_equal(back, words & words.dtype.type(used_bits(form, operand)))


def test_only_narrow_formats_in_bytes_have_padding() -> None:
    padded = {
        (form.kind, form.format(operand).name, hex(used_bits(form, operand)))
        for form in FORMS
        for operand in "abcd"
        if used_bits(form, operand) != 2**form.register_bits - 1
    }
    containers = {"e3m2": "0x3f3f3f3f", "e2m3": "0x3f3f3f3f", "e2m1": "0x3c3c3c3c"}
    kinds = ("f8f6f4", "mxf8f6f4")
    assert padded == {(kind, name, used) for kind in kinds for name, used in containers.items()}


def test_the_four_products_of_m8n8k4_are_an_axis_in_front() -> None:
    A = np.arange(4 * 8 * 4, dtype=np.uint16).reshape(4, 8, 4)
    words = warpsim.pack(QUADS, "a", A)
    assert words.shape == (32, 2)
    for lane in (0, 3, 5, 14, 17, 31):
        product, row = lane % 16 // 4, lane % 4 + 4 * (lane >= 16)
        assert words[lane].view(np.uint16).tolist() == A[product, row].tolist()


@each_of([form for form in FORMS if form.products == 1])
def test_fragment_says_where_pack_puts_each_element(form: Instruction) -> None:
    rng = np.random.default_rng(form.stored_k)
    for operand in "abcd":
        codes = matrix_codes(form, operand, (), rng)
        places, storage = warpsim.fragment(form, operand), form.storage(operand)
        shifts = np.arange(places.shape[2]) * storage.bits + storage.shift
        expected = codes[places[..., 0], places[..., 1]].astype(np.uint64) << shifts.astype(np.uint64)
        assert np.array_equal(warpsim.pack(form, operand, codes), expected.sum(axis=-1, dtype=np.uint64))


# --- what pack and unpack refuse -------------------------------------------------------------------


NOT_A_LETTER = "expected 'a', 'b', 'c' or 'd'"
GIVE_BITS = "give bits (array.view(np.{})) or use warpsim.pack"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: warpsim.pack(F16, "x", np.zeros((16, 16), "f2")), f"operand 'x': {NOT_A_LETTER}"),
        (lambda: warpsim.unpack(F16, "e", np.zeros((32, 1), "u4")), f"operand 'e': {NOT_A_LETTER}"),
        (lambda: warpsim.fragment(F16, "A"), f"operand 'A': {NOT_A_LETTER}"),
        (lambda: warpsim.pack(F16, "a", np.zeros((16, 8), "f2")),
         "a has shape (16, 8), but this instruction takes (..., 16, 16)"),
        (lambda: warpsim.pack(F16, "b", np.zeros(16, "f2")),
         "b has shape (16,), but this instruction takes (..., 16, 8)"),
        (lambda: warpsim.pack(SP, "a", np.zeros((16, 32), "f2")),
         "a has shape (16, 32), but this instruction takes (..., 16, 16)"),
        (lambda: warpsim.pack(QUADS, "a", np.zeros((8, 4), "f2")),
         "a has shape (8, 4), but this instruction takes (..., 4, 8, 4)"),
        (lambda: warpsim.unpack(F16, "a", np.zeros((32, 3), "u4")),
         "a has shape (32, 3), but its registers come as (..., 32, 4): lanes, then registers"),
        (lambda: warpsim.unpack(F16, "a", np.zeros((4, 32), "u4")),
         "a has shape (4, 32), but its registers come as (..., 32, 4): lanes, then registers"),
        (lambda: warpsim.unpack(F16, "a", np.zeros((32, 4), "f4")),
         "a has dtype float32, but registers are uint32: " + GIVE_BITS.format("uint32")),
        (lambda: warpsim.unpack(F64, "a", np.zeros((32, 1), "f8")),
         "a has dtype float64, but registers are uint64: " + GIVE_BITS.format("uint64")),
        (lambda: warpsim.unpack(F16, "c", np.full((32, 4), 2**32)),
         "c has values outside 0..4294967295, which are not uint32 words"),
        (lambda: warpsim.unpack(F16, "c", np.full((32, 4), -1)),
         "c has values outside 0..4294967295, which are not uint32 words"),
        (lambda: warpsim.unpack_metadata(SP, np.zeros((32, 2), "u4")),
         "e has shape (32, 2), but its registers come as (..., 32, 1): lanes, then registers"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(OperandError) as error:
        call()
    assert str(error.value) == message


def test_words_may_be_signed_or_wider_if_their_values_fit() -> None:
    words = random_words(F16, "c", (), np.random.default_rng(0))
    expected = warpsim.unpack(F16, "c", words)
    for same in (words.view(np.int32), words.astype(np.int64), words.astype(np.uint64)):
        assert np.array_equal(bits(warpsim.unpack(F16, "c", same)), bits(expected))


@pytest.mark.parametrize("lead", [(), (32,), (2, 3)])
def test_a_single_register_may_come_without_its_axis(lead: tuple[int, ...]) -> None:
    e = warpsim.pack_metadata(SP, nasty.indices(SP, (*lead, 16), np.random.default_rng(0)))
    assert np.array_equal(warpsim.unpack_metadata(SP, e[..., 0]), warpsim.unpack_metadata(SP, e))


# --- metadata --------------------------------------------------------------------------------------


@each_of(SELECTED)
def test_unpack_metadata_undoes_pack_metadata(form: Instruction, selector: int) -> None:
    rng = np.random.default_rng(selector)
    indices = nasty.indices(form, (2, 3, 16), rng, ordered=form.ordered)
    e = warpsim.pack_metadata(form, indices, selector)
    assert e.shape == (2, 3, 32, 1)
    assert e.dtype == np.uint32
    back = warpsim.unpack_metadata(form, e, selector)
    assert back.dtype == np.uint8
    assert np.array_equal(back, indices)


def quad_lanes(form: Instruction, selector: int) -> set[int]:
    """The lanes of a quad that a selector reads, as the manual's figures have it."""
    section = manual_layouts.find_section(True, str(form.shape), str(form.a))
    return {lane % 4 for lane, *_ in section.metadata(selector)}


@each_of(SELECTED)
def test_lanes_that_the_selector_does_not_name_hold_no_metadata(form: Instruction, selector: int) -> None:
    rng = np.random.default_rng(selector)
    indices = nasty.indices(form, (16,), rng)
    e = warpsim.pack_metadata(form, indices, selector)
    others = [lane for lane in range(32) if lane % 4 not in quad_lanes(form, selector)]
    assert not e[others].any()
    garbage = e.copy()
    garbage[others] = rng.integers(0, 2**32 - 1, (len(others), 1), np.uint64, endpoint=True)
    assert np.array_equal(warpsim.unpack_metadata(form, garbage, selector), indices)


@each_of(SPARSE)
def test_selectors_share_out_the_lanes_of_a_quad(form: Instruction) -> None:
    lanes = [lane for selector in form.selectors for lane in quad_lanes(form, selector)]
    assert sorted(lanes) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("mnemonic", "selector", "legal"),
    [
        ("m16n8k16.row.col.f32.f16.f16.f32", 4, "0, 1, 2, 3"),
        ("m16n8k32.row.col.f32.f16.f16.f32", 2, "0, 1"),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", -1, "0, 1, 2, 3"),
        ("m16n8k32.row.col.s32.s8.s8.s32", 2, "0, 1"),
        ("m16n8k64.row.col.s32.s8.s8.s32", 1, "0"),
        ("m16n8k128.row.col.s32.s4.s4.s32", 3, "0"),
    ],
)
def test_selectors_beyond_those_of_the_form_are_undefined(mnemonic: str, selector: int, legal: str) -> None:
    form = warpsim.decode(f"mma.sp.sync.aligned.{mnemonic}", target="sm_80")
    e = np.zeros((32, 1), np.uint32)
    units = nasty.indices(form, (16,), np.random.default_rng(0))
    for call in (
        lambda: warpsim.pack_metadata(form, units, selector),
        lambda: warpsim.unpack_metadata(form, e, selector),
        lambda: warpsim.metadata_map(form, selector),
    ):
        with pytest.raises(UndefinedBehavior) as error:
            call()
        assert str(error.value) == f"sparsity selector {selector}: {form} has {legal}"


def test_metadata_map_may_be_changed_by_its_caller() -> None:
    warpsim.metadata_map(SP, 1)[:] = 0
    assert warpsim.metadata_map(SP, 1).any()


def without_meaning(form: Instruction, value: int) -> str:
    """Why a field is undefined for the form; empty for one that is not."""
    first, second = value % 4, value // 4
    if str(form.pattern) == "1:2":
        legal = value in (0b0100, 0b1110)
        return "" if legal else f"a 1:2 field is 0b0100 or 0b1110, {value:#06b} is undefined"
    if first == second:
        return f"indices {first}, {second} are equal, which PTX leaves undefined"
    if first > second and "ordered" in form.mnemonic:
        return f"indices {first}, {second} descend, which PTX leaves undefined under .sp::ordered_metadata"
    return ""


@each_of(SPARSE)
def test_unpack_metadata_takes_the_fields_that_mean_something(form: Instruction) -> None:
    """The field under test is the last one of row 11; the others are as pack_metadata leaves them."""
    selector = form.selectors[-1]
    fields = manual_layouts.find_section(True, str(form.shape), str(form.a)).metadata(selector)
    chunk, lane, low = max((chunk, lane, low) for lane, low, _, row, chunk in fields if row == 11)
    e = warpsim.pack_metadata(form, nasty.indices(form, (16,), np.random.default_rng(0)), selector)
    for value in range(16):
        e[lane] = int(e[lane, 0]) & ~(15 << low) | value << low
        reason = without_meaning(form, value)
        if reason:
            with pytest.raises(UndefinedBehavior) as error:
                warpsim.unpack_metadata(form, e, selector)
            place = f"lane {lane}, bits {low + 3}..{low} (row 11, chunk {chunk})"
            assert str(error.value) == f"metadata field {value:#06b} in {place}: {reason}"
        else:
            units = [value // 8] if str(form.pattern) == "1:2" else [value % 4, value // 4]
            found = warpsim.unpack_metadata(form, e, selector)
            assert found[11, -len(units) :].tolist() == units


def test_pack_metadata_refuses_indices_without_a_meaning() -> None:
    indices = nasty.indices(ORDERED, (2, 16), np.random.default_rng(0))
    indices[1, 9, 4:6] = 3, 1
    with pytest.raises(UndefinedBehavior) as error:
        warpsim.pack_metadata(ORDERED, indices, 1)
    assert str(error.value) == (
        "metadata field 0b0111 in lane 6, bits 27..24 (row 9, chunk 2) of batch element (1,): "
        "indices 3, 1 descend, which PTX leaves undefined under .sp::ordered_metadata"
    )
    assert warpsim.pack_metadata(SP, indices, 1)[1, 6, 0] >> 24 & 15 == 0b0111


# --- block scales ----------------------------------------------------------------------------------


def scale_ids(form: Instruction) -> list[int]:
    return {1: [0, 1, 2, 3], 2: [0, 2], 4: [0]}[form.scale_chunks]


@each_of(SCALED)
def test_scales_come_from_the_named_byte_of_the_named_lane(form: Instruction) -> None:
    """Every byte of the warp differs: 32 lanes, four bytes each."""
    words = np.random.default_rng(0).permutation(128).astype(np.uint8).view(np.uint32).reshape(32, 1)
    in_bytes = words.view(np.uint8).reshape(32, 4)
    for byte in scale_ids(form):
        for thread in range(2):
            scale_a = form.scales("a").codes(words, byte, thread)
            for row in range(16):
                lane = 4 * (row % 8) + 2 * thread + (1 if row >= 8 else 0)
                assert scale_a[row].tolist() == in_bytes[lane, byte : byte + form.scale_chunks].tolist()
        for thread in range(4):
            scale_b = form.scales("b").codes(words, byte, thread)
            for column in range(8):
                taken = in_bytes[4 * column + thread, byte : byte + form.scale_chunks]
                assert scale_b[:, column].tolist() == taken.tolist()


@each_of(SCALED)
def test_other_bytes_and_threads_are_illegal(form: Instruction) -> None:
    words = np.zeros((32, 1), np.uint32)
    legal = ", ".join(str(byte) for byte in scale_ids(form))
    for byte in sorted({-1, 1, 2, 3, 4} - set(scale_ids(form))):
        with pytest.raises(IllegalInstruction) as error:
            form.scales("b").codes(words, byte, 0)
        assert str(error.value) == f"byte-id-b {byte}: with {form.scale_chunks} scales a word it is {legal}"
    for operand, threads in (("a", 2), ("b", 4)):
        for thread in (-1, threads):
            with pytest.raises(IllegalInstruction) as error:
                form.scales(operand).codes(words, 0, thread)
            assert str(error.value) == f"thread-id-{operand} {thread}: expected 0..{threads - 1}"
