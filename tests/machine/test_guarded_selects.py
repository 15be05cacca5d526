"""Guarded statements that take some bits of each of two registers, in loops long enough for machine code.

And what happens where LLVM makes wrong code of them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from warpsim.machine.native import objects
from warpsim.machine.native.objects import available
from warpsim.machine.run.basic_blocks import STATEMENTS
from warpsim.machine.run.native_blocks import Native
from warpsim.programs.launch.launching import load_text
from warpsim.show.views.launches import report_document

pytestmark = pytest.mark.skipif(not available(), reason="there is no LLVM of version 20 or newer here")

_PROGRAM = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 times) {
.reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %e<4>; .reg .pred %p<4>; .reg .b32 %n, %t;
ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %n, [times]; mov.u32 %t, %tid.x;
mul.wide.u32 %d2, %t, 16; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2; and.b32 %r6, %t, 1;
setp.eq.u32 %p0, %r6, 1; ld.global.v2.u64 {%d4, %d5}, [%d0];
cvt.u32.u64 %r0, %d4; cvt.u32.u64 %r1, %d5; mov.b32 %f0, %r0; mov.b32 %f1, %r1;
mov.b64 %e0, %d4; mov.b64 %e1, %d5;
AGAIN:
BODY
xor.b32 %r5, %r5, %n; add.u32 %r4, %r4, %r5; shl.b32 %r6, %r4, 3;
sub.u32 %n, %n, 1; setp.ne.u32 %p1, %n, 0;
@%p1 bra AGAIN;
RESULT
st.global.v2.u64 [%d1], {%d4, %d5};
ret; }"""
_THREADS = 64
_WORDS = "cvt.u64.u32 %d4, %r0; cvt.u64.u32 %d5, %r1;"
_IMMEDIATES = (0xAC, 0xCA, 0xB8, 0xE2, 0xD8, 0xE4)  # of lop3: one operand chooses between the other two


def _blended(mask: int) -> str:
    """Return the statements of a choice bit by bit, whose temporaries are overwritten afterwards."""
    other = mask ^ 0xFFFFFFFF
    return (
        f"and.b32 %r2, %r0, {mask:#x}; and.b32 %r3, %r1, {other:#x}; or.b32 %r2, %r2, %r3; "
        "selp.b32 %r0, %r2, %r0, %p0; mov.u32 %r2, 0; mov.u32 %r3, 0;"
    )


_COPYSIGN = "@%p0 copysign.f32 %f0, %f0, %f1;", "mov.b32 %r0, %f0;" + _WORDS
_BODIES = {
    "copysign.f32": _COPYSIGN,
    "copysign.f32 exchanged": ("@%p0 copysign.f32 %f0, %f1, %f0;", "mov.b32 %r0, %f0;" + _WORDS),
    "copysign.f64": ("@%p0 copysign.f64 %e0, %e0, %e1;", "mov.b64 %d4, %e0;"),
    "copysign.f64 exchanged": ("@%p0 copysign.f64 %e0, %e1, %e0;", "mov.b64 %d4, %e0;"),
    **{
        f"lop3 {places} {immediate:#x}": (f"@%p0 lop3.b32 %r0, {places}, {immediate:#x};", _WORDS)
        for immediate in _IMMEDIATES
        for places in ("%r0, 0x80ff00ff, %r1", "0x80ff00ff, %r0, %r1", "%r1, %r0, 0x80ff00ff")
    },
    **{
        f"and, or, selp {mask:#x}": (_blended(mask), _WORDS)
        for mask in (Random(f"mask {number}").getrandbits(32) for number in range(12))
    },
}


def _launched(body: str, result: str) -> tuple[bytes, Any]:
    """Return the words of all threads after 250 iterations, and the report."""
    kernel = load_text(_PROGRAM.replace("BODY", body).replace("RESULT", result))["k"]
    given = np.random.default_rng(5).integers(0, 1 << 64, (_THREADS, 2), np.uint64)
    out = np.zeros_like(given)
    report = kernel(1, _THREADS, [given, out, 250])
    return out.tobytes(), report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of the user that some tests have in common."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv(STATEMENTS, "compiled")


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The compiler as a process has it that has compiled nothing, and an empty cache of the user."""
    found = objects._compiler()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _forget(found)
    yield found
    _forget(found)


def _forget(compiler: Any) -> None:
    compiler.functions.clear()
    compiler.passes = None
    objects._FAILURES.clear()


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the executions of machine code."""
    found, run = list[Any](), Native.run
    monkeypatch.setattr(Native, "run", lambda *given: found.append(given[0]) or run(*given))
    return found


@pytest.mark.parametrize(("body", "result"), _BODIES.values(), ids=_BODIES)
def test_bits_chosen_under_guards(
    body: str, result: str, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """LLVM 20 to 22 exchange operands of a masked VPTERNLOG of AVX-512 (llvm-project pull request 209782)."""
    compiled, _ = _launched(body, result)
    assert runs
    runs.clear()
    monkeypatch.setenv(STATEMENTS, "interpreted")
    assert _launched(body, result)[0] == compiled
    assert not runs


# --- where machine code is wrong --------------------------------------------------------------------------


def test_objects_of_another_search_are_not_loaded(
    runs: list[Any], compiler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither are those that versions without a search have kept, wrong or right."""
    with monkeypatch.context() as before:
        before.setattr(objects, "WRONG_FOLDS", {})
        before.setattr(objects, "wrong_folds", lambda content: [])
        before.setattr(objects, "_passes", lambda compiler: True)
        wrong, _ = _launched(*_COPYSIGN)
    assert runs
    _forget(compiler)
    compiled, _ = _launched(*_COPYSIGN)
    monkeypatch.setenv(STATEMENTS, "interpreted")
    expected, _ = _launched(*_COPYSIGN)
    assert compiled == expected
    assert (wrong == expected) == (compiler.narrow is None)


def test_self_test_passes(compiler: Any, runs: list[Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, report = _launched(*_COPYSIGN)
    assert runs
    assert compiler.passes
    assert not report.notes


_MISCOMPILED = {
    "a union is an intersection": lambda text: text.replace("= or i32", "= and i32"),
    "choices are exchanged": lambda text: re.sub(
        r"(select i1 \S+), (i64 \S+), (i64 \S+)", r"\1, \3, \2", text
    ),
    "a sum is a difference": lambda text: text.replace("= add i32", "= sub i32"),
}


@pytest.mark.parametrize("change", [*_MISCOMPILED.values(), None], ids=[*_MISCOMPILED, "LLVM's own fold"])
def test_machine_code_that_fails_its_test_is_not_used(
    change: Any, compiler: Any, runs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results are right, a warning says so once, and so does the report of each launch."""
    emitted = objects.Compiler._emit_object
    if change is not None:
        harm = lambda self, text, machine: emitted(self, change(text), machine)  # noqa: E731
        monkeypatch.setattr(objects.Compiler, "_emit_object", harm)
    elif compiler.narrow is None:
        pytest.skip("the fold is one of AVX-512")
    else:
        monkeypatch.setattr(objects, "wrong_folds", lambda content: [])
    with pytest.warns(RuntimeWarning, match=r"self-test failed \(\d+ of 256 lanes are wrong; LLVM 2") as told:
        found, report = _launched(*_COPYSIGN)
    assert len(told) == 1
    assert report.notes == (str(told[0].message),)
    assert report.notes[0] in repr(report)
    assert report_document(report)["notes"] == [*report.notes]
    assert not available()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again, report = _launched(*_COPYSIGN)
    assert report.notes
    monkeypatch.setenv(STATEMENTS, "interpreted")
    assert _launched(*_COPYSIGN)[0] == found == again
    assert not runs
