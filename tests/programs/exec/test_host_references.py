"""``warpsim exec --reference``: launches of host programs are decided by NumPy functions."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.helpers.command_runner import CliRunner
from warpsim.base.errors import OperandError
from warpsim.machine.host.device import Device
from warpsim.programs.exec.host_launch import HostLaunch
from warpsim.programs.exec.references.argument_types import parameter_types, type_named
from warpsim.programs.exec.references.decisions import References
from warpsim.programs.exec.references.host_arguments import strided
from warpsim.programs.launch.launching import load_text
from warpsim.show.cli import cli

HERE = Path(__file__).parent
Run = Callable[..., Any]

REFERENCES = """
import ctypes
import numpy as np


def product(a, b, c, m, n, k, alpha):
    return alpha * (a[: m * k].reshape(m, k) @ b[: k * n].reshape(k, n))


def unscaled(a, b, c, m, n, k, alpha):
    return a[: m * k].reshape(m, k) @ b[: k * n].reshape(k, n)


class Params(ctypes.Structure):
    _fields_ = [
        ("x", ctypes.POINTER(ctypes.c_float)), ("w", ctypes.POINTER(ctypes.c_float)), ("y", ctypes.c_void_p),
        ("rows", ctypes.c_int), ("columns", ctypes.c_int), ("eps", ctypes.c_float),
    ]


def norm(p: Params):
    x = p.x.reshape(p.rows, p.columns)
    return {"p.y": x / np.sqrt((x * x).mean(1, keepdims=True) + p.eps) * p.w}


def scaled(a, q, c, n):
    return a[0 : 2 * n : 2] * q + a[1 : 2 * n : 2]


def raising(a, b, c, m, n, k, alpha):
    return a @ b[:3]


def sized(p: Params, b, c, m, n, k, alpha):
    return c


def axpy(x, y, out, s):
    return s * x + y[:, None]
"""


@pytest.fixture(scope="module")
def folder(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program and the references."""
    folder = tmp_path_factory.mktemp("references")
    source = str(HERE / "references.cu")
    command = ["nvcc", "-cudart", "shared", "-lineinfo", "-arch=compute_80", "-o", str(folder / "program")]
    done = subprocess.run([*command, source], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nvcc cannot compile: {done.stderr[-400:]}")
    (folder / "references.py").write_text(REFERENCES)
    return folder


def _decided(run: Run, folder: Path, *references: str, more: tuple[str, ...] = ()) -> Any:
    given = list[str]()
    for text in references:
        kernel, sign, name = text.rpartition("=")
        given += ["--reference", f"{kernel}{sign}{folder}/references.py:{name}"]
    return run(options=(*given, *more), command=(str(folder / "program"),))


def _answers(done: Any) -> list[tuple[int, str]]:
    return [(each["launch"], each["answer"]) for each in done.report["references"]]


def test_launches_of_several_kernels(run: Run, folder: Path) -> None:
    """Typed pointers, a structure, and memory whose type the loads show; what is printed stays."""
    done = _decided(run, folder, "product=product", "norm=norm", "scaled=scaled")
    assert (done.code, done.stdout) == (0, run(command=(str(folder / "program"),)).stdout)
    assert _answers(done) == [(2, "equal"), (3, "equal"), (4, "equal"), (5, "equal")]
    assert done.stderr.count("the formulas are equal") == 3  # launches 2 to 3 in one line
    assert (
        "reference: launches 2 to 3, product(__half const*, __half const*, float*, int, int, int, float)"
        in done.stderr
    )


def test_other_formulas_are_located(run: Run, folder: Path) -> None:
    done = _decided(run, folder, "product=unscaled", more=("--launch", "2"))
    assert done.code == 1
    assert _answers(done) == [(2, "other")]
    located = done.report["references"][0]["located"]
    assert located["message"].startswith("0.5 (the value of alpha) is multiplied too much")
    assert "references.cu:21" in located["location"]
    assert located["evidence"].startswith("proven")


def test_a_reference_for_every_kernel_that_takes_it(run: Run, folder: Path) -> None:
    done = _decided(run, folder, "product")
    assert (done.code, _answers(done)) == (0, [(2, "equal"), (3, "equal")])
    assert "fill(int*, int) is not compared: product does not take its 2 arguments" in done.stderr
    assert "norm(Params) is not compared: product does not take its 1 argument" in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("raising", "raising raises {file}:31: ValueError"),
        ("norm", "norm does not take its 7 arguments"),
        ("sized", "p is declared as Params of 40 bytes, parameter 0 of the kernel has 8"),
    ],
)
def test_references_that_cannot_be_used(run: Run, folder: Path, name: str, message: str) -> None:
    """The program runs to its end, the launch is said to be not compared, and the exit code is 3."""
    done = _decided(run, folder, f"product={name}", more=("--kernel", "product", "--launch", "1"))
    assert done.code == 3
    assert done.stdout
    assert "not compared: " in done.stderr
    assert message.format(file=folder / "references.py") in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--reference", "none.py:f"), 3, "there is no file none.py"),
        (("--reference", "nothing"), 3, "expected FILE.py:FUNCTION, or one of gemm"),
        (("--reference", "=gemm"), 3, "expected the name of a kernel before ="),
        (("--reference", "k=gemm", "--reference", "k=gemm_nt"), 3, "k has a reference already"),
        (("--reference", "gemm", "--connect"), 2, "--reference go with one program, without --connect"),
        (("--reference", "absent=gemm"), 3, "reference: no launch was compared"),
    ],
)
def test_options_that_cannot_be_used(options: tuple[str, ...], code: int, message: str) -> None:
    done = CliRunner().invoke(cli, ["exec", *options, "true"], standalone_mode=False)
    assert (2 if done.exception else done.return_value) == code
    assert message in f"{done.output} {done.exception}"


def test_arrays_of_numba_have_their_shape(run: Run, folder: Path) -> None:
    pytest.importorskip("numba.cuda")
    (folder / "axpy.py").write_text(
        "import numpy as np\nfrom numba import cuda\n\n@cuda.jit\ndef axpy(x, y, out, s):\n"
        "    i = cuda.grid(1)\n    for j in range(x.shape[1]):\n        out[i, j] = s * x[i, j] + y[i]\n\n"
        "x = np.arange(128, dtype=np.float32).reshape(32, 4)\nout = np.zeros_like(x)\n"
        "axpy[1, 32](x, x[:, 1].copy(), out, np.float32(2))\nprint(out.sum())\n"
    )
    option = f"axpy={folder}/references.py:axpy"
    done = run(options=("--reference", option), command=(sys.executable, str(folder / "axpy.py")))
    assert (done.code, _answers(done)) == (0, [(1, "equal")]), done.stderr


# --- without a program -------------------------------------------------------------------------------

TEXT = """
.version 8.8
.target sm_80
.address_size 64
.visible .entry {name}(.param .u64 pa, .param .u64 pd, .param .{kind} s)
{{
 .reg .u64 %a, %d; .reg .b32 %i, %r; .reg .f32 %x, %f, %s; .reg .u64 %o;
 mov.u32 %i, %tid.x; mul.wide.u32 %o, %i, 4;
 ld.param.u64 %a, [pa]; ld.param.u64 %d, [pd]; add.u64 %a, %a, %o; add.u64 %d, %d, %o;
 ld.global.b32 %r, [%a]; mov.b32 %x, %r; {load}
 mul.f32 %f, %x, %s; mov.b32 %r, %f; st.global.b32 [%d], %r; ret;
}}
"""


def _launch(name: str = "k", *, kind: str = "f32", offset: int = 0) -> tuple[HostLaunch, Device]:
    load = "ld.param.f32 %s, [s];" if kind == "f32" else "ld.param.b32 %r, [s]; cvt.rn.f32.s32 %s, %r;"
    device = Device()
    a = device.array(np.linspace(1, 2, 64, dtype=np.float32))
    d = device.array(np.zeros(40, np.float32))
    number = np.float32(3) if kind == "f32" else np.int32(-3)
    module = load_text(TEXT.format(name=name, kind=kind, load=load))
    parameters = [
        (a.address + offset).to_bytes(8, "little"),
        d.address.to_bytes(8, "little"),
        number.tobytes(),
    ]
    launch = HostLaunch(
        module=module,
        kernel=module[name],
        grid=(1, 1, 1),
        block=(32, 1, 1),
        parameters=parameters,
        device=device,
    )
    return launch, device


def _decision(function: Callable[..., Any], launch: HostLaunch) -> Any:
    references = References({"": ("f", function)})
    references.decide(launch, 1)
    return references.decisions[0] if references.decisions else references


def test_memory_gets_its_type_from_loads_and_stores_and_stays_as_it_was() -> None:
    launch, device = _launch(offset=16)
    before = device.memory.data.copy()
    seen = []

    def times(a: Any, d: Any, s: Any) -> Any:
        seen.append((a.shape, d.shape, a.dtype))
        return a[:32] * s

    found = _decision(times, launch)
    assert found.answer == "equal", found.text
    assert ((60,), (40,), np.float64) in seen  # the memory behind the pointer, as numbers
    assert (device.memory.data == before).all()


def test_what_a_reference_leaves_out_stays_as_it_was() -> None:
    launch, _ = _launch()
    found = _decision(lambda a, d, s: a[:31] * s, launch)
    assert found.answer == "other"  # the kernel has stored one more
    assert found.document["equivalence"]["outputs"][0]["other"] == 1


def test_numbers_are_signed_and_annotations_decide() -> None:
    launch, _ = _launch(kind="u32")
    assert _decision(lambda a, d, s: a[:32] * s, launch).answer == "equal"

    def unsigned(a, d, s: ctypes.c_uint32):  # type: ignore[no-untyped-def]
        return a[:32] * s

    assert _decision(unsigned, launch).answer == "other"

    def halves(a: Any, d: Any, s: Any) -> Any:
        assert len(a) == 128
        return a[:32] * s

    halves.__annotations__["a"] = "float16"
    assert _decision(halves, launch).answer == "other"


def test_a_launch_that_faults_is_not_compared() -> None:
    launch, device = _launch(offset=4 * 40)
    before = device.memory.data.copy()
    found = _decision(lambda a, d, s: a[:32] * s, launch)
    assert found.answer == "not compared"
    assert "ld.global.b32" in found.text or "outside" in found.text or "64" in found.text
    assert (device.memory.data == before).all()


def test_types_of_cpp() -> None:
    assert parameter_types("void f<float, 3>(std::pair<int, int>, float const*, long long)") == [
        "std::pair<int, int>", "float const*", "long long",
    ]  # fmt: skip
    assert parameter_types("plain") == []
    for text, kind in {
        "float4 const": np.float32, "__half2": np.float16, "cutlass::half_t": np.float16,
        "__nv_bfloat16": ml_dtypes.bfloat16, "cutlass::float_e4m3_t": ml_dtypes.float8_e4m3fn,
        "unsigned long long": np.uint64, "double2": np.float64,
    }.items():  # fmt: skip
        assert type_named(text) == np.dtype(kind), text
    assert type_named("uint4") is None


def test_kernels_by_name() -> None:
    with pytest.raises(OperandError, match="k has a reference already"):
        References.named(("k=gemm", "k=gemm"))
    named = References.named(("other=gemm", "gemm_nt"))
    assert sorted(named.functions) == ["", "other"]


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 4), (16, 8)),
        ((2, 3), (-12, 4)),
        ((1 << 40, 2), (4, 4)),
        ((-1, 2), (8, 4)),
        ((2, 2), (1 << 62, 4)),
    ],
)
def test_shapes_that_leave_their_memory_are_refused(shape: Any, strides: Any) -> None:
    """Numba's arrays bring shape and strides with them, which may be anything."""
    flat = np.arange(10, dtype=np.float32)
    with pytest.raises(OperandError, match="leaves the 40 bytes"):
        strided(flat, shape, strides, "x")


def test_shapes_within_their_memory_are_views() -> None:
    flat = np.arange(10, dtype=np.float32)
    assert strided(flat, (2, 3), (16, 4), "x").tolist() == [[0, 1, 2], [4, 5, 6]]
    assert strided(flat, (0, 3), (1 << 62, 4), "x").size == 0
    assert strided(flat, (3, 2), (0, 4), "x").tolist() == [[0, 1]] * 3
