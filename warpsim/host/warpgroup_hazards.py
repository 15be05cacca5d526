"""The ordering rules of a Warpgroup: those that launches have, with Hazards as findings.

Knows the names of registers, and what Python does between statements; the rules are those of checks/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from ..checks.findings import Findings
from ..checks.hazard import Hazard, HazardError, Kind, Mode
from ..checks.races import WarpgroupRaces
from ..checks.register_order import RegisterOrder
from ..checks.register_uses import RegisterUses
from ..checks.tile_marks import CHUNK
from ..checks.warpgroup_order import Cohort, WarpgroupOrder
from ..errors import Location
from ..machine.run.events import Observer
from .register_file import RegisterFile

if TYPE_CHECKING:
    from ..machine.run.wave import Record
    from .interactive_wave import InteractiveWave

Place = Callable[[], Location]


class _Found:
    """Hazards in the order in which they were found, each of them once."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.hazards: dict[Hazard, None] = {}

    def __call__(self, hazards: Sequence[Hazard]) -> None:
        """Raise the first error where errors raise; otherwise collect."""
        for hazard in hazards:
            if self.mode == "error" and hazard.severity == "error":
                raise HazardError(hazard)
        self.hazards.update(dict.fromkeys(hazards))


class WarpgroupHazards:
    """The checks of one warpgroup, and what they have found.

    ``mode`` "error" raises HazardError at the first error, "warn" only collects. Python's accesses between
    statements are checked by ``access`` and ``copied``.
    """

    def __init__(self, mode: Mode, file: RegisterFile, shared_bytes: int) -> None:
        self.file = file
        self.early, self.unordered = _Found(mode), _Found(mode)
        self.rules = _Rules(self.early, file)
        self.races = WarpgroupRaces(self.unordered, shared_bytes)

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards that were collected: those of asynchrony, then those of barriers."""
        return (*self.early.hazards, *self.unordered.hazards)

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The observers of the wave of the warpgroup."""
        return self.rules, self.races

    def access(self, names: Iterable[str], kind: Kind, place: Place) -> None:
        """Check an access to registers by anything but a wgmma, before it happens."""
        unique = [self.file.unique(name) for name in names]
        if unique:
            self.rules.order.access(unique, kind, place)

    def copied(self, wave: InteractiveWave, start: int, size: int, place: Place) -> None:
        """Check bytes of shared memory that are about to be written as by a finished bulk copy."""
        written = np.arange(start, start + size)
        self.rules.written(wave, np.unique(written // CHUNK), place, lambda: written)

    def finish(self, place: Location) -> None:
        """Check that nothing is in flight at the end of the program."""
        self.rules.order.finish(place)


class _Rules(WarpgroupOrder):
    """The rules of wgmma of a launch, for one warpgroup whose text comes piece by piece."""

    def __init__(self, found: _Found, file: RegisterFile) -> None:
        super().__init__(Findings(mode="warn"))
        self.uses = cast(RegisterUses, _Names(file))
        self.order = RegisterOrder(found)
        self.cohorts = [Cohort(np.ones(1, np.bool_), self.order)]
        self.report = found  # type: ignore[method-assign]


class _Names:
    """The names of the registers of a wgmma, by number."""

    def __init__(self, file: RegisterFile) -> None:
        self.file = file
        self.known: tuple[Record | None, dict[int, str]] = None, {}  # of the latest wgmma, by number

    def named(self, record: Record, numbers: Sequence[int]) -> tuple[str, ...]:
        """Return names of registers, different for different registers."""
        if self.known[0] is not record:
            names = record.statement.names
            pairs = zip(names, self.file.meanings(names), strict=True)
            self.known = record, {meaning.number: name for name, meaning in pairs if meaning is not None}
        found = self.known[1]
        return tuple([self.file.unique(found[number]) for number in numbers])
