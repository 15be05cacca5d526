"""Clusters, operations on their memory, setmaxnreg: the machine takes what ptxas 13.0 takes.

Forms of each row and names that differ from one in a modifier are judged by both, with all the operands that
might suit; where they differ, a reason is listed here. So are directives of kernels.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from random import Random

import pytest

from tests.helpers import ptxas
from tests.helpers.warp_statements import NOT_MODELLED, by_machine, by_ptxas, mutated, names
from warpsim.machine.opcodes.asynchronous import remote
from warpsim.machine.opcodes.control import cluster as clusters
from warpsim.machine.opcodes.control import setmaxnreg as registers
from warpsim.machine.opcodes.effect import Effect
from warpsim.machine.opcodes.memory import mov as copies
from warpsim.programs.launch.launching import load_text

pytestmark = pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")

SEED = 5
_ADDRESSES = tuple(row for row in copies.ROWS if row.opcode in ("cvta", "isspacep"))
ROWS: dict[str, tuple[Effect, ...]] = {
    "mapa": clusters.ROWS,
    "getctarank": clusters.ROWS,
    "barrier": clusters.ROWS,
    "cvta": _ADDRESSES,
    "isspacep": _ADDRESSES,
    "setmaxnreg": registers.ROWS,
    "st": remote.ROWS,
    "red": remote.ROWS,
}
_TOLD = (  # operands of what tells an mbarrier
    "[%d1], %r2, [%d3]", "[%d1], %d2, [%d3]", "[sm], %r2, [sm+8]", "[%d1], {%r2, %r3}, [%d3]",
    "[%d1], {%d2, %d3}, [%d3]", "[%d1], {%r2, %r3, %r4, %r5}, [%d3]", "[%d1], {%d2, %d3, %d4, %d5}, [%d3]",
    "[%d1], 4, [%d3+8]", "[%d1], %r2, %r3",
)  # fmt: skip
_UNTOLD = ("[%d1+8], %r2", "[%d1], %d2", "[%d1], %h2", "[%d1], 4")  # of what does not; three crash ptxas
OPERANDS: dict[str, tuple[str, ...]] = {
    "mapa": (
        "%r6, %r1, %r2", "%d6, %d1, %r2", "%d6, %d1, 1", "%r6, sm, 1", "%r6, sm+4, 3", "%d6, sm, %r2",
        "%r6, %d1, 1", "%d6, %r1, 1", "%d6, %d1, %d2", "%r6, 16, 1", "_, %r1, 1", "%r6, [sm], 1", "%r6, %r1",
        "%r6, %cluster_ctarank, 1", "%r6, %r1, -1", "%d6, %d1, %h1",
    ),
    "getctarank": (
        "%r6, %r1", "%r6, %d1", "%r6, sm", "%r6, sm+4", "%r6, 16", "%d6, %d1", "_, %r1", "%r6, [sm]", "%r6",
        "%h6, %r1", "%r6, %h1", "%r6, %cluster_ctarank",
    ),
    "barrier": ("", "0", "%r1"),
    "cvta": ("%d6, %d1", "%d6, sm", "%r6, %r1"),
    "isspacep": ("%p6, %d1", "%p6, %r1"),
    "setmaxnreg": ("24", "256", "0x20", "16", "25", "264", "-8", "%r1", "24, 24", ""),
}  # fmt: skip

# Statements about which the two differ, and why.
DIFFERENCES: tuple[tuple[str, str], ...] = (
    (r"(mapa|getctarank|cvta|isspacep)\.?[^ ]* %[rp]6, %r1.*", "32-bit addresses: not checked here"),
    (r".* \[%r1\].*|.*\[%r3(\+8)?\];", "32-bit addresses of a module with 64 bits: not checked here"),
    (r"st\.async\.(?!.*\.v\d).*\{.*", "more elements than are stored, which ptxas passes over"),
    (r"st\.async\..*\.v\d.*\], [^{].*", "fewer elements than are stored, which ptxas passes over"),
    (r"st\.async(?!.*complete_tx)(?!.*release).*", "the manual asks for a mechanism, ptxas does not"),
    (r"(st|red)\.async.*complete_tx.* \[[^]]*\], [^\[]*;", "the manual asks for an mbarrier, ptxas does not"),
)


def rows_of(opcode: str) -> list[Effect]:
    return [row for row in ROWS[opcode] if row.opcode == opcode]


def operands_of(opcode: str, words: tuple[str, ...]) -> tuple[str, ...]:
    if opcode in OPERANDS:
        return OPERANDS[opcode]
    return _TOLD if "mbarrier::complete_tx::bytes" in words else _UNTOLD


def written(opcode: str, spelled: list[tuple[str, ...]], most: int) -> list[str]:
    """So many statements with these names, drawn from those with all operands."""
    texts = [
        f"{'.'.join((opcode, *words))} {operands};".replace(" ;", ";")
        for words in spelled
        for operands in operands_of(opcode, words)
    ]
    return Random(opcode).sample(texts, min(most, len(texts)))


def differing(texts: tuple[str, ...], target: str, version: str) -> list[tuple[str, str | None, str | None]]:
    """Statements that one takes and the other does not, with their errors."""
    ours, theirs = by_machine(texts, target, version), by_ptxas(texts, target, version)
    return [
        (text, mine, other)
        for text, mine, other in zip(texts, ours, theirs, strict=True)
        if (mine is None) != (other is None)
        and mine != NOT_MODELLED
        and not (other or "").startswith("ptxas crashes")
        and not any(re.fullmatch(pattern, text) for pattern, _ in DIFFERENCES)
    ]


@cache
def forms(most: int) -> tuple[str, ...]:
    found = list[str]()
    for opcode in sorted(ROWS):
        named = [words for place, row in enumerate(rows_of(opcode)) for words in names(row, 8, SEED + place)]
        found += written(opcode, named, most)
    return tuple(found)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_forms(target: str) -> None:
    assert differing(forms(60), target, "9.0") == []


def test_mutants() -> None:
    texts = [text for one in sorted(ROWS) for text in written(one, mutated(rows_of(one), 30, SEED), 40)]
    assert differing(tuple(texts), "sm_100a", "9.0") == []


@pytest.mark.parametrize(
    ("version", "target"),
    [
        *(("7.8", "sm_90"), ("8.0", "sm_90"), ("8.0", "sm_90a"), ("8.1", "sm_90"), ("8.6", "sm_100a")),
        *(("8.7", "sm_100"), ("8.8", "sm_100f"), ("9.0", "sm_80"), ("9.0", "sm_120")),
    ],
)
def test_versions(version: str, target: str) -> None:
    assert differing(forms(20), target, version) == []


DIRECTIVES = (
    ".reqnctapercluster 2", ".reqnctapercluster 2,1,1", ".reqnctapercluster 4,4,4", ".explicitcluster",
    ".explicitcluster .reqnctapercluster 2", ".maxclusterrank 8", ".maxclusterrank 2,1", ".explicitcluster 1",
    ".reqnctapercluster 2 .maxclusterrank 4", ".explicitcluster .maxclusterrank 4", ".blocksareclusters",
    ".blocksareclusters .reqntid 64 .reqnctapercluster 2", ".blocksareclusters .reqnctapercluster 2",
    ".reqnctapercluster", ".maxclusterrank", ".maxnreg 64", ".reqnctapercluster 2,2,2,2",
)  # fmt: skip


# Two versions, three targets.
PLACES = (("9.0", "sm_90a"), ("9.0", "sm_80"), ("7.8", "sm_90"))


@pytest.mark.parametrize("tuning", DIRECTIVES)
def test_directives(tuning: str, tmp_path: Path) -> None:
    for version, target in PLACES if "," not in tuning else PLACES[:1]:
        text = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {tuning} {{ ret; }}\n"
        (tmp_path / "k.ptx").write_text(text)
        command = [str(ptxas.program()), f"-arch={target}", "k.ptx", "-o", "k.cubin"]
        taken = not subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode
        assert (not load_text(text).problems) == taken, (tuning, version, target)
