"""Additions of floats by several threads to one address: what is said, against every order there is."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import warpsim
from warpsim.exec.tally import Tally
from warpsim.host.fidelity import SCHEDULED
from warpsim.host.launching import LaunchReport
from warpsim.recording.compared_copies import Copies, spread_of

_BODY = """
.visible .entry {name}(.param .u64 x, .param .u64 out)
{{
  .reg .b64 %rd<6>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .f64 %d<4>; .reg .b16 %h<4>; .reg .pred %p;
  .shared .align 16 .b8 tile[64];
  ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r4, {size}; add.u64 %rd3, %rd1, %rd3;
  {body}
  ret;
}}
"""
_SHARED = "mov.b32 %r5, 0; setp.eq.u32 %p, %r3, 0; @%p st.shared.b32 [tile], %r5; bar.sync 0;"
_KERNELS: dict[str, tuple[int, str]] = {
    "red_f32": (4, "ld.global.f32 %f1, [%rd3]; red.global.add.f32 [%rd2], %f1;"),
    "red_f64": (8, "ld.global.f64 %d1, [%rd3]; red.global.add.f64 [%rd2], %d1;"),
    "red_f16": (2, "ld.global.b16 %h1, [%rd3]; red.global.add.noftz.f16 [%rd2], %h1;"),
    "red_bf16": (2, "ld.global.b16 %h1, [%rd3]; red.global.add.noftz.bf16 [%rd2], %h1;"),
    "red_f16x2": (4, "ld.global.b32 %r6, [%rd3]; red.global.add.noftz.f16x2 [%rd2], %r6;"),
    "red_v2": (
        8,
        "ld.global.v2.f32 {{%f1, %f2}}, [%rd3]; red.global.add.v2.f32 [%rd2], {{%f1, %f2}};",
    ),
    "unused": (4, "ld.global.f32 %f1, [%rd3]; atom.global.add.f32 %f2, [%rd2], %f1;"),
    "used": (
        4,
        "ld.global.f32 %f1, [%rd3]; atom.global.add.f32 %f2, [%rd2], %f1; st.global.f32 [%rd3], %f2;",
    ),
    "guard": (
        4,
        "ld.global.f32 %f1, [%rd3]; atom.global.add.f32 %f2, [%rd2], %f1; setp.gt.f32 %p, %f2, 0f00000000; "
        "@%p st.global.f32 [%rd3], %f1;",
    ),
    "one_thread": (
        4,
        "setp.ne.u32 %p, %r4, 0; @%p ret; mov.b32 %r5, 0; "
        "L: ld.global.f32 %f1, [%rd3]; red.global.add.f32 [%rd2], %f1; add.u64 %rd3, %rd3, 4; "
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, 6; @%p bra L;",
    ),
    "phases": (
        4,
        _SHARED + "ld.global.f32 %f1, [%rd3]; "
        "setp.eq.u32 %p, %r3, 0; @%p red.shared.add.f32 [tile], %f1; bar.sync 0; "
        "setp.eq.u32 %p, %r3, 1; @%p red.shared.add.f32 [tile], %f1; bar.sync 0; "
        "setp.eq.u32 %p, %r3, 2; @%p red.shared.add.f32 [tile], %f1;",
    ),
    "unordered": (4, _SHARED + "ld.global.f32 %f1, [%rd3]; red.shared.add.f32 [tile], %f1;"),
    "zeroed": (
        4,
        "ld.global.f32 %f1, [%rd3]; mov.b32 %r5, 0; "
        "setp.eq.u32 %p, %r4, 0; @%p red.global.add.f32 [%rd2], %f1; "
        "setp.eq.u32 %p, %r4, 1; @%p st.global.b32 [%rd2], %r5; @%p red.global.add.f32 [%rd2], %f1;",
    ),
}
_TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@pytest.fixture(scope="module")
def module() -> Any:
    kernels = (
        _BODY.format(name=name, size=size, body=body.replace("{{", "{").replace("}}", "}"))
        for name, (size, body) in _KERNELS.items()
    )
    return warpsim.load(".version 9.0\n.target sm_90\n.address_size 64\n" + "".join(kernels))


def _labels(report: LaunchReport) -> dict[str, str]:
    return {kind.mnemonic: kind.note for kind in report.fidelity[SCHEDULED]}


def _results(values: npt.NDArray[Any]) -> set[bytes]:
    """Return the bits of the sum from zero on, in every order."""
    found = set()
    for order in permutations(range(len(values))):
        total = values.dtype.type(0)
        for index in order:
            total = values.dtype.type(total + values[index])
        found.add(total.tobytes())
    return found


@pytest.mark.parametrize("name", _TYPES)
def test_open_orders_against_all_orders(module: Any, name: str) -> None:
    random, seen = np.random.default_rng(25), set()
    spans = {"f16": 14, "bf16": 11, "f32": 27, "f64": 70}
    for trial in range(12):
        exponents = random.integers(0, 4 if trial % 3 else spans[name], 5)
        values = np.ldexp(random.integers(-7, 8, 5).astype(np.float64), exponents - 3).astype(_TYPES[name])
        report = module[f"red_{name}"](5, 1, [values.copy(), np.zeros(1, values.dtype)], checks="off")
        is_open = bool(_labels(report))
        seen.add(is_open)
        assert is_open or len(_results(values)) == 1, values
    assert seen == {True, False}


def test_a_sum_that_cancels_is_not_taken_for_exact(module: Any) -> None:
    values = np.array([2.0**24, -(2.0**24), 1.0], np.float32)  # exact in this order alone
    assert len(_results(values)) == 2
    assert _labels(module["red_f32"](3, 1, [values, np.zeros(1, np.float32)]))


@pytest.mark.parametrize(
    ("kernel", "grid", "block", "is_open"),
    [
        ("red_f32", 1, 6, True),
        ("red_f32", 6, 1, True),
        ("red_f16x2", 1, 6, True),
        ("red_v2", 1, 6, True),
        ("unused", 2, 3, True),
        ("one_thread", 1, 32, False),
        ("phases", 1, 32, False),
        ("unordered", 1, 32, True),
        ("zeroed", 1, 2, False),
    ],
)
def test_order_of_threads(module: Any, kernel: str, grid: int, block: int, is_open: bool) -> None:
    values = (np.arange(64) / 7 + 1).astype(np.float16 if kernel == "red_f16x2" else np.float32)
    report = module[kernel](grid, block, [values, np.zeros(2, values.dtype)], checks="off")
    assert bool(_labels(report)) is is_open
    assert report.fidelity.counts[SCHEDULED] == len(_labels(report))


def test_old_values_are_looked_at_where_they_are_used(module: Any) -> None:
    values = np.arange(8, dtype=np.float32)
    reports = {
        name: module[name](8, 1, [values.copy(), np.zeros(1, np.float32)], checks="off")
        for name in ("unused", "used", "guard")
    }
    assert not _labels(reports["unused"])
    assert "old values" in _labels(reports["used"])["atom.global.add.f32"]
    assert "sums" not in _labels(reports["used"])["atom.global.add.f32"]
    assert [reach.role for reach in reports["guard"].fidelity.reached] == ["the guard"]


def test_sums_that_fit_whatever_the_order_and_those_that_overflow(module: Any) -> None:
    for value, is_open in ((2048.0, False), (20000.0, True)):  # four of these are over 65504 on their way
        values = np.array([value, value, value, value, -value, -value], np.float16)
        report = module["red_f16"](6, 1, [values, np.zeros(1, np.float16)])
        assert bool(_labels(report)) is is_open


def test_subnormals_are_flushed_in_another_order(module: Any) -> None:
    tiny = np.float32(2.0**-126)
    values = np.array([tiny * 1.5, -tiny, tiny], np.float32)
    assert _labels(module["red_f32"](3, 1, [values, np.zeros(1, np.float32)]))


def test_many_rows_are_folded_as_few(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpsim.machine.run import addition_orders

    values = (np.arange(64) / 7).astype(np.float32)
    for most in (1, 1 << 18):
        monkeypatch.setattr(addition_orders, "_MOST", most)
        report = module["red_f32"](64, 1, [values, np.zeros(1, np.float32)], schedule="random:3")
        assert "sums at 1 address " in _labels(report)["red.global.add.f32"]
        assert [places.size for places in report.open_words.values()] == [1]
        exact = module["red_f32"](64, 1, [np.floor(values), np.zeros(1, np.float32)], schedule="random:3")
        assert not _labels(exact)


def test_why_names_the_order_of_sums(module: Any) -> None:
    values = (np.arange(512) / 7).astype(np.float32)
    exact = np.array([np.float32(values.astype(np.float64).sum())])
    out = np.zeros(1, np.float32)
    report = module["red_f32"](16, 32, [values, out])
    verdict = report.why(expected={1: exact})
    assert verdict.kind == "open order"
    assert str(out[0]) in str(verdict)
    assert report.why(expected={1: exact * 2}).kind != "open order"


# --- copies to the host ----------------------------------------------------------------------------


def _tally(memory: npt.NDArray[np.uint8], sums: dict[str, Any]) -> Tally:
    tally = Tally(program="sum", notice=str, progress=str)
    tally.copies.launched(sums, memory)
    return tally


def test_copies_that_differ_in_open_sums_alone_are_a_note() -> None:
    tallies = []
    for total in (941.50006, 941.49994, 941.5001):
        words = np.array([7.0, total], np.float32)
        tally = _tally(words.view(np.uint8), {"f32": np.array([4])})
        tally.copies.add("cudaMemcpy, 8 bytes", words.view(np.uint8), 0)
        tallies.append(tally)
    elsewhere = Tally(program="sum", notice=str, progress=str)  # of another process
    elsewhere.take(json.loads(json.dumps(tallies.pop().whole_document())))
    tallies.append(elsewhere)
    for number, other in enumerate(tallies[1:]):
        tallies[0].compare(other, f"random:{number}")
    (finding,) = tallies[0].findings.values()
    assert (finding.kind, finding.severity, tallies[0].errors) == ("schedule", "note", 0)
    assert "1 sum of floats, as 941.49994 or 941.5001 (f32 at byte 4)" in finding.message


def test_copies_that_differ_elsewhere_are_an_error() -> None:
    tallies = []
    for other, total in ((7.0, 1.5), (8.0, 2.5)):
        words = np.array([other, total], np.float32)
        tally = _tally(words.view(np.uint8), {"f32": np.array([4])})
        tally.copies.add("cudaMemcpy, 8 bytes", words.view(np.uint8), 0)
        tallies.append(tally)
    tallies[0].compare(tallies[1], "random:1")
    (finding,) = tallies[0].findings.values()
    assert finding.severity == "error"
    assert finding.message.endswith("or on sums of floats that several threads add to one address")


def test_a_word_that_was_written_again_is_no_sum() -> None:
    copies = Copies()
    memory = np.array([1.5, 2.5], np.float32).view(np.uint8)
    copies.launched({"f32": np.array([0, 4])}, memory)
    memory.view(np.float32)[0] = 3.0  # by something else
    copies.add("cudaMemcpy, 8 bytes", memory.copy(), 0)
    copies.add("cudaMemcpy, 4 bytes", memory[4:].copy(), 4)
    copies.add("cudaMemcpy, 3 bytes", memory[4:7].copy(), 4)
    assert [copy.sums["f32"].tolist() if copy.sums else [] for copy in copies.made] == [[4], [0], []]
    assert spread_of(copies.made[0], copies.made[1]) is None  # of other sizes
