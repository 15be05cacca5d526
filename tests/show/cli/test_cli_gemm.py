"""``warpsim gemm``: products of matrices in files."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpsim
from warpsim.show.cli import main

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
BLOCK = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((40, 64), (64, 24)))
C = RNG.standard_normal((40, 24)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own, with A, B and C in files."""
    monkeypatch.chdir(tmp_path)
    saved(A=A, B=B, C=C)
    return tmp_path


def saved(**matrices: Any) -> None:
    for name, matrix in matrices.items():
        np.save(f"{name}.npy", matrix)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs ``warpsim gemm`` in this process: exit code, stdout and stderr."""

    def command(*arguments: str, target: str = "sm_90a") -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["gemm", *arguments, "-o", "D.npy", "--target", target])
        assert isinstance(caught.value.code, int)
        return (caught.value.code, *capsys.readouterr())

    return command


def product() -> Any:
    """What was written; nothing else was."""
    assert not list(Path().glob(".*"))
    return np.load("D.npy")


def is_same(d: Any) -> None:
    """D.npy holds this matrix, of this type."""
    written = product()
    assert written.dtype == d.dtype
    assert written.shape == d.shape
    assert written.tobytes() == d.tobytes()


# --- what it computes --------------------------------------------------------------------------------


def test_a_product_and_what_is_said_of_it(run: Any) -> None:
    d = warpsim.gemm(F16, A, B, target="sm_90a")
    assert run(F16, "A.npy", "B.npy") == (
        0,
        f"D.npy: 40 x 24 f32, sha256 {sha256(d.tobytes()).hexdigest()}\n"
        f"  {F16}\n"
        "  on sm_90a, 4 instructions along k = 64\n"
        f"  {warpsim.evidence(F16, 'sm_90a')}\n",
        "",
    )
    is_same(d)


def test_options_are_those_of_the_function(run: Any) -> None:
    for options in ({"split_k": 3}, {"promote_every": 2}, {"split_k": 2, "threads": 1}):
        given = [
            word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        assert run(F16, "A.npy", "B.npy", "--c", "C.npy", *given)[0] == 0
        is_same(warpsim.gemm(F16, A, B, C, target="sm_90a", **options))


def test_json(run: Any) -> None:
    code, out, err = run(F16, "A.npy", "B.npy", "--split-k", "2", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "file": "D.npy",
        "sha256": sha256(product().tobytes()).hexdigest(),
        "shape": [40, 24],
        "type": "f32",
        "mnemonic": F16,
        "target": "sm_90a",
        "k": 64,
        "instructions": 4,
        "split_k": 2,
        "promote_every": None,
        "undefined": "error",
        "evidence": {
            "label": "validated",
            "detail": "Khattak and Mikaitis",
            "chips": "H100, H200",
            "outputs": 5000,
            "text": "validated on H100, H200: 5,000 outputs equal (Khattak and Mikaitis)",
        },
    }


def test_sparse_a(run: Any) -> None:
    dense = warpsim.prune(A, SPARSE)
    d = warpsim.gemm(SPARSE, dense, B, target="sm_90a")
    saved(A=dense)
    assert run(SPARSE, "A.npy", "B.npy")[0] == 0
    is_same(d)
    parts = [warpsim.compress(block, SPARSE) for block in (dense[:16, :32], dense[:16, 32:])]
    saved(V=np.hstack([part[0] for part in parts]), I=np.hstack([part[1] for part in parts]))
    assert run(SPARSE, "V.npy", "B.npy", "--indices", "I.npy")[0] == 0
    is_same(d[:16])


@pytest.mark.parametrize("arrangement", ["fields", "words", "cutlass", "torch", "indices"])
def test_metadata_in_every_order(run: Any, arrangement: str) -> None:
    form = warpsim.decode(SPARSE, target="sm_90a")
    rng = np.random.default_rng(1)
    a = warpsim.prune(rng.standard_normal((64, 64)).astype(np.float16), form)
    parts = [warpsim.compress(a[i : i + 16, j : j + 32], form) for i in range(0, 64, 16) for j in (0, 32)]
    values, indices = (
        np.concatenate(
            [np.concatenate([one[at] for one in parts[i : i + 2]], axis=1) for i in range(0, 8, 2)]
        )
        for at in range(2)
    )
    e = warpsim.convert_metadata(indices, 64, 64, form, source="indices", target=arrangement)
    saved(V=values, E=e)
    code, _, err = run(SPARSE, "V.npy", "B.npy", "--metadata", "E.npy", "--arrangement", arrangement)
    assert code == 0, err
    assert np.array_equal(np.load("D.npy"), warpsim.gemm(form, a, B))


def test_undefined_indices_are_executed_on_demand(run: Any) -> None:
    saved(V=A[:16, :16], I=np.zeros((16, 16), np.uint8), B=B[:32])
    code, _, err = run(SPARSE, "V.npy", "B.npy", "--indices", "I.npy")
    assert code == 3
    assert err.startswith("warpsim gemm: error: ")
    assert run(SPARSE, "V.npy", "B.npy", "--indices", "I.npy", "--allow-undefined")[0] == 0


def test_block_scales(run: Any) -> None:
    a, b = A[:16].astype(ml_dtypes.float8_e4m3fn), B.astype(ml_dtypes.float8_e4m3fn)
    scale_a, scale_b = (RNG.integers(120, 130, shape).astype(np.uint8) for shape in ((16, 2), (2, 24)))
    saved(A=a.view(np.uint8), B=b.view(np.uint8), X=scale_a, Y=scale_b)
    assert run(BLOCK, "A.npy", "B.npy", "--scale-a", "X.npy", "--scale-b", "Y.npy", target="sm_120a")[0] == 0
    is_same(warpsim.gemm(BLOCK, a, b, target="sm_120a", scale_a=scale_a, scale_b=scale_b))


def test_types_that_numpy_has_no_name_for(run: Any) -> None:
    for mnemonic, dtype in ((BF16, ml_dtypes.bfloat16), (E4M3, ml_dtypes.float8_e4m3fn)):
        a, b = A.astype(dtype), B.astype(dtype)
        saved(A=a, B=b)
        assert np.load("A.npy").dtype.kind == "V"
        assert run(mnemonic, "A.npy", "B.npy")[0] == 0
        is_same(warpsim.gemm(mnemonic, a, b, target="sm_90a"))


def test_by_column_and_empty(run: Any) -> None:
    saved(A=np.asfortranarray(A))
    assert run(F16, "A.npy", "B.npy")[0] == 0
    is_same(warpsim.gemm(F16, A, B, target="sm_90a"))
    saved(A=A[:0])
    assert run(F16, "A.npy", "B.npy")[0] == 0
    is_same(np.zeros((0, 24), np.float32))


def test_inputs_stay_as_they_are(run: Any) -> None:
    """They are mapped into memory, and D replaces none of them."""
    before = Path("A.npy").read_bytes()
    run(F16, "A.npy", "B.npy", "--c", "C.npy")
    assert Path("A.npy").read_bytes() == before
    kept = Path("C.npy").read_bytes()
    with pytest.raises(SystemExit) as caught:
        main(["gemm", F16, "A.npy", "B.npy", "--c", "C.npy", "-o", "C.npy", "--target", "sm_90a"])
    assert (caught.value.code, Path("C.npy").read_bytes()) == (3, kept)


# --- what goes wrong ---------------------------------------------------------------------------------


def bad(name: str) -> None:
    """Files that are not matrices."""
    content = {"text": b"hello", "cut": Path("A.npy").read_bytes()[:1000]}
    Path(f"{name}.npy").write_bytes(content[name])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("text.npy", "B.npy"),
            "text.npy: error: cannot be read as an .npy file: EOF: reading magic string,",
        ),
        (("cut.npy", "B.npy"), "cut.npy: error: the array claims "),
        (
            ("objects.npy", "B.npy"),
            "objects.npy: error: the array claims ",
        ),
        (("A.npy", "none.npy"), "none.npy: error: No such file or directory\n"),
        (("pipe.npy", "B.npy"), "pipe.npy: error: expected a regular file, given a pipe\n"),
        (("A.npy", "zeros.npy"), "zeros.npy: error: expected a regular file, given a device\n"),
        (("B.npy", "B.npy"), "warpsim gemm: error: A has 24 columns, but B has 64 rows\n"),
        (
            ("f32.npy", "B.npy"),
            "warpsim gemm: error: A has dtype float32, but f16 elements come as float16 or ",
        ),
        (("bf16.npy", "B.npy"), "warpsim gemm: error: A has dtype |V2, but f16 elements come as float16 or "),
        (("A.npy", "B.npy", "--c", "A.npy"), "warpsim gemm: error: C has shape (40, 64), but gemm takes"),
        (
            ("A.npy", "B.npy", "--indices", "C.npy"),
            f"warpsim gemm: error: {F16} is dense; it takes no indices\n",
        ),
        (
            ("A.npy", "B.npy", "--scale-a", "C.npy"),
            f"warpsim gemm: error: {F16} has no block scales; scale_a",
        ),
    ],
)
def test_what_cannot_be_read_or_multiplied(run: Any, arguments: tuple[str, ...], message: str) -> None:
    bad("text")
    bad("cut")
    saved(bf16=A.astype(ml_dtypes.bfloat16), f32=A.astype(np.float32))
    np.save("objects.npy", np.array([1, "x"], object), allow_pickle=True)
    os.mkfifo("pipe.npy")
    os.symlink("/dev/zero", "zeros.npy")
    code, out, err = run(F16, *arguments)
    assert (code, out) == (3, "")
    assert err.startswith(message)
    assert not Path("D.npy").exists()


def test_an_illegal_instruction(run: Any) -> None:
    code, out, err = run("mma.foo", "A.npy", "B.npy")
    assert (code, out) == (3, "")
    assert err.startswith("<string>:1:4: error: mma has no modifier '.foo'")


def test_errors_in_json(run: Any) -> None:
    code, out, err = run(F16, "B.npy", "B.npy", "--json")
    assert code == 3
    assert err == "warpsim gemm: error: A has 24 columns, but B has 64 rows\n"
    (error,) = json.loads(out)["errors"]
    assert (error["kind"], error["message"]) == ("OperandError", "A has 24 columns, but B has 64 rows")


def test_a_folder_that_is_not_there_is_noticed_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["gemm", F16, "none.npy", "B.npy", "-o", "there/D.npy", "--target", "sm_90a"])
    assert caught.value.code == 3
    assert capsys.readouterr().err == "there: error: No such file or directory\n"


def test_no_scheduler(run: Any) -> None:
    pytest.importorskip("distributed", reason="the extra warpsim[distributed] is not installed")
    code, out, err = run(F16, "A.npy", "B.npy", "--scheduler", "nowhere")
    assert (code, out) == (4, "")
    assert err == (
        "warpsim gemm: error: 'nowhere' is not an address of a Dask scheduler, such as tcp://host:8786: "
        "missing port number in address 'nowhere'\n"
    )


# --- progress ----------------------------------------------------------------------------------------


def test_progress_is_shown_on_a_terminal_only(folder: Path) -> None:
    command = [sys.executable, "-m", "warpsim", "gemm", F16, "A.npy", "B.npy", "-o", "D.npy"]
    command += ["--target", "sm_90a"]
    ours, theirs = pty.openpty()
    environment = os.environ | {"WARPSIM_PROGRESS_AFTER": "0"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, check=True, timeout=60, env=environment
    )
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert "multiplying" in shown
    assert "100%" in shown
    assert done.stdout.startswith(b"D.npy: 40 x 24 f32")
    is_same(warpsim.gemm(F16, A, B, target="sm_90a"))


def test_the_function_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bands of some rows, of which the bits know nothing."""
    a = np.vstack([A] * 30)
    steps: list[tuple[int, int]] = []
    d = warpsim.gemm(F16, a, B, target="sm_90a", progress=lambda *step: steps.append(step))
    assert steps == [(28_800, 28_800)]
    monkeypatch.setattr("warpsim.sums.products.gemm._STEP", 1)
    banded = warpsim.gemm(F16, a, B, target="sm_90a", progress=lambda *step: steps.append(step))
    assert steps[1:] == [(512 * 24, 28_800), (1024 * 24, 28_800), (28_800, 28_800)]
    assert banded.tobytes() == d.tobytes() == warpsim.gemm(F16, a, B, target="sm_90a").tobytes()
