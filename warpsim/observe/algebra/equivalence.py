"""The answer whether a kernel computes a formula: equal, other, or undecided, element by element.

Knows keys of both sides and values; does not know launches or texts of PTX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...base.errors import Location
from ...isa.displayed import Displayed
from .keys.constant_keys import integer_keys
from .keys.finite_fields import Keys, add, equal, is_exponential
from .keys.key_cells import Mask
from .shadow_arrays import Shadow

Answer = Literal["equal", "other", "undecided"]
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Output:
    """One output: where its formulas are ``equal``, ``undecided`` or else other, and where values are far.

    ``turned`` are equal elements in which values of the kernel decide otherwise than those of the reference.
    ``kernel`` and ``reference`` are the keys of both; ``writers`` the statement that stored each element, -1
    for none. ``expected`` are the values of the reference, ``given`` those of the kernel.
    """

    argument: int
    name: str
    kernel: Keys
    reference: Keys
    equal: Mask
    undecided: Mask
    turned: Mask
    writers: npt.NDArray[np.int32]
    expected: Array
    given: Array
    far: Mask
    kind: str
    dtype: np.dtype[Any]

    def values(self) -> Array | None:
        """Return the expected values in the array's type; None where it holds other numbers than its type
        says.
        """
        own = self.dtype.kind in "iu"
        return None if own != (self.kind in ("s", "u")) else self.expected.astype(self.dtype)

    def turning(self, keys: Keys) -> Output:
        """Return the output with further equal elements: those with the reference's keys in a run with its
        values.
        """
        turned = ~self.equal & equal(keys, self.reference)
        same, undecided = self.equal | turned, self.undecided & ~turned
        return replace(self, equal=same, undecided=undecided, turned=turned)

    @property
    def other(self) -> Mask:
        """Elements that are other formulas."""
        found: Mask = ~self.equal & ~self.undecided
        return found

    def first(self, mask: Mask) -> tuple[int, ...]:
        """Return the index of the first element of a mask."""
        return tuple(int(place) for place in np.argwhere(mask)[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Stored:
    """An array as the kernel left it: keys and values of its elements, in a format (key_cells.py).

    ``bare`` are elements that were stored without any key: decisions have made them, bit by bit. ``dtype``
    is that of the array.
    """

    argument: int
    name: str
    kind: str
    keys: Keys
    values: Array
    writers: npt.NDArray[np.int32]
    bare: Mask
    dtype: np.dtype[Any]


def output_of(
    stored: Stored, shadow: Shadow, tolerance: float | None, *, lawless: bool = False, untyped: bool = False
) -> Output:
    """Compare the keys and the values of one output; ``lawless`` says that some opcode had no law, and
    ``untyped`` that the reference got some array as numbers of another type than the kernel reads.
    """
    wrapped = _wrapped(stored, shadow)
    same = equal(stored.keys, shadow.keys) | wrapped
    expected, given, shape = shadow.values, stored.values, stored.keys.shape
    values = given.astype(np.int64 if given.dtype.kind in "iub" else np.float64)
    values = values if values.shape == shape else np.full(shape, np.nan)
    far = ~wrapped & _far(expected, values, tolerance_of(stored.kind) if tolerance is None else tolerance)
    return Output(
        argument=stored.argument, name=stored.name, kind=stored.kind, dtype=stored.dtype,
        kernel=stored.keys, reference=np.broadcast_to(shadow.keys, stored.keys.shape), writers=stored.writers,
        equal=same, undecided=~same & (shadow.doubt | untyped | ((stored.bare | lawless) & ~far)),
        turned=np.zeros_like(same), expected=expected, given=values, far=far,
    )  # fmt: skip


def _wrapped(stored: Stored, shadow: Shadow) -> Mask:
    """Return where integers are those of the reference but for multiples of 2^bits, by which they wrapped."""
    shape = stored.keys.shape
    expected = shadow.values
    if stored.kind not in ("s", "u") or stored.values.shape != shape or (expected != np.rint(expected)).any():
        return np.zeros(shape, np.bool_)
    apart = stored.values.astype(np.int64) - expected.astype(np.int64)
    whole = apart % (1 << min(8 * stored.dtype.itemsize, 62)) == 0
    found: Mask = whole & (apart != 0) & equal(stored.keys, add(shadow.keys, integer_keys(apart)))
    return found


def _far(expected: Array, given: Array, tolerance: float) -> Mask:
    """Return where values are out of tolerance, relative to the larger of the value and the array's scale."""
    wanted, values = expected.astype(np.float64), given.astype(np.float64)
    finite = np.isfinite(wanted) & np.isfinite(values)
    scale = np.sqrt(np.mean(np.square(wanted[finite]))) if finite.any() else 0.0
    with np.errstate(invalid="ignore"):
        near = np.abs(wanted - values) <= tolerance * np.maximum(np.abs(wanted), scale)
    found: Mask = ~near & (wanted != values) & ~(np.isnan(wanted) & np.isnan(values))
    return found


_TOLERANCES = {"f64": 1e-9, "f32": 5e-3, "f16": 2e-2, "bf16": 2e-2, "s": 0.0, "u": 0.0}


def tolerance_of(kind: str) -> float:
    """Return the relative tolerance of values of a format (key_cells.py), where none is given."""
    return _TOLERANCES.get(kind, 0.2)


class Parted(NamedTuple):
    """A statement whose result is out of its type's range: what it is, and what the reference has."""

    location: Location
    mnemonic: str
    what: str

    def __str__(self) -> str:
        return f"{self.mnemonic} makes {self.what}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Equivalence(Displayed):
    """Whether a launch computes a reference.

    ``answer`` is "equal", "other" or "undecided". ``by_value`` are statements that compute a function by
    value,
    ``decisions`` what the data decide, ``uninterpreted`` counts opcodes without a law, ``overflows`` are
    statements whose integers wrapped, ``parted`` those whose results are out of range in elements whose
    decisions turn, ``misread`` formats of floats with those that they were read as,
    ``untyped`` arrays of integers whose type as floats is not known.
    ``findings`` are those of the checks, whatever the formulas are.
    """

    reference: str
    outputs: tuple[Output, ...]
    by_value: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    uninterpreted: Mapping[str, int] = field(default_factory=dict)
    overflows: tuple[str, ...] = ()
    parted: tuple[Parted, ...] = ()
    misread: tuple[tuple[str, str], ...] = ()
    untyped: tuple[str, ...] = ()
    findings: Sequence[Any] = ()
    seeds: int = 1

    @property
    def answer(self) -> Answer:
        """Which of the three answers it is."""
        if any(output.other.any() for output in self.outputs):
            return "other"
        return "undecided" if any(output.undecided.any() for output in self.outputs) else "equal"

    @property
    def needs_another_seed(self) -> bool:
        """Whether equal keys have one half alone, as behind an exponential."""
        keys = [output.kernel for output in self.outputs] + [output.reference for output in self.outputs]
        return self.answer == "equal" and any(is_exponential(each).any() for each in keys)

    @property
    def close(self) -> bool:
        """Whether all values are within tolerance."""
        return not any(output.far.any() for output in self.outputs)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from (self._output_line(output) for output in self.outputs)
        if self.answer == "equal" and (self.by_value or self.decisions):
            decided = [f"{', '.join(self.decisions)} decided by the data"] * bool(self.decisions)
            yield f"  {'; '.join((*self.by_value, *decided))}"
        elif self.answer != "equal":
            yield from self._suspects()
        yield from self._turned()
        for place in self.overflows if not self.parted else ():
            yield f"  integers wrap at {place}: the reference does not wrap"
        yield from self._values()
        errors = [finding for finding in self.findings if getattr(finding, "severity", "error") == "error"]
        if errors:
            plural = "s" if len(errors) != 1 else ""
            yield f"  checks report {len(errors)} error{plural}: formulas are those of this order"

    def _turned(self) -> Iterator[str]:
        """Say where values take other decisions than those of the reference, and why."""
        count = sum(int(output.turned.sum()) for output in self.outputs)
        if count:
            why = "range" if self.parted else "rounding"
            yield (
                f"  the kernel's values decide {count:,} otherwise than the reference's, by {why}: with the "
                "reference's values the formulas are equal"
            )
        yield from (f"  values part at {each.location}: {each}" for each in self.parted)

    def _output_line(self, output: Output) -> str:
        total = output.equal.size
        whose = f"{output.name}: " if len(self.outputs) > 1 else ""
        if output.equal.all():
            return (
                f"{whose}the kernel computes {self.reference} ({total:,} of {total:,} elements): "
                "the formulas are equal, whatever the rounding"
            )
        if output.other.any():
            count, first = int(output.other.sum()), list(output.first(output.other))
            return (
                f"{count:,} of {total:,} elements of {output.name} are other formulas than {self.reference}, "
                f"the first at {first}: {pattern_of(output.other)}"
            )
        count, first = int(output.undecided.sum()), list(output.first(output.undecided))
        cause = "decisions that rounding may turn, or on decisions alone"
        if self.untyped:
            cause = f"floats that are made of the integers of {', '.join(self.untyped)}, of no known type"
        elif self.uninterpreted:
            cause = "opcodes without a law"
        return (
            f"undecided: {count:,} of {total:,} elements of {output.name}, the first at {first}: they depend "
            f"on {cause}"
        )

    def _suspects(self) -> Iterator[str]:
        never = sum(int((output.other & (output.writers < 0)).sum()) for output in self.outputs)
        if never:
            yield f"  {never:,} of them were never stored"
        if self.uninterpreted:
            listed = ", ".join(f"{name} ({count})" for name, count in self.uninterpreted.items())
            yield f"  opcodes without a law, which may be why: {listed}"

    def _values(self) -> Iterator[str]:
        far = sum(int(output.far.sum()) for output in self.outputs)
        if self.answer == "equal" and far:
            worst = max(self.outputs, key=lambda output: int(output.far.sum()))
            first = list(worst.first(worst.far))
            yield (
                f"  {far:,} values are out of tolerance, the first at {first}: rounding, range or an "
                "approximation makes the difference, not a term or an index"
            )
        elif self.answer == "other" and not far:
            yield "  the values are within tolerance: a test with these data does not see it"

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON has it."""
        return {
            "answer": self.answer,
            "reference": self.reference,
            "outputs": [_document(output) for output in self.outputs],
            "by_value": list(self.by_value),
            "decisions": list(self.decisions),
            "uninterpreted": dict(self.uninterpreted),
            "overflows": list(self.overflows),
            "parted": [f"{each.location}: {each}" for each in self.parted],
            "within_tolerance": self.close,
            "seeds": self.seeds,
        }


def _document(output: Output) -> dict[str, Any]:
    counts = {name: int(getattr(output, name).sum()) for name in ("equal", "other", "undecided", "turned")}
    found = {"argument": output.argument, "name": output.name, "elements": int(output.equal.size), **counts}
    return found | {
        "first_other": list(output.first(output.other)) if counts["other"] else None,
        "where": pattern_of(output.other) if counts["other"] else "",
        "out_of_tolerance": int(output.far.sum()),
    }


def pattern_of(mask: Mask) -> str:
    """Return which elements of a mask are set, in words: along each axis, where not all indices have any."""
    if mask.all():
        return "all"
    parts = []
    for axis in range(mask.ndim):
        some = mask.any(axis=tuple(other for other in range(mask.ndim) if other != axis))
        if not some.all():
            name = {0: "columns" if mask.ndim > 1 else "elements", 1: "rows"}.get(mask.ndim - 1 - axis)
            parts.append(f"{name or f'axis {axis}'} {_ranges(np.flatnonzero(some))}")
    return ", ".join(parts) or "scattered over all rows and columns"


_LISTED = 4


def _ranges(places: npt.NDArray[np.intp]) -> str:
    """Return numbers in words: ranges, or every so many."""
    steps = np.unique(np.diff(places))
    if len(places) > 2 and len(steps) == 1 and steps[0] > 1:
        return f"{places[0]} to {places[-1]} in steps of {steps[0]}"
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(places, breaks)]
    words = [str(first) if first == last else f"{first} to {last}" for first, last in runs]
    more = f" and {len(words) - _LISTED} more ranges" if len(words) > _LISTED else ""
    return ", ".join(words[:_LISTED]) + more
