"""A tcgen05.mma that completes: what it reads, as warpsim.execute takes it, and the event that says so.

Observers get words of tensor memory from the address of each operand on, with whatever lies between, such as
factors of another id; of D only the elements, as nothing else is written. Nothing is built where no observer
wants it. Does not know what observers do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ....isa.layouts.tensor_memory import LANES
from ....isa.operand_places.placements import Inputs, TensorSettings
from ....isa.operand_places.tensor_placements import TensorCells
from ....isa.warps import WARP
from ...run.events import MatrixExecution, Observer, observers_of
from ...run.wave import Wave
from .tensor_places import TENSOR_MEMORY
from .tensor_products import Multiplication, Part

_LANES_OF_CTA = (1 << LANES) - 1


def complete(work: Multiplication, pc: int, wave: Wave) -> None:
    """Multiply, and notify observers of it; ``pc`` is the place of the statement."""
    if not observers_of(wave).hear(Observer.matrix):
        work.run(wave)
        return
    inputs = inputs_of(work, wave)  # before D changes
    form, codes = work.made.instruction, work.run(wave)
    execution = MatrixExecution(
        pc=pc,
        record=work.record,
        instruction=form,
        inputs=inputs,
        d=_cells(work, "d").written(codes[None], inputs),
        warps=np.array([work.lane // WARP]),
        addresses=dict(_addresses(work)),
    )
    observers_of(wave).matrix(wave, execution)


def inputs_of(work: Multiplication, wave: Wave) -> Inputs:
    """Return what one execution reads, with an axis of executions in front; shared memory is not always a
    copy.

    D as it was is ``c`` where it is read, and where lanes of it stay.
    """
    given = work.given
    registers = {operand: _words(work, wave, operand, part)[None] for operand, part in _parts(work)}
    if "c" in registers:
        registers["c"] &= _cells(work, "c").mask
    return Inputs(
        registers=registers,
        literal=wave.modes.literal,
        shared=_memories(work, wave)[None],
        a_descriptor=None if given.a_in_memory else np.array([given.a], np.uint64),
        b_descriptor=np.array([given.b], np.uint64),
        scale_d=given.enabled,
        tensor=TensorSettings(given.scale_d, _disabled_words(work), given.zero_columns),
    )


def _parts(work: Multiplication) -> Iterator[tuple[str, Part]]:
    """Yield the operands that are read from tensor memory."""
    scales = work.scales or (None, None)
    keeps = work.given.enabled or work.given.disabled
    parts = work.a_part, work.d if keeps else None, work.metadata, *scales
    for operand, part in zip(("a", "c", "e", "scale_a", "scale_b"), parts, strict=True):
        if part is not None:
            yield operand, part


def _addresses(work: Multiplication) -> Iterator[tuple[str, int]]:
    """Yield operands with their addresses in tensor memory, those of the statement's registers."""
    given = work.given
    known = {"a": given.a, "e": given.metadata, "scale_a": given.scale_a, "scale_b": given.scale_b}
    read = (operand for operand, _ in _parts(work) if operand != "c")
    yield from ((operand, known[operand]) for operand in read)
    yield "d", given.d


def _cells(work: Multiplication, operand: str) -> TensorCells:
    found = work.made.instruction.held(operand)
    assert isinstance(found, TensorCells)
    return found


def _words(work: Multiplication, wave: Wave, operand: str, part: Part) -> npt.NDArray[np.uint32]:
    """Return ``(lanes, columns)`` from the address on: lanes follow the first, and those of all CTAs each
    other."""
    cells = _cells(work, operand)
    first = part.place.column - cells.first_column
    found = TENSOR_MEMORY.of(wave).cells[list(work.ctas), :, first : first + cells.words]
    words: npt.NDArray[np.uint32] = np.roll(found, -part.place.lane, axis=1).reshape(cells.shape)
    return words


def _disabled_words(work: Multiplication) -> tuple[int, ...]:
    """Return the words of disable-output-lane, counted from the lane at which D begins; () for no lanes."""
    if not work.given.disabled:
        return ()
    first = work.d.place.lane
    own = [work.given.disabled >> LANES * cta & _LANES_OF_CTA for cta in range(len(work.ctas))]
    moved = [(bits >> first | bits << LANES - first) & _LANES_OF_CTA for bits in own]
    return tuple(bits >> 32 * word & 0xFFFFFFFF for bits in moved for word in range(LANES // 32))


def _memories(work: Multiplication, wave: Wave) -> npt.NDArray[np.uint8]:
    """Return the bytes of the shared memory of all CTAs, that of the even CTA first."""
    stride = wave.memories.shared_stride
    each = [wave.memories.shared[cta * stride : (cta + 1) * stride] for cta in work.ctas]
    return each[0] if len(each) == 1 else np.concatenate(each)
