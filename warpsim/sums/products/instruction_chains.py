"""Chains of instructions, each executed over all of D before the next, and such chains with NumPy alone.

Knows operands of instructions along k; does not know which way is fast for which rule.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.errors import present
from ...isa.products import Codes, Operands
from ...isa.rules import Rule
from ...isa.sparsity import stored_columns
from ..arithmetic.numerics import compute_uncompiled
from .arguments import Request, padded
from .partial_results import number, rounded


def chained_uncompiled(request: Request, promote_every: int | None, threads: int) -> Codes:
    """Return the result of a chain with NumPy alone, in this thread: slower, but without delay."""
    if promote_every:
        return promoted(request, promote_every, lambda part: chained_uncompiled(part, None, threads))
    return chain_of(request, 1, compute_uncompiled)


def promoted(request: Request, every: int, chained: Callable[[Request], Codes]) -> Codes:
    """Return the sum of chains of so many instructions, each from zero, and of C."""
    form = request.instruction
    main = number(np.zeros(request.shape, form.d.code_dtype) if request.c is None else request.c, form.d)
    for first in range(0, request.instructions, every):
        part = request.part(first, min(first + every, request.instructions))
        with np.errstate(all="ignore"):
            main = main + number(chained(part), form.d)
    return rounded(main, form.d)


def chain_of(request: Request, each: int, compute: Callable[[Operands, Rule], Codes]) -> Codes:
    """Return the chain over D; ``compute`` takes so many instructions along k at once."""
    form = request.instruction
    c = np.zeros(request.shape, form.c.code_dtype) if request.c is None else request.c
    for i in range(0, request.instructions, max(each, 1)):
        c = compute(_operands(request.part(i, i + each), c), request.rule)[0]
    return c


def _operands(part: Request, c: Codes) -> Operands:
    """Return instructions along k as a batch of 1, filled with zeros."""
    form = part.instruction
    stored = part.instructions * form.stored_k
    columns = None
    if form.pattern is not None:
        indices = present(part.indices, "indices")
        missing = stored // form.pattern.unit - indices.shape[1]
        filler = np.tile(np.arange(form.pattern.kept, dtype=np.uint8), missing // form.pattern.kept)
        indices = np.concatenate([indices, np.tile(filler, (len(indices), 1))], axis=1)
        columns = stored_columns(indices, form.pattern)[None]
    unit = form.scale.bias if form.scale else 0
    chunks = max(form.scale_chunks, 1)
    return Operands(
        product=form.product,
        a=padded(part.a, 1, form.stored_k)[None],
        b=padded(part.b, 0, form.shape.k)[None],
        c=c[None],
        columns=columns,
        scale_a=None if part.scale_a is None else padded(part.scale_a, 1, chunks, unit)[None],
        scale_b=None if part.scale_b is None else padded(part.scale_b, 0, chunks, unit)[None],
    )
