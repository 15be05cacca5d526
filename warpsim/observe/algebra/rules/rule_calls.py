"""One execution of a scalar statement, as its rule sees it: keys, values and cells of operands, results.

A rule takes a Call and returns an Outcome: the keys of the result, or cells that moved; None where it has no
law for these operands, so that the result is an uninterpreted function of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..keys.constant_keys import integer_keys
from ..keys.finite_fields import ONE, ZERO, Keys, hashed, key_of, mul, neg, sub
from ..keys.key_cells import Cells, Mask
from ..keys.key_reading import KeyReader, numbers
from .keyed_statements import Element, Statement, element_of

Values = npt.NDArray[Any]
_U = np.uint64


class Outcome(NamedTuple):
    """Keys ``(count, lanes)`` of the numbers of a result, or cells; ``name`` and ``operands`` say how it was
    made, "" where bytes have only moved. ``element`` is of the result where the type does not say it."""

    keys: Keys | None = None
    cells: Cells | None = None
    name: str = ""
    operands: tuple[Keys, ...] = ()
    element: Element | None = None


class Call:
    """Operands and result of a statement in ``lanes`` that execute it.

    ``cells`` and ``bits (lanes,)`` are of each source, in the types of ``types``; ``after`` of the result.
    ``unbounded`` lets results that saturate or wrap keep their formula; ``parted`` is what saturates, then.
    """

    def __init__(
        self,
        reader: KeyReader,
        statement: Statement,
        cells: list[Cells | None],
        bits: list[Values],
        after: Values,
        *,
        unbounded: bool = False,
    ) -> None:
        self.reader, self.statement, self.cells, self.bits, self.after = reader, statement, cells, bits, after
        self.unbounded, self.parted = unbounded, ""
        operation = statement.operation
        assert operation is not None
        self.types, self.result_type = operation.sources, operation.results[0]
        self.modifiers = statement.modifiers
        self.overflowed = False

    def has(self, word: str) -> bool:
        """Return whether the statement has a modifier."""
        return word in self.modifiers

    @property
    def lanes(self) -> int:
        """Lanes that execute."""
        return len(self.after)

    @cached_property
    def element(self) -> Element:
        """What the result holds."""
        return element_of(self.result_type)

    def keys(self, index: int, element: Element | None = None) -> Keys:
        """Return ``(count, lanes)``: the keys of a source."""
        kind, size, count = element or element_of(self.types[index])
        cells, bits = self.cells[index], self.bits[index]
        if count == 1:
            return self.reader.read(cells, bits, kind, size)[None]
        return np.stack([self.reader.read(cells, bits, kind, size, place * size) for place in range(count)])

    def values(self, index: int, element: Element | None = None) -> Values:
        """Return ``(count, lanes)``: the numbers of a source."""
        return split(self.bits[index], element or element_of(self.types[index]))

    def results(self, element: Element | None = None) -> Values:
        """Return ``(count, lanes)``: the numbers of the result."""
        return split(self.after, element or self.element)

    @cached_property
    def live(self) -> Mask:
        """In which lanes any source has keys."""
        found = np.zeros(self.lanes, np.bool_)
        for cells in self.cells:
            if cells is not None:
                if cells.kind and cells.there is None:
                    return np.ones(self.lanes, np.bool_)
                found |= cells.tags.any(0) if cells.there is None else cells.there
        return found

    def in_range(self, exact: Values, held: Values, keys: Keys, bounds: Keys) -> Keys:
        """Return the keys of a conversion of exact values: those of bounds where its type holds others."""
        out = exact != held
        if not self.unbounded:
            return np.where(out, bounds, keys)
        for part, lane in np.argwhere(np.atleast_2d(out) & self.live)[:1].tolist():
            pair = np.atleast_2d(held)[part, lane], np.atleast_2d(exact)[part, lane]
            self.parted = "{:.9g} where the formula has {:.9g}".format(*map(float, pair))
        return keys

    def hashed(self) -> Outcome:
        """Return the result as an uninterpreted function of the operands."""
        operands = []
        for cells, bits in zip(self.cells, self.bits, strict=True):
            if cells is None:
                operands.append(integer_keys(bits.astype(_U)))
            elif cells.number is not None:
                operands.append(cells.number)
            else:
                operands.append(hashed("cells", *cells.keys, *cells.tags.astype(_U)))
        name = ".".join((self.statement.opcode, *self.modifiers))
        size = self.after.dtype.itemsize
        element = (
            self.element if self.element.parts == 1 and self.element.size == size else Element("u", size, 1)
        )
        return Outcome(hashed(name, *operands)[None], None, self.statement.opcode, tuple(operands), element)


def split(bits: Values, element: Element) -> Values:
    """Return ``(count, lanes)``: the numbers in bits of registers."""
    kind, size, count = element
    if count == 1:
        return numbers(bits, kind, size)[None]
    dtype = bits.dtype.type
    return np.stack([numbers(bits >> dtype(8 * size * place), kind, size) for place in range(count)])


Rule = Callable[[Call], "Outcome | None"]

# --- what several rules need -------------------------------------------------------------------------

_AT_ZERO = {
    **dict.fromkeys(("rint", "trunc", "floor", "ceil", "sqrt", "tanh", "sin", "erf"), ZERO),
    "cos": ONE,
}
FAR = -150.0  # an exponent of 2 below which an exponential is 0, on both sides


def function_keys(name: str, keys: Keys) -> Keys:
    """Return the keys of a function without laws: a hash, but for its value at 0."""
    found = hashed(name, keys)
    at_zero = _AT_ZERO.get(name)
    return found if at_zero is None else np.where(keys == ZERO, _U(at_zero), found)


def clamped(keys: Keys, values: Values, low: float, high: float) -> Keys:
    """Return keys where values lie between bounds, else those of the bounds, which are 0 or 1 or integers."""
    bounds = [integer_keys(np.asarray(int(bound), np.int64)) for bound in (low, high) if np.isfinite(bound)]
    if np.isfinite(low):
        keys = np.where(values < low, bounds[0], keys)
    return np.where(values > high, bounds[-1], keys) if np.isfinite(high) else keys


def bounded(call: Call, keys: Keys, values: Values) -> Keys:
    """Return keys of floats where sat and relu leave them."""
    keys = clamped(keys, values, 0, 1) if call.has("sat") else keys
    return clamped(keys, values, 0, np.inf) if call.has("relu") else keys


def magnitude(keys: Keys, values: Values) -> Keys:
    """Return the keys of absolute values."""
    return np.where(np.signbit(values.astype(np.float64)), neg(keys), keys)


def chosen(candidates: list[tuple[Keys, Values]], *, greatest: bool) -> Keys:
    """Return the key of the least or greatest value; of equal values the lower key, whichever comes first."""
    keys, values = candidates[0]
    for other, theirs in candidates[1:]:
        nan = np.isnan(values.astype(np.float64))
        better = (theirs > values if greatest else theirs < values) | nan
        tie = theirs == values
        keys = np.where(better, other, np.where(tie, np.minimum(keys, other), keys))
        values = np.where(better, theirs, values)
    return keys


def wrapped(call: Call, keys: Keys, exact: Values) -> Keys | None:
    """Return the keys of integers of the result's type: those of the field, less the multiples of 2^bits by
    which it wrapped; None where these are not known. ``exact`` is the sum or product, float64.
    """
    kind, size, _ = call.element
    if np.abs(exact).max(initial=0) > 2.0**100:
        return None
    results = call.results()
    if kind == "s" and (results.astype(np.float64) != exact).any():
        call.overflowed = True
        if call.unbounded:
            return keys
    return unwrapped(keys, exact, results, size)


def unwrapped(keys: Keys, exact: Values, results: Values, size: int) -> Keys:
    """Return the keys of integers of ``size`` bytes, less the multiples of 2^bits between exact values and
    results."""
    times = np.rint((exact - results.astype(np.float64)) / 2.0 ** (8 * size)).astype(np.int64)
    if not times.any():
        return keys
    return sub(keys, mul(integer_keys(times), key_of(1 << 8 * size)))
