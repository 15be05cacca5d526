"""Origins of metadata and scales whose words are made up of smaller ones: right kernels, and mistakes.

The kernels are traces/mistakes/halved_metadata.cu and scaled_steps.cu.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsim
from tools import generate_kernels
from warpsim.programs.launch.launching import load_text
from warpsim.show.views.origins import origin_lines
from warpsim.workbench.diagnosis.origins.element_origins import Origins, find_origins, unused_text
from warpsim.workbench.diagnosis.origins.traced_launch import TracedBuffer

FOLDER = Path(__file__).parents[3] / "traces" / "mistakes"
M, K, STEPS = 64, 128, 4
FORM = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


def halved(wrong: int, k: int = K, *, flat: bool = False, quads: bool = False) -> Origins:
    """Metadata as uint16, rows g and g + 8 of which make a word; ``flat``: A is an array of one axis, in no
    order that is known; ``quads``: lanes 2 and 3 of each quad hold the words of the next step.
    """
    text = (FOLDER / "halved_metadata.ptx").read_text()
    changed = text.replace("%r33, %r1, 1;", "%r33, %r1, 3;") if quads else text
    assert (changed != text) == quads
    kernel = load_text(changed, "k.ptx")["halved_metadata"]
    a, e = np.zeros((M, k // 2), np.float16), np.zeros((M, k // 16), np.uint16)
    a = a.reshape(-1) if flat else a
    arguments = [
        a,
        e,
        np.zeros((8, k), np.float16),
        np.zeros((M, 8), np.float32),
        np.int32(k),
        np.int32(wrong),
    ]
    return find_origins(kernel, M // 32, 64, arguments, {"A": 0, "E": 1, "B": 2})


def scaled(entry: str, dtype: str, *, lines: int = 0) -> Origins:
    """Scales as bytes or words, one of which serves four steps by byte id; ``lines`` more than are read."""
    kernel = load_text((FOLDER / "scaled_steps.ptx").read_text(), "k.ptx")[entry]
    m, k, width = 32, 512, np.dtype(dtype).itemsize
    shapes = [(count + lines, k // 32 // width) for count in (m, 8)]
    if "interleaved" in entry:
        shapes[0] = (m // 4, k // 8 // width)
    arguments = [
        *(np.zeros((count, k), np.uint8) for count in (m, 8)),
        np.zeros((m, 8), np.float32),
        *(np.zeros(shape, dtype) for shape in shapes),
        np.int32(k),
    ]
    return find_origins(kernel, m // 16, 32, arguments, {"A": 0, "B": 1, "SA": 3, "SB": 4})


def said(origins: Origins) -> list[str]:
    return list(dict.fromkeys(finding.message for finding in origins.findings))


def test_the_kernel_of_halves_is_right() -> None:
    """So that what is found in it is false."""
    random = np.random.default_rng(3)
    form = warpsim.decode(FORM, target="sm_80")
    dense = warpsim.prune(random.integers(-4, 5, (M, K)).astype(np.float16), form)
    b, d = random.integers(-4, 5, (K, 8)).astype(np.float16), np.zeros((M, 8), np.float32)
    values, indices = warpsim.compress(dense, form)
    fields = (indices.reshape(M, K // 4, 2) << [0, 2]).sum(axis=2).reshape(M, K // 16, 4)
    e = (fields << [0, 4, 8, 12]).sum(axis=2).astype(np.uint16)
    kernel = load_text((FOLDER / "halved_metadata.ptx").read_text(), "k.ptx")["halved_metadata"]
    kernel(2, 64, [values, e, np.ascontiguousarray(b.T), d, K, 0])
    np.testing.assert_array_equal(d, warpsim.gemm(form, (values, indices), b))


@pytest.mark.parametrize("k", [32, 64, 96, 128])
def test_words_of_two_halves_are_right(k: int) -> None:
    assert halved(0, k).findings == ()


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4"])
@pytest.mark.parametrize("lines", [0, 8])
def test_a_word_of_scales_serves_four_steps(dtype: str, lines: int) -> None:
    assert scaled("scaled_steps", dtype, lines=lines).findings == ()


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (
            1,
            "metadata bytes",
            "metadata of row g and g+8 are exchanged: the halves of each word (in lane 0, rows 0 and 8) "
            "(lanes 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29)",
        ),
        (2, "metadata lane", "lane l holds the word of metadata of lane l xor 1"),
        (3, "metadata step", "metadata of k step 1 is used in k step 0: 1 step ahead"),
        (
            4,
            "metadata step",
            "metadata does not advance with k: that of k step 0 is used in k steps 0, 1, 2, 3",
        ),
        (5, "metadata rows", "the same metadata is used for rows 0..15 and 16..31 of A (warps 0, 1)"),
        (
            6,
            "metadata step",
            "the same metadata is used from k 0 and from k 16 of one tile on: selector 0 reads lanes 0, 1 of "
            "each quad",
        ),
    ],
)
def test_mistakes_in_halved_metadata(wrong: int, kind: str, message: str) -> None:
    origins = halved(wrong)
    assert said(origins) == [message]
    assert {finding.kind for finding in origins.findings} == {kind}
    assert {finding.operand for finding in origins.findings} == {"e"}


@pytest.mark.parametrize("dtype", ["u1", "u4"])
@pytest.mark.parametrize(
    ("entry", "messages"),
    [
        (
            "scaled_by_first_byte",
            [
                "scales of A and B of k step 0 are used in k steps 1, 2, 3: byte id 0 is read, where byte "
                "ids 1, 2, 3 of the same words have the right scales"
            ],
        ),
        ("scaled_rows_exchanged", ["lane l holds the word of scales of A of lane l xor 1"]),
        (
            "scaled_without_advance",
            ["scales of A do not advance with k: those of k step 0 are used in k steps 0, 4, 8, 12"],
        ),
    ],
)
def test_mistakes_in_scales(entry: str, messages: list[str], dtype: str) -> None:
    assert said(scaled(entry, dtype)) == messages


def test_scales_that_are_shared_by_design() -> None:
    """A buffer with padding may be coarser than the instruction's scales: nothing is said."""
    assert said(scaled("scaled_without_advance", "u1", lines=96)) == []


@pytest.mark.parametrize("dtype", ["u1", "u4"])
def test_rows_and_steps_may_share_an_axis_of_scales(dtype: str) -> None:
    """The word of a row lies within those of a step: its place there is no k step; a whole advance is."""
    assert scaled("scaled_interleaved", dtype).findings == ()
    ahead = scaled("scaled_interleaved_ahead", dtype).findings
    assert {(found.kind, found.operand) for found in ahead} == {("metadata step", "scale_a")}
    assert all(found.message.endswith(": 4 steps ahead") for found in ahead)
    assert ahead[0].message == "scales of A of k steps 4..7 are used in k step 0: 4 steps ahead"


@pytest.mark.parametrize("flat", [False, True])
def test_metadata_for_another_selector_that_is_never_read(flat: bool) -> None:
    """Lanes 2 and 3 hold the words of step 1, but selector 0 is read in both steps."""
    (message,) = said(halved(4, 64, flat=flat, quads=True))
    selector = "metadata is loaded that is never read: selector 1 reads that of lanes 2, 3 of each quad"
    assert message.endswith(f"; {selector}")
    assert halved(0, 32, flat=flat).findings == ()


def test_metadata_that_does_not_advance_beside_a_in_no_known_order() -> None:
    origins = halved(4, flat=True)
    assert said(origins) == [
        "256 of 1024 bytes of E are read (25.0%), where the elements of A need 1024 bytes of metadata: some "
        "are used again for elements that are not theirs"
    ]
    assert {(finding.operand, finding.kind) for finding in origins.findings} == {("e", "metadata step")}
    assert halved(0, flat=True).findings == ()


@pytest.mark.parametrize("name", ["halved_metadata", "scaled_steps"])
def test_the_kernels_are_what_nvcc_makes_of_them(name: str) -> None:
    if reason := generate_kernels.missing():
        pytest.skip(reason)
    assert generate_kernels.compiled(FOLDER / f"{name}.cu") == (FOLDER / f"{name}.ptx").read_text()


# --- what is not explained ---------------------------------------------------------------------------


def first_line(origins: Origins) -> str:
    return next(iter(origin_lines(origins)))


def test_what_fits_and_is_used_whole_fits_together() -> None:
    assert halved(0).unexplained == ()
    assert first_line(halved(0)) == "no inconsistency found in the operands"


def test_unused_elements_are_named_and_nothing_fits_together() -> None:
    shared = scaled("scaled_without_advance", "u1", lines=96)
    assert shared.findings == ()
    assert shared.unexplained == (
        "6.2% of SA is used: 0..31 of 128 along axis 0, 0..3 of 16 along axis 1",
        "7.7% of SB is used: 0..7 of 104 along axis 0",
    )
    lines = list(origin_lines(shared))
    assert lines[0] == "no inconsistency found; some operands are untraced"
    assert f"not explained: {shared.unexplained[0]}" in lines


def test_an_array_that_never_arrives_is_named() -> None:
    kernel = load_text((FOLDER / "halved_metadata.ptx").read_text(), "k.ptx")["halved_metadata"]
    a, e = np.zeros((M, K // 2), np.float16), np.zeros((M, K // 16), np.uint16)
    d = np.zeros((M, 8), np.float32)
    arguments = [a, e, np.zeros((8, K), np.float16), d, np.int32(K), np.int32(0)]
    origins = find_origins(kernel, M // 32, 64, arguments, {"A": 0, "E": 1, "B": 2, "D": 3})
    assert origins.unexplained == ("nothing of D arrives unchanged in a matrix instruction",)


@pytest.mark.parametrize(
    ("used", "text"),
    [
        ([[1, 1, 0, 0], [1, 1, 0, 0]], "50.0% of X is used: 0..1 of 4 along axis 1"),
        ([[1, 0, 1, 0], [1, 0, 1, 0]], "50.0% of X is used: 0..0, 2..2 of 4 along axis 1"),
        ([[1, 1, 1, 1], [1, 1, 0, 1]], "87.5% of X is used: X[1, 2] is the first that is not"),
        ([[1, 1, 1, 1], [1, 1, 1, 1]], ""),
    ],
)
def test_what_of_an_array_is_used(used: list[list[int]], text: str) -> None:
    buffer = TracedBuffer(name="X", parameter=0, shape=(2, 4), dtype=np.dtype(np.uint16), start=1, size=16)
    bits = np.repeat(np.array(used, np.bool_), 16)
    assert unused_text(buffer, bits) == text


def test_computed_elements_are_not_explained() -> None:
    text = (FOLDER / "halved_metadata.ptx").read_text()
    line = next(one for one in text.splitlines() if one.strip().startswith("mma.sp"))
    register = line.split("{")[2].split(",")[0]
    changed = text.replace(line, f"not.b32 {register}, {register};\n{line}")
    kernel = load_text(changed, "k.ptx")["halved_metadata"]
    arguments = [np.zeros((M, K // 2), np.float16), np.zeros((M, K // 16), np.uint16)]
    arguments += [np.zeros((8, K), np.float16), np.zeros((M, 8), np.float32)]
    origins = find_origins(kernel, 2, 64, [*arguments, np.int32(K), np.int32(0)], {"A": 0, "E": 1, "B": 2})
    assert "25.0% of the elements of a are computed, not moved" in origins.unexplained[0]
