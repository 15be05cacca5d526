"""Clusters, operations on their memory, setmaxnreg: the machine takes what ptxas 13.0 takes, operands included.

Forms of each row and names that differ from one in a modifier are judged by both, with all the operands that
might suit; where they differ, a reason is listed here. So are directives of kernels.
"""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest

from tests.helpers import ptxas
from tests.helpers.warp_statements import NOT_MODELLED, by_machine, by_ptxas, mutated, names
from warpsim.machine.launching import load_text
from warpsim.machine.opcodes import clusters, copies, registers, remote
from warpsim.machine.opcodes.effect import Effect

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
_ASYNC = (
    "[%r1], %r2, [%r3]", "[%r1], %d2, [%r3]", "[%d1], %r2, [%d3]", "[%d1], %d2, [%d3]", "[sm], %r2, [sm+8]",
    "[%r1], {%r2, %r3}, [%r3]", "[%r1], {%d2, %d3}, [%r3]", "[%r1], {%r2, %r3, %r4, %r5}, [%r3]",
    "[%r1], {%d2, %d3, %d4, %d5}, [%r3]", "[%r1], {%r2, 5}, [%r3]", "[%d1+8], %r2", "[%d1], %d2", "[%d1], %h2",
    "[%d1], 4", "[%r1], 4, [%r3+8]", "[%r1], %r2, %r3",
)  # fmt: skip
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
    "st": _ASYNC,
    "red": _ASYNC,
}  # fmt: skip

# Statements about which the two differ, and why.
DIFFERENCES: tuple[tuple[str, str], ...] = (
    (r"(mapa|getctarank|cvta|isspacep)\.?[^ ]* %[rp]6, %r1.*", "32-bit addresses: not checked here"),
    (r".* \[%r1\].*|.*\[%r3(\+8)?\];", "32-bit addresses of a module with 64 bits: not checked here"),
    (r"st\.async(?!.*complete_tx)(?!.*release).*", "the manual asks for a mechanism, ptxas does not"),
    (r"(st|red)\.async.*complete_tx.* \[[^]]*\], [^\[]*;", "the manual asks for an mbarrier, ptxas does not"),
)


def rows_of(opcode: str) -> list[Effect]:
    return [row for row in ROWS[opcode] if row.opcode == opcode]


def written(opcode: str, spelled: list[tuple[str, ...]]) -> list[str]:
    return [
        f"{'.'.join((opcode, *words))} {operands};".replace(" ;", ";")
        for words in spelled
        for operands in OPERANDS[opcode]
    ]


@lru_cache(32)
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


def forms(opcode: str, count: int) -> tuple[str, ...]:
    spelled = [
        words for place, row in enumerate(rows_of(opcode)) for words in names(row, count, SEED + place)
    ]
    return tuple(written(opcode, spelled))


@pytest.mark.parametrize("opcode", sorted(OPERANDS))
@pytest.mark.parametrize("target", ["sm_90", "sm_90a", "sm_100a", "sm_80", "sm_120"])
def test_forms(opcode: str, target: str) -> None:
    assert differing(forms(opcode, 6), target, "9.0") == []


@pytest.mark.parametrize("opcode", sorted(OPERANDS))
def test_mutants(opcode: str) -> None:
    texts = tuple(written(opcode, mutated(rows_of(opcode), 30, SEED)))
    for target in ("sm_90a", "sm_100a"):
        assert differing(texts, target, "9.0") == []


@pytest.mark.parametrize(
    ("version", "target"),
    [("7.8", "sm_90"), ("8.0", "sm_90"), ("8.0", "sm_90a"), ("8.1", "sm_90"), ("8.6", "sm_100a"), ("8.7", "sm_100"),
     ("8.8", "sm_100f"), ("7.7", "sm_80")],
)  # fmt: skip
def test_versions(version: str, target: str) -> None:
    texts = tuple(text for opcode in sorted(OPERANDS) for text in forms(opcode, 3))
    assert differing(texts, target, version) == []


DIRECTIVES = (
    ".reqnctapercluster 2", ".reqnctapercluster 2,1,1", ".reqnctapercluster 4,4,4", ".explicitcluster",
    ".explicitcluster .reqnctapercluster 2", ".maxclusterrank 8", ".maxclusterrank 2,1", ".explicitcluster 1",
    ".reqnctapercluster 2 .maxclusterrank 4", ".explicitcluster .maxclusterrank 4", ".blocksareclusters",
    ".blocksareclusters .reqntid 64 .reqnctapercluster 2", ".blocksareclusters .reqnctapercluster 2",
    ".reqnctapercluster", ".maxclusterrank", ".maxnreg 64", ".reqnctapercluster 2,2,2,2",
)  # fmt: skip


@pytest.mark.parametrize("tuning", DIRECTIVES)
def test_directives(tuning: str, tmp_path: Path) -> None:
    """On three targets and two versions."""
    for version, target in (("9.0", "sm_90a"), ("8.8", "sm_90"), ("9.0", "sm_80"), ("7.8", "sm_90")):
        text = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {tuning} {{ ret; }}\n"
        (tmp_path / "k.ptx").write_text(text)
        command = ["ptxas", f"-arch={target}", "k.ptx", "-o", "k.cubin"]
        taken = not subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode
        assert (not load_text(text).problems) == taken, (tuning, version, target)
