"""What D of one instruction tells by itself, and the places behind its wrong rows and columns.

Makes matrices of values of a case; what is said of them is in remarks and in_common.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...isa.fragments import codes_from
from ...isa.registers import Words
from ..dumps.closeness import numbers
from ..dumps.shared_causes import in_common
from .mistake_search import Case
from .remarks import Seen, is_certain, remarks


def is_of_values(remark: str) -> bool:
    """Whether D itself tells how its values came about, so that two mistakes at once need not be tried."""
    others = "permuted", "behind", "roundings"
    return is_certain(remark) and not any(word in remark for word in others)


def remarks_of(case: Case, expected: Words) -> tuple[str, ...]:
    """What D of the first tile that differs tells by itself, and what its wrong rows and columns share."""
    form = case.setting.instruction
    different = np.flatnonzero((expected != case.actual).any(axis=(1, 2)))
    if not len(different):
        return ()
    at = int(different[0])

    def values(operand: str, words: Words) -> npt.NDArray[np.float64]:
        return numbers(codes_from(words[at], form, operand), form.format(operand))

    actual = case.settled(codes_from(expected[at], form, "d"), codes_from(case.actual[at], form, "d"))
    same = actual == codes_from(case.actual[at], form, "d")
    wanted, got, c = values("d", expected), values("d", case.actual), values("c", case.registers["c"])
    shape = -1, got.shape[-1]
    seen = Seen(
        expected=np.where(same, got, wanted).reshape(shape),
        actual=got.reshape(shape),
        c=c.reshape(shape),
        exact=not form.d.is_float,
        k=form.shape.k,
        **_sums(case, at),
    )
    return (*remarks(seen), *in_common(case.setting, ~same.reshape(shape)))


def _sums(case: Case, at: int) -> dict[str, npt.NDArray[np.float64]]:
    """Sums of B's columns and A's rows, where D is nothing else than A·B + C."""
    setting, form = case.setting, case.setting.instruction
    if form.products > 1 or form.scale or setting.tiles is not None:
        return {}
    a, b = (codes_from(case.registers[name][at], form, name) for name in "ab")
    return {"column_sums": numbers(b, form.b).sum(axis=0), "row_sums": numbers(a, form.a).sum(axis=1)}
