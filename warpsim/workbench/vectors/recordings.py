"""Recordings: the matrix instructions that a launch executed, in the order of CTAs and time.

Each statement of the kernel is a vector set, its executions are the cases, so that all functions of sets work
on recordings. Knows events and sets; does not know files (see formats/recording.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...base.errors import Location, OperandError
from ...base.files.version import __version__
from ...isa.operand_places.placements import Inputs
from ...isa.registers import Words
from ...observe.recording.listing import ListedLine
from ...observe.recording.recorder import LaunchEvent
from ...observe.recording.selection import EVERYTHING, Selection
from ...observe.recording.strips import Timeline
from ...ptx.statements import InstructionStatement
from .sets import VectorSet, adds_c, immediates_of, provenance_of

if TYPE_CHECKING:
    from ...machine.bind.tuning import Dimensions

_LONGEST_ERROR = 500  # characters


@dataclass(frozen=True, kw_only=True, eq=False)
class StatementSet:
    """The executions of a statement: ``events`` in their order, and as the cases of ``vectors``.

    ``literal`` means that undefined metadata was read literally.
    """

    statement: InstructionStatement
    pc: int
    literal: bool
    events: Sequence[LaunchEvent]
    vectors: VectorSet

    @property
    def location(self) -> Location:
        """The place of the statement, and the line of the source that it comes from."""
        return self.events[0].location

    @property
    def title(self) -> str:
        """File, line and mnemonic."""
        return f"{self.location.line_name}: {self.vectors.instruction.mnemonic}"

    def labelled(self) -> VectorSet:
        """Return the set, its cases named after their places in the launch."""
        return replace(self.vectors, labels=tuple(event.where for event in self.events))


@dataclass(frozen=True, kw_only=True)
class PackingNote:
    """A mismatch between an operand and its origins: the statement, a description, and the place."""

    line: int
    operand: str
    kind: str
    message: str
    where: str
    source: str = ""  # the line of the source, if it is known

    @property
    def line_name(self) -> str:
        """The line of the statement, of the source first."""
        return f"{self.source} (line {self.line})" if self.source else f"line {self.line}"

    def __str__(self) -> str:
        return f"{self.operand}: {self.message} [{self.where}]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Matrix instructions of a launch: ``events`` by CTA, time and warp.

    ``path`` is its file, "" for none; ``provenance`` says what computed D. ``selection`` says what was to
    be recorded, "" for everything; ``error`` is what ended the launch early, "" for nothing. ``packing``
    are the findings on the origins of operand elements, None where they were not checked; ``timeline`` is
    the order of the warps' actions, None where it was not kept; ``listing`` are lines of the sources, if
    they are known.
    """

    kernel: str
    file: str
    target: str
    grid: Dimensions
    block: Dimensions
    events: tuple[LaunchEvent, ...]
    path: str = ""
    provenance: Mapping[str, Any] = field(default_factory=lambda: {"kind": "model", "version": __version__})
    selection: str = ""
    error: str = ""
    packing: tuple[PackingNote, ...] | None = None
    timeline: Timeline | None = None
    listing: tuple[ListedLine, ...] = ()

    def notes_of(self, line: int) -> tuple[PackingNote, ...]:
        """Return the mismatches of the operands of the statement in a line."""
        return tuple(item for item in self.packing or () if item.line == line)

    def sets(self) -> Iterator[StatementSet]:
        """Yield the statements in the order of the text, each instruction descriptor of a statement apart."""
        groups: dict[tuple[int, bool, int], list[LaunchEvent]] = {}
        for event in self.events:
            key = event.pc, event.inputs.literal, event.instruction.descriptor or 0
            groups.setdefault(key, []).append(event)
        for (pc, literal, _), events in sorted(groups.items(), key=lambda group: group[0]):
            vectors = _vectors(events, self.provenance)
            yield StatementSet(
                statement=events[0].statement, pc=pc, literal=literal, events=events, vectors=vectors
            )

    def selected(self, selection: Selection = EVERYTHING) -> Recording:
        """Return the selected events; raises OperandError where there are none."""
        events = tuple(event for event in self.events if selection.takes(event))
        if not events:
            which = f"{selection}: " if str(selection) else ""
            raise OperandError(f"{which}none of the {len(self.events):,} recorded events is selected")
        return replace(self, events=events)

    def order(self, event: LaunchEvent) -> tuple[int, int, int]:
        """Return the sort key of an event: CTA in the grid, time, warp."""
        x, y, z = event.cta
        return x + self.grid[0] * (y + self.grid[1] * z), event.time, event.warp


def ending(error: Exception | None) -> str:
    """Return the error that ended a launch as a recording keeps it: one printable line, "" for none."""
    if error is None:
        return ""
    line = str(error).partition("\n")[0] or type(error).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in line[:_LONGEST_ERROR])


def _vectors(events: Sequence[LaunchEvent], provenance: Mapping[str, Any]) -> VectorSet:
    """Return the executions of a statement as cases."""
    form = events[0].instruction
    immediates = _immediates(events)
    model = provenance.get("kind") == "model"
    known = provenance_of(form, "kernel", with_c=adds_c(immediates)) if model else {}
    return VectorSet(
        instruction=form,
        registers=_registers(events),
        d=np.stack([event.d for event in events]),
        immediates=immediates,
        descriptors=_descriptors(events),
        shared=_shared(events),
        provenance=known | dict(provenance),
        seed=None,
        masks=_masks(events),
    )


def _registers(events: Sequence[LaunchEvent]) -> dict[str, Words]:
    """Return registers by operand; an execution that does not read D has zeros if others read it."""
    names = dict.fromkeys(name for event in events for name in event.inputs.registers)
    form = events[0].instruction
    none = np.zeros(form.held("d").shape, np.uint32)
    return {name: np.stack([event.inputs.registers.get(name, none) for event in events]) for name in names}


def _descriptors(events: Sequence[LaunchEvent]) -> dict[str, npt.NDArray[np.uint64]]:
    """Return matrix descriptors of those operands that lie in shared memory."""
    found: dict[str, npt.NDArray[np.uint64]] = {}
    for name, words in (
        ("a_desc", [event.inputs.a_descriptor for event in events]),
        ("b_desc", [event.inputs.b_descriptor for event in events]),
    ):
        given = [word for word in words if word is not None]
        if given:
            found[name] = np.array([int(word) for word in given], np.uint64)
    return found


def _shared(events: Sequence[LaunchEvent]) -> npt.NDArray[np.uint8] | None:
    """Return ``(executions, bytes)``: shared memory, that of each CTA padded to the longest; None where none
    is read.
    """
    form, memories = events[0].instruction, list[npt.NDArray[np.uint8]]()
    for event in events:
        if event.inputs.shared is not None:
            ctas = max(tile.ctas for tile in form.tiles(event.inputs).values())
            memories.append(event.inputs.shared.reshape(ctas, -1))
    if not memories:
        return None
    made = np.zeros((len(memories), len(memories[0]), max(memory.shape[1] for memory in memories)), np.uint8)
    for case, memory in zip(made, memories, strict=True):
        case[:, : memory.shape[1]] = memory
    return made.reshape(len(memories), -1)


def _masks(events: Sequence[LaunchEvent]) -> dict[str, npt.NDArray[Any]]:
    """Return the masks of tcgen05.mma that an execution has; those of others are 0."""
    settings = [event.inputs.tensor for event in events]
    found: dict[str, npt.NDArray[Any]] = {}
    if any(each.zero_column_mask for each in settings):
        found["zero_column_mask"] = np.array([each.zero_column_mask for each in settings], np.uint64)
    if count := max(len(each.disable_output_lane) for each in settings):
        words = [each.disable_output_lane or (0,) * count for each in settings]
        found["disable_output_lane"] = np.array(words, np.uint32)[:, None]
    return found


def _immediates(events: Sequence[LaunchEvent]) -> dict[str, Any]:
    """Return one integer where all executions agree, otherwise an array."""
    values = {
        name: np.array([immediate(event.inputs, name) for event in events], np.int8)
        for name in immediates_of(events[0].instruction)
    }
    return {name: int(x[0]) if (x == x[0]).all() else x for name, x in values.items()}


def immediate(inputs: Inputs, name: str) -> int:
    """Return an immediate, by the name that it has in warpsim.execute."""
    known = {
        "selector": inputs.selector,
        "scale_d": int(inputs.scale_d),
        "imm_scale_a": 1 - 2 * inputs.negate[0],
        "imm_scale_b": 1 - 2 * inputs.negate[1],
        "imm_trans_a": int(inputs.transposed[0]),
        "imm_trans_b": int(inputs.transposed[1]),
        "enable_input_d": int(inputs.scale_d),
        "scale_input_d": inputs.tensor.scale_input_d,
    }
    return known[name] if name in known else int(getattr(inputs.scale_selectors, name))
