"""Arrays on which a NumPy function is executed: keys beside float64 or integer values, each operation
recorded.

A reference that a user writes is called with these in place of arrays. NumPy asks them what its functions do
(``__array_ufunc__``, ``__array_function__``); numpy_functions.py answers. A function without an answer is an
error that points at the user's line.
"""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...base.errors import OperandError
from .keys.constant_keys import integer_keys
from .keys.finite_fields import Keys
from .keys.key_cells import Mask
from .keys.key_reading import KeyReader

Array = npt.NDArray[Any]
_HERE = os.path.dirname(os.path.abspath(__file__))
_REFERENCES = os.path.join("algebra", "builtin_references.py")
_NUMPY = os.path.dirname(os.path.abspath(np.__file__))


class ReferenceError(OperandError):
    """What a reference does that it may not, or an error that it raised, with the user's file and line."""


class Line(NamedTuple):
    """A line of the user's source."""

    file: str
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text}"


class Operation(NamedTuple):
    """One operation of the reference: ``name`` as in provenance.Step, with its result and operands; what is
    reduced along axes has these as its last axis.
    """

    name: str
    result: Shadow
    operands: tuple[Shadow, ...]
    line: Line


class Answers(NamedTuple):
    """What NumPy's functions do with shadows (numpy_functions.py)."""

    ufunc: Callable[..., Any]
    functions: Mapping[Any, Callable[..., Any]]
    methods: Mapping[str, Callable[..., Any]]
    listed: Callable[[], str]


@dataclass
class Trace:
    """The operations of a reference, in their order, and the names of the functions that it applies.

    ``gauge`` sets the key of each maximum along an axis to 0, as Algebra's ``at_zero`` does. Numbers that are
    nearer than ``close``, of what is compared, may be in another order after rounding.
    """

    reader: KeyReader
    answers: Answers
    operations: list[Operation] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    gauge: bool = False
    scouting: bool = False  # functions alone are asked for: products have no keys
    close: float = 2.0**-9

    def note(self, name: str, result: Shadow, *operands: Shadow) -> Shadow:
        """Record an operation; return its result."""
        self.operations.append(Operation(name, result, operands, user_line()))
        return result

    def arrays(self) -> list[Shadow]:
        """Return the results and the operands of all operations, each once."""
        return list({id(x): x for each in self.operations for x in (each.result, *each.operands)}.values())

    def lift(self, given: Any) -> Shadow:
        """Return a number or an array as a shadow: its keys are those of constants."""
        if isinstance(given, Shadow):
            return given
        values = _values(np.asarray(given))
        if (values.dtype.kind == "f" or not values.ndim) and values.size <= _FEW:
            for value in set(values.reshape(-1).tolist()):
                self.reader.constants.note(value)
        return Shadow(self, self.constants(values), values)

    def constants(self, values: Array) -> Keys:
        """Return the keys of numbers."""
        if values.dtype.kind in "iub":
            return integer_keys(values.astype(np.int64) if values.dtype == np.bool_ else values)
        return self.reader.constants.keys(values, "f64")


_FEW = 256  # elements of an array whose numbers are constants of the formula


def _values(array: Array) -> Array:
    """Return values as float64, as integers of 64 bits or as truth values."""
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise refused(f"an array of {array.dtype} is not an array of numbers") from None


class Shadow(NDArrayOperatorsMixin):
    """An array of keys and of values. ``doubt`` marks elements whose formula hangs on a decision that
    rounding may turn. ``name`` is that of an argument, of which no element may be changed.
    """

    __array_priority__ = 1000

    def __init__(self, trace: Trace, keys: Any, values: Any, doubt: Any = False, name: str = "") -> None:
        self.trace, self.keys, self.values = trace, np.asarray(keys, np.uint64), np.asarray(values)
        if self.keys.shape != self.values.shape:
            self.keys = np.broadcast_to(self.keys, self.values.shape)
        self.doubt: Mask = np.broadcast_to(np.asarray(doubt, np.bool_), self.values.shape)
        self.name = name

    # --- what arrays have ---

    @property
    def T(self) -> Shadow:
        """The transposed array."""
        return self.moved(np.transpose)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Shadow]:
        return (self[place] for place in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __int__(self) -> int:
        return int(self.values)

    def __float__(self) -> float:
        return float(self.values)

    def __index__(self) -> int:
        return int(self.values.item()) if self.values.dtype.kind in "iu" else self.values.__index__()

    def __array__(self, *args: Any, **more: Any) -> Array:
        raise refused(
            "an array of the reference becomes a plain one here, which loses its formula: use NumPy's "
            "functions on it, as np.zeros_like(a) in place of np.zeros"
        )

    def moved(self, function: Callable[..., Array], *args: Any, **more: Any) -> Shadow:
        """Return the array with its elements in another order."""
        keys, values, doubt = (function(each, *args, **more) for each in (self.keys, self.values, self.doubt))
        return Shadow(self.trace, keys, values, doubt, self.name)

    def __getitem__(self, index: Any) -> Shadow:
        place = plain_index(index)
        found = self.moved(lambda array: array[place])
        indices = index if isinstance(index, tuple) else (index,)
        found.doubt = found.doubt | doubt_of_index(indices, found.shape)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.name:
            raise refused(f"the reference changes its argument {self.name}: copy it first")
        place, given = plain_index(index), self.trace.lift(value)
        if not (self.keys.flags.writeable and self.keys.flags.owndata):
            self.keys = self.keys.copy()
        if given.values.dtype.kind == "f" and self.values.dtype.kind != "f":
            self.values = self.values.astype(np.float64)
        self.keys[place], self.values[place] = given.keys, given.values
        self.doubt = self.doubt.copy()
        self.doubt[place] = given.doubt

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the values, or a method as the function of NumPy of the same name."""
        if name in ("shape", "ndim", "size", "dtype"):
            return getattr(self.values, name)
        function = self.trace.answers.methods.get(name)
        if function is None or name.startswith("__"):
            if name.startswith("_"):
                raise AttributeError(name)
            raise refused(f"the reference uses .{name} of an array, which has no formula")
        return lambda *args, **more: function(self.trace, self, *args, **more)

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **more: Any) -> Any:
        return self.trace.answers.ufunc(self.trace, function, method, args, more)

    def __array_function__(self, function: Any, types: Any, args: Any, more: Any) -> Any:
        known = self.trace.answers.functions.get(function)
        if known is None:
            name = getattr(function, "__name__", str(function))
            listed = self.trace.answers.listed()
            raise refused(f"the reference uses np.{name}, which has no formula; it may use {listed}")
        return known(self.trace, *args, **more)


def plain_index(index: Any) -> Any:
    """Return an index whose parts are plain arrays: what chooses elements is not a formula."""
    if isinstance(index, tuple):
        return tuple(map(plain_index, index))
    return index.values if isinstance(index, Shadow) else index


def doubt_of_index(index: tuple[Any, ...], shape: tuple[int, ...]) -> Mask:
    """Return which elements of a shape were chosen by indices in doubt: all, where these are not its first
    axes.
    """
    doubt: Mask = reduce(np.logical_or, [x.doubt for x in index if isinstance(x, Shadow)], np.zeros((), bool))
    if not doubt.any() or shape[: doubt.ndim] != doubt.shape:
        return np.full(shape, doubt.any())
    return np.broadcast_to(doubt.reshape(*doubt.shape, *(1,) * (len(shape) - doubt.ndim)), shape)


def user_frame() -> FrameType | None:
    """Return the innermost frame of a reference: not of NumPy or of what answers for it here."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.endswith(_REFERENCES) or not file.startswith((_HERE, _NUMPY, "<__array_function__")):
            break
        frame = frame.f_back
    return frame


def user_line() -> Line:
    """Return the line of the user's source that is being executed."""
    frame = user_frame()
    if frame is None:
        return Line("", 0, "")
    file, number = frame.f_code.co_filename, frame.f_lineno
    return Line(file, number, linecache.getline(file, number).strip())


def refused(message: str) -> ReferenceError:
    """Return the error of what a reference may not do, at the user's line."""
    line = user_line()
    return ReferenceError(f"{line.file}:{line.number}: {message}\n  {line.text}")


# --- arrays that a reference creates ---------------------------------------------------------------------

_CREATING = (np.zeros, np.ones, np.empty, np.full)


class _NumPy:
    """NumPy, where arrays of numbers are created as shadows; those of truth values are plain."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if not any(found is each for each in _CREATING):
            return found

        def create(*args: Any, **more: Any) -> Any:
            made = np.zeros(*args, **more) if name == "empty" else found(*args, **more)
            return self._trace.lift(made) if made.dtype.kind in "iuf" else made

        return create


@contextmanager
def created_in(reference: Callable[..., Any], trace: Trace) -> Iterator[None]:
    """Let what the module of a reference creates, as by np.zeros, be shadows: no argument asks NumPy then, so
    the names by which the module knows NumPy lead to a stand-in.
    """
    names: dict[str, Any] = getattr(inspect.unwrap(reference), "__globals__", {})
    own = [name for name, value in names.items() if value is np]
    names.update(dict.fromkeys(own, _NumPy(trace)))
    try:
        yield
    finally:
        names.update(dict.fromkeys(own, np))
