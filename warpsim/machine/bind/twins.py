"""What a statement computes, apart from how it is executed: the form from which stretches are compiled.

A statement that computes lane by lane, or loads, has such a twin beside its step (machine/run/stretches.py);
those that store, multiply matrices, branch or wait have none. Knows registers by number; does not know paths
or waves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

NOWHERE = -1  # the register of a result that is discarded
Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A register by number, cut to ``dtype`` where that is given; or what ``read`` returns of a wave and a
    path, without a look at registers: always ``constant``, shape (), where that is given. ``negated`` is of
    predicates.
    """

    register: int = NOWHERE
    dtype: np.dtype[Any] | None = None
    negated: bool = False
    read: Callable[..., Array] | None = None
    constant: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """A register that is wider than the value that is written to it: ``value`` and ``register`` are types
    that extend the sign where they are signed.
    """

    value: np.dtype[Any]
    register: np.dtype[Any]


class Load(NamedTuple):
    """A load of so many ``words`` of ``size`` bytes, which lie in a row: the address is that of the twin's
    source plus ``offset``, modulo 2**32 where it is ``narrow``.
    """

    space: str
    size: int
    words: int
    offset: int
    narrow: bool


class Twin(NamedTuple):
    """``compute`` takes an array for each source and returns at least an array for each result;
    None stands for what returns what it takes, or, with ``load``, for that load.

    ``single`` is the same of one result, which it returns as it is. ``widened`` is of each result, None where
    the register is as wide as the value. ``where`` takes sources and results and returns in which lanes the
    statement has to be executed by itself, since something is said of these.
    """

    compute: Callable[..., tuple[Array, ...]] | None
    sources: tuple[Source, ...]
    targets: tuple[int, ...]
    single: Callable[..., Array] | None = None
    widened: tuple[Widening | None, ...] = ()
    where: Callable[..., Array] | None = None
    load: Load | None = None

    @property
    def plain(self) -> bool:
        """Whether it computes whatever the values are, and its results are as wide as their registers."""
        return self.load is None and self.where is None and not any(self.widened)
