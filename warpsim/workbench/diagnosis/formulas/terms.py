"""Array expressions of a kernel's arguments: Python text, and values.

The text is executed on keys later (found_formulas.py); the values are compared now. Knows NumPy; does not know
kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .functions import transposed

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Term:
    """An expression: its ``text``, behind assignments in ``lines``, and its ``values``.

    ``kinds`` are the formats that arguments are read as, by their index, "" as their dtype says. ``atom``
    says that the text needs no parentheses.
    """

    text: str
    values: Array
    lines: tuple[str, ...] = ()
    kinds: Mapping[int, str] = field(default_factory=dict)
    atom: bool = True

    def __str__(self) -> str:
        return self.text

    @property
    def inner(self) -> str:
        """The text as an operand."""
        return self.text if self.atom else f"({self.text})"

    def mapped(self, text: str, function: Callable[[Array], Array]) -> Term:
        """Return a function of the values, with its text."""
        with np.errstate(all="ignore"):
            return replace(self, text=text, values=np.asarray(function(self.values)), atom=True)

    def called(self, function: Callable[..., Any], *more: object) -> Term:
        """Return a function (functions.py) of the term."""
        text = f"{function.__name__}({', '.join(map(str, (self, *more)))})"
        return self.mapped(text, lambda x: function(x, *more))

    def bound(self, name: str) -> Term:
        """Return the term with a name of its own, in a line of its own."""
        if self.text.isidentifier():
            return self
        return replace(self, text=name, lines=(*self.lines, f"{name} = {self.text}"), atom=True)

    def _joined(self, other: Term, sign: str, values: Array, *, loose: bool = False) -> Term:
        left = self.text if loose else self.inner
        lines = dict.fromkeys((*self.lines, *other.lines))
        return Term(
            text=f"{left} {sign} {other.inner}",
            values=values,
            lines=tuple(lines),
            kinds={**self.kinds, **other.kinds},
            atom=False,
        )

    def __matmul__(self, other: Term) -> Term:
        with np.errstate(all="ignore"):
            return self._joined(other, "@", self.values @ other.values)

    def __mul__(self, other: Term) -> Term:
        return self._joined(other, "*", self.values * other.values)

    def __add__(self, other: Term) -> Term:
        return self._joined(other, "+", self.values + other.values, loose=True)

    def __sub__(self, other: Term) -> Term:
        return self._joined(other, "-", self.values - other.values)

    @property
    def transposed(self) -> Term:
        """The term with its last two axes exchanged."""
        if self.values.ndim == 2:
            return self.mapped(f"{self.inner}.T", np.transpose)
        return self.called(transposed)


def number(value: float, text: str = "") -> Term:
    """Return a constant, or an argument that is a number."""
    return Term(text=text or f"{value:.9g}", values=np.asarray(value, np.float64))
