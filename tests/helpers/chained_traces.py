"""Traces of one matrix instruction several times, each adding to the D of the one before.

Knows the text of traces; operands are given as matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import warpsim

Words = Any


@dataclass(frozen=True, kw_only=True)
class ChainedTrace:
    """Registers of every instruction, ``(instructions, lanes, registers)`` of a, b, e, scales; and C."""

    mnemonic: str
    target: str
    registers: Mapping[str, Words]
    c: Words

    @property
    def count(self) -> int:
        """How many instructions."""
        return len(self.registers["a"])

    def run(self, **changed: Words) -> list[Words]:
        """D after every instruction, some of the registers being others."""
        held, c = {**self.registers, **changed}, self.c
        found = list[Words]()
        for at in range(self.count):
            operands = {name: words[at] for name, words in held.items()}
            c = warpsim.execute(self.mnemonic, **operands, c=c, target=self.target)
            found.append(c)
        return found

    def write(self, path: Path, expected: Mapping[int, Words]) -> Path:
        """The trace with what is expected of D after some instructions."""
        form = warpsim.decode(self.mnemonic, target=self.target)
        bits = form.register_bits
        sizes = {name: words.shape[-1] for name, words in self.registers.items()}
        arrays = {"c": self.c} | {f"d{at}": words for at, words in expected.items()}
        lines = [f"//! target {self.target}", f"//! data {path.stem}.npz"]
        lines += [f".reg .b{bits} %d<{self.c.shape[-1]}>;", f"//! load %d<{self.c.shape[-1]}> = c"]
        for at in range(self.count):
            for name, size in sizes.items():
                arrays[f"{name}{at}"] = self.registers[name][at]
                own = bits if name in ("a", "b") else 32
                lines += [
                    f".reg .b{own} %{name}{at}_<{size}>;",
                    f"//! load %{name}{at}_<{size}> = {name}{at}",
                ]
            lines.append(self._statement(at, sizes))
            if at in expected:
                lines.append(f"//! expect %d<{self.c.shape[-1]}> = d{at}")
        path.write_text("\n".join([*lines, ""]))
        np.savez(path.with_suffix(".npz"), **arrays)
        return path

    def _statement(self, at: int, sizes: Mapping[str, int]) -> str:
        d = _braces("d", self.c.shape[-1])
        a, b = (_braces(f"{name}{at}_", sizes[name]) for name in "ab")
        more = f", %e{at}_0, 0x0" if "e" in sizes else ""
        for name in ("scale_a", "scale_b"):
            more += f", %{name}{at}_0, {{0, 0}}" if name in sizes else ""
        return f"{self.mnemonic} {d}, {a}, {b}, {d}{more};"


def _braces(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{at}" for at in range(count)) + "}"


def chained(
    mnemonic: str, target: str, a: Sequence[Any], b: Sequence[Any], c: Any, **scales: Words
) -> ChainedTrace:
    """The trace of as many matrices A and B, and words of scales; a sparse A is pruned."""
    form = warpsim.decode(mnemonic, target=target)
    registers: dict[str, Words] = dict(scales)
    if form.sparse:
        pairs = [warpsim.compress(warpsim.prune(one, form), form) for one in a]
        a = [values for values, _ in pairs]
        words = [warpsim.pack_metadata(form, indices) for _, indices in pairs]
        registers["e"] = np.stack(words).reshape(len(words), 32, -1)
    registers |= {"a": np.stack([warpsim.pack(form, "a", one) for one in a])}
    registers |= {"b": np.stack([warpsim.pack(form, "b", one) for one in b])}
    return ChainedTrace(mnemonic=mnemonic, target=target, registers=registers, c=warpsim.pack(form, "c", c))
