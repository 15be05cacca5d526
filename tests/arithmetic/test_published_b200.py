"""Words that a B200 gave for tcgen05.mma, as others published them, reproduced bit for bit.

sf-tensor/tcgen05 (MIT), tcgen05_model/validation.py, commit 6f19f22: inputs and D of single elements. They
are not part of this repository: where they are not found beside it, these tests are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from warpsim.execution.pipeline import execute_operands, rule_for
from warpsim.isa.descriptors.instruction_descriptor import InstructionDescriptor
from warpsim.isa.products import Operands

WORDS = Path(__file__).resolve().parents[2].parent / "shared" / "hw" / "B200_tcgen05.json"
VECTORS = json.loads(WORDS.read_text())["vectors"] if WORDS.exists() else []
F8F6F4 = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
FORMS: dict[
    str, tuple[str, dict[str, int]]
] = {  # by kind: mnemonic behind the CTAs, fields of the descriptor
    "tf32": ("kind::tf32", {"a_type": 2, "b_type": 2, "d_type": 1}),
    "bf16": ("kind::f16", {"a_type": 1, "b_type": 1, "d_type": 1}),
    "f16": ("kind::f16", {"d_type": 1}),
    **{
        name: ("kind::f8f6f4", {"a_type": code, "b_type": code, "d_type": 1}) for name, code in F8F6F4.items()
    },
    "mx-e2m1": ("kind::mxf8f6f4.block_scale", {"a_type": 5, "b_type": 5, "scale_type": 1}),
    "mxf4": ("kind::mxf4.block_scale.block32", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "mxf4nvf4-2x": ("kind::mxf4nvf4.block_scale.block32", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "mxf4nvf4-4x": ("kind::mxf4nvf4.block_scale.block16", {"a_type": 1, "b_type": 1, "scale_type": 1}),
    "nvfp4": ("kind::mxf4nvf4.block_scale.block16", {"a_type": 1, "b_type": 1, "scale_type": 0}),
}


def form_of(vector: dict[str, Any]) -> Any:
    signs = {"u8": 0, "s8": 1}
    modifiers, fields = FORMS.get(vector["kind"], ("kind::i8", {}))
    if vector["kind"] == "i8":
        types = {"a_type": signs[vector["at"]], "b_type": signs[vector["bt"]]}
        fields = {**types, "d_type": 2, "saturate": vector["sat"]}
    kind = modifiers.split(".")[0].removeprefix("kind::")
    word = InstructionDescriptor(kind=kind, m=128, n=8, **fields).encode()
    return warpsim.decode(f"tcgen05.mma.cta_group::1.{modifiers}", target="sm_100a", idesc=word)


def operands_of(vector: dict[str, Any], form: Any) -> Operands:
    """One row of A, one column of B, one element of C."""
    shift = 16 if vector["kind"] == "bf16" else 0

    def codes(name: str, dtype: Any) -> Any:
        return (np.array(vector[name], np.uint32) >> np.uint32(shift * (name in "ab"))).astype(dtype)

    scales = {}
    if form.scale is not None:
        scales = {
            "scale_a": codes("sa", np.uint8)[None, None],
            "scale_b": codes("sb", np.uint8)[None, :, None],
        }
    return Operands(
        product=form.product,
        a=codes("a", form.a.code_dtype)[None, None],
        b=codes("b", form.b.code_dtype)[None, :, None],
        c=codes("c", np.uint32)[None, None, None].astype(form.c.code_dtype),
        **scales,
    )


@pytest.mark.skipif(not VECTORS, reason="the published words are not here")
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_published_words(engine: Any) -> None:
    different = []
    for vector in VECTORS:
        form = form_of(vector)
        d = execute_operands(operands_of(vector, form), rule_for(form), engine)
        if int(d.ravel()[0]) != vector["d"]:
            different.append(vector["name"])
    assert (len(VECTORS), different) == (58, [])
