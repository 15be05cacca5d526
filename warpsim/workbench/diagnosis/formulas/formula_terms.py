"""Array expressions of a kernel's arguments: Python text, and values.

The text is executed on keys later (found_formulas.py); the values are compared now. Knows NumPy; does not
know kernels.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....observe.algebra.builtin_references import causal, gelu, relu, silu, softmax

Array = npt.NDArray[Any]
_TIGHTER = ("*", "@")  # than +


@dataclass(frozen=True, kw_only=True, eq=False)
class Term:
    """An expression: its ``text``, behind assignments in ``lines``, and its ``values``.

    ``kinds`` are the formats that arguments are read as, by their index, "" as their dtype says. ``sign`` is
    the operator of the text, "" for a name or a call.
    """

    text: str
    values: Array
    lines: tuple[str, ...] = ()
    kinds: Mapping[int, str] = field(default_factory=dict)
    sign: str = ""

    def __str__(self) -> str:
        return self.text

    @property
    def inner(self) -> str:
        """The text as an operand."""
        return self.text if not self.sign else f"({self.text})"

    def mapped(self, text: str, function: Callable[[Array], Array]) -> Term:
        """Return a function of the values, with its text."""
        with np.errstate(all="ignore"):
            return replace(self, text=text, values=np.asarray(function(self.values)), sign="")

    def called(self, function: Callable[..., Any], *more: object) -> Term:
        """Return a function of the term."""
        text = f"{function.__name__}({', '.join(map(str, (self, *more)))})"
        return self.mapped(text, lambda x: function(x, *more))

    def bound(self, name: str) -> Term:
        """Return the term with a name of its own, in a line of its own."""
        if self.text.isidentifier():
            return self
        return replace(self, text=name, lines=(*self.lines, f"{name} = {self.text}"), sign="")

    def _joined(self, other: Term, sign: str, function: Callable[[Any, Any], Any]) -> Term:
        with np.errstate(all="ignore"):
            values = function(self.values, other.values)
        left = self.text if sign in ("+", self.sign) else self.inner
        right = other.text if sign == "+" and other.sign in _TIGHTER else other.inner
        return Term(
            text=f"{left} {sign} {right}",
            values=values,
            lines=tuple(dict.fromkeys((*self.lines, *other.lines))),
            kinds={**self.kinds, **other.kinds},
            sign=sign,
        )

    def __matmul__(self, other: Term) -> Term:
        return self._joined(other, "@", operator.matmul)

    def __mul__(self, other: Term) -> Term:
        return self._joined(other, "*", operator.mul)

    def __add__(self, other: Term) -> Term:
        return self._joined(other, "+", operator.add)

    def __sub__(self, other: Term) -> Term:
        return self._joined(other, "-", operator.sub)

    @property
    def transposed(self) -> Term:
        """The term with its last two axes exchanged."""
        if self.values.ndim == 2:
            return self.mapped(f"{self.inner}.T", np.transpose)
        return self.called(transposed)


def number(value: float, text: str = "") -> Term:
    """Return a constant, or an argument that is a number."""
    return Term(text=text or f"{value:.9g}", values=np.asarray(value, np.float64))


NIBBLE = 4  # bits


def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def transposed(x: Any) -> Any:
    """Return an array with its last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def blocks(x: Any, rows: int, columns: int) -> Any:
    """Return a matrix each element of which is repeated along both axes."""
    return np.repeat(np.repeat(x, rows, axis=0), columns, axis=1)


def nibbles(x: Any, count: int, axis: int = -1, signed: bool = False) -> Any:
    """Return the ``count`` numbers of 4 bits of each element along an axis, the lowest bits first."""
    parts = [x >> NIBBLE * part & 15 for part in range(count)]
    if signed:
        parts = [(part ^ 8) - 8 for part in parts]
    shape = [*x.shape]
    shape[axis] *= count
    return np.stack(parts, len(shape) if axis == -1 else axis + 1).reshape(shape)


FUNCTIONS = {
    each.__name__: each for each in (softmax, causal, relu, gelu, silu, sigmoid, transposed, blocks, nibbles)
}
