"""The calls around a statement, those that a compiler has inlined among them.

Knows frames and source lines; does not know how they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...base.errors import Location, SourceLine, inline_stack
from ...machine.run.wave import Record
from ...machine.state.lanes import Frame
from ...observe.stops.contexts import Standing
from ...ptx.symbols import shown


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function that a lane is in: ``source`` is its line there, None where the PTX names none.

    ``inlined`` of a call whose body stands in the place of the call: it has no frame of its own.
    """

    name: str
    frame: Frame
    record: Record
    location: Location
    source: SourceLine | None
    inlined: bool = False


def calls_of(here: Standing, kernel: str) -> Iterator[Call]:
    """Yield the calls of a lane, the innermost first."""
    frame: Frame | None = here.frame
    record = here.record
    while frame is not None:
        name = shown(kernel if frame.function is None else frame.function.name)
        location = record.statement.location()
        lines: list[SourceLine | None] = [*inline_stack(location.source)]
        for place, line in enumerate(lines or [None]):
            inlined = place < len(lines) - 1
            yield Call(
                name=f"inlined in {name}" if inlined else name,
                frame=frame,
                record=record,
                location=location,
                source=line,
                inlined=inlined,
            )
        if frame.caller is not None:
            record = here.wave.code[frame.resume - 1]
        frame = frame.caller
