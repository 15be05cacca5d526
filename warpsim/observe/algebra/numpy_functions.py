"""What NumPy's functions do with shadows: sums, products, functions, choices, indices, bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from .keys import key_bits
from .keys.constant_keys import integer_keys, two_to
from .keys.finite_fields import ONE, Keys, add, hashed, inv, matmul, mul, neg, power, sub, total
from .keys.key_cells import Mask
from .keys.key_reading import KeyReader
from .rules.functions_by_value import applied
from .rules.rule_calls import function_keys
from .shadow_arrays import Answers, Shadow, Trace, doubt_of_index, plain_index, refused

Array = npt.NDArray[Any]
Function = Callable[..., Any]
_U = np.uint64


def _elementwise(
    t: Trace, name: str, keys: Keys, values: Array, *operands: Shadow, doubt: Any = False
) -> Shadow:
    every = reduce(np.logical_or, (each.doubt for each in operands), doubt)
    return t.note(name, Shadow(t, keys, values, every), *operands)


# --- ufuncs --------------------------------------------------------------------------------------------

_BINARY: dict[str, tuple[str, Callable[..., Keys]]] = {
    "add": ("+", add),
    "subtract": ("-", sub),
    "multiply": ("*", mul),
    "divide": ("/", lambda a, b: mul(a, inv(b))),  # by a constant: _quotient
    "floor_divide": ("//", lambda a, b: hashed("//", a, b)),
    "remainder": ("%", lambda a, b: hashed("%", a, b)),
}
_FUNCTIONS = (
    *("tanh", "sqrt", "sin", "cos", "exp", "log", "rint", "trunc", "floor", "ceil", "expm1", "log1p"),
    *("arctan", "cbrt", "sinh", "cosh", "erf", "log10", "erfc", "exp2", "log2"),
)
_COMPARED = ("greater", "less", "greater_equal", "less_equal", "equal", "not_equal")
_TRUTHS = ("isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor")
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert")
_SAME = {"true_divide": "divide", "bitwise_not": "invert", "mod": "remainder", "fabs": "absolute"}


def of_ufunc(t: Trace, function: Any, method: str, args: Sequence[Any], more: dict[str, Any]) -> Any:
    """Return what a universal function of NumPy does."""
    name = _SAME.get(function.__name__, function.__name__)
    if method == "reduce" and name in _REDUCED:
        return _REDUCED[name](t, args[0], more.get("axis", 0), keepdims=bool(more.get("keepdims")))
    if method == "outer" and name in _BINARY:
        a, b = t.lift(args[0]), t.lift(args[1])
        return _called(t, name, [a.moved(np.reshape, (*a.shape, *(1,) * b.ndim)), b], function)
    if method == "accumulate" and name == "add":
        return _cumsum(t, args[0], more.get("axis", 0))
    if method != "__call__" or any(each is not None for each in more.get("out", ())):
        what = f"np.{name}.{method}" if method != "__call__" else f"out= of np.{name}"
        raise refused(f"the reference uses {what}, which has no formula: assign the result")
    with np.errstate(all="ignore"):
        return _called(t, name, [t.lift(each) for each in args], function)


def _keys(a: Shadow) -> Keys:
    """Return the keys of an operand; of a scout the first alone, since the result's are not read."""
    return np.asarray(a.keys[(slice(0, 1),) * a.ndim] if a.trace.scouting else a.keys)


def _called(t: Trace, name: str, a: list[Shadow], function: Any) -> Shadow:
    values = [each.values for each in a]
    keys = [_keys(each) for each in a]
    if name in _TRUTHS or (name in _BITS and all(each.dtype == np.bool_ for each in values)):
        return Shadow(t, 0, function(*values), reduce(np.logical_or, (each.doubt for each in a)))
    if name in _COMPARED:
        return Shadow(t, 0, function(*values), a[0].doubt | a[1].doubt | _near(t, *a))
    if name == "divide" and a[1].size and not any(a[1].keys.strides):
        return _quotient(t, a[0], a[1], function)
    if name in _BINARY:
        sign, operation = _BINARY[name]
        return _elementwise(t, sign, operation(keys[0], keys[1]), function(*values), *a)
    if name in _SPECIAL:
        return _SPECIAL[name](t, *a)
    if name in _BITS:
        return _bits(t, name, a)
    if function.nin != 1 or function.nout != 1:
        raise refused(f"the reference uses np.{name}, which has no formula; it may use {listed()}")
    own = {"exp2": "ex2", "log2": "lg2"}.get(name, name)
    t.functions.add(own)
    found = keys[0] if t.scouting else applied(own, keys[0], values[0].astype(np.float64))
    return _elementwise(t, own, found, function(values[0]), a[0])


def _quotient(t: Trace, a: Shadow, b: Shadow, function: Any) -> Shadow:
    keys = inv(b.keys)
    number = b.values.reshape(-1)[:1].astype(np.float64)
    if int(t.constants(number)[0]) == int(b.keys.flat[0]):
        keys = np.broadcast_to(t.reader.constants.inverses(number, "f64")[0], b.shape)
    return _elementwise(t, "/", mul(a.keys, keys), function(a.values, b.values), a, b)


def _near(t: Trace, a: Shadow, b: Shadow) -> Mask:
    """Return where two values are so close that rounding may change their order."""
    x, y = a.values, b.values
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return np.zeros(np.broadcast_shapes(x.shape, y.shape), np.bool_)
    apart = np.abs(x - y)
    close = apart <= t.close * np.maximum(np.abs(x), np.abs(y))
    found: Mask = close & (a.keys != b.keys) & np.isfinite(apart)
    return found


def _extreme(*, greatest: bool) -> Callable[[Trace, Shadow, Shadow], Shadow]:
    """maximum, minimum: the operand that the values choose, of equal values the lower key."""
    name, function = ("max", np.maximum) if greatest else ("min", np.minimum)

    def choose(t: Trace, a: Shadow, b: Shadow) -> Shadow:
        first = a.values > b.values if greatest else a.values < b.values
        keys = np.where(first, a.keys, b.keys)
        keys = np.where(a.values == b.values, np.minimum(a.keys, b.keys), keys)
        return _elementwise(t, name, keys, function(a.values, b.values), a, b, doubt=_near(t, a, b))

    return choose


def _power(t: Trace, a: Shadow, n: Shadow) -> Shadow:
    exponent = n.values.reshape(-1)
    if not exponent.size or (exponent != exponent[0]).any():
        raise refused("an exponent that is not a number has no formula")
    p = float(exponent[0])
    values = a.values.astype(np.float64) ** p if a.values.dtype.kind == "f" or p < 0 else a.values ** int(p)
    if p == int(p):
        keys = power(_keys(a), int(p))
    elif 2 * p == int(2 * p):
        t.functions.add("sqrt")
        keys = power(function_keys("sqrt", _keys(a)), int(2 * p))
    else:
        keys = hashed("power", _keys(a), _keys(n))
    return _elementwise(t, "**", keys, values, a, n)


def _matmul(t: Trace, a: Any, b: Any) -> Shadow:
    a, b = t.lift(a), t.lift(b)
    if a.ndim == 1 or b.ndim == 1:
        left = a.moved(np.expand_dims, 0) if a.ndim == 1 else a
        right = b.moved(np.expand_dims, 1) if b.ndim == 1 else b
        axes = (-2,) * (a.ndim == 1) + (-1,) * (b.ndim == 1)
        return _matmul(t, left, right).moved(np.squeeze, axis=axes)
    kind = np.float64 if "f" in a.dtype.kind + b.dtype.kind else np.int64
    values = np.matmul(a.values.astype(kind), b.values.astype(kind))
    doubt = a.doubt.any(-1)[..., :, None] | b.doubt.any(-2)[..., None, :]
    keys = np.zeros(values.shape, _U) if t.scouting else matmul(a.keys, b.keys)
    return t.note("@", Shadow(t, keys, values, doubt), a, b)


def _copysign(t: Trace, a: Shadow, b: Shadow) -> Shadow:
    keys = np.where(np.signbit(a.values) != np.signbit(b.values), neg(a.keys), a.keys)
    return _elementwise(t, "copysign", keys, np.copysign(a.values, b.values), a, b)


_MAXIMUM, _MINIMUM = _extreme(greatest=True), _extreme(greatest=False)
_SPECIAL: dict[str, Callable[..., Shadow]] = {
    "negative": lambda t, a: _elementwise(t, "neg", neg(a.keys), -a.values, a),
    "positive": lambda t, a: a,
    "square": lambda t, a: _elementwise(t, "**", mul(a.keys, a.keys), a.values**2, a),
    "reciprocal": lambda t, a: _elementwise(t, "rcp", inv(a.keys), 1.0 / a.values, a),
    "absolute": lambda t, a: _elementwise(
        t, "abs", np.where(a.values < 0, neg(a.keys), a.keys), np.abs(a.values), a
    ),
    "sign": lambda t, a: Shadow(
        t, integer_keys(np.sign(a.values).astype(np.int64)), np.sign(a.values), a.doubt
    ),
    "ldexp": lambda t, a, b: _elementwise(
        t, "*", mul(a.keys, two_to(b.values)), np.ldexp(a.values, b.values), a, b
    ),
    **dict.fromkeys(("power", "float_power"), _power),
    **dict.fromkeys(("maximum", "fmax"), _MAXIMUM),
    **dict.fromkeys(("minimum", "fmin"), _MINIMUM),
    "matmul": _matmul, "copysign": _copysign,
    "clip": lambda t, a, low, high: _clip(t, a, low, high),
}  # fmt: skip


# --- bits ----------------------------------------------------------------------------------------------


def _rows(t: Trace, a: Shadow) -> tuple[Keys, Mask]:
    """Return ``(elements, 33)`` bits, and of which elements they are known: of constants, and of leaves."""
    keys, values = a.keys.reshape(-1), a.values.reshape(-1).astype(np.int64)
    rows, known = t.reader.bits.rows(keys)
    constant = keys == integer_keys(values)
    own = key_bits.constant_rows(values.view(np.uint64))
    return np.where(constant[:, None], own, rows), known | constant


_LOGIC = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


def _bits(t: Trace, name: str, a: list[Shadow]) -> Shadow:
    shape = np.broadcast_shapes(*(each.shape for each in a))
    a = [each.moved(np.broadcast_to, shape) for each in a]
    values, bits = getattr(np, name)(*(each.values for each in a)), t.reader.bits
    if name == "invert":
        return _elementwise(t, "not", sub(neg(a[0].keys), _U(ONE)), values, a[0])
    rows, known = _rows(t, a[0])
    if name in _LOGIC:
        own, (others, too) = _LOGIC[name], _rows(t, a[1])
        found = bits.number(key_bits.chosen_by_table(key_bits.TABLES[own], [rows, others]), signed=True)
        known, other = known & too, hashed(own, *(each.keys.reshape(-1) for each in a))
        return _elementwise(t, own, np.where(known, found, other).reshape(shape), values, *a)
    left, two = name == "left_shift", integer_keys(np.int64(1) << a[1].values)
    moved = key_bits.shifted(rows, a[1].values.reshape(-1), left=left, signed=True)
    if left:
        keys = mul(a[0].keys, two)
        bits.keep(keys.reshape(-1)[known], moved[known], signed=True)
        return _elementwise(t, "shl", keys, values, *a)
    keys = np.where(known, bits.number(moved, signed=True), hashed("//", a[0].keys, two).reshape(-1))
    return _elementwise(t, "shr", keys.reshape(shape), values, *a)


# --- sums and choices along axes -----------------------------------------------------------------------


def _along(name: str, reduction: Callable[[Trace, Shadow], Shadow]) -> Callable[..., Shadow]:
    """Return a function along axes of a function that reduces the last axis; "" for no operation."""

    def reduced(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
        a = t.lift(a)
        given = range(a.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
        axes = [int(each) % a.ndim for each in given]
        kept = [place for place in range(a.ndim) if place not in axes]
        rows = a.moved(np.transpose, (*kept, *axes))
        rows = rows.moved(np.reshape, (*rows.shape[: len(kept)], -1))
        found = reduction(t, rows)
        if keepdims:
            shape = [1 if place in axes else size for place, size in enumerate(a.shape)]
            found = found.moved(np.reshape, shape)
        return t.note(name, found, rows) if name else found

    return reduced


def _summed(t: Trace, a: Shadow) -> Shadow:
    keys = integer_keys(a.values) if a.dtype == np.bool_ else a.keys
    return Shadow(t, total(keys, -1), a.values.sum(-1), a.doubt.any(-1))


def _multiplied(t: Trace, a: Shadow) -> Shadow:
    keys = reduce(mul, np.moveaxis(a.keys, -1, 0))
    return Shadow(t, keys, a.values.prod(-1), a.doubt.any(-1))


def _furthest(*, greatest: bool) -> Callable[[Trace, Shadow], Shadow]:
    def choose(t: Trace, a: Shadow) -> Shadow:
        values = (np.max if greatest else np.min)(a.values, -1)
        best = a.values == values[..., None]
        keys = np.where(best, a.keys, _U((1 << 64) - 1)).min(-1)
        if t.gauge and greatest:
            return Shadow(t, np.zeros_like(keys), values)
        near = _near(t, a, Shadow(t, keys[..., None], values[..., None]))
        return Shadow(t, keys, values, (a.doubt | (near & ~best)).any(-1))

    return choose


_sum, _max = _along("sum", _summed), _along("max", _furthest(greatest=True))
_min, _prod = _along("min", _furthest(greatest=False)), _along("", _multiplied)
_any = _along("", lambda t, a: Shadow(t, 0, a.values.any(-1), a.doubt.any(-1)))
_all = _along("", lambda t, a: Shadow(t, 0, a.values.all(-1), a.doubt.any(-1)))


def _mean(t: Trace, a: Any, axis: Any = None, *, weights: Any = None, ddof: int = 0, **more: Any) -> Shadow:
    if weights is not None:
        raise refused("np.average has no weights here: divide a sum of products by the sum of weights")
    found = _sum(t, a, axis, **more)
    count = t.lift(float(t.lift(a).size // max(found.size, 1) - ddof))
    return _called(t, "divide", [found, count], np.divide)


def _variance(t: Trace, a: Any, axis: Any = None, **more: Any) -> Shadow:
    apart = t.lift(a) - _mean(t, a, axis, keepdims=True)
    return _mean(t, apart * apart, axis, **more)


def _place_of_extreme(
    function: Callable[..., Array], extreme: Callable[..., Shadow]
) -> Callable[..., Shadow]:
    """argmax, argmin: indices, which rounding may turn where another element is as near."""

    def find(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
        a = t.lift(a)
        index = np.asarray(function(a.values, axis, keepdims=keepdims))
        return Shadow(t, integer_keys(index), index, extreme(t, a, axis, keepdims=keepdims).doubt)

    return find


def _cumsum(t: Trace, a: Any, axis: Any = None, **more: Any) -> Shadow:
    a = t.lift(a)
    if axis is None:
        a, axis = a.moved(np.reshape, -1), 0
    keys = np.array([*accumulate(np.moveaxis(a.keys, axis, 0), add)], _U).reshape(
        np.moveaxis(a.keys, axis, 0).shape
    )
    doubt = np.logical_or.accumulate(a.doubt, axis)
    return t.note("sum", Shadow(t, np.moveaxis(keys, 0, axis), a.values.cumsum(axis), doubt))


_REDUCED: dict[str, Callable[..., Shadow]] = {
    "add": _sum, "maximum": _max, "minimum": _min, "multiply": _prod, "logical_or": _any, "logical_and": _all,
}  # fmt: skip


# --- functions -----------------------------------------------------------------------------------------


def _where(t: Trace, condition: Any, *choices: Any) -> Any:
    condition = t.lift(condition)
    if not choices:
        return np.nonzero(condition.values)
    a, b = map(t.lift, choices)
    truth, doubt = condition.values.astype(np.bool_), condition.doubt & (a.keys != b.keys)
    keys, values = np.where(truth, a.keys, b.keys), np.where(truth, a.values, b.values)
    return _elementwise(t, "where", keys, values, a, b, doubt=doubt)


def _clip(t: Trace, a: Any, low: Any = None, high: Any = None, **more: Any) -> Shadow:
    low, high = more.get("min", low), more.get("max", high)
    found = t.lift(a) if low is None else _MAXIMUM(t, t.lift(a), t.lift(low))
    return found if high is None else _MINIMUM(t, found, t.lift(high))


def _several(function: Callable[..., Array]) -> Callable[..., Shadow]:
    def join(t: Trace, arrays: Any, *args: Any, **more: Any) -> Shadow:
        a = [t.lift(each) for each in arrays]
        parts = ([getattr(each, name) for each in a] for name in ("keys", "values", "doubt"))
        keys, values, doubt = (function(each, *args, **more) for each in parts)
        return Shadow(t, keys, values, doubt)

    return join


def _reordered(function: Callable[..., Array]) -> Callable[..., Shadow]:
    def move(t: Trace, a: Any, *args: Any, **more: Any) -> Shadow:
        plain = {name: plain_index(each) for name, each in more.items()}
        found = t.lift(a).moved(function, *map(plain_index, args), **plain)
        found.doubt = found.doubt | doubt_of_index(args[:1], found.shape)
        return found

    return move


def _like(value: float) -> Callable[..., Shadow]:
    def make(
        t: Trace, a: Any, fill: Any = value, dtype: Any = None, *, shape: Any = None, **more: Any
    ) -> Shadow:
        size = np.shape(a.values if isinstance(a, Shadow) else a) if shape is None else shape
        given = t.lift(fill)
        return Shadow(t, np.broadcast_to(given.keys, size).copy(), np.full(size, float(given.values)))

    return make


def _split(function: Callable[..., Any]) -> Callable[..., list[Shadow]]:
    def cut(t: Trace, a: Shadow, *args: Any, **more: Any) -> list[Shadow]:
        parts = (function(each, *args, **more) for each in (a.keys, a.values, a.doubt))
        return [Shadow(t, *each) for each in zip(*parts, strict=True)]

    return cut


def _padded(t: Trace, a: Shadow, width: Any, mode: str = "constant", **more: Any) -> Shadow:
    if mode == "constant" and np.any(more.get("constant_values", 0)):
        raise refused("np.pad with other constants than 0 has no formula here: use np.concatenate")
    return a.moved(np.pad, width, mode=mode)


def _round(t: Trace, a: Any, decimals: int = 0, **more: Any) -> Shadow:
    if decimals:
        raise refused("np.round to decimals has no formula")
    return _called(t, "rint", [t.lift(a)], np.rint)


def _einsum(t: Trace, subscripts: str, *arrays: Any, **more: Any) -> Shadow:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise refused("np.einsum takes subscripts in letters here, as 'mk,kn->mn'")
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow:
        out = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
    shadows = [t.lift(each) for each in arrays]
    labels, found = terms[0], shadows[0]
    for place, (other, array) in enumerate(zip(terms[1:], shadows[1:], strict=True), 2):
        needed = out + "".join(terms[place:])
        labels, found = _contracted(t, labels, found, other, array, needed)
    summed = tuple(place for place, letter in enumerate(labels) if letter not in out)
    if summed:
        found = _sum(t, found, summed)
        labels = "".join(letter for letter in labels if letter in out)
    return found.moved(np.transpose, [labels.index(letter) for letter in out])


def _contracted(t: Trace, left: str, a: Shadow, right: str, b: Shadow, needed: str) -> tuple[str, Shadow]:
    """Return the labels and the product of right arrays, summed over labels of both that are not needed."""
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        raise refused("np.einsum of a diagonal has no formula here")
    both = [letter for letter in left if letter in right]
    batch = [letter for letter in both if letter in needed]
    inner = [letter for letter in both if letter not in needed]
    rows, columns = ([x for x in own if x not in both] for own in (left, right))
    sizes = dict(zip(left, a.shape, strict=True)) | dict(zip(right, b.shape, strict=True))

    def arranged(own: str, array: Shadow, *groups: list[str]) -> Shadow:
        order = [own.index(letter) for group in groups for letter in group]
        shape = [sizes[letter] for letter in groups[0]]
        shape += [int(np.prod([sizes[letter] for letter in group], dtype=int)) for group in groups[1:]]
        return array.moved(np.transpose, order).moved(np.reshape, shape)

    product = _matmul(t, arranged(left, a, batch, rows, inner), arranged(right, b, batch, inner, columns))
    labels = batch + rows + columns
    return "".join(labels), product.moved(np.reshape, [sizes[letter] for letter in labels])


def _converted(t: Trace, a: Shadow, dtype: Any, **more: Any) -> Shadow:
    """Return the array in another type: rounding is not a formula, the integer part is."""
    kind = np.dtype(dtype)
    with np.errstate(all="ignore"):
        if kind.kind == "b":
            return Shadow(t, 0, a.values != 0, a.doubt)
        if kind.kind not in "iu":
            return Shadow(t, a.keys, a.values.astype(kind).astype(np.float64), a.doubt)
        values = a.values.astype(kind).astype(np.int64)
        if a.values.dtype.kind == "f" and (a.values != np.trunc(a.values)).any():
            a = _called(t, "trunc", [a], np.trunc)
    keys = np.where(values == a.values, a.keys, hashed(f"low {kind.itemsize} bytes", a.keys))
    if a.values.dtype == np.bool_:
        keys = integer_keys(values)
    return Shadow(t, keys, values, a.doubt)


def _viewed(t: Trace, a: Shadow, dtype: Any) -> Shadow:
    """Return integers of the same size as bits of another sign, or as the floats that their bits are."""
    kind = np.dtype(dtype)
    rows, known = _rows(t, a)
    if kind.kind not in "iu" or not known.all():
        raise refused(
            f"the reference views an array as {kind}: arguments come as the numbers that the kernel reads"
        )
    width = 8 * kind.itemsize
    keys = t.reader.bits.number(rows[:, :width], signed=kind.kind == "i").reshape(a.shape)
    return Shadow(t, keys, a.values.astype(kind).astype(np.int64), a.doubt)


_MOVING = (
    *(np.transpose, np.swapaxes, np.moveaxis, np.reshape, np.ravel, np.expand_dims, np.squeeze, np.rot90),
    *(np.repeat, np.tile, np.flip, np.roll, np.take, np.take_along_axis, np.copy, np.diagonal, np.rollaxis),
    *(np.atleast_1d, np.atleast_2d, np.delete, np.broadcast_to, np.tril, np.triu),
)
_JOINING = (np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack)
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{function: _reordered(function) for function in _MOVING},
    **{function: _several(function) for function in _JOINING},
    **{function: _split(function) for function in (np.split, np.array_split)},
    np.where: _where, np.clip: _clip, np.sum: _sum, np.mean: _mean, np.average: _mean, np.var: _variance,
    np.std: lambda t, *args, **more: np.sqrt(_variance(t, *args, **more)),
    np.max: _max, np.amax: _max, np.min: _min, np.amin: _min, np.prod: _prod, np.cumsum: _cumsum,
    np.argmax: _place_of_extreme(np.argmax, _max), np.argmin: _place_of_extreme(np.argmin, _min),
    np.argsort: lambda t, a, *args, **more: np.argsort(a.values, *args, **more),
    np.dot: _matmul, np.einsum: _einsum,
    np.outer: lambda t, *ab: of_ufunc(t, np.multiply, "outer", [t.lift(x).moved(np.ravel) for x in ab], {}),
    np.inner: lambda t, a, b: _matmul(t, a, t.lift(b).moved(np.swapaxes, -1, -2)),
    np.zeros_like: _like(0.0), np.ones_like: _like(1.0), np.full_like: _like(0.0), np.empty_like: _like(0.0),
    np.pad: _padded, np.round: _round, np.around: _round,
    np.shape: lambda t, a: a.shape, np.ndim: lambda t, a: a.ndim, np.size: lambda t, a: a.size,
    np.any: _any, np.all: _all,
    np.nonzero: lambda t, a: np.nonzero(a.values), np.result_type: lambda t, *a: np.dtype(np.float64),
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: known
    for function, known in FUNCTIONS.items()
    if hasattr(np.ndarray, function.__name__)
} | {
    "astype": _converted, "view": _viewed, "flatten": _reordered(np.ravel), "max": _max, "min": _min,
    "item": lambda t, a: a.values.item(), "tolist": lambda t, a: a.values.tolist(),
    "reshape": lambda t, a, *shape: a.moved(np.reshape, shape[0] if len(shape) == 1 else shape),
    "transpose": lambda t, a, *axes: a.moved(np.transpose, axes[0] if len(axes) == 1 else axes or None),
}  # fmt: skip


def listed() -> str:
    """Return the names of what a reference may use."""
    functions = sorted({function.__name__ for function in FUNCTIONS})
    ufuncs = sorted({*_BINARY, *_FUNCTIONS, *_SPECIAL, *_COMPARED, *_TRUTHS, *_BITS} - {"erf", "erfc"})
    return ", ".join([*ufuncs, *functions])


def trace_of(reader: KeyReader, *, gauge: bool = False, scouting: bool = False) -> Trace:
    """Return an empty trace of a reference that may use these functions."""
    return Trace(reader, Answers(of_ufunc, FUNCTIONS, METHODS, listed), gauge=gauge, scouting=scouting)
