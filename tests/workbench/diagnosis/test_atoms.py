"""Views number the same places; each kind of atom, when made, is found again with the same table."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from tests.helpers.families import sample
from warpsim.isa.instruction import Instruction
from warpsim.workbench.diagnosis.solving.atoms import Atoms, atoms, predicates
from warpsim.workbench.diagnosis.solving.views import Field, View, matrix_views, view, views_of

FORMS = {
    "f16": ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80"),
    "volta": ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    "s8": ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "sm_80"),
    "s4": ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "sm_80"),
    "b1": ("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", "sm_80"),
    "tf32": ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
    "f64": ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "sm_80"),
    "sparse": ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_90a"),
    "sparse s8": ("mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", "sm_90a"),
    "scaled": (
        "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0",
        "sm_120a",
    ),
    "warpgroup": ("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "sm_90a"),
}


@lru_cache
def form(name: str) -> Instruction:
    mnemonic, target = FORMS[name]
    return warpsim.decode(mnemonic, target=target)


@lru_cache
def atoms_of(name: str, operand: str) -> Atoms:
    return atoms(views_of(form(name), operand))


OPERANDS = [(name, operand) for name in FORMS for operand in form(name).operands]


@pytest.mark.parametrize(("name", "operand"), OPERANDS)
def test_views_number_the_same_places(name: str, operand: str) -> None:
    found = views_of(form(name), operand)
    places = len(found[0].coordinates)
    for each in found:
        assert np.array_equal(each.at(each.coordinates), np.arange(places)), each
        assert np.prod([field.size for field in each.fields]) == places, each
        assert each.at(each.coordinates[:1] - 1).tolist() == [-1]
        assert np.array_equal(np.sort(each.order), np.arange(places))


@pytest.mark.parametrize("operand", ["a", "b", "c", "d"])
def test_registers_are_those_of_the_fragment(operand: str) -> None:
    ins = form("f16")
    registers, fragment = views_of(ins, operand)[0], warpsim.fragment(ins, operand)
    columns = ins.matrix_shape(operand)[1]
    for lane, register, slot in np.ndindex(fragment.shape[:3]):
        row, column = fragment[lane, register, slot]
        at = {"lane": lane, "register": register, "slot": slot}
        coordinates = np.array([at[field.name] for field in registers.fields])
        assert registers.at(coordinates) == row * columns + column


def test_metadata_places_follow_the_selector() -> None:
    ins = form("sparse")
    registers, *_, matrix, _ = views_of(ins, "e")
    for selector in ins.selectors:
        for lane, bit, _, row, chunk in warpsim.metadata_map(ins, selector)[::5].tolist():
            place = matrix.at(np.array([selector, row, chunk, 0]))
            assert registers.coordinates[place].tolist() == [lane, bit // 2]


def test_fields_of_one_value_are_left_out() -> None:
    found = view("any", (("lane", np.arange(4)), ("register", np.zeros(4, int))))
    assert found.fields == (Field("lane", 4),)
    assert found.field("lane") == 0
    with pytest.raises(KeyError, match="lane"):
        found.field("register")


def test_a_view_may_have_gaps() -> None:
    gaps = View("gaps", (Field("row", 2), Field("column", 3)), np.array([[0, 0], [1, 2]]))
    assert gaps.at(np.array([[0, 0], [0, 1], [1, 2], [2, 0]])).tolist() == [0, -1, 1, -1]


# --- atoms -----------------------------------------------------------------------------------------------


SMALL = [
    (name, operand) for name, operand in OPERANDS if len(views_of(form(name), operand)[0].coordinates) <= 512
]


@lru_cache
def numbers_of_kinds(name: str, operand: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, each in enumerate(atoms_of(name, operand)):
        found.setdefault(each.kind, []).append(number)
    return found


def found_again(known: Atoms, tables: npt.NDArray[np.intp], table: npt.NDArray[np.intp]) -> int:
    """Return the first atom that gives the values of a table; ``tables`` holds the table of each atom."""
    values = np.append(np.random.default_rng(0).permutation(known.places) + 1, 0)
    live = np.arange(len(known))
    for place in np.array_split(np.arange(known.places), 8):
        live = live[(values[tables[np.ix_(live, place)]] == values[table[place]]).all(axis=1)]
    return int(live[0])


@pytest.mark.parametrize(("name", "operand"), sample(SMALL, 2))
def test_each_kind_of_atom_is_found_by_its_values(name: str, operand: str) -> None:
    known = atoms_of(name, operand)
    tables = known.at(np.arange(known.places))
    kinds = numbers_of_kinds(name, operand)
    assert set(kinds) == {atom.kind for atom in known}
    for kind in kinds.keys() - {"unchanged"}:
        for at in kinds[kind][:: max(1, len(kinds[kind]) // 2)]:
            first = known[found_again(known, tables, known[at].table)]
            assert np.array_equal(first.table, known[at].table), known[at]
            assert first.cost <= known[at].cost


@pytest.mark.parametrize(("name", "operand"), [("f16", "a"), ("sparse", "e"), ("warpgroup", "d")])
def test_sources_of_some_places_are_those_of_the_table(name: str, operand: str) -> None:
    known = atoms_of(name, operand)
    places = np.arange(0, known.places, 7)
    sources = known.at(places)
    for at in range(0, len(known), 97):
        assert np.array_equal(sources[at], known[at].table[places]), known[at]


@pytest.mark.parametrize(("name", "operand"), SMALL)
def test_atoms_are_sorted_and_each_table_comes_once(name: str, operand: str) -> None:
    known = atoms_of(name, operand)
    tables = known.at(np.arange(known.places))
    assert (np.diff(known.cost) >= 0).all()
    assert len({table.tobytes() for table in tables}) == len(known)
    assert tables.min() >= -1
    assert tables.max() < known.places
    assert known.cost[0] == 0
    assert np.array_equal(tables[0], np.arange(known.places))


LANE = np.arange(32)
REVERSED = np.array([int(f"{lane:05b}"[::-1], 2) for lane in range(32)])
MAPS = {
    "lane ^ 7": lambda lane, register: (lane ^ 7, register),
    "lane ^ 31": lambda lane, register: (lane ^ 31, register),
    "reversed lane bits": lambda lane, register: (REVERSED[lane], register),
    "5 * lane mod 32": lambda lane, register: (5 * lane % 32, register),
    "lane ^ register": lambda lane, register: (lane ^ register, register),
    "registers 1 and 2 exchanged": lambda lane, register: (lane, np.array([0, 2, 1, 3])[register]),
    "lane 13 holds lane 14": lambda lane, register: (np.where(lane == 13, 14, lane), register),
    "quads and threads confused": lambda lane, register: (lane % 8 * 4 + lane // 8, register),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_map_of_lanes_is_one_atom(name: str) -> None:
    """The table is made from registers packed with the number of each element, not from views."""
    ins = form("f16")
    numbers = np.arange(256, dtype=np.uint16).reshape(16, 16).view(np.float16)
    words = warpsim.pack(ins, "a", numbers)
    lane, register = MAPS[name](*np.indices(words.shape))
    table = warpsim.unpack(ins, "a", words[lane, register]).view(np.uint16).reshape(-1)
    assert (atoms_of("f16", "a").at(np.arange(256)) == table).all(axis=1).sum() == 1


@pytest.mark.parametrize("stride", [12, 15, 17, 24])
def test_a_matrix_read_with_another_row_stride_is_one_atom(stride: int) -> None:
    flat = np.append(np.arange(256), np.full(1024, -1))
    row, column = np.indices((16, 16))
    read = flat[row * stride + column].reshape(-1)
    padded = np.full((16, stride), -1)
    padded[:, : min(stride, 16)] = np.arange(256).reshape(16, 16)[:, :stride]
    written = padded.reshape(-1)[np.arange(256)] if stride > 16 else read
    tables = atoms_of("f16", "a").at(np.arange(256))
    for table in (read, written):
        assert (tables == table).all(axis=1).sum() == 1


def test_blocks_and_transposition_are_atoms() -> None:
    numbers = np.arange(256).reshape(16, 16)
    blocks = numbers.reshape(2, 8, 2, 8).transpose(0, 3, 2, 1).reshape(-1)
    chunk = numbers.reshape(16, 2, 8)[np.arange(16)[:, None], np.arange(2) ^ (np.arange(16)[:, None] & 1)]
    tables = atoms_of("f16", "a").at(np.arange(256))
    for table in (blocks, numbers.T.reshape(-1), chunk.reshape(-1)):
        found = np.flatnonzero((tables == table).all(axis=1))
        assert len(found) == 1
        assert atoms_of("f16", "a").cost[found[0]] <= 3


def test_atoms_of_a_matrix_in_memory() -> None:
    known = atoms(tuple(matrix_views((24, 40), 16)))
    value = np.arange(960).reshape(24, 40)
    assert (known.at(np.arange(960)) == value[::-1].reshape(-1)).all(axis=1).any()


# --- predicates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "operand"), SMALL)
def test_each_set_of_places_comes_once(name: str, operand: str) -> None:
    known = predicates(views_of(form(name), operand))
    assert len({mask.tobytes() for mask in known.masks}) == len(known)
    assert (np.diff(known.cost) >= 0).all()
    assert known.masks.any(axis=1).all()
    assert not known.masks.all(axis=1).any()


def test_sets_of_lanes_registers_rows_are_predicates() -> None:
    first = views_of(form("f16"), "a")[0]
    lane, register, _ = first.coordinates.T
    known = predicates(views_of(form("f16"), "a"))
    row, column = np.divmod(np.arange(256), 16)
    wanted = (lane == 13, lane >= 20, lane % 2 == 1, register == 3, row == 5, column >= row, row // 8 == 1)
    for mask in wanted:
        assert (known.masks == mask).all(axis=1).sum() == 1


def test_an_operand_of_one_place_has_no_predicates() -> None:
    one = view("one", (("place", np.zeros(1, int)),))
    assert len(predicates((one,))) == 0
    assert len(atoms((one,))) == 1
