"""tcgen05.mma as it is recorded: operands that were put there by hand, of which the reference makes D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.described_products import Product, mnemonic
from tests.helpers.families import sample
from tests.helpers.tensor_core import Run
from warpsim.isa.fragments import gather, indices_of, read_fields
from warpsim.observe.recording.recorder import LaunchEvent
from warpsim.sums.execution.pipeline import checked_inputs, execute_inputs


def recorded(run: Run, schedule: Any = "program") -> LaunchEvent:
    """The event of the only mma of a run; the reference engine makes its D of its inputs."""
    (event,) = run.report(record=True, schedule=schedule).events
    np.testing.assert_array_equal(execute_inputs(event.instruction, event.inputs, "reference"), event.d)
    return event


def check(product: Product, event: LaunchEvent) -> None:
    """The operands and D of an event, as matrices, against those of the product."""
    form = product.instruction
    assert event.instruction == form
    inputs = checked_inputs(form, event.inputs)
    found = gather(form, inputs)
    flip = [
        ins.code_dtype.type(ins.sign_bit) * flag
        for ins, flag in zip((form.a, form.b), form.product.negated, strict=True)
    ]
    np.testing.assert_array_equal(found.a, product.a ^ flip[0] if flip[0] else product.a)
    np.testing.assert_array_equal(found.b, product.b ^ flip[1] if flip[1] else product.b)
    np.testing.assert_array_equal(found.c, product.c)
    if form.sparse:
        fields = read_fields(form, event.inputs.registers["e"], 0)
        np.testing.assert_array_equal(indices_of(form, fields), product.indices)
    for name, codes in product.scales.items():
        np.testing.assert_array_equal(getattr(found, name), codes)
    np.testing.assert_array_equal(form.held("d").codes(event.d), product.expected)


FORMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "f16"}, {"negate_a": 1, "m": 64, "in_memory": True}),
    ({"kind": "tf32"}, {"tiles": (1, 1), "transpose_a": 1, "transpose_b": 1, "n": 32}),
    ({"kind": "f8f6f4"}, {"a_type": 5, "b_type": 3, "in_memory": True}),
    ({"kind": "i8", "ws": True}, {"m": 32, "n": 128}),
    ({"kind": "f16", "ws": True, "sp": True}, {"m": 64}),
    ({"kind": "f16", "sp": True}, {"selector": 1, "m": 64}),
    ({"kind": "f16", "ctas": 2}, {"m": 128, "in_memory": True}),
    ({"kind": "i8", "ctas": 2, "sp": True}, {"m": 128, "n": 32}),
    ({"kind": "mxf8f6f4"}, {"scale_a_id": 1, "scale_b_id": 2, "n": 72}),
    ({"kind": "mxf8f6f4", "ctas": 2}, {"m": 128, "n": 128}),
    ({"kind": "mxf4", "vector": "block32", "sp": True}, {"n": 40}),
    ({"kind": "mxf4nvf4", "vector": "block16"}, {"scale_type": 0, "in_memory": True}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "fields"), sample(FORMS, 2))
def test_operands_are_those_of_the_statement(form: dict[str, Any], fields: dict[str, Any]) -> None:
    product = Product(mnemonic(**form), **fields)
    event = recorded(product.run())
    check(product, event)
    assert (event.own_warps, event.place) == (range(1), "CTA (0, 0, 0), warp 0, step 0")
    names = ("a",) * product.in_memory + ("e",) * product.form.sparse
    names += ("scale_a", "scale_b") if product.scales else ()
    lies = {"a": "r1", "e": "r2", "scale_a": "r6", "scale_b": "r7", "d": "r0"}
    assert event.addresses == {name: product.places[lies[name]] for name in (*names, "d")}


def test_the_place_is_that_of_the_statement_when_it_completes_late() -> None:
    product = Product(mnemonic("f16"))
    event, late = recorded(product.run()), recorded(product.run(), "latest")
    assert (event.pc, event.line) == (late.pc, late.line)
    assert late.time > event.time
    assert event.statement.mnemonic == product.mnemonic
    np.testing.assert_array_equal(event.d, late.d)


def test_shared_memory_ends_behind_what_is_read_in_each_cta() -> None:
    alone, pair = Product(mnemonic("f16")), Product(mnemonic("f16", ctas=2), m=256, n=32)
    ends = [1024 + 32 * 1024 + rows // 8 * 1024 for rows in (64, 16)]
    assert recorded(alone.run()).inputs.shared.shape == (ends[0],)
    event = recorded(pair.run())
    assert event.inputs.shared.shape == (2 * ends[1],)


def test_an_accumulator_that_is_not_read_is_absent_unless_lanes_of_it_stay() -> None:
    product = Product(mnemonic("f16"))
    run = product.run()
    run.words["r5"] = 0
    event = recorded(run)
    assert not event.inputs.scale_d
    assert set(event.inputs.registers) == set()
    run.statement = run.statement.replace("r4, enable", "r4, {r8, r9, r10, r11}, enable")
    run.words |= {"r8": 0, "r9": 1, "r10": 0x80000000, "r11": 0xFFFFFFFF}
    event = recorded(run)
    assert event.inputs.tensor.disable_output_lane == (0, 1, 0x80000000, 0xFFFFFFFF)
    kept = [32, 95, *range(96, 128)]
    np.testing.assert_array_equal(event.d[kept], product.c[kept])
    product.c[:] = 0
    np.testing.assert_array_equal(event.d[:32], product.expected[:32])


def test_half_a_quarter_of_the_lanes_may_be_the_first() -> None:
    product = Product(mnemonic("f16"), m=64)
    run = product.run()
    run.cells = np.roll(run.cells, 16, axis=1)
    run.statement = run.statement.replace("r4, enable", "r4, {r8, r9, r10, r11}, enable")
    run.words |= {"r0": 16 << 16, "r8": 1 << 16 | 1, "r9": 1 << 31, "r10": 0, "r11": 0}
    event = recorded(run)
    assert event.addresses == {"d": 16 << 16}
    assert event.inputs.tensor.disable_output_lane == (1, 0x8000, 0, 0x10000)
    expected = product.expected
    expected[[0, 31]] = product.c[[0, 31]]  # lanes 0 and 47 from the first on
    np.testing.assert_array_equal(product.instruction.held("d").codes(event.d), expected)


def test_settings_of_d_and_of_columns_are_recorded() -> None:
    product = Product(mnemonic("f16"))
    run = product.run()
    run.statement = run.statement.replace("enable;", "enable, 3;")
    assert recorded(run).inputs.tensor.scale_input_d == 3
    product = Product(mnemonic("f16", ws=True), m=32, n=64)
    run = product.run()
    run.statement = run.statement.replace("enable;", "enable, q6;")
    run.words["q6"] = 1 << 39 | 2 << 40 | 3 << 48
    assert recorded(run).inputs.tensor.zero_column_mask == run.words["q6"]
