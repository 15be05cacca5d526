"""Remarks on D that hold whatever the mistake was: a kind and its facts, and last the sentence.

Which search follows a remark depends on its kind. The sentences are the values of RemarkKind, and only here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class RemarkKind(Enum):
    """What a remark states; the value is the sentence, with the names of its facts."""

    ROWS = (
        "D's rows are permuted: row r holds what belongs in row {order}[r]; {moved} of {count} are elsewhere"
    )
    COLUMNS = (
        "D's columns are permuted: column j holds what belongs in column {order}[j]; "
        "{moved} of {count} are elsewhere"
    )
    ELEMENTS = "D is a permutation of the expected values{count}: {first}, …"
    FUNCTION = "D is the expected result {function}"
    FUNCTION_UNKNOWN = "D is a function of each expected value, whatever its place: {pairs}"
    FUNCTION_FIRST = "D is A·B {function}, and C added then: the activation comes before C (a bias)"
    MASKED = (
        "D is {value:g} in all elements {side} the diagonal{first}, and right elsewhere: a triangle is masked"
    )
    SOLVED = "solved from D: {what}"
    NARROWED = "D is the expected result rounded to {format} before it was stored"
    TRUNCATED = "D is the expected result truncated (rounded toward zero) to {format}, not to nearest"
    ROUNDINGS = (
        "D is right but for roundings: {count} of {total} elements are off, "
        "by at most {most:.6g} of the largest"
    )
    MULTIPLE = "D is {factor:.6g} times what was expected (D times {factor:.6g}): alpha, or a scale"
    PRODUCTS_MULTIPLE = "D is {factor:.6g} times A·B, without C: alpha, or a scale"
    FACTORS = (
        "{what} is off by a factor of its own in each {axis}: a scale per {axis}, "
        "from {low:.6g} to {high:.6g}"
    )
    ALPHA_BETA = "D is {alpha:.6g} times A·B plus {beta:.6g} times C: alpha and beta"
    C_MISSING = "C was not added"
    C_MULTIPLE = "D - A·B is C times {factor:.6g} (beta)"
    C_CONSTANT = "D - A·B is {level:.6g} everywhere: not what was passed, as if C were {level:.6g}"
    C_UNRELATED = (
        "D - A·B has nothing to do with C: what is added to the products is something else (garbage in the "
        "accumulators, or C from elsewhere)"
    )
    BIAS = "D is {level:.6g} more than expected everywhere: a bias"
    BIASES = "D differs from the expected by the same in each {axis}: a bias per {axis}"
    ZERO_POINT = "{operand}: zero point: every element of {operand} is {level:.6g} more than was passed"
    ZERO_POINTS = "A and B: zero points: A is {a:.6g} more, and B {b:.6g} more than was passed"
    SHARED = "behind the wrong {which}: {parts}"


_VAGUE = {RemarkKind.FUNCTION_UNKNOWN, RemarkKind.ELEMENTS, RemarkKind.C_UNRELATED}
_OF_POSITIONS = {RemarkKind.ROWS, RemarkKind.COLUMNS, RemarkKind.SHARED}


@dataclass(frozen=True)
class Remark:
    """One remark; ``place`` names the tile of a larger product that it is about."""

    kind: RemarkKind
    facts: Mapping[str, object]
    place: str = ""

    def __str__(self) -> str:
        return self.place + self.kind.value.format(**self.facts)

    @property
    def is_certain(self) -> bool:
        """Whether the remark says how D came about, so that no further search is needed."""
        return self.kind not in _VAGUE

    @property
    def explains_values(self) -> bool:
        """Whether the remark says how the values of D came about: pairs of mistakes need not be tried."""
        return self.is_certain and self.kind not in _OF_POSITIONS | {RemarkKind.ROUNDINGS}


def remark(kind: RemarkKind, **facts: object) -> Remark:
    """Return a remark with these facts."""
    return Remark(kind, facts)
