"""Write the example traces: ``python tools/generate_traces.py [FOLDER]`` (default: traces/).

Each trace accumulates over a few tiles along k, as a kernel does: one metadata word per lane serves
every selector in turn. Weights are heavy-tailed and pruned by magnitude, so that every row and chunk
has its own pattern; activations are normal with some zeros. The expected D comes from the reference
engine, so that replaying a trace compares two implementations. The files are reproducible: the same
version writes the same bytes.

Traces of wgmma have one section for every form and place of A, registers and shared memory in turn. B, and
A where it lies there, come into shared memory as a bulk copy would bring them, or by st.shared and a proxy
fence. Their descriptors are constants: the variable ``tiles`` is the first, at address 0.
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
from warpsim.base.files.archives import write_arrays
from warpsim.isa.codes import codes_of
from warpsim.isa.descriptors.packed_tiles import canonical_bytes, canonical_descriptor
from warpsim.isa.descriptors.tile_addresses import store_tile
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.formats import Format
from warpsim.isa.instruction import Instruction

Arrays = dict[str, np.ndarray[Any, Any]]

_VERSION = "9.0"  # of PTX: traces name none, and older releases of ptxas take them, too


@dataclass(frozen=True, kw_only=True)
class WarpRecipe:
    """One trace: its name, chip, title, and the forms it executes (opcode and shape, then types)."""

    name: str
    target: str
    title: str
    head: str
    pairs: tuple[str, ...]
    kind: str = ""


def _sparse(name: str, target: str, shape: str, pairs: str, kind: str = "") -> WarpRecipe:
    title = f"sparse {shape}, {pairs.replace('.', ' x ')}"
    return WarpRecipe(name=f"mma_sp_{shape}_{name}", target=target, title=title, head="mma.sp", kind=kind,
                  pairs=tuple(f"{shape} {pair}" for pair in pairs.split(", ")))  # fmt: skip


def _dense(name: str, target: str, shape: str, pairs: str, kind: str = "") -> WarpRecipe:
    title = f"dense {shape}, {pairs.replace('.', ' x ')}"
    return WarpRecipe(name=f"mma_{shape}_{name}", target=target, title=title, head="mma", kind=kind,
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


@dataclass(frozen=True, kw_only=True)
class Section:
    """One form of wgmma: where A is, and how the tiles lie in shared memory and come there.

    ``swizzles`` are those of A and B, ``majors`` too ("K" or "MN"); A in registers has none.
    """

    form: Instruction
    registers: bool
    swizzles: tuple[Any, Any]
    majors: tuple[Any, Any]
    stored: bool  # by st.shared rather than by a bulk copy


@dataclass(frozen=True, kw_only=True)
class WarpgroupRecipe:
    """A trace of wgmma: steps along k, shape, and the types ``D.A.B`` of its sections.

    ``layouts`` are those of A and of B, the major axis and the swizzle width, as in "K128/MN32", section by
    section and then again; 0 is no swizzle.
    """

    name: str
    title: str
    shape: str
    types: tuple[str, ...]
    layouts: tuple[str, ...]
    steps: int
    sparse: bool
    target: str = "sm_90a"


def _wgmma(
    name: str, shape: str, types: str, layouts: str, *, sparse: bool = False, steps: int = 4
) -> WarpgroupRecipe:
    return WarpgroupRecipe(
        name=f"wgmma_{'sp_' if sparse else ''}{shape}_{name}",
        title=f"{'sparse' if sparse else 'dense'} wgmma {shape}, {types.replace('.', ' ')}",
        shape=shape, types=tuple(types.split(", ")), layouts=tuple(layouts.split(", ")),
        steps=steps, sparse=sparse,
    )  # fmt: skip


_F8_TYPES = "f32.e4m3.e4m3, f32.e4m3.e5m2, f32.e5m2.e4m3, f16.e5m2.e5m2, f16.e4m3.e5m2, f16.e4m3.e4m3"
_S8_TYPES = "s32.s8.s8, s32.s8.u8, s32.u8.u8, s32.u8.s8"

# Types D.A.B, and the layouts of A (unused in registers, every other section) and of B.
WARPGROUP_RECIPES = (
    _wgmma("f16", "m64n16k16", "f32.f16.f16, f32.f16.f16, f16.f16.f16, f16.f16.f16",
           "K128/K128, MN128/MN32, K64/MN32, K32/K64"),
    _wgmma("bf16", "m64n24k16", "f32.bf16.bf16, f32.bf16.bf16", "K128/K32, K0/MN0"),
    _wgmma("tf32", "m64n8k8", "f32.tf32.tf32, f32.tf32.tf32", "K128/K64, K128/K128"),
    _wgmma("f8", "m64n8k32", _F8_TYPES, "K128/K128, K0/K32, K64/K64"),
    _wgmma("s8_u8", "m64n16k32", _S8_TYPES, "K128/K64, K64/K128, K0/K0"),
    _wgmma("b1", "m64n8k256", "s32.b1.b1, s32.b1.b1", "K0/K128, K32/K64"),
    _wgmma("f16", "m64n16k32", "f32.f16.f16, f32.f16.f16, f16.f16.f16, f16.f16.f16",
           "K128/K128, K128/MN32, K64/MN32, MN128/K64", sparse=True),
    _wgmma("bf16", "m64n32k32", "f32.bf16.bf16, f32.bf16.bf16", "K128/K128, K128/MN64", sparse=True),
    _wgmma("tf32", "m64n8k16", "f32.tf32.tf32, f32.tf32.tf32", "K128/K128, K64/K128", sparse=True),
    _wgmma("f8", "m64n8k64", _F8_TYPES, "K128/K128, K64/K0, K32/K64", sparse=True, steps=2),
    _wgmma("s8_u8", "m64n8k64", _S8_TYPES, "K128/K0, K64/K128, K0/K64", sparse=True, steps=2),
)  # fmt: skip


def chosen_sections(recipe: WarpgroupRecipe) -> Iterator[Section]:
    """Yield the sections of a recipe: A in registers and in shared memory in turn."""
    sparse = "sp." if recipe.sparse else ""
    for index, types in enumerate(recipe.types):
        bits = ".and.popc" if ".b1" in types else ""
        mnemonic = f"wgmma.mma_async.{sparse}sync.aligned.{recipe.shape}.{types}{bits}"
        layouts = recipe.layouts[index % len(recipe.layouts)].split("/")
        widths = [layout.lstrip("KMN") for layout in layouts]
        yield Section(
            form=warpsim.decode(mnemonic, target=recipe.target),
            registers=index % 2 == 0,
            swizzles=tuple("none" if width == "0" else f"{width}B" for width in widths),  # type: ignore[arg-type]
            majors=tuple(layout.rstrip("0123468") for layout in layouts),  # type: ignore[arg-type]
            stored=index % 4 in (1, 2),
        )


def chosen_forms(recipe: WarpRecipe) -> Iterator[Instruction]:
    """Yield the forms of a recipe: every accumulator, variant, layout and scale vector of its types."""
    for form in warpsim.instructions(recipe.target, version=_VERSION):
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
    """Return four scales around one in every lane, all lanes different."""
    one = element.bias << element.fraction_bits
    codes = random.integers(one - 6, one + 7, (32, 4)).astype(np.uint8)
    return codes.view(np.uint32)


# --- text ------------------------------------------------------------------------------------------

_REGISTER_TYPES = {"f32": "f32", "s32": "s32", "f64": "f64"}


def _names(stem: str, count: int) -> str:
    return "{" + ", ".join(f"{stem}{i}" for i in range(count)) + "}"


class Writer:
    """Collects the text and the arrays of one trace."""

    def __init__(self, recipe: WarpRecipe | WarpgroupRecipe) -> None:
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
        if isinstance(self.recipe, WarpRecipe):
            for index, form in enumerate(chosen_forms(self.recipe)):
                self.form(index, form)
        else:
            self.sections(self.recipe)
        write_arrays(folder / f"{self.recipe.name}.npz", self.arrays)
        (folder / f"{self.recipe.name}.ptx").write_text("\n".join(self.lines) + "\n", encoding="utf-8")

    # --- wgmma ---

    def sections(self, recipe: WarpgroupRecipe) -> None:
        """All sections, one after the other through the same shared memory."""
        built = [Tiles(self.random, section, recipe.steps) for section in chosen_sections(recipe)]
        size = max(tiles.image.size for tiles in built)
        addresses = 16 * np.arange(128, dtype=np.uint32)
        self.lines += ["//! warpgroup", "", f".shared .align 1024 .b8 tiles[{size}];"]
        self.lines += [".reg .pred %accumulate;", "mov.pred %accumulate, 1;"]
        self.load("at", addresses[:, None], "b32")
        for index, tiles in enumerate(built):
            self.section(index, tiles)

    def section(self, index: int, tiles: Tiles) -> None:
        """One form: a chain of steps along k into one accumulator, in one wgmma-group."""
        form = tiles.section.form
        place = "registers" if tiles.section.registers else "shared memory"
        self.lines += ["", f"// {form.mnemonic}, A in {place}"]
        self.fill(index, tiles)
        accumulator = _REGISTER_TYPES.get(form.d.name, "b32")
        c = _matrix(self.random, form.c, (form.shape.m, form.shape.n), 1.0)
        d = self.arrays[f"c{index}"] = warpsim.pack(form, "c", c)
        self.lines.append(f".reg .{accumulator} %d{index}_<{form.registers['d']}>;")
        self.lines.append(f"//! load %d{index}_<{form.registers['d']}> = c{index}")
        for step, words in enumerate(tiles.registers):
            for operand, array in words.items():
                self.load(f"{operand}{index}t{step}", array, "b32")
        self.lines.append(f".reg .b64 %descriptor{index}_<{2 * len(tiles.steps)}>;")
        self.lines.append("wgmma.fence.sync.aligned;")
        for step in range(len(tiles.steps)):
            d = self.step(index, step, tiles, d)
        self.lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
        self.load(f"d{index}", d, accumulator, "expect")

    def fill(self, index: int, tiles: Tiles) -> None:
        """Yield the statements that copy tiles into shared memory."""
        if not tiles.section.stored:
            self.arrays[f"shared{index}"] = tiles.image
            self.lines.append(f"//! shared tiles = shared{index}")
            return
        words = tiles.image.view(np.uint32).reshape(-1, 128, 4)
        stem = f"word{index}"
        self.load(stem, np.ascontiguousarray(words.transpose(1, 0, 2)).reshape(128, -1), "b32")
        self.lines.append("bar.sync 0;")  # no warp refills what the wgmma of another may still read
        for chunk in range(len(words)):
            names = ", ".join(f"%{stem}_{4 * chunk + i}" for i in range(4))
            self.lines.append(f"st.shared.v4.b32 [%at_0+{2048 * chunk}], {{{names}}};")
        self.lines += ["fence.proxy.async.shared::cta;", "bar.sync 0;"]

    def step(self, index: int, step: int, tiles: Tiles, c: Any) -> Any:
        """One instruction of the chain; returns its D."""
        section, form = tiles.section, tiles.section.form
        inputs = tiles.steps[step]
        a, b = (f"%descriptor{index}_{2 * step + side}" for side in (0, 1))
        self.lines.append(f"mov.b64 {b}, {inputs['b_desc']:#x};")
        if "a_desc" in inputs:
            self.lines.append(f"mov.b64 {a}, {inputs['a_desc']:#x};")
        else:
            a = _names(f"%a{index}t{step}_", 4)
        text = [_names(f"%d{index}_", form.registers["d"]), a, b]
        if form.sparse:
            text += [f"%{tiles.metadata[step]}_0".replace("#", str(index)), hex(inputs["selector"])]
        text.append("1" if section.registers else "%accumulate")
        text += [str(inputs[name]) for name in tiles.immediates]
        self.lines.append(f"{form.mnemonic} {', '.join(text)};")
        words = {name: array for words in tiles.registers[: step + 1] for name, array in words.items()}
        return warpsim.execute(form, c=c, shared=tiles.image, engine="reference", **words, **inputs)


class Tiles:
    """Random operands of one section: the image of shared memory, and what each step reads.

    ``steps`` are the arguments of warpsim.execute that are no registers; ``registers`` those that are,
    where a step brings new ones; ``metadata`` the register of each step, with # for the section.
    """

    def __init__(self, random: np.random.Generator, section: Section, steps: int) -> None:
        form, shape = section.form, section.form.shape
        self.section, self.random = section, random
        spread = 0.25 if form.a.bits > 8 else 2.0
        self.a = _matrix(random, form.a, (steps, shape.m, shape.k), spread)
        b = _matrix(random, form.b, (steps, shape.k, shape.n), 1.0)
        self.registers: list[Arrays] = [{} for _ in range(steps)]
        self.steps: list[dict[str, Any]] = [{} for _ in range(steps)]
        self.metadata = [f"e#t{step - step % len(form.selectors or (0,))}" for step in range(steps)]
        self.immediates: list[str] = []
        if form.sparse:
            self.compress()
        memory = np.zeros(1 << 17, np.uint8)
        end = self.place(memory, 1, 0, np.concatenate(np.swapaxes(b, 1, 2), axis=-1))
        if section.registers:
            for words, values in zip(self.registers, self.a, strict=True):
                words["a"] = warpsim.pack(form, "a", values)
        else:
            end = self.place(memory, 0, -(-end // 1024) * 1024, np.concatenate(self.a, axis=-1))
        self.image = memory[: -(-end // 2048) * 2048].copy()
        self.set_immediates()

    def compress(self) -> None:
        """Prune A, and give each step its selector; one register of metadata serves all selectors."""
        form, values = self.section.form, []
        for step, a in enumerate(self.a):
            selector = form.selectors[step % len(form.selectors)]
            kept, indices = warpsim.compress(warpsim.prune(a, form), form)
            values.append(kept)
            self.steps[step]["selector"] = selector
            words = self.registers[step - step % len(form.selectors)]
            words["e"] = words.get("e", 0) | warpsim.pack_metadata(form, indices, selector)
        self.a = np.stack(values)

    def place(self, memory: Any, side: int, start: int, tile: Any) -> int:
        """Store the tile ``(mn, k of all steps)`` of A (side 0) or B; returns the address behind it."""
        element = self.section.form.format("ab"[side])
        codes = codes_of(tile, element, "tile")
        codes = np.packbits(codes, axis=-1, bitorder="little") if element.bits == 1 else codes
        shape, swizzle = TileShape.of(codes, self.section.majors[side]), self.section.swizzles[side]
        for step, (inputs, part_codes) in enumerate(
            zip(self.steps, np.split(codes, len(self.steps), axis=-1), strict=True)
        ):
            first_k = step * shape.k // len(self.steps)
            part = canonical_descriptor(start, shape, swizzle=swizzle, first_k=first_k)
            store_tile(memory, part, part_codes, major=shape.major)
            inputs[f"{'ab'[side]}_desc"] = part.encode()
        return start + canonical_bytes(shape, swizzle=swizzle)

    def set_immediates(self) -> None:
        """imm-scale, which floating point has, negates A in every other step; imm-trans as the tiles lie."""
        form, section = self.section.form, self.section
        if form.a.is_float:
            self.immediates += ["imm_scale_a", "imm_scale_b"]
        if form.a.bits == 16:
            self.immediates += ["imm_trans_b"] if section.registers else ["imm_trans_a", "imm_trans_b"]
        for step, inputs in enumerate(self.steps):
            values = {
                "imm_scale_a": 1 - step % 2 * 2,
                "imm_scale_b": 1,
                "imm_trans_a": int(section.majors[0] == "MN"),
                "imm_trans_b": int(section.majors[1] == "MN"),
            }
            inputs |= {name: values[name] for name in self.immediates}


def main(arguments: list[str] | None = None) -> None:
    """Write every trace into the folder."""
    parser = argparse.ArgumentParser(description="Write the example traces.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent / "traces")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    hidden = not sys.stderr.isatty()
    recipes = (*RECIPES, *WARPGROUP_RECIPES)
    for recipe in track(recipes, "traces", console=Console(stderr=True), disable=hidden):
        Writer(recipe).write(folder)


if __name__ == "__main__":
    main()
