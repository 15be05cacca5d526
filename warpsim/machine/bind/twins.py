"""What a statement computes, apart from how it is executed: the form from which stretches are compiled.

A statement that computes lane by lane has such a twin beside its step (machine/run/stretches.py); those of
memory, matrices, branches and barriers have none. Knows registers by number; does not know paths or waves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NOWHERE = -1  # the register of a result that is discarded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A register by number, cut to ``dtype`` where that is given; or what ``read`` returns of a wave and a
    path, without a look at registers. ``negated`` is of predicates.
    """

    register: int = NOWHERE
    dtype: np.dtype[Any] | None = None
    negated: bool = False
    read: Callable[..., npt.NDArray[Any]] | None = None


class Twin(NamedTuple):
    """``compute`` takes an array for each source and returns at least an array for each result;
    None stands for what returns what it takes.

    ``single`` is the same of one result, which it returns as it is.
    """

    compute: Callable[..., tuple[npt.NDArray[Any], ...]] | None
    sources: tuple[Source, ...]
    targets: tuple[int, ...]
    single: Callable[..., npt.NDArray[Any]] | None = None
