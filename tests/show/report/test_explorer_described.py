"""Descriptors and tensor memory in the explorer: its scripts against the descriptors and layouts of isa."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.explorer import Scripts
from warpsim.base.errors import WarpsimError
from warpsim.isa.descriptors.instruction_descriptor import KINDS, InstructionDescriptor
from warpsim.isa.descriptors.matrix_descriptor import Descriptor
from warpsim.isa.descriptors.tensor_descriptor import SWIZZLES, TensorDescriptor, tile_byte_addresses
from warpsim.isa.descriptors.tile_addresses import tile_addresses, touched_bytes
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.families import tcgen05
from warpsim.isa.families.tcgen05_operands import layout_of
from warpsim.isa.layouts.tensor_memory import TRANSFERS, TensorLayout
from warpsim.show.report.explorer.operand_cells import tensor_document

SWIZZLE_NAMES = ("none", "32B", "64B", "128B")


def offsets(seed: int) -> dict[str, int]:
    start, leading, stride = (16 * int(one) for one in np.random.default_rng(seed).integers(0, 512, 3))
    return {"start_address": start, "leading_byte_offset": leading, "stride_byte_offset": stride}


def outcome(ask: Callable[[], Any]) -> Any:
    """What is returned, or the message of the error that is raised."""
    try:
        return ask()
    except WarpsimError as error:
        return error.message


# --- descriptors of 64 bits --------------------------------------------------------------------------


@pytest.mark.parametrize("swizzle", SWIZZLE_NAMES)
@pytest.mark.parametrize(("major", "bits"), [("K", 8), ("K", 16), ("K", 32), ("MN", 16), ("MN", 8)])
@pytest.mark.parametrize("base", [0, 3])  # of a form without a tile, 0
def test_a_tile_of_wgmma_lies_where_the_descriptor_says(
    scripts: Scripts, swizzle: Any, major: Any, bits: int, base: int
) -> None:
    shape = TileShape(mn=24, k=256 // bits if major == "K" else 16, element_bits=bits, major=major)
    aligned = []
    base = 0 if (major, bits) == ("MN", 8) else base
    for seed in range(4):
        descriptor = Descriptor(**offsets(seed), swizzle=swizzle, base_offset=base)
        found = scripts("described", "wgmma", str(descriptor.encode()), major, *shape.extents, bits // 8)
        fields = [[one.name, one.bits, one.raw, one.value, one.meaning] for one in descriptor.fields(major)]
        assert [
            [*field[:3], field[3] if "bytes" in field[3] else str(field[2]), field[4]] for field in fields
        ] == found["fields"]
        expected = outcome(lambda one=descriptor: tile_addresses(one, shape))
        if isinstance(expected, str):
            assert found["error"].split(" of each")[0] in expected
            continue
        assert found["addresses"] == expected.tolist()
        assert found["ranges"] == touched_bytes(descriptor, shape).tolist()
        aligned.append(seed)
    assert aligned or base or (major, bits) == ("MN", 8)


@pytest.mark.parametrize("swizzle", SWIZZLES.values())
@pytest.mark.parametrize(("major", "size"), [("K", 1), ("K", 2), ("K", 4), ("MN", 1), ("MN", 2), ("MN", 4)])
def test_a_tile_of_tcgen05_lies_where_the_descriptor_says(
    scripts: Scripts, swizzle: Any, major: Any, size: int
) -> None:
    for seed, row_bytes, more in ((1, 32, {}), (2, 16 * size, {"base_offset": 2}), (3, 48, {"absolute": 1})):
        descriptor = TensorDescriptor(**offsets(seed), swizzle=swizzle, **more)
        found = scripts("described", "tcgen05", str(descriptor.encode()), major, 16, row_bytes // size, size)
        fields = [[one.name, one.bits, one.raw, one.value, one.meaning] for one in descriptor.fields(major)]
        assert found["fields"] == fields
        sizes: dict[str, Any] = {"rows": 16, "row_bytes": row_bytes, "element_bytes": size}
        expected = outcome(lambda: tile_byte_addresses(descriptor, **sizes, major=major))  # noqa: B023
        if isinstance(expected, str):
            assert found["error"].split(" of each")[0].split("; legal")[0] in expected
        else:
            assert found["addresses"] == expected[:, ::size].tolist()


@pytest.mark.parametrize(
    ("name", "decode"), [("wgmma", Descriptor.decode), ("tcgen05", TensorDescriptor.decode)]
)
def test_what_is_no_descriptor_is_said_as_python_says_it(scripts: Scripts, name: str, decode: Any) -> None:
    words = [1 << bit | (name == "tcgen05") << 46 for bit in range(64)]
    words += np.random.default_rng(5).integers(0, 1 << 64, 60, np.uint64).tolist()
    refused = 0
    for word in words:
        trouble = scripts("described", name, str(word), "K", 8, 16, 2)["trouble"]
        expected = outcome(lambda: decode(word))  # noqa: B023
        if isinstance(expected, str):
            assert trouble
            assert expected.startswith(trouble)
            refused += 1
        else:
            assert not trouble
    assert refused > 60


def test_a_field_is_edited_and_no_other(scripts: Scripts) -> None:
    word = Descriptor(start_address=0x400, stride_byte_offset=1024, swizzle="128B").encode()
    changed = int(scripts("edit", "wgmma", str(word), "leading_byte_offset", 4096))
    assert Descriptor.decode(changed) == Descriptor(
        start_address=0x400, leading_byte_offset=4096, stride_byte_offset=1024, swizzle="128B"
    )
    assert scripts("edit", "wgmma", str(word), "start_address", 8) is None
    assert scripts("edit", "wgmma", str(word), "start_address", 1 << 18) is None


# --- instruction descriptors -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_instruction_descriptor_is_read_as_python_reads_it(scripts: Scripts, kind: str) -> None:
    random = np.random.default_rng(7)
    for word in random.integers(0, 1 << 32, 40, np.uint32).tolist():
        found = scripts("instruction", kind, str(word))
        descriptor = outcome(lambda: InstructionDescriptor.decode(word, kind))  # noqa: B023
        if isinstance(descriptor, str):
            assert found["trouble"] == descriptor
            continue
        lines = [" ".join(line.split()) for line in descriptor.explain()[1:]]
        assert lines == [f"bits {span} {name} {raw:#04x} {text}" for span, name, raw, text in found["fields"]]
        types = outcome(lambda: (descriptor.a, descriptor.b, descriptor.d, descriptor.scale))  # noqa: B023
        trouble = types.partition("; legal")[0] if isinstance(types, str) else ""
        assert found["trouble"].partition("; legal")[0] == trouble


def test_the_forms_of_a_word_and_its_product(scripts: Scripts) -> None:
    found = scripts("instruction", "f16", str(0x0810_0010))
    assert found["product"] == "m128n64k16, D f32, A f16, B f16"
    assert found["forms"] == ["cta_group::1", "cta_group::2", "cta_group::1.ws"]


# --- tensor memory -----------------------------------------------------------------------------------

FORMS, ENTRIES = tcgen05.forms(), tensor_document()["forms"]


def sampled() -> Iterator[tuple[int, int, int, int]]:
    """Form, M, N and type of A: every form, every M, the least N, the first and the last type."""
    for at, entry in enumerate(ENTRIES):
        for m, _ in entry["m"]:
            for kind in {0, len(entry["types"]) - 1}:
                yield at, m, entry["n"][0], kind


def test_every_operand_lies_in_the_cells_of_its_layout(scripts: Scripts) -> None:
    compared = set()
    for at, m, n, number in sampled():
        form, kind = FORMS[at], ENTRIES[at]["types"][number]
        word = InstructionDescriptor(kind=form.kind.name, **described_fields(form, m, n, kind)).encode()
        ins = tcgen05.spelling_of(form).described(word)
        for operand in ("d", "a", *["e"] * form.sparse, *["scale_a", "scale_b"] * bool(kind["factors"])):
            layout = layout_of(ins, operand)
            case = (operand, form.ctas, form.sparse, m, n, *numbers(operand, kind))
            if case in compared:
                continue
            compared.add(case)
            found = scripts("cells", at, operand, m, n, number, 0)
            if layout is None:
                assert found is None
                continue
            assert found["places"] == layout.cells.tolist()
            assert found["held"] == len({tuple(cell) for cell in copied(layout)})
            assert sum(lanes * cells for _, _, lanes, _, cells, _ in found["blocks"]) == found["held"]
    assert len(compared) > 60


def numbers(operand: str, kind: dict[str, Any]) -> tuple[int, ...]:
    """What the layout of an operand is made of, besides the form."""
    if operand == "d":
        return ()
    return (kind["factors"],) if "scale" in operand else (kind["stored_k"], kind["storage"])


def copied(layout: TensorLayout) -> Iterator[list[int]]:
    """CTA, lane and column of every cell, of all copies."""
    for copy in layout.copies:
        yield from (layout.cells.reshape(-1, 4)[:, :3] + [0, copy, 0]).tolist()


def described_fields(form: tcgen05.Form, m: int, n: int, kind: dict[str, Any]) -> dict[str, int]:
    code = next(code for code, name in form.kind.multiplicands.items() if name == kind["a"])
    fields = {"m": m, "n": n, "a_type": code, "b_type": code, "sparse": int(form.sparse)}
    if form.kind.scales:
        fields["scale_type"] = next(code for code, name in form.kind.scales.items() if name == kind["scale"])
    fields["d_type"] = max(form.kind.results, default=0)
    return fields | ({"k_96": 1} if kind["k"] == 96 else {})


@pytest.mark.parametrize("name", TRANSFERS)
def test_ld_and_st_move_the_cells_of_their_shape(scripts: Scripts, name: str) -> None:
    shape = TRANSFERS[name]
    for count in (1, 2, 4):
        cells = shape.cells(count, 32)
        expected = [[*place, *cells[place].tolist()] for place in np.ndindex(*cells.shape[:2])]
        assert scripts("transfer", name, count, 32) == expected


def test_blocks_are_those_of_the_layout(scripts: Scripts) -> None:
    """D of a pair with M 128: rows of each CTA, the halves of N in lanes 0 and 64."""
    at = next(at for at, form in enumerate(FORMS) if form.ctas == 2 and not form.sparse)
    blocks = scripts("cells", at, "d", 128, 64, 0, 0)["blocks"]
    assert blocks == [[cta, lane, 64, 0, 32, 0] for cta in (0, 1) for lane in (0, 64)]
