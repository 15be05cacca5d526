"""Elements of A and B that no matrix instruction is given although others of their rows and columns are.

D lacks their products then. What may be meant is not a finding: arrays that are larger than the launch needs,
triangular and banded matrices, and operands in which something else is wrong. Compressed A is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .anchors import Anchored
from .loaded_operands import Mask, row_length
from .packing_checks import PackingFinding, Products, name_of, warps_text

_LISTED = 4  # ranges of one axis


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One matrix in all its statements: ``used (rows of A or columns of B, k)``."""

    parts: tuple[Anchored, ...]

    @property
    def name(self) -> str:
        """The buffer."""
        return name_of(self.parts[0])

    @property
    def axes(self) -> tuple[str, str]:
        """What its lines along m or n are called in the buffer, and its k."""
        return self.parts[0].tiles.outer_axis, self.parts[0].tiles.inner_axis

    @property
    def lines(self) -> Mask:
        """Which rows of A or columns of B arrive at all."""
        return np.asarray(self.used.any(axis=1))

    @property
    def steps(self) -> Mask:
        """Which k arrive at all."""
        return np.asarray(self.used.any(axis=0))

    @cached_property
    def used(self) -> Mask:
        """Which elements arrive."""
        operand = self.parts[0].tiles.operand
        length = row_length(operand.source, operand.width)
        rows = 8 * operand.source.size // operand.width // length
        used = np.zeros((rows, length) if self.axes[1] == "columns" else (length, rows), np.bool_)
        for part in self.parts:
            valid = part.tiles.valid
            used[part.tiles.outer[valid], part.tiles.inner[valid]] = True
        return used

    def finding(self, message: str) -> PackingFinding:
        """Return what is found, at the first of its statements."""
        return PackingFinding.of(self.parts[0].tiles.operand, "unused", message)


def unused_elements(
    products: Sequence[Products], single: frozenset[str], found: Sequence[PackingFinding]
) -> Iterator[PackingFinding]:
    """Yield elements whose products D lacks; ``single`` are buffers that are one operand of such products
    alone. Nothing where anything is ``found`` already.
    """
    pairs: dict[tuple[str, str], list[Products]] = {}
    for product in products:
        pairs.setdefault((name_of(product.a), name_of(product.b)), []).append(product)
    for names, group in pairs.items():
        others = [each for pair in pairs if pair != names for each in pair]
        if found or not single.issuperset(names) or set(names) & set(others) or not _plain(group):
            continue
        a, b = (_Side(parts=parts) for parts in zip(*((each.a, each.b) for each in group), strict=True))
        if a.used.shape[1] == b.used.shape[1]:
            yield from _holes(a, b)
            yield from _left_out(a, b)
            yield from _computed_again(group, a, b)


def _plain(group: Sequence[Products]) -> bool:
    """Return whether all tiles are of dense matrices of two axes, k along the same axis, and in order."""
    for parts in ([each.a for each in group], [each.b for each in group]):
        for part in parts:
            buffer = part.tiles.operand.buffer
            plain = buffer is not None and len(buffer.shape) == 2 and bool(part.clean.all())
            same_axis = part.tiles.inner_axis == parts[0].tiles.inner_axis
            if not plain or not same_axis or part.tiles.operand.instruction.sparse:
                return False
    return True


def _holes(a: _Side, b: _Side) -> Iterator[PackingFinding]:
    """Yield elements of a matrix that are not used where other k of their line are, and their k elsewhere."""
    for side, other in ((a, b), (b, a)):
        missing: Mask = ~side.used & side.lines[:, None] & other.steps
        if not missing.any() or _staircase(side.used[side.lines]):
            continue
        outer, inner = side.axes
        lines, steps = (np.asarray(missing.any(axis=axis)) for axis in (1, 0))
        where = f"{outer} {ranges_of(lines)}, {inner} {ranges_of(steps)}"
        whole = missing[np.ix_(lines, steps)].all()
        count = "" if whole else f"{int(missing.sum())} elements in "
        yield side.finding(
            f"no matrix instruction is given {count}{where} of {side.name}, though it is given other k of "
            f"these {outer} and {other.name} of this k: D lacks their products"
        )


def _staircase(used: Mask) -> bool:
    """Return whether each line is used from one k to another, both ever later or ever earlier: a triangle or
    a band, or all lines alike.
    """
    first = used.argmax(axis=1)
    last = used.shape[1] - used[:, ::-1].argmax(axis=1)
    steps = np.diff(first), np.diff(last)
    together = bool((last - first == used.sum(axis=1)).all())
    return together and (all((by >= 0).all() for by in steps) or all((by <= 0).all() for by in steps))


def _left_out(a: _Side, b: _Side) -> Iterator[PackingFinding]:
    """Yield k of both matrices that are left out between others."""
    used = a.steps
    places = np.flatnonzero(used)
    if not places.size or (used != b.steps).any():
        return
    between = ~used
    between[: places[0]] = between[places[-1] + 1 :] = False
    if between.any():
        between[places[-1] + 1 :] = ~used[places[-1] + 1 :]
        yield a.finding(
            f"no matrix instruction is given {a.axes[1]} {ranges_of(between)} of {a.name} or {b.axes[1]} "
            f"{ranges_of(between)} of {b.name}: these k are left out between others"
        )


def _computed_again(group: Sequence[Products], a: _Side, b: _Side) -> Iterator[PackingFinding]:
    """Yield rows of A or columns of B that are never used where the others are used by as many more warps."""
    keys = [np.column_stack([each.sums[:, 4:], each.a.inner]) for each in group]
    places = np.concatenate([each.a.tiles.operand.places[:, :4] for each in group])
    _, number, counts = np.unique(np.concatenate(keys), axis=0, return_inverse=True, return_counts=True)
    times = int(counts.max(initial=0))
    if times < 2 or (counts != times).any():
        return
    alike = np.column_stack([number.reshape(-1), places])
    if len(np.unique(alike, axis=0)) < len(alike):
        return  # by one warp: reported as repeated
    for side, other in ((a, b), (b, a)):
        lines = side.lines
        if lines.sum() * times == len(lines) and other.lines.all():
            same: npt.NDArray[np.int64] = places[number.reshape(-1) == number.reshape(-1)[0]]
            yield side.finding(
                f"no matrix instruction is given {side.axes[0]} {ranges_of(~lines)} of {side.name}: "
                f"{times} warps multiply the same {side.axes[0]} "
                f"with the same {other.axes[0]} of {other.name} "
                f"({warps_text(same)} of CTA{_ctas(same)})"
            )


def _ctas(places: npt.NDArray[np.int64]) -> str:
    different = np.unique(places[:, :3], axis=0).tolist()
    return "s"[: len(different) != 1] + " " + ", ".join(f"({', '.join(map(str, cta))})" for cta in different)


def ranges_of(places: Mask) -> str:
    """Return ``0..7, 16..23``: the places that are true, the first few of their ranges."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], places, [False]]).astype(np.int8))).reshape(-1, 2)
    texts = [f"{start}..{end - 1}" for start, end in edges[:_LISTED].tolist()]
    return ", ".join(texts) + ", …" * (len(edges) > _LISTED)
