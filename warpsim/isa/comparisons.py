"""Evidence: why a rule is believed, and which outputs of chips were compared with it.

A comparison is kept for what was compared: chip, types, k, with or without C. Evidence counts comparisons,
and holds for a type only where the type was compared. Pure data; no arithmetic. Source: KM, the outputs that
Khattak and Mikaitis published (see architectures.py), which the tests replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Outputs of one chip, all equal to those of the rule: A and B of ``factor``, ``k`` products each.

    ``with_c`` says whether the chip added C.
    """

    chip: str
    target: str
    family: str
    factor: str
    d: str
    k: int
    with_c: bool = True
    outputs: int = 2500


def _on(
    chips: str, target: str, results: dict[str, tuple[str, int]], family: str = "mma", *, with_c: bool = True
) -> Iterator[Comparison]:
    """Return the comparisons on some chips; ``results`` maps a type of A and B to the types of D, and k."""
    for chip in chips.split(", "):
        for factor, (types, k) in results.items():
            for d in types.split():
                yield Comparison(
                    chip=chip, target=target, family=family, factor=factor, d=d, k=k, with_c=with_c
                )


_BOTH = "f32 f16"
_GROUPS_OF_8 = {"f16": (_BOTH, 8), "bf16": ("f32", 8), "tf32": ("f32", 4)}
_GROUPS_OF_16 = {"f16": (_BOTH, 16), "bf16": ("f32", 16), "tf32": ("f32", 4)}

COMPARISONS: tuple[Comparison, ...] = (
    *_on("V100", "sm_70", {"f16": (_BOTH, 4)}),
    *_on("A100", "sm_80", _GROUPS_OF_8),
    *_on("A2", "sm_86", _GROUPS_OF_8),
    *_on("L40S", "sm_89", _GROUPS_OF_8 | {"e4m3": ("f32", 32), "e5m2": ("f32", 32)}),
    *_on("RTX Ada", "sm_89", _GROUPS_OF_8 | {"e4m3": (_BOTH, 32), "e5m2": (_BOTH, 32)}),
    *_on("H100, H200", "sm_90", _GROUPS_OF_16 | {"e4m3": ("f16", 32), "e5m2": ("f16", 32)}),
    *_on("H100, H200", "sm_90a", {"e4m3": ("f32", 32), "e5m2": ("f32", 32)}, "wgmma", with_c=False),
    *_on("B200", "sm_100", _GROUPS_OF_16 | {"e4m3": (_BOTH, 32), "e5m2": (_BOTH, 32)}),
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Why a rule is believed: ``validated`` with the outputs compared, ``inferred`` and why, or ``reported``.

    Reported: others compared a chip with a rule that equals the rule here. ``inherited`` says that it is the
    evidence of an earlier chip. ``covers_sparse`` says
    that sparse forms were compared, too.
    """

    label: str
    detail: str
    compared: tuple[Comparison, ...] = field(default=(), hash=False)  # rules are keys of many calls
    inherited: bool = False
    covers_sparse: bool = False

    @property
    def chips(self) -> str:
        """The chips that were compared."""
        return ", ".join(dict.fromkeys(comparison.chip for comparison in self.compared))

    @property
    def outputs(self) -> int:
        """How many outputs were compared."""
        return sum(comparison.outputs for comparison in self.compared)

    def of_types(self, types: Iterable[str]) -> Evidence:
        """Return the evidence for these types of A and B: itself, unless others were compared."""
        known = dict.fromkeys(comparison.factor for comparison in self.compared)
        if not self.compared or known.keys() >= set(types):
            return self
        return inferred(f"as for {', '.join(known)} ({self})")

    def __str__(self) -> str:
        if self.label == "validated":
            return f"validated on {self.chips}: {self.outputs:,} outputs equal ({self.detail})"
        return f"{self.label}: {self.detail}"


def validated(target: str, family: str, factors: Sequence[str], d: str, detail: str) -> Evidence:
    """Return the evidence of all comparisons on a target with these types of A and B, and of D."""
    compared = tuple(
        comparison
        for comparison in COMPARISONS
        if (comparison.target, comparison.family, comparison.d) == (target, family, d)
        and comparison.factor in factors
    )
    assert compared, f"no outputs of {target} were compared: {family} {d} {factors}"
    return Evidence(label="validated", detail=detail, compared=compared)


def inferred(detail: str, *, inherited: bool = False) -> Evidence:
    """Return the evidence of a rule that was not compared with a chip."""
    return Evidence(label="inferred", detail=detail, inherited=inherited)


def reported(source: str, chip: str, outputs: int, detail: str) -> Evidence:
    """Return the evidence of outputs that others compared with an equal rule: their source, and how many."""
    detail = f"{source} on {chip}, {outputs:,} outputs equal; {detail}"
    return Evidence(label="reported", detail=detail, covers_sparse=True)
