"""The fuzzer finds what is wrong, what it found before stays mended, and it tries a little every time."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import numpy as np
import pytest

import warpsim.show.cli
from tools.fuzz.case import Case, case_of, line_of
from tools.fuzz.differential import compare
from tools.fuzz.inputs import npy
from tools.fuzz.messages import try_messages
from tools.fuzz.mutations import _manifest, mutated
from tools.fuzz.paths import different
from tools.fuzz.places import PLACES, place_cases
from tools.fuzz.seeds import seeds
from tools.fuzz.trial import try_case

REGRESSIONS = Path(__file__).parents[2] / "traces" / "regressions"
KEPT = [
    case_of(line) for file in sorted(REGRESSIONS.glob("*.jsonl")) for line in file.read_text().splitlines()
]

QUICK = (  # verbs whose kernels need not be compiled
    *("check", "unpack", "pack", "info", "metadata", "replay", "launch", "layout", "desc", "compress"),
    *("convert", "lint", "view", "verify"),
)

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="each case is a fork of this process"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),  # of a process with threads
]


@pytest.mark.parametrize(("case", "story"), KEPT, ids=[story for _, story in KEPT])
def test_what_was_found_stays_mended(case: Case, story: str) -> None:
    verdict = try_case(case)
    assert not verdict.problem, f"{story}: {verdict.said}"


def test_a_command_may_lose_its_last_word() -> None:
    case = Case(command=("demo",), files={}, stdin=b"")
    found = {mutated(case, case, Random(number)).command for number in range(400, 800)}
    assert () in found


def test_some_changes_of_some_inputs() -> None:
    """The whole of it: python -m tools.fuzz, for a quarter of an hour, with the day as its seed."""
    known = list(seeds())
    cheap = [one for one in known if one.command[0] in QUICK]
    for number in range(60):
        rng = Random(f"in the tests {number}")
        verdict = try_case(mutated(rng.choice(cheap), rng.choice(known), rng))
        assert not verdict.problem, verdict.said


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        ("raise KeyError", "exit code 70"),
        ("import os; os.kill(os.getpid(), 11)", "exit code -11"),
        ("print('Traceback (most recent call last)')", "traceback"),
        ("raise SystemExit(3)", "exit code 3, and not a word"),
        ("open('.warpsim-1.partial', 'w')", "leaves .warpsim-1.partial"),
        ("open('a', 'w')", "changes its input a"),
        ("while True: pass", "takes more than 1 s"),
        ("import time; time.sleep(9)", "takes more than 1 s"),
        ("x = b'x' * (1 << 28)", "takes "),
        ("print('fine')", ""),
    ],
)
def test_the_judge_sees(harm: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.fuzz.trial.SECONDS", 1)
    monkeypatch.setattr("tools.fuzz.trial.WAITING", 2.0)
    monkeypatch.setattr("tools.fuzz.trial.BYTES", 1 << 23)
    monkeypatch.setattr(warpsim.show.cli.cli, "main", lambda *_, **__: exec(harm))
    verdict = try_case(Case(command=("info",), files={"a": b"content"}))
    assert verdict.problem.startswith(problem)
    assert bool(verdict.problem) == bool(problem)


def test_a_line_keeps_a_case() -> None:
    case = Case(command=("run", "\udcff.ptx"), files={"a": b"text\n", "b": bytes(range(256))}, stdin=b"\xff")
    assert case_of(line_of(case, "a story")) == (case, "a story")


@pytest.mark.parametrize(
    ("mnemonic", "target", "seed"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", 2),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "sm_80", 2),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "sm_90a", 2),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "sm_90a", 3),
    ],
)
def test_all_paths_give_the_same_bits(mnemonic: str, target: str, seed: int) -> None:
    assert different(warpsim.decode(mnemonic, target=target), seed, 3) == []


def test_a_little_of_what_there_is_twice() -> None:
    """The whole of it: python -m tools.fuzz --differential."""
    assert compare("in the tests", 600, 12) == 0


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(random: Random) -> tuple[str, list[str]]:
        raise KeyError("of the case")

    monkeypatch.setattr("tools.fuzz.differential.SUBJECTS", {"paths": (lambda random: ("it", ["D"]), 1)})
    assert compare("s", 10, 2) == 1
    monkeypatch.setattr("tools.fuzz.differential.SUBJECTS", {"text": (fails, 1)})
    assert compare("s", 10, 1) == 1
    said = capsys.readouterr()
    assert said.out.startswith("seed s, case 0, paths: it: D\nseed s, case 1, paths: it: D\n")
    assert "KeyError: 'of the case'" in said.out
    assert said.err == "2 cases (2 paths), 2 finds\n1 cases (1 text), 1 finds\n"


def test_a_launch_that_goes_on_is_tried_again_with_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.fuzz.trial.SECONDS", 2)
    text = ".version 8.3\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r;\n"
    text += "L:\nadd.u32 %r, %r, 1;\nbra L;\n}\n"
    verdict = try_case(Case(command=("launch", "k.ptx", "--entry", "k"), files={"k.ptx": text.encode()}))
    assert (verdict.problem, verdict.code) == ("", 3)
    assert "not ended after 20,000 statements of the launch" in verdict.said


def test_members_whose_header_is_broken_are_changed_as_bytes() -> None:
    """NumPy raises another error for each way in which the header of an array can be broken."""
    content = npy(np.array('{"schema": 1}'))
    for place in range(10, 80):
        for byte in b"([{'\"\\#":
            _manifest(content[:place] + bytes([byte]) + content[place + 1 :], Random(place))


def test_a_few_links_and_pipes() -> None:
    """The whole of it: python -m tools.fuzz --places."""
    chosen = [case for kind, case in place_cases() if case.command[0] == "convert"][:11]
    assert {kind for case in chosen for kind in case.places.values()} == set(PLACES)
    for case in chosen:
        verdict = try_case(case)
        assert not verdict.problem, verdict.said
        assert verdict.code == 3 or case.places == {}


def test_a_few_messages() -> None:
    """The whole of it: python -m tools.fuzz --messages."""
    assert try_messages("in the tests", 60, 30) == 0
