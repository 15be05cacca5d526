"""Every register layout and metadata map of the package against the manual, at every point.

`manual_layouts` says where the PTX manual puts each element, section by section. The first half of this file
checks that transcription on its own, without the package: every fragment holds every matrix element once,
every figure describes every chunk once. The second half walks over every legal instruction of the package.
An instruction that no manual section describes is a failure, not a skip.
"""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from tests.helpers import manual_layouts
from tests.helpers.manual_layouts import SECTIONS, SPARSE, Fragment, Section, find_section

# the array that carries an element type's codes (integers by value), and the bits of one code
ELEMENT_TYPES = {
    "f16": (np.uint16, 16),
    "bf16": (np.uint16, 16),
    "tf32": (np.uint32, 32),
    "f32": (np.uint32, 32),
    "f64": (np.uint64, 64),
    "s32": (np.int32, 32),
    "s8": (np.int8, 8),
    "u8": (np.uint8, 8),
    "s4": (ml_dtypes.int4, 4),
    "u4": (ml_dtypes.uint4, 4),
    "b1": (np.bool_, 1),
    "e4m3": (np.uint8, 8),
    "e5m2": (np.uint8, 8),
    "e3m2": (np.uint8, 6),
    "e2m3": (np.uint8, 6),
    "e2m1": (np.uint8, 4),
}
SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def section_name(section):
    """A test name such as 9.7.14.6.2.5-m16n8k32-s8."""
    return f"{section.number}-{section.shape}-{section.types[0]}"


def extents(section, operand):
    """Rows and columns of a matrix operand; those of the compressed matrix for a sparse A."""
    m, n, k = map(int, SHAPE.fullmatch(section.shape).groups())
    stored = k // 2 if section.sparse else k
    return {"a": (m, stored), "b": (k, n), "c": (m, n), "d": (m, n)}[operand]


def all_cells(extent):
    """Every (row, column) of a matrix, once."""
    rows, columns = extent
    return Counter((row, column) for row in range(rows) for column in range(columns))


def chunk_width(section):
    """Logical columns of one chunk, from the first cell of the section's figure."""
    *_, first, last = manual_layouts.figure_cells(section.figures[0])[0]
    return last - first + 1


# ---- the transcription on its own --------------------------------------------------------------------------

every_section = pytest.mark.parametrize("section", SECTIONS, ids=section_name)
every_sparse_section = pytest.mark.parametrize("section", SPARSE, ids=section_name)


@every_section
@pytest.mark.parametrize("operand", ["a", "b", "c"])
def test_manual_fragment_holds_every_cell_once(section, operand):
    for name, fragment in getattr(section, operand).items():
        points = fragment.points()
        for lanes in section.computations:
            held = Counter(cell for (lane, _, _), cell in points.items() if lane in lanes)
            assert held == all_cells(extents(section, operand)), f"{section.number} {operand} {name}"


@every_section
def test_manual_computations_share_out_the_lanes(section):
    assert sorted(lane for lanes in section.computations for lane in lanes) == list(range(32))


@every_sparse_section
def test_manual_compressed_column_lies_in_its_range(section):
    width, fragment = chunk_width(section), section.a["row"]
    for lane in range(32):
        for i in range(fragment.registers * fragment.elements):
            row, first, last = fragment.place(lane, i)
            point_row, column = fragment.point(lane, i)
            chunk = column // (width // 2)
            assert point_row == row
            assert first <= width * chunk
            assert width * chunk + width - 1 <= last


@every_sparse_section
def test_manual_figures_describe_every_chunk_once(section):
    m, _, k = map(int, SHAPE.fullmatch(section.shape).groups())
    width = chunk_width(section)
    for selector in section.selectors:
        fields = section.metadata(selector)
        assert Counter((row, chunk) for *_, row, chunk in fields) == all_cells((m, k // width))
        used = Counter((lane, low + bit) for lane, low, bits, _, _ in fields for bit in range(bits))
        assert max(used.values()) == 1, "two fields share a bit"
        assert {bits for _, _, bits, _, _ in fields} == {4}


@every_sparse_section
def test_manual_figures_name_the_threads_of_the_text(section):
    """9.7.14.6.1: one thread of four for selectors 0 .. 3, a pair for 0 and 1, all four for 0 alone."""
    words = {4: lambda s: {s}, 2: lambda s: {2 * s, 2 * s + 1}, 1: lambda s: {0, 1, 2, 3}}
    for selector in section.selectors:
        threads = {lane % 4 for lane, *_ in section.metadata(selector)}
        assert threads == words[len(section.selectors)](selector)


@every_sparse_section
def test_manual_figures_fill_each_register(section):
    """Each section says "16 2-bit vectors" or "8 4-bit vectors": a contributing register has no bit free."""
    for selector in section.selectors:
        fields = Counter(lane for lane, *_ in section.metadata(selector))
        assert set(fields.values()) == {8}


def test_printed_m16n8k256_column_cannot_be_meant():
    letter = manual_layouts.fragment(4, 32, manual_layouts.m16n8k256_a_to_the_letter)
    assert Counter(letter.points().values()) != all_cells((16, 256))


@pytest.mark.parametrize(
    ("place", "lane", "i", "expected"),
    [
        (manual_layouts.m8n8k4_f16_c_f32, 18, 5, (4, 7)),
        (manual_layouts.m16n8k16_f64_a, 6, 5, (9, 10)),
        (manual_layouts.m16n8k32_s8_a, 5, 9, (1, 21)),
        (manual_layouts.m16n8k32_s8_b, 30, 7, (27, 7)),
        (manual_layouts.sparse_m16n8k32_f16_a, 31, 6, (15, 28, 31)),
        (manual_layouts.sparse_m16n8k64_s8_a, 9, 8, (2, 40, 47)),
    ],
)
def test_manual_points_worked_out_by_hand(place, lane, i, expected):
    assert place(lane, i) == expected


def test_manual_metadata_worked_out_by_hand():
    by_shape = {(section.shape, section.types[0]): section for section in SPARSE}
    # row 11 is held by group 3: lanes 12 .. 15
    assert (15, 24, 4, 11, 2) in by_shape["m16n8k16", "f16"].metadata(3)
    assert (15, 24, 4, 11, 6) in by_shape["m16n8k32", "f16"].metadata(1)
    assert (15, 24, 4, 11, 6) in by_shape["m16n8k32", "s8"].metadata(1)
    assert (15, 24, 4, 11, 14) in by_shape["m16n8k64", "s8"].metadata(0)


def test_unknown_form_has_no_section():
    with pytest.raises(LookupError, match=r"0 manual sections for sparse m16n8k256 with \.b1"):
        find_section(True, "m16n8k256", "b1")


# ---- the package against the transcription -----------------------------------------------------------------


class Form(NamedTuple):
    """The tokens of a mnemonic that can bear on a layout."""

    variant: str
    shape: str
    layouts: tuple[str, ...]
    kind: str
    types: tuple[str, ...]  # D, A, B, C

    def section(self) -> Section:
        section = find_section(self.variant != "dense", self.shape, self.types[1])
        assert self.types[2] in section.types, f"B is not of section {section.number}: {self}"
        return section

    def fragment(self, operand: str) -> Fragment:
        choice = {"a": self.layouts[0], "b": self.layouts[1], "c": self.types[3], "d": self.types[0]}[operand]
        return getattr(self.section(), "c" if operand == "d" else operand)[choice]


def parse(mnemonic):
    """The Form of a mnemonic, read here token by token, not by the package's parser."""
    family, *tokens = mnemonic.split(".")
    assert family == "mma", f"no manual section is written down for {mnemonic}"
    types = tuple(token for token in tokens if token in ELEMENT_TYPES)
    assert len(types) == 4, mnemonic
    return Form(
        variant=next((token for token in tokens if token.startswith("sp")), "dense"),
        shape=next(token for token in tokens if SHAPE.fullmatch(token)),
        layouts=tuple(token for token in tokens if token in ("row", "col")),
        kind=next((token for token in tokens if token.startswith("kind::")), ""),
        types=types,
    )


@pytest.fixture(scope="module")
def warpsim():
    import warpsim

    return warpsim


@pytest.fixture(scope="module")
def instructions(warpsim):
    """Every legal instruction of the package beside the Form of its mnemonic."""
    warps = (form for form in warpsim.instructions() if form.family.opcode == "mma")  # wgmma: test_wgmma.py
    return [(parse(instruction.mnemonic), instruction) for instruction in warps]


@cache
def expected_array(fragment):
    """The manual's answer in the shape of the package's: (lanes, registers, elements, 2)."""
    points = fragment.points()
    array = np.zeros((32, fragment.registers, fragment.elements, 2), dtype=np.int64)
    for (lane, register, element), cell in points.items():
        array[lane, register, element] = cell
    return array


def disagreement(form, operand, found, expected):
    """The first point at which two fragments differ, in words; empty when they agree."""
    if found.shape != expected.shape:
        return f"{form} {operand}: shape {found.shape}, the manual has {expected.shape}"
    different = np.argwhere((found != expected).any(axis=-1))
    if not len(different):
        return ""
    lane, register, element = map(int, different[0])
    place = f"lane {lane} register {register} element {element}"
    cells = [tuple(array[lane, register, element].tolist()) for array in (found, expected)]
    return f"{form} {operand}: {len(different)} points differ, first {place}: {cells[0]}, manual {cells[1]}"


def test_every_instruction_has_a_manual_section(instructions):
    assert instructions
    missing = []
    for form, _ in instructions:
        try:
            form.section()
        except LookupError as error:
            missing.append(f"{form}: {error}")
    assert not missing


def test_every_manual_section_has_an_instruction(instructions):
    covered = {(form.section().number, form.section().title) for form, _ in instructions}
    assert covered == {(section.number, section.title) for section in SECTIONS}


def test_every_layout_and_accumulator_type_of_the_manual_occurs(instructions):
    used = {
        (id(form.section()), operand, id(form.fragment(operand)))
        for form, _ in instructions
        for operand in "abcd"
    }
    for section in SECTIONS:
        for operand in "abcd":
            for name, fragment in getattr(section, "c" if operand == "d" else operand).items():
                assert (id(section), operand, id(fragment)) in used, f"{section.number} {operand} {name}"


def test_register_counts_are_the_manual_s(instructions):
    for form, instruction in instructions:
        expected = {operand: form.fragment(operand).registers for operand in "abcd"}
        if form.variant != "dense":
            expected["e"] = 1
        if form.kind.startswith("kind::mx"):  # block scaling: one .b32 of scales each (9.7.14.5.14)
            expected |= {"scale_a": 1, "scale_b": 1}
        assert dict(instruction.registers) == expected, form


@pytest.mark.parametrize("operand", ["a", "b", "c", "d"])
def test_fragments_are_the_manual_s(warpsim, instructions, operand):
    found = [
        disagreement(
            form,
            operand,
            np.asarray(warpsim.fragment(instruction, operand)),
            expected_array(form.fragment(operand)),
        )
        for form, instruction in instructions
    ]
    assert not list(filter(None, found))


@pytest.mark.parametrize("operand", ["a", "b", "c", "d"])
def test_fragments_hold_every_cell_once(warpsim, instructions, operand):
    for form, instruction in instructions:
        array = np.asarray(warpsim.fragment(instruction, operand))
        rows, columns = extents(form.section(), operand)
        for lanes in form.section().computations:
            cells = array[list(lanes)].reshape(-1, 2)
            assert ((cells >= 0) & (cells < (rows, columns))).all(), form
            held = np.bincount(cells[:, 0] * columns + cells[:, 1], minlength=rows * columns)
            assert (held == 1).all(), f"{form} {operand}"


def random_codes(form, operand, seed):
    """Codes of an operand's matrix (of each of its products), as Python-sized integers."""
    type_ = form.types["dabc".index(operand)]
    bits = ELEMENT_TYPES[type_][1]
    shape = (len(form.section().computations), *extents(form.section(), operand))
    codes = np.random.default_rng(seed).integers(0, 2**bits - 1, shape, dtype=np.uint64, endpoint=True)
    return codes & ~np.uint64(0x1FFF) if type_ == "tf32" else codes  # the low 13 bits of a tf32 are not read


def as_matrix(codes, type_):
    """Codes in the array type that stands for the element type; signed integers by value."""
    dtype, bits = ELEMENT_TYPES[type_]
    if type_ in ("s4", "s8", "s32"):
        values = codes.astype(np.int64)
        return np.where(values >> (bits - 1), values - (1 << bits), values).astype(dtype)
    return codes.astype(dtype)


def manual_registers(form, operand, codes):
    """The registers that the manual prescribes: element 0 lowest, e2m1 in bits 5 to 2 of a container."""
    fragment, type_ = form.fragment(operand), form.types["dabc".index(operand)]
    width = (64 if type_ == "f64" else 32) // fragment.elements
    padding = 2 if type_ == "e2m1" and width == 8 else 0
    registers = np.zeros((32, fragment.registers), dtype=np.uint64)
    computation = {lane: q for q, lanes in enumerate(form.section().computations) for lane in lanes}
    for (lane, register, element), (row, column) in fragment.points().items():
        shift = np.uint64(element * width + padding)
        registers[lane, register] |= codes[computation[lane], row, column] << shift
    return registers


@pytest.mark.parametrize("operand", ["a", "b", "c", "d"])
def test_packed_registers_are_the_manual_s(warpsim, instructions, operand):
    for seed, (form, instruction) in enumerate(instructions):
        codes = random_codes(form, operand, seed)
        matrix = as_matrix(codes, form.types["dabc".index(operand)])
        packed = warpsim.pack(instruction, operand, matrix if len(matrix) == 4 else matrix[0])
        expected = manual_registers(form, operand, codes)
        assert (np.asarray(packed).astype(np.uint64) == expected).all(), f"{form} {operand}"


def test_selectors_are_the_manual_s(instructions):
    for form, instruction in instructions:
        assert tuple(instruction.selectors) == form.section().selectors, form


def test_metadata_maps_are_the_manual_s(warpsim, instructions):
    for form, instruction in instructions:
        for selector in form.section().selectors:
            found = np.asarray(warpsim.metadata_map(instruction, selector))
            fields = [tuple(map(int, field)) for field in found]
            assert sorted(fields) == sorted(form.section().metadata(selector)), f"{form} selector {selector}"


def test_metadata_maps_hold_every_chunk_once(warpsim, instructions):
    for form, instruction in instructions:
        for selector in instruction.selectors:
            fields = np.asarray(warpsim.metadata_map(instruction, selector)).tolist()
            chunks = Counter((row, chunk) for *_, row, chunk in fields)
            assert chunks == all_cells((16, max(chunk for _, chunk in chunks) + 1)), form
            used = Counter((lane, low + bit) for lane, low, bits, _, _ in fields for bit in range(bits))
            assert max(used.values()) == 1, form
