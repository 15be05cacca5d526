"""What lint says of tcgen05: nothing of kernels that are right, and each statement that is missing."""

from __future__ import annotations

import re

import pytest

from tests.helpers.kernel_cases import FOLDER
from warpsim.programs.launch.launching import load_text
from warpsim.ptx.parser import parse
from warpsim.ptx.statements import Kernel
from warpsim.workbench.diagnosis.linting.lint import check_module
from warpsim.workbench.diagnosis.linting.pipelines import ControlFlow
from warpsim.workbench.diagnosis.linting.tensor_pipelines import tensor_findings

TEXT = (FOLDER / "tensor_pipelines.ptx").read_text()
WORD, FORM = 4611756662049538048, 135266320  # 128B, SBO 1024, LBO 16; 128 x 64 of f16
HOPPER = WORD & ~(7 << 61 | 7 << 46) | 1 << 62


def kernel_of(name: str) -> str:
    """The text of one kernel, behind the head of the module."""
    start = TEXT.index(f".visible .entry {name}(")
    end = TEXT.find("\n\t// .globl", start)
    return TEXT[: TEXT.index("\t// .globl")] + TEXT[start:end]


STORED, ATTENTION = kernel_of("tensor_stored"), kernel_of("tensor_attention")


def rules(text: str) -> list[tuple[str, str]]:
    """The rule and the quoted line of each finding."""
    lines = text.splitlines()
    return [
        (found.rule, lines[found.location.line - 1].strip())
        for found in tensor_findings(parse(text), "sm_100a")
    ]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("tensor_*.ptx")), ids=lambda file: file.stem)
def test_nothing_is_found_in_right_kernels(file: str) -> None:
    with open(file) as text:
        assert tensor_findings(parse(text.read()), "sm_100a") == []


@pytest.mark.parametrize(
    ("text", "statement", "rule", "at"),
    [
        (STORED, r"tcgen05\.commit[^;]*;", "commit", "tcgen05.mma"),
        (STORED, r"mbarrier\.try_wait[^;]*;", "wait", "tcgen05.commit"),
        (STORED, r"tcgen05\.dealloc[^;]*;", "dealloc", "tcgen05.alloc"),
        (ATTENTION, r"tcgen05\.wait::st[^;]*;", "stores", "tcgen05.st"),
    ],
)
def test_what_is_missing_is_named(text: str, statement: str, rule: str, at: str) -> None:
    changed, count = re.subn(statement, "", text)
    assert count
    (found,) = rules(changed)
    assert found[0] == rule
    assert found[1].startswith(at)


def test_a_commit_of_another_path_is_none() -> None:
    """The last commit alone stays, to which the loop leads; behind a return nothing leads to it."""
    last = STORED.rindex("tcgen05.commit")
    kept = re.sub(r"tcgen05\.commit[^;]*;", "", STORED[:last]) + STORED[last:]
    assert rules(kept) == []
    at = kept.rindex("tcgen05.commit")
    (found,) = rules(f"{kept[:at]}ret; {kept[at:]}")
    assert found[0] == "commit"


def test_allocation_behind_the_permit() -> None:
    permit = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
    assert permit in STORED
    moved = STORED.replace(permit, "", 1).replace("tcgen05.alloc", f"{permit} tcgen05.alloc", 1)
    (found,) = rules(moved)
    assert found[0] == "permit"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (f"{WORD}", f"{HOPPER}", "bits 48:46 are 0; legal: 1"),
        (f"{FORM}", f"{FORM | 1 << 23}", "reserved"),
        (f"{FORM}", f"{FORM | 1 << 2}", "sparse"),
    ],
)
def test_constants_that_are_not_taken(old: str, new: str, said: str) -> None:
    assert old in STORED
    found = tensor_findings(parse(STORED.replace(old, new)), "sm_100a")
    assert found
    assert {finding.rule for finding in found} == {"descriptor"}
    assert said in found[0].message


HEAD = ".version 8.7\n.target sm_100a\n.address_size 64\n"
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];"
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], 0;"


@pytest.mark.parametrize(
    ("tuning", "before", "rule"),
    [
        ("", "", ["threads"]),
        (".reqntid 1", "", []),
        (".reqntid 128", "", ["threads"]),
        ("", "@p bra OVER;", []),
        ("", "@p exit;", []),
    ],
)
def test_statements_of_a_thread_that_all_execute(tuning: str, before: str, rule: list[str]) -> None:
    body = f".reg .pred p; .reg .b32 %r<3>; {before} {COMMIT} {WAIT} OVER: ret;"
    assert [found for found, _ in rules(f"{HEAD}.entry k() {tuning} {{ {body} }}")] == rule


def test_a_guarded_statement_is_that_of_a_thread() -> None:
    body = f".reg .pred p; .reg .b32 %r<3>; @p {COMMIT} {WAIT} ret;"
    assert rules(f"{HEAD}.entry k() {{ {body} }}") == []


def test_labels_are_those_of_their_block() -> None:
    text = f"{HEAD}.entry k() {{ .reg .pred p; {{ L: @p bra L; }} {{ L: @p bra L; }} ret; }}"
    (kernel,) = (item for item in parse(text).statements if isinstance(item, Kernel))
    flow = ControlFlow(kernel)
    assert [sorted(flow.following(place)) for place in range(3)] == [[0, 1], [1, 2], []]


DEEP = """.version 9.0
.target TARGET
.address_size 64
.visible .entry k() {
.reg .b32 d, w, s;
.reg .b64 a, b;
.reg .pred p;
@!p bra over;
DEFINED
tcgen05.mma.cta_group::1.kind::mxf4.block_scale [d], a, b, WORD, [s], [s], p;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [d];
mbarrier.try_wait.parity.shared::cta.b64 p, [d], 0;
over:
ret;
}
"""
_FOURS = 1 << 7 | 1 << 10 | 8 << 17 | 1 << 23 | 1 << 27  # e2m1 by e2m1, N 64, ue8m0, M 128
_TILE = 2 << 61 | 1 << 46 | 64 << 32  # 128B swizzle, SBO 1024
_ABSOLUTE = (
    "matrix descriptor: LBO mode is 1 (bit 52); legal on {}: 0, as an absolute LBO belongs to a K of 96"
)


def deep(
    target: str,
    word: int = _FOURS,
    tile: int | None = None,
    *,
    moved: bool = True,
    asked: str | None = None,
) -> list[str]:
    """What is said of constants, for the target of the text or another that is asked for: a word, in a
    register or as it is, and a descriptor of A.
    """
    defined = f"mov.b32 w, {word:#x};" * moved + (f"mov.b64 a, {tile:#x};" if tile else "")
    text = DEEP.replace("TARGET", target).replace("DEFINED", defined)
    text = text.replace("WORD", "w" if moved else f"{word:#x}")
    found = check_module(load_text(text, target=asked)).incomplete
    return [one.message for one in found if one.rule == "descriptor"]


@pytest.mark.parametrize("target", ["sm_100a", "sm_100f", "sm_110a", "sm_110f"])
@pytest.mark.parametrize("moved", [False, True])
def test_a_k_of_96_on_chips_that_lack_it(target: str, moved: bool) -> None:
    assert deep(target, moved=moved) == []
    (said,) = deep(target, _FOURS | 1 << 31, moved=moved)
    word = f"instruction descriptor {_FOURS | 1 << 31:#010x}"
    assert said == f"{word}: K of 96 (bit 31) is not on {target}: it needs sm_103f"
    assert deep(target, tile=_TILE, moved=moved) == []
    (said,) = deep(target, tile=_TILE | 1 << 52, moved=moved)
    assert said.startswith(_ABSOLUTE.format(target))


@pytest.mark.parametrize("target", ["sm_103a", "sm_103f"])
def test_a_k_of_96_on_chips_that_have_it(target: str) -> None:
    assert deep(target, _FOURS | 1 << 31, _TILE | 1 << 52) == []
    assert len(deep(target, _FOURS | 1 << 31, _TILE | 1 << 52, asked="sm_110a")) == 2
