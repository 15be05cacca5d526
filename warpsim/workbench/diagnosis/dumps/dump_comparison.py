"""Two dumps of registers, or two arrays of numbers, compared element by element, each difference in a class.

A dump is words that hold elements of some format; an array of numbers has the format of its own dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import OperandError
from ....isa.codes import integers, values_of
from ....isa.formats import FORMATS, Format, floats_of
from ....isa.products import Storage
from ....isa.registers import Words, unpacked

Shape = tuple[int, ...]

EQUAL, ZERO_SIGN, NAN_PAYLOAD, ONE_ULP, MORE = range(5)
_INTEGER_BITS = 16  # an integer that is off by so many bits says nothing
CLASSES = ("equal", "sign of zero", "NaN payload", "1 ulp", "more")
_APART = {  # how elements of a class differ; integers have no ulps
    ZERO_SIGN: ("in the sign of zero", ""),
    NAN_PAYLOAD: ("in the payload of a NaN", ""),
    ONE_ULP: ("by 1 ulp", "by 1"),
    MORE: ("by more than 1 ulp", "by more than 1"),
}


@dataclass(frozen=True, kw_only=True)
class DumpComparison:
    """The classes of two dumps: ``elements`` is ``(..., elements of a word)``, each an index of CLASSES.

    ``format`` is that of the elements; ``numbers``: the arrays had it themselves.
    """

    elements: npt.NDArray[np.uint8]
    format: Format
    numbers: bool = False

    @property
    def words(self) -> npt.NDArray[np.uint8]:
        """``(...)``: the worst class of each word."""
        worst: npt.NDArray[np.uint8] = self.elements.max(axis=-1)
        return worst

    @property
    def counts(self) -> dict[str, int]:
        """Elements of each class."""
        counted = np.bincount(self.elements.ravel(), minlength=len(CLASSES))
        return dict(zip(CLASSES, counted.tolist(), strict=True))

    @property
    def equal(self) -> bool:
        """Whether every bit is equal."""
        return not self.elements.any()

    def apart(self, kind: int) -> str:
        """Return how elements of a class other than EQUAL differ, as ``by 1 ulp``."""
        return _APART[kind][not self.format.is_float]

    def __str__(self) -> str:
        counted = list(enumerate(self.counts.values()))
        parts = [(count, self.apart(kind)) for kind, count in counted[EQUAL + 1 :] if count]
        different, total = sum(count for count, _ in parts), self.elements.size
        of = f"{different:,} of {total:,} element{'s'[: total != 1]}"
        hows = [how if count == different else f"{count:,} {how}" for count, how in parts]
        return f"{of} ({', '.join(hows)})" if hows else of


@in_default_environment
def compare(
    dump_a: npt.ArrayLike, dump_b: npt.ArrayLike, format: Format | str | None = None
) -> DumpComparison:
    """Return classes of the elements of two register dumps of one shape, 32- or 64-bit words, or of two
    arrays.

    Elements narrower than a word lie in it lowest first. Arrays of floats or signed integers are elements of
    their own dtype where no ``format`` is given; words are f32 then. Two NaNs with different bits differ in
    payload; a NaN, or an infinity, and a finite number always count as more. Of integers, ``1 ulp`` is a
    difference of 1. Raises OperandError for shapes, dtypes and unknown formats.
    """
    own = own_format(dump_a) if format is None else None
    if own is not None:
        x, y = np.asarray(dump_a), np.asarray(dump_b)
        check_alike((x.dtype, x.shape), (y.dtype, y.shape))
        first, second = (np.ascontiguousarray(each).view(own.code_dtype)[..., None] for each in (x, y))
        return DumpComparison(elements=classes(first, second, own), format=own, numbers=True)
    element = _format("f32" if format is None else format)
    a, b = _words(dump_a, "the first dump"), _words(dump_b, "the second dump")
    check_alike((a.dtype, a.shape), (b.dtype, b.shape))
    bits = 8 * a.dtype.itemsize
    if bits % element.bits:
        raise OperandError(f"{element} elements do not fill words of {bits} bits")
    x, y = (unpacked(w[..., None], Storage(bits=element.bits), bits, element.mask) for w in (a, b))
    return DumpComparison(elements=classes(x, y, element), format=element)


def check_alike(a: tuple[np.dtype[Any], Shape], b: tuple[np.dtype[Any], Shape]) -> None:
    """Raise OperandError unless two arrays have one dtype and shape."""
    if a != b:
        raise OperandError(f"the dumps are {a[1]} {a[0]} and {b[1]} {b[0]}: they must be alike")


def own_format(array: npt.ArrayLike) -> Format | None:
    """Return the format of an array of floats or signed integers, None of words and of what no format has."""
    dtype = np.asarray(array).dtype
    if dtype.kind == "u":
        return None
    return next(
        (element for element in FORMATS.values() if element.dtype == dtype and not element.ignored_bits), None
    )


def _format(given: Format | str) -> Format:
    if isinstance(given, Format):
        return given
    if given not in FORMATS:
        raise OperandError(f"format {given!r}: it is one of {', '.join(FORMATS)}")
    return FORMATS[given]


def _words(dump: npt.ArrayLike, what: str) -> Words:
    array = np.asarray(dump)
    if array.dtype.kind not in "iuf" or array.dtype.itemsize not in (4, 8):
        raise OperandError(f"{what} has dtype {array.dtype}, but register dumps are 32- or 64-bit words")
    words: Words = np.ascontiguousarray(array).view(f"<u{array.dtype.itemsize}")
    return words


def classes(x: npt.NDArray[Any], y: npt.NDArray[Any], element: Format) -> npt.NDArray[np.uint8]:
    """Return the class of each pair of codes; both arrays of one shape."""
    x, y = x.astype(element.code_dtype), y.astype(element.code_dtype)
    near = _distance_is_at_most_one(places_of(x, element), places_of(y, element))
    result = np.where(near, ONE_ULP, MORE)
    if element.is_float:
        result = _float_classes(x, y, element, result)
    return np.where(x == y, EQUAL, result).astype(np.uint8)


def _float_classes(
    x: npt.NDArray[Any], y: npt.NDArray[Any], element: Format, result: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    a, b = values_of(x, element), values_of(y, element)
    result = np.where(np.isfinite(a) & np.isfinite(b), result, MORE)
    result = np.where(np.isnan(a) & np.isnan(b), NAN_PAYLOAD, result)
    zeros = (a == 0) & (b == 0) & (places_of(x, element) == places_of(y, element))
    return np.where(zeros, ZERO_SIGN, result)


def places_of(codes: npt.NDArray[Any], element: Format) -> npt.NDArray[np.int64]:
    """Return integers in the order of the values: neighbours differ by 1; both zeros are 0."""
    wide = codes.astype(np.int64)  # the bits of an f64 are kept
    if not element.signed:
        return wide
    if not element.is_float:
        return wide - ((wide & element.sign_bit) << 1)
    magnitude = wide & np.int64(element.mask >> 1)
    return np.where(wide >> (element.bits - 1) & 1, -magnitude, magnitude)


def _distance_is_at_most_one(x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    near: npt.NDArray[np.bool_] = (x == y) | (x == y + 1) | (x == y - 1)
    return near


def ulps(x: int, y: int, element: Format) -> int | None:
    """Return how many places code y lies above code x in the order of the values; None beside Inf and NaN."""
    codes = np.array([x, y], element.code_dtype)
    if element.is_float and not np.isfinite(values_of(codes, element)).all():
        return None
    first, second = (int(place) for place in places_of(codes, element))
    return second - first


def closeness(x: npt.NDArray[Any], y: npt.NDArray[Any], element: Format) -> npt.NDArray[np.float64]:
    """Return ``(...)``: 1 for equal codes, less with each bit of the distance in ulps, 0 if none is left."""
    apart = np.abs(places_of(x, element).astype(np.float64) - places_of(y, element))
    bits = element.fraction_bits if element.is_float else _INTEGER_BITS
    near: npt.NDArray[np.float64] = np.clip(1 - np.log2(1 + apart) / bits, 0, 1)
    return near


def numbers(codes: npt.NDArray[Any], element: Format) -> npt.NDArray[np.float64]:
    """Return the values of codes as float64, of the same shape; integers of 64 bits do not occur."""
    with np.errstate(all="ignore"):
        return values_of(codes, element) if element.is_float else integers(codes, element).astype(np.float64)


Codes = npt.NDArray[Any]
Numbers = npt.NDArray[np.float64]
TYPES = (*floats_of(8), *reversed(floats_of(16)))  # in which results are stored, the narrowest first
_FEWEST = 16  # elements that are not zero, from which a type is known


class Known(Protocol):
    """How far D is known: by its digits, or by the type in which it was stored.

    ``equality`` says what counts as equal, ``extent`` how far a match goes, ``reach`` how far all of D is
    equal.
    """

    equality: str
    extent: str
    reach: str

    def settled(self, codes: Codes, wanted: Codes, element: Format) -> Codes:
        """Return the codes, each replaced by the wanted code where both are known as the same number."""
        ...

    def spread(self, wanted: Numbers) -> Numbers:
        """Return how far each number may lie from the number that was rounded."""
        ...


@dataclass(frozen=True)
class Stored:
    """D was rounded to ``format`` before it was stored."""

    format: Format
    equality = "what rounds to the same"
    extent = "as it was stored"
    reach = "in the type in which it was stored"

    def __str__(self) -> str:
        return f"{self.format}, in which it was stored"

    @in_default_environment
    def settled(self, codes: Codes, wanted: Codes, element: Format) -> Codes:
        """Return the codes, each replaced by the wanted code where it rounds to that."""
        most = self._most
        with np.errstate(all="ignore"):
            limited = np.clip(values_of(codes, element), -most, most).astype(element.dtype)
        same = (self.rounded(codes, element) == wanted) | (
            self.rounded(limited.view(element.code_dtype), element) == wanted
        )
        settled: Codes = np.where(same, wanted, codes)
        return settled

    @property
    def _most(self) -> float:
        return float(ml_dtypes.finfo(self.format.dtype).max)  # type: ignore[no-untyped-call]

    def rounded(self, codes: Codes, element: Format) -> Codes:
        """Return the codes of the numbers rounded to the stored type, to nearest even."""
        with np.errstate(all="ignore"):
            narrow = values_of(codes, element).astype(element.dtype).astype(self.format.dtype)
            rounded: Codes = narrow.astype(element.dtype).view(element.code_dtype)
        return rounded

    def spread(self, wanted: Numbers) -> Numbers:
        """Return an ulp of each number, and at least the smallest subnormal number."""
        least = float(values_of(np.array([1], self.format.code_dtype), self.format)[0])
        near: Numbers = np.maximum(np.abs(np.nan_to_num(wanted)) * 2.0**-self.format.fraction_bits, least)
        return np.where(np.abs(wanted) >= self._most, np.inf, near)


@in_default_environment
def stored_as(codes: Codes, expected: Codes, element: Format) -> Stored | None:
    """Return the narrower type that holds every number of D, if the expected numbers do not fit it."""
    fitting = list(_fitting(codes, element))
    if np.count_nonzero(values_of(codes, element)) < _FEWEST or not fitting:
        return None
    known = {stored.format.name for stored in _fitting(expected, element)}
    fitting = [stored for stored in fitting if stored.format.name not in known]
    equal = [int((stored.rounded(expected, element) == codes).sum()) for stored in fitting]
    return fitting[int(np.argmax(equal))] if fitting else None


def _fitting(codes: Codes, element: Format) -> Iterator[Stored]:
    for name in TYPES if element.is_float else ():
        stored = Stored(FORMATS[name])
        if stored.format.bits < element.bits and (stored.rounded(codes, element) == codes).all():
            yield stored
