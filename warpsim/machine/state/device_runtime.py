"""What a launch has beside memory: the lines that device code prints, and the heap.

Knows texts and threads; does not know statements. CUDA C++ Programming Guide, "Formatted Output".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ...base.errors import Location, SourceLine
from .heap import Heap

Coordinates = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """The text of one call of printf by one lane: ``str`` of it is the text.

    ``cta`` has the coordinates of the CTA, ``warp`` and ``lane`` count within it; ``location`` is the call.
    """

    text: str
    cta: Coordinates
    warp: int
    lane: int
    location: Location

    @property
    def source(self) -> SourceLine | None:
        """The line of the source that calls printf, where the PTX names it."""
        return self.location.source

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False, kw_only=True)
class DeviceRuntime:
    """What system calls of one launch use: ``write`` takes each text at once, ``printed`` keeps all.

    ``remarks`` are (location, what happened) of calls that did less than they should.
    """

    heap: Heap
    grid_workspace: int = 0  # the address of what a cooperative grid synchronises by; 0 for other launches
    write: Callable[[str], object] | None = None
    printed: list[Printed] = field(default_factory=list)
    remarks: dict[tuple[Location, str], None] = field(default_factory=dict)

    def print(self, item: Printed) -> None:
        """Keep a text, and show it."""
        self.printed.append(item)
        if self.write is not None:
            self.write(item.text)
