"""Inputs that once took minutes, gigabytes, or ended in a traceback: each is an answer or an error now.

The numbers are smaller here than in the finds, so that the old code took seconds and not minutes.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from warpsim.show.cli import main

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
DIGITS = "1" * 5000
KERNEL = ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry k(){tuning}\n{{\n{body}ret;\n}}\n"
SECONDS = 5.0


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, str]:
    """Exit code and stderr of a command line; it does not take long."""
    start = time.process_time()
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    assert time.process_time() - start < SECONDS
    return left.value.code, capsys.readouterr().err


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.ptx"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"//! target sm_90a\n//! warpgroup {DIGITS}\n", "expected bytes of shared memory"),
        (f"//! target sm_80\n//! version {DIGITS}.0\n", "expected major.minor"),
        (f".version {DIGITS}.0\n.target sm_80\n", "expected major.minor"),
        ("//! target sm_90a\n//! warpgroup\n//! shared 010 = 0x1\n", "'010': expected an address"),
        (
            "//! target sm_80\n" + "".join(f".reg .b32 %{name}<1048576>;\n" for name in "abcdefghij"),
            "2097152 registers are more than the 1048576 supported",
        ),
        (
            "//! target sm_90a\n//! warpgroup\n.shared .b8 v" + f"[{(1 << 64) - 1}]" * 20000 + ";\n",
            "more than 64 bits can address",
        ),
    ],
)
def test_traces(file: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(text)
    code, error = told(capsys, "run", file)
    assert code == 3
    assert message in error
    assert f"{file}:" in error
    assert len(error) < 1000


def test_a_trace_of_blank_lines_takes_no_memory_for_them(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list had the start of every line: two gigabytes for fifty megabytes."""
    file.write_text("//! target sm_80\n" + "\n" * 10_000_000 + "%;\n")
    code, error = told(capsys, "run", file)
    assert code == 3
    assert f"{file}:10000002:1: error" in error


@pytest.mark.parametrize(
    "text",
    [
        KERNEL.format(tuning=f" .maxntid {DIGITS}", body=""),
        KERNEL.format(tuning=" .maxntid 1,1,1,1", body=""),
    ],
)
def test_modules(file: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(text)
    code, error = told(capsys, "launch", file, "--entry", "k")
    assert code == 3
    assert ".maxntid " in error
    assert ": error: " in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"lane {DIGITS}: 0x1", "line 1: lane 111"),
        ("a" + "1" * 10_000, "is neither a value nor a code with 0x"),
        ("0x0\n" * ((1 << 18) + 1), "more than 262,144 words"),
    ],
)
def test_dumps(file: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    dump = file.with_suffix(".txt")
    dump.write_text(text)
    code, error = told(capsys, "unpack", MMA, "a", dump)
    assert code == 3
    assert message in error


def test_blank_lines_of_a_dump_cost_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = file.with_suffix(".txt")
    dump.write_text("\n" * 20_000_000 + "0x3c003c00\n")
    assert told(capsys, "unpack", MMA, "a", dump) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        " - " * 1000 + "CTA 0,0,0 - warp 0 - X",
        "CTA 0,0,0 - warp 0 - " * 1000,
        "CTA 0,0,0 - warp 0 - HMMA" + " " * 3000 + "x:",
        "CTA 0,0,0 - warp 0 - HMMA" + " ;" * 3000 + "x:",
        f"CTA {DIGITS},0,0 - warp 0 - X:",
        f"CTA 0,0,0 - warp 0 - HMMA R{DIGITS}:",
        f"CTA 0,0,0 - warp 0 - X:\n* Reg{DIGITS}_T0: 0x0",
    ],
)
def test_logs(file: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A header of thousands of " - " took the cube of their number."""
    file.write_text(line + "\n")
    code, _ = told(capsys, "replay", "--target", "sm_80", file)
    assert code in (3, 4)


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "TRACE", "--element", f"{DIGITS},0"),
        ("launch", "TRACE", "--grid", DIGITS),
        ("launch", "TRACE", "--arg", f"zeros:f32:{DIGITS}"),
        ("launch", "TRACE", "--arg", "zeros:f32:" + "x".join("0" * 65)),
        ("launch", "TRACE", "--arg", f"random:f32:4:{DIGITS}"),
        ("launch", "TRACE", "--arg", f"i32:{DIGITS}"),
        ("launch", "TRACE", "--arg", f"hex:f32:0x{DIGITS}"),
        ("launch", "TRACE", "--entry", "k", "--save", f"{DIGITS}=a.npy"),
        ("launch", "TRACE", "--entry", "k", "--schedule", f"random:{DIGITS}"),
        ("launch", "TRACE", "--entry", "k", "--origins", DIGITS),
        ("explain", MMA, "a=0x1", f"selector={DIGITS}", "--element", "0,0"),
    ],
)
def test_numbers_of_thousands_of_digits(
    words: tuple[str, ...], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(KERNEL.format(tuning="", body=""))
    code, _ = told(capsys, *(str(file) if word == "TRACE" else word for word in words))
    assert code in (2, 3)


@pytest.mark.parametrize("operand", ["scale_a", "scale_b", "e"])
@pytest.mark.parametrize(
    "rest", [[], ["--json"], ["--lane", "0"], ["--element", "0,0"], ["--notation", "cute"]], ids=" ".join
)
@pytest.mark.parametrize("form", [MMA, SPARSE, SCALED])
def test_layouts_of_what_is_no_matrix(
    form: str, rest: list[str], operand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, "layout", form, "--operand", operand, *rest)[0] in (0, 3)


@pytest.mark.parametrize("value", [np.array([1, 2]), np.array(np.nan), np.array(1.0), np.array("1")])
def test_immediates_in_archives(value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, a=np.zeros((32, 4), np.uint32), selector=value)
    code, error = told(capsys, "explain", SPARSE, path, "--element", "0,0")
    assert code == 3
    assert "not one integer" in error or "has dtype" in error


@pytest.mark.parametrize("size", [("-16", "64"), ("16", "0"), ("1000000000", "64"), ("16", str(1 << 70))])
@pytest.mark.parametrize("how", [["--detect"], ["--from", "words", "--to", "indices"]], ids=" ".join)
def test_sizes_of_metadata(
    size: tuple[str, str], how: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Negative rows and a thousand million of them were tracebacks."""
    path = tmp_path / "m.npy"
    np.save(path, np.zeros((16, 4), np.uint16))
    code, error = told(capsys, "metadata", "f16", path, "--rows", size[0], "--k", size[1], *how)
    assert code == 3
    assert size[0] in error or "at most 64 are legal" in error


@pytest.mark.parametrize("dtype", ["V2", "U1", "S2", "c8", "f2,f2"])
@pytest.mark.parametrize("shape", [(16, 64), (16,), (), (0, 64), (16, 0)], ids=str)
def test_matrices_that_are_none(
    dtype: str, shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, blob = tmp_path / "a.npy", tmp_path / "m.npy"
    np.save(path, np.zeros(shape, dtype))
    np.save(blob, np.zeros((16, 4), np.uint16))
    code, _ = told(capsys, "metadata", "f16", blob, "--rows", "16", "--k", "64", "--detect", "--matrix", path)
    assert code == 3
    assert told(capsys, "compress", SPARSE, path)[0] == 3
    assert told(capsys, "pack", MMA, "a", path)[0] == 3


def test_a_product_that_no_memory_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.zeros((10**6, 0), np.float16))
    np.save(b, np.zeros((0, 10**6), np.float16))
    code, error = told(capsys, "gemm", MMA, a, b, "-o", tmp_path / "d.npy", "--target", "sm_80")
    assert code == 3
    assert "D (1000000, 1000000) takes 4,000,000,000,000 bytes, but this machine has" in error


@pytest.mark.parametrize("content", [b"\xff\xfe 0x1", b"\0" * 100, b""])
def test_stdin_that_is_no_text(
    content: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
    code, error = told(capsys, "unpack", MMA, "a", "-")
    assert code == 3
    assert error.startswith("-: error:")


def test_stdin_without_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    zero = Path("/dev/zero")
    if not zero.exists():
        pytest.skip("no device without end")
    with zero.open(encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        code, error = told(capsys, "unpack", MMA, "a", "-")
    assert code == 3
    assert "more than 67,108,864 bytes of text" in error


def test_names_of_files_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[3] / "traces"
    trace = tmp_path / "\udcff.ptx"
    trace.write_bytes((folder / "mma_m16n8k16_f16.ptx").read_bytes())
    (tmp_path / "mma_m16n8k16_f16.npz").write_bytes((folder / "mma_m16n8k16_f16.npz").read_bytes())
    assert told(capsys, "view", trace, "--out", tmp_path / "\udcff.html")[0] == 0
    assert "\\udcff" in (tmp_path / "\udcff.html").read_text()


@pytest.mark.parametrize(
    ("outside", "inside", "message"),
    [
        (".global .b8 g[99999999999999];\n", "", ".global has at most 68719476736"),
        (".const .b8 g[65537];\n", "", ".const has at most 65536"),
        ("", ".local .b8 g[524289];\n", ".local has at most 524288"),
        (".global .align 9223372036854775808 .b8 g[4];\n", "", "expected a power of two, 65536 at most"),
        (".global .align 3 .b8 g[4];\n", "", "g has alignment 3"),
    ],
)
def test_variables_that_no_memory_holds(
    outside: str, inside: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The memory was asked for: a MemoryError without a place."""
    body = inside + ".reg .b64 %d<2>;\nmov.u64 %d0, g;\n"
    text = KERNEL.format(tuning="", body=body).replace(".visible", outside + ".visible")
    file.write_text(text)
    code, error = told(capsys, "launch", file, "--entry", "k")
    assert code == 3
    assert message in error
    assert f"{file}:" in error
