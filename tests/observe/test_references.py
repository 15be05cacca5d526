"""References: what NumPy functions of shadows give, what a reference may not do, built-in references."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsim
from tests.helpers.command_runner import CliRunner
from tests.helpers.formulas import compared, kernel_of, repeatable
from warpsim.base.errors import OperandError, SourceLine
from warpsim.observe.algebra.equivalence import Output
from warpsim.observe.algebra.keys import finite_fields as fields
from warpsim.observe.algebra.keys.key_reading import KeyReader
from warpsim.observe.algebra.locating.located_record import Located, user_line
from warpsim.observe.algebra.locating.output_maps import whole_output
from warpsim.observe.algebra.numpy_functions import trace_of
from warpsim.observe.algebra.shadow_arrays import ReferenceError, Shadow, Trace
from warpsim.programs.launch.launching import load_text
from warpsim.programs.launch.reference_runs import equivalence_of
from warpsim.show.cli import cli
from warpsim.workbench.diagnosis.verdicts import verdict_of

KERNELS = Path(__file__).parents[2] / "traces" / "kernels"


def shadow(trace: Trace, name: str, *shape: int) -> Shadow:
    """An argument of random numbers, with random keys."""
    values = np.random.default_rng(len(name)).normal(size=shape)
    return Shadow(
        trace, fields.random_keys(1, name, np.arange(values.size)).reshape(shape), values, name=name
    )


SAME: list[tuple[Callable[..., Any], Callable[..., Any]]] = [  # of a (4, 8), b (8, 6), c (4, 6)
    (lambda a, b, c: a @ b, lambda a, b, c: np.einsum("mk,kn->mn", a, b)),
    (lambda a, b, c: a @ b, lambda a, b, c: np.matmul(b.T, a.T).T),
    (lambda a, b, c: a @ b, lambda a, b, c: (a[:, :, None] * b[None]).sum(1)),
    (lambda a, b, c: a @ b, lambda a, b, c: sum(np.outer(a[:, i], b[i]) for i in range(8))),
    (lambda a, b, c: a @ b, lambda a, b, c: np.stack([row @ b for row in a])),
    (lambda a, b, c: a @ b, lambda a, b, c: np.dot(a[:, :4], b[:4]) + np.dot(a[:, 4:], b[4:])),
    (lambda a, b, c: c**3 / c, lambda a, b, c: np.square(c)),
    (lambda a, b, c: np.exp(c), lambda a, b, c: np.exp(0.25 * c) * np.exp(0.75 * c)),
    (lambda a, b, c: np.maximum(c, 0), lambda a, b, c: np.where(c > 0, c, 0)),
    (lambda a, b, c: np.abs(c), lambda a, b, c: np.maximum(c, -c)),
    (lambda a, b, c: c.mean(axis=1), lambda a, b, c: np.sum(c, 1) / 6),
    (lambda a, b, c: np.var(c, 0), lambda a, b, c: (c * c).mean(0) - c.mean(0) ** 2),
    (lambda a, b, c: np.var(c, 0, ddof=1), lambda a, b, c: ((c - c.mean(0)) ** 2).sum(0) / 3),
    (lambda a, b, c: np.add.reduce(c), lambda a, b, c: c.sum(0)),
    (lambda a, b, c: np.split(c, 2)[1], lambda a, b, c: c[2:]),
    (lambda a, b, c: np.prod(c[:, :3], 1), lambda a, b, c: c[:, 0] * c[:, 1] * c[:, 2]),
    (lambda a, b, c: np.log2(np.abs(c)), lambda a, b, c: np.log(np.abs(c)) / np.log(2)),
    (lambda a, b, c: 1 / np.sqrt(np.abs(c)), lambda a, b, c: np.abs(c) ** -0.5),
    (lambda a, b, c: np.cumsum(c, 1)[:, -1], lambda a, b, c: c.sum(1)),
    (lambda a, b, c: np.concatenate([c, c])[4:], lambda a, b, c: np.tile(c, (2, 1))[:4]),
    (lambda a, b, c: np.take_along_axis(c, np.argsort(c, 1), 1)[:, -1], lambda a, b, c: c.max(1)),
    (lambda a, b, c: np.clip(c, -0.5, 0.5), lambda a, b, c: np.minimum(np.maximum(c, -0.5), 0.5)),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_formulas_of_numpy(one: Callable[..., Any], other: Callable[..., Any]) -> None:
    trace = trace_of(KeyReader(1))
    given = [shadow(trace, "a", 4, 8), shadow(trace, "bb", 8, 6), shadow(trace, "ccc", 4, 6)]
    first, second = one(*given), other(*given)
    assert fields.equal(first.keys, second.keys).all()
    plain = one(*(each.values for each in given))
    assert np.allclose(first.values, plain)
    assert np.allclose(second.values, plain)
    assert not fields.equal((first + 1).keys, second.keys).any()


def test_operations_are_recorded_with_their_lines() -> None:
    trace = trace_of(KeyReader(1))
    a = shadow(trace, "a", 4, 4)
    found = np.tanh(a @ a)
    assert [each.name for each in trace.operations] == ["@", "tanh"]
    assert trace.operations[1].result is found
    assert trace.operations[1].line.text == "found = np.tanh(a @ a)"
    assert trace.functions == {"tanh"}


def test_close_decisions_are_in_doubt() -> None:
    trace = trace_of(KeyReader(1))
    a = shadow(trace, "a", 2)
    b = Shadow(trace, fields.random_keys(1, "b", np.arange(2)), a.values * [1 + 1e-5, 2])
    found = np.maximum(a, b) @ np.ones(2)
    assert np.maximum(a, b).doubt.any()
    assert found.doubt.all()


def test_doubt_goes_where_elements_go() -> None:
    trace = trace_of(KeyReader(1))
    a = shadow(trace, "a", 2)
    b = Shadow(trace, fields.random_keys(1, "b", np.arange(2)), a.values * [1 + 1e-5, 2])
    chosen = np.maximum(a, b)
    first, second = np.split(np.concatenate([chosen, a]), 2)
    assert (first.doubt.tolist(), second.doubt.any()) == ([True, False], False)
    assert np.prod(chosen).doubt
    assert np.cumsum(chosen[::-1]).doubt.tolist() == [False, True]


def test_an_average_has_no_weights() -> None:
    a = shadow(trace_of(KeyReader(1)), "a", 4)
    assert np.average(a).shape == ()
    with pytest.raises(ReferenceError, match="has no weights here"):
        np.average(a, weights=np.arange(4.0))


def test_decisions_by_rounding_are_undecided() -> None:
    """f16 makes equal what f32 keeps apart: the kernel takes the other operand."""
    text = (
        "cvt.rn.f16.f32 %h, %a; cvt.rn.f16.f32 %g, %b; cvt.f32.f16 %t, %h; cvt.f32.f16 %f, %g;"
        " setp.ge.f32 %p, %t, %f; selp.f32 %d, %a, %b, %p;"
    )
    a = np.linspace(1, 2, 64).astype(np.float32)
    b = (a * np.float32(1 + 1e-5)).astype(np.float32)
    arrays = [a, b, a, np.zeros(64, np.float32)]
    found = compared(kernel_of(text, "f32", "sm_80"), arrays, lambda a, b, c: np.maximum(a, b))
    assert found.answer == "undecided"
    assert "decisions that rounding may turn" in str(found)


_TANH = """
 abs.f32 %b, %a; mul.f32 %c, %b, 0f4038AA3B; ex2.approx.ftz.f32 %c, %c; add.f32 %c, %c, 0f3F800000;
 mov.f32 %t, 0f3F800000; rcp.approx.ftz.f32 %c, %c; mov.f32 %f, 0fC0000000; fma.rn.f32 %c, %c, %f, %t;
 setp.ge.f32 %p, %b, 0f41102CB4; selp.f32 %c, 0f3F800000, %c, %p; copysign.f32 %c, %a, %c;
 mul.f32 %t, %a, %a; mov.f32 %f, 0f3C80F082; fma.rn.f32 %f, %f, %t, 0fBD563CAE;
 fma.rn.f32 %f, %f, %t, 0f3E085941; fma.rn.f32 %f, %f, %t, 0fBEAAA9ED; mul.f32 %f, %f, %t;
 fma.rn.f32 %f, %f, %a, %a; setp.ge.f32 %p, %b, 0f3F19999A; selp.f32 %d, %c, %f, %p;
"""


def test_functions_whose_branches_a_selection_joins() -> None:
    """nvcc's tanhf: a polynomial below 0.6 and a quotient above, and neither is tanh in all lanes."""
    arrays = [np.linspace(-2, 2 + place, 64).astype(np.float32) for place in range(4)]
    kernel = kernel_of(_TANH, "f32", "sm_80")
    assert compared(kernel, arrays, lambda a, b, c: np.tanh(a)).answer == "equal"
    assert compared(kernel, arrays, lambda a, b, c: np.tanh(b + 1)).answer == "other"


_SCALED = """
.version 8.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py, .param .f32 ps)
{
 .reg .u64 %x, %y, %o; .reg .u32 %n; .reg .f32 %a, %s;
 mov.u32 %n, %tid.x; mul.wide.u32 %o, %n, 4; ld.param.f32 %s, [ps];
 ld.param.u64 %x, [px]; add.u64 %x, %x, %o; ld.global.f32 %a, [%x]; mul.f32 %a, %a, %s;
 ld.param.u64 %y, [py]; add.u64 %y, %y, %o; st.global.f32 [%y], %a; ret;
}
"""


def _literal(x: Any, y: Any, s: Any) -> Any:
    return x / np.sqrt(32)


def _number(x: Any, y: Any, s: Any) -> Any:
    return x * float(s)


def _named(x: Any, y: Any, s: Any) -> Any:
    return {"y": x * s}


def _assigned(x: Any, y: Any, s: Any) -> Any:
    found = np.zeros((2, 32))
    found[0] = x[:32] * s
    found[1, :] = x[32:] * s
    return found


@pytest.mark.parametrize("reference", [_literal, _number, _named, _assigned])
def test_how_references_are_written(reference: Callable[..., Any]) -> None:
    """A literal in place of a float argument, the reference's own names, arrays of np.zeros."""
    launch = repeatable(
        load_text(_SCALED)["k"],
        [np.linspace(1, 2, 64, dtype=np.float32), np.zeros(64, np.float32), np.float32(1 / np.sqrt(32))],
    )
    assert equivalence_of(launch, reference).equivalence.answer == "equal"
    assert equivalence_of(launch, lambda x, y, s: x * 0.25).equivalence.answer == "other"
    assert np.zeros is _NUMPY_ZEROS


_NUMPY_ZEROS = np.zeros

# --- what a reference may not do -------------------------------------------------------------------------


def _product(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * b


def _state(a: Any, b: Any, c: Any, d: Any, kept: list[int] = []) -> Any:  # noqa: B006
    kept.append(1)
    return a * b + len(kept)


def _changing(a: Any, b: Any, c: Any, d: Any) -> Any:
    a[0] = 0
    return a * b


BAD: list[tuple[Callable[..., Any], str]] = [
    (lambda a, b: a, r"takes? the 4 arguments|does not take the 4 arguments"),
    (lambda a, b, c, d: a * b[:3], r"raises .*test_references\.py:\d+: ValueError"),
    (lambda a, b, c, d: (a * b)[:3], r"returns \(3,\) for k_param_3|returns \(3,\) for pd"),
    (lambda a, b, c, d: {"other": a}, r"returns 'other': the arguments are a, b, c, d"),
    (lambda a, b, c, d: {9: a}, r"returns 9: the arguments are"),
    (lambda a, b, c, d: np.sort(a), r"test_references\.py:\d+: .*np\.sort, which has no formula"),
    (lambda a, b, c, d: np.linalg.norm(a), r"np\.norm, which has no formula"),
    (lambda a, b, c, d: a * np.random.rand(64), "reads random numbers"),
    (lambda a, b, c, d: a * np.random.default_rng().random(64), "other values when it is called again"),
    (lambda a, b, c, d: np.zeros(64) + np.array([float(x) for x in np.asarray(a)]), "becomes a plain one"),
    (_state, "other values when it is called again"),
    (_changing, "the reference changes its argument pa"),
]


@pytest.mark.parametrize(("reference", "message"), BAD)
def test_references_that_are_refused(reference: Callable[..., Any], message: str) -> None:
    arrays = [np.linspace(1, 2, 64).astype(np.float32) for _ in range(4)]
    launch = repeatable(kernel_of("mul.f32 %d, %a, %b;", "f32", "sm_80"), arrays)
    with pytest.raises(ReferenceError, match=message):
        equivalence_of(launch, reference)
    assert (arrays[3] == arrays[0]).all()  # nothing is written back


@pytest.mark.parametrize("given", ["none.py:f", "nothing", f"{__file__}:missing", "a.py"])
def test_references_that_are_not_there(given: str) -> None:
    arrays = [np.ones(64, np.float32)] * 4
    with pytest.raises(OperandError, match="reference"):
        equivalence_of(repeatable(kernel_of("mul.f32 %d, %a, %b;", "f32", "sm_80"), arrays), given)


def test_infinities_and_nan_among_inputs() -> None:
    a = np.array([np.inf, -np.inf, np.nan, 1.0] * 16, np.float32)
    arrays = [a, a, a, np.zeros(64, np.float32)]
    kernel = kernel_of("add.f32 %d, %a, 0f3F800000;", "f32", "sm_80")
    assert compared(kernel, arrays, lambda a, b, c: a + 1).answer == "equal"
    assert compared(kernel, arrays, lambda a, b, c: a + 2).answer == "other"


# --- interfaces ------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Arguments of a product, and references."""
    random = np.random.default_rng(1)
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", random.standard_normal((32, 32)).astype(np.float16))
    text = "def right(a, b, d, n, k):\n    return a @ b\n\n\ndef wrong(a, b, d, n, k):\n    return a @ b.T\n"
    (tmp_path / "product.py").write_text(text)
    return tmp_path


def _launched(files: Path, *options: str) -> Any:
    arguments = [f"{files}/a.npy", f"{files}/b.npy", "zeros:f32:32x32", "i32:32", "i32:32"]
    given = [part for argument in arguments for part in ("--arg", argument)]
    file = str(KERNELS / "dense_tiles.ptx")
    command = ["launch", file, "--entry", "dense_f16", "--block", "64", *given, *options]
    return CliRunner().invoke(cli, command, standalone_mode=False)


def test_launch_with_a_reference(files: Path) -> None:
    right = _launched(files, "--reference", f"{files}/product.py:right")
    assert right.return_value == 0, right.output
    assert right.output.startswith("verdict: the kernel computes right (1,024 of 1,024 elements)")
    wrong = _launched(files, "--reference", f"{files}/product.py:wrong")
    assert wrong.return_value == 1
    assert "are other formulas than wrong" in wrong.output
    named = _launched(files, "--reference", "gemm", "--json")
    assert json.loads(named.output)["equivalence"]["answer"] == "equal"
    missing = _launched(files, "--reference", "nothing")
    assert "scaled_gemm" in str(missing.exception)


def test_report_and_why_take_a_reference(files: Path) -> None:
    a, b = (np.load(files / f"{name}.npy") for name in "ab")
    d = np.zeros((32, 32), np.float32)
    kernel = warpsim.load(KERNELS / "dense_tiles.ptx")["dense_f16"]
    report = kernel(1, 64, [a, b, d, 32, 32])
    assert report.why(reference="gemm").as_expected
    verdict = warpsim.why(kernel, 1, 64, [a, b, d, 32, 32], reference="gemm_nt")
    assert not verdict.as_expected
    assert verdict.equivalence is not None
    assert verdict.equivalence.answer == "other"


def test_findings_stand_beside_equal_formulas() -> None:
    """A race whose order happens to be right."""
    text = (
        ".shared .f32 s[64]; mov.u32 %n, s; shl.b32 %i, %n, 0; mov.u32 %i, %tid.x; shl.b32 %i, %i, 2;"
        " add.u32 %n, %n, %i; st.shared.f32 [%n], %a; xor.b32 %n, %n, 128; ld.shared.f32 %d, [%n];"
    )
    arrays = [np.linspace(1, 2, 64).astype(np.float32) for _ in range(4)]

    def other_half(a: Any, b: Any, c: Any, d: Any) -> Any:
        return np.concatenate([a[32:], a[:32]])

    found = verdict_of(repeatable(kernel_of(text, "f32", "sm_80"), arrays), {}, 0.0, other_half)
    assert found.equivalence is not None
    assert found.equivalence.answer == "equal"
    assert not found.as_expected
    assert "race" in str(found) or "order" in str(found)


def test_evidence_says_on_how_many_elements() -> None:
    found = Located(
        kind="operand", pc=1, location=None, output="d", first=(0, 1), elements=9, tried=9, checked=9,
        certainty="proven",
    )  # fmt: skip
    assert found.evidence.startswith("proven: with this put right, all 9 wrong elements of d")
    fewer = replace(found, elements=700, tried=9)
    assert fewer.evidence.startswith("proven for 9 of 700 wrong elements of d, as [0, 1]")
    part = replace(found, elements=700, tried=10, certainty="located")
    assert part.evidence.startswith("located, not proven: with this put right, 9 of 10 tried")
    strange = replace(part, kind="unknown", checked=0)
    assert strange.evidence.startswith("located: the first value that the reference does not have; 700 wrong")


def test_lines_of_the_user() -> None:
    """The innermost line in the folder of the kernel; asm and toolkit headers lead out to it."""
    kernel = SourceLine("/home/k.cu", 30)
    helper = SourceLine("/home/tiles.cuh", 7, text="store(x);", inlined_at=kernel)
    asm = SourceLine("/home/tiles.cuh", 9, text='asm volatile("st.global")', inlined_at=helper)
    header = SourceLine("/usr/local/cuda/include/cuda_fp16.hpp", 80, inlined_at=helper)
    assert [user_line(each) for each in (kernel, helper, asm, header, None)] == [kernel, *3 * [helper], None]


def test_elements_that_stand_elsewhere_are_moved_whatever_the_map() -> None:
    """A store that lands on the next tile: no terms are too many in what stands there."""
    random = np.random.default_rng(2)
    keys = fields.random_keys(1, "d", np.arange(64)).reshape(8, 8)
    left, writers = keys.copy(), np.full((8, 8), 5, np.int32)
    places = random.permutation(64)[:24]
    left.flat[places], writers.flat[places[12:]] = np.roll(keys.flat[places], 1), -1
    left.flat[places[12:]] = 0
    same = fields.equal(left, keys)
    numbers = np.zeros((8, 8))
    output = Output(
        argument=0, name="d", kernel=left, reference=keys, equal=same, undecided=same & False,
        turned=same & False, writers=writers, expected=numbers, given=numbers, far=same & False, kind="f32",
        dtype=np.dtype(np.float32),
    )  # fmt: skip
    found = whole_output(output, [], np.arange(64).reshape(8, 8))
    assert found is not None
    assert (found.kind, found.elements, found.pc) == ("moved", 12, 5)
    assert "has what belongs to" in found.words
