"""Kernels that fill shared memory and registers from arrays, execute one wgmma, and store D to an array.

Lane t of the grid has row t of every array; each CTA's shared memory is the rows of ``m`` of its lanes.
Knows the text around a wgmma; does not know what it computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

import warpsim
from tests.helpers.kernel_texts import kernel, registers
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.instruction import Instruction
from warpsim.isa.layouts.swizzle import Swizzle
from warpsim.programs.launch.launching import LaunchReport, load_text

Array = npt.NDArray[Any]

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned 0;"
VISIBLE = "fence.proxy.async; bar.sync 0;"
_TWO_OF_FOUR, _ONE_OF_TWO = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE), (0x4, 0xE)


def metadata(random: np.random.Generator, form: Instruction, lanes: int) -> Array:
    """Legal metadata words ``(lanes, 1)``."""
    legal = _ONE_OF_TWO if form.a.name == "tf32" else _TWO_OF_FOUR
    nibbles = random.choice(legal, (lanes, 8)).astype(np.uint32)
    words = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(axis=1, dtype=np.uint32)
    return np.asarray(words[:, None], np.uint32)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A wgmma of ``ctas`` CTAs of ``threads``: where A lies, the swizzle of tiles, and the immediates."""

    text: str
    a_in_registers: bool = False
    swizzle: Swizzle = "none"
    selector: int = 0
    scale_d: str = "1"
    imm_scale: tuple[int, int] = (1, 1)
    imm_trans: tuple[int, int] = (0, 0)
    ctas: int = 2
    threads: int = 128
    target: str = "sm_90a"
    around: dict[str, str] = field(default_factory=dict)  # other statements: "visible", "before", "after"

    @property
    def form(self) -> Instruction:
        """The instruction."""
        return warpsim.decode(self.text, target=self.target)

    @property
    def lanes(self) -> int:
        """Of the grid."""
        return self.ctas * self.threads

    def tile(self, side: int) -> TileShape:
        """The shape of the tile of A (side 0) or B."""
        form = self.form
        rows, columns = form.matrix_shape("a") if side == 0 else (form.shape.n, form.shape.k)
        bits = max(form.format("ab"[side]).bits, 8)
        k = columns * form.format("ab"[side]).bits // bits
        return TileShape(mn=rows, k=k, element_bits=bits, major="MN" if self.imm_trans[side] else "K")

    def descriptors(self) -> tuple[tuple[int, int], int]:
        """Of A and B, one tile behind the other, and the bytes of both."""
        tiles, swizzle = (self.tile(0), self.tile(1)), self.swizzle
        second = -(-canonical_bytes(tiles[0], swizzle=swizzle) // 1024) * 1024
        size = second + canonical_bytes(tiles[1], swizzle=swizzle)
        places = zip((0, second), tiles, strict=True)
        a, b = (canonical_descriptor(at, tile, swizzle=swizzle).encode() for at, tile in places)
        unit = lcm(1024, 4 * self.threads)
        return (a, b), -(-size // unit) * unit

    def inputs(self, seed: int) -> dict[str, Array]:
        """Registers of every lane, memory words and descriptors."""
        random, form = np.random.default_rng(seed), self.form
        descriptors, size = self.descriptors()
        counts = {"d": form.registers["d"], "m": size // (4 * self.threads)}
        if self.a_in_registers:
            counts["a"] = form.registers["a"]
        found: dict[str, Array] = {
            name: random.integers(0, 1 << 32, (self.lanes, count), np.uint64).astype(np.uint32)
            for name, count in counts.items()
        }
        if form.sparse:
            found["e"] = metadata(random, form, self.lanes)
        found["w"] = np.tile(np.array(descriptors, np.uint64), (self.lanes, 1))
        return found

    def statement(self) -> str:
        """The wgmma."""
        form, n = self.form, self.form.registers
        a = registers("a", n["a"]) if self.a_in_registers else "%w0"
        operands = [registers("d", n["d"]), a, "%w1"]
        operands += ["%e0", str(self.selector)] if form.sparse else []
        operands += [self.scale_d]
        operands += [str(one) for one in self.imm_scale] if form.a.is_float else []
        if form.a.bits == 16:
            operands += [str(one) for one in self.imm_trans[self.a_in_registers :]]
        return f"{self.text} {', '.join(operands)};"

    def source(self, inputs: dict[str, Array], outputs: dict[str, Array]) -> str:
        """The text of the kernel."""
        words, (_, size) = inputs["m"].shape[1], self.descriptors()
        stores = "".join(f"st.shared.b32 [%at+{4 * i}], %m{i};\n" for i in range(words))
        body = (
            f"mul.lo.u32 %at, %own, {4 * words};\n{stores}{self.around.get('visible', VISIBLE)}\n"
            f"{self.around.get('before', FENCE)}\n{self.statement()}\n"
            f"{self.around.get('after', f'{COMMIT} {WAIT}')}\n"
            + "".join(f"mov.b32 %x{i}, %d{i};\n" for i in range(self.form.registers["d"]))
        )
        extra = f".reg .b32 %at; .reg .pred %p, %q; {self.around.get('declared', '')}"
        return kernel(self.target, inputs, outputs, body, shared=size, extra=extra)

    def launch(self, inputs: dict[str, Array], **options: Any) -> tuple[Array, LaunchReport]:
        """D of every lane ``(lanes, registers)``, and the report."""
        made = {"x": np.zeros((self.lanes, self.form.registers["d"]), np.uint32)}
        text = self.source(inputs, made)
        arguments = [*inputs.values(), *made.values()]
        report = load_text(text, "k.ptx")["k"](self.ctas, self.threads, arguments, **options)
        return made["x"], report

    def executed(self, inputs: dict[str, Array], scale_d: int | None = None) -> Array:
        """D as warpsim.execute has it."""
        groups = self.threads // 128
        shape = (self.ctas, groups, 128, -1)
        given = {name: inputs[name].reshape(shape) for name in "ae" if name in inputs}
        scale_d = int(self.scale_d) if scale_d is None else scale_d
        if scale_d:
            given["c"] = inputs["d"].reshape(shape)
        memories = np.ascontiguousarray(inputs["m"]).reshape(self.ctas, 1, -1).view(np.uint8)
        memories = np.broadcast_to(memories, (self.ctas, groups, memories.shape[-1]))
        a, b = self.descriptors()[0]
        scales, transposes = self.imm_scale, self.imm_trans
        settings = {"imm_scale_a": scales[0], "imm_scale_b": scales[1]} if self.form.a.is_float else {}
        if self.form.a.bits == 16:
            settings |= {"imm_trans_a": transposes[0], "imm_trans_b": transposes[1]}
        if not self.a_in_registers:
            given["a_desc"] = np.full(memories.shape[:-1], a, np.uint64)
        d = warpsim.execute(
            self.form,
            **given,
            b_desc=np.full(memories.shape[:-1], b, np.uint64),
            shared=memories,
            selector=self.selector,
            scale_d=scale_d,
            **settings,
        )
        return d.reshape(self.lanes, -1)
