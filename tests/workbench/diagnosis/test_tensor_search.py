"""One mistake in a tcgen05.mma, made by hand in what it reads, and the sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.described_products import Product, mnemonic
from tests.helpers.tensor_core import BASE
from warpsim.base.errors import OperandError
from warpsim.show.cli import main
from warpsim.sums.execution.inputs import inputs_by_name
from warpsim.workbench.diagnosis.search.tensor_search import TensorDiagnosis, diagnose_tensor

PLACES = {"c": 0, "a": 300, "e": 320, "scale_a": 330, "scale_b": 340}


def words_of(product: Product, columns: int = 2) -> dict[str, Any]:
    """The arguments of execute; metadata with so many columns."""
    run, form = product.run(), product.instruction
    given: dict[str, Any] = {}
    for name, first in PLACES.items():
        if name in form.registers and name != "a":
            width = columns if name == "e" else form.registers[name]
            given[name] = run.cells[0, :, first : first + width]
    shared = np.zeros(BASE + run.image.shape[1], np.uint8)
    shared[BASE:] = run.image[0]
    return given | {"shared": shared, "b_desc": run.b, "a_desc": run.a}


def diagnosed(form: Any, given: dict[str, Any], d: Any) -> TensorDiagnosis:
    return diagnose_tensor(form, inputs_by_name(given), d)


def test_a_selector_that_would_be_right() -> None:
    product = Product(mnemonic("f16", sp=True), n=16, selector=1)
    given = words_of(product)
    rng = np.random.default_rng(0)
    given["e"][:, 0] = rng.choice([0x44444444, 0x88888888, 0xEEEEEEEE], 128).astype(np.uint32)
    d = warpsim.execute(product.instruction, **given)
    wrong = Product(mnemonic("f16", sp=True), n=16, selector=0).instruction
    found = diagnosed(wrong, given, d)
    assert found.matches == ("with sparsity selector 1 instead of 0",)
    assert "with sparsity selector 1 instead of 0: the result matches bit for bit" in str(found)
    assert not diagnosed(wrong, given | {"e": given["e"][:, :1]}, d).found  # that column is not given


def test_exchanged_offsets_and_swizzles() -> None:
    product = Product(mnemonic("f16"), n=32, tiles=(0, 2))
    given = words_of(product)
    word = int(given["a_desc"])
    low, high = word >> 16 & 0x3FFF, word >> 32 & 0x3FFF
    swapped = word & ~(0x3FFF << 16 | 0x3FFF << 32) | high << 16 | low << 32
    d = warpsim.execute(product.instruction, **(given | {"a_desc": swapped}))
    found = diagnosed(product.instruction, given, d)
    assert any("LBO and SBO of A's descriptor are exchanged" in each for each in found.matches)
    product = Product(mnemonic("f16"), n=32, tiles=(2, 4))
    given = words_of(product)
    d = warpsim.execute(product.instruction, **(given | {"b_desc": int(given["b_desc"]) ^ 6 << 61}))
    found = diagnosed(product.instruction, given, d)
    assert any(
        each.startswith("the swizzle of B's descriptor is ") and each.endswith(" where 128B fits")
        for each in found.matches
    )


def test_factors_of_another_block() -> None:
    product = Product(mnemonic("mxf4", vector="block32"), n=32)
    given = words_of(product)
    d = warpsim.execute(product.instruction, **given)
    assert diagnosed(product.instruction, given, d).as_expected
    moved = given["scale_a"] & 0xFFFFFF00 | given["scale_a"] >> 8 & 0xFF
    d = warpsim.execute(product.instruction, **(given | {"scale_a": moved}))
    assert diagnosed(product.instruction, given, d).matches == ("SFA of k block 1 is used in block 0",)


def test_d_in_another_layout() -> None:
    product = Product(mnemonic("f16"), m=64, n=32)
    given = words_of(product)
    d = warpsim.execute(product.instruction, **given)
    read = d.copy()
    lanes = [32 * (r // 16) + r % 16 for r in range(64)]
    read[lanes] = d[:64]
    found = diagnosed(product.instruction, given, read)
    assert found.matches == ("the epilogue reads layout F without the gaps between its rows",)


def test_what_it_cannot_say() -> None:
    product = Product(mnemonic("f16"), n=32)
    given = words_of(product)
    d = warpsim.execute(product.instruction, **given)
    d[5, 3] ^= 1
    found = diagnosed(product.instruction, given, d)
    assert str(found).startswith("D differs in 1 of 4,096 elements\nnone of ")
    with pytest.raises(OperandError, match="one execution at a time"):
        diagnosed(product.instruction, given | {"c": given["c"][None]}, d[None])


def test_the_verb(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    product = Product(mnemonic("f16"), n=16)
    A, B = (codes.view(np.float16) for codes in (product.a, product.b))
    np.save("A.npy", A)
    np.save("B.npy", B)
    np.save("D.npy", warpsim.matmul(product.instruction, -A, B))
    text = [product.mnemonic, "--target", "sm_100a", f"idesc={product.descriptor.encode():#x}"]
    with pytest.raises(SystemExit) as end:
        main(["diff", *text, "A=A.npy", "B=B.npy", "D=D.npy"])
    assert end.value.code == 1
    assert "with negate A 1 instead of 0: the result matches bit for bit" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        main(["diff", *text, "A=A.npy", "B=B.npy"])
    assert end.value.code == 2
    assert "give the D that came out" in capsys.readouterr().err
