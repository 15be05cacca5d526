"""Sentences on steps and tiles of a loop: weights, and orders in which operands are read.

An order is said by the atom of the step that has its table. Knows no values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from ..dumps.wrong_elements import ranges
from .atoms import Atom, atoms
from .views import Index, view

_SHOWN = 8  # steps that are listed
_ZERO = 2.0**-16
_EQUAL = 2.0**-10  # share by which the factors of a scale in the loop may differ


# --- weights ------------------------------------------------------------------------------------------------


def weights_text(weights: Sequence[float], of_c: float) -> str:
    """Return how often each step is added, and C, where that is not once."""
    texts = [*_cleared(weights, of_c), *_of_steps(weights)]
    if not (of_c == 0 and texts and texts[0].startswith("accumulators")):
        named = {0.0: "C not added (forgotten)", 2.0: "C twice"}
        texts += [] if of_c == 1 else [named.get(of_c, f"C times {of_c:.6g} (beta)")]
    return "; ".join(texts)


def _cleared(weights: Sequence[float], of_c: float) -> list[str]:
    """Return that accumulators are cleared, where the first steps and C are left out, and nothing else."""
    first = next((at for at, weight in enumerate(weights) if weight), len(weights))
    if of_c or not 0 < first < len(weights) or any(weight != 1 for weight in weights[first:]):
        return []
    every = ", or in every step (scale-d)" * (first == len(weights) - 1)
    return [f"accumulators cleared (reset) before step {first}{every}"]


def _of_steps(weights: Sequence[float]) -> list[str]:
    last = len(weights) - 1
    if _cleared(weights, 0) and len(set(weights)) == 2:
        first = next(at for at, weight in enumerate(weights) if weight)
        return [f"{_listed(range(first))} left out (missing)" + ": the loop starts late" * (first > 1)]
    if len(set(weights)) == 1 and weights[0] not in (0, 1):
        return [f"A·B is taken times {weights[0]:.6g} (alpha)"]
    if text := _scaled_in_the_loop(weights):
        return [text]
    texts = []
    for weight in dict.fromkeys(weights):
        at = [step for step, other in enumerate(weights) if other == weight]
        if weight != 1:
            ends = weight == 0 and at == list(range(at[0], last + 1)) and at[0] > 0 and len(at) > 1
            texts.append(f"{_listed(at)}{_times(weight)}" + ": the loop ends early" * ends)
    return texts


def _scaled_in_the_loop(weights: Sequence[float]) -> str:
    """Return that a scale is applied after, or before, every step, where weights are powers of it."""
    ratios = [after / before for before, after in pairwise(weights) if before]
    if len(weights) < 3 or len(ratios) < len(weights) - 1 or abs(ratios[0] - 1) < _EQUAL:
        return ""
    if max(ratios) - min(ratios) > _EQUAL * max(map(abs, ratios)):
        return ""
    factor = 1 / ratios[0]
    after = abs(weights[-1] - factor) <= _EQUAL * abs(factor)
    when = "after every step" if after else "before every step but the first"
    return f"a scale of {factor:.6g} is applied in the loop, {when}, and not once in the end"


def _times(weight: float) -> str:
    if abs(weight) < _ZERO:
        return " left out (missing)"
    return " twice" if weight == 2 else f" times {weight:.6g}"


def _listed(steps: Sequence[int]) -> str:
    shown = list(steps)
    if len(shown) == 1:
        return f"step {shown[0]}"
    if shown == list(range(shown[0], shown[-1] + 1)) and len(shown) > 2:
        return f"steps {shown[0]} to {shown[-1]}"
    return f"steps {', '.join(map(str, shown[:_SHOWN]))}" + ", …" * (len(shown) > _SHOWN)


# --- weights in some lines or tiles ------------------------------------------------------------------------


def line_text(weights: Any, name: str) -> str:
    """Return which steps are not added once in which rows, or columns: ``weights (lines, steps)``."""
    wrong = weights != 1
    groups: dict[bytes, list[int]] = {}
    for step in range(weights.shape[1]):
        if wrong[:, step].any():
            groups.setdefault(wrong[:, step].tobytes(), []).append(step)
    return "; ".join(_line_text(weights[:, at[0]], wrong[:, at[0]], at, name) for at in groups.values())


def _line_text(weights: Any, wrong: Any, steps: list[int], name: str) -> str:
    where = "" if wrong.all() else f" in {name}s {ranges(np.flatnonzero(wrong).tolist())}"
    low, high = float(weights[wrong].min()), float(weights[wrong].max())
    if low == high:
        return f"{_listed(steps)}{_times(low)}{where}"
    return f"{_listed(steps)}: a factor of its own in each {name}{where}, from {low:.6g} to {high:.6g}"


def k_text(weights: Any) -> str:
    """Return which k are not added once: runs, a period, or how far their factors reach."""
    ends = np.flatnonzero(np.diff(weights) != 0).tolist()
    starts, ends = [0, *(at + 1 for at in ends)], [*ends, len(weights) - 1]
    if len(starts) <= _SHOWN:
        runs = ((a, b, float(weights[a])) for a, b in zip(starts, ends, strict=True) if weights[a] != 1)
        return "; ".join(f"k {a}" + f" to {b}" * (b > a) + _times(weight) for a, b, weight in runs)
    for period in (1 << bit for bit in range(1, 7)):
        own = weights[:period]
        if len(weights) % period == 0 < len(weights) - period and (weights.reshape(-1, period) == own).all():
            return "; ".join(
                f"k % {period} in {ranges(np.flatnonzero(own == weight).tolist())}{_times(weight)}"
                for weight in dict.fromkeys(own.tolist())
                if weight != 1
            )
    return f"every k has a factor of its own, from {weights.min():.6g} to {weights.max():.6g}"


# --- orders ------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def orders(size: int) -> tuple[Index, tuple[Atom, ...]]:
    """Return the tables ``(M, size)`` of maps of a number below ``size``, -1 for nothing, and their atoms."""
    every = tuple(atoms([view("steps", [("step", np.arange(size))])]))
    return np.stack([atom.table for atom in every]), every


def order_text(order: Sequence[int], what: str, number: str = "step") -> str:
    """Return which step, or tile, each step or tile reads ``what`` of, ``-1``: zero."""
    moved = [at for at, read in enumerate(order) if read != at]
    if len(moved) == 1 and order[moved[0]] >= 0:
        return f"{number} {moved[0]} reads {what} of {number} {order[moved[0]]}"
    if len(moved) == 2 and [order[at] for at in moved] == moved[::-1] and len(order) > 2:
        return f"{number}s {moved[0]} and {moved[1]} read each other's {what}"
    tables, every = orders(len(order))
    same = np.flatnonzero((tables == np.array(order)).all(axis=1))
    said = _SENTENCES.get(every[int(same[0])].kind) if len(same) else None
    far = {order[at] - at for at in moved}
    if said is None and len(far) == 1 and number == "step" and all(order[at] >= 0 for at in moved):
        by = far.pop()
        steps = f"{abs(by)} step{'s'[: abs(by) > 1]}"
        return f"{_listed(moved)} read {what} of {steps} {'before' if by < 0 else 'after'}"
    if said is None:
        shown = ", ".join("none" if at < 0 else str(at) for at in order[:_SHOWN])
        return f"{number}s read {what} of {number}s {shown}" + ", …" * (len(order) > _SHOWN)
    return said(every[int(same[0])].facts, what, number)


Sentence = Callable[[Mapping[str, Any], str, str], str]


def _by(end: str) -> Sentence:
    def said(facts: Mapping[str, Any], what: str, number: str) -> str:
        by, size = facts["by"], facts["size"]
        by = by - size if by > size // 2 else by
        far = f"the {number} {abs(by)} {'after' if by > 0 else 'before'}"
        which = {1: f"the next {number}", -1: f"the previous {number}"}.get(by, far)
        return f"every {number} reads {what} of {which}{end}"

    return said


def _of_blocks(facts: Mapping[str, Any], what: str, number: str) -> str:
    way = {1: "the next", -1: "the previous"}[facts["by"]]
    stage = f"its stage of {facts['width']} {number}s"
    return f"every {number} reads {what} of {way} {number} of {stage}, around its end"


def _in_reverse(facts: Mapping[str, Any], what: str, number: str) -> str:
    return f"every {number} reads {what} of its stage of {facts['width']} {number}s in reverse"


def _xor(facts: Mapping[str, Any], what: str, number: str) -> str:
    by = facts["by"]
    if by == 1:
        return f"every {number} reads {what} of the other (of every two) {number}"
    if by == facts["size"] - 1:
        return f"{number}s read {what} in reverse order"
    if by & (by + 1) == 0:
        return _in_reverse({"width": by + 1}, what, number)
    return f"every {number} reads {what} of {number} ^ {by}" + (
        f": of the other stage (two stages of {by} {number}s exchanged)" if by & (by - 1) == 0 else ""
    )


_SENTENCES: dict[str, Sentence] = {
    "xor": _xor,
    "reversed": lambda f, what, number: f"{number}s read {what} in reverse order",
    "rotated": _by(", around the end"),
    "clamped": _by(""),
    "shifted": _by(", and zero beyond the end"),
    "constant": lambda f, what, number: f"every {number} reads {what} of {number} {f['value']}",
    "rounded down": lambda f, what, number: (
        f"every {number} reads {what} of the first {number} of its stage of {f['to']} {number}s "
        "(not advanced)"
    ),
    "cleared": lambda f, what, number: (
        f"every {number} reads {what} of {number} & ~{1 << f['bit']}"
        + f": of the first of its stage of 2 {number}s (not advanced)" * (f["bit"] == 0)
    ),
    "remainder": lambda f, what, number: (
        f"every stage of {f['of']} {number}s reads {what} of the first stage"
    ),
    "divided": lambda f, what, number: f"{what} is advanced once in {f['by']} {number}s",
    "reversed in blocks": _in_reverse,
    "rotated in blocks": _of_blocks,
    "scaled": lambda f, what, number: f"{what} is advanced by {f['factor']} {number}s in every {number}",
}
