"""Pure semantics: what a statement computes from registers, independent of how it is executed.

Statements that compute lane by lane, or load, have pure semantics beside their step; stores, matrix
instructions, branches and waits have none. Machine code is made of it (machine/run/native_blocks.py).
Knows registers by number; does not know paths or waves.
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
    """A source operand: a register by number, truncated to ``dtype`` if given; or a value from
    ``read(wave, path)``, which reads no register. ``constant``, of shape (), is a fixed value.
    ``negated`` applies to predicates.
    """

    register: int = NOWHERE
    dtype: np.dtype[Any] | None = None
    negated: bool = False
    read: Callable[..., Array] | None = None
    constant: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """A result narrower than its register: its type and the register's. Signed types are sign-extended."""

    value: np.dtype[Any]
    register: np.dtype[Any]


class Load(NamedTuple):
    """A load of ``words`` consecutive words of ``size`` bytes. The address is the source operand plus
    ``offset``, modulo 2**32 if ``narrow``.
    """

    space: str
    size: int
    words: int
    offset: int
    narrow: bool


class PureSemantics(NamedTuple):
    """``compute`` takes an array per source and returns an array per result, or more.

    None means that the results are the sources, or are loaded (``load``). ``widened`` has an entry per
    result, None if the register is as wide as the value. ``where`` takes sources and results and returns the
    lanes that the interpreter must execute, because they need a message.
    """

    compute: Callable[..., tuple[Array, ...]] | None
    sources: tuple[Source, ...]
    targets: tuple[int, ...]
    widened: tuple[Widening | None, ...] = ()
    where: Callable[..., Array] | None = None
    load: Load | None = None

    @property
    def plain(self) -> bool:
        """Whether it only computes, for all values, results as wide as their registers."""
        return self.load is None and self.where is None and not any(self.widened)
