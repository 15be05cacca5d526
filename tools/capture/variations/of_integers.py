"""Variations of integer sums: clamped or wrapped anywhere on the way, at any limit, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsim.isa.codes import integers
from warpsim.isa.products import Operands

from ..candidates import computing, paired
from ..experiments.experiment import Trial
from ..operands import Array, Rng
from .sums import grouped
from .variation import Variation


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Sums of groups of columns, a sum so far clamped to ``low .. high`` after each.

    ``wraps`` wraps instead of clamping before the last step. ``product_bits``: of signed products, clamped; 0
    any. ``c_last``: C is added after all groups.
    """

    groups: tuple[tuple[int, ...], ...]
    low: int = -(1 << 31)
    high: int = (1 << 31) - 1
    wraps: bool = False
    product_bits: int = 0
    c_last: bool = False
    at_end: bool = True  # whether the whole is clamped


def summed(operands: Operands, steps: Steps) -> Array:
    """Return codes ``(batch, m, n)``."""
    form = operands.product
    products = integers(operands.a, form.a)[..., None] * paired(operands, integers(operands.b, form.b))
    if steps.product_bits:
        top = 1 << (steps.product_bits - 1)
        products = np.clip(products, -top, top - 1)
    c = integers(operands.c, form.c)
    total = np.zeros_like(c) if steps.c_last else c
    for number, group in enumerate(steps.groups):
        total = total + products[:, :, list(group)].sum(axis=2)
        if number < len(steps.groups) - 1 or steps.c_last:
            total = _wrapped(total) if steps.wraps else np.clip(total, steps.low, steps.high)
    total = total + c if steps.c_last else total
    if steps.at_end:
        total = np.clip(total, max(steps.low, -(1 << 31)), min(steps.high, (1 << 31) - 1))
    codes: Array = total & 0xFFFF_FFFF
    return codes


def _wrapped(total: Array) -> Array:
    half = 1 << 31
    wrapped: Array = ((total + half) & (2 * half - 1)) - half
    return wrapped


def settled(trial: Trial, steps: Steps) -> tuple[Any, ...]:
    """Return a key that two share where no input can tell them apart: the groups without the order inside
    them.
    """
    form = trial.form
    largest = form.stored_k << (2 * form.a.bits - 2)
    far = steps.low <= -(1 << 31) - largest and steps.high >= (1 << 31) + largest - 1
    one_step = len(steps.groups) == 1 and not steps.c_last
    never = one_step or (far and not steps.wraps)  # on the way
    inside = steps.high >= largest and steps.low <= -largest
    if steps.c_last and (steps.wraps or inside):  # sums of products alone reach no limit
        never = True
    if steps.wraps and not steps.at_end:  # wrapping once or often is the same
        never = True
    groups = None if never else tuple(frozenset(group) for group in steps.groups)
    ends = (max(steps.low, -(1 << 31)), min(steps.high, (1 << 31) - 1)) if steps.at_end else None
    limits = None if never else (steps.wraps or (steps.low, steps.high))
    product = 0 if steps.product_bits > 2 * form.a.bits - 1 else steps.product_bits
    return groups, ends, limits, product, steps.c_last and not never


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """So many of them."""
    seen = set[Steps]()
    while len(seen) < count:
        steps = _drawn(rng, trial)
        if steps not in seen:
            seen.add(steps)
            yield Variation(
                name=_words(steps),
                arithmetic=computing(lambda operands, _, steps=steps: summed(operands, steps)),  # type: ignore[misc]
                key=settled(trial, steps),
            )


def listed(trial: Trial) -> dict[str, Any]:
    """Return the keys of the candidates."""
    place = np.arange(trial.form.stored_k)
    found = {}
    for candidate in trial.candidates:
        name, _, order = candidate.name.partition(", ")
        if name in ("once", "never"):
            steps = Steps(groups=grouped(place, len(place)), at_end=name == "once")
        else:
            groups = grouped(place, int(name.removeprefix("every ")))
            steps = Steps(groups=groups[::-1] if order else groups)
        found[candidate.name] = settled(trial, steps)
    return found


def _drawn(rng: Rng, trial: Trial) -> Steps:
    stored = trial.form.stored_k
    place = np.arange(stored)
    stride = int(rng.choice([1, 2, 4, 8]))
    orders = (place, place[::-1], np.argsort(place % stride, kind="stable"), rng.permutation(stored))
    order = orders[int(rng.integers(len(orders)))]
    limit = int(rng.choice([31, 31, 31, 30, 32, 33, 40]))
    off = int(rng.choice([0, 0, 0, 1, -1]))
    return Steps(
        groups=grouped(order, int(rng.integers(1, stored + 1))),
        low=-(1 << limit) - off,
        high=(1 << limit) - 1 + int(rng.choice([0, off])),
        wraps=bool(rng.random() < 0.2),
        product_bits=int(rng.choice([0, 0, 0, trial.form.a.bits * 2 - 1, trial.form.a.bits * 2 - 2])),
        c_last=bool(rng.random() < 0.3),
        at_end=bool(rng.random() < 0.85),
    )


def _words(steps: Steps) -> str:
    lengths = f"steps of {len(steps.groups[0])} from {steps.groups[0][:3]}"
    ways = [name for name in ("wraps", "c_last") if getattr(steps, name)]
    return f"{lengths}, {steps.low}..{steps.high}, products of {steps.product_bits} bits, {' '.join(ways)}"
