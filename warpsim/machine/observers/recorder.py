"""The matrix instructions of a launch, as they were executed: for ``record=True``.

Knows what a wave tells; does not compute. Events are kept in the order of execution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import Location
from ...isa.instruction import Inputs, Instruction
from ..lanes import Front

if TYPE_CHECKING:
    from ..program import Record
    from ..wave import Wave

_WARP = 32


@dataclass(frozen=True, kw_only=True)
class LaunchEvent:
    """One matrix instruction of some warps: ``inputs`` and ``d`` have a row for each of ``places``.

    ``places`` (rows, 4) are x, y and z of the CTA and the number of the first warp in it.
    """

    instruction: Instruction
    location: Location
    inputs: Inputs
    d: npt.NDArray[Any]
    places: npt.NDArray[np.int64]


@dataclass
class Recorder:
    """An observer that keeps every matrix instruction."""

    events: list[LaunchEvent] = field(default_factory=list)

    def matrix(
        self,
        wave: Wave,
        front: Front,
        record: Record,
        instruction: Instruction,
        inputs: Inputs,
        d: npt.NDArray[Any],
        warps: npt.NDArray[np.intp],
    ) -> None:
        """A matrix instruction is done."""
        lanes = np.asarray(warps) * _WARP
        places = np.column_stack([wave.ctas[wave.cta[lanes]], wave.thread[lanes] // _WARP])
        event = LaunchEvent(
            instruction=instruction,
            location=record.statement.location(),
            inputs=inputs,
            d=np.array(d),
            places=places,
        )
        self.events.append(event)
