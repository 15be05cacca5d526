"""What nvdisasm calls the matrix instruction that ptxas makes of a form.

The names follow from the form wherever ptxas 13.0 turns it into a single instruction, as nvdisasm prints it
for sm_75, sm_80, sm_89, sm_90a and sm_120a. Does not know which chip has to make several of a form.
"""

from __future__ import annotations

from .instruction import Instruction

_OPCODES = {
    **dict.fromkeys(("f16", "bf16", "tf32"), "HMMA"),
    **dict.fromkeys(("s8", "u8", "s4", "u4"), "IMMA"),
    "b1": "BMMA",
    "f64": "DMMA",
}


def name_of(form: Instruction) -> str:
    """Return the SASS name of a form, such as ``HMMA.SP.16832.F32`` or ``QGMMA.64x64x32.F32.E4M3.E4M3``."""
    opcode = _OPCODES.get(form.a.name, "QMMA")
    types = {
        "HMMA": [form.d.name, *([form.a.name] if form.a.name != "f16" else [])],
        "QMMA": [form.d.name, form.a.name, form.b.name],
        "IMMA": [form.a.name, form.b.name, *(["sat"] if form.satfinite else [])],
        "BMMA": [form.bit_operation, "popc"],
        "DMMA": [form.rounding] if form.rounding not in ("", "rn") else [],
    }[opcode]
    sparse = ["SP"] if form.sparse else []
    words = [*_begin(form, opcode), *sparse, _sizes(form), *types, *_scales(form)]
    return ".".join(word if word[0].isdigit() else word.upper() for word in words)


def _begin(form: Instruction, opcode: str) -> list[str]:
    if form.scale is not None:
        return ["OMMA" if form.storage("a").bits == 4 else opcode, "SF"]
    return [opcode.replace("MMA", "GMMA") if form.lanes > 32 else opcode]


def _sizes(form: Instruction) -> str:
    shape = form.shape
    crossed = form.lanes > 32 or form.a.bits == 64
    return f"{shape.m}x{shape.n}x{shape.k}" if crossed else f"{shape.m}{shape.n}{shape.k}"


def _scales(form: Instruction) -> list[str]:
    if form.scale is None:
        return []
    vector = [form.scale_vector] if form.scale_vector == "4X" else []
    return ["UE4M3" if form.scale.name == "ue4m3" else "E8", *vector]
