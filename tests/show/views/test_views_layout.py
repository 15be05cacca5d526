"""Layout views: every notation against the register layouts, at every point of every form.

Text is read back: figures cell by cell, shape:stride by evaluating it, closed formulas likewise. What is
read must be what `warpsim.fragment`, `metadata_map` and `pack` say.
"""

import json
import re
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.text import Text

import warpsim
from tests.helpers import manual_layouts
from tests.helpers.families import sample
from tests.helpers.layout_texts import evaluated, read_cute, with_names
from tests.helpers.pages import Page
from warpsim import OperandError, UndefinedBehavior
from warpsim.isa.families import _forms_of
from warpsim.isa.families.wgmma import WGMMA, WGMMA_SP
from warpsim.isa.operand_places.placements import Inputs, ScaleSelectors
from warpsim.isa.operand_places.places import element_place, feeds, lane_places, places
from warpsim.show.views.drawings.drawing import figure_lines
from warpsim.show.views.layouts.cute import cute_layouts
from warpsim.show.views.layouts.figures import figures
from warpsim.show.views.layouts.formulas import formula, section
from warpsim.show.views.layouts.layout import (
    cute_lines,
    layout_document,
    layout_lines,
    layout_markup,
    layout_page,
    layout_svg,
    notes,
    shown_operands,
)
from warpsim.show.views.layouts.lookups import element_lines, feeds_lines, lane_lines
from warpsim.sums.execution.pipeline import execute_inputs

SEED = 20240611
WIDE = (8, 24, 256)  # of wgmma's N: the smallest, one that is not a power of two, the largest


def every_form():
    """Every form of mma, and of wgmma those with some N."""
    rows = [(family, row) for family in (WGMMA, WGMMA_SP) for row in family.rows if row.shape.n in WIDE]
    warp = [form for form in warpsim.instructions() if form.lanes == 32]
    return [*warp, *(form for family, row in rows for form in _forms_of(family, row))]


def distinct(cases, key):
    """The first case with each key."""
    found = {}
    for case in cases:
        found.setdefault(key(*case), case)
    return list(found.values())


def fragment_key(form, operand):
    """All that an operand's layout depends on."""
    layout = {"a": form.a_layout, "b": form.b_layout}.get(operand)
    own = (form.matrix_shape(operand), form.storage(operand), form.format(operand).bits, layout)
    return (form.lanes, form.products, operand, form.sparse and operand == "a", *own)


def metadata_key(form, selector):
    """All that a metadata map depends on."""
    return (form.lanes, form.shape, form.pattern, form.storage("a").bits, selector)


ALL = every_form()
WARP = [form for form in ALL if form.lanes == 32]
FRAGMENTS = distinct(product(ALL, "abcd"), fragment_key)
FRAGMENTS = [(form, operand) for form, operand in FRAGMENTS if operand in form.registers]
SPARSE = distinct(((form, selector) for form in ALL for selector in form.selectors), metadata_key)
SCALED = [
    form for form, _ in distinct(((f, f.scale_chunks) for f in WARP if f.scale), lambda f, n: (f.shape, n))
]
FORMS = [form for form, _ in [*FRAGMENTS, *SPARSE]] + SCALED
FORMS = list({form.mnemonic: form for form in FORMS}.values())

F16 = warpsim.decode("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
SP16 = warpsim.decode("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_80")
SP32 = warpsim.decode("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", target="sm_80")
QUADS = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", target="sm_70")
SCALES = next(form for form in SCALED if form.scale_chunks == 2)
WIDEST = next(form for form in FORMS if form.shape.n == 256)

each_fragment = pytest.mark.parametrize(
    ("form", "operand"), FRAGMENTS, ids=lambda value: value if isinstance(value, str) else value.mnemonic
)


def table(form, operand):
    """(lane, index) -> (product, row, column), from warpsim.fragment alone."""
    array = np.asarray(warpsim.fragment(form, operand))
    flat = array.reshape(array.shape[0], -1, 2)
    product_of = (np.arange(len(flat)) % 16 // 4) if form.products > 1 else np.zeros(len(flat), int)
    return {
        (lane, index): (int(product_of[lane]), *map(int, flat[lane, index]))
        for lane in range(len(flat))
        for index in range(flat.shape[1])
    }


def fields(form, selector):
    """(row, chunk) -> (lane, lowest bit, bits), from warpsim.metadata_map alone."""
    found = np.asarray(warpsim.metadata_map(form, selector)).tolist()
    return {(row, chunk): (lane, low, bits) for lane, low, bits, row, chunk in found}


# --- places ----------------------------------------------------------------------------------------


@each_fragment
def test_places_are_where_pack_puts_every_element(form, operand):
    rows, columns = form.matrix_shape(operand)
    element = form.format(operand)
    shape = (form.products, rows, columns) if form.products > 1 else (rows, columns)
    rng = np.random.default_rng(SEED)
    codes = rng.integers(0, element.mask, shape, np.uint64, endpoint=True).astype(element.code_dtype)
    words = warpsim.pack(form, operand, codes)
    codes = codes.reshape(form.products, rows, columns)
    seen = set()
    for place in places(form, operand):
        bits = int(words[place.lane, place.register]) >> place.low_bit & ((1 << place.bits) - 1)
        assert bits == int(codes[place.product, place.row, place.column]), place
        seen.add((place.product, place.row, place.column))
    assert len(seen) == codes.size


@each_fragment
def test_places_are_those_of_fragment(form, operand):
    found = {
        (place.lane, place.index): (place.product, place.row, place.column) for place in places(form, operand)
    }
    assert found == table(form, operand)


@each_fragment
def test_lookups_go_both_ways(form, operand):
    rng = np.random.default_rng(SEED)
    rows, columns = form.matrix_shape(operand)
    for _ in range(20):
        q, row, column = (int(rng.integers(size)) for size in (form.products, rows, columns))
        place = element_place(form, operand, row, column, q)
        assert (place.product, place.row, place.column) == (q, row, column)
        assert place in lane_places(form, operand, place.lane)
        held = lane_places(form, operand, place.lane, place.register)
        assert place in held
        assert len(held) == form.register_bits // form.storage(operand).bits


def random_inputs(form, rng):
    """Random words for every operand that a warp-level form reads."""
    registers = {}
    for operand, count in form.registers.items():
        if operand == "d":
            continue
        word = np.uint64 if form.register_bits == 64 and operand in "abc" else np.uint32
        registers[operand] = rng.integers(0, np.iinfo(word).max, (32, count), word, endpoint=True)
    return registers


def result_code(form, registers, selector, place):
    inputs = Inputs(registers=registers, selector=selector, literal=True)
    words = execute_inputs(form, inputs, "reference")
    return int(words[place.lane, place.register]) >> place.low_bit & ((1 << place.bits) - 1)


FED = [form for target in ("sm_70", "sm_75", "sm_80", "sm_120a") for form in warpsim.instructions(target)]
FED = [form for form in FED if form.lanes == 32]
FED = [FED[index] for index in np.random.default_rng(SEED).choice(len(FED), 24, replace=False)]


@pytest.mark.parametrize("form", FED, ids=lambda form: f"{form.target}-{form.mnemonic}")
def test_an_element_depends_on_nothing_but_its_feeds(form):
    rng = np.random.default_rng(SEED)
    q, row, column = (int(rng.integers(size)) for size in (form.products, form.shape.m, form.shape.n))
    selector = max(form.selectors, default=0)
    found = feeds(form, row, column, product=q, selector=selector)
    before, other = random_inputs(form, rng), random_inputs(form, rng)
    for held in (found.a, found.b, (found.c,), found.metadata, found.scale_a, found.scale_b):
        for place in held:
            word = type(other[place.operand][0, 0])
            mask = word(((1 << place.bits) - 1) << place.low_bit)
            kept = before[place.operand][place.lane, place.register] & mask
            other[place.operand][place.lane, place.register] &= ~mask
            other[place.operand][place.lane, place.register] |= kept
    assert result_code(form, other, selector, found.d) == result_code(form, before, selector, found.d)


# --- figures ---------------------------------------------------------------------------------------

CELL = re.compile(r"T(\d+):\{([abcd])(\d+)(?:(,|\.\.)[abcd](\d+))?\}")
BITS = re.compile(r"T(\d+):\[(\d+)\.\.(\d+)\]")
CHUNK = re.compile(r"\[(\d+)\]\[(\d+)(?:\.\.(\d+))?\]")


def extent(label):
    first, _, last = label.strip().partition("..")
    return range(int(first), int(last or first) + 1)


def read_figure(lines):
    """Row label, column label and cell of every box of a figure's text; the title is left out."""
    boxes, columns = [], []
    for line in lines[1:]:
        label, *cells = (part.strip() for part in line.split(" | "))
        if "\\" in label:
            columns = cells
            continue
        assert len(cells) == len(columns) or not line
        boxes += [(label, column, cell) for column, cell in zip(columns, cells, strict=False) if cell]
    return boxes


def parts(form, operand, drawn, step=1):
    """Figures of an operand with the product that each shows."""
    chosen = drawn[::step]
    assert len(chosen) == max(form.products, form.lanes // 32)
    return [(number if form.products > 1 else 0, figure) for number, figure in enumerate(chosen)]


@each_fragment
@pytest.mark.parametrize("width", sample([None, 100], 2))
def test_figures_show_every_element_where_fragment_has_it(form, operand, width):
    expected = table(form, operand)
    drawn = figures(form, operand)
    sparse = operand == "a" and form.sparse
    found = {}
    for q, figure in parts(form, operand, drawn, 2 if sparse else 1):
        for row_label, column_label, text in read_figure(figure_lines(figure, width)):
            lane, name, first, _, last = CELL.fullmatch(text).groups()
            indices = range(int(first), int(last or first) + 1)
            elements = list(product(extent(row_label), extent(column_label)))
            assert name == operand
            assert len(indices) == len(elements)
            found |= {(int(lane), i): (q, *cell) for i, cell in zip(indices, elements, strict=True)}
    assert found == expected


@pytest.mark.parametrize("form", [form for form, name in FRAGMENTS if name == "a" and form.sparse], ids=str)
def test_logical_figures_show_the_columns_that_elements_come_from(form):
    expected = table(form, "a")
    seen = set()
    for _, figure in parts(form, "a", figures(form, "a")[1:], 2):
        for row_label, column_label, text in read_figure(figure_lines(figure)):
            lane, _, first, _, last = CELL.fullmatch(text).groups()
            for index in range(int(first), int(last or first) + 1):
                _, row, stored = expected[int(lane), index]
                chunk = stored // form.pattern.stored
                columns = range(form.pattern.chunk * chunk, form.pattern.chunk * (chunk + 1))
                assert extent(row_label) == range(row, row + 1)
                assert set(columns) <= set(extent(column_label))
                seen.add((int(lane), index))
    assert seen == set(expected)


@pytest.mark.parametrize(("form", "selector"), SPARSE, ids=str)
@pytest.mark.parametrize("width", [None, 80])
def test_metadata_figures_show_every_field(form, selector, width):
    expected = fields(form, selector)
    by_chunk, by_word = figures(form, "e", selector)
    found = {}
    for row_label, column_label, text in read_figure(figure_lines(by_chunk, width)):
        lane, high, low = map(int, BITS.fullmatch(text).groups())
        columns = extent(column_label)
        assert len(columns) == form.pattern.chunk
        found[int(row_label), columns.start // len(columns)] = (lane, low, high - low + 1)
    assert found == expected
    found = {}
    for word, bits, text in read_figure(figure_lines(by_word, width)):
        row, first, _ = CHUNK.fullmatch(text).groups()
        high, low = map(int, re.fullmatch(r"\[(\d+)\.\.(\d+)\]", bits).groups())
        lane = int(re.fullmatch(r"T(\d+) %e", word)[1])
        found[int(row), int(first) // form.pattern.chunk] = (lane, low, high - low + 1)
    assert found == expected


@pytest.mark.parametrize("form", SCALED, ids=str)
@pytest.mark.parametrize("side", ["a", "b"])
def test_scale_figures_follow_the_printed_formula(form, side):
    rule = dict(formula(form, f"scale_{side}").results)
    byte_ids = range(0, 4, form.scale_chunks)
    threads = range(2 if side == "a" else 4)
    for byte_id, thread_id in product(byte_ids, threads):
        names = {f"byte_id_{side}": byte_id, f"thread_id_{side}": thread_id}
        (figure,) = figures(form, f"scale_{side}", scales=ScaleSelectors(**names))
        boxes = read_figure(figure_lines(figure))
        extents = (form.shape.m if side == "a" else form.shape.n) * form.scale_chunks
        assert len(boxes) == extents
        for row_label, column_label, text in boxes:
            row, chunk = map(int, (row_label, column_label))
            if side == "b":
                row, chunk = chunk, row
            values = names | {"row": row, "col": row, "chunk": chunk}
            lane, high, low = map(int, BITS.fullmatch(text).groups())
            assert (lane, low, high - low + 1) == (
                evaluated(rule["lane"], values),
                evaluated(rule["lowest bit"], values),
                8,
            )


M16N8K16_METADATA = r"""
Metadata of sparse m16n8k16, .f16, selector 1: the bits that describe each chunk of A
row \ columns |     0..3     |     4..7     |    8..11     |    12..15
            0 | T1:[3..0]    | T1:[7..4]    | T1:[11..8]   | T1:[15..12]
            1 | T5:[3..0]    | T5:[7..4]    | T5:[11..8]   | T5:[15..12]
            2 | T9:[3..0]    | T9:[7..4]    | T9:[11..8]   | T9:[15..12]
            3 | T13:[3..0]   | T13:[7..4]   | T13:[11..8]  | T13:[15..12]
            4 | T17:[3..0]   | T17:[7..4]   | T17:[11..8]  | T17:[15..12]
            5 | T21:[3..0]   | T21:[7..4]   | T21:[11..8]  | T21:[15..12]
            6 | T25:[3..0]   | T25:[7..4]   | T25:[11..8]  | T25:[15..12]
            7 | T29:[3..0]   | T29:[7..4]   | T29:[11..8]  | T29:[15..12]
            8 | T1:[19..16]  | T1:[23..20]  | T1:[27..24]  | T1:[31..28]
            9 | T5:[19..16]  | T5:[23..20]  | T5:[27..24]  | T5:[31..28]
           10 | T9:[19..16]  | T9:[23..20]  | T9:[27..24]  | T9:[31..28]
           11 | T13:[19..16] | T13:[23..20] | T13:[27..24] | T13:[31..28]
           12 | T17:[19..16] | T17:[23..20] | T17:[27..24] | T17:[31..28]
           13 | T21:[19..16] | T21:[23..20] | T21:[27..24] | T21:[31..28]
           14 | T25:[19..16] | T25:[23..20] | T25:[27..24] | T25:[31..28]
           15 | T29:[19..16] | T29:[23..20] | T29:[27..24] | T29:[31..28]

Metadata of sparse m16n8k16, .f16, selector 1: the chunks [row][columns] that each word describes
word \ bits |   [31..28]   |   [27..24]  |  [23..20]  |  [19..16]  |   [15..12]  |  [11..8]   |   [7..4]  |   [3..0]
      T1 %e | [8][12..15]  | [8][8..11]  | [8][4..7]  | [8][0..3]  | [0][12..15] | [0][8..11] | [0][4..7] | [0][0..3]
      T5 %e | [9][12..15]  | [9][8..11]  | [9][4..7]  | [9][0..3]  | [1][12..15] | [1][8..11] | [1][4..7] | [1][0..3]
      T9 %e | [10][12..15] | [10][8..11] | [10][4..7] | [10][0..3] | [2][12..15] | [2][8..11] | [2][4..7] | [2][0..3]
     T13 %e | [11][12..15] | [11][8..11] | [11][4..7] | [11][0..3] | [3][12..15] | [3][8..11] | [3][4..7] | [3][0..3]
     T17 %e | [12][12..15] | [12][8..11] | [12][4..7] | [12][0..3] | [4][12..15] | [4][8..11] | [4][4..7] | [4][0..3]
     T21 %e | [13][12..15] | [13][8..11] | [13][4..7] | [13][0..3] | [5][12..15] | [5][8..11] | [5][4..7] | [5][0..3]
     T25 %e | [14][12..15] | [14][8..11] | [14][4..7] | [14][0..3] | [6][12..15] | [6][8..11] | [6][4..7] | [6][0..3]
     T29 %e | [15][12..15] | [15][8..11] | [15][4..7] | [15][0..3] | [7][12..15] | [7][8..11] | [7][4..7] | [7][0..3]

metadata: rows 0..15, chunks 0..3 of 4 columns, selector 1 (PTX ISA, section 9.7.14.6.2.1)
  lane       = 4 * (row % 8) + 1
  lowest bit = 16 * (row / 8) + 4 * chunk
  other lanes' registers are not read
  sparsity 2:4: k = 4 * chunk + index, index = field & 3 of the first unit, field >> 2 of the second
"""  # noqa: E501


def test_the_text_of_one_figure():
    lines = layout_lines(SP16, "e", selector=1)
    assert lines[0] == SP16.mnemonic
    assert "\n".join(lines[1:]) == M16N8K16_METADATA.rstrip("\n")


# --- CuTe ------------------------------------------------------------------------------------------


@each_fragment
def test_cute_text_is_the_fragment(form, operand):
    expected = table(form, operand)
    found = {}
    for q, layout in enumerate(cute_layouts(form, operand)):
        places_, (rows, columns) = read_cute(str(layout))
        size = form.matrix_shape(operand)
        assert (rows, columns) == (size[::-1] if operand == "b" else size)
        for key, (row, column) in places_.items():
            found[key] = (q, column, row) if operand == "b" else (q, row, column)
    assert found == expected


@pytest.mark.parametrize(("form", "selector"), SPARSE, ids=str)
def test_cute_text_is_the_metadata_map(form, selector):
    (layout,) = cute_layouts(form, "e", selector)
    found, _ = read_cute(str(layout))
    expected = {(lane, low // 4): place for place, (lane, low, _) in fields(form, selector).items()}
    assert found == expected


@pytest.mark.parametrize(
    ("form", "operand", "trait"),
    [  # what cutlass/include/cute/atom/mma_traits_sm70.hpp, sm80 and sm90_gmma have
        (F16, "a", "(T32,V8) -> (M16,K16)  ((4,8),(2,2,2)):((32,1),(16,8,128))"),
        (F16, "b", "(T32,V4) -> (N8,K16)  ((4,8),(2,2)):((16,1),(8,64))"),
        (F16, "c", "(T32,V4) -> (M16,N8)  ((4,8),(2,2)):((32,1),(16,8))"),
        (QUADS, "c", "(T8,V8) -> (M8,N8)  ((2,2,2),(2,2,2)):((1,16,4),(8,2,32))  lane = (4,2):(1,16)"),
        (WIDEST, "d", "(T128,V128) -> (M64,N256)  ((4,8,4),(2,2,32)):((128,1,16),(64,8,512))"),
    ],
)
def test_cute_text_is_that_of_cutlass(form, operand, trait):
    assert str(cute_layouts(form, operand)[0]) == trait


def test_cute_lines_name_the_operand():
    assert cute_lines(SP32, "e", 1) == [
        "E  (T16,V8) -> (M16,C8)  ((2,8),(4,2)):((64,1),(16,8))  lane = (2,8):(1,4) + 2"
    ]
    assert layout_lines(F16, "c", notation="cute") == [
        F16.mnemonic,
        "C  (T32,V4) -> (M16,N8)  ((4,8),(2,2)):((32,1),(16,8))",
    ]
    with pytest.raises(OperandError, match="scale_a has no layout in CuTe's notation"):
        cute_lines(SCALES, "scale_a")


# --- formulas --------------------------------------------------------------------------------------


@each_fragment
def test_formulas_give_the_fragment(form, operand):
    rule = formula(form, operand)
    results = dict(rule.results)
    for (lane, index), (q, row, column) in table(form, operand).items():
        values = with_names(rule.names, {"laneid": lane, "lane": lane, "i": index})
        values["col"] = evaluated(results["col"], values)
        assert (evaluated(results["row"], values), values["col"]) == (row, column)
        assert values.get("product", 0) == q
        if "chunk" in results:
            assert evaluated(results["chunk"], values) == column // form.pattern.stored


@pytest.mark.parametrize(("form", "selector"), SPARSE, ids=str)
def test_formulas_give_the_metadata_map(form, selector):
    results = dict(formula(form, "e", selector).results)
    for (row, chunk), (lane, low, _) in fields(form, selector).items():
        values = {"row": row, "chunk": chunk}
        assert evaluated(results["lane"], values) == lane
        assert evaluated(results["lowest bit"], values) == low


def test_formulas_name_the_section_of_the_manual():
    for form in WARP:
        found = manual_layouts.find_section(form.sparse, str(form.shape), str(form.a))
        assert {section(form, operand) for operand in "abcd"} == {found.number}, form


def test_formulas_name_the_section_of_the_warpgroup():
    for form in FORMS:
        if form.lanes > 32:
            number = {8: 2, 16: 1, 32: 3, 256: 4}[form.stored_k]
            assert section(form, "d") == f"9.7.15.5.1.1.{number}", form


# --- SVG, HTML, markup and data --------------------------------------------------------------------

SHOWN = [F16, SP32, QUADS, SCALES, next(form for form in FORMS if form.lanes > 32)]
shown = pytest.mark.parametrize("form", SHOWN, ids=str)


def lanes_read(form, operand):
    return {place.lane for place in places(form, operand)}


@shown
def test_svg_is_well_formed_and_has_every_lane(form):
    for operand in form.registers:
        root = ElementTree.fromstring(layout_svg(form, operand))
        boxes = [each for each in root.iter() if "data-lane" in each.attrib]
        assert {int(each.get("data-lane")) for each in boxes} == lanes_read(form, operand)
        assert len(boxes) == sum(len(list(figure.cells)) for figure in figures(form, operand))
        width, height = float(root.get("width")), float(root.get("height"))
        for rectangle in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y, w, h = (float(rectangle.get(name)) for name in ("x", "y", "width", "height"))
            assert x >= 0
            assert x + w <= width
            assert y >= 0
            assert y + h <= height


@shown
def test_page_is_well_formed_and_loads_nothing(form):
    text = layout_page(form)
    parser = Page()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    assert parser.loaded == []
    assert parser.lanes == set(range(form.lanes))
    assert form.mnemonic in parser.texts
    assert "@import" not in text
    assert "url(" not in text


@shown
def test_markup_is_the_text_in_colour(form):
    plain = layout_lines(form, width=100)
    coloured = [Text.from_markup(line) for line in layout_markup(form, width=100)]
    assert [line.plain.rstrip() for line in coloured] == plain
    assert any(" on #" in str(part.style) for line in coloured for part in line.spans)


@each_fragment
def test_figures_fit_their_width(form, operand):
    for figure in figures(form, operand):
        assert max(map(len, figure_lines(figure, 100)[1:])) <= 100


@shown
def test_document_is_json_and_has_every_place(form):
    document = json.loads(json.dumps(layout_document(form)))
    assert set(document["operands"]) == set(shown_operands(form))
    for operand, data in document["operands"].items():
        held = places(form, operand)
        assert [place["lane"] for place in data["places"]] == [place.lane for place in held]
        assert data["registers"] == form.registers[operand]


def test_shown_operands_leave_out_a_d_like_c():
    assert shown_operands(F16) == ("a", "b", "c")
    mixed = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16")
    assert shown_operands(mixed) == ("a", "b", "c", "d")
    assert shown_operands(SCALES)[-2:] == ("scale_a", "scale_b")
    assert shown_operands(WIDEST) == ("a", "c")


def test_registers_of_elements_in_words():
    assert notes(F16, "b")[1] == "  registers, low bits first: %b0 = {b0,b1}, %b1 = {b2,b3}"
    assert notes(F16, "c")[1] == "  registers, low bits first: %c0 = {c0}, %c1 = {c1}, %c2 = {c2}, %c3 = {c3}"
    eight = warpsim.decode("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32")
    assert notes(eight, "b")[1] == "  registers, low bits first: %b0 = {b0..b3}, %b1 = {b4..b7}"


# --- questions -------------------------------------------------------------------------------------


def test_questions_are_answered_in_words():
    assert element_lines(F16, "a", 9, 3) == ["A[9,3]: lane 5, register %a1, bits 31..16"]
    assert element_lines(SP32, "a", 9, 3) == [
        "A[9,3] as stored, from columns 4..7: lane 5, register %a1, bits 31..16"
    ]
    assert element_lines(QUADS, "c", 2, 5, 3) == ["C[2,5] of product 3: lane 12, register %c7, bits 31..0"]
    assert lane_lines(F16, "b", 5, 1) == ["T5 %b1[15..0]   B[10,1]", "T5 %b1[31..16]  B[11,1]"]
    assert lane_lines(SP32, "e", 7) == ["T7 %e: not read"]
    assert lane_lines(SP32, "e", 4)[4] == "T4 %e[19..16]  metadata of row 9, chunk 0"
    assert lane_lines(SCALES, "scale_a", 5) == [
        "T5 %scale_a[7..0]   scale of row 9, chunk 0",
        "T5 %scale_a[15..8]  scale of row 9, chunk 1",
    ]


FEEDS = """
D[3,5]              T14 %d1[31..0]
C                   T14 %c1[31..0]
A stored [3][0..1]  T12 %a0[31..0]
A stored [3][2..3]  T13 %a0[31..0]
A stored [3][4..5]  T14 %a0[31..0]
A stored [3][6..7]  T15 %a0[31..0]
B [0..1][5]         T20 %b0[31..0]
B [2..3][5]         T21 %b0[31..0]
B [4..5][5]         T22 %b0[31..0]
B [6..7][5]         T23 %b0[31..0]
B [8..9][5]         T20 %b1[31..0]
B [10..11][5]       T21 %b1[31..0]
B [12..13][5]       T22 %b1[31..0]
B [14..15][5]       T23 %b1[31..0]
metadata [3][0..3]  T14 %e[15..0]
"""


def test_feeds_in_words():
    assert "\n".join(feeds_lines(SP16, 3, 5, selector=2)) == FEEDS.strip()
    assert feeds_lines(WIDEST, 17, 200)[-1] == "B               in shared memory"
    assert feeds_lines(SCALES, 9, 2)[-2:] == [
        "scale_a [9][0..1]  T5 %scale_a[15..0]",
        "scale_b [0..1][2]  T8 %scale_b[15..0]",
    ]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: element_place(F16, "a", 16, 0), r"A\[16,0\] does not exist: A of .* is 16 x 16"),
        (lambda: element_place(F16, "d", 0, 0, 1), r"product 1: .* computes 1, counted from 0"),
        (lambda: element_place(WIDEST, "b", 0, 0), r"B of .* lies in shared memory, not in registers"),
        (lambda: figures(F16, "e"), r"has no operand 'e' in registers; it has a, b, c, d"),
        (lambda: lane_places(F16, "a", 32), r"lane 32: .* has lanes 0\.\.31"),
        (lambda: lane_places(F16, "a", 0, 4), r"register 4 of a: .* has 0\.\.3"),
    ],
)
def test_questions_without_an_answer(ask, message):
    with pytest.raises(OperandError, match=message):
        ask()


def test_a_selector_that_does_not_exist():
    with pytest.raises(UndefinedBehavior, match="sparsity selector 2"):
        figures(SP32, "e", 2)
