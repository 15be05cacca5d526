"""One element of a whole product: its accumulator after every instruction along k, on one target or several.

Walks to the first instruction at which targets part, and explains that one; where they never do, the last.
Orders other than ascending k (split k, promotion) are not walked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arithmetic.reference import decode
from ..environment import in_default_environment
from ..errors import OperandError
from ..isa.codes import codes_of, matrix_of
from ..isa.instruction import Codes, Instruction
from ..ptx.decode import Form, resolved
from ..ptx.qualifiers import on_target
from ..views.text import words
from .digits import code_text, hexadecimal
from .explain import TargetComparison, compare_matrices, explain_matrices
from .explanation import Explanation
from .text import comparison_lines, explanation_lines

_SHOWN = 16  # instructions of a long walk that are listed


@dataclass(frozen=True, kw_only=True)
class Walk:
    """``codes`` of the accumulator after every instruction, by target; ``parting`` is the first at which they
    differ, None where they never do; ``shown`` explains instruction ``at``, ``element`` being its place in D.
    """

    instruction: Instruction
    element: tuple[int, int]
    codes: dict[str, tuple[int, ...]]
    parting: int | None
    at: int
    shown: Explanation | TargetComparison

    @in_default_environment
    def __str__(self) -> str:
        return "\n".join(walk_lines(self))


@in_default_environment
def walk_product(
    instruction: Form,
    row: int,
    column: int,
    A: npt.ArrayLike,
    B: npt.ArrayLike,
    C: npt.ArrayLike | None = None,
    *,
    targets: Sequence[str],
    at: int | None = None,
) -> Walk:
    """How D[row, column] of A ``(m, k)``, B ``(k, n)`` and C comes about, instruction after instruction.

    ``at`` chooses the instruction that is explained. Raises as explain does, and OperandError for an
    element or an instruction that there is not.
    """
    form = resolved(instruction, targets[0])
    steps, c = _tile(form, row, column, np.asarray(A), np.asarray(B), None if C is None else np.asarray(C))
    inner = row % form.shape.m, column % form.shape.n
    walked = {target: _walked(on_target(form, target), steps, c, inner) for target in targets}
    codes = {target: tuple(code for code, _ in one) for target, one in walked.items()}
    together = enumerate(zip(*codes.values(), strict=True))
    parting = next((place for place, each in together if len(set(each)) > 1), None)
    chosen = (len(steps) - 1 if parting is None else parting) if at is None else at
    if chosen not in range(len(steps)):
        raise OperandError(f"instruction {chosen}: there are 0 to {len(steps) - 1} along k")
    before = [one[chosen][1] for one in walked.values()]
    a, b = steps[chosen]
    if len(targets) > 1 and len({int(c[inner]) for c in before}) == 1:
        shown: Any = compare_matrices(form, *inner, targets, a, b, before[0])
    else:
        shown = explain_matrices(form, *inner, a, b, before[0], target=targets[0])
    return Walk(instruction=form, element=(row, column), codes=codes, parting=parting, at=chosen, shown=shown)


def _tile(
    form: Instruction, row: int, column: int, A: Any, B: Any, C: Any
) -> tuple[list[tuple[Codes, Codes]], Codes]:
    """A and B of every instruction for the tile that the element is in, and its C; zeros fill them up."""
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    if A.ndim != 2 or B.ndim != 2 or not (0 <= row < A.shape[0] and 0 <= column < B.shape[1]):
        raise OperandError(f"D has no element [{row}, {column}]: A is {A.shape}, B is {B.shape}")
    top, left = row // m * m, column // n * n
    a = _filled(codes_of(A[top : top + m], form.a, "A"), m, -(-A.shape[1] // k) * k)
    b = _filled(codes_of(B[:, left : left + n], form.b, "B"), a.shape[1], n)
    zero = np.zeros((m, n), form.c.code_dtype)
    c = zero if C is None else _filled(codes_of(C[top : top + m, left : left + n], form.c, "C"), m, n)
    return [(a[:, i : i + k], b[i : i + k]) for i in range(0, a.shape[1], k)], c


def _filled(codes: Codes, rows: int, columns: int) -> Codes:
    return np.pad(codes, [(0, rows - codes.shape[0]), (0, columns - codes.shape[1])])


def _walked(
    form: Instruction, steps: list[tuple[Codes, Codes]], c: Codes, element: tuple[int, int]
) -> list[tuple[int, Codes]]:
    """Of every instruction the code of the element after it, and C before it."""
    from ..execution.pipeline import matmul_matrices

    found = []
    for a, b in steps:
        values = [matrix_of(codes, kind) for codes, kind in ((a, form.a), (b, form.b), (c, form.c))]
        d = codes_of(matmul_matrices(form, *values), form.d, "D")
        found.append((int(d[element]), c))
        c = d
    return found


def walk_lines(walk: Walk) -> list[str]:
    """The accumulator after every instruction, and the one that is explained."""
    row, column = walk.element
    targets = list(walk.codes)
    count = len(next(iter(walk.codes.values())))
    lines = [f"D[{row},{column}] of a product, {count} instructions of {walk.instruction.mnemonic}"]
    lines += [f"  {line}" for line in words(list(_table(walk, count)))]
    if len(targets) > 1:
        where = "never part" if walk.parting is None else f"part at instruction {walk.parting}"
        lines.append(f"  {' and '.join(targets)} {where}")
    inner = (
        comparison_lines(walk.shown)
        if isinstance(walk.shown, TargetComparison)
        else explanation_lines(walk.shown)
    )
    return [*lines, "", f"instruction {walk.at}, k from {walk.at * walk.instruction.shape.k} on:", *inner]


def _table(walk: Walk, count: int) -> Iterator[list[str]]:
    """A heading, and a line for each instruction: all, or those around the one that is explained."""
    element = walk.instruction.d
    yield ["instruction", "k", *(f"{target}, accumulator after it" for target in walk.codes)]
    first = min(max(walk.at - _SHOWN // 2, 0), max(count - _SHOWN, 0))
    for at in range(first, min(first + _SHOWN, count)):
        start = at * walk.instruction.shape.k
        cells = [
            f"{hexadecimal(codes[at], element.bits)} = {code_text(decode(codes[at], element), element)}"
            for codes in walk.codes.values()
        ]
        mark = " *" if at == walk.at else ""
        yield [f"{at}{mark}", f"{start}..{start + walk.instruction.shape.k - 1}", *cells]
    if count > _SHOWN:
        yield [f"of {count}", "", *("" for _ in walk.codes)]
