"""Texts of layouts read back: CuTe's notation and closed formulas as numbers."""

import re
from functools import cache
from itertools import product

CUTE = re.compile(
    r"\(T(\d+),V(\d+)\) -> \([MN](\d+),[KNC](\d+)\)  (\S+):(\S+?)(?:  lane = (\S+):(\S+)(?: \+ (\d+))?)?"
)


def leaves(text):
    """Extents or strides of the modes of one level of brackets, each as a list."""
    value = eval(text, {"__builtins__": {}})
    return [list(mode) if isinstance(mode, tuple) else [mode] for mode in value]


def offset(shape, stride, index):
    """What an index adds, digit by digit."""
    total = 0
    for extent_, stride_ in zip(shape, stride, strict=True):
        total, index = total + stride_ * (index % extent_), index // extent_
    assert index == 0
    return total


def mode(text):
    """Extents or strides of one mode as a list."""
    value = eval(text, {"__builtins__": {}})
    return list(value) if isinstance(value, tuple) else [value]


def read_cute(text):
    """(lane, value) -> (row, column) as the text says, and the sizes of its codomain."""
    *sizes, shape, stride, lane_shape, lane_stride, first = CUTE.fullmatch(text).groups()
    threads, values, rows, columns = map(int, sizes)
    (t_shape, v_shape), (t_stride, v_stride) = leaves(shape), leaves(stride)
    places_ = {}
    for thread, value in product(range(threads), range(values)):
        number = offset(t_shape, t_stride, thread) + offset(v_shape, v_stride, value)
        lane = offset(mode(lane_shape), mode(lane_stride), thread) if lane_shape else thread
        places_[lane + int(first or 0), value] = (number % rows, number // rows)
    return places_, (rows, columns)


def evaluated(text, values):
    """A printed formula as a number: ``/`` divides integers, ``%laneid`` is a name."""
    return eval(_compiled(text), {"__builtins__": {}}, values)


@cache
def _compiled(text):
    return compile(text.replace("%laneid", "laneid").replace("/", "//"), "formula", "eval")


def with_names(names, values):
    """Values with those of the names that a formula defines."""
    for line in names:
        name, _, text = line.partition(" = ")
        values[name] = evaluated(text, values)
    return values
