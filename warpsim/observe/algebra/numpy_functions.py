"""What NumPy's functions do with shadows: sums, products, functions, choices, indices, bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
_U = np.uint64


def _doubts(*shadows: Shadow) -> Mask | None:
    found = [each.doubt for each in shadows if each.doubt is not None]
    shape = np.broadcast_shapes(*(each.shape for each in shadows))
    return np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*found)), shape) if found else None


def _elementwise(t: Trace, name: str, keys: Keys, values: Array, *operands: Shadow) -> Shadow:
    return t.note(name, Shadow(t, keys, values, _doubts(*operands)), *operands)


# --- ufuncs --------------------------------------------------------------------------------------------

_BINARY: dict[str, tuple[str, Callable[..., Keys]]] = {
    "add": ("+", add),
    "subtract": ("-", sub),
    "multiply": ("*", mul),
    "divide": ("/", lambda a, b: mul(a, inv(b))),  # by a constant: _quotient
    "floor_divide": ("//", lambda a, b: hashed("//", a, b)),
    "remainder": ("%", lambda a, b: hashed("%", a, b)),
}
_UNARY = {
    **{name: name for name in ("tanh", "sqrt", "sin", "cos", "exp", "log", "rint", "trunc", "floor", "ceil")},
    **{name: name for name in ("expm1", "log1p", "arctan", "cbrt", "sinh", "cosh", "erf", "log10", "erfc")},
    "exp2": "ex2",
    "log2": "lg2",
}
_COMPARED = ("greater", "less", "greater_equal", "less_equal", "equal", "not_equal")
_TRUTHS = ("isnan", "isinf", "isfinite", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor")
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert")


def of_ufunc(t: Trace, function: Any, method: str, args: Sequence[Any], more: dict[str, Any]) -> Any:
    """Return what a universal function of NumPy does."""
    name = {"true_divide": "divide", "bitwise_not": "invert", "mod": "remainder", "fabs": "absolute"}.get(
        function.__name__, function.__name__
    )
    if method == "reduce" and name in _REDUCED:
        return _REDUCED[name](t, args[0], more.get("axis"), keepdims=bool(more.get("keepdims")))
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


def _ufunc(t: Trace, function: Any, *args: Any) -> Shadow:
    found: Shadow = of_ufunc(t, function, "__call__", args, {})
    return found


def _called(t: Trace, name: str, a: list[Shadow], function: Any) -> Shadow:
    values = [each.values for each in a]
    if name in _TRUTHS or (name in _BITS and all(each.values.dtype == np.bool_ for each in a)):
        return Shadow(t, 0, function(*values), _doubts(*a))
    if name in _COMPARED:
        return Shadow(t, 0, function(*values), _or(_doubts(*a), _near(t, values[0], values[1], a)))
    if name == "divide" and a[1].size and not any(a[1].keys.strides):
        return _quotient(t, a[0], a[1], function)
    if name in _BINARY:
        sign, operation = _BINARY[name]
        return _elementwise(t, sign, operation(a[0].keys, a[1].keys), function(*values), *a)
    if name in _SPECIAL:
        return _SPECIAL[name](t, *a)
    if name in _BITS:
        return _bits(t, name, a)
    if function.nin != 1 or function.nout != 1:
        raise refused(f"the reference uses np.{name}, which has no formula; it may use {listed()}")
    own = _UNARY.get(name, name)
    t.functions.add(own)
    result = function(values[0])
    return _elementwise(t, own, applied(own, a[0].keys, values[0].astype(np.float64)), result, a[0])


def _quotient(t: Trace, a: Shadow, b: Shadow, function: Any) -> Shadow:
    """Return a quotient by one number, which may be a constant."""
    keys = inv(b.keys)
    number = b.values.reshape(-1)[:1].astype(np.float64)
    if int(t.constants(number)[0]) == int(b.keys.flat[0]):
        keys = np.broadcast_to(t.reader.constants.inverses(number, "f64")[0], b.shape)
    return _elementwise(t, "/", mul(a.keys, keys), function(a.values, b.values), a, b)


def _or(first: Mask | None, second: Mask | None) -> Mask | None:
    return second if first is None else first if second is None else first | second


def _near(t: Trace, x: Array, y: Array, a: Sequence[Shadow]) -> Mask | None:
    """Return where two values are so close that rounding may change their order; None for nowhere."""
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return None
    apart = np.abs(x - y)
    close = apart <= t.close * np.maximum(np.abs(x), np.abs(y))
    close = close & (a[0].keys != a[1].keys) & np.isfinite(apart)
    return close if close.any() else None


def _extreme(t: Trace, a: Shadow, b: Shadow, *, greatest: bool) -> Shadow:
    """Return the greater or lesser elements: the operand that the values choose, of equal values the lower
    key.
    """
    first = a.values > b.values if greatest else a.values < b.values
    tie = a.values == b.values
    keys = np.where(tie, np.minimum(a.keys, b.keys), np.where(first, a.keys, b.keys))
    function = np.maximum if greatest else np.minimum
    found = Shadow(
        t, keys, function(a.values, b.values), _or(_doubts(a, b), _near(t, a.values, b.values, (a, b)))
    )
    return t.note("max" if greatest else "min", found, a, b)


def _power(t: Trace, a: Shadow, n: Shadow) -> Shadow:
    exponent = n.values.reshape(-1)
    if not exponent.size or (exponent != exponent[0]).any():
        raise refused("an exponent that is not a number has no formula")
    p = float(exponent[0])
    values = a.values.astype(np.float64) ** p if a.values.dtype.kind == "f" or p < 0 else a.values ** int(p)
    if p == int(p):
        return _elementwise(t, "**", power(a.keys, int(p)), values, a, n)
    if 2 * p == int(2 * p):
        t.functions.add("sqrt")
        return _elementwise(t, "**", power(function_keys("sqrt", a.keys), int(2 * p)), values, a, n)
    return _elementwise(t, "**", hashed("power", a.keys, n.keys), values, a, n)


def _absolute(t: Trace, a: Shadow) -> Shadow:
    return _elementwise(t, "abs", np.where(a.values < 0, neg(a.keys), a.keys), np.abs(a.values), a)


def _sign(t: Trace, a: Shadow) -> Shadow:
    return Shadow(t, integer_keys(np.sign(a.values).astype(np.int64)), np.sign(a.values), a.doubt)


def _matmul(t: Trace, a: Shadow, b: Shadow) -> Shadow:
    if a.ndim == 1 or b.ndim == 1:
        left = a.moved(np.expand_dims, 0) if a.ndim == 1 else a
        right = b.moved(np.expand_dims, 1) if b.ndim == 1 else b
        found = _matmul(t, left, right)
        axes = tuple(([-2] if a.ndim == 1 else []) + ([-1] if b.ndim == 1 else []))
        return found.moved(np.squeeze, axis=axes)
    wide = [each.values if each.values.dtype.kind == "f" else each.values.astype(np.int64) for each in (a, b)]
    values = (
        np.matmul(*(each.astype(np.float64) for each in wide))
        if "f" in wide[0].dtype.kind + wide[1].dtype.kind
        else np.matmul(*wide)
    )
    doubt = None
    if a.doubt is not None or b.doubt is not None:
        masks = [np.zeros(each.shape) if each.doubt is None else each.doubt.astype(float) for each in (a, b)]
        doubt = np.matmul(masks[0], np.ones(b.shape)) + np.matmul(np.ones(a.shape), masks[1]) > 0
    keys = np.zeros(values.shape, np.uint64) if t.scouting else matmul(a.keys, b.keys)
    return t.note("@", Shadow(t, keys, values, doubt), a, b)


_SPECIAL: dict[str, Callable[..., Shadow]] = {
    "negative": lambda t, a: _elementwise(t, "neg", neg(a.keys), -a.values, a),
    "positive": lambda t, a: a,
    "square": lambda t, a: _elementwise(t, "**", mul(a.keys, a.keys), a.values**2, a),
    "reciprocal": lambda t, a: _elementwise(t, "rcp", inv(a.keys), 1.0 / a.values, a),
    "power": _power,
    "float_power": _power,
    "absolute": _absolute,
    "sign": _sign,
    "maximum": lambda t, a, b: _extreme(t, a, b, greatest=True),
    "fmax": lambda t, a, b: _extreme(t, a, b, greatest=True),
    "minimum": lambda t, a, b: _extreme(t, a, b, greatest=False),
    "fmin": lambda t, a, b: _extreme(t, a, b, greatest=False),
    "matmul": _matmul,
    "clip": lambda t, a, low, high: _clip(t, a, low, high),
    "copysign": lambda t, a, b: _elementwise(
        t, "copysign", np.where(np.signbit(a.values) != np.signbit(b.values), neg(a.keys), a.keys),
        np.copysign(a.values, b.values), a, b,
    ),
    "ldexp": lambda t, a, b: _elementwise(
        t, "*", mul(a.keys, _two_to(b)), np.ldexp(a.values, b.values), a, b
    ),
}  # fmt: skip


def _two_to(b: Shadow) -> Keys:
    return two_to(b.values)


# --- bits ----------------------------------------------------------------------------------------------


def _rows(t: Trace, a: Shadow) -> tuple[Keys, Mask]:
    """Return ``(elements, 33)`` bits, and of which elements they are known: of constants, and of leaves."""
    keys, values = a.keys.reshape(-1), a.values.reshape(-1)
    rows, known = t.reader.bits.rows(keys)
    constant = keys == integer_keys(values.astype(np.int64))
    own = key_bits.constant_rows(values.astype(np.int64).view(np.uint64))
    return np.where(constant[:, None], own, rows), known | constant


_LOGIC = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


def _bits(t: Trace, name: str, a: list[Shadow]) -> Shadow:
    shape = np.broadcast_shapes(*(each.shape for each in a))
    a = [each.moved(np.broadcast_to, shape) for each in a]
    values = getattr(np, name)(*(each.values for each in a))
    if name == "invert":
        return _elementwise(t, "not", sub(neg(a[0].keys), _U(ONE)), values, a[0])
    (rows, known), *others = [_rows(t, each) for each in a[: 1 + (name in _LOGIC)]]
    if others:
        own = _LOGIC[name]
        keys = t.reader.bits.number(
            key_bits.chosen_by_table(key_bits.TABLES[own], [rows, others[0][0]]), signed=True
        )
        known, other = known & others[0][1], hashed(own, *(each.keys.reshape(-1) for each in a))
        return _elementwise(t, own, np.where(known, keys, other).reshape(shape), values, *a)
    left, two = name == "left_shift", integer_keys(np.int64(1) << a[1].values)
    moved = key_bits.shifted(rows, a[1].values.reshape(-1), left=left, signed=True)
    if left:
        keys = mul(a[0].keys, two)
        t.reader.bits.keep(keys.reshape(-1)[known], moved[known], signed=True)
        return _elementwise(t, "shl", keys, values, *a)
    keys = np.where(known, t.reader.bits.number(moved, signed=True), hashed("//", a[0].keys, two).reshape(-1))
    return _elementwise(t, "shr", keys.reshape(shape), values, *a)


# --- sums and choices along axes -----------------------------------------------------------------------


def _axes(a: Shadow, axis: Any) -> tuple[int, ...]:
    axes = range(a.ndim) if axis is None else (axis,) if np.ndim(axis) == 0 else axis
    return tuple(int(each) % a.ndim for each in axes)


def _flattened(a: Shadow, axis: Any) -> tuple[Shadow, tuple[int, ...]]:
    """Return the array with the reduced axes as a single axis, last, and the shape with those as 1."""
    axes = _axes(a, axis)
    kept = [place for place in range(a.ndim) if place not in axes]
    moved = a.moved(np.transpose, (*kept, *axes)).moved(np.reshape, (*(a.shape[place] for place in kept), -1))
    return moved, tuple(1 if place in axes else size for place, size in enumerate(a.shape))


def _kept(found: Shadow, shape: tuple[int, ...], a: Shadow, axis: Any, *, keepdims: bool) -> Shadow:
    if keepdims:
        return found.moved(np.reshape, shape)
    axes = _axes(a, axis)
    return found.moved(np.reshape, tuple(size for place, size in enumerate(a.shape) if place not in axes))


def _sum(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    a = t.lift(a)
    if a.values.dtype == np.bool_:
        return Shadow(
            t,
            integer_keys(np.asarray(a.values.sum(axis, keepdims=keepdims))),
            a.values.sum(axis, keepdims=keepdims),
        )
    flat, shape = _flattened(a, axis)
    doubt = None if flat.doubt is None else np.asarray(flat.doubt.any(-1))
    found = Shadow(t, total(flat.keys, -1), flat.values.sum(-1), doubt)
    return t.note("sum", _kept(found, shape, a, axis, keepdims=keepdims), a)


def _mean(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    a = t.lift(a)
    count = np.prod([a.shape[place] for place in _axes(a, axis)])
    return _ufunc(t, np.true_divide, _sum(t, a, axis, keepdims=keepdims), float(count))


def _variance(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    a = t.lift(a)
    apart = a - _mean(t, a, axis, keepdims=True)
    return _mean(t, apart * apart, axis, keepdims=keepdims)


def _extreme_along(t: Trace, a: Any, axis: Any, *, greatest: bool, keepdims: bool) -> Shadow:
    a = t.lift(a)
    flat, shape = _flattened(a, axis)
    values = (np.max if greatest else np.min)(flat.values, -1)
    best = flat.values == values[..., None]
    keys = np.where(best, flat.keys, _U((1 << 64) - 1)).min(-1)
    near = _near(
        t,
        flat.values,
        np.broadcast_to(values[..., None], flat.shape),
        (flat, Shadow(t, keys[..., None], values[..., None])),
    )
    doubt = _or(
        None if flat.doubt is None else np.asarray(flat.doubt.any(-1)),
        None if near is None else np.asarray((near & ~best).any(-1)),
    )
    if t.gauge and greatest:
        keys, doubt = np.zeros_like(keys), None
    found = _kept(Shadow(t, keys, values, doubt), shape, a, axis, keepdims=keepdims)
    return t.note("max" if greatest else "min", found, a)


def _max(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    return _extreme_along(t, a, axis, greatest=True, keepdims=keepdims)


def _min(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    return _extreme_along(t, a, axis, greatest=False, keepdims=keepdims)


def _place_of_extreme(function: Callable[..., Array], *, greatest: bool) -> Callable[..., Shadow]:
    """argmax, argmin: indices, which rounding may turn where another element is as near."""

    def find(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
        a = t.lift(a)
        index = np.asarray(function(a.values, axis, keepdims=keepdims))
        doubt = _extreme_along(t, a, axis, greatest=greatest, keepdims=keepdims).doubt
        return Shadow(t, integer_keys(index), index, doubt)

    return find


def _prod(t: Trace, a: Any, axis: Any = None, *, keepdims: bool = False, **more: Any) -> Shadow:
    a = t.lift(a)
    flat, shape = _flattened(a, axis)
    keys = flat.keys[..., 0]
    for place in range(1, flat.shape[-1]):
        keys = mul(keys, flat.keys[..., place])
    return _kept(Shadow(t, keys, flat.values.prod(-1)), shape, a, axis, keepdims=keepdims)


def _cumsum(t: Trace, a: Any, axis: Any = None, **more: Any) -> Shadow:
    a = t.lift(a)
    if axis is None:
        a, axis = a.moved(np.reshape, -1), 0
    keys = np.moveaxis(a.keys, axis, 0).copy()
    for place in range(1, len(keys)):
        keys[place] = add(keys[place - 1], keys[place])
    return t.note("sum", Shadow(t, np.moveaxis(keys, 0, axis), a.values.cumsum(axis), a.doubt), a)


_REDUCED: dict[str, Callable[..., Shadow]] = {
    "add": _sum, "maximum": _max, "minimum": _min, "multiply": _prod,
    "logical_or": lambda t, a, axis, keepdims: Shadow(t, 0, np.any(a.values, axis, keepdims=keepdims)),
    "logical_and": lambda t, a, axis, keepdims: Shadow(t, 0, np.all(a.values, axis, keepdims=keepdims)),
}  # fmt: skip


# --- functions -----------------------------------------------------------------------------------------


def _where(t: Trace, condition: Any, *choices: Any) -> Any:
    truth = condition.values if isinstance(condition, Shadow) else np.asarray(condition)
    if not choices:
        return np.nonzero(truth)
    a, b = map(t.lift, choices)
    truth = truth.astype(np.bool_)
    doubt = _doubts(a, b)
    if isinstance(condition, Shadow) and condition.doubt is not None:
        doubt = _or(doubt, condition.doubt & (a.keys != b.keys))
    found = Shadow(t, np.where(truth, a.keys, b.keys), np.where(truth, a.values, b.values), doubt)
    return t.note("where", found, a, b)


def _clip(t: Trace, a: Any, low: Any = None, high: Any = None, **more: Any) -> Shadow:
    low, high = more.get("min", low), more.get("max", high)
    found = t.lift(a)
    if low is not None:
        found = _extreme(t, found, t.lift(low), greatest=True)
    return found if high is None else _extreme(t, found, t.lift(high), greatest=False)


def _several(function: Callable[..., Array]) -> Callable[..., Shadow]:
    def join(t: Trace, arrays: Any, *args: Any, **more: Any) -> Shadow:
        a = [t.lift(each) for each in arrays]
        masks = [np.zeros(each.shape, np.bool_) if each.doubt is None else each.doubt for each in a]
        doubt = function(masks, *args, **more) if any(each.doubt is not None for each in a) else None
        keys = function([each.keys for each in a], *args, **more)
        return Shadow(t, keys, function([each.values for each in a], *args, **more), doubt)

    return join


def _reordered(function: Callable[..., Array]) -> Callable[..., Shadow]:
    def move(t: Trace, a: Any, *args: Any, **more: Any) -> Shadow:
        plain = {name: plain_index(each) for name, each in more.items()}
        found = t.lift(a).moved(function, *map(plain_index, args), **plain)
        found.doubt = _or(found.doubt, doubt_of_index(args[:1], found.shape))
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


def _zeroed(function: Callable[..., Array]) -> Callable[..., Shadow]:
    """tril, triu: elements elsewhere are 0."""

    def make(t: Trace, a: Any, k: int = 0) -> Shadow:
        return t.lift(a).moved(function, k)

    return make


def _split(function: Callable[..., Any]) -> Callable[..., list[Shadow]]:
    def cut(t: Trace, a: Shadow, *args: Any, **more: Any) -> list[Shadow]:
        keys, values = function(a.keys, *args, **more), function(a.values, *args, **more)
        return [Shadow(t, *pair) for pair in zip(keys, values, strict=True)]

    return cut


def _padded(t: Trace, a: Shadow, width: Any, mode: str = "constant", **more: Any) -> Shadow:
    if mode == "constant" and np.any(more.get("constant_values", 0)):
        raise refused("np.pad with other constants than 0 has no formula here: use np.concatenate")
    return a.moved(np.pad, width, mode=mode)


def _outer(t: Trace, a: Any, b: Any) -> Shadow:
    a, b = (t.lift(each).moved(np.reshape, -1) for each in (a, b))
    return _ufunc(t, np.multiply, a.moved(np.expand_dims, 1), b.moved(np.expand_dims, 0))


def _round(t: Trace, a: Any, decimals: int = 0, **more: Any) -> Shadow:
    if decimals:
        raise refused("np.round to decimals has no formula")
    return _ufunc(t, np.rint, t.lift(a))


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
            a = _ufunc(t, np.trunc, a)
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
    *(
        np.transpose,
        np.swapaxes,
        np.moveaxis,
        np.reshape,
        np.ravel,
        np.expand_dims,
        np.squeeze,
        np.broadcast_to,
    ),
    *(np.repeat, np.tile, np.flip, np.roll, np.take, np.take_along_axis, np.copy, np.diagonal, np.rot90),
    *(np.rollaxis, np.atleast_1d, np.atleast_2d, np.delete),
)
_JOINING = (np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack)
FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{function: _reordered(function) for function in _MOVING},
    **{function: _several(function) for function in _JOINING},
    **{function: _zeroed(function) for function in (np.tril, np.triu)},
    **{function: _split(function) for function in (np.split, np.array_split)},
    np.where: _where, np.clip: _clip, np.sum: _sum, np.mean: _mean, np.average: _mean, np.var: _variance,
    np.std: lambda t, *args, **more: np.sqrt(_variance(t, *args, **more)),
    np.max: _max, np.amax: _max, np.min: _min, np.amin: _min, np.prod: _prod, np.cumsum: _cumsum,
    np.argmax: _place_of_extreme(np.argmax, greatest=True),
    np.argmin: _place_of_extreme(np.argmin, greatest=False),
    np.argsort: lambda t, a, *args, **more: np.argsort(a.values, *args, **more),
    np.dot: lambda t, a, b: _matmul(t, t.lift(a), t.lift(b)), np.outer: _outer, np.einsum: _einsum,
    np.inner: lambda t, a, b: _matmul(t, t.lift(a), t.lift(b).moved(np.swapaxes, -1, -2)),
    np.zeros_like: _like(0.0), np.ones_like: _like(1.0), np.full_like: _like(0.0), np.empty_like: _like(0.0),
    np.pad: _padded, np.round: _round, np.around: _round,
    np.shape: lambda t, a: a.shape, np.ndim: lambda t, a: a.ndim, np.size: lambda t, a: a.size,
    np.any: lambda t, a, axis=None, keepdims=False: _REDUCED["logical_or"](t, a, axis, keepdims),
    np.all: lambda t, a, axis=None, keepdims=False: _REDUCED["logical_and"](t, a, axis, keepdims),
    np.nonzero: lambda t, a: np.nonzero(a.values), np.result_type: lambda t, *a: np.dtype(np.float64),
}  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    function.__name__: known
    for function, known in FUNCTIONS.items()
    if hasattr(np.ndarray, function.__name__)
} | {
    "astype": _converted,
    "view": _viewed,
    "flatten": _reordered(np.ravel),
    "item": lambda t, a: a.values.item(),
    "tolist": lambda t, a: a.values.tolist(),
    "reshape": lambda t, a, *shape: a.moved(np.reshape, shape[0] if len(shape) == 1 else shape),
    "transpose": lambda t, a, *axes: a.moved(np.transpose, axes[0] if len(axes) == 1 else axes or None),
    "max": _max,
    "min": _min,
}


def listed() -> str:
    """Return the names of what a reference may use."""
    functions = sorted({function.__name__ for function in FUNCTIONS})
    ufuncs = sorted({*_BINARY, *_UNARY, *_SPECIAL, *_COMPARED, *_TRUTHS, *_BITS} - {"erf", "erfc"})
    return ", ".join([*ufuncs, *functions])


def trace_of(reader: KeyReader, *, gauge: bool = False, scouting: bool = False) -> Trace:
    """Return an empty trace of a reference that may use these functions."""
    return Trace(reader, Answers(of_ufunc, FUNCTIONS, METHODS, listed), gauge=gauge, scouting=scouting)
