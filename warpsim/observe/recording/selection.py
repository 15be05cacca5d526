"""The executions of statements that a user selects: ``cta=0,0 warp=1 line=120 step=3``, each optional.

Several CTAs, such as those of a cluster, are several words: ``cta=0 cta=1``. Knows words and places in a
launch; does not know what is done with what is chosen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ...base.errors import Location, OperandError
from ...isa.warps import WARP
from ...machine.state.lanes import Mask

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions
    from ...machine.run.wave import Wave

_WORD = re.compile(r"\S+")
_NUMBER = re.compile(r"[0-9]{1,10}")
_NAMES = ("cta", "warp", "line", "step")
_MEANINGS = {
    "cta": "one to three numbers from 0, such as cta=0,1",
    "warp": "a number from 0, such as warp=1",
    "line": "a line of the text from 1, such as line=120",
    "step": "a number from 0: which execution of a statement by a warp, such as step=3",
}

Warps = npt.NDArray[np.intp]  # their numbers in a wave


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Executions by some CTAs, by a warp of each CTA, of a line, the so many-th of each warp.

    None, and no CTA, stand for any.
    """

    ctas: tuple[Dimensions, ...] = ()
    warp: int | None = None
    line: int | None = None
    step: int | None = None

    def takes(self, event: Any) -> bool:
        """Return whether an event, with ``cta``, ``own_warps``, ``line`` and ``index``, is chosen."""
        wanted, given = (self.line, self.step), (event.line, event.index)
        own = self.warp is None or self.warp in event.own_warps
        here = not self.ctas or event.cta in self.ctas
        return own and here and all(part in (None, value) for part, value in zip(wanted, given, strict=True))

    def chosen(
        self, wave: Wave, line: int, warps: Warps, numbers: npt.NDArray[np.int64], width: int = 1
    ) -> Mask:
        """Return ``(warps,)``: those of the warps that are chosen; ``numbers`` says which execution it is.

        Each is the first of ``width`` warps that execute together.
        """
        if self.line not in (None, line):
            return np.zeros(len(warps), np.bool_)
        mask = np.ones(len(warps), np.bool_) if self.step is None else numbers == self.step
        if self.warp is not None:
            mask &= (warps % wave.warps <= self.warp) & (self.warp < warps % wave.warps + width)
        if self.ctas:
            own = wave.ctas[warps // wave.warps]
            mask &= (own[:, None] == np.array(self.ctas)).all(axis=2).any(axis=1)
        return mask

    def __str__(self) -> str:
        ctas = [("cta", ",".join(map(str, cta))) for cta in self.ctas]
        given = [*ctas, ("warp", self.warp), ("line", self.line), ("step", self.step)]
        return " ".join(f"{name}={value}" for name, value in given if value is not None)


EVERYTHING = Selection()


def selection_of(given: Selection | str | bool) -> Selection:
    """Return the selection that a text spells; True is everything. Raises OperandError, pointing at the
    word.
    """
    if isinstance(given, Selection):
        return given
    if isinstance(given, bool):
        return EVERYTHING
    if not isinstance(given, str):
        raise OperandError(
            f"{given!r} is not a selection: expected a text such as 'cta=0,0 warp=1 line=120 step=3'"
        )
    values: dict[str, Any] = {}
    ctas: dict[Dimensions, None] = {}
    for word in _WORD.finditer(given):
        name, equals, value = word[0].partition("=")
        start = word.start()
        if name not in _NAMES:
            raise _wrong(
                given, start, len(name) or 1, f"unknown field {name!r}; known are {', '.join(_NAMES)}"
            )
        if name in values:
            raise _wrong(given, start, len(name), f"{name} is given twice")
        place = start + len(name) + len(equals) if value else start
        found = _value(given, place, name, value)
        if isinstance(found, tuple):
            ctas[found] = None
        else:
            values[name] = found
    return Selection(ctas=tuple(ctas), **values)


def _value(text: str, start: int, name: str, value: str) -> int | Dimensions:
    parts = value.split(",")
    most = 3 if name == "cta" else 1
    well = len(parts) <= most and all(_NUMBER.fullmatch(part) for part in parts)
    if not well or (name == "line" and not int(value)):
        raise _wrong(text, start, len(value) or len(name), f"{name} is {_MEANINGS[name]}")
    x, y, z = (*map(int, parts), 0, 0)[:3]
    return (x, y, z) if name == "cta" else x


def _wrong(text: str, start: int, length: int, message: str) -> OperandError:
    return OperandError(message, Location("selection", 1, start + 1, length, text))


class Executions:
    """How often each warp has executed each statement, in any number of waves."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Wave, dict[int, npt.NDArray[np.int64]]] = WeakKeyDictionary()

    def numbers(self, wave: Wave, pc: int, warps: Warps) -> npt.NDArray[np.int64]:
        """Return ``(warps,)``: which execution this is of each of the warps, from 0; it counts as done."""
        counts = self._counts.setdefault(wave, {})
        if pc not in counts:
            counts[pc] = np.zeros(wave.lanes // WARP, np.int64)
        numbers = counts[pc][warps]
        counts[pc][warps] += 1
        return numbers
