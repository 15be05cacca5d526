"""Which elements of an output are wrong: by bits, in ulps or beyond a tolerance; and where they lie.

Knows arrays of NumPy, of ml_dtypes and PyTorch's tensors; does not know launches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.arrays import as_array
from ...isa.formats import FORMATS
from ...programs.launch.array_agreement import Array, Mask, agree
from ...workbench.diagnosis.dumps.dump_comparison import places_of
from ...workbench.diagnosis.verdicts.output_errors import OutputError

_LISTED = 4  # wrong elements that are listed
_MAP = (8, 32)  # rows and columns of the map of a matrix, at most
_MANY = 0.75  # of the elements: a map of more shows nothing
_NEAR = 1 << 12  # ulps that say something
_FORMATS = {  # dtype -> its format; of formats that share a dtype, what takes all of its bits
    element.dtype: element
    for element in sorted(FORMATS.values(), key=lambda element: (element.bits, -element.ignored_bits))
    if element.is_float
}


def wrong_bits(given: Array, expected: Array) -> Mask:
    """Return a mask of the elements whose bits differ. Raises OperandError for other shapes and dtypes."""
    _same_shape(given, expected)
    _same_dtype(given, expected, "bits")
    return ~agree(given, expected, 0.0)


def wrong_ulps(given: Array, expected: Array, most: int) -> Mask:
    """Return a mask of the elements that lie more than ``most`` values of their dtype apart.

    Both zeros are one value; an infinity and a NaN are near nothing but themselves. Raises OperandError.
    """
    _same_shape(given, expected)
    _same_dtype(given, expected, "ulps")
    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
        raise OperandError(f"most={most!r}: it is the number of ulps that are allowed, 0 or more")
    _float_dtype(given.dtype)
    finite = _finite(given) & _finite(expected)
    same = (_float(given) == _float(expected)) | (np.isnan(_float(given)) & np.isnan(_float(expected)))
    return ~np.where(finite, distances(given, expected) <= most, same)


def distances(given: Array, expected: Array) -> npt.NDArray[np.uint64]:
    """Return how many values of their dtype lie between elements, plus one; of finite elements of floats."""
    first, second = _places(given), _places(expected)
    low, high = np.minimum(first, second), np.maximum(first, second)
    return high.astype(np.uint64) - low.astype(np.uint64)  # modulo 2^64: right for every pair


def wrong_values(given: Array, expected: Array, rtol: float, atol: float) -> Mask:
    """Return a mask of the elements that are farther apart than ``atol + rtol * abs(expected)``.

    A NaN is near a NaN, an infinity near itself. Raises OperandError for other shapes, negative tolerances.
    """
    _same_shape(given, expected)
    if not (rtol >= 0 and atol >= 0):
        raise OperandError(f"rtol={rtol}, atol={atol}: expected numbers of 0 or more")
    x, y = (_float(part) for part in (given, expected))
    with np.errstate(invalid="ignore", over="ignore"):
        near: Mask = np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
    return ~near


def lines_of(name: str, given: Array, expected: Array, wrong: Mask, how: str) -> Iterator[str]:
    """Yield how many elements are wrong and where, a map of a matrix, and the first elements with bits."""
    if given.ndim == 0:
        given, expected, wrong = given.reshape(1), expected.reshape(1), wrong.reshape(1)
    error = OutputError(argument=0, name=name, given=given, expected=expected, wrong=wrong, tolerance=0.0)
    where = f"; {error.pattern}" if error.pattern else ""
    yield f"{name}: {error.count:,} of {wrong.size:,} elements differ{how}{where}"
    if wrong.ndim == 2 and wrong.mean() < _MANY and not _is_product(wrong):
        yield from _map(wrong)
    for place in np.argwhere(wrong)[:_LISTED]:
        at = tuple(int(index) for index in place)
        pair = f"{_element_text(given[at])}, expected {_element_text(expected[at])}"
        yield f"  {list(at)}: {pair}{_ulps_text(given, expected, at)}"
    if error.count > _LISTED:
        yield f"  and {error.count - _LISTED:,} more"


def _same_shape(given: Array, expected: Array) -> None:
    if given.shape != expected.shape:
        raise OperandError(f"given has shape {given.shape}, but expected has {expected.shape}")


def _same_dtype(given: Array, expected: Array, what: str) -> None:
    if given.dtype != expected.dtype:
        raise OperandError(
            f"given is {given.dtype}, but expected is {expected.dtype}: {what} are compared in one dtype; "
            "convert one of them, or compare values with assert_close"
        )


def _float_dtype(dtype: np.dtype[Any]) -> None:
    if not _is_float(dtype):
        raise OperandError(f"{dtype} has no ulps: compare bits with assert_equal")


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in _FORMATS


def _float(array: Array) -> Array:
    """Return values that NumPy's own functions take; f64 holds those of every other dtype."""
    return array if array.dtype.kind in "fiub" else array.astype(np.float64)


def _finite(array: Array) -> Mask:
    finite: Mask = np.isfinite(_float(array))
    return finite


def _places(array: Array) -> npt.NDArray[np.int64]:
    """Return integers in the order of the values; both zeros are 0."""
    element = _FORMATS[array.dtype]
    codes = np.ascontiguousarray(array).view(element.code_dtype) & element.code_dtype.type(element.mask)
    return places_of(codes, element)


def _is_product(wrong: Mask) -> bool:
    """Return whether a mask is all combinations of some rows and some columns, which words describe."""
    return bool((np.outer(wrong.any(axis=1), wrong.any(axis=0)) == wrong).all())


def _map(wrong: Mask) -> Iterator[str]:
    """Yield a small picture of a matrix: a cell is all right, partly wrong or all wrong."""
    rows, columns = (-(-size // most) for size, most in zip(wrong.shape, _MAP, strict=True))
    yield f"  each sign is {rows} x {columns} elements: . right, + some wrong, # all wrong"
    for top in range(0, wrong.shape[0], rows):
        band = wrong[top : top + rows]
        cells = [band[:, left : left + columns] for left in range(0, wrong.shape[1], columns)]
        yield "  " + "".join("#" if cell.all() else "+" if cell.any() else "." for cell in cells)


def _element_text(value: Any) -> str:
    """Return an element as a number and, of a float, its bits."""
    array = np.asarray(value)
    if not _is_float(array.dtype):
        return str(value)
    bits = array.reshape(1).view(f"u{array.dtype.itemsize}")[0]
    return f"{value} (0x{bits:0{2 * array.dtype.itemsize}x})"


def _ulps_text(given: Array, expected: Array, at: tuple[int, ...]) -> str:
    """Return the distance of two elements that are near each other, in ulps; empty for others."""
    if given.dtype != expected.dtype or not _is_float(given.dtype):
        return ""
    pair = np.asarray(given[at]).reshape(1), np.asarray(expected[at]).reshape(1)
    if not all(_finite(part).all() for part in pair):
        return ""
    apart = int(distances(*pair)[0])
    return f", {apart:,} ulp" if apart <= _NEAR else ""


def array_of(value: Any) -> Array:
    """Return the elements of an array, a tensor or a device buffer. Raises OperandError."""
    held = value.get() if hasattr(value, "get") and hasattr(value, "allocation") else value
    return as_array(held)
