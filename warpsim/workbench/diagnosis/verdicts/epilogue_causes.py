"""What a kernel makes of the product before it stores it: its factor and what it adds, measured and compared.

An output that holds ``gain * D + added`` in place shows both where D is given other values, and where values
below zero are set to zero. What is expected is read off the product as ``gain * D + by * C`` of arguments of
the launch, with or without such a ReLU. A cause is claimed where the first gives every element of the output,
and the second every element that is expected. Knows arguments; does not know operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa.codes import matrix_of
from ....isa.fragments import codes_from
from ....isa.operand_places.placements import Inputs
from ....isa.products import Operands
from ....machine.opcodes.matrix.wmma import product
from ....programs.launch.array_agreement import agree
from ....sums.execution.pipeline import execute_inputs
from .launch_causes import Cause
from .matrix_hooks import MatrixHook, MatrixStep
from .output_errors import OutputError
from .output_relations import relations
from .stored_places import CUTS, Cut, Lines, Measured, Stored, cut_off, store_locations
from .tried_causes import Trial

Array = npt.NDArray[Any]
_NEAR = 2.0**-6  # of a factor, relative: D is measured through f16 and bf16
_ADDRESS = 1 << 31  # integers as large are addresses or sizes, no factors
_EXACT = 2.0**-30
_STEPS = {8: _EXACT, 4: 2.0**-20, 2: 2.0**-8}  # of factors, relative, by the bytes of an element
_WHERE: Mapping[Cut, str] = {
    "nowhere": "nowhere",
    "after": "after the addition",
    "before": "in the product, before the addition",
}
_EVIDENCE = (
    "the kernel was executed with chosen values in place of D, which show factor and addend; they give every "
    "element of the output, and those named here every element that is expected"
)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is expected: ``gain * product + added``, of which ``added`` is ``by`` times argument ``array``.

    ``cut`` says where values below zero are set to zero.
    """

    cut: Cut
    gain: float
    by: float
    array: int | None
    added: Array


class Products(MatrixHook):
    """A launch that notes the last D of each row of A and column of B."""

    def __init__(self, lines: Lines, shape: tuple[int, ...]) -> None:
        super().__init__()
        self._lines = lines
        self.found = np.full(shape, np.nan)

    def of_registers(self, step: MatrixStep, inputs: Inputs) -> Array:
        """Return D of mma and wgmma."""
        words = execute_inputs(step.form, inputs)
        self._note(step, codes_from(words, step.form, "d"))
        return words

    def of_fragments(self, step: MatrixStep, codes: Mapping[str, Array]) -> Array:
        """Return D of wmma."""
        found = product(execute_inputs, step.form, codes["a"], codes["b"], codes["c"])
        self._note(step, found)
        return found

    def of_operands(self, step: MatrixStep, operands: Operands) -> Array:
        """Return D of tcgen05.mma."""
        found = super().of_operands(step, operands)
        self._note(step, found)
        return found

    def _note(self, step: MatrixStep, codes: Array) -> None:
        values = matrix_of(codes, step.form.d).astype(np.float64)
        for number, place in enumerate(map(tuple, step.places.tolist())):
            if (step.pc, place) in self._lines:
                self.found[np.ix_(*self._lines[step.pc, place])] = values[number]


def epilogue_causes(trial: Trial, measured: Measured) -> list[Cause]:
    """Return a factor or an addend that is another than expected, if both explain all of an output."""
    error, found = measured.error, measured.stored
    places = np.indices(error.wrong.shape)
    if found.rows.shape != error.wrong.shape or not np.array_equal(
        np.stack([found.rows, found.columns]), places
    ):
        return []
    hook = Products(measured.lines, error.wrong.shape)
    attempt = trial.launch.attempt(checks="off", observers=(hook,))
    if attempt.error is not None or not np.isfinite(hook.found).all():
        return []
    scalars = _scalars(trial)
    gain = _nearest(_gain(found, hook.found, error), scalars, error)
    made = cut_off(found.cut, gain * hook.found, found.added)
    if not agree(made, error.given, max(error.tolerance, _NEAR)).all():
        return []
    wanted = next(_wanted(trial, hook.found, error, scalars), None)
    return [] if wanted is None else [*_causes(trial, measured, gain, wanted)]


# --- what is expected ----------------------------------------------------------------------------------


def _gain(found: Stored, products: Array, error: OutputError) -> float:
    """Return the factor of the product by all elements that are not cut off: more digits than D was given."""
    scaled = error.given.astype(np.float64) - found.added
    whole = np.isfinite(scaled) & ((scaled > 0) | (found.cut == "nowhere"))
    whole &= (error.given.astype(np.float64) > 0) | (found.cut != "after")
    total = float((products[whole] ** 2).sum())
    return float((products[whole] * scaled[whole]).sum() / total) if total else found.gain


def _wanted(
    trial: Trial, products: Array, error: OutputError, scalars: Mapping[float, str]
) -> Iterator[Wanted]:
    """Yield factor, addend and ReLU that give all that is expected, without an addend and a ReLU first."""
    expected = error.expected.astype(np.float64)
    if not (np.isfinite(products).all() and np.isfinite(expected).all()):
        return
    addends = [(None, np.zeros_like(products)), *_addends(trial, products.shape)]
    for cut in CUTS if (products < 0).any() else CUTS[:1]:
        whole = {"nowhere": np.ones_like(products, np.bool_), "after": expected > 0, "before": products > 0}[
            cut
        ]
        for index, addend in addends:
            terms = [products] if index is None else [products, addend]
            matrix = np.stack([term[whole] for term in terms], axis=1)
            if not np.isfinite(matrix).all():
                continue
            fitted = np.linalg.lstsq(matrix, expected[whole], rcond=None)[0].tolist()
            gain, by = (_nearest(value, scalars, error) for value in (*fitted, 0.0)[:2])
            with np.errstate(over="ignore"):
                values = cut_off(cut, gain * products, by * addend).astype(error.expected.dtype)
            if agree(values, error.expected, error.tolerance).all():
                yield Wanted(cut=cut, gain=gain, by=by, array=index, added=by * addend)


def _addends(trial: Trial, shape: tuple[int, ...]) -> Iterator[tuple[int, Array]]:
    """Yield arrays of the launch as matrices of the output's shape; vectors, which may be longer, for columns
    and for rows.
    """
    for index in trial.launch.arrays:
        array = np.asarray(trial.launch.initial(index))
        held = (array[: shape[1]], array[: shape[0], None]) if array.ndim == 1 else (array,)
        for each in held:
            if each.shape in (shape, shape[1:], (shape[0], 1)):
                yield index, np.broadcast_to(each.astype(np.float64), shape)


def _scalars(trial: Trial) -> dict[float, str]:
    """Return the scalar arguments of the launch that factors may be, by value, with 1 and 0."""
    names: dict[float, list[str]] = {}
    for index, value in enumerate(trial.launch.args):
        if index not in trial.launch.arrays and isinstance(value, (int, float, np.number)):
            number = float(value)
            if np.isfinite(number) and abs(number) < _ADDRESS and number not in (0, 1):
                names.setdefault(number, []).append(trial.launch.name(index))
    return {1.0: "", 0.0: ""} | {number: " or ".join(found) for number, found in names.items()}


def _nearest(value: float, scalars: Mapping[float, str], error: OutputError) -> float:
    """Return the argument, 1 or 0 that a fitted factor is; itself where it is none."""
    near = min(scalars, key=lambda scalar: abs(scalar - value))
    return near if abs(near - value) <= _resolution(error) * max(abs(near), _NEAR) else value


def _resolution(error: OutputError) -> float:
    """Return how far, relative, factors may be apart that are fitted to elements of an output."""
    step = _STEPS.get(error.given.dtype.itemsize, _NEAR) if error.given.dtype.kind in "fV" else _EXACT
    return min(max(step, error.tolerance / 4), _NEAR)


# --- what is said --------------------------------------------------------------------------------------


def _causes(trial: Trial, measured: Measured, gain: float, wanted: Wanted) -> Iterator[Cause]:
    scalars = _scalars(trial)
    if wanted.cut != measured.stored.cut:
        text, fix = _cut_text(measured.stored.cut, wanted.cut)
        yield _cause(trial, "activation", f"{measured.error.name}: {text}", fix)
    if abs(gain - wanted.gain) > _resolution(measured.error) * abs(wanted.gain):
        text, fix = _factor(gain, wanted.gain, scalars)
        yield _cause(trial, "factor", f"{measured.error.name}: {text}", fix)
    addend = _addend_error(measured, wanted)
    if addend is not None:
        text, fix = _addend(trial, addend, wanted, scalars)
        yield _cause(trial, "addend", f"{measured.error.name}: {text}", fix)


def _cut_text(given: Cut, wanted: Cut) -> tuple[str, str]:
    """Return where values below zero are set to zero (ReLU), where they should be, and what to do."""
    if wanted == "nowhere":
        return (
            f"values below zero are set to zero (ReLU) {_WHERE[given]}, and should stay",
            "leave out the ReLU",
        )
    fix = f"set values below zero to zero {_WHERE[wanted]}"
    if given == "nowhere":
        return f"values below zero stay, and should be set to zero (ReLU) {_WHERE[wanted]}", fix
    return f"values below zero are set to zero (ReLU) {_WHERE[given]}, not {_WHERE[wanted]}", fix


def _factor(gain: float, wanted: float, scalars: Mapping[float, str]) -> tuple[str, str]:
    what = f"the product is multiplied with {_named(gain, scalars)}, not with {_named(wanted, scalars)}"
    name = scalars.get(wanted, "")
    if name and gain == 1:
        return (
            f"{what}: the factor {name} is left out",
            f"multiply the product with {name} before it is stored",
        )
    if name and abs(gain - wanted * wanted) <= _NEAR * wanted * wanted:
        return f"{what}: the factor {name} is applied twice", f"multiply the product with {name} once"
    return what, f"multiply the product with {_named(wanted, scalars)}"


def _named(value: float, scalars: Mapping[float, str]) -> str:
    name = scalars.get(value, "")
    return f"{value:.6g}" + (f" ({name})" if name else "")


def _addend_error(measured: Measured, wanted: Wanted) -> OutputError | None:
    """Return where what is added is another than expected."""
    error, added = measured.error, measured.stored.added
    wrong = ~agree(added, wanted.added, max(error.tolerance, _NEAR / 4))
    if not wrong.any():
        return None
    given, expected = (values.astype(error.given.dtype) for values in (added, wanted.added))
    return OutputError(
        argument=error.argument, name="the addend", given=given, expected=expected, wrong=wrong, tolerance=0.0
    )


def _addend(
    trial: Trial, addend: OutputError, wanted: Wanted, scalars: Mapping[float, str]
) -> tuple[str, str]:
    if wanted.array is None:
        what = f"something is added to the product, as {addend.given[addend.first]} at {[*addend.first]}"
        return f"{what}; what is expected is the product alone", "add nothing to the product"
    name = trial.launch.name(wanted.array)
    times = "" if wanted.by == 1 else f"{_named(wanted.by, scalars)} times "
    where = f" ({addend.pattern})" if addend.pattern and not addend.wrong.all() else ""
    fix = f"add {times}{name} to the product, each element of its own row and column"
    if not addend.given[addend.wrong].any():
        return f"{times}{name} is not added to the product{where}", fix
    said = _other_place(trial, addend, wanted.by) or next(
        relations(addend, np.full_like(addend.given, 0)), ""
    )
    said = said or f"at {[*addend.first]} {addend.given[addend.first]}, not {addend.expected[addend.first]}"
    return f"what is added to the product is not {times}{name}{where}: {said}", fix


def _other_place(trial: Trial, addend: OutputError, by: float) -> str:
    """Return which elements of an argument are added, where it is a vector along rows or columns."""
    near = max(addend.tolerance, _NEAR / 4)
    for index, values in _addends(trial, addend.given.shape):
        array = np.asarray(trial.launch.initial(index))
        if array.ndim == 1 and agree(addend.given, by * values, near).all():
            along = "r" if (values == values[:, :1]).all() else "c"
            return f"at [r, c] it is {trial.launch.name(index)}[{along}]"
    return ""


def _cause(trial: Trial, kind: str, message: str, fix: str) -> Cause:
    stores = store_locations(trial)
    return Cause(
        kind=kind,
        message=message,
        location=stores[0] if stores else None,
        evidence=_EVIDENCE,
        fix=fix,
        also=tuple(("another store", place) for place in stores[1:]),
    )
