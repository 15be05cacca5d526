"""Products of matrices of bits: populations of words that 64 elements along k share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._jit import Array, kernel
from .llvm.vectors import I64, cgutils, intrinsic, ir, types


@intrinsic
def _population(typing: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the number of set bits of an int64."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(I64, [I64])
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.ctpop.i64"), values)

    return types.int64(types.int64), emit


@kernel
def add_populations(a: Array, b: Array, exclusive: bool, total: Array) -> None:
    """Add to ``total (m, n)`` int64 the set bits of AND or XOR of ``a (m, words)`` and ``b (words, n)``
    int64.
    """
    words, columns = b.shape
    for i in range(a.shape[0]):
        row = total[i]
        for word in range(words):
            x, of_b = a[i, word], b[word]
            if exclusive:
                for j in range(columns):
                    row[j] += _population(x ^ of_b[j])
            else:
                for j in range(columns):
                    row[j] += _population(x & of_b[j])
