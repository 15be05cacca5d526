"""A family whose shape and signs come from a register: the same numbers as the mma that states them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import warpsim
from tests.helpers.compilation import done_by_kernels, done_by_numpy
from warpsim.base.errors import OperandError
from warpsim.isa.descriptors.packed_tiles import canonical_descriptor, canonical_image
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.families.mma import fragment
from warpsim.isa.formats import FORMATS
from warpsim.isa.fragments import fields_of, gather, gathered_scales, registers_of
from warpsim.isa.instruction import (
    REGISTERS,
    Family,
    Instruction,
    Spelling,
    accepts_all,
    in_shared_memory,
)
from warpsim.isa.operand_places.placements import Inputs
from warpsim.isa.products import Product, Shape
from warpsim.sums.execution.pipeline import execute_inputs, execute_operands, rule_for

TARGET = "sm_90a"
NEGATE_A = 1 << 16


def described(spelling: Spelling, descriptor: int) -> Product:
    """Bits 0-15: k. Bit 16: negate A. The mnemonic states the types, as kinds of tcgen05 do."""
    k = descriptor & 0xFFFF
    if k not in (8, 16):
        raise OperandError(f"descriptor {descriptor:#x}: k is 8 or 16, not {k}")
    half, single = FORMATS["f16"], FORMATS["f32"]
    negated = (bool(descriptor & NEGATE_A), False)
    shape = Shape(16, 8, k)
    return Product(shape=shape, a=half, b=half, c=single, d=single, operation="f16", negated=negated)


def toy(**places: object) -> Spelling:
    family = Family(
        name="toy",
        opcode="toy",
        lanes=32,
        rules="mma",
        rows=(),
        fragment=fragment,
        places=REGISTERS | places,  # type: ignore[operator]
        product=described,
    )
    mnemonic = "toy.mma.sync.aligned.kind::f16"
    return Spelling(
        mnemonic=mnemonic, target=TARGET, family=family, since=(9, 0), targets=frozenset({TARGET})
    )


def stated(k: int) -> Instruction:
    return warpsim.decode(f"mma.sync.aligned.m16n8k{k}.row.col.f32.f16.f16.f32", target=TARGET)


def matrices(form: Instruction) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(form.shape.k)
    return {x: rng.standard_normal(form.matrix_shape(x)).astype(form.format(x).dtype) for x in "abc"}


@pytest.mark.parametrize("k", [8, 16])
@pytest.mark.parametrize("way", [done_by_kernels, done_by_numpy])
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_a_descriptor_states_the_shape(k: int, way, engine) -> None:
    instruction, form = toy().described(k), stated(k)
    assert instruction.registers == form.registers
    registers = {x: warpsim.pack(form, x, matrix) for x, matrix in matrices(form).items()}
    with way():
        d = execute_inputs(instruction, Inputs(registers=registers), engine)
        np.testing.assert_array_equal(d, warpsim.execute(form, **registers))


@pytest.mark.parametrize("way", [done_by_kernels, done_by_numpy])
def test_a_descriptor_states_signs(way) -> None:
    form = stated(16)
    given = matrices(form)
    registers = {x: warpsim.pack(form, x, matrix) for x, matrix in given.items()}
    negative = registers | {"a": warpsim.pack(form, "a", -given["a"])}
    with way():
        d = execute_inputs(toy().described(16 | NEGATE_A), Inputs(registers=registers))
        np.testing.assert_array_equal(d, warpsim.execute(form, **negative))


def test_operands_lie_where_the_family_says() -> None:
    """B as a tile of shared memory, with a fragment of A and D in registers."""
    instruction, form = toy(b=(in_shared_memory,)).described(16), stated(16)
    given = matrices(form)
    registers = {x: warpsim.pack(form, x, given[x]) for x in "abc"}
    image = canonical_image(given["b"].T, major="K", swizzle="none")
    word = canonical_descriptor(0, TileShape(mn=8, k=16, element_bits=16, major="K"), swizzle="none").encode()
    inputs = Inputs(
        registers={x: registers[x] for x in "ac"},
        shared=image,
        b_descriptor=np.array(word, np.uint64),
    )
    for engine in ("kernel", "reference"):
        d = execute_inputs(instruction, inputs, engine)
        np.testing.assert_array_equal(d, warpsim.execute(form, **registers))


class _FieldsInMemory:
    """A place of metadata: the fields of a row, one a byte, in shared memory."""

    lanes = words = 0

    def holds(self, inputs: Inputs) -> bool:
        return inputs.shared is not None

    def gather(self, inputs: Inputs, product: Product) -> np.ndarray:
        assert inputs.shared is not None
        assert product.pattern is not None
        return inputs.shared.reshape(product.shape.m, product.shape.k // product.pattern.chunk)


class _CodesInMemory(_FieldsInMemory):
    """A place of scales: the codes, a byte each, in shared memory."""

    def __init__(self, instruction: Instruction, operand: str) -> None:
        lines = instruction.shape.m if operand == "scale_a" else instruction.shape.n
        self.operand, self.shape = operand, (lines, instruction.scale_chunks)

    def gather(self, inputs: Inputs, product: Product) -> np.ndarray:
        assert inputs.shared is not None
        first = 0 if self.operand == "scale_a" else 16 * self.shape[1]
        codes = inputs.shared[first : first + self.shape[0] * self.shape[1]].reshape(self.shape)
        return codes if self.operand == "scale_a" else codes.T


def elsewhere(form: Instruction, **places: object) -> Instruction:
    """The instruction, with other places of some operands, and B still in registers."""
    family = replace(
        form.family, name="elsewhere", places={**form.family.places, **places}, check=accepts_all
    )
    return replace(form, family=family, mnemonic=f"elsewhere.{form.mnemonic}")


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_metadata_lies_where_the_family_says(engine) -> None:
    form = warpsim.decode(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target=TARGET
    )
    rng = np.random.default_rng(1)
    dense = warpsim.prune(rng.standard_normal((16, 32)).astype(np.float16), form)
    values, indices = warpsim.compress(dense, form)
    registers = {
        "a": warpsim.pack(form, "a", values),
        "b": warpsim.pack(form, "b", rng.standard_normal((32, 8)).astype(np.float16)),
        "c": np.zeros((32, 4), np.uint32),
    }
    other = elsewhere(form, e=(lambda instruction, operand: _FieldsInMemory(),))
    assert other.registers == {"a": 4, "b": 4, "c": 4, "d": 4}
    fields = fields_of(form, indices)
    operands = gather(other, Inputs(registers=registers, shared=fields.ravel()))
    d = registers_of(execute_operands(operands, rule_for(form), engine), other, "d")
    expected = warpsim.execute(form, **registers, e=warpsim.pack_metadata(form, indices))
    np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_scales_lie_where_the_family_says(engine) -> None:
    form = warpsim.decode(
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        target="sm_120a",
    )
    rng = np.random.default_rng(2)
    registers = {name: rng.integers(0, 1 << 32, (32, form.registers[name]), np.uint32) for name in "ab"}
    registers["c"] = np.zeros((32, 4), np.uint32)
    scales = {f"scale_{x}": rng.integers(0, 1 << 32, (32, 1), np.uint32) & 0x3F3F3F3F for x in "ab"}
    inputs = Inputs(registers=registers | scales)
    codes = gathered_scales(form, inputs)
    shared = np.concatenate([codes["scale_a"].ravel(), codes["scale_b"].T.ravel()])
    other = elsewhere(form, scale_a=(_CodesInMemory,), scale_b=(_CodesInMemory,))
    operands = gather(other, Inputs(registers=registers, shared=shared))
    d = registers_of(execute_operands(operands, rule_for(form), engine), other, "d")
    np.testing.assert_array_equal(d, warpsim.execute(form, **registers, **scales))


def test_an_operand_without_registers_has_none() -> None:
    with pytest.raises(OperandError, match="has no MetadataRegisters of operand e"):
        _ = stated(16).metadata


def test_errors_of_a_descriptor_are_those_of_the_family() -> None:
    with pytest.raises(OperandError, match="k is 8 or 16, not 12"):
        toy().described(12)


def test_a_mnemonic_that_states_its_product_has_no_descriptor() -> None:
    with pytest.raises(AssertionError, match="the mnemonic states the product"):
        stated(16).described(16)


def test_signs_of_a_descriptor_and_of_immediates_cancel() -> None:
    product = toy().described(16 | NEGATE_A).product
    assert product.with_immediates((True, True), (False, False)).negated == (False, True)
