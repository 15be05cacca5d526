"""Explanations: every code against `warpsim.execute`, every source against the registers, every step's sums.

Each distinct arithmetic of every target is executed on random words and on the corner cases of `nasty`; the
explanation of one element must end in the very bits of D, and its parts must add up to them.
"""

import json
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import warpsim
from tests.helpers import nasty
from tests.helpers.dot_codes import codes_of
from tests.helpers.families import each_of, usual
from tests.helpers.pages import Page
from warpsim import IllegalInstruction, OperandError, UndefinedBehavior
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.families import _forms_of
from warpsim.isa.families.wgmma import WGMMA, WGMMA_SP
from warpsim.isa.formats import FORMATS
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.isa.rules import FusedSum, ScaledGroups
from warpsim.ptx.qualifiers import on_target
from warpsim.show.views.explanation_documents import (
    comparison_document,
    comparison_page,
    explanation_document,
    explanation_page,
)
from warpsim.sums.arithmetic.numerics import compute
from warpsim.sums.arithmetic.reference import Kind, decode
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.explanation.digits import bits_text, exact_text, fraction_text, ulps_text, value_text
from warpsim.workbench.explanation.explain import compare_dot, compare_matrices, explain_dot, explain_matrices
from warpsim.workbench.explanation.explanation_text import comparison_lines, explanation_lines, term_table
from warpsim.workbench.explanation.information import rule_text
from warpsim.workbench.explanation.records import value_of
from warpsim.workbench.explanation.rule_steps import steps_of
from warpsim.workbench.explanation.yardsticks import ulp, yardsticks

SEED = 20240612
FORMS = [form for form in nasty.arithmetics() if form.lanes == 32]
each_form = each_of(FORMS, nasty.name, parts=4)

F32, F16 = FORMATS["f32"], FORMATS["f16"]
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QUADS = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def random_registers(form, rng):
    """Random words, and metadata that is legal in the selected lanes and random in the others."""
    registers = {}
    for operand, count in form.registers.items():
        word = np.uint64 if form.register_bits == 64 and operand in "abcd" else np.uint32
        if operand != "d":
            registers[operand] = rng.integers(0, np.iinfo(word).max, (32, count), word, endpoint=True)
    settings = {}
    if form.sparse:
        settings["selector"] = int(rng.choice(form.selectors))
        e = warpsim.pack_metadata(form, nasty.indices(form, (form.shape.m,), rng), settings["selector"])
        registers["e"] = np.where(e == 0, registers["e"], e)
    if form.scale:
        settings["byte_id_a"] = int(rng.choice(range(0, 4, form.scale_chunks)))
        settings["byte_id_b"] = int(rng.choice(range(0, 4, form.scale_chunks)))
        settings |= {"thread_id_a": int(rng.integers(2)), "thread_id_b": int(rng.integers(4))}
    return {**registers, **settings}


def element(form, words, place):
    return int(words[place.lane, place.register]) >> place.low_bit & ((1 << place.bits) - 1)


def some_element(form, rng):
    return tuple(int(rng.integers(size)) for size in (form.products, form.shape.m, form.shape.n))


# --- the code, and where everything came from ------------------------------------------------------


@each_form
def test_the_code_is_that_of_execute(form):
    rng = np.random.default_rng(SEED)
    for _ in range(2):
        operands = random_registers(form, rng)
        d = warpsim.execute(form, **operands)
        for _ in range(3):
            q, row, column = some_element(form, rng)
            found = explain_dot(form, row, column, product=q, **operands)
            assert (found.place.row, found.place.column, found.place.product) == (row, column, q)
            assert found.code == element(form, d, found.place)


@each_form
def test_every_code_is_in_the_register_it_is_said_to_come_from(form):
    rng = np.random.default_rng(SEED)
    operands = random_registers(form, rng)
    q, row, column = some_element(form, rng)
    found = explain_dot(form, row, column, product=q, **operands)
    assert found.c.code == element(form, operands["c"], found.c.place)
    assert len(found.products) == form.stored_k
    for product in found.products:
        for name in ("a", "b", "scale_a", "scale_b"):
            factor = getattr(product, name)
            if factor is not None:
                assert factor.code & factor.format.mask == (
                    element(form, operands[name], factor.place) & factor.format.mask
                )
        assert (product.a.place.row, product.a.place.column) == (row, product.position)
        assert (product.b.place.row, product.b.place.column) == (product.k, column)
        if form.sparse:
            assert product.field == element(form, operands["e"], product.metadata)
            assert product.metadata.row == row
            chunk = product.metadata.column
            first = form.pattern.chunk * chunk + form.pattern.unit * product.index
            assert product.k == first + product.position % form.pattern.unit
            assert product.index in form.pattern.decode_table[product.field]


@each_form
def test_steps_add_up_on_corner_cases(form):
    """The last code is the kernel's; what is kept, cut and dropped is the term, the sum and the code."""
    rng = np.random.default_rng(SEED)
    rule = rule_for(form)
    for maker in nasty.makers(form):
        dots = maker(form, usual(2, 4), rng)
        codes = compute(nasty.operands(form, dots, rng), rule)
        for index, each in enumerate(codes_of(form, dots)):
            steps = steps_of(rule, form, each).steps
            assert steps[-1].code == int(codes[index, 0, 0])
            for step in steps:
                check_step(step)


def check_step(step):
    if step.special:
        assert step.number.kind is not Kind.FINITE
        return
    for term in step.terms:
        magnitude = (abs(term.kept) << term.cut_width) + term.cut
        shift = max(0, term.number.scale - term.unit)
        assert magnitude == term.number.significand << shift
    assert step.total == sum(term.kept for term in step.terms)
    if step.exponent is not None:
        aligned = [term.number.exponent for term in step.terms if term.aligns]
        if not step.terms[0].name.startswith("group"):
            assert step.exponent >= max(aligned, default=step.exponent)
    if step.number.kind is not Kind.FINITE or not step.precision:
        return
    exact = Fraction(step.total) * Fraction(2) ** step.unit
    if abs(exact) >= Fraction(2) ** (step.format.bias + 1):
        return  # directed rounding to the largest number
    below = Fraction(step.dropped) * Fraction(2) ** step.unit
    away = abs(exact) - abs(value_of(step.number))
    unit = Fraction(2) ** (step.unit + step.dropped_width)
    assert away in (below, below - unit)
    if "toward zero" in step.rounding:
        assert away == below


@each_of([form for form in FORMS if form.products == 1], nasty.name)
def test_matrices_give_the_code_of_matmul(form):
    rng = np.random.default_rng(SEED)
    codes = {name: nasty.random_codes(form.format(name), form.matrix_shape(name), rng) for name in "abc"}
    a = codes["a"]
    if form.sparse:
        a = (a, nasty.indices(form, (form.shape.m,), rng))
    scales = {}
    if form.scale:
        scales["scale_a"] = rng.integers(0, 256, (form.shape.m, form.scale_chunks), np.uint8)
        scales["scale_b"] = rng.integers(0, 256, (form.scale_chunks, form.shape.n), np.uint8)
    D = warpsim.matmul(form, a, codes["b"], codes["c"], **scales)
    _, row, column = some_element(form, rng)
    found = explain_matrices(form, row, column, a, codes["b"], codes["c"], **scales)
    assert found.code == int(np.ascontiguousarray(D).view(form.d.code_dtype)[row, column])


def test_a_logical_sparse_matrix_is_compressed_first():
    form = warpsim.decode(SP, target="sm_80")
    A = np.zeros((16, 16), np.float16)
    A[3, [1, 3, 4, 7]] = [1, 2, 3, 4]
    B = np.arange(128, dtype=np.float16).reshape(16, 8)
    found = explain_matrices(form, 3, 5, A, B)
    assert [product.k for product in found.products] == [1, 3, 4, 7, 8, 9, 12, 13]
    assert [product.field for product in found.products[::2]] == [0b1101, 0b1100, 0b0100, 0b0100]
    assert value_of(found.number) == 1 * 13 + 2 * 29 + 3 * 37 + 4 * 61


# --- wgmma -----------------------------------------------------------------------------------------


def warpgroup_form(family, mnemonic_part):
    rows = (row for row in family.rows if row.shape.n == 24)
    forms = (form for row in rows for form in _forms_of(family, row))
    return on_target(next(form for form in forms if mnemonic_part in form.mnemonic), "sm_90a")


def in_shared(tile, start, size):
    """A descriptor of a K-major tile ``(mn, k)`` and the memory with the tile in it."""
    mn, k = tile.shape
    bits = 8 * tile.dtype.itemsize
    memory = np.zeros(size, np.uint8)
    described = canonical_descriptor(
        start, TileShape(mn=mn, k=k, element_bits=bits, major="K"), swizzle="none"
    )
    store_tile(memory, described, tile, major="K")
    return np.uint64(described.encode()), memory


@pytest.mark.parametrize(
    ("family", "part", "scale_d", "negate"),
    [(WGMMA, "f32.f16.f16", 1, -1), (WGMMA, "f16.e4m3.e5m2", 0, 1), (WGMMA_SP, "f32.bf16.bf16", 1, 1)],
)
def test_warpgroup_instructions(family, part, scale_d, negate):
    form = warpgroup_form(family, part)
    rng = np.random.default_rng(SEED)
    numbers = {
        name: rng.standard_normal(form.matrix_shape(name)).astype(form.format(name).dtype) for name in "abc"
    }
    B = numbers["b"].view(form.b.code_dtype)
    size = canonical_bytes(
        TileShape(mn=form.shape.n, k=form.shape.k, element_bits=form.b.bits, major="K"), swizzle="none"
    )
    descriptor, shared = in_shared(np.ascontiguousarray(B.T), 0, size)
    operands = {
        "a": warpsim.pack(form, "a", numbers["a"]),
        "c": warpsim.pack(form, "c", numbers["c"]),
        "b_desc": descriptor,
        "shared": shared,
        "scale_d": scale_d,
        "imm_scale_a": negate,
    }
    if form.sparse:
        operands["e"] = warpsim.pack_metadata(form, nasty.indices(form, (64,), rng), 1)
        operands["selector"] = 1
    d = warpsim.execute(form, **operands)
    for row, column in ((0, 0), (17, 5), (63, 23)):
        found = explain_dot(form, row, column, **operands)
        assert found.code == element(form, d, found.place)
        assert found.place.lane // 32 == row // 16
        assert {product.b.place for product in found.products} == {None}
        assert (found.c.place is None) == (not scale_d)
        text = "\n".join(explanation_lines(found))
        assert "shared" in text
        assert ("not read" in text) == (not scale_d)
        assert ("imm-scale-a is -1" in text) == (negate == -1)


# --- other ways to sum -----------------------------------------------------------------------------


def test_chains_are_those_of_numpy():
    """Products of f16 are exact in f32, so that the separate chain is NumPy's and so is the fma chain."""
    form = warpsim.decode(MMA, target="sm_90")
    rng = np.random.default_rng(SEED)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    C = rng.standard_normal((16, 8)).astype(np.float32)
    found = explain_matrices(form, 7, 2, A, B, C)
    total = C[7, 2]
    for k in range(16):
        total = np.float32(A[7, k]) * np.float32(B[k, 2]) + total
    exact = Fraction(float(C[7, 2]))
    exact += sum(Fraction(float(A[7, k])) * Fraction(float(B[k, 2])) for k in range(16))
    sums, fused, separate = found.yardsticks
    assert fused.code == separate.code == int(total.view(np.uint32))
    assert sums.value == exact
    difference = Fraction(float(np.array(found.code, np.uint32).view(np.float32))) - exact
    assert sums.ulps == difference / ulp(exact, F32)
    assert total < 0  # codes of negative numbers ascend away from zero
    assert fused.ulps == fused.code - found.code


@pytest.mark.parametrize(
    ("value", "expected"),
    [(Fraction(0), -149), (Fraction(1, 2**140), -149), (Fraction(1), -23), (Fraction(-7, 4), -23),
     (Fraction(2), -22), (Fraction(1, 3), -25), (Fraction(2**100 - 1), 76)],
)  # fmt: skip
def test_ulp(value, expected):
    assert ulp(value, F32) == Fraction(2) ** expected


def test_yardsticks_of_special_and_saturated_results():
    infinity, one = decode(0x7F80_0000, F32), decode(0x3F80_0000, F32)
    assert [each.ulps for each in yardsticks([infinity], one, F32, 0x7F80_0000)] == [None, None, None]
    (clamped,) = yardsticks([decode(7, FORMATS["s8"])], decode(0x7FFF_FFFF, FORMATS["s32"]),
                            FORMATS["s32"], 0x7FFF_FFFF)  # fmt: skip
    assert (clamped.ulps, clamped.value) == (-7, 2**31 + 6)


# --- several targets -------------------------------------------------------------------------------


def quarter_matrices():
    """A row whose second half of products only Ampere sums after rounding the first half."""
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    A[3, [0, 1, 8]] = [1, 2**-13, -1]
    B[[0, 1, 8], 5] = [1, 2**-12, 1]
    return A, B, np.zeros((16, 8), np.float32)


def test_targets_part_where_their_steps_differ():
    found = compare_matrices(MMA, 3, 5, ["sm_80", "sm_86", "sm_90"], *quarter_matrices())
    assert found.codes == {"sm_80": 0, "sm_86": 0, "sm_90": 0x3300_0000}
    assert found.parting.step == 0
    assert [targets for targets, _ in found.parting.ways] == [("sm_80", "sm_86"), ("sm_90",)]
    assert [len(step.positions) for _, step in found.parting.ways] == [8, 16]
    assert found.parting.partial == 16


def test_targets_of_one_arithmetic_do_not_part():
    found = compare_matrices(MMA, 3, 5, ["sm_80", "sm_89"], *quarter_matrices())
    assert found.parting is None
    assert comparison_lines(found)[-1] == "  every step is the same on all chips"
    assert comparison_document(found)["parting"] is None


def test_targets_part_where_one_has_no_such_step():
    operands = random_registers(warpsim.decode(QUADS, target="sm_70"), np.random.default_rng(SEED))
    found = compare_dot(QUADS, 1, 2, ["sm_70", "sm_80"], product=3, **operands)
    assert found.parting.step == 0
    assert [step.operation for _, step in found.parting.ways] == ["fused sum", "fma"]
    assert [len(each.steps) for each in found.explanations] == [1, 5]
    assert json.loads(json.dumps(comparison_document(found)))["parting"]["step"] == 0


# --- text ------------------------------------------------------------------------------------------

EXPLAINED = """
D[3,5] = 0x40c74172 = 6.22673893 in T14 %d1[31..0]
  mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 on sm_80
  rule      {rule}
  evidence  {evidence}
  note      exponent: exp(A) + exp(B), before normalisation (0 for 1.5 * 1.5); all terms of a step are shifted to the largest

     k   A                code        value           B                code    value           metadata        field  index  product         exponent  step
  0  0   T12 %a0[15..0]   0x3e00      1.5             T20 %b0[15..0]   0x3e00  1.5             T12 %e[3..0]    1100   0      2.25            0         0
  1  3   T12 %a0[31..16]  0xba00      -0.75           T21 %b0[31..16]  0x3800  0.5             T12 %e[3..0]    1100   3      -0.375          -2        0
  2  5   T13 %a0[15..0]   0x4200      3               T22 %b0[31..16]  0xb900  -0.625          T12 %e[7..4]    1001   1      -1.875          0         0
  3  6   T13 %a0[31..16]  0x0400      6.10351562e-05  T23 %b0[15..0]   0x0c00  0.000244140625  T12 %e[7..4]    1001   2      1.49011612e-08  -26       0
  4  8   T14 %a0[15..0]   0x3d33      1.29980469      T20 %b1[15..0]   0x4166  2.69921875      T12 %e[11..8]   0100   0      3.50845718      1         0
  5  9   T14 %a0[31..16]  0x0000      0               T20 %b1[31..16]  0x0000  0               T12 %e[11..8]   0100   1      0               -28       0
  6  12  T15 %a0[15..0]   0x0000      0               T22 %b1[15..0]   0x0000  0               T12 %e[15..12]  0100   0      0               -28       0
  7  13  T15 %a0[31..16]  0x0000      0               T22 %b1[31..16]  0x0000  0               T12 %e[15..12]  0100   1      0               -28       0
  c      T14 %c1[31..0]   0x402df854  2.71828175

  step 0, fused sum: largest exponent 1, unit 2**-23
    term       exponent  in units of 2**-23            cut off
    product 0  0         +01.001000000000000000000000
    product 1  -2        -00.001100000000000000000000
    product 2  0         -00.111100000000000000000000
    product 3  -26       +00.000000000000000000000000  00100000000000000000000
    product 4  1         +01.110000010001010100100000
    product 5  -         +00.000000000000000000000000
    product 6  -         +00.000000000000000000000000
    product 7  -         +00.000000000000000000000000
    c          1         +01.010110111111000010101000
    sum                  +11.000111010000010111001000
    sum = 6529209 * 2**-20, a carry of 1 bit
    rounded to 24 bits, toward zero, exact: 0x40c74172 = 6.22673893

  other ways to sum                                 code        D minus this sum (ulp)
  exact sum, rounded once to the nearest f32        0x40c74172  -0.03
  IEEE fma chain in f32, from C, k ascending        0x40c74172  +0
  f32 products, then f32 sums, from C, k ascending  0x40c74172  +0
"""  # noqa: E501

COMPARED = """
D[3,5] of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  target  D           value           steps  error against exact sum (ulp)  error against fma chain (ulp)  error against separate multiply and add (ulp)
  sm_80   0x00000000  0               2      -8388608                       +0                             +0
  sm_90   0x33000000  2.98023224e-08  1      +0                             +855638016                     +855638016

  chips first differ at step 0
  rounded sums of the same products first differ after 16 of them

sm_80:
  step 0, fused sum: largest exponent 0, unit 2**-24
    term       exponent  in units of 2**-24           cut off
    product 0  0         +1.000000000000000000000000
    product 1  -25       +0.000000000000000000000000  100000000000000000000
    product 2  -         +0.000000000000000000000000
    product 3  -         +0.000000000000000000000000
    product 4  -         +0.000000000000000000000000
    product 5  -         +0.000000000000000000000000
    product 6  -         +0.000000000000000000000000
    product 7  -         +0.000000000000000000000000
    c          -         +0.000000000000000000000000
    sum                  +1.000000000000000000000000
    sum = 1
    rounded to 24 bits, toward zero, exact: 0x3f800000 = 1

"""  # noqa: E501


def sparse_matrices():
    A = np.zeros((16, 16), np.float16)
    B = np.zeros((16, 8), np.float16)
    A[3, [0, 3, 5, 6, 8]] = [1.5, -0.75, 3, 2**-14, 1.3]
    B[[0, 3, 5, 6, 8], 5] = [1.5, 0.5, -0.625, 2**-12, 2.7]
    C = np.zeros((16, 8), np.float32)
    C[3, 5] = 2.7182818
    return A, B, C


def test_the_text_of_one_explanation():
    found = explain_matrices(SP, 3, 5, *sparse_matrices(), target="sm_80")
    rule = found.rule
    expected = EXPLAINED.strip("\n").format(rule=rule_text(rule), evidence=rule.evidence)
    assert "\n".join(explanation_lines(found)) == expected


def test_the_text_of_a_comparison():
    found = compare_matrices(MMA, 3, 5, ["sm_80", "sm_90"], *quarter_matrices())
    text = "\n".join(comparison_lines(found))
    ampere, _, hopper = text.partition("sm_90:\n")
    first, _, second = ampere.partition("  step 1, ")
    assert first == COMPARED.lstrip("\n").removesuffix("\n")
    assert second.startswith("fused sum: largest exponent 0, unit 2**-24\n")  # sm_80's second makes its D
    assert hopper.startswith("  step 0, fused sum: largest exponent 0, unit 2**-25\n")
    assert hopper.endswith("rounded to 24 bits, toward zero, exact: 0x33000000 = 2.98023224e-08")


def test_chips_with_the_same_d_are_not_said_to_part():
    """Sums of ones are exact: in two steps on sm_80, in one on sm_90."""
    ones = [np.ones(shape, dtype) for shape, dtype in (((16, 16), "f2"), ((16, 8), "f2"), ((16, 8), "f4"))]
    found = compare_matrices(MMA, 3, 5, ["sm_80", "sm_90"], *ones)
    assert (found.same_d, found.parting.step, found.parting.partial) == (True, 0, None)
    text = "  D is equal on all chips; their steps differ from step 0 on"
    assert text in comparison_lines(found)
    assert not any("part" in line for line in comparison_lines(found))
    assert comparison_document(found)["same_d"]
    assert f"<h2>{text.strip()}</h2>" in comparison_page(found)
    other = compare_matrices(MMA, 3, 5, ["sm_80", "sm_90"], *quarter_matrices())
    assert not other.same_d
    assert "<h2>Chips first differ at step 0</h2>" in comparison_page(other)


@pytest.mark.parametrize(
    ("code", "text"),
    [(0x3F80_0000, "1"), (0x8000_0000, "-0"), (0xFF80_0000, "-Inf"), (0x7FC0_0000, "NaN"),
     (0x3DCC_CCCD, "0.100000001"), (1, "1.40129846e-45")],
)  # fmt: skip
def test_values_in_words(code, text):
    assert value_text(decode(code, F32)) == text


def test_digits():
    assert exact_text(-12, -5) == "-3 * 2**-3"
    assert exact_text(12, 0) == "3 * 2**2"
    assert exact_text(0, 7) == "0"
    assert bits_text(0b101, 5) == "00101"
    assert bits_text(0, 50) == ""
    assert bits_text(0b11, 40) == "38 zeros, 11"
    assert bits_text((1 << 30) - 1, 30) == "1" * 24 + "…"
    assert ulps_text(Fraction(-3)) == "-3"
    assert ulps_text(Fraction(5, 3)) == "+1.67"
    assert ulps_text(Fraction(1, 2**40)) == "+9.1e-13"
    assert ulps_text(None) == "-"
    assert fraction_text(Fraction(3) * 2**2000) == "3 * 2**2000"
    assert fraction_text(Fraction(3, 2**2000)) == "3 * 2**-2000"


# --- every rule in every rendering -----------------------------------------------------------------


@each_form
def test_every_rendering(form):
    rng = np.random.default_rng(SEED)
    q, row, column = some_element(form, rng)
    found = explain_dot(form, row, column, product=q, **random_registers(form, rng))
    text = explanation_lines(found)
    assert not any(line != line.rstrip() for line in text)
    digits = -(-form.d.bits // 4)
    assert f"0x{found.code:0{digits}x}" in text[0]
    document = json.loads(json.dumps(explanation_document(found)))
    assert int(document["code"], 16) == found.code
    assert len(document["products"]) == form.stored_k
    assert sorted(p for step in document["steps"] for t in step["terms"] for p in t["products"]) == list(
        range(form.stored_k)
    )
    parser = Page()
    parser.feed(explanation_page(found))
    parser.close()
    assert parser.open == []
    assert parser.loaded == []
    assert form.mnemonic in "".join(parser.texts)


def test_a_comparison_as_a_page():
    found = compare_matrices(MMA, 3, 5, ["sm_80", "sm_90"], *quarter_matrices())
    parser = Page()
    parser.feed(comparison_page(found))
    parser.close()
    assert parser.open == []
    assert {"sm_80", "sm_90"} <= set(parser.texts)


def comparisons():
    """One mnemonic with its targets for each set of rules that targets sum a product by."""
    found = {}
    legal = {form.mnemonic: {} for form in warpsim.instructions() if form.lanes == 32}
    for form in (form for target in ARCHITECTURES for form in warpsim.instructions(target)):
        if form.lanes == 32:
            legal[form.mnemonic].setdefault(nasty.arithmetic(form), form.target)
    for mnemonic, targets in legal.items():
        if len(targets) > 1:
            found.setdefault(tuple(targets), (mnemonic, tuple(targets.values())))
    return [*found.values()]


@each_of(comparisons(), lambda case: case[0], parts=2)
def test_every_comparison_has_a_text_and_a_page(mnemonic, targets):
    """Also of targets of which one sums in aligned steps and the other mixes them with additions."""
    form = warpsim.decode(mnemonic, target=targets[0])
    q, row, column = some_element(form, rng := np.random.default_rng(SEED))
    registers = random_registers(form, rng)
    for pair in combinations(targets, 2):
        found = compare_dot(form, row, column, pair, product=q, **registers)
        text = comparison_lines(found)
        for name, each in zip(pair, found.explanations, strict=True):
            assert found.parting is None or f"{name}:" in text
            assert any(f"0x{each.code:0{-(-form.d.bits // 4)}x}" in line for line in text)
        assert comparison_page(found)


# --- refusals --------------------------------------------------------------------------------------


def test_refusals():
    form = warpsim.decode(MMA, target="sm_80")
    operands = random_registers(form, np.random.default_rng(SEED))
    with pytest.raises(OperandError, match=r"D\[16,0\] does not exist"):
        explain_dot(form, 16, 0, **operands)
    with pytest.raises(OperandError, match="c is missing"):
        explain_dot(form, 0, 0, a=operands["a"], b=operands["b"])
    with pytest.raises(OperandError, match="no operand is called d"):
        explain_dot(form, 0, 0, **operands, d=operands["c"])
    with pytest.raises(OperandError, match=r"a has batch axes \(2,\): explain takes one execution"):
        explain_dot(form, 0, 0, a=np.stack([operands["a"]] * 2), b=operands["b"], c=operands["c"])
    with pytest.raises(OperandError, match="matrices with batch axes"):
        explain_matrices(form, 0, 0, np.zeros((2, 16, 16), np.float16), np.zeros((16, 8), np.float16))
    with pytest.raises(IllegalInstruction, match="has no target"):
        explain_dot(MMA, 0, 0, **operands)
    sparse = warpsim.decode(SP, target="sm_80")
    operands = random_registers(sparse, np.random.default_rng(SEED)) | {"e": np.zeros((32, 1), np.uint32)}
    with pytest.raises(UndefinedBehavior, match="metadata field 0b0000"):
        explain_dot(sparse, 0, 0, **operands)
    assert explain_dot(sparse, 0, 0, **operands, undefined="fallback").products[1].k == 0


def test_scales_are_read_from_the_chosen_bytes():
    form = next(form for form in FORMS if isinstance(rule_for(form), ScaledGroups))
    chosen = ScaleSelectors(byte_id_a=0, thread_id_a=1, byte_id_b=0, thread_id_b=3)
    operands = random_registers(form, np.random.default_rng(SEED)) | chosen._asdict()
    found = explain_dot(form, 9, 2, **operands)
    assert {product.scale_a.place.lane for product in found.products} == {4 * 1 + 2 + 1}
    assert {product.scale_b.place.lane for product in found.products} == {4 * 2 + 3}


def test_every_rule_is_among_the_forms():
    kinds = {type(rule_for(form)).__name__ for form in FORMS}
    assert kinds == {
        "FusedSum",
        "EmulatedF8",
        "ScaledGroups",
        "FusedMultiplyAdd",
        "SoftwareQuad",
        "IntegerSum",
        "BitCount",
    }
    assert any(form.scale and isinstance(rule_for(form), FusedSum) for form in FORMS)


# --- what the numbers do not say by themselves ---------------------------------------------------------


def test_targets_that_part_are_shown_until_they_have_made_their_d() -> None:
    form = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    found = warpsim.compare_targets(form, 3, 5, ["sm_80", "sm_90"], A=A, B=B)
    text = str(found)
    for each in found.explanations:
        assert f"0x{each.code:08x} = " in text.split(f"\n{each.instruction.target}:\n")[1]
    assert "  step 1, " in text.split("\nsm_80:\n")[1].split("\nsm_90:\n")[0]


def test_bits_that_tf32_drops_are_told() -> None:
    form = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    A, B = np.full((16, 8), 1.1, np.float32), np.ones((8, 8), np.float32)
    text = str(warpsim.explain(form, 0, 0, target="sm_80", A=A, B=B))
    assert "the low 13 bits of A are dropped, since tf32 lacks them; 8 of 8 codes have some set" in text
    assert "13 bits of B" not in text
    assert "exponent: exp(A) + exp(B), before normalisation" in text


def test_sums_of_groups_are_shown() -> None:
    form = warpsim.decode(
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        target="sm_120a",
    )
    ones = np.full((16, 64), 2, np.uint8), np.full((64, 8), 2, np.uint8)  # 1.0
    scales = {"scale_a": np.full((16, 4), 0x38, np.uint8), "scale_b": np.full((4, 8), 0x38, np.uint8)}
    found = warpsim.explain(form, 0, 0, A=ones[0], B=ones[1], **scales)
    table = term_table(found.steps[0])
    assert table[0][-1] == "exact sum"
    assert [row[-1] for row in table[1:] if row[0].startswith("group")] == ["16"] * 4


def test_f64_values_are_whole_in_decimal_and_hexadecimal() -> None:
    form = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
    A, B = np.full((8, 4), 0.1), np.eye(4, 8)
    text = str(warpsim.explain(form, 0, 0, target="sm_80", A=A, B=B))
    assert "0x3fb999999999999a = 0.1 = 0x1.999999999999ap-4 in " in text
    A = np.full((8, 4), 1 / 3)
    text = str(warpsim.explain(form, 0, 0, target="sm_80", A=A, B=B))
    assert "0.3333333333333333 = 0x1.5555555555555p-2" in text


def test_groups_without_a_product_are_zero_and_not_less() -> None:
    """Sums of whole numbers have no -0, whatever C is."""
    form = warpsim.decode(
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", target="sm_120a"
    )
    a, b, c = np.zeros((16, 64), np.uint8), np.zeros((64, 8), np.uint8), np.full((16, 8), -0.0, np.float32)
    a[0, 40] = b[40, 0] = 2  # one
    registers = {role: warpsim.pack(form, role, one) for role, one in (("a", a), ("b", b), ("c", c))}
    ones = np.full((32, 1), 0x7F7F7F7F, np.uint32)
    found = warpsim.explain(form, 0, 0, **registers, scale_a=ones, scale_b=ones)
    (step,) = found.steps
    assert [term.name for term in step.terms] == ["group 0", "group 1", "group 2", "group 3", "c"]
    assert [term.number.negative for term in step.terms] == [False] * 4 + [True]
