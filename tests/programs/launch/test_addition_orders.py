"""Additions of floats by several threads to one address: what is said, against every order there is."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

import warpsim
from warpsim.observe.recording.compared_copies import Copies, spread_of
from warpsim.programs.exec.tally import Tally
from warpsim.programs.launch.fidelity import SCHEDULED
from warpsim.programs.launch.launching import LaunchReport
from warpsim.show.cli import cli

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
    "stored": (
        4,
        _SHARED + "ld.global.f32 %f1, [%rd3]; red.shared.add.f32 [tile], %f1; bar.sync 0; "
        "@%p ld.shared.f32 %f2, [tile]; @%p st.global.f32 [%rd2], %f2;",
    ),
    "taken": (4, "atom.global.add.u32 %r5, [%rd2], 1; st.global.u32 [%rd3], %r5;"),
    "held": (4, "atom.global.exch.b32 %r5, [%rd2], %r4; st.global.u32 [%rd3], %r5;"),
    "first": (4, "add.u32 %r6, %r4, 1; atom.global.cas.b32 %r5, [%rd2], 0, %r6; st.global.u32 [%rd3], %r5;"),
    "least": (
        8,
        "cvt.u64.u32 %rd4, %r4; atom.global.max.u64 %rd5, [%rd2], %rd4; st.global.u64 [%rd3], %rd5;",
    ),
    "indexed": (
        4,
        "atom.global.add.u32 %r5, [%rd2], 1; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd1, %rd3; "
        "st.global.u32 [%rd3], %r4;",
    ),
    "counted": (4, "atom.global.add.u32 %r5, [%rd2], 1;"),
    "last": (4, "atom.global.exch.b32 _, [%rd2], %r4;"),
    "last_of_16_bytes": (
        4,
        ".reg .b128 %q<2>; cvt.u64.u32 %rd4, %r4; mov.b128 %q0, {{%rd4, %rd4}}; "
        "atom.global.exch.b128 %q1, [%rd2], %q0;",
    ),
    "winner": (4, "add.u32 %r6, %r4, 1; atom.global.cas.b32 _, [%rd2], 0, %r6;"),
    "around": (4, "red.global.dec.u32 [%rd2], %r4;"),
    "released": (4, "atom.global.exch.b32 _, [%rd2], 7;"),
    "set_once": (4, "atom.global.cas.b32 _, [%rd2], 0, 7;"),
    "in_a_ring": (4, "red.global.inc.u32 [%rd2], 5;"),
    "highest": (4, "red.global.max.u32 [%rd2], %r4;"),
    "own": (4, "atom.global.exch.b32 _, [%rd3], %r4;"),
    "looked_at": (4, "atom.global.or.b32 %r5, [%rd2], 0; st.global.u32 [%rd3], %r5;"),
    "of_one": (
        4,
        "setp.ne.u32 %p, %r4, 5; @%p ret; atom.global.add.u32 %r5, [%rd2], 1; "
        "atom.global.add.u32 %r5, [%rd2], 1; st.global.u32 [%rd3], %r5;",
    ),
    "of_each": (4, "atom.global.add.u32 %r5, [%rd3], 1; st.global.u32 [%rd3], %r5;"),
    "behind_a_barrier": (
        4,
        _SHARED + "@%p atom.shared.add.u32 %r5, [tile], 7; bar.sync 0; atom.shared.or.b32 %r5, [tile], 0; "
        "st.global.u32 [%rd3], %r5;",
    ),
    "without_it": (
        4,
        _SHARED + "@%p red.shared.add.u32 [tile], 7; atom.shared.or.b32 %r5, [tile], 0; "
        "st.global.u32 [%rd3], %r5;",
    ),
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


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [
        ("taken", "atom.global.add.u32"),
        ("held", "atom.global.exch.b32"),
        ("first", "atom.global.cas.b32"),
        ("least", "atom.global.max.u64"),
        ("without_it", "atom.shared.or.b32"),
        ("indexed", "atom.global.add.u32"),
        ("counted", ""),  # the old value is not used
        ("looked_at", ""),  # no thread changes the word
        ("of_one", ""),
        ("of_each", ""),
        ("behind_a_barrier", ""),
    ],
)
@pytest.mark.parametrize("sizes", [(1, 32), (8, 4)])
def test_old_values_of_integers_that_are_used(
    module: Any, name: str, mnemonic: str, sizes: tuple[int, int]
) -> None:
    """Which thread gets which old value is the schedule's choice, though the word ends the same."""
    args = [np.zeros(64, np.uint32), np.zeros(2, np.uint32)]
    labels = _labels(module[name](*sizes, args, checks="off"))
    assert set(labels) == ({mnemonic} if mnemonic else set())
    assert all("old values" in note and "sums" not in note for note in labels.values())
    assert all(("left in memory" in note) is (name in ("held", "first")) for note in labels.values())


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [
        ("last", "atom.global.exch.b32"),
        ("last_of_16_bytes", "atom.global.exch.b128"),
        ("winner", "atom.global.cas.b32"),
        ("around", "red.global.dec.u32"),
        *((name, "") for name in ("released", "set_once", "in_a_ring", "highest", "own")),
    ],
)
@pytest.mark.parametrize("sizes", [(1, 32), (8, 4)])
def test_what_updates_leave_that_do_not_commute(
    module: Any, name: str, mnemonic: str, sizes: tuple[int, int]
) -> None:
    """No old value is used; the word has what the last or the first thread gives, or all the same."""
    labels = _labels(module[name](*sizes, [np.zeros(64, np.uint32), np.zeros(4, np.uint32)], checks="off"))
    assert set(labels) == ({mnemonic} if mnemonic else set())
    assert all(note.startswith("the value left in memory") for note in labels.values())


def test_an_index_of_an_open_order_is_followed_to_addresses(module: Any) -> None:
    """Under another schedule the results are others, as the label says."""
    stored = []
    for schedule in ("program", "random:1"):
        args = [np.zeros(64, np.uint32), np.zeros(1, np.uint32)]
        report = module["indexed"](16, 4, args, schedule=schedule)
        (reach,) = report.fidelity.reached
        assert (reach.role, reach.origin_mnemonic) == ("an address", "atom.global.add.u32")
        stored.append(args[0])
    assert sorted(stored[0]) == sorted(stored[1])
    assert not np.array_equal(*stored)


def test_old_values_of_integers_are_known_in_other_processes(module: Any) -> None:
    """Updates of shared memory alone leave CTAs independent, which several processes execute."""
    x = np.zeros(32 * 256, np.uint32)
    report = module["without_it"](256, 32, [x, np.zeros(1, np.uint32)], processes=2)
    assert set(_labels(report)) == {"atom.shared.or.b32"}


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


# --- other schedules -------------------------------------------------------------------------------


def _wide(count: int) -> npt.NDArray[np.float32]:
    random = np.random.default_rng(3)
    wide: npt.NDArray[np.float32] = np.ldexp(random.normal(size=count), random.integers(0, 9, count))
    return wide.astype(np.float32)


def test_a_launch_names_the_bounds_of_sums_over_schedules(module: Any) -> None:
    values, out = _wide(256), np.zeros(4, np.float32)
    report = module["red_f32"](4, 64, [values, out], schedules=5)
    (note,) = report.hazards
    assert (note.kind, note.severity, note.location.text[note.location.column - 1 :][:3]) == (
        "schedule",
        "note",
        "red",
    )
    sums = []
    for schedule in ("program", "random:1", "latest", "earliest", "random:2"):
        again = np.zeros(4, np.float32)
        module["red_f32"](4, 64, [values, again], schedule=schedule)
        sums.append(again[0])
    assert out[0] == sums[0]
    assert min(sums) < max(sums)
    least, most = (f"{end!s} (0x{end.view(np.uint32):08x})" for end in (min(sums), max(sums)))
    assert "(program, random:1, latest, earliest, random:2)" in note.message
    assert f"1 of 1 float, the widest from {least} to {most} (f32 at byte 0)" in note.message
    assert note.message.startswith("out has other bits")


def test_sums_that_are_the_same_under_all_schedules_are_said_to_be(module: Any) -> None:
    values = np.array([1e30, 1.0, 1.0, 1.0], np.float32)  # the order is open, and no order shows it
    report = module["red_f32"](1, 4, [values, np.full(1, 1e30, np.float32)], schedules=2)
    assert _labels(report)
    assert [item.message.partition("; ")[2] for item in report.hazards] == [
        "their sums have the same bits under program, random:1"
    ]


def test_what_comes_of_sums_is_a_warning_and_anything_else_an_error(module: Any) -> None:
    values = _wide(256)
    report = module["stored"](1, 256, [values, np.zeros(4, np.float32)], schedules=2)
    (warning,) = (item for item in report.hazards if item.kind == "schedule")
    assert warning.severity == "warning"
    assert "1 of 4 floats, the widest from" in warning.message
    taken = np.zeros(64, np.uint32)
    counted = (4, 16, [taken, np.zeros(1, np.uint32)])
    with pytest.raises(
        warpsim.UndefinedBehavior, match="x is another under schedule random:1 than under prog"
    ):
        module["taken"](*counted, schedules=2)
    assert not taken.any()  # nothing came back
    assert [item.severity for item in module["taken"](*counted, schedules=2, checks="warn").hazards] == [
        "error"
    ]


def test_one_schedule_says_nothing_and_numbers_are_checked(module: Any) -> None:
    args = [_wide(64), np.zeros(1, np.float32)]
    assert not module["red_f32"](1, 64, args).hazards
    for wrong, said in ((0, "expected 1 to 64"), (65, "expected 1 to 64"), ("many", "schedules")):
        with pytest.raises(warpsim.OperandError, match=said):
            module["red_f32"](1, 64, args, schedules=wrong)
    with pytest.raises(warpsim.OperandError, match="a launch that is spread has one schedule"):
        module["red_f32"](1, 64, args, schedules=2, scheduler="tcp://localhost:1")


def test_bounds_of_zeros_and_of_nans() -> None:
    words = [np.array(row, np.float32) for row in ((0.0, np.nan, np.inf, 1.0), (-0.0, 2.0, -np.inf, 1.0))]
    copies = []
    for content in words:
        made = Copies()
        made.launched({"f32": np.arange(0, 16, 4)}, content.view(np.uint8))
        made.add("a copy", content.view(np.uint8), 0)
        copies += made.made
    spread = spread_of(*copies)
    assert spread is not None
    assert spread.count == 3
    assert [end.tolist()[0::2] for end in spread.bounds["f32"]] == [[0.0, -np.inf], [0.0, np.inf]]
    assert np.signbit(spread.bounds["f32"][0][0])
    assert (
        str(spread) == "3 of 4 floats, the widest from 2.0 (0x40000000) to nan (0x7fc00000) (f32 at byte 4)"
    )


def test_the_command_names_the_bounds(tmp_path: Path) -> None:
    size, body = _KERNELS["red_f32"]
    text = _BODY.format(name="sum", size=size, body=body)
    (tmp_path / "sum.ptx").write_text(".version 9.0\n.target sm_90\n.address_size 64\n" + text)
    np.save(tmp_path / "x.npy", _wide(256))
    words = ["launch", str(tmp_path / "sum.ptx"), "--entry", "sum", "--grid", "4", "--block", "64"]
    words += ["--arg", str(tmp_path / "x.npy"), "--arg", "zeros:f32:1", "--schedules", "3"]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    assert result.exit_code == 0
    assert (
        "note: out has other bits under other schedules (program, random:1, latest): 1 of 1 float, the wid"
        in (result.output)
    )


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
    values = "from 941.49994 (0x446b5fff) to 941.5001 (0x446b6002) (f32 at byte 4)"
    assert f"1 of 1 float, the widest {values}: several threads add" in finding.message


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
