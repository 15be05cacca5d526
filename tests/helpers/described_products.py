"""One tcgen05.mma with its descriptor: operands that lie by hand, and D by matmul.

Places are those of tests/helpers/tensor_core.py, written out for one element at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import warpsim
from tests.helpers.tensor_core import BASE, SWIZZLES, WIDTH, Run, Tile, d_cell, metadata_field, row_bytes
from warpsim.isa.codes import codes_of, values_of
from warpsim.isa.descriptors.instruction_descriptor import InstructionDescriptor
from warpsim.isa.families.tcgen05 import form_of, letter_of


def random_codes(rng: Any, element: Any, shape: tuple[int, ...]) -> Any:
    """Codes of moderate numbers, and of integers any."""
    if not element.is_float:
        return rng.integers(0, 1 << element.bits, shape).astype(element.code_dtype)
    codes = rng.integers(0, 1 << element.bits, shape, np.uint64).astype(element.code_dtype)
    if element.bits <= 8:
        return np.where(np.isfinite(values_of(codes, element)), codes, 0).astype(element.code_dtype)
    return codes_of(rng.standard_normal(shape).astype(element.dtype), element, "operand")


class Product:
    """One mnemonic with its descriptor, operands that lie by hand, and D by matmul."""

    def __init__(
        self,
        mnemonic: str,
        *,
        tiles: Any = None,
        in_memory: bool = False,
        seed: int = 0,
        settings: dict[str, int] | None = None,
        **fields: Any,
    ):
        """``settings`` are where tiles begin in their patterns: start, base and second, as Tile has them."""
        self.form = form_of(tuple(mnemonic.split(".")[1:]))
        kind = self.form.kind
        defaults = {"a_type": min(kind.multiplicands), "b_type": min(kind.multiplicands)}
        defaults |= {"d_type": max(kind.results)} if kind.results else {}
        defaults |= {"scale_type": max(kind.scales)} if kind.scales else {}
        defaults |= {"sparse": int(self.form.sparse), "m": 128, "n": 64}
        self.descriptor = InstructionDescriptor(kind=kind.name, **{**defaults, **fields})
        self.target = "sm_103a" if self.descriptor.k_96 else "sm_100a"
        self.instruction = warpsim.decode(mnemonic, target=self.target, idesc=self.descriptor.encode())
        self.settings = settings or {}
        self.letter = letter_of(self.form, self.descriptor.m)
        self.in_memory, self.mnemonic = in_memory, mnemonic
        self.tiles = tiles or (2, 2)
        self._operands(np.random.default_rng(seed))

    def _operands(self, rng: Any) -> None:
        ins = self.instruction
        m, n, k = ins.shape.m, ins.shape.n, ins.shape.k
        self.a = random_codes(rng, ins.a, (m, ins.stored_k))
        self.b = random_codes(rng, ins.b, (k, n))
        self.c = random_codes(rng, ins.c, (m, n))
        self.scales = {}
        if ins.scale is not None:
            low = 1 << ins.scale.bits - 1
            self.scales = {
                "scale_a": rng.integers(low - 6, low + 6, (m, ins.scale_chunks)).astype(np.uint8),
                "scale_b": rng.integers(low - 6, low + 6, (ins.scale_chunks, n)).astype(np.uint8),
            }
        if ins.pattern is not None:
            pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])[
                : 6 if ins.pattern.kept == 2 else 1
            ]
            chunks = (m, k // ins.pattern.chunk)
            if ins.pattern.kept == 2:
                self.indices = pairs[rng.integers(0, 6, chunks)].reshape(m, -1).astype(np.uint8)
            else:
                self.indices = rng.integers(0, 2, chunks).astype(np.uint8)

    @property
    def expected(self) -> Any:
        """Codes of D (m, n)."""
        a = (self.a, self.indices) if self.instruction.sparse else self.a
        d = warpsim.matmul(self.instruction, a, self.b, self.c, **self.scales)
        return d.view(self.instruction.d.code_dtype)

    # --- places ---

    def run(self) -> Run:
        ins, ctas = self.instruction, self.form.ctas
        group = f"cta_group::{ctas}"
        a = "[r1]" if self.in_memory else "q4"
        meta = "[r2], " if ins.sparse else ""
        scales = "[r6], [r7], " if ins.scale else ""
        assert group in self.mnemonic
        run = Run(f"{self.mnemonic} [r0], {a}, q5, {meta}r4, {scales}enable;", ctas=ctas, target=self.target)
        self.places = {"r0": 0, "r1": 300, "r2": 320, "r6": 330, "r7": 340}
        run.words = {**self.places, "r4": self.descriptor.encode(), "r5": 1}
        rng = np.random.default_rng(7)
        run.cells[:] = rng.integers(0, 1 << 32, run.cells.shape, np.uint64)
        self._put_accumulator(run)
        self._put_tiles(run)
        if ins.sparse:
            self._put_metadata(run)
        if ins.scale is not None:
            self._put_scales(run)
        return run

    def _put_accumulator(self, run: Run) -> None:
        for (r, n), code in np.ndenumerate(self.c):
            cta, lane, column = d_cell(self.letter, r, n, self.c.shape[1])
            run.cells[cta, lane, column] = code

    def _put_tiles(self, run: Run) -> None:
        ins, ctas, descriptor = self.instruction, self.form.ctas, self.descriptor
        for side, codes in enumerate((self.a, self.b.T)):
            element = (ins.a, ins.b)[side]
            padded = ins.storage("ab"[side]).bits == 8
            transposed = (descriptor.transpose_a, descriptor.transpose_b)[side]
            rows = len(codes) // ctas
            for cta in range(ctas):
                own = codes[cta * rows : (cta + 1) * rows]
                if side == 0 and self.in_memory:
                    self._put_a(run, own, cta)
                    continue
                tile = self._tile(row_bytes(own, element.bits, padded=padded), element, transposed, side)
                tile.put(run.image[cta])
                setattr(run, "ab"[side], tile.word)

    def _tile(self, rows: Any, element: Any, transposed: int, side: int) -> Tile:
        """Tiles without gaps: atoms one after the other, those along M or N first."""
        code, size = self.tiles[side], max(element.bits, 8) // 8
        width = WIDTH[SWIZZLES[code]]
        start = BASE + 32 * 1024 * side
        if not transposed:
            groups = -(-len(rows) // 8)
            lbo = groups * 128 if code == 0 else 16
            places = {name: value + start for name, value in self.settings.items() if name != "base"}
            given = {"start": start, "base": self.settings.get("base", 0)} | places
            return Tile(rows, size, lbo=lbo, sbo=8 * width, code=code, **given)
        depth = rows.shape[1] // size
        along_m, along_k = -(-len(rows) * size // width), 4 if code == 1 else 8
        step = along_k * width
        offsets = (step, step * along_m)  # along M or N, along K
        assert depth % along_k == 0
        lbo, sbo = (offsets[1], offsets[0]) if code == 0 else offsets
        return Tile(rows, size, start, lbo, sbo, code, "MN")

    def _put_a(self, run: Run, codes: Any, cta: int) -> None:
        """A in tensor memory: the lanes of D, elements of a row side by side."""
        storage = self.instruction.storage("a")
        slots = 32 // storage.bits
        for (r, k), code in np.ndenumerate(codes):
            _, lane, _ = d_cell(self.letter, r, 0, 64)
            for copy in (0, 64) if self.letter == "B" else (0,):
                cell = run.cells[cta, lane + copy]
                shift = k % slots * storage.bits
                mask = (1 << storage.bits) - 1
                word = int(cell[300 + k // slots]) & ~(mask << shift)
                cell[300 + k // slots] = word | int(code) << storage.shift << shift

    def _put_metadata(self, run: Run) -> None:
        ins = self.instruction
        pattern = ins.pattern
        units = self.indices.reshape(self.a.shape[0], -1, pattern.kept)
        for r, chunk in np.ndindex(units.shape[:2]):
            field = sum(int(unit) << 2 * place for place, unit in enumerate(units[r, chunk]))
            if pattern.kept == 1:
                field = (0x4, 0xE)[int(units[r, chunk, 0])]
            cta, lane, column, bit = metadata_field(self.letter, ins.storage("a").bits, r, chunk)
            column += 320 + self.descriptor.selector
            for copy in {"E": (0, 64), "G": (0, 32, 64, 96)}.get(self.letter, (0,)):
                word = int(run.cells[cta, lane + copy, column]) & ~(15 << bit)
                run.cells[cta, lane + copy, column] = word | field << bit

    def _put_scales(self, run: Run) -> None:
        ctas, descriptor = self.form.ctas, self.descriptor
        a, b = self.scales["scale_a"], self.scales["scale_b"].T
        rows = len(a) // ctas
        for (r, j), code in np.ndenumerate(a):
            cta, own = divmod(r, rows)
            column, byte = divmod(descriptor.scale_a_id + j, 4)
            self._put_byte(run.cells[cta], own, 330 + 4 * column, 8 * byte, int(code))
        for (r, j), code in np.ndenumerate(b):
            for cta in range(ctas):
                column, byte = divmod(descriptor.scale_b_id + j, 4)
                bit, place = 8 * byte, 340 + (4 if len(b) <= 128 else 8) * column
                if self.letter == "B":
                    half, own = divmod(r, len(b) // 2)
                    lanes = [own % 32 + 64 * half + copy for copy in (0, 32)]
                    self._put_byte(run.cells[cta], own, 340, bit, int(code), lanes)
                else:
                    self._put_byte(run.cells[cta], r, place, bit, int(code))

    @staticmethod
    def _put_byte(cells: Any, r: int, base: int, bit: int, code: int, lanes: Any = None) -> None:
        for lane in lanes or [r % 32 + quarter for quarter in (0, 32, 64, 96)]:
            word = int(cells[lane, base + r // 32]) & ~(255 << bit)
            cells[lane, base + r // 32] = word | code << bit

    # --- results ---

    def check(self, **options: Any) -> None:
        run = self.run()
        found, expected = run.results(**options), run.cells[: self.form.ctas].copy()
        d = self.expected
        touched = np.zeros(expected.shape, np.bool_)
        for (r, n), code in np.ndenumerate(d):
            cta, lane, column = d_cell(self.letter, r, n, d.shape[1])
            expected[cta, lane, column] = code
            touched[cta, lane, column] = True
        if self.instruction.d.bits == 16:  # the upper half of a cell of f16 is not defined
            found = np.where(touched, found & 0xFFFF, found)
        np.testing.assert_array_equal(found, expected)


def mnemonic(kind: str, *, ctas: int = 1, ws: bool = False, sp: bool = False, vector: str = "") -> str:
    words = ["tcgen05.mma", "ws" * ws, "sp" * sp, f"cta_group::{ctas}", f"kind::{kind}"]
    words += ["block_scale" if kind.startswith("mx") else "", vector]
    return ".".join(filter(None, words))
