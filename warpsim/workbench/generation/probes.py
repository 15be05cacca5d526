"""A vector set as a trace: PTX text that runs here, and in a kernel on a GPU.

Each case loads its registers (and shared memory), executes the instruction and states the D expected. Knows
the lines of traces.py; does not write files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import NotModelled, OperandError, present
from ..vectors.sets import VectorSet

Arrays = dict[str, npt.NDArray[Any]]
_TYPES = {"f32": "f32", "s32": "s32", "f64": "f64"}
LARGEST = 64  # cases of one trace


def probe(vectors: VectorSet, data: str, comments: Sequence[str] = ()) -> tuple[str, Arrays]:
    """Return text and arrays of a trace of all cases; ``data`` is the name of the file that the arrays
    will be in.

    ``comments`` stand above each case. Raises OperandError for more than 64 cases, NotModelled for cases of
    tcgen05.mma: traces have no tensor memory.
    """
    if vectors.instruction.descriptor is not None:
        raise NotModelled(f"{vectors.instruction}: traces have no tensor memory; write the vectors alone")
    if len(vectors) > LARGEST:
        raise OperandError(f"a trace has at most {LARGEST} cases, not {len(vectors)}: give a smaller set")
    writer = _Writer(vectors, data)
    for case in range(len(vectors)):
        writer.case(case, comments[case] if comments else "")
    return "\n".join(writer.lines) + "\n", writer.arrays


class _Writer:
    """The lines and arrays of one trace."""

    def __init__(self, vectors: VectorSet, data: str) -> None:
        self.vectors, self.form = vectors, vectors.instruction
        self.arrays: Arrays = {}
        self.lines = [f"// {vectors.title}", f"//! target {self.form.target}", f"//! data {data}"]
        self.descriptors = not self.form.has_registers("b")
        if self.descriptors:
            shared = present(vectors.shared, "shared")
            self.lines += [
                "//! warpgroup",
                f".shared .align 1024 .b8 tiles[{shared.shape[1]}];",
                ".reg .pred %accumulate;",
            ]

    def case(self, case: int, comment: str) -> None:
        """Write one case: data, statement, expectation."""
        self.lines += ["", f"// case {case}{': ' if comment else ''}{comment}"]
        d = f"d{case}"
        for name, words in self.vectors.registers.items():
            if not (self.descriptors and name == "c"):
                self.load(f"{name}{case}", words[case], self.type_of(name))
        count = self.form.held("d").words
        self.lines.append(f".reg .{_TYPES.get(self.form.d.name, 'b32')} %{d}_<{count}>;")
        statement = self.warpgroup(case) if self.descriptors else self.warp(case)
        self.lines += statement
        self.arrays[d] = self.vectors.d[case]
        self.lines.append(f"//! expect %{d}_<{count}> = {d}")

    def load(self, stem: str, words: Any, register_type: str) -> None:
        self.arrays[stem] = words
        self.lines.append(f".reg .{register_type} %{stem}_<{words.shape[-1]}>;")
        self.lines.append(f"//! load %{stem}_<{words.shape[-1]}> = {stem}")

    def type_of(self, operand: str) -> str:
        if operand not in ("a", "b", "c"):
            return "b32"
        return _TYPES.get(self.form.format(operand).name, "b32")

    def names(self, operand: str, case: int) -> str:
        count = self.form.held(operand).words
        return "{" + ", ".join(f"%{operand}{case}_{i}" for i in range(count)) + "}"

    def immediate(self, name: str, case: int) -> int:
        value = np.asarray(self.vectors.immediates[name])
        return int(value[case] if value.ndim else value)

    def warp(self, case: int) -> list[str]:
        """Return the statement of a warp's instruction."""
        operands = [self.names(name, case) for name in "dabc"]
        if self.form.sparse:
            operands += [f"%e{case}_0", str(self.immediate("selector", case))]
        if self.form.scale is not None:
            for side in "ab":
                ids = ", ".join(str(self.immediate(f"{x}_id_{side}", case)) for x in ("byte", "thread"))
                operands += [f"%scale_{side}{case}_0", f"{{{ids}}}"]
        return [f"{self.form.mnemonic} {', '.join(operands)};"]

    def warpgroup(self, case: int) -> list[str]:
        """Return the statements around a wgmma: shared memory, descriptors, fence, commit and wait."""
        shared = present(self.vectors.shared, "shared")
        self.arrays[f"shared{case}"] = shared[case]
        self.arrays[f"c{case}"] = self.vectors.registers["c"][case]
        count = self.form.held("d").words
        lines = [
            f"//! load %d{case}_<{count}> = c{case}",
            f"//! shared tiles = shared{case}",
            f".reg .b64 %desc{case}_<2>;",
            f"mov.pred %accumulate, {self.immediate('scale_d', case)};",
        ]
        sources = []
        for index, side in enumerate("ab"):
            words = self.vectors.descriptors.get(f"{side}_desc")
            if words is None:
                sources.append(self.names(side, case))
                continue
            lines.append(f"mov.b64 %desc{case}_{index}, {int(words[case]):#x};")
            sources.append(f"%desc{case}_{index}")
        operands = [self.names("d", case), *sources]
        if self.form.sparse:
            operands += [f"%e{case}_0", str(self.immediate("selector", case))]
        operands += ["%accumulate", *self.modifiers(case)]
        return [
            *lines,
            "wgmma.fence.sync.aligned;",
            f"{self.form.mnemonic} {', '.join(operands)};",
            "wgmma.commit_group.sync.aligned;",
            "wgmma.wait_group.sync.aligned 0;",
        ]

    def modifiers(self, case: int) -> list[str]:
        """Return imm-scale, which floating point has, and imm-trans of 16-bit elements in shared memory."""
        names: list[str] = []
        if self.form.a.is_float:
            names += ["imm_scale_a", "imm_scale_b"]
        if self.form.a.bits == 16:
            names += ["imm_trans_a"] if "a_desc" in self.vectors.descriptors else []
            names += ["imm_trans_b"]
        return [str(self.immediate(name, case)) for name in names]
