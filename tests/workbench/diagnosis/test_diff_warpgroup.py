"""Diagnosis of wgmma: mistakes in descriptors, tiles, warps and immediates, made by hand and found."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tools.mistakes.grammar.injected import of_grammar, random_setting, sampled_forms, trial
from warpsim import OperandError
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile, tile_addresses
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis import Diagnosis, diagnose
from warpsim.workbench.diagnosis.descriptors.described_tiles import misreadings
from warpsim.workbench.diagnosis.solving.other_causes import other_causes

DENSE = "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"
SPARSE = "wgmma.mma_async.sp.sync.aligned.m64n16k32.f32.f16.f16"
TF32 = "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32"
S8 = "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.u8"
LAYOUTS = {  # which types of as many bits share; the whole of it: python -m tools.mistakes.grammar.injected
    (form.shape, form.sparse, form.a.bits, form.d.bits, form.d.is_float): form
    for form in sampled_forms().values()
    if form.lanes == 128
}
FORMS = sample((form for at, form in enumerate(LAYOUTS.values()) if form.shape.n == 8 or at % 8 == 3), 3)


class Case:
    """A random product of one form, A and B in tiles of twice its k, with the arguments of execute."""

    def __init__(self, mnemonic: str, *, swizzle: Any = "none", shared_a: bool = True, **more: Any) -> None:
        self.form = form = warpsim.decode(mnemonic, target="sm_90a")
        self.rng, self.memory = np.random.default_rng(0), np.zeros(1 << 15, np.uint8)
        a, b = self.matrix("a"), self.matrix("b")
        c = warpsim.pack(form, "c", self.matrix("c"))
        self.arguments: dict[str, Any] = {"c": c, "shared": self.memory} | more
        if form.sparse:
            a = warpsim.prune(self.rng.standard_normal((64, form.shape.k)).astype(np.float16), form)
            a, indices = warpsim.compress(a, form)
            self.arguments["e"] = warpsim.pack_metadata(form, indices, 1)
            self.arguments["selector"] = 1
        self.arguments["b_desc"] = self.stored(1024, b.T, swizzle)
        if shared_a:
            self.arguments["a_desc"] = self.stored(1 << 14, a, swizzle)
        else:
            self.arguments["a"] = warpsim.pack(form, "a", a)

    def matrix(self, operand: str) -> Any:
        shape, element = self.form.matrix_shape(operand), self.form.format(operand)
        if not element.is_float:
            return self.rng.integers(0, 100, shape).astype(element.dtype)
        return self.rng.standard_normal(shape).astype(element.dtype)

    def stored(self, start: int, tile: Any, swizzle: Any) -> int:
        """A packed tile whose second half along k is other numbers."""
        codes = np.ascontiguousarray(tile).view(f"u{tile.itemsize}")
        mn, k = codes.shape
        whole = TileShape(mn=mn, k=2 * k, element_bits=8 * tile.itemsize, major="K")
        for first_k, part in ((0, codes), (k, codes[::-1].copy())):
            descriptor = canonical_descriptor(start, whole, swizzle=swizzle, first_k=first_k)
            store_tile(self.memory, descriptor, part, major="K")
        return canonical_descriptor(start, whole, swizzle=swizzle).encode()

    def d(self, **others: Any) -> Any:
        """D of execute with some arguments others."""
        return warpsim.execute(self.form, **self.arguments | others, undefined="fallback")

    def found(self, d: Any, **more: Any) -> Diagnosis:
        return diagnose(self.form, **self.arguments, d=d, **more)

    def desc(self, side: str, **fields: Any) -> int:
        descriptor = Descriptor.decode(self.arguments[f"{side}_desc"])
        return replace(descriptor, **{name: value(descriptor) for name, value in fields.items()}).encode()


def names(found: Diagnosis) -> set[str]:
    """Every name of every exact explanation with one mistake."""
    return {
        name
        for match in found.matches
        for one in match.equivalent
        if len(one.mistakes) == 1
        for name in (one.mistakes[0].name, *one.mistakes[0].also)
    }


EXCHANGED = {
    "leading_byte_offset": lambda x: x.stride_byte_offset,
    "stride_byte_offset": lambda x: x.leading_byte_offset,
}

B_EXCHANGED = "B descriptor: LBO and SBO are exchanged: LBO 512, SBO 128 where LBO 128, SBO 512 fit"
BY_HAND: dict[str, Any] = {
    "A descriptor: LBO and SBO are exchanged: LBO 1024, SBO 128 where LBO 128, SBO 1024 fit": (
        DENSE,
        {},
        lambda case: {"a_desc": case.desc("a", **EXCHANGED)},
    ),
    "B descriptor: LBO and SBO are exchanged: LBO 16, SBO 512 where LBO 512, SBO 16 fit": (
        *(SPARSE, {"swizzle": "64B"}),
        lambda case: {"b_desc": case.desc("b", **EXCHANGED)},
    ),
    "B descriptor: the swizzle is 64B where none fits": (
        *(DENSE, {"swizzle": "64B"}),
        lambda case: {"b_desc": case.desc("b", swizzle=lambda x: "none")},
    ),
    "B descriptor: the start is 32 bytes too far back": (
        *(DENSE, {"swizzle": "64B"}),
        lambda case: {"b_desc": case.desc("b", start_address=lambda x: x.start_address + 32)},
    ),
    "B descriptor: the tile is read K-major, but was stored MN-major": (
        *(DENSE, {}),
        lambda case: {"imm_trans_b": 1},
    ),
    "A: warp off by +1": (
        *(DENSE, {"shared_a": False}),
        lambda case: {"a": np.roll(case.arguments["a"], -32, axis=0)},
    ),
    "A: registers 1 and 2 exchanged": (
        *(DENSE, {"shared_a": False}),
        lambda case: {"a": case.arguments["a"][:, [0, 2, 1, 3]]},
    ),
    "A: lane group off by +1": (
        *(DENSE, {"shared_a": False}),
        lambda case: {"a": np.roll(case.arguments["a"].reshape(4, 32, 4), -4, axis=1).reshape(128, 4)},
    ),
    "C: rows g and g + 8 exchanged": (
        *(DENSE, {}),
        lambda case: {"c": case.arguments["c"].reshape(128, -1, 2, 2)[:, :, ::-1].reshape(128, -1)},
    ),
    "metadata: warp 0's elements in every warp": (
        *(SPARSE, {}),
        lambda case: {"e": np.tile(case.arguments["e"][:32], (4, 1))},
    ),
    "C: not added": (DENSE, {}, lambda case: {"scale_d": 0}),
    "C: what D held before, in spite of scale-d": (DENSE, {"scale_d": 0}, lambda case: {"scale_d": 1}),
    "B: negated": (DENSE, {}, lambda case: {"imm_scale_a": -1}),
    "A and B: f32 not rounded to tf32 (cvt.rna)": (TF32, {}, None),
    "type of B s8 instead of u8": (S8, {}, None),
}


def made(case: Case, change: Any) -> Any:
    """D with the change, or for those about arithmetic with other numbers or another form."""
    if change:
        return case.d(**change(case))
    if case.form.a.name == "s8":
        return warpsim.execute(str(case.form).replace("s8.u8", "s8.s8"), target="sm_90a", **case.arguments)
    words = case.memory.view(np.uint32) + np.uint32(0x1000) & np.uint32(0xFFFFE000)
    return case.d(shared=words.view(np.uint8))


@pytest.mark.parametrize("name", BY_HAND)
def test_mistakes_made_by_hand(name: str) -> None:
    mnemonic, settings, change = BY_HAND[name]
    case = Case(mnemonic, **settings)
    if case.form.a.name == "s8":
        case.memory[1024:] |= 0x80  # signs matter
    d = made(case, change)
    assert not np.array_equal(d, case.d())
    assert name in names(case.found(d, most=1))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_mistakes_in_every_form_are_found(form: Instruction) -> None:
    rng = np.random.default_rng(len(str(form)))
    setting = random_setting(form, rng)
    others = other_causes(setting)
    for mistake in (of_grammar(setting, rng, parts=False), others[int(rng.integers(len(others)))]):
        outcome = trial(setting, [mistake], int(rng.integers(1000)), 1)
        assert outcome in ("found", "no effect"), mistake.name


def test_an_operand_with_fewer_places_than_lanes() -> None:
    """B of m64n8k8 has 64 places for 128 lanes: to name its map ended in a division by zero."""
    form = warpsim.decode("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", target="sm_90a")
    setting = random_setting(form, np.random.default_rng(0))
    mistakes = (of_grammar(setting, np.random.default_rng(seed), parts=False) for seed in range(99))
    mistake = next(each for each in mistakes if each.operands == ("b",))
    assert trial(setting, [mistake], 0, 1) == "found"


def test_two_mistakes() -> None:
    case = Case(DENSE, shared_a=False)
    change = {"b_desc": case.desc("b", **EXCHANGED), "a": case.arguments["a"][:, [1, 0, 3, 2]]}
    found = case.found(case.d(**change))
    assert (B_EXCHANGED, "A: rows g and g + 8 exchanged") in {
        tuple(sorted(one.names, reverse=True)) for match in found.matches for one in match.equivalent
    }


def test_as_expected_and_the_pattern_of_what_is_not() -> None:
    case = Case(DENSE, shared_a=False)
    assert str(case.found(case.d())) == "D is as expected, bit for bit"
    d = case.d()
    d[32:64] = 0
    assert case.found(d, most=1).wrong.text == "rows 16-31 wrong, columns all alike"


def test_several_tiles_with_one_descriptor() -> None:
    case = Case(DENSE)
    memories = np.stack([case.memory, np.roll(case.memory, 2)])
    case.arguments["shared"] = memories
    d = case.d(b_desc=case.desc("b", **EXCHANGED))
    assert d.shape == (2, 128, 16)
    assert B_EXCHANGED in names(case.found(d, most=1))
    case.arguments["b_desc"] = np.array([case.arguments["b_desc"]] * 2, np.uint64) + np.array(
        [0, 1], np.uint64
    )
    with pytest.raises(OperandError, match="b_desc: diagnosis takes one descriptor for all tiles, not 2"):
        case.found(d)


def test_arguments_are_checked() -> None:
    case = Case(DENSE)
    with pytest.raises(OperandError, match="reads B from shared memory: give b_desc= and shared="):
        diagnose(case.form, a=np.zeros((128, 4), np.uint32), d=case.d())
    with pytest.raises(OperandError, match="no operand is called x; there are a, b, c"):
        diagnose(case.form, d=case.d(), x=1)


@pytest.mark.parametrize("n", [8, 256])
def test_fast_enough(n: int) -> None:
    case = Case(f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16", shared_a=False)
    noise = np.random.default_rng(0).integers(0, 1 << 32, case.d().shape, np.uint32)
    for most, seconds in ((1, 15.0), (2, 10.0)):  # the first compiles
        start = time.process_time()
        case.found(noise, most=most)
        assert time.process_time() - start < seconds


# --- misreadings ---------------------------------------------------------------------------------------


def test_misreadings_are_what_other_descriptors_read() -> None:
    descriptor = Descriptor(start_address=1024, leading_byte_offset=128, stride_byte_offset=256)
    shape = TileShape(mn=16, k=16, element_bits=16, major="K")
    found = misreadings(descriptor, shape, 1 << 14)
    assert len({one.addresses.tobytes() for one in found}) == len(found)
    own = tile_addresses(descriptor, shape)
    assert all(not np.array_equal(one.addresses, own) for one in found)
    EXCHANGE = {"leading_byte_offset": (128, 256), "stride_byte_offset": (256, 128)}
    (exchanged,) = (one for one in found if one.fields == EXCHANGE)
    other = replace(descriptor, leading_byte_offset=256, stride_byte_offset=128)
    assert np.array_equal(exchanged.addresses, tile_addresses(other, shape))
    assert exchanged.how == f"{other.encode():#018x} (start 0x0400, LBO 256, SBO 128, swizzle none), K-major"
    assert all(one.addresses.min() >= 0 and one.addresses.max() < 1 << 14 for one in found)


def test_a_misreading_outside_of_the_memory_hides_no_other() -> None:
    """A step further leaves the memory at once, steps back do not."""
    descriptor = Descriptor(start_address=4096 - 512, leading_byte_offset=128, stride_byte_offset=256)
    found = misreadings(descriptor, TileShape(mn=16, k=16, element_bits=16, major="K"), memory_bytes=4096)
    starts = [one.fields.get("start_address") for one in found if list(one.fields) == ["start_address"]]
    assert starts[:4] == [(3584, 224), *((3584, 3584 - 256 * steps) for steps in (1, 2, 3))]
