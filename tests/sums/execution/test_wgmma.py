"""wgmma: forms, fragments of the four warps, and exact results through real descriptors."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

import warpsim
from tests.helpers.families import each_of, sample
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.instruction import Instruction

COLUMNS = (8, 24, 64, 96, 136, 256)
SWIZZLES = ("none", "32B", "64B", "128B")


@cache
def forms() -> tuple[Instruction, ...]:
    return tuple(form for form in warpsim.instructions("sm_90a") if form.family.opcode == "wgmma")


def chosen() -> list[Instruction]:
    return [form for form in forms() if form.shape.n in COLUMNS]


def named(form: Instruction) -> str:
    return form.mnemonic.removeprefix("wgmma.mma_async.").replace("sync.aligned.", "")


# --- forms -----------------------------------------------------------------------------------------


def test_there_are_as_many_forms_as_ptxas_accepts():
    dense = [form for form in forms() if not form.sparse]
    assert (len(dense), len(forms()) - len(dense)) == (546, 528)


def test_no_other_target_has_wgmma():
    assert {target for form in forms() for target in form.targets} == {"sm_90a"}
    with pytest.raises(warpsim.IllegalInstruction, match="is not on sm_100a; it is on sm_90a"):
        warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_100a")


@each_of(forms()[::7], named)
def test_printing_and_decoding_are_inverse(form):
    assert warpsim.decode(form.mnemonic, target="sm_90a") == form


def test_registers_follow_from_n():
    f32 = warpsim.decode("wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16", target="sm_90a")
    f16 = warpsim.decode("wgmma.mma_async.sp.sync.aligned.m64n96k32.f16.f16.f16", target="sm_90a")
    assert f32.registers == {"a": 4, "c": 48, "d": 48}
    assert f16.registers == {"a": 4, "c": 24, "d": 24, "e": 1}


# --- fragments: PTX ISA 9.1, section 9.7.15.5.1.1, transcribed lane by lane ------------------------


def manual_a(thread: int, i: int, width: int) -> tuple[int, int]:
    """Row and column of ai: figures "WGMMA .m64nNk16, k8, k32, k256 register fragment layout for A"."""
    warp, lane = thread // 32, thread % 32
    group, member = lane // 4, lane % 4
    upper_half = (i // width) % 2 == 1  # the second and fourth register
    right_half = i >= 2 * width  # the third and fourth
    row = 16 * warp + group + (8 if upper_half else 0)
    return row, member * width + i % width + (4 * width if right_half else 0)


def manual_d(thread: int, i: int) -> tuple[int, int]:
    """Row and column of di: figure "WGMMA .m64nNk16 register fragment layout for accumulator matrix D"."""
    warp, lane = thread // 32, thread % 32
    row = 16 * warp + lane // 4
    if i % 4 in (2, 3):
        row += 8
    return row, 8 * (i // 4) + 2 * (lane % 4) + (1 if i % 2 else 0)


@each_of(chosen(), named)
def test_fragments_are_those_of_the_manual(form):
    a = warpsim.fragment(form, "a").reshape(128, -1, 2)
    d = warpsim.fragment(form, "d").reshape(128, -1, 2)
    width = 32 // form.a.bits
    for thread in range(128):
        assert [tuple(x) for x in a[thread]] == [manual_a(thread, i, width) for i in range(4 * width)]
        assert [tuple(x) for x in d[thread]] == [manual_d(thread, i) for i in range(form.shape.n // 2)]


@pytest.mark.parametrize("form", [form for form in chosen() if form.sparse and form.shape.n == 8], ids=named)
def test_each_warp_describes_its_own_sixteen_rows(form):
    twin = {16: "m16n8k32", 32: "m16n8k16", 8: "m16n8k64"}[form.a.bits]
    types = {16: "f16.f16", 32: "tf32.tf32", 8: "e4m3.e4m3"}[form.a.bits]
    warp = warpsim.decode(f"mma.sp.sync.aligned.{twin}.row.col.f32.{types}.f32")
    for selector in form.selectors:
        ours = warpsim.metadata_map(form, selector)
        theirs = warpsim.metadata_map(warp, selector)
        for index in range(4):
            rows = ours[ours[:, 3] // 16 == index] - [32 * index, 0, 0, 16 * index, 0]
            assert np.array_equal(rows, theirs)


# --- results ---------------------------------------------------------------------------------------


def small(random, element, shape):
    """Integers whose products and sums are exact in every format."""
    low = -2 if element.signed else 0
    return random.integers(low, 2 if element.bits == 1 else 3, shape).astype(element.dtype)


def stored(tile, element):
    """A tile as store_tile takes it: unsigned words, or bytes of eight 1-bit elements."""
    if element.bits == 1:
        return np.packbits(tile, axis=-1, bitorder="little")
    return np.ascontiguousarray(tile).view(f"u{element.bits // 8}")


class Case:
    """Random integer operands of one form, and the exact result."""

    def __init__(self, form: Instruction, seed: int = 0) -> None:
        self.form, random = form, np.random.default_rng(seed)
        shape = form.shape
        self.a = small(random, form.a, (64, shape.k))
        self.b = small(random, form.b, (shape.k, shape.n))
        self.c = random.integers(-9, 10, (64, shape.n)).astype(form.c.dtype)
        self.inputs: dict[str, object] = {}
        self.values = self.a
        if form.sparse:
            self.a = warpsim.prune(self.a, form)
            self.values, indices = warpsim.compress(self.a, form)
            selector = form.selectors[-1]
            self.inputs = {"e": warpsim.pack_metadata(form, indices, selector), "selector": selector}
        self.product = self.a.astype(np.int64) @ self.b.astype(np.int64)

    def run(self, **more):
        c = warpsim.pack(self.form, "c", self.c)
        d = warpsim.execute(self.form, c=c, **self.inputs, **more)
        return warpsim.unpack(self.form, "d", d).astype(np.int64)

    def in_shared(self, memory, start, tile, element, major, swizzle):
        words = stored(tile, element)
        bits = max(element.bits, 8)
        mn, k = words.shape
        descriptor = canonical_descriptor(
            start, TileShape(mn=mn, k=k, element_bits=bits, major=major), swizzle=swizzle
        )
        store_tile(memory, descriptor, words, major=major)
        end = start + canonical_bytes(TileShape(mn=mn, k=k, element_bits=bits, major=major), swizzle=swizzle)
        return descriptor.encode(), -(-end // 1024) * 1024


def legal(form, swizzle, major, k):
    """Whether one instruction's k fits a swizzled K-major row."""
    width = {"none": 1 << 20, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    return major == "MN" or k * form.b.bits // 8 <= width


@each_of(sample(product(chosen(), SWIZZLES), 2), parts=4)
def test_every_form_is_exact_through_every_layout_of_b(form, swizzle):
    case = Case(form)
    registers = warpsim.pack(form, "a", case.values)
    for major in ("K", "MN") if form.b.bits == 16 else ("K",):
        if not legal(form, swizzle, major, form.shape.k):
            continue
        memory = np.zeros(1 << 17, np.uint8)
        b, _ = case.in_shared(memory, 1024, case.b.T, form.b, major, swizzle)
        d = case.run(a=registers, b_desc=b, shared=memory, imm_trans_b=int(major == "MN"))
        assert np.array_equal(d, case.product + case.c.astype(np.int64))


@each_of(product([form for form in chosen() if form.shape.n == 24], SWIZZLES))
def test_every_form_is_exact_through_every_layout_of_a(form, swizzle):
    case = Case(form, seed=1)
    for major in ("K", "MN") if form.a.bits == 16 else ("K",):
        memory = np.zeros(1 << 17, np.uint8)
        a, end = case.in_shared(memory, 1024, case.values, form.a, major, swizzle)
        b, _ = case.in_shared(memory, end, case.b.T, form.b, "K", "none")
        d = case.run(a_desc=a, b_desc=b, shared=memory, imm_trans_a=int(major == "MN"))
        assert np.array_equal(d, case.product + case.c.astype(np.int64))


FLOATING = [form for form in chosen() if form.shape.n == 8 and form.a.is_float]


@pytest.mark.parametrize("form", FLOATING, ids=named)
def test_imm_scale_negates_and_scale_d_ignores_the_accumulator(form):
    case = Case(form, seed=2)
    memory = np.zeros(1 << 16, np.uint8)
    b, _ = case.in_shared(memory, 0, case.b.T, form.b, "K", "none")
    registers = warpsim.pack(form, "a", case.values)
    for sign_a, sign_b in ((1, -1), (-1, 1), (-1, -1)):
        d = case.run(a=registers, b_desc=b, shared=memory, imm_scale_a=sign_a, imm_scale_b=sign_b)
        assert np.array_equal(d, sign_a * sign_b * case.product + case.c.astype(np.int64))
    nothing = np.full_like(warpsim.pack(form, "c", case.c), 0xFFFFFFFF)  # NaN everywhere
    d = warpsim.execute(form, a=registers, b_desc=b, shared=memory, c=nothing, scale_d=0, **case.inputs)
    assert np.array_equal(warpsim.unpack(form, "d", d).astype(np.int64), case.product)
    without = warpsim.execute(form, a=registers, b_desc=b, shared=memory, scale_d=0, **case.inputs)
    assert np.array_equal(d, without)


def test_a_batch_may_have_a_descriptor_each():
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_90a")
    cases = [Case(form, seed) for seed in range(3)]
    memory, start, descriptors = np.zeros(1 << 14, np.uint8), 0, []
    for case in cases:
        b, start = case.in_shared(memory, start, case.b.T, form.b, "K", "32B")
        descriptors.append(b)
    d = warpsim.execute(
        form,
        a=np.stack([warpsim.pack(form, "a", case.a) for case in cases]),
        b_desc=np.array(descriptors, np.uint64),
        c=np.stack([warpsim.pack(form, "c", case.c) for case in cases]),
        shared=memory,
    )
    for case, words in zip(cases, d, strict=True):
        expected = case.product + case.c.astype(np.int64)
        assert np.array_equal(warpsim.unpack(form, "d", words).astype(np.int64), expected)


@pytest.mark.parametrize("form", [form for form in chosen() if form.shape.n == 8], ids=named)
def test_kernel_and_reference_agree_on_raw_bits(form):
    random = np.random.default_rng(5)
    memory = random.integers(0, 256, 1 << 14).astype(np.uint8)
    registers = random.integers(0, 1 << 32, (128, 4), dtype=np.uint32)
    c = random.integers(0, 1 << 32, (128, form.registers["c"]), dtype=np.uint32)
    k = form.shape.k * form.b.bits // max(form.b.bits, 8)
    b = canonical_descriptor(
        0, TileShape(mn=8, k=k, element_bits=max(form.b.bits, 8), major="K"), swizzle="none"
    )
    inputs = dict(a=registers, c=c, b_desc=b.encode(), shared=memory, **Case(form).inputs)
    kernel = warpsim.execute(form, **inputs)
    assert np.array_equal(kernel, warpsim.execute(form, **inputs, engine="reference"))


# --- errors ----------------------------------------------------------------------------------------


def execute(mnemonic, **inputs):
    form = warpsim.decode(mnemonic, target="sm_90a")
    c = np.zeros((128, form.registers["c"]), np.uint32)
    return warpsim.execute(form, c=c, **inputs)


A = np.zeros((128, 4), np.uint32)
F16 = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
S8 = "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8"
E4M3 = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"


@pytest.mark.parametrize(
    ("mnemonic", "inputs", "message"),
    [
        (F16, {"a": A}, "reads B from shared memory: give b_desc= and shared="),
        (S8, {"a": A, "b_desc": 0, "imm_scale_a": -1}, "has no imm-scale: only floating-point forms do"),
        (E4M3, {"a": A, "b_desc": 0, "imm_trans_b": 1}, "has no imm-trans: only f16 and bf16 forms do"),
        (E4M3, {"a_desc": 0, "b_desc": 0, "imm_trans_a": 1}, "has no imm-trans: only f16 and bf16 forms do"),
        (F16, {"a": A, "b_desc": 0, "imm_trans_a": 1}, "imm-trans-a belongs to A in shared memory"),
        (F16, {"a": A, "b_desc": 0, "imm_scale_a": 2}, "imm_scale_a is 1 or -1, not 2"),
        (F16, {"a": A, "b_desc": 0, "imm_trans_b": 2}, "imm_trans_b is 0 or 1, not 2"),
        (F16, {"b_desc": 0}, "needs registers a, c; a is missing"),
    ],
)
def test_what_a_form_does_not_have_is_refused(mnemonic, inputs, message):
    shared = {"shared": np.zeros(4096, np.uint8)} if "b_desc" in inputs else {}
    with pytest.raises(warpsim.WarpsimError, match=message):
        execute(mnemonic, **inputs, **shared)
