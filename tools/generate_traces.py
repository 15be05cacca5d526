"""Write the example traces: ``python tools/generate_traces.py [FOLDER]`` (default: traces/).

Each trace accumulates over a few tiles along k, as a kernel does: one metadata word per lane serves
every selector in turn. Weights are heavy-tailed and pruned by magnitude, so that every row and chunk
has its own pattern; activations are normal with some zeros. The expected D comes from the reference
engine, so that replaying a trace compares two implementations. The files are reproducible: the same
version writes the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.progress import track

import warpsim
from warpsim.archives import write_arrays
from warpsim.formats import Format
from warpsim.instruction import Instruction

Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One trace: its name, chip, title, and the forms it executes (opcode and shape, then types)."""

    name: str
    target: str
    title: str
    head: str
    pairs: tuple[str, ...]
    kind: str = ""


def _sparse(name: str, target: str, shape: str, pairs: str, kind: str = "") -> Recipe:
    title = f"sparse {shape}, {pairs.replace('.', ' x ')}"
    return Recipe(name=f"mma_sp_{shape}_{name}", target=target, title=title, head="mma.sp", kind=kind,
                  pairs=tuple(f"{shape} {pair}" for pair in pairs.split(", ")))  # fmt: skip


def _dense(name: str, target: str, shape: str, pairs: str, kind: str = "") -> Recipe:
    title = f"dense {shape}, {pairs.replace('.', ' x ')}"
    return Recipe(name=f"mma_{shape}_{name}", target=target, title=title, head="mma", kind=kind,
                  pairs=tuple(f"{shape} {pair}" for pair in pairs.split(", ")))  # fmt: skip


_F8F6F4 = "e4m3.e5m2, e5m2.e4m3, e3m2.e3m2, e2m3.e4m3, e2m1.e2m3, e2m1.e2m1"

RECIPES = (
    _sparse("f16", "sm_80", "m16n8k16", "f16.f16"),
    _sparse("bf16", "sm_80", "m16n8k16", "bf16.bf16"),
    _sparse("f16", "sm_90a", "m16n8k32", "f16.f16"),
    _sparse("bf16", "sm_90a", "m16n8k32", "bf16.bf16"),
    _sparse("tf32", "sm_80", "m16n8k8", "tf32.tf32"),
    _sparse("tf32", "sm_90a", "m16n8k16", "tf32.tf32"),
    _sparse("s8_u8", "sm_80", "m16n8k32", "s8.s8, u8.s8, u8.u8"),
    _sparse("s8_u8", "sm_90a", "m16n8k64", "s8.s8, s8.u8, u8.u8"),
    _sparse("s4_u4", "sm_80", "m16n8k64", "s4.s4, u4.s4, u4.u4"),
    _sparse("s4_u4", "sm_90a", "m16n8k128", "s4.s4, s4.u4, u4.u4"),
    _sparse("f8", "sm_89", "m16n8k64", "e4m3.e4m3, e4m3.e5m2, e5m2.e5m2"),
    _sparse("f8_emulated", "sm_90a", "m16n8k64", "e4m3.e4m3, e4m3.e5m2, e5m2.e5m2"),
    _sparse("f8f6f4", "sm_120a", "m16n8k64", _F8F6F4, "f8f6f4"),
    _sparse("mxf8f6f4", "sm_120a", "m16n8k64", _F8F6F4, "mxf8f6f4"),
    _sparse("mxf4", "sm_120a", "m16n8k128", "e2m1.e2m1", "mxf4"),
    _sparse("mxf4nvf4", "sm_120a", "m16n8k128", "e2m1.e2m1", "mxf4nvf4"),
    _dense("s8_u8", "sm_80", "m16n8k32", "s8.s8, s8.u8, u8.u8"),
    _dense("s4_u4", "sm_80", "m16n8k32", "s4.s4, s4.u4, u4.u4"),
    _dense("f8", "sm_89", "m16n8k32", "e4m3.e4m3, e5m2.e4m3, e5m2.e5m2"),
    _dense("f8_emulated", "sm_90a", "m16n8k32", "e4m3.e4m3, e5m2.e4m3, e5m2.e5m2"),
    _dense("f8f6f4", "sm_120a", "m16n8k32", _F8F6F4, "f8f6f4"),
    _dense("mxf8f6f4", "sm_120a", "m16n8k32", _F8F6F4, "mxf8f6f4"),
    _dense("mxf4nvf4", "sm_120a", "m16n8k64", "e2m1.e2m1", "mxf4nvf4"),
    _dense("f16", "sm_80", "m16n8k16", "f16.f16"),
    _dense("bf16", "sm_90", "m16n8k16", "bf16.bf16"),
    _dense("tf32", "sm_80", "m16n8k8", "tf32.tf32"),
    _dense("f64", "sm_90", "m16n8k8", "f64.f64"),
    _dense("b1", "sm_80", "m16n8k256", "b1.b1"),
    _dense("f16_volta", "sm_70", "m8n8k4", "f16.f16"),
)


def chosen_forms(recipe: Recipe) -> Iterator[Instruction]:
    """The forms of a recipe: every accumulator, variant, layout and scale vector of its types."""
    for form in warpsim.instructions(recipe.target):
        types = f"{form.shape} {form.a}.{form.b}"
        if form.family.name == recipe.head and form.kind == recipe.kind and types in recipe.pairs:
            yield form


# --- data ------------------------------------------------------------------------------------------


def _matrix(random: np.random.Generator, element: Format, shape: tuple[int, ...], spread: float) -> Any:
    """Heavy-tailed values with a tenth of zeros, clipped and rounded to the format's own dtype."""
    if not element.is_float:
        width = min(element.bits, 16)
        low = -(1 << (width - 1)) if element.signed else 0
        return random.integers(low, low + (1 << width), shape).astype(element.dtype)
    value = random.standard_t(4, shape) * spread
    value[random.random(shape) < 0.1] = 0
    largest = float(ml_dtypes.finfo(element.dtype).max)
    return np.clip(value, -largest, largest).astype(element.dtype)


def _scale_words(random: np.random.Generator, element: Format) -> Any:
    """Four scales around one in every lane, all lanes different."""
    one = element.bias << element.fraction_bits
    codes = random.integers(one - 6, one + 7, (32, 4)).astype(np.uint8)
    return codes.view(np.uint32)


# --- text ------------------------------------------------------------------------------------------

_REGISTER_TYPES = {"f32": "f32", "s32": "s32", "f64": "f64"}


def _names(stem: str, count: int) -> str:
    return "{" + ", ".join(f"{stem}{i}" for i in range(count)) + "}"


class Writer:
    """Collects the text and the arrays of one trace."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.random = np.random.default_rng(zlib.crc32(recipe.name.encode()))
        self.arrays: Arrays = {}
        self.lines = [
            f"// {recipe.title}",
            f"//! target {recipe.target}",
            f"//! data {recipe.name}.npz",
        ]

    def load(self, stem: str, words: Any, register_type: str, word: str = "load") -> None:
        """Declare registers, and bind them to data."""
        self.arrays[stem] = words
        if word == "load":
            self.lines.append(f".reg .{register_type} %{stem}_<{words.shape[-1]}>;")
        self.lines.append(f"//! {word} %{stem}_<{words.shape[-1]}> = {stem}")

    def form(self, index: int, form: Instruction) -> None:
        """One form: a chain of tiles along k into one accumulator."""
        self.lines += ["", f"// {form.mnemonic}"]
        wide = "f64" if form.register_bits == 64 else "b32"
        accumulator = _REGISTER_TYPES.get(form.d.name, "b32")
        products = (form.products,) if form.products > 1 else ()
        spread = 0.25 if form.a.bits > 8 else 2.0
        tiles = form.selectors or (0, 1)
        e = np.zeros((32, 1), np.uint32)
        operands: list[dict[str, Any]] = []
        for tile in tiles:
            a = _matrix(self.random, form.a, (*products, form.shape.m, form.shape.k), spread)
            b = _matrix(self.random, form.b, (*products, form.shape.k, form.shape.n), 1.0)
            if form.sparse:
                a, indices = warpsim.compress(warpsim.prune(a, form), form)
                e |= warpsim.pack_metadata(form, indices, tile)
            operands.append({"a": warpsim.pack(form, "a", a), "b": warpsim.pack(form, "b", b)})
        c = _matrix(self.random, form.c, (*products, form.shape.m, form.shape.n), 1.0)
        d = warpsim.pack(form, "c", c)
        source = f"c{index}"
        self.load(source, d, _REGISTER_TYPES.get(form.c.name, "b32"))
        self.lines.append(f".reg .{accumulator} %d{index}_<{form.registers['d']}>;")
        if form.sparse:
            self.load(f"e{index}", e, "b32")
        for tile, words in zip(tiles, operands, strict=True):
            words |= {"e": e} if form.sparse else {}
            result = self.tile(index, tile, form, words, d, source, wide)
            if form.c == form.d:  # D becomes the next tile's accumulator, except m8n8k4 f16 with mixed ones
                source, d = f"d{index}", result
        self.load(f"d{index}", result, accumulator, "expect")

    def tile(
        self, index: int, tile: int, form: Instruction, words: dict[str, Any], c: Any, source: str, wide: str
    ) -> Any:
        """One instruction of the chain; returns its D."""
        ids: dict[str, int] = {}
        a, b = f"a{index}t{tile}", f"b{index}t{tile}"
        self.load(a, words["a"], wide)
        self.load(b, words["b"], wide)
        count = form.registers
        text = [_names(f"%d{index}_", count["d"]), _names(f"%{a}_", count["a"]), _names(f"%{b}_", count["b"])]
        text.append(_names(f"%{source}_", count["c"]))
        if form.sparse:
            text += [f"%e{index}_0", hex(tile)]
        for side, threads in (("a", 2), ("b", 4)) if form.scale else ():
            scale = f"scale_{side}{index}t{tile}"
            words[f"scale_{side}"] = _scale_words(self.random, form.scale or form.a)
            self.load(scale, words[f"scale_{side}"], "b32")
            byte, thread = form.scale_chunks * tile % 4, (index + tile) % threads
            ids |= {f"byte_id_{side}": byte, f"thread_id_{side}": thread}
            text += [f"%{scale}_0", f"{{{byte}, {thread}}}"]
        self.lines.append(f"{form.mnemonic} {', '.join(text)};")
        selector = tile if form.sparse else 0
        return warpsim.execute(form, c=c, selector=selector, engine="reference", **words, **ids)

    def write(self, folder: Path) -> None:
        """Write the ``.ptx`` and its ``.npz``."""
        for index, form in enumerate(chosen_forms(self.recipe)):
            self.form(index, form)
        write_arrays(folder / f"{self.recipe.name}.npz", self.arrays)
        (folder / f"{self.recipe.name}.ptx").write_text("\n".join(self.lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Write every trace into the folder."""
    parser = argparse.ArgumentParser(description="Write the example traces.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent / "traces")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    hidden = not sys.stderr.isatty()
    for recipe in track(RECIPES, "traces", console=Console(stderr=True), disable=hidden):
        Writer(recipe).write(folder)


if __name__ == "__main__":
    main()
