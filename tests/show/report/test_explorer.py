"""The explorer's catalogue against the fragments of every form, and its scripts without a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas
from tests.helpers.explorer import Scripts
from warpsim.isa.descriptors.tile_addresses import tile_addresses
from warpsim.isa.descriptors.tile_shape import TileShape
from warpsim.isa.families import forms
from warpsim.isa.fragments import metadata_map
from warpsim.isa.instruction import Instruction
from warpsim.isa.layouts.strides import Mode, points
from warpsim.isa.operand_places.placements import ScaleSelectors
from warpsim.isa.operand_places.places import places, register_operands
from warpsim.show.cli import main as run_cli
from warpsim.show.report.explorer.catalogue import catalogue
from warpsim.show.report.explorer.sass import sass_of
from warpsim.show.views.drawings.drawing import figure_lines
from warpsim.show.views.layouts.figures import figures
from warpsim.show.views.layouts.formulas import formula
from warpsim.show.views.layouts.layout import cute_lines
from warpsim.show.views.layouts.shared_tiles import shared_tile, tile_figure
from warpsim.workbench.explanation.information import rule_on, rule_text

FORMS = forms()
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SAMPLE = [  # every family, every sort of layout
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e4m3.f32.ue8m0",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    SPARSE,
    "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.u4.s4.s32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32",
    "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16",
    "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc",
    "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32",
    "wgmma.mma_async.sp.sync.aligned.m64n40k32.f16.f16.f16",
    "wgmma.mma_async.sp.sync.aligned.m64n16k64.s32.u8.s8",
]


@cache
def entries() -> dict[str, Any]:
    return {entry["mnemonic"]: entry for entry in catalogue()["forms"]}


@cache
def tables() -> dict[str, Any]:
    return dict(catalogue()["tables"])


def form_of(mnemonic: str) -> Instruction:
    return FORMS[mnemonic]


# --- the catalogue ---------------------------------------------------------------------------------


def grid_of(first: list[list[int]], second: list[list[int]], shape: tuple[int, ...]) -> Any:
    """``(first, second, coordinates)``: sums of what the modes of both indices add."""
    rows, columns = (
        points([Mode(extent, tuple(steps)) for extent, *steps in side], shape[-1])[:size]
        for side, size in zip((first, second), shape[:2], strict=True)
    )
    return rows[:, None] + columns


def test_every_form_is_in_it() -> None:
    assert list(entries()) == list(FORMS)
    for mnemonic, form in FORMS.items():
        entry = entries()[mnemonic]
        named = [catalogue()["targets"][at] for at in tables()["targets"][entry["targets"]]]
        assert set(named) == form.targets
        assert entry["types"] == {operand: form.format(operand).name for operand in "abcd"}
        assert entry["registers"] == form.registers


def test_how_every_target_sums_every_form() -> None:
    for mnemonic, form in FORMS.items():
        targets = [catalogue()["targets"][at] for at in tables()["targets"][entries()[mnemonic]["targets"]]]
        numbers = tables()["arithmetic"][entries()[mnemonic]["arithmetic"]]
        for target, number in zip(targets, numbers, strict=True):
            rule, known = tables()["rules"][number], rule_on(form, target)
            assert (rule["label"], rule["evidence"]) == (known.evidence.label, str(known.evidence))
            if target in ("sm_75", "sm_80", "sm_90a", "sm_120a"):
                assert rule["text"] == rule_text(known)


def test_the_formulas_are_those_of_layout() -> None:
    for mnemonic, form in FORMS.items():
        if form.lanes > 32 and form.shape.n not in (8, 64):
            continue
        for operand, number in entries()[mnemonic]["formulas"].items():
            entry = tables()["formulas"][number]
            for selector in form.selectors if operand == "e" else (0,):
                known = formula(form, operand, selector)
                assert entry["lines"][selector] == [line.strip() for line in known.lines()[1:]]
                assert entry["section"] == known.section


def test_the_layout_of_every_form_is_its_fragment() -> None:
    """Extents and strides evaluated, against warpsim.fragment's indices, registers and bits."""
    for mnemonic, form in FORMS.items():
        numbers = entries()[mnemonic]["layouts"]
        assert set(numbers) == {operand for operand in form.registers if operand in "abcd"}
        if form.c == form.d:
            assert numbers["c"] == numbers["d"]
        for operand in set(numbers) - ({"c"} if form.c == form.d else set()):
            layout, fragment = tables()["layouts"][numbers[operand]], form.in_registers(operand).layout
            shape = (fragment.lanes, fragment.values, 2)
            made = grid_of(layout["lanes"], layout["values"], shape)
            assert (made[..., 0] == fragment.row_index).all()
            assert (made[..., 1] == fragment.column_index).all()
            storage = form.storage(operand)
            assert (layout["storage"], layout["shift"]) == (storage.bits, storage.shift)
            assert (layout["rows"], layout["columns"]) == form.matrix_shape(operand)
            assert (layout["bits"], layout["register_bits"]) == (
                form.format(operand).bits,
                form.register_bits,
            )
            assert layout["products"] == form.products


def test_the_metadata_of_every_form_and_selector() -> None:
    for mnemonic, form in FORMS.items():
        assert len(entries()[mnemonic].get("metadata", [])) == len(form.selectors)
        for selector in form.selectors:
            table = tables()["metadata"][entries()[mnemonic]["metadata"][selector]]
            made = grid_of(table["rows"], table["chunks"], (*table["extent"], 2)).reshape(-1, 2)
            expected = metadata_map(form, selector)
            assert np.array_equal(made + np.array([table["first"], 0]), expected[:, :2])
            assert (expected[:, 2] == table["bits"]).all()


def test_the_tiles_of_every_wgmma() -> None:
    """Every swizzle and major of every N: offsets, exclusive-ored, are the addresses of the descriptor."""
    seen = set()
    for mnemonic, form in FORMS.items():
        for operand, number in entries()[mnemonic].get("shared", {}).items():
            rows, columns = form.matrix_shape(operand)
            sizes = (rows, columns) if operand == "a" else (columns, rows)
            if (number, sizes, form.a.bits) in seen:
                continue
            seen.add((number, sizes, form.a.bits))
            for tile in tables()["tiles"][number]:
                check_tile(form, operand, tile)


def check_tile(form: Instruction, operand: str, tile: dict[str, Any]) -> None:
    if "error" in tile:
        with pytest.raises(warpsim.WarpsimError, match=re.escape(tile["error"])):
            shared_tile(form, operand, tile["swizzle"], tile["major"])
        return
    known = shared_tile(form, operand, tile["swizzle"], tile["major"])
    offsets = grid_of(tile["mn"], tile["k"], (*tile["extent"], 1))[..., 0]
    moved = offsets ^ ((offsets >> 7) & tile["mask"]) << 4
    mn, k = known.addresses.shape
    shape = TileShape(mn=mn, k=k, element_bits=8 * known.size, major=known.major)
    assert np.array_equal(moved, tile_addresses(known.descriptor, shape))
    assert int(tile["word"], 16) == known.descriptor.encode()


# --- what the scripts make of it ----------------------------------------------------------------------


def fields(place: Any) -> list[int]:
    return [
        *(place.lane, place.register, place.index, place.low_bit, place.bits, place.row, place.column),
        place.product,
    ]


def distinct() -> Iterator[tuple[str, str]]:
    """A form and operand for every layout of the catalogue, the largest tiles of wgmma left out."""
    seen = set()
    for mnemonic, entry in entries().items():
        for operand, number in entry["layouts"].items():
            if number not in seen and not (
                entry["lanes"] > 32 and operand in "cd" and entry["shape"][1] > 64
            ):
                seen.add(number)
                yield mnemonic, operand


def test_the_scripts_find_every_place(scripts: Scripts) -> None:
    found = list(distinct())
    assert len(found) > 60
    for mnemonic, operand in found:
        expected = [fields(place) for place in places(form_of(mnemonic), operand)]
        assert scripts("places", mnemonic, operand, 0, "{}") == expected, (mnemonic, operand)


@pytest.mark.parametrize("mnemonic", [name for name in SAMPLE if FORMS[name].sparse])
def test_the_scripts_find_metadata(scripts: Scripts, mnemonic: str) -> None:
    form = form_of(mnemonic)
    for selector in form.selectors:
        expected = [fields(place) for place in places(form, "e", selector)]
        assert scripts("places", mnemonic, "e", selector, "{}") == expected


@pytest.mark.parametrize("mnemonic", [name for name in SAMPLE if FORMS[name].scale])
@pytest.mark.parametrize(("side", "threads"), [("a", 2), ("b", 4)])
def test_the_scripts_find_scales(scripts: Scripts, mnemonic: str, side: str, threads: int) -> None:
    form = form_of(mnemonic)
    for thread in range(threads):
        for byte in range(0, 4, form.scale_chunks):
            ids = {f"byte_{side}": byte, f"thread_{side}": thread}
            selectors = ScaleSelectors(**{f"{name.replace('_', '_id_')}": one for name, one in ids.items()})
            expected = [fields(place) for place in places(form, f"scale_{side}", 0, selectors)]
            assert scripts("places", mnemonic, f"scale_{side}", 0, json.dumps(ids)) == expected


@pytest.mark.parametrize("mnemonic", [name for name in SAMPLE if FORMS[name].lanes > 32])
def test_the_scripts_find_bytes_in_shared_memory(scripts: Scripts, mnemonic: str) -> None:
    form = form_of(mnemonic)
    for operand, number in entries()[mnemonic]["shared"].items():
        for tile in tables()["tiles"][number]:
            if "error" in tile:
                continue
            swizzle, major = tile["swizzle"], tile["major"]
            known = shared_tile(form, operand, swizzle, major)
            elements = max(8 // form.a.bits, 1)
            found = scripts("addresses", mnemonic, operand, swizzle, major, elements)
            assert np.array_equal(found, known.addresses)
            text = "\n".join(figure_lines(tile_figure(known)))
            assert scripts("writtenTile", mnemonic, operand, swizzle, major) == text


# --- copying ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mnemonic", SAMPLE)
def test_figures_as_text_are_those_of_layout(scripts: Scripts, mnemonic: str) -> None:
    form = form_of(mnemonic)
    for operand in register_operands(form):
        selector = form.selectors[-1] if operand == "e" else 0
        found = scripts("written", mnemonic, operand, selector, "text")
        parts = (
            zip(*[iter(found)] * 2, strict=True) if operand == "e" else None
        )  # chunks and words of each warp
        if parts and form.lanes > 32:
            assert len(list(parts)) == 4
        else:
            assert found == ["\n".join(figure_lines(one)) for one in figures(form, operand, selector)]


def one_of_a_kind() -> Iterator[tuple[str, Instruction]]:
    """A form for all that have their layouts in common, those of wgmma with many columns left out."""
    seen = set()
    for mnemonic, form in FORMS.items():
        entry = entries()[mnemonic]
        kind = (form.shape, *entry["layouts"].values(), *entry.get("metadata", ()), form.scale)
        if kind not in seen and (form.lanes == 32 or form.shape.n == 24):
            seen.add(kind)
            yield mnemonic, form


def test_cute_layouts_of_every_kind_of_form(scripts: Scripts) -> None:
    for mnemonic, form in one_of_a_kind():
        for selector in form.selectors or (0,):
            expected = [" ".join(line.split()) for line in cute_lines(form, None, selector)]
            if form.lanes > 32:  # its C is its D
                expected = [re.sub("^C", "D", line) for line in expected]
            found = [" ".join(line.split()) for line in scripts("cute", mnemonic, selector)]
            assert found == expected, mnemonic


def test_cute_types(scripts: Scripts) -> None:
    text = scripts("cuteCode", SAMPLE[0])
    assert text.splitlines()[2:4] == [
        "using ALayout = Layout<Shape<Shape<_4,_8>,Shape<_2,_2,_2>>,",
        "                       Stride<Stride<_32,_1>,Stride<_16,_8,_128>>>;",
    ]


def split_ptx(text: str) -> tuple[str, str]:
    """Declarations, and the matrix statement."""
    declared = "\n".join(line for line in text.splitlines() if line.startswith(".reg"))
    statement = re.search(r"^w?g?mma[.:\w]+\n[^;]*;", text, re.MULTILINE)
    assert statement is not None
    return declared, statement[0]


def test_the_ptx_of_forms_is_legal(scripts: Scripts) -> None:
    for mnemonic, form in FORMS.items():
        if form.lanes > 32 and form.shape.n not in (8, 64, 256):
            continue
        for shared in (True, False) if form.lanes > 32 else (True,):
            declared, statement = split_ptx(scripts("ptx", mnemonic, shared))
            version = max(form.since, (9, 0))
            assert warpsim.decode(statement, declarations=declared, version=version).mnemonic == mnemonic


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "there")
@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_ptxas_takes_the_ptx(scripts: Scripts, target: str, tmp_path: Path) -> None:
    chosen = [name for name in SAMPLE if target in FORMS[name].targets and FORMS[name].since <= (9, 0)]
    bodies = [scripts("ptx", name, shared) for name in chosen for shared in (True, False)]
    module = f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n"
    module += "\n".join(f"{{\n{body}\n}}" for body in bodies) + "\nret;\n}\n"
    (tmp_path / "k.ptx").write_text(module)
    command = [str(ptxas.program()), "-O0", "-arch", target, "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


_MAIN = """
#include <stdio.h>
{code}
int main(void) {{
{loops}
  return 0;
}}
"""
_FRAGMENT = """  for (int lane = 0; lane < {lanes}; lane++) for (int i = 0; i < {values}; i++) {{
    int row = {o}_row(lane, i), column = {o}_column(lane, i), product = {product};
    printf("%d %d %d %d %d\\n", product, row, column, {o}_register(i), {o}_low_bit(i));
    if ({o}_lane({place}) != lane || {o}_index({place}) != i) return 1;
  }}"""
_LOOP = """  for (int x = 0; x < {outer}; x++) for (int y = 0; y < {inner}; y++)
    printf("{format}\\n", {values});"""


def run_c(code: str, loops: list[str], folder: Path) -> list[list[int]]:
    """The numbers that a program prints which is made of code and loops."""
    (folder / "layout.c").write_text(_MAIN.format(code=code, loops="\n".join(loops)))
    flags = ["-std=c99", "-Wall", "-Wno-unused-function", "-Wno-parentheses", "-Werror"]
    subprocess.run(["cc", *flags, "layout.c", "-o", "layout"], cwd=folder, check=True)
    done = subprocess.run(["./layout"], cwd=folder, capture_output=True, text=True, check=True)
    return [[int(one) for one in line.split()] for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("mnemonic", SAMPLE)
def test_the_c_code_compiles_to_the_layouts(scripts: Scripts, mnemonic: str, tmp_path: Path) -> None:
    form = form_of(mnemonic)
    selector = form.selectors[-1] if form.selectors else 0
    swizzle = "128B" if form.lanes > 32 else "none"
    code = scripts("code", mnemonic, selector, swizzle, "K")
    loops, expected = [], []
    for operand in [one for one in form.registers if f"int {one}_row(" in code]:
        several = form.products > 1
        layout = form.in_registers(operand).layout
        place = "product, row, column" if several else "row, column"
        product = f"{operand}_product(lane, i)" if several else "0"
        size = {"lanes": layout.lanes, "values": layout.values}
        loops.append(_FRAGMENT.format(o=operand, product=product, place=place, **size))
        order = ("product", "row", "column", "register", "low_bit")
        expected += [[getattr(one, name) for name in order] for one in places(form, operand)]
    if form.sparse:
        fields_ = metadata_map(form, selector)
        chunks = len(fields_) // form.shape.m
        values = "e_lane(x, y), e_low_bit(x, y)"
        loops.append(_LOOP.format(outer=form.shape.m, inner=chunks, format="%d %d", values=values))
        expected += fields_[:, :2].tolist()
    for side in "ab" if form.scale else "":
        held = places(form, f"scale_{side}")
        lines, chunks = len(held) // form.scale_chunks, form.scale_chunks
        values = f"scale_{side}_lane(x, 0), scale_{side}_low_bit(y, 0)"
        loops.append(_LOOP.format(outer=lines, inner=chunks, format="%d %d", values=values))
        ordered = sorted(held, key=lambda one: (one.row, one.column)[:: 1 if side == "a" else -1])
        expected += [[one.lane, one.low_bit] for one in ordered]
    for operand in [one for one in "ab" if f"int {one}_address(" in code]:
        addresses = shared_tile(form, operand, swizzle, "K").addresses
        each = max(8 // form.a.bits, 1)
        mn, k = addresses.shape
        loops.append(_LOOP.format(outer=mn, inner=k * each, format="%d", values=f"{operand}_address(x, y)"))
        expected += [[one] for one in np.repeat(addresses, each, axis=1).reshape(-1).tolist()]
    assert run_c(code, loops, tmp_path) == expected


def test_csv_has_a_line_for_each_element(scripts: Scripts) -> None:
    (stored, _) = scripts("written", SPARSE, "a", 0, "csv")
    header, *lines = stored.splitlines()
    assert header == "operand,product,row,column,lane,register,index,low_bit,bits"
    form = form_of(SPARSE)
    expected = {
        f"a,0,{one.row},{one.column},{one.lane},{one.register},{one.index},{one.low_bit},16"
        for one in places(form, "a")
    }
    assert set(lines) == expected
    assert len(lines) == len(expected)


def test_markdown_and_latex(scripts: Scripts) -> None:
    (text,) = scripts("written", SAMPLE[0], "d", 0, "markdown")
    lines = text.splitlines()
    assert lines[0] == "**D of m16n8k16, .f32**"
    assert lines[4] == "| **0** | `T0:{d0,d1}` | `T1:{d0,d1}` | `T2:{d0,d1}` | `T3:{d0,d1}` |"
    assert len({line.count(" | ") for line in lines[2:]}) == 1
    (text,) = scripts("written", SAMPLE[0], "d", 0, "latex")
    assert text.count("\\filldraw") == 64
    assert "{T0:\\{d0,d1\\}};" in text
    assert text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}")
    assert text.splitlines()[-1] == "\\end{document}"


# --- searching ----------------------------------------------------------------------------------------


def test_searching(scripts: Scripts) -> None:
    def found(**wanted: str) -> list[str]:
        return scripts("search", json.dumps(wanted))

    assert found() == sorted(FORMS, key=list(entries()).index) or set(found()) == set(FORMS)
    assert found(text="m16n8k32 SPARSE e4m3") == []
    assert found(text="m16n8k64 sparse e4m3 f16") == [
        name
        for name in FORMS
        if "m16n8k64" in name and FORMS[name].sparse and "e4m3" in name and "f16" in name
    ]
    assert found(text="m64n128k16 bf16") == ["wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"]
    assert set(found(target="sm_75")) == {name for name, form in FORMS.items() if "sm_75" in form.targets}
    assert set(found(family="mma.sp", shape="m16n8k8")) == {
        name for name, form in FORMS.items() if form.family.name == "mma.sp" and str(form.shape) == "m16n8k8"
    }
    assert len(found(shape="m64nNk16", type="bf16")) == 32
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in found(text="HMMA.16816.F32")


def test_groups_differ_in_n_alone(scripts: Scripts) -> None:
    groups = scripts("groups")
    assert sum(map(len, groups)) == len(FORMS)
    for group in groups:
        assert len({re.sub(r"n\d+k", "nNk", name) for name in group}) == 1
        assert len(group) == 1 or FORMS[group[0]].lanes > 32


# --- SASS: what nvdisasm 13.5 printed of what ptxas 13.0 made -------------------------------------------

_F16, _S4 = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32",
)
_E4M3 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32"
_XOR, _F64 = (
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
    "mma.sync.aligned.{}.row.col.rz.f64.f64.f64.f64",
)
PRINTED = [
    ("sm_75", "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f16", "4 x HMMA.884.F32.F16.STEP0..3"),
    ("sm_80", SAMPLE[1], "no matrix instruction: FFMA, FADD and shuffles"),
    ("sm_80", _F16, "HMMA.16816.F32"),
    ("sm_90a", _F16, "HMMA.16816.F32"),
    ("sm_89", _E4M3, "QMMA.SP.16864.F32.E4M3.E5M2"),
    ("sm_90", _E4M3, "2 x HMMA.SP.16832.F32"),
    ("sm_120a", _E4M3, "QMMA.SP.16864.F32.E4M3.E5M2"),
    ("sm_86", _S4, "IMMA.16864.U4.S4"),
    ("sm_90", _S4, "2 x IMMA.16832.U8.S8"),
    ("sm_100a", "mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32", "2 x IMMA.16816.U8.S8"),
    ("sm_100a", "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32", "IMMA.16816.U8.S8.SAT"),
    ("sm_80", _XOR, "BMMA.168256.XOR.POPC"),
    ("sm_90", _XOR, "2 x BMMA.168256.AND.POPC"),
    ("sm_120a", _XOR, "8 x IMMA.16832.U8.U8"),
    ("sm_80", _F64.format("m8n8k4"), "DMMA.884.RZ"),
    ("sm_90", _F64.format("m16n8k16"), "DMMA.16x8x16.RZ"),
    ("sm_100a", _F64.format("m16n8k16"), "8 x DMMA.8x8x4.RZ"),
    ("sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k64.satfinite.s32.u8.s8", "IGMMA.SP.64x8x64.U8.S8.SAT"),
    ("sm_90a", "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", "HGMMA.64x64x16.F32.BF16"),
    ("sm_120a", SAMPLE[8], "QMMA.SF.16832.F32.E2M1.E4M3.E8"),
    ("sm_120a", SAMPLE[9], "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    ("sm_70", SAMPLE[1], None),
    ("sm_103", _F16, None),
]  # fmt: skip


@pytest.mark.parametrize(("target", "mnemonic", "name"), PRINTED)
def test_sass_names(target: str, mnemonic: str, name: str | None) -> None:
    assert sass_of(FORMS[mnemonic], target) == name


# --- the page -----------------------------------------------------------------------------------------


def test_the_page_is_small_and_loads_nothing() -> None:
    html = warpsim.explore().html
    assert len(html.encode()) < 2_000_000
    assert html == warpsim.explore().html
    assert not re.search(r'src="|href="(?!#)|@import|url\(|https?:(?!//www\.w3\.org/2000/svg)', html)
    assert "{{" not in html


def test_it_opens_at_an_instruction() -> None:
    page = warpsim.explore("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert page.form == SPARSE
    assert f'{{"form": "{SPARSE}"}}' in page.html
    with pytest.raises(warpsim.IllegalInstruction):
        warpsim.explore("mma.sync.aligned.m16n8k3.row.col.f32.f16.f16.f32")
    assert page._repr_html_().startswith("<iframe")


def verb(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        run_cli(["explore", *map(str, arguments)])
    shown = capsys.readouterr()
    return int(str(left.value.code)), shown.out, shown.err


def test_the_verb(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert verb(capsys)[:2] == (0, f"explorer.html: {len(FORMS):,} forms, 0.3 MB\n")
    code, text, _ = verb(capsys, SPARSE, "-o", "x.html", "--json")
    assert code == 0
    document = json.loads(text)
    assert document["opens_at"] == SPARSE
    assert document["bytes"] == (tmp_path / "x.html").stat().st_size
    assert (tmp_path / "x.html").read_text() == warpsim.explore(SPARSE).html


def test_the_verb_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, text, complaint = verb(
        capsys, "mma.sync.aligned.m16n8k3.row.col.f32.f16.f16.f32", "-o", tmp_path / "x.html"
    )
    assert (code, text) == (3, "")
    assert "m16n8k3" in complaint
    assert not (tmp_path / "x.html").exists()
    nowhere = tmp_path / "none" / "x.html"
    code, text, complaint = verb(capsys, "-o", nowhere)
    assert (code, text) == (3, "")
    assert complaint == f"{nowhere}: error: No such file or directory\n"
