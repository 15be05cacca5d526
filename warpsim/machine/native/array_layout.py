"""How arrays of NumPy lie in memory, as machine code finds their elements: the beginning of its functions.

An array is an object of Python, behind whose head follow the pointer to its elements, the number of its
axes, and pointers to lengths and strides (NumPy's C-API, "PyArrayObject"). Does not know what is done with
elements.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np


def prologue(arrays: Sequence[tuple[str, int]], numbers: Sequence[str]) -> list[str]:
    """Return the lines that take pointers and numbers, and look whether elements have gaps between them."""
    lines = ["entry:"]
    gaps = ["0"]
    head = object.__basicsize__  # of every object; an array continues with its pointer (NumPy's C-API)
    for place, (name, size) in enumerate(arrays):
        item = f"%item{place}"
        lines += [
            f"{item}.at = getelementptr i64, ptr %objects, i64 {place}",
            f"{item}.is = load i64, ptr {item}.at",
            f"{item} = inttoptr i64 {item}.is to ptr",
            f"{item}.data = getelementptr i8, ptr {item}, i64 {head}",
            f"{name} = load ptr, ptr {item}.data",
        ]
        if size:
            lines += _gap(item, size, head)
            lines.append(f"{item}.gaps = or i64 {gaps[-1]}, {item}.gap")
            gaps.append(f"{item}.gaps")
    for place, name in enumerate(numbers):
        lines.append(f"%word{place} = getelementptr i64, ptr %numbers, i64 {place}")
        lines.append(f"{name} = load i64, ptr %word{place}")
    lines.append(f"%apart = icmp ne i64 {gaps[-1]}, 0")
    lines += ["br i1 %apart, label %gaps, label %whole", "whole:"]
    return [line if line.endswith(":") else f"  {line}" for line in lines]


def _gap(item: str, size: int, head: int) -> list[str]:
    """Return the lines that look whether an array has another shape than (lanes,), or gaps.

    Behind the pointer of an array follow the number of its axes, and pointers to lengths and strides, which
    an array without axes may lack.
    """
    return [
        f"{item}.axes.at = getelementptr i8, ptr {item}, i64 {head + 8}",
        f"{item}.axes = load i32, ptr {item}.axes.at",
        f"{item}.row = icmp eq i32 {item}.axes, 1",
        f"{item}.lengths.at = getelementptr i8, ptr {item}, i64 {head + 16}",
        f"{item}.lengths.is = load ptr, ptr {item}.lengths.at",
        f"{item}.lengths = select i1 {item}.row, ptr {item}.lengths.is, ptr %objects",
        f"{item}.length = load i64, ptr {item}.lengths",
        f"{item}.strides.at = getelementptr i8, ptr {item}, i64 {head + 24}",
        f"{item}.strides.is = load ptr, ptr {item}.strides.at",
        f"{item}.strides = select i1 {item}.row, ptr {item}.strides.is, ptr %objects",
        f"{item}.stride = load i64, ptr {item}.strides",
        f"{item}.longer = xor i64 {item}.length, %lanes",
        f"{item}.wider = xor i64 {item}.stride, {size}",
        f"{item}.deeper = xor i32 {item}.axes, 1",
        f"{item}.deep = zext i32 {item}.deeper to i64",
        f"{item}.other = or i64 {item}.longer, {item}.wider",
        f"{item}.gap = or i64 {item}.other, {item}.deep",
    ]


@cache
def arrays_are_as_expected() -> bool:
    """Return whether arrays lie in memory as functions take them: pointer, axes, lengths, strides."""
    array = np.zeros((5, 3), np.uint16)[:, 1]
    at = id(array) + object.__basicsize__
    pointer, axes, lengths, strides = (
        ctypes.c_size_t.from_address(at).value,
        ctypes.c_int32.from_address(at + 8).value,
        ctypes.c_size_t.from_address(at + 16).value,
        ctypes.c_size_t.from_address(at + 24).value,
    )
    return (pointer, axes) == (array.ctypes.data, 1) and (
        ctypes.c_int64.from_address(lengths).value,
        ctypes.c_int64.from_address(strides).value,
    ) == (5, 6)
