"""An instruction with the immediates that say which lanes, bytes and tiles it reads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....isa.instruction import Instruction
from ....isa.operand_places.placements import ScaleSelectors
from ....isa.registers import Words

Index = npt.NDArray[np.intp]
Registers = dict[str, Words]  # operand -> (variants, tiles, lanes, registers)
# Of a warpgroup also the tiles of A and B in shared memory, (variants, tiles, mn, k) codes, and the memory
# itself as "shared", (variants, tiles, bytes).


@dataclass(frozen=True, kw_only=True)
class SharedTiles:
    """How a wgmma reads shared memory: descriptors of A (None: in registers) and B, and its immediates."""

    a: int | None
    b: int
    memory_bytes: int
    scale_d: bool = True
    negate: tuple[bool, bool] = (False, False)
    transposed: tuple[bool, bool] = (False, False)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """An instruction with the immediates that say which lanes and bytes it reads."""

    instruction: Instruction
    selector: int = 0
    scale_selectors: ScaleSelectors = field(default_factory=ScaleSelectors)
    tiles: SharedTiles | None = None

    def in_shared(self, operand: str) -> bool:
        """Return whether a or b lies in shared memory."""
        return self.tiles is not None and (operand == "b" or (operand == "a" and self.tiles.a is not None))
