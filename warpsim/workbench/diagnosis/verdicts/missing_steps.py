"""Steps along k that no matrix instruction is given, where what they would add is what outputs lack.

Knows matrices and outputs; does not execute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ....base.errors import Location
from ....programs.launch.array_agreement import agree
from ..origins.anchors import Anchored
from ..origins.element_origins import Origins
from ..origins.unused_elements import ranges_of
from .launch_causes import BY_TAGS, Cause, whole_matrix
from .output_errors import OutputError
from .tried_causes import Trial

_NEAR = 2.0**-9  # of sums in another order, relative to the largest
_BY_VALUE = "the products of these k, computed here, are what the output lacks"
_FIX = "let the loop over k go on to its end: check the number of steps and the condition of the loop"


def missing_steps(trial: Trial, origins: Origins, errors: Sequence[OutputError]) -> Iterator[Cause]:
    """Yield k of A and B that are left out alike, where their products make an output as expected."""
    for a, b, at in _pairs(origins):
        A, B = (whole_matrix(trial.launch, side[0], axis) for side, axis in ((a, "columns"), (b, "rows")))
        if A is None or B is None or A.shape[1] != B.shape[0]:
            continue
        used = _used(a, A.shape[1]) | _used(b, A.shape[1])
        left_out = np.asarray(A, np.float64)[:, ~used] @ np.asarray(B, np.float64)[~used]
        if left_out.any() and any(_completes(error, left_out) for error in errors):
            yield _cause(a, b, ~used, at)
            return


def _completes(error: OutputError, left_out: npt.NDArray[np.float64]) -> bool:
    """Return whether an output is as expected with what is left out."""
    if error.given.shape != left_out.shape:
        return False
    whole = (error.given.astype(np.float64) + left_out).astype(error.expected.dtype)
    return bool(agree(whole, error.expected, max(error.tolerance, _NEAR)).all())


def _pairs(origins: Origins) -> Iterator[tuple[list[Anchored], list[Anchored], Location]]:
    """Yield all tiles of A and of B of one pair of buffers, with the first statement; of dense products."""
    found: dict[tuple[str, str], tuple[list[Anchored], list[Anchored], Location]] = {}
    for given in origins.statements:
        a, b = (given[role].tiles if role in given else None for role in "ab")
        if a is None or b is None or a.tiles.operand.instruction.sparse or a.tiles.operand.instruction.scale:
            continue
        names = given["a"].buffer, given["b"].buffer
        if names[0] is not None and names[1] is not None:
            key = names[0].name, names[1].name
            own = found.setdefault(key, ([], [], a.tiles.operand.given.location))
            own[0].append(a)
            own[1].append(b)
    yield from found.values()


def _used(sides: Sequence[Anchored], size: int) -> npt.NDArray[np.bool_]:
    """Return which k of a matrix arrive at all."""
    used = np.zeros(size, np.bool_)
    for side in sides:
        k = side.tiles.inner[side.tiles.valid]
        used[k[k < size]] = True
    return used


def _cause(
    a: Sequence[Anchored], b: Sequence[Anchored], left_out: npt.NDArray[np.bool_], at: Location
) -> Cause:
    texts = []
    for side in (a[0].tiles, b[0].tiles):
        assert side.operand.buffer is not None
        texts.append(f"{side.inner_axis} {ranges_of(left_out)} of {side.operand.buffer.name}")
    return Cause(
        kind="unused",
        message=f"no matrix instruction is given {' or '.join(texts)}: D lacks their products",
        location=at,
        evidence=f"{BY_TAGS}; {_BY_VALUE}",
        fix=_FIX,
    )
