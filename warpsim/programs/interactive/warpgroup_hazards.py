"""The ordering rules of a Warpgroup: those that launches have, with Hazards as findings.

Knows the names of registers, and what Python does between statements; the rules are those of observe/checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from ...base.errors import Location
from ...isa.warps import WARP
from ...machine.run.events import Observer
from ...machine.state.lanes import DivergentPath, Mask
from ...machine.state.memory_access import MemoryAccess
from ...observe.checks.fast_path.accesses import Accesses
from ...observe.checks.findings import Findings, Severity
from ...observe.checks.flags import FlagOrder
from ...observe.checks.order import Order
from ...observe.checks.race_messages import Reach, Verbs
from ...observe.checks.shadow import Records, places, whose
from ...observe.checks.shared_races import Races
from ...observe.checks.wgmma.hazard import Hazard, HazardError, Kind, Mode, hazard_of, insert
from ...observe.checks.wgmma.register_order import RegisterOrder
from ...observe.checks.wgmma.register_uses import RegisterUses
from ...observe.checks.wgmma.tile_reads import TileReads, first_of_tiles
from ...observe.checks.wgmma.warpgroup_order import Cohort, HazardReport, WarpgroupOrder
from .register_file import RegisterFile

if TYPE_CHECKING:
    from ...machine.run.events import Share
    from ...machine.run.wave import Record, Wave
    from .interactive_wave import InteractiveWave

Place = Callable[[], Location]


class _Found(HazardReport):
    """Hazards in the order in which they were found, each of them once."""

    def __init__(self, mode: Mode) -> None:
        super().__init__(Findings(mode=mode))
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

    def __init__(self, mode: Mode, file: RegisterFile) -> None:
        self.file = file
        self.early, self.unordered = _Found(mode), _Found(mode)
        nothing = Findings(mode="warn")
        order = Order(nothing)
        flags = FlagOrder(nothing, order)
        flags.uses_flags = True
        self.rules = _Rules(self.early, file, order)
        self.tiles, self.races = _Tiles(self.unordered, order), _Races(self.unordered, order)
        #: The observers of the wave of the warpgroup, in their order.
        self.observers: tuple[Observer, ...] = self.rules, self.tiles, order, flags, self.races

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards that were collected: those of asynchrony, then those of barriers."""
        return (*self.early.hazards, *self.unordered.hazards)

    def access(self, names: Iterable[str], kind: Kind, place: Place) -> None:
        """Check an access to registers by anything but a wgmma, before it happens."""
        unique = [self.file.unique(name) for name in names]
        if unique:
            self.rules.registers.access(unique, kind, place)

    def copied(self, wave: InteractiveWave, start: int, size: int, place: Place) -> None:
        """Check bytes of shared memory that are about to be written as by a finished bulk copy."""
        cells = self.rules.order.shared(wave).within(np.array([[start, start + size]][:size]).reshape(-1, 2))
        self.rules.written(wave, cells, place)

    def finish(self, place: Location) -> None:
        """Check that nothing is in flight at the end of the program."""
        self.rules.registers.finish(place)


class _Rules(WarpgroupOrder):
    """The rules of wgmma of a launch, for one warpgroup whose text comes piece by piece."""

    def __init__(self, found: _Found, file: RegisterFile, order: Order) -> None:
        super().__init__(order.findings, order)
        self.uses = cast(RegisterUses, _Names(file))
        self.registers = RegisterOrder(found)
        self.cohorts = [Cohort(np.ones(1, np.bool_), self.registers)]
        self.report = found


class _Races(Races):
    """The races of a launch, between warps: lanes of a warp run in step here."""

    def __init__(self, found: _Found, order: Order) -> None:
        super().__init__(order.findings, Accesses(order))
        self.found = found

    def _report_race(self, reach: Reach, row: int, byte: int, old: int, verbs: Verbs) -> None:
        now = f"{_PARTICIPLES[verbs[0]]} by warp {int(reach.warps[row, 0])}"
        before = f"{verbs[1]} by warp {int(whose(old)) // WARP}"
        self.found([_unordered(reach.wave, reach.pc, int(places(old)), byte, (now, before))])

    def _check_lanes(self, reach: Reach, verbs: Verbs, seen: Records) -> None:
        """Leave lanes of a warp out."""


class _Tiles(TileReads):
    """The races of a launch with tiles of wgmma, as warnings."""

    def __init__(self, found: _Found, order: Order) -> None:
        super().__init__(order.findings, order)
        self.found = found

    def _check_write(
        self, wave: Wave, access: MemoryAccess, clash: Mask, taken: Records, severity: Severity
    ) -> None:
        row, column = np.argwhere(clash)[0].tolist()
        byte = int(access.offsets[row]) + column * (access.size // taken.shape[1])
        what = f"written by warp {int(access.lane_of[row]) // WARP}", f"read by {_OTHERS}"
        pcs = access.path.pc, int(places(taken[row, column]))
        self.found([_unordered(wave, *pcs, byte, what, "warning")])

    def _read(
        self, wave: Wave, path: DivergentPath, share: Share, clash: Mask, wrote: Records, severity: Severity
    ) -> None:
        old, (_, byte) = wrote[clash][0], first_of_tiles(share, clash)
        what = f"read by {_OTHERS}", f"written by warp {int(whose(old)) // WARP}"
        self.found([_unordered(wave, path.pc, int(places(old)), byte, what, "warning")])


_PARTICIPLES = {"reads": "read", "writes": "written"}
_OTHERS = "the wgmma of other warps"


def _unordered(
    wave: Wave,
    pc: int,
    earlier: int,
    byte: int,
    what: tuple[str, str],
    severity: Literal["error", "warning"] = "error",
) -> Hazard:
    """Return the hazard of a byte that two warps access without a barrier: ``what`` now, and before."""
    place, first = (wave.code[at].statement.location for at in (pc, earlier))
    now, before = what
    message = f"byte {byte:#x} of shared memory is {now}, but was {before} with no bar.sync since"
    fix, note, ranges = insert("bar.sync 0;", place), f"it is {before} here", ((byte, byte + 1),)
    return hazard_of("barrier", message, place, fix, first, note, byte_ranges=ranges, severity=severity)


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
