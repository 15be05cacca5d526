"""Benches of tcgen05.mma under Icarus Verilog: their package finds what the manual's formulas placed.

Operands lie by hand (tests/helpers/described_products.py); a device prints what it finds of them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.described_products import Product, mnemonic
from tests.helpers.families import sample
from tests.helpers.sv_simulation import filled_in, simulate
from tests.helpers.tensor_core import Run
from warpsim.workbench.vectors.benches import write_bench
from warpsim.workbench.vectors.recordings import Recording
from warpsim.workbench.vectors.sets import VectorSet

PRODUCTS = {
    "F, A in tensor memory, f16 D": (mnemonic("f16"), {"m": 64, "n": 8, "d_type": 0, "in_memory": True}),
    "A, a pair, N of no power of two": (mnemonic("i8", ctas=2), {"m": 256, "n": 32}),
    "B, halves of 48 columns": (mnemonic("f8f6f4", ctas=2), {"m": 128, "n": 96, "in_memory": True}),
    "C, sparse": (mnemonic("f16", ctas=2, sp=True), {"m": 128, "n": 32}),
    "D, 6-bit and 4-bit elements": (mnemonic("f8f6f4"), {"n": 8, "a_type": 3, "b_type": 5}),
    "E, sparse tf32": (mnemonic("tf32", ws=True, sp=True), {"m": 64, "n": 64}),
    "G": (mnemonic("f16", ws=True), {"m": 32, "n": 64}),
    "transposed, 128B": (
        mnemonic("f16"),
        {"m": 64, "n": 64, "transpose_a": 1, "transpose_b": 1, "tiles": (2, 2)},
    ),
    "transposed, atoms of 32 bytes": (
        mnemonic("tf32"),
        {"m": 64, "n": 32, "transpose_a": 1, "transpose_b": 1, "tiles": (1, 1)},
    ),
    "transposed, no swizzle": (mnemonic("f16"), {"m": 64, "n": 8, "transpose_b": 1, "tiles": (0, 0)}),
    "64B and 32B": (mnemonic("f16"), {"m": 64, "n": 8, "tiles": (4, 6)}),
    "scales, byte 2": (mnemonic("mxf4", vector="scale_vec::2X"), {"n": 40, "scale_a_id": 2, "scale_b_id": 2}),
    "sparse nvfp4, scales in eight columns": (
        mnemonic("mxf4nvf4", sp=True, vector="scale_vec::4X"),
        {"n": 136},
    ),
    "scales of a pair, B": (mnemonic("mxf8f6f4", ctas=2), {"n": 64, "in_memory": True}),
    "K of 96": (mnemonic("mxf4", vector="scale_vec::2X"), {"n": 8, "k_96": 1}),
}


ROWS, COLUMNS = 5, 3  # of which one is printed: steps that reach every bit of an index


def recorded(product: Product) -> VectorSet:
    """The set of a launch of one product."""
    return of_run(product, product.run())


def of_run(product: Product, run: Run) -> VectorSet:
    events = run.report(record=True).events
    whole = Recording(
        kernel="k", file="k.ptx", target=product.target, grid=(1, 1, 1), block=(128, 1, 1), events=events
    )
    (item,) = whole.sets()
    return item.vectors


def printer(vectors: VectorSet) -> str:
    """A device that prints elements of A, B and C, the columns of a sparse A, and scale factors."""
    form, held = vectors.instruction, vectors.registers
    values = {name: (f"{name}_element({name}, i, j)", *_sizes(name)) for name in held if name in "abc"}
    for side in "ab":
        if f"{side}_desc" in vectors.descriptors:
            values[side] = (f"{side}_element(shared, {side}_desc, i, j)", *_sizes(side))
    if form.sparse:
        values["columns"] = ("a_column(e, i, j)", *_sizes("a"))
    if form.scale:
        values["scale_a"] = ("scale_a_element(scale_a, i, j)", "M", "SCALES")
        values["scale_b"] = ("scale_b_element(scale_b, j, i)", "SCALES", "N")
    body = "".join(
        f"for (int i = 0; i < {rows}; i += {ROWS}) for (int j = 0; j < {columns}; j += {COLUMNS})\n"
        f'  $display("{name} %h", {value});\n'
        for name, (value, rows, columns) in values.items()
    )
    return f"  always @(posedge clock) if (start) begin\n{body}  end\nendmodule\n"


def _sizes(name: str) -> tuple[str, str]:
    return f"{name.upper()}_ROWS", f"{name.upper()}_COLUMNS"


def columns_of(product: Product) -> Any:
    """The column in K of each stored element, from the indices."""
    pattern = product.instruction.pattern
    assert pattern is not None
    indices = product.indices.reshape(len(product.a), -1, pattern.kept, 1).astype(int)
    chunks = np.arange(indices.shape[1])[:, None, None] * pattern.chunk
    return (chunks + indices * pattern.unit + np.arange(pattern.unit)).reshape(product.a.shape)


@pytest.mark.parametrize("name", sample(PRODUCTS, 2))
def test_the_package_finds_what_was_placed(name: str, tmp_path: Path) -> None:
    spelling, fields = PRODUCTS[name]
    product = Product(spelling, **fields)
    expected = {"a": product.a, "b": product.b, "c": product.c, **product.scales}
    if product.instruction.sparse:
        expected["columns"] = columns_of(product)
    chosen = {key: array[::ROWS, ::COLUMNS].ravel().tolist() for key, array in expected.items()}
    assert found(tmp_path, recorded(product)) == chosen


def found(folder: Path, vectors: VectorSet) -> dict[str, list[int]]:
    """What a device prints, by name."""
    written = write_bench(folder / "cases.hex", vectors)
    filled_in(folder, printer(vectors))
    run = simulate(folder, written.command, "+timeout=2")
    assert run.stderr == ""
    printed: dict[str, list[int]] = {}
    for name, word in re.findall(r"^(a|b|c|columns|scale_a|scale_b) (\w+)$", run.stdout, re.MULTILINE):
        printed.setdefault(name, []).append(int(word, 16))
    return printed


# --- comparing -------------------------------------------------------------------------------------


def test_a_device_that_multiplies_passes(tmp_path: Path) -> None:
    """A sparse product with the functions of the package; disabled lanes keep what the template has there."""
    product = Product(mnemonic("i8", sp=True), m=64, n=8)
    run = product.run()
    run.statement = run.statement.replace("r4, enable", "r4, {r8, r9, r10, r11}, enable")
    run.words |= {"r8": 5, "r9": 0, "r10": 0, "r11": 1 << 7}
    vectors = of_run(product, run)
    written = write_bench(tmp_path / "cases.hex", vectors)
    path = tmp_path / "cases_dut.sv"
    text = path.read_text()
    assert "if (!disable_output_lane[d_lane(row, column)])" in text
    returned = re.search(r" +element = .*\n", text)
    assert returned
    body = (
        "    element = c[c_place(row, column) +: C_BITS];\n"
        "    for (int i = 0; i < A_COLUMNS; i++)\n"
        "      element = element + 32'(shared[a_place(a_desc, row, i) +: A_BITS])\n"
        "          * 32'(shared[b_place(b_desc, a_column(e, row, i), column) +: B_BITS]);\n"
    )
    path.write_text(text.replace(returned[0], body))
    passed = simulate(tmp_path, written.command)
    assert (passed.returncode, passed.stdout) == (0, "passed: 1 cases, 1024 cells of D as expected\n")
    path.write_text(text.replace(returned[0], body).replace("!disable", "1'b1 || !disable"))
    failed = simulate(tmp_path, written.command)
    assert failed.returncode == 1
    listed = re.findall(r"^case 0, lane (\d+), column (\d+): expected", failed.stdout, re.MULTILINE)
    assert {int(lane) for lane, _ in listed} == {0, 2, 103}
    assert "FAILED: 24 of 1024 cells of D differ, in 1 of 1 cases\n" in failed.stdout


def test_the_undefined_half_of_a_cell_is_not_compared(tmp_path: Path) -> None:
    vectors = recorded(Product(mnemonic("f16"), m=64, n=8, d_type=0))
    written = write_bench(tmp_path / "cases.hex", replace(vectors, d=vectors.registers["c"]))
    upper = (
        "  genvar i;\n  assign done = start;\n  for (i = 0; i < 1024; i = i + 1)\n"
        "    assign d[32 * i +: 32] = {16'hdead, c[32 * i +: 16]};\nendmodule\n"
    )
    filled_in(tmp_path, upper)
    assert simulate(tmp_path, written.command).stdout == "passed: 1 cases, 1024 cells of D as expected\n"
    filled_in(tmp_path, upper.replace("16'hdead, c", "16'hdead, ~c"))
    assert "FAILED: 1024 of 1024 cells" in simulate(tmp_path, written.command).stdout
