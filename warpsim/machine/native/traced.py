"""What the function of a row computes, as operations on one lane: it is called with values that record them.

A row's function takes arrays and is made of NumPy's operations on elements. Called with a ``Traced`` in place
of each array it gives the operations themselves, with the types that NumPy gives them. What depends on the
lanes together cannot be traced, but for ``any`` and ``all``: rows ask these to save work alone, and so the
answer that saves none is right in every lane.

Knows NumPy's operations and types; does not know what they become (instructions.py) or which row it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

_KINDS = {"b": (1,), "u": (1, 2, 4, 8), "i": (1, 2, 4, 8), "f": (2, 4, 8)}  # kinds of types, and their bytes
_LONGEST = 4000  # operations of a row; a longer row is quicker as it is


class Untraceable(Exception):
    """The function of a row does what has no trace."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """An operation: a name of NumPy's, or "source", "constant", "cast" or "bits".

    ``takes`` is the type in which it computes, ``dtype`` that of its result. ``value`` is the number of a
    source, a constant, or the table that "take" looks an element up in.
    """

    name: str
    dtype: np.dtype[Any]
    takes: np.dtype[Any]
    arguments: tuple[Node, ...] = ()
    value: Any = None


class Traced(NDArrayOperatorsMixin):
    """A value that records what is done with it; it looks like an array with an element for each lane."""

    __slots__ = ("node", "trace")
    ndim = 1

    def __init__(self, trace: Trace, node: Node) -> None:
        self.trace, self.node = trace, node

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the value."""
        return self.node.dtype

    def __bool__(self) -> bool:
        raise Untraceable("a branch on a value")

    def __iter__(self) -> Any:
        raise Untraceable("a loop over lanes")

    def __array__(self, *arguments: object, **options: object) -> Any:
        raise Untraceable("an array of values")

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or not options.keys() <= {"dtype", "out"}:
            raise Untraceable(f"{function.__name__}.{method} with {', '.join(options)}")
        found = self.trace.apply(function, inputs, options.get("dtype"))
        return found.astype(self.dtype) if "out" in options else found  # of |= and the like

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Untraceable(function.__name__)
        return known(self.trace, *inputs, **options)

    def view(self, dtype: Any) -> Traced:
        """Return the same bits as another type of the same size."""
        other = _check_dtype(np.dtype(dtype))
        if other.itemsize != self.dtype.itemsize or "b" in (other.kind, self.dtype.kind):
            raise Untraceable(f"a view of {self.dtype} as {other}")
        return self if other == self.dtype else self.trace.made("bits", other, self.dtype, (self.node,))

    def astype(self, dtype: Any, copy: bool = True) -> Traced:
        """Return the value as another type."""
        return Traced(self.trace, self.trace.cast(self.node, np.dtype(dtype)))

    def taken_from(self, table: np.ndarray[Any, Any]) -> Traced:
        """Return the elements of a table of one axis that the values number."""
        if self.dtype.kind != "u":
            raise Untraceable("a look into a table at signed places")
        node = self.trace.cast(self.node, np.dtype(np.uint64))
        found = np.ascontiguousarray(table)
        return self.trace.made("take", _check_dtype(table.dtype), node.dtype, (node,), found)

    def copy(self) -> Traced:
        """Return the value."""
        return self

    def refuse(self) -> None:
        """Have the row executed as it is where this holds in a lane."""
        self.trace.refused.append(self.node)

    def any(self, **options: object) -> bool:
        """Return True: rows ask only whether they may leave out what changes no lane."""
        return True

    def all(self, **options: object) -> bool:
        """Return False: rows ask only whether they may leave out what changes no lane."""
        return False


class Trace:
    """The operations of a row."""

    def __init__(self) -> None:
        self._count = 0
        self.refused: list[Node] = []  # where the row has to be executed as it is

    def source(self, number: int, dtype: np.dtype[Any]) -> Traced:
        """Return a source of the row."""
        return self.made("source", _check_dtype(dtype), dtype, (), number)

    def made(
        self,
        name: str,
        dtype: np.dtype[Any],
        takes: np.dtype[Any],
        arguments: tuple[Node, ...],
        value: Any = None,
    ) -> Traced:
        """Return the result of an operation."""
        self._count += 1
        if self._count > _LONGEST:
            raise Untraceable(f"more than {_LONGEST} operations")
        return Traced(self, Node(name=name, dtype=dtype, takes=takes, arguments=arguments, value=value))

    def node(self, value: Any, dtype: np.dtype[Any] | None = None) -> Node:
        """Return the node of a value, or of a constant; of Python's numbers as a type."""
        if isinstance(value, Traced):
            return value.node
        found = np.asarray(value) if dtype is None or hasattr(value, "dtype") else np.array(value, dtype)
        if found.size != 1 or found.dtype.kind not in _KINDS:
            raise Untraceable(f"a constant of {found.dtype} and shape {found.shape}")
        known = _check_dtype(found.dtype)
        return Node(name="constant", dtype=known, takes=known, value=found.reshape(())[()])

    def cast(self, node: Node, dtype: np.dtype[Any]) -> Node:
        """Return a node as another type."""
        if node.dtype == dtype:
            return node
        if node.name == "constant":
            with np.errstate(all="ignore"):
                return self.node(node.value.astype(_check_dtype(dtype)))
        return self.made("cast", _check_dtype(dtype), node.dtype, (node,)).node

    def apply(self, function: np.ufunc, inputs: Sequence[Any], dtype: Any) -> Any:
        """Return the result of NumPy's function, in the type that NumPy gives it."""
        if function.nout != 1:
            raise Untraceable(function.__name__)
        given = tuple(_type_of(value) for value in inputs)
        wanted: dict[str, Any] = (
            {} if dtype is None else {"signature": (*(None,) * function.nin, np.dtype(dtype))}
        )
        try:
            *takes, gives = function.resolve_dtypes((*given, None), **wanted)
        except TypeError as error:
            raise Untraceable(str(error)) from None
        kinds = tuple(dict.fromkeys(takes))
        if len(kinds) != 1:
            raise Untraceable(f"{function.__name__} of {' and '.join(map(str, takes))}")
        nodes = tuple(self.cast(self.node(value, kinds[0]), kinds[0]) for value in inputs)
        return self.made(function.__name__, _check_dtype(gives), _check_dtype(kinds[0]), nodes)


def _type_of(value: Any) -> Any:
    """Return the type of an operand; of Python's numbers theirs, which take that of the others."""
    return value.dtype if hasattr(value, "dtype") else type(value)


def _check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type; raises Untraceable where it has no machine code here."""
    if dtype.itemsize not in _KINDS.get(dtype.kind, ()):
        raise Untraceable(f"values of {dtype}")
    return dtype


# --- NumPy's functions that are no ufuncs -------------------------------------------------------------------


def _traced_where(trace: Trace, condition: Any, first: Any, second: Any) -> Traced:
    dtype = np.result_type(*(_example(value) for value in (first, second)))
    nodes = (trace.cast(trace.node(value, dtype), dtype) for value in (first, second))
    chosen = trace.cast(trace.node(condition), np.dtype(np.bool_))
    return trace.made("where", _check_dtype(dtype), dtype, (chosen, *nodes))


def _example(value: Any) -> Any:
    """Return what stands for a value where NumPy promotes types: Python's numbers are weak."""
    return value.dtype if hasattr(value, "dtype") else value


def _clip(trace: Trace, value: Any, least: Any, most: Any) -> Any:
    return np.minimum(np.maximum(value, least), most)


def _full_like(trace: Trace, value: Any, content: Any, dtype: Any = None) -> Any:
    return Traced(trace, trace.node(np.array(content, value.dtype if dtype is None else dtype)))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _traced_where,
    np.clip: _clip,
    np.ndim: lambda trace, value: value.ndim,
    np.full_like: _full_like,
    np.zeros_like: lambda trace, value, dtype=None: _full_like(trace, value, 0, dtype),
    np.ones_like: lambda trace, value, dtype=None: _full_like(trace, value, 1, dtype),
}


def traced(
    compute: Callable[..., Sequence[Any]], sources: Sequence[np.dtype[Any] | np.ndarray[Any, Any]]
) -> tuple[tuple[Node, ...], list[Node]]:
    """Return the operations of each result of a row's function, and where that does not compute them, for
    sources of some types; of a constant the array, shape (). Raises Untraceable.
    """
    trace = Trace()
    given = [
        source if isinstance(source, np.ndarray) else trace.source(number, source)
        for number, source in enumerate(sources)
    ]
    try:
        return tuple(trace.node(result) for result in compute(*given)), trace.refused
    except Untraceable:
        raise
    except Exception as error:  # what takes arrays alone, as an index of a table
        raise Untraceable(f"{type(error).__name__}: {error}") from None
