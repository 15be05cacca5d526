"""Results of a device under test: every format gives the same D; bad input names its line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import warpsim
from warpsim import TraceError
from warpsim.isa.fragments import codes_from
from warpsim.workbench.generation.generate import generate_vectors
from warpsim.workbench.vectors.formats.readmemh import image
from warpsim.workbench.vectors.sets import VectorSet
from warpsim.workbench.vectors.unit_logs import read_unit_results

CASES = 3
F32 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F16 = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
Writer = Callable[[VectorSet, np.ndarray], str]


@pytest.fixture(scope="module", params=[F32, F16, F64])
def vectors(request: pytest.FixtureRequest) -> VectorSet:
    return generate_vectors(warpsim.decode(request.param, target="sm_80"), kind="random", count=CASES)


def other_d(vectors: VectorSet) -> np.ndarray:
    d = vectors.d.copy()
    d[1, 5, 0] ^= 3
    d[2, 31, -1] ^= 0x100
    return d


def digits(vectors: VectorSet) -> int:
    return 2 * vectors.d.dtype.itemsize


def places(d: np.ndarray) -> list[tuple[int, int, int]]:
    return [(int(c), int(lane), int(r)) for c, lane, r in np.ndindex(d.shape)]


def bench(vectors: VectorSet, d: np.ndarray) -> str:
    width, wrong = digits(vectors), np.argwhere(d != vectors.d)
    lines = [
        f"case {c}, lane {lane}, register d{r}: expected {vectors.d[c, lane, r]:0{width}x}, "
        f"got {d[c, lane, r]:0{width}x}"
        for c, lane, r in wrong
    ]
    tail = f"FAILED: {len(wrong)} of {d.size} registers of D differ, in 2 of {CASES} cases"
    return "\n".join(["VCD info: dumpfile opened", *lines, tail, "$fatal: D is not as expected"])


def questa(vectors: VectorSet, d: np.ndarray) -> str:
    bits = 8 * vectors.d.dtype.itemsize
    return "\n".join(
        f"# UVM_ERROR @ {10 * c} ns: vec={c} lane={lane} D[{r}]={bits}'h{d[c, lane, r]:0{digits(vectors)}X} "
        f"(ref {bits}'h{vectors.d[c, lane, r]:0{digits(vectors)}X})"
        for c, lane, r in places(d)
    )


def rows(vectors: VectorSet, d: np.ndarray) -> str:
    lines = [f"{c};{lane};{r};0x{d[c, lane, r]:0{digits(vectors)}x}" for c, lane, r in places(d)]
    return "\n".join(["case;lane;reg;got", *lines])


def lanes(vectors: VectorSet, d: np.ndarray) -> str:
    header = ["case,lane", *(f"d{r}" for r in range(d.shape[2]))]
    lines = [
        ",".join([f"{c},{lane}", *(f"{word:0{digits(vectors)}x}" for word in d[c, lane])])
        for c, lane in np.ndindex(d.shape[:2])
    ]
    return "\n".join([",".join(header), *lines])


def elements(vectors: VectorSet, d: np.ndarray) -> str:
    codes = codes_from(d, vectors.instruction, "d")
    width = vectors.instruction.d.bits // 4
    return "\n".join(
        json.dumps({"test": c, "row": m, "col": n, "dut": f"{codes[c, m, n]:0{width}x}"})
        for c, m, n in np.ndindex(codes.shape)
    )


def memory(vectors: VectorSet, d: np.ndarray) -> str:
    return "// memory data\n@00000000\n" + "\n".join(f"{word:0{digits(vectors)}x}" for word in d.ravel())


def whole_memory(vectors: VectorSet, d: np.ndarray) -> str:
    images = [image(d if name == "d" else array) for name, array in vectors.arrays().items()]
    return "\n".join(f"{word:08x}" for word in np.concatenate(images, axis=1).ravel())


def wide(vectors: VectorSet, d: np.ndarray) -> str:
    return "\n".join("".join(f"{word:0{digits(vectors)}x}" for word in case.ravel()[::-1]) for case in d)


FORMATS = (bench, questa, rows, lanes, elements, memory, whole_memory, wide)


@pytest.mark.parametrize("write", FORMATS, ids=lambda write: write.__name__)
def test_every_format_gives_the_same_d(vectors: VectorSet, write: Writer, tmp_path: Path) -> None:
    d, path = other_d(vectors), tmp_path / "unit.log"
    path.write_text(write(vectors, d) + "\n")
    found = read_unit_results(path, vectors)
    assert np.array_equal(found.d, d)
    assert (found.known == np.iinfo(d.dtype).max).all()


@pytest.mark.parametrize("matrix", [False, True])
def test_arrays(vectors: VectorSet, matrix: bool, tmp_path: Path) -> None:
    d = other_d(vectors)
    stored = codes_from(d, vectors.instruction, "d").view(vectors.instruction.d.dtype) if matrix else d
    np.save(tmp_path / "d.npy", stored)
    np.savez(tmp_path / "d.npz", d=stored)
    for name in ("d.npy", "d.npz"):
        assert np.array_equal(read_unit_results(tmp_path / name, vectors).d, d)


@pytest.fixture(scope="module")
def f32_set() -> VectorSet:
    return generate_vectors(warpsim.decode(F32, target="sm_80"), kind="random", count=CASES)


def read(
    tmp_path: Path, vectors: VectorSet, text: str, order: str = ""
) -> warpsim.workbench.vectors.unit_logs.UnitResults:
    (tmp_path / "unit.log").write_text(text)
    return read_unit_results(tmp_path / "unit.log", vectors, order)


def test_the_bench_lists_the_first_differences_alone(f32_set: VectorSet, tmp_path: Path) -> None:
    right = int(f32_set.d[1, 5, 0])
    line = f"case 1, lane 5, register d0: expected {right:08x}, got {right ^ 1:08x}\n"
    found = read(
        tmp_path, f32_set, f"{line}and 7 more\nFAILED: 8 of 384 registers of D differ, in 2 of 3 cases\n"
    )
    flat = found.known.reshape(-1)
    told = (1 * 32 + 5) * 4 + 1
    assert np.array_equal(flat == 0xFFFFFFFF, np.arange(flat.size) < told)
    assert found.d[1, 5, 0] == right ^ 1
    assert "are unknown" in found.notes[0]


def test_a_device_that_stops_answering(f32_set: VectorSet, tmp_path: Path) -> None:
    text = "case 2: not done within 1000 clocks\nFAILED: 0 of 256 registers of D differ, in 0 of 2 cases\n"
    found = read(tmp_path, f32_set, text)
    assert [bool(each.all()) for each in found.known] == [True, True, False]
    assert found.notes == ("the device answered 2 of 3 cases",)


def test_unknown_bits_stay_unknown(f32_set: VectorSet, tmp_path: Path) -> None:
    found = read(tmp_path, f32_set, "case 0 lane 1 d2 = 32'h3f80_xxZZ\n")
    assert (int(found.d[0, 1, 2]), int(found.known[0, 1, 2])) == (0x3F800000, 0xFFFF0000)
    assert int((found.known != 0).sum()) == 1


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("ok\ncase 3, lane 0, d0 = 00000000\n", "case 3: the set has cases 0 to 2", 2),
        ("case 0, lane 32, d0 = 00000000\n", "lane 32: D has lanes 0 to 31", 1),
        ("case 0, lane 0, d4 = 00000000\n", "register 4: D has registers 0 to 3", 1),
        ("case 0 D[16,0] = 00000000\n", r"D\[16, 0\]: D has 16 rows and 8 columns", 1),
        (
            "case 0, lane 0, d0 = 00000000\ncase 0, lane 0, d0 = 00000001\n",
            "another value in line 1 of this log",
            2,
        ),
        ("case 0, lane 0, register d0: expected 12345678, got 00000000\n", "the log is of another set", 1),
        ("case,lane,reg,got\n0,0,0,1.5\n", "decimals do not show all bits", 2),
        ("case,lane,got\n0,0,00000000\n", "expected columns", 1),
        ("case,lane,reg,got\n0,0,0\n", "3 cells, but the header has 4", 2),
        ("case,lane,reg,got\nx,0,0,00000000\n", "case 'x' is not a number", 2),
        ('{"case": 0,\n', "this is not a JSON object", 1),
        ("hello\n", "no line has a result", 1),
        ("\n// nothing\n", "there is no result", 1),
        ("@1\n00000000\n", "address @1, but the next word is @0", 1),
    ],
)
def test_bad_logs_name_the_line(
    f32_set: VectorSet, tmp_path: Path, text: str, message: str, line: int
) -> None:
    with pytest.raises(TraceError, match=message) as error:
        read(tmp_path, f32_set, text)
    assert error.value.location is not None
    assert error.value.location.line == line


def test_an_element_of_several_products_has_no_place(tmp_path: Path) -> None:
    """Four products of a warp have the same rows and columns; registers name the product."""
    form = warpsim.decode("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", target="sm_70")
    vectors = generate_vectors(form, kind="random", count=1)
    with pytest.raises(TraceError, match=r"D\[0, 0\] of which product\? .* computes 4 products") as error:
        read(tmp_path, vectors, "ok\ncase 0 D[0,0] = 0000\n")
    assert error.value.location is not None
    assert error.value.location.line == 2
    found = read(tmp_path, vectors, memory(vectors, vectors.d))
    assert np.array_equal(found.d, vectors.d)


def test_words_that_fit_nothing_and_words_that_fit_two_orders(f32_set: VectorSet, tmp_path: Path) -> None:
    with pytest.raises(
        TraceError, match=r"5 words of 8 hexadecimal digits are not a D of 3 cases: expected 384 words"
    ):
        read(tmp_path, f32_set, "00000000\n" * 5)
    with pytest.raises(TraceError, match="words of 8 and of 4 hexadecimal digits"):
        read(tmp_path, f32_set, "00000000 0000\n")
    random = np.random.default_rng(0).integers(0, 1 << 32, f32_set.d.size, np.uint32)
    text = "\n".join(f"{word:08x}" for word in random)
    with pytest.raises(TraceError, match=r"can be read in 2 ways: --format registers: .*--format matrix"):
        read(tmp_path, f32_set, text)
    assert np.array_equal(read(tmp_path, f32_set, text, "registers").d.ravel(), random)
    assert np.array_equal(
        codes_from(read(tmp_path, f32_set, text, "matrix").d, f32_set.instruction, "d").ravel(), random
    )


def test_a_right_unit_in_the_order_of_the_matrix_is_seen(f32_set: VectorSet, tmp_path: Path) -> None:
    codes = codes_from(f32_set.d, f32_set.instruction, "d").ravel()
    found = read(tmp_path, f32_set, "\n".join(f"{code:08x}" for code in codes))
    assert np.array_equal(found.d, f32_set.d)
    assert found.notes == ("read as elements of D by case, row and column",)


def test_fewer_cases_than_the_set(f32_set: VectorSet, tmp_path: Path) -> None:
    found = read(tmp_path, f32_set, memory(f32_set, f32_set.d[:2]))
    assert [bool(each.all()) for each in found.known] == [True, True, False]
    assert found.notes[-1] == "there are words of 2 of 3 cases"


def test_an_array_of_another_shape(f32_set: VectorSet, tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", f32_set.d[:2])
    with pytest.raises(
        TraceError, match=r"uint32 \(2, 32, 4\) is not a D of this set: expected registers uint32"
    ):
        read_unit_results(tmp_path / "d.npy", f32_set)
    np.savez(tmp_path / "d.npz", e=f32_set.d)
    with pytest.raises(TraceError, match="no array d; there are e"):
        read_unit_results(tmp_path / "d.npz", f32_set)


def test_a_log_that_counts_from_1_is_named(vectors: VectorSet, tmp_path: Path) -> None:
    path = tmp_path / "unit.log"
    path.write_text("".join(f"case {c + 1}, lane 0, d0 = {'0' * digits(vectors)}\n" for c in range(CASES)))
    with pytest.raises(TraceError, match=r"cases 0 to 2; a log that counts from 1"):
        read_unit_results(path, vectors, "")


def test_binary_words_are_read(vectors: VectorSet, tmp_path: Path) -> None:
    d, bits = other_d(vectors), 4 * digits(vectors)
    path = tmp_path / "unit.log"
    words = [f"case {c} lane {i} d{r} = {bits}'b{d[c, i, r]:0{bits}b}" for c, i, r in places(d)]
    path.write_text("\n".join(words))
    found = read_unit_results(path, vectors, "")
    assert np.array_equal(found.d, d)
    path.write_text(words[0][:-1] + "x")
    assert int(read_unit_results(path, vectors, "").known[0, 0, 0]) == (1 << bits) - 16
    path.write_text(words[0][:-1])
    with pytest.raises(TraceError):
        read_unit_results(path, vectors, "")
