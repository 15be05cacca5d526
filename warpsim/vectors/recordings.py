"""Recordings: the matrix instructions that a launch executed, in the order of CTAs and time.

Each statement of the kernel is a vector set, its executions the cases, so whatever works on sets works on
recordings. Knows events and sets; does not know files (see formats/recording.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import NotModelled, OperandError
from ..files.version import __version__
from ..isa.instruction import Inputs
from ..machine.observers.recorder import LaunchEvent
from ..machine.observers.selection import EVERYTHING, Selection
from ..ptx.statements import InstructionStatement
from .sets import VectorSet, immediates_of, provenance_of

if TYPE_CHECKING:
    from ..machine.wave import Dimensions


@dataclass(frozen=True, kw_only=True, eq=False)
class StatementSet:
    """The executions of one statement: ``events`` in their order, and as the cases of ``vectors``.

    ``literal`` says that metadata without a meaning was read as it stands.
    """

    statement: InstructionStatement
    pc: int
    literal: bool
    events: Sequence[LaunchEvent]
    vectors: VectorSet

    @property
    def title(self) -> str:
        """File, line and mnemonic."""
        place = self.statement.location()
        return f"{place.file}:{place.line}: {self.vectors.instruction.mnemonic}"

    def labelled(self) -> VectorSet:
        """The set, its cases named after their places in the launch."""
        return replace(self.vectors, labels=tuple(f"line {one.line}, {one.place}" for one in self.events))


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Matrix instructions of a launch: ``events`` by CTA, time and warp.

    ``path`` is the file that it came from, "" for none; ``provenance`` says what computed D.
    """

    kernel: str
    file: str
    target: str
    grid: Dimensions
    block: Dimensions
    events: tuple[LaunchEvent, ...]
    path: str = ""
    provenance: Mapping[str, Any] = field(default_factory=lambda: {"kind": "model", "version": __version__})

    def sets(self) -> Iterator[StatementSet]:
        """The statements in the order of the text. Raises NotModelled for wgmma."""
        groups: dict[tuple[int, bool], list[LaunchEvent]] = {}
        for event in self.events:
            groups.setdefault((event.pc, event.inputs.literal), []).append(event)
        for (pc, literal), events in sorted(groups.items(), key=lambda one: one[0]):
            vectors = _vectors(events, self.provenance)
            yield StatementSet(
                statement=events[0].statement, pc=pc, literal=literal, events=events, vectors=vectors
            )

    def selected(self, selection: Selection = EVERYTHING) -> Recording:
        """The events that are selected; raises OperandError where there are none."""
        events = tuple(event for event in self.events if selection.takes(event))
        if not events:
            which = f"{selection}: " if str(selection) else ""
            raise OperandError(f"{which}none of the {len(self.events):,} recorded events is selected")
        return replace(self, events=events)

    def order(self, event: LaunchEvent) -> tuple[int, int, int]:
        """What events are ordered by: CTA in the grid, time, warp."""
        x, y, z = event.cta
        return x + self.grid[0] * (y + self.grid[1] * z), event.time, event.warp


def _vectors(events: Sequence[LaunchEvent], provenance: Mapping[str, Any]) -> VectorSet:
    """The executions of one statement as cases."""
    first = events[0]
    form = first.instruction
    if not all(event.inputs.warp_level for event in events):
        raise NotModelled(f"{form.mnemonic}: recordings of warpgroups are not modelled")
    names = first.inputs.registers
    known = provenance_of(form, "kernel") if provenance.get("kind") == "model" else {}
    return VectorSet(
        instruction=form,
        registers={name: np.stack([event.inputs.registers[name] for event in events]) for name in names},
        d=np.stack([event.d for event in events]),
        immediates=_immediates(events),
        descriptors={},
        shared=None,
        provenance=known | dict(provenance),
        seed=None,
    )


def _immediates(events: Sequence[LaunchEvent]) -> dict[str, Any]:
    """One integer where all executions agree, otherwise one each."""
    values = {
        name: np.array([_immediate(event.inputs, name) for event in events], np.int8)
        for name in immediates_of(events[0].instruction)
    }
    return {name: int(x[0]) if (x == x[0]).all() else x for name, x in values.items()}


def _immediate(inputs: Inputs, name: str) -> int:
    return inputs.selector if name == "selector" else int(getattr(inputs.scale_selectors, name))
