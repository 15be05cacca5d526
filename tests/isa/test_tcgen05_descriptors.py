"""Descriptors of tcgen05: both words in both directions, the address of every byte, errors and legal values.

Addresses are derived a second time here, element by element, from the formulas of the manual's canonical layouts.
"""

# ruff: noqa: E501 - messages stand as they are shown

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpsim
from warpsim.base.errors import IllegalInstruction, NotModelled, OperandError
from warpsim.isa.comparisons import REPORTS, Issued
from warpsim.isa.descriptors.instruction_descriptor import (
    FIELDS,
    KINDS,
    InstructionDescriptor,
    Issue,
    check,
    legal_m,
    legal_n,
)
from warpsim.isa.descriptors.tensor_descriptor import SWIZZLES, TensorDescriptor, tile_byte_addresses
from warpsim.isa.families import tcgen05
from warpsim.isa.families.tcgen05 import form_of, forms, product_of, spelling_of


def raises(kind, message):
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


# --- the instruction descriptor ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word", "fields"),
    [
        ("f16", 0x08100010, {"m": 128, "n": 64, "d_type": 1}),
        ("f16", 0x08110010, {"m": 128, "n": 64, "d_type": 1, "transpose_b": 1}),
        ("f16", 0x08080015, {"m": 128, "n": 32, "d_type": 1, "sparse": 1, "selector": 1}),
        ("i8", 0x080C00A0, {"m": 128, "n": 48, "d_type": 2, "a_type": 1, "b_type": 0}),
        ("mxf4nvf4", 0x08100480, {"m": 128, "n": 64, "a_type": 1, "b_type": 1}),
        (
            "mxf8f6f4",
            0x28900410,
            {"m": 128, "n": 64, "b_type": 1, "scale_type": 1, "scale_a_id": 1, "scale_b_id": 1},
        ),
    ],
)
def test_words_of_real_kernels(kind, word, fields):
    descriptor = InstructionDescriptor(kind=kind, **fields)
    assert descriptor.encode() == word
    assert InstructionDescriptor.decode(word, kind) == descriptor


@given(word=st.integers(0, 2**32 - 1), kind=st.sampled_from(sorted(KINDS)))
def test_every_word_is_printed_as_it_was_read(word, kind):
    word &= sum(field.mask for field in FIELDS[KINDS[kind].group])
    assert InstructionDescriptor.decode(word, kind).encode() == word


@pytest.mark.parametrize("kind", KINDS)
def test_fields_do_not_overlap(kind):
    fields = FIELDS[KINDS[kind].group]
    assert sum(field.mask for field in fields) == sum(field.mask for field in fields if field.mask) < 1 << 32
    assert sum(field.bits for field in fields) == sum(field.mask for field in fields).bit_count()


@pytest.mark.parametrize(
    ("kind", "word", "message"),
    [
        ("f16", 0x08100050, "instruction descriptor 0x08100050 of kind::f16 has reserved bits 6 set"),
        ("mxf4", 0x08909480, "instruction descriptor 0x08909480 of kind::mxf4 has reserved bits 12, 15 set"),
        ("f16", 0x0A100010, "instruction descriptor 0x0a100010: M is 160 (bits 28:24); legal: 64, 128"),
        ("i8", 0x080A00A0, "instruction descriptor 0x080a00a0: N is 40 (bits 22:17); legal: "
         "8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256"),
        ("f16", 0x08100030, "instruction descriptor 0x08100030: type of D is 3 (bits 5:4); legal: 0 (f16), 1 (f32)"),
        ("f16", 0x08100410, "instruction descriptor 0x08100410: type of B is 1 (bits 12:10); legal: "
         "0 (f16), the type of A: kind::f16 does not mix types"),
        ("f16", 0x08100480, "instruction descriptor 0x08100480: type of D is 0 (bits 5:4); legal: "
         "1 (f32) where A and B are bf16"),
        ("f16", 0x08100014, "instruction descriptor 0x08100014: sparse is 1 (bit 2), but the mnemonic has no .sp: "
         "both must say the same"),
        ("f16", 0x08100011, "instruction descriptor 0x08100011: sparsity selector is 1 (bits 1:0); legal: 0"),
        ("f8f6f4", 0x08108290, "instruction descriptor 0x08108290: transpose A is 1 (bits 15); legal: "
         "0: elements of e2m1 are K-major"),
        ("f8f6f4", 0x08090010 | 1 << 17, "instruction descriptor 0x080b0010: N is 40 (bits 22:17); legal: "
         "multiples of 16 where B has 8-bit elements and is transposed"),
        ("f16", 0x48100010, "instruction descriptor 0x48100010: maximum shift is 1 (bits 31:30); legal: "
         "0: it belongs to .ws with M 64 or 128"),
    ],
)  # fmt: skip
def test_errors_name_field_value_and_legal_values(kind, word, message):
    with raises(OperandError, message):
        check(InstructionDescriptor.decode(word, kind), Issue())


def test_a_k_of_96_is_that_of_some_chips():
    mnemonic, word = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 0x88100480
    found = warpsim.decode(mnemonic, target="sm_103a", idesc=word)
    assert str(found.product) == "m128n64k96 f32.e2m1.e2m1.f32"
    assert (found.scale_chunks, found.targets) == (6, {"sm_103a", "sm_103f"})
    assert warpsim.evidence(found).label == "inferred"
    with raises(OperandError, "instruction descriptor 0x88100480: K of 96 (bit 31) is not on sm_100a: "
                "it needs sm_103f"):  # fmt: skip
        warpsim.decode(mnemonic, target="sm_100a", idesc=word)
    with raises(OperandError, "instruction descriptor 0x88100484: K is 96 is 1 (bits 31); legal: "
                "0: K of 96 is dense"):  # fmt: skip
        warpsim.decode(mnemonic.replace("mma", "mma.sp"), target="sm_103a", idesc=word | 4)
    with raises(OperandError, "instruction descriptor 0xa8100480: scale A id is 1 (bits 30:29); legal: 0, 2"):
        warpsim.decode(mnemonic, target="sm_103a", idesc=word | 1 << 29)


@pytest.mark.parametrize("numerics", ["", "groups_of_4"])
@pytest.mark.parametrize("scale", [0, 1])
def test_both_engines_sum_a_k_of_96(numerics, scale):
    mnemonic = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16"
    options = {"numerics": numerics} if numerics and not scale else {}
    form = warpsim.decode(mnemonic, target="sm_103a", idesc=0x88020480 | scale << 23, **options)
    rng = np.random.default_rng(96)
    a, b = (rng.integers(0, 16, shape, np.uint8) for shape in ((128, 96), (96, 8)))
    most = 127 if scale == 0 else 255
    scales = {
        "scale_a": rng.integers(0, most, (128, 6), np.uint8),
        "scale_b": rng.integers(0, most, (6, 8), np.uint8),
    }
    c = rng.standard_normal((128, 8)).astype(np.float32)
    found = [warpsim.matmul(form, a, b, c, engine=engine, **scales) for engine in ("kernel", "reference")]
    np.testing.assert_array_equal(*(one.view(np.uint32) for one in found))


def test_two_factors_of_ue4m3_are_refused():
    with pytest.raises(OperandError, match="scale type is 0"):
        product_of(form_of(("mma", "cta_group::1", "kind::mxf4nvf4", "block_scale", "block32")), 0x08100480)


def test_every_form_has_a_product_for_every_legal_shape():
    for form in forms():
        kind = form.kind
        for m, n in product(legal_m(kind, form.issue), legal_n(kind, form.issue)):
            fields = {"a_type": min(kind.multiplicands), "b_type": min(kind.multiplicands)}
            fields |= {"d_type": max(kind.results)} if kind.results else {}
            fields |= {"scale_type": max(kind.scales)} if kind.scales else {}
            word = InstructionDescriptor(kind=kind.name, m=m, n=n, sparse=form.sparse, **fields).encode()
            found = spelling_of(form).described(word)
            assert (found.shape.m, found.shape.n, found.shape.k) == (m, n, kind.k << form.sparse)
            assert found.sparse is form.sparse
            assert found.stored_k == kind.k
            assert form_of(tuple(form.mnemonic.split(".")[1:])) == form


_CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}


def reported_of(mnemonic, target="sm_100a", **fields):
    """The label of a form, and the outputs that are reported of it, dense and sparse."""
    kind = mnemonic.partition("kind::")[2].partition(".")[0]
    word = InstructionDescriptor(kind=kind, sparse=".sp" in mnemonic, **fields).encode()
    found = warpsim.evidence(warpsim.decode(mnemonic, target=target, idesc=word))
    if found.label != "reported":
        return found.label, None
    (report,) = found.reports
    return found.label, (report.dense, report.sparse)


@pytest.mark.parametrize(
    ("a", "b", "d", "sparse", "expected"),
    [
        ("e4m3", "e4m3", 1, 0, ("reported", (1_000_000, 1_000_000))),
        ("e2m3", "e2m3", 1, 1, ("reported", (1_000_000, 1_000_000))),
        ("e4m3", "e2m1", 1, 0, ("reported", (1_000_000, 0))),
        ("e2m1", "e4m3", 0, 0, ("reported", (1_000_000, 0))),
        ("e4m3", "e2m1", 1, 1, ("inferred", None)),
        ("e2m1", "e4m3", 1, 0, ("inferred", None)),
        ("e4m3", "e4m3", 0, 0, ("inferred", None)),
    ],
)
def test_what_others_report_is_counted_by_types(a, b, d, sparse, expected):
    """The paths of the harness: one type for A and B into f32, and two mixtures, dense alone."""
    mnemonic = f"tcgen05.mma{'.sp' * sparse}.cta_group::1.kind::f8f6f4"
    fields = {"a_type": _CODES[a], "b_type": _CODES[b], "d_type": d}
    assert reported_of(mnemonic, m=64, n=8, **fields) == expected


_SCALED = {"a_type": 1, "b_type": 1, "scale_type": 1}


@pytest.mark.parametrize(
    ("mnemonic", "m", "n", "fields", "label"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16", 64, 8, {"d_type": 1}, "reported"),
        ("tcgen05.mma.cta_group::1.kind::f16.collector::a::fill", 64, 8, {"d_type": 1}, "reported"),
        ("tcgen05.mma.cta_group::1.kind::f16", 64, 16, {"d_type": 1}, "inferred"),
        ("tcgen05.mma.cta_group::1.kind::f16", 128, 8, {"d_type": 1}, "inferred"),
        ("tcgen05.mma.cta_group::1.kind::f16.ashift", 128, 8, {"d_type": 1}, "inferred"),
        ("tcgen05.mma.cta_group::2.kind::f16", 128, 16, {"d_type": 1}, "inferred"),
        ("tcgen05.mma.ws.cta_group::1.kind::f16", 64, 64, {"d_type": 1}, "inferred"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32", 128, 8, _SCALED, "reported"),
        ("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32", 128, 64, _SCALED, "inferred"),
        ("tcgen05.mma.cta_group::2.kind::mxf4.block_scale.block32", 128, 16, _SCALED, "inferred"),
    ],
)
def test_reports_are_of_one_way_to_issue_and_one_shape(mnemonic, m, n, fields, label):
    assert reported_of(mnemonic, m=m, n=n, **fields)[0] == label
    assert reported_of(mnemonic, target="sm_103a", m=m, n=n, **fields)[0] == "inferred"


def test_a_mixture_with_block_scales_is_not_reported():
    """The harness mixes types in kind::f8f6f4 alone."""
    mnemonic = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale"
    for b, expected in (("e4m3", "reported"), ("e2m1", "inferred")):
        fields = {"a_type": _CODES["e4m3"], "b_type": _CODES[b], "scale_type": 1}
        assert reported_of(mnemonic, m=128, n=8, **fields)[0] == expected


def test_reported_forms_are_those_of_the_reports():
    found = [*tcgen05.reported()]
    assert {warpsim.evidence(form, "sm_100a").label for form in found} == {"reported"}
    one_type = {(each.issued, each.a, each.d) for each in REPORTS if each.a == each.b}
    shown = {
        (Issued(form.issue, form.operation, form.shape.m, form.shape.n), form.a.name, form.d.name)
        for form in found
    }
    assert shown == one_type


def test_d_of_zeros_and_a_negative_zero_is_positive():
    """Where the model of the harness has -0: the exception that the evidence names."""
    word = InstructionDescriptor(kind="f16", m=64, n=8, d_type=1).encode()
    form = warpsim.decode("tcgen05.mma.cta_group::1.kind::f16", target="sm_100a", idesc=word)
    A, B, C = (
        np.zeros((64, 16), np.float16),
        np.zeros((16, 8), np.float16),
        np.full((64, 8), -0.0, np.float32),
    )
    assert not np.signbit(warpsim.matmul(form, A, B, C)).any()
    assert "C is -0" in warpsim.evidence(form).detail


def test_a_legal_instruction_is_decoded_and_multiplied():
    mnemonic = "tcgen05.mma.cta_group::1.kind::f16"
    found = warpsim.decode(mnemonic, target="sm_100a", idesc=0x08100010)
    assert str(found.product) == "m128n64k16 f32.f16.f16.f32"
    assert warpsim.evidence(found).label == "inferred"
    with pytest.raises(OperandError, match="says shape and types"):
        warpsim.decode(mnemonic, target="sm_100a")
    with pytest.raises(IllegalInstruction, match="is not on sm_120a: it needs sm_100f"):
        warpsim.decode(mnemonic, target="sm_120a", idesc=0x08100010)
    with pytest.raises(OperandError, match="idesc is the instruction descriptor"):
        warpsim.decode("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", idesc=1)


@pytest.mark.parametrize(
    ("mnemonic", "message"),
    [
        ("tcgen05.mma.kind::f16", "tcgen05.mma lacks .cta_group::1 or .cta_group::2"),
        ("tcgen05.mma.cta_group::1.ws.kind::f16", "tcgen05.mma has no modifier .ws; .ws follows mma"),
        ("tcgen05.mma.ws.cta_group::2.kind::f16", "tcgen05.mma.ws has .cta_group::1 only"),
        ("tcgen05.mma.cta_group::1.kind::mxf4", "tcgen05.mma with .kind::mxf4 needs .block_scale"),
        (
            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale",
            "tcgen05.mma with .kind::mxf4nvf4 takes .scale_vec::2X or .scale_vec::4X or .block16 or .block32",
        ),
        ("tcgen05.mma.cta_group::1.kind::f16.sync", "tcgen05.mma has no modifier .sync"),
    ],
)
def test_illegal_mnemonics(mnemonic, message):
    with pytest.raises(IllegalInstruction) as found:
        warpsim.decode(mnemonic, target="sm_100a", idesc=0x08100010)
    assert found.value.message == message


# --- the shared-memory descriptor --------------------------------------------------------------------


def test_a_word_by_hand():
    descriptor = TensorDescriptor(
        start_address=0x8000, leading_byte_offset=16, stride_byte_offset=1024, swizzle="128B"
    )
    assert descriptor.encode() == 0x4000_4040_0001_0800
    assert TensorDescriptor.decode(0x4000_4040_0001_0800) == descriptor


@given(
    start=st.integers(0, 2**14 - 1),
    leading=st.integers(0, 2**14 - 1),
    stride=st.integers(0, 2**14 - 1),
    base=st.integers(0, 7),
    absolute=st.integers(0, 1),
    code=st.sampled_from(sorted(SWIZZLES)),
)
def test_every_descriptor_is_printed_as_it_was_read(start, leading, stride, base, absolute, code):
    word = start | leading << 16 | stride << 32 | 1 << 46 | base << 49 | absolute << 52 | code << 61
    assert TensorDescriptor.decode(word).encode() == word


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            0x4000_0040_0001_0800,
            "descriptor 0x4000004000010800: bits 48:46 are 0; legal: 1. This looks like a descriptor of wgmma: its "
            "swizzle 1 is 128B there, which is 2 in bits 63:61 here",
        ),
        (0x4000_8040_0001_0800, "descriptor 0x4000804000010800: bits 48:46 are 2; legal: 1"),
        (
            0x6000_4040_0001_0800,
            "descriptor 0x6000404000010800: swizzle is 3 (bits 63:61); legal: 0 (none), 1 (128B_ATOM_32B), 2 (128B), "
            "4 (64B), 6 (32B)",
        ),
        (
            0x4000_4040_0001_8000,
            "descriptor 0x4000404000018000 has reserved bits 15 set: was a field written in bytes, without >> 4?",
        ),
    ],
)
def test_words_that_are_no_descriptors(word, message):
    with raises(OperandError, message):
        TensorDescriptor.decode(word)


def address_by_hand(descriptor, m, k, size, major):
    """The formulas of the canonical layouts, for one element, and the exclusive-or on its address."""
    lbo, sbo, mode = descriptor.leading_byte_offset, descriptor.stride_byte_offset, descriptor.swizzle
    t, kb = 16 // size, k * size
    w = {"none": 16, "32B": 32, "64B": 64}.get(mode, 128)
    if major == "K" and mode == "none":
        place = (m // 8) * sbo + (m % 8) * 16 + (kb // 16) * lbo + kb % 16
    elif major == "K":
        place = (m // 8) * sbo + (m % 8) * w + kb
    elif mode == "none":
        place = (m // t) * sbo + (k // 8) * lbo + (k % 8) * 16 + (m % t) * size
    elif mode == "128B_ATOM_32B":
        place = (m // (8 * t)) * lbo + (k // 4) * sbo + (k % 4) * 128 + (m % (8 * t)) * size
    else:
        run = t * w // 16
        place = (m // run) * lbo + (k // 8) * sbo + (k % 8) * w + (m % run) * size
    address = descriptor.start_address + place
    if mode == "128B_ATOM_32B":
        return address ^ ((address >> 7) & 3) << 5
    return address ^ ((address >> 7) & (w // 16 - 1)) << 4


CASES = [
    *(("K", swizzle, size) for swizzle in ("none", "32B", "64B", "128B") for size in (1, 2, 4)),
    *(("MN", swizzle, size) for swizzle in ("none", "32B", "64B", "128B") for size in (1, 2)),
    ("MN", "128B_ATOM_32B", 4),
]


@pytest.mark.parametrize(("major", "swizzle", "size"), CASES)
def test_every_byte_lies_where_the_formulas_say(major, swizzle, size):
    descriptor = TensorDescriptor(
        start_address=0x4000, leading_byte_offset=2112, stride_byte_offset=1280, swizzle=swizzle
    )
    rows, depth = 128, 32 // size
    found = tile_byte_addresses(descriptor, rows=rows, row_bytes=32, element_bytes=size, major=major)
    assert found.shape == (rows, 32)
    for m, k, byte in product(range(0, rows, 3), range(depth), range(size)):
        assert found[m, k * size + byte] == address_by_hand(descriptor, m, k, size, major) + byte


def test_addresses_by_hand():
    tall = TensorDescriptor(start_address=0x8000, stride_byte_offset=1024, swizzle="128B")
    found = tile_byte_addresses(tall, rows=128, row_bytes=64, element_bytes=2, major="K")
    assert found[10, 40] == 0x8508
    found = tile_byte_addresses(tall.advanced(32), rows=128, row_bytes=32, element_bytes=2, major="K")
    assert found[10, 8] == 0x8508
    plain = TensorDescriptor(start_address=0, leading_byte_offset=640, stride_byte_offset=128)
    assert tile_byte_addresses(plain, rows=40, row_bytes=64, element_bytes=1, major="K")[13, 37] == 1493
    wide = TensorDescriptor(
        start_address=0, leading_byte_offset=4096, stride_byte_offset=1024, swizzle="128B"
    )
    assert tile_byte_addresses(wide, rows=128, row_bytes=32, element_bytes=2, major="MN")[70, 18] == 0x149C


@pytest.mark.parametrize(
    ("fields", "request_", "kind", "phrase"),
    [
        ({"swizzle": "128B_ATOM_32B"}, (4, "K"), OperandError, "32-byte atoms belong to transposed"),
        ({"swizzle": "128B"}, (4, "MN"), OperandError, "legal where 32-bit elements are transposed: 1"),
        (
            {"base_offset": 1},
            (2, "K"),
            OperandError,
            "base offset is 1 (bits 51:49); legal without swizzle: 0",
        ),
        (
            {"absolute": 1},
            (2, "K"),
            OperandError,
            "LBO mode is 1 (bit 52: an address); legal: 0, or 1 for K of 96",
        ),
        ({"swizzle": "32B", "start_address": 0x8010}, (2, "K"), NotModelled, "bytes 16..47 of each row"),
    ],
)
def test_descriptors_without_a_known_meaning(fields, request_, kind, phrase):
    size, major = request_
    descriptor = TensorDescriptor(**{"start_address": 0x8000, **fields})
    with pytest.raises(kind, match=re.escape(phrase)):
        tile_byte_addresses(descriptor, rows=128, row_bytes=32, element_bytes=size, major=major)


def test_rows_of_48_bytes_go_on_at_the_address_of_the_lbo():
    fields = {"start_address": 0x8070, "stride_byte_offset": 1024, "swizzle": "128B", "absolute": 1}
    descriptor = TensorDescriptor(leading_byte_offset=0xC000, **fields)
    found = tile_byte_addresses(descriptor, rows=16, row_bytes=48, element_bytes=1, major="K")
    for row, byte in product(range(16), range(48)):
        linear = (0x8070 + byte if byte < 16 else 0xC000 + byte - 16) + row % 8 * 128 + row // 8 * 1024
        assert found[row, byte] == linear ^ (linear >> 7 & 7) << 4
    for wrong, phrase in (
        ({"leading_byte_offset": 0xC070}, "beyond their 128"),
        ({"absolute": 0}, "where it continues: set bit 52, and the LBO to the address of the other bytes"),
    ):
        other = TensorDescriptor(**{**fields, "leading_byte_offset": 0xC000, **wrong})
        with pytest.raises(NotModelled, match=phrase):
            tile_byte_addresses(other, rows=16, row_bytes=48, element_bytes=1, major="K")
    assert "the LBO is the address of the second chunk" in "\n".join(descriptor.explain())


def test_a_start_inside_a_pattern_is_said():
    descriptor = TensorDescriptor(start_address=0x8080, stride_byte_offset=1024, swizzle="128B_ATOM_32B")
    assert "is in row 1 of a 128B pattern, which base offset 0 places" in descriptor.explain()[-1]
