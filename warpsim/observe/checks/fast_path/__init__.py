"""Accesses of which nothing is to be said, in one compiled loop each: when that is worth a compiler.

The checks of whole arrays (shared_races.py, memory_checks.py) say what is wrong. Of most accesses nothing is:
a loop over their words (loops.py) finds that out, and notes them in the shadow, several times faster.
Where it finds anything, or that cells have to be parted, it has changed nothing, and the checks look by
themselves. A process begins with these: loops are loaded, or compiled, when so many words were looked at.
Knows shadows; does not know which accesses may meet.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....machine.state.memory_access import MemoryAccess
from ..clocks import Clocks
from ..shadow import Cells, Shadow

if TYPE_CHECKING:
    from ....machine.run.wave import Wave

# Words that were looked at in the time that it takes to load loops, to load Numba as well, to compile them.
_LOADED, _IMPORTED, _COMPILED = 1 << 20, 1 << 23, 1 << 27
_EACH = 1 << 11  # words that take as long as the calls around an access, however few it has
_CACHE = "NUMBA_CACHE_DIR"


class Tiles(NamedTuple):
    """Of cells that are read: whether some may never have been written, may be written by a cp.async, may be
    written by warps, or brought by an operation that readers need not know to be complete, or written by
    warps of which they need not know it.
    """

    unfilled: bool
    flying: bool
    generic: bool
    late: bool
    unordered: bool


UNKNOWN = Tiles(unfilled=True, flying=True, generic=True, late=True, unordered=True)


class _Loops:
    """The loops of this process, ``found`` when they are there; ``words`` were looked at without them, and
    counted for the calls.
    """

    def __init__(self) -> None:
        self.words = 0
        self.found: Any = None
        self.refused = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Compile nothing in a fork: the thread that held the compiler may be missing."""
        self.refused = self.found is None

    def after(self, words: int) -> Any:
        """Return the module of the loops, None as long as the checks may look at so many words more."""
        if self.found is None and not self.refused:
            self.words += words + _EACH
            if self.words > _limit():
                loops = import_module(".loops", __package__)
                loops.compile_all()
                self.found = loops
        return self.found


def _limit() -> int:
    """Return the words that are looked at before loops are worth their time."""
    if not _are_kept():
        return _COMPILED
    return _LOADED if "numba" in sys.modules else _IMPORTED


@cache
def _are_kept() -> bool:
    """Return whether Numba's cache has loops."""
    folder = os.environ.get(_CACHE)
    kept = Path(folder).rglob("*") if folder else Path(__file__).parent.glob("__pycache__/*")
    return any(path.name.startswith("loops.store") and path.suffix == ".nbi" for path in kept)


LOOPS = _Loops()


def loops_for(wave: Wave, access: MemoryAccess) -> Any:
    """Return the module of the loops where they look at an access, else None."""
    return LOOPS.after(access.offsets.size) if wave.native else None


def all_are(wave: Wave, shadow: Shadow, table: npt.NDArray[Any], value: int, access: MemoryAccess) -> bool:
    """Return whether all cells of an access are known to hold a value in a table of the shadow."""
    loops = loops_for(wave, access)
    return loops is not None and loops.all_are(
        *shadow.places, table, value, plain(access.offsets), access.size
    )


def become(wave: Wave, shadow: Shadow, name: str, value: int, access: MemoryAccess) -> None:
    """Let all cells of an access hold a value in a table of the shadow."""
    loops = loops_for(wave, access)
    place = plain(access.offsets), access.size
    if loops is None or not loops.all_become(*shadow.places, getattr(shadow, name), value, *place):
        cells = shadow.of(access)  # which may part them: there is another table then
        getattr(shadow, name)[cells] = value


def tiles(wave: Wave, shadow: Shadow, known: npt.NDArray[np.int32], cells: Cells) -> Tiles:
    """Return what may have to be said of cells ``(rows, cells)`` that are read by what knows of all up to
    times ``known`` (rows, components): UNKNOWN where it has to be looked at.
    """
    loops = LOOPS.after(cells.size) if wave.native else None
    if loops is None:
        return UNKNOWN
    flags = loops.tiles(shadow.wrote, shadow.filled, shadow.flying, known, plain(cells))
    kinds = loops.UNFILLED, loops.FLYING, loops.GENERIC, loops.LATE, loops.UNORDERED
    return Tiles(*(bool(flags & kind) for kind in kinds))


def covers(wave: Wave, shadow: Shadow, clocks: Clocks, warp: int, cells: slice, written: int) -> bool:
    """Note that an operation issued by a warp writes cells, with a record ``written``, and forget reads of
    these; false, with nothing noted, where it may have to wait for others.
    """
    loops = LOOPS.after(cells.stop - cells.start) if wave.native else None
    if loops is None:
        return False
    pages, taken = shadow.pages(cells), shadow.taken
    known = shadow.wrote, shadow.writes, shadow.read, shadow.reads
    tables = loops.Tables(*shadow.places, *known, clocks.visible)
    operation = loops.Operation(
        (cells.start, cells.stop), (pages.start, pages.stop), warp, written, clocks.proxy, taken, shadow.takes
    )
    return bool(loops.covers(tables, operation) == loops.QUIET)


def plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values one behind the other, that may be written: loops are compiled for no others."""
    found = np.ascontiguousarray(values)
    return found if found.flags.writeable else found.copy()
