"""A broken ordering rule of asynchronous wgmma: its two statements, what is missing, where to put it.

Knows places in a text, names of registers and ranges of bytes; does not know when a rule is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, UndefinedBehavior

Severity = Literal["error", "warning"]
Mode = Literal["error", "warn", "off"]
Kind = Literal["read", "write"]
Role = Literal["D", "A", "metadata"]
Integers = npt.NDArray[np.int64]
Place = Location | Callable[[], Location]  # in a text that is read again only where there is a hazard to show
Ranges = tuple[tuple[int, int], ...]  # of bytes: the first, the byte after the last

_WARP, _WARPS = 32, 4


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """One broken rule between two statements.

    ``second`` is the statement that came too early; ``first`` the statement it had to be ordered after, None
    where there is none, and ``note`` what ``first`` did. ``byte_ranges`` are (first byte, byte after the
    last). An "error" is what PTX leaves undefined, a "warning" is legal or something PTX is silent about.
    ``mended`` is what ptxas does about it where it compiles the whole kernel, "" where it does nothing.
    """

    severity: Severity
    rule: str
    message: str
    first: Location | None
    second: Location
    fix: str
    note: str = ""
    registers: tuple[str, ...] = ()
    byte_ranges: tuple[tuple[int, int], ...] = ()
    mended: str = ""

    def render(self) -> str:
        """Return both statements with their carets, in the assembler's shape, and what to do."""
        lines = [f"{self.second}: {self.severity}: {self.message}", self.second.excerpt()]
        if self.first is not None:
            lines += [f"{self.first}: note: {self.note}", self.first.excerpt()]
        lines.append(f"{self.second}: fix: {self.fix}")
        return "\n".join(line for line in lines if line)


class HazardError(UndefinedBehavior):
    """UndefinedBehavior that shows two statements; ``hazard`` has the particulars."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(hazard.message, hazard.second)
        self.hazard = hazard

    def render(self) -> str:
        """Return the hazard with both statements."""
        return self.hazard.render()


def resolved(place: Place) -> Location:
    """Return the location itself."""
    return place if isinstance(place, Location) else place()


def mended(hazard: Hazard, by: str) -> Hazard:
    """Return a hazard with what ptxas does about it."""
    return replace(hazard, mended=by)


def uniformity_hazard(what: str, values: list[int], place: Place) -> Iterator[Hazard]:
    """Yield the hazard of an operand that differs: ``values`` are four, of warps, or 128, of lanes."""
    other = next((i for i, value in enumerate(values) if value != values[0]), None)
    if other is not None:
        unit = "warp" if len(values) == 4 else "lane"
        message = (
            f"{what} must be the same in the whole warpgroup, but is {values[0]:#x} in {unit} 0 and "
            f"{values[other]:#x} in {unit} {other}"
        )
        yield hazard_of("uniform", message, place, f"give all warps the same {what} before {line_of(place)}")


def hazard_of(
    rule: str,
    message: str,
    second: Place,
    fix: str,
    first: Place | None = None,
    note: str = "",
    registers: tuple[str, ...] = (),
    *,
    byte_ranges: tuple[tuple[int, int], ...] = (),
    severity: Severity = "error",
) -> Hazard:
    """Return a hazard; its places are looked up."""
    return Hazard(
        severity=severity,
        rule=rule,
        message=message,
        first=None if first is None else resolved(first),
        second=resolved(second),
        fix=fix,
        note=note,
        registers=registers,
        byte_ranges=byte_ranges,
    )


def warp_values(values: npt.NDArray[Any]) -> list[int]:
    """Return a value per warp if its lanes agree, otherwise per lane: input of ``uniformity_hazard``."""
    warps = values.reshape(_WARPS, _WARP)
    agree = (warps == warps[:, :1]).all()
    return [int(value) for value in (warps[:, 0] if agree else values)]


# --- shared memory ---


def overwritten(
    ranges: Ranges, first: Place, cause: tuple[str, str], place: Place, done: str = "are written"
) -> Hazard:
    """Return the hazard of a write to what a wgmma in flight reads; ``cause``: why in flight, and what to
    insert.
    """
    why, fix = cause
    message = (
        f"{listed_bytes(ranges)} of shared memory {done} while a wgmma that reads them is in flight: {why}"
    )
    return hazard_of("shared-in-flight", message, place, fix, first, STILL, byte_ranges=ranges)


def unproxied(ranges: Ranges, first: Place, place: Place) -> Hazard:
    """9.7.15.4 and 9.7.15.7.1: generic stores that the async proxy need not see; ``first`` is the last."""
    message = (
        f"{listed_bytes(ranges)} of shared memory are read through the async proxy, but were "
        "written through the generic proxy with no fence.proxy.async since"
    )
    fix, note = insert(PROXY_FENCE, place), "the last of these generic stores"
    return hazard_of("proxy-fence", message, place, fix, first, note, byte_ranges=ranges)


# --- words ---

FENCE = "wgmma.fence.sync.aligned;"
COMMIT = "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {};"
PROXY_FENCE = "fence.proxy.async;"
STILL = "this wgmma is still in flight"
PARTICIPLE: Mapping[Kind, str] = {"read": "read", "write": "written"}
EARLY: Mapping[Role, str] = {
    "D": "accumulator-in-flight",
    "A": "fragment-in-flight",
    "metadata": "metadata-in-flight",
}

# What ptxas 12.9, 13.0 and 13.5 do where a rule about registers is broken, by their messages and SASS. 13.5
# inserts a fence without a message; 12.9 and 13.0 move what is written to another register, also without.
_SERIALISED = "serialises every wgmma of the function"
MENDED_WAIT = f"ptxas inserts a wait (C7517), or {_SERIALISED} (C7514, C7515)"
MENDED_END = "ptxas inserts a wait (C7517)"
MENDED_FENCE = "ptxas inserts a fence (C7519)"
MENDED_WRITE = f"ptxas takes another register for what is written, or {_SERIALISED} (C7513)"
MENDED_READ = "ptxas inserts nothing, and a wgmma does not change A"

_LISTED = 4  # how many names or ranges a message lists; the hazard holds all


def insert(statement: str, place: Place) -> str:
    """Return what to insert before a place."""
    return f"insert '{statement}' before {line_of(place)}"


def line_of(place: Place) -> str:
    """File and line of a place."""
    place = resolved(place)
    return f"{place.file}:{place.line}"


def counted(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return names, each once."""
    return tuple(dict.fromkeys(names))


def listed(names: Iterable[str]) -> str:
    """Return a few names, and how many more there are."""
    everything = list(names)
    shown, more = everything[:_LISTED], len(everything) - _LISTED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def listed_bytes(ranges: tuple[tuple[int, int], ...]) -> str:
    """Return a few ranges, and how many more there are."""
    return "bytes " + listed(f"{first:#x}..{stop - 1:#x}" for first, stop in ranges)


def runs_of(addresses: Integers) -> tuple[tuple[int, int], ...]:
    """Return the addresses as ranges (first, after the last), ascending."""
    ordered = np.unique(addresses)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    return tuple((int(run[0]), int(run[-1]) + 1) for run in np.split(ordered, breaks))
