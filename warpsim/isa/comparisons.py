"""Evidence: why a rule is believed, and which outputs of chips were compared with it.

A comparison is kept for what was compared: chip, types, k, with or without C. Evidence of a rule has the
comparisons of all its uses; that of a use (``Evidence.of``) has its own alone, and is inferred where there
are none: its neighbours are the reason, never the label. Pure data; no arithmetic. Source: the outputs that
Khattak and Mikaitis published (see architectures.py), which the tests replay.

Outputs that others compared and have not published (``Report``) count by one rule, for all of them: a label
is "reported" where their source says, for one instruction of one shape and types on one chip, how many
outputs were compared and that none differs, with a rule that equals the rule here. What is said of a chip as
a whole, or without a number of outputs, is a reason of "inferred".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True)
class Use:
    """What decides the arithmetic of one element of D under a rule: types of A, B and C, products, and
    whether C is added. ``steps`` is how many sums that are each rounded the rule makes of them.

    ``issued`` says what of an instruction a report is of: how it is issued, its operation, m and n.
    """

    a: str
    b: str
    c: str
    k: int
    steps: int = 1
    with_c: bool = True
    issued: Issued | None = None


class Issued(NamedTuple):
    """How an instruction is issued, in the words before its kind, its operation, and the shape of D."""

    words: str
    operation: str
    m: int
    n: int

    def __str__(self) -> str:
        return f"{self.words} m{self.m}n{self.n}"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Outputs of one chip, all equal to those of the rule: A and B of ``factor``, ``k`` products each.

    C has the type of D; ``with_c`` says whether the chip added it.
    """

    chip: str
    target: str
    family: str
    factor: str
    d: str
    k: int
    with_c: bool = True
    outputs: int = 2500

    def is_of(self, use: Use) -> bool:
        """Return whether a use of the rule is what was compared."""
        mine = (self.factor, self.factor, self.d, self.k, self.with_c)
        return mine == (use.a, use.b, use.c if use.with_c else self.d, use.k, use.with_c)


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
class Report:
    """Outputs that others compared with a chip: an instruction that is ``issued`` so, of A, B and D of these
    types, ``dense`` and ``sparse``.
    """

    issued: Issued
    a: str
    b: str
    d: str
    dense: int = 1_000_000
    sparse: int = 1_000_000

    def __str__(self) -> str:
        kinds = ((self.dense, "dense"), (self.sparse, "sparse"))
        return " and ".join(f"{count:,} {kind}" for count, kind in kinds if count)

    def is_of(self, use: Use) -> bool:
        """Return whether a use of the rule is what was compared."""
        return (self.issued, self.a, self.b, self.d) == (use.issued, use.a, use.b, use.c)


def _one_cta(operation: str, m: int = 64) -> Issued:
    return Issued("tcgen05.mma.cta_group::1", operation, m, 8)


_NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
# sf-tensor/tcgen05 at commit 6f19f22: the paths of hardware_validation/run_full_validation.py, and the shapes
# of the runners in hardware_validation/src. Half of the cases of a path are random bits, the others finite.
REPORTS: tuple[Report, ...] = (
    *(Report(issued=_one_cta(name), a=name, b=name, d="f32") for name in ("tf32", "bf16", "f16")),
    *(Report(issued=_one_cta("f8f6f4"), a=name, b=name, d="f32") for name in _NARROW),
    Report(issued=_one_cta("f8f6f4"), a="e4m3", b="e2m1", d="f32", sparse=0),
    Report(issued=_one_cta("f8f6f4"), a="e2m1", b="e4m3", d="f16", sparse=0),
    *(Report(issued=_one_cta("mxf8f6f4", 128), a=name, b=name, d="f32") for name in _NARROW),
    Report(issued=_one_cta("mxf4", 128), a="e2m1", b="e2m1", d="f32"),
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Why a rule is believed: ``validated`` with the outputs compared, ``documented`` where PTX defines the
    bits, ``inferred`` and why, or ``reported``.

    Reported: others compared a chip with a rule that equals the rule here, of the types in ``reports``.
    ``composed`` says why the rule is believed where it was not compared itself. ``basis`` is the evidence of
    an earlier chip that is inherited. ``covers_sparse`` says that sparse forms were compared, too.
    """

    label: str
    detail: str
    compared: tuple[Comparison, ...] = field(default=(), hash=False)  # rules are keys of many calls
    composed: str = ""
    basis: Evidence | None = None
    covers_sparse: bool = False
    reports: tuple[Report, ...] = field(default=(), hash=False)

    @property
    def chips(self) -> str:
        """The chips that were compared."""
        return ", ".join(dict.fromkeys(comparison.chip for comparison in self.compared))

    @property
    def outputs(self) -> int:
        """How many outputs were compared."""
        return sum(comparison.outputs for comparison in self.compared)

    def of(self, use: Use) -> Evidence:
        """Return the evidence of one use: what was compared of it alone, or why it is inferred."""
        if self.basis is not None:
            return inferred(f"{self.detail} ({self.basis.of(use)})")
        if self.reports:
            return self._report_of(use)
        if not self.compared:
            return self
        same = tuple(comparison for comparison in self.compared if comparison.is_of(use))
        if same:
            return replace(self, compared=same)
        near = tuple(item for item in self.compared if item.factor in (use.a, use.b)) or self.compared
        published = replace(self, compared=near)
        detail = f"{published.outputs:,} outputs of {published.chips} match ({self.detail})"
        return inferred(f"{_differences(use, near)}; {self.composed}; {detail}")

    def _report_of(self, use: Use) -> Evidence:
        """Return what others report of a use, or why it is inferred."""
        same = tuple(each for each in self.reports if each.is_of(use))
        if same:
            detail = f"{self.detail}: {same[0]} outputs of {same[0].issued} equal"
            return replace(self, detail=detail, covers_sparse=bool(same[0].sparse), reports=same)
        near = next(
            (each for each in self.reports if (each.a, each.b, each.d) == (use.a, use.b, use.c)), None
        )
        if near is None:
            return inferred(f"{use.a} by {use.b} into {use.c}, not reported; others are: {self.detail}")
        return inferred(f"the same sums as of {near.issued}, which alone is reported: {self.detail}")

    def __str__(self) -> str:
        if self.label == "validated":
            return f"validated on {self.chips}: {self.outputs:,} outputs equal ({self.detail})"
        return f"{self.label}: {self.detail}"


def _differences(use: Use, near: Sequence[Comparison]) -> str:
    """Return in words how a use differs from the compared outputs."""
    found, example = [], near[0]
    factors = list(dict.fromkeys(item.factor for item in near))
    if use.a not in factors or use.b not in factors:
        found.append(f"A {use.a} by B {use.b}, compared with {', '.join(factors)}")
    elif use.a != use.b:
        found.append(f"{use.a} by {use.b}, compared with equal types of A and B")
    if use.k != example.k:
        if use.k == use.steps * example.k:
            found.append(f"modelled as {use.steps} steps of k = {example.k}")
        else:
            found.append(f"k = {use.k}, compared with k = {example.k}")
    if use.with_c and not example.with_c:
        found.append("with C, compared without C")
    elif use.c != example.d:
        found.append(f"C {use.c}, compared with C {example.d}")
    return "; ".join(found)


def validated(
    target: str, family: str, factors: Sequence[str], d: str, detail: str, *, composed: str
) -> Evidence:
    """Return the evidence of all comparisons on a target with these types of A and B, and of D."""
    compared = tuple(
        comparison
        for comparison in COMPARISONS
        if (comparison.target, comparison.family, comparison.d) == (target, family, d)
        and comparison.factor in factors
    )
    assert compared, f"no outputs of {target} were compared: {family} {d} {factors}"
    return Evidence(label="validated", detail=detail, compared=compared, composed=composed)


def documented(detail: str) -> Evidence:
    """Return the evidence of a rule whose bits PTX defines, on every chip."""
    return Evidence(label="documented", detail=detail)


def inferred(detail: str, *, basis: Evidence | None = None) -> Evidence:
    """Return the evidence of a rule that was not compared with a chip; ``basis``: that of an earlier chip."""
    return Evidence(label="inferred", detail=detail, basis=basis)


def reported(source: str, chip: str, reports: tuple[Report, ...]) -> Evidence:
    """Return the evidence of outputs that others compared with an equal rule."""
    return Evidence(
        label="reported",
        detail=f"{source} on {chip}, whose model equals the rule but where all products are 0 and C is -0: D "
        "is -0 there, +0 here",
        reports=reports,
    )
