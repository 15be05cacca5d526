"""The memories that the lanes of a wave address: global, shared, local and that of the parameters.

Knows bytes and sizes; does not know addresses (windows.py) or what is read and written there.
"""

from __future__ import annotations

import numpy as np

from ..state import spaces
from ..state.spaces import Bytes, DeviceMemory
from .geometry import Geometry

_SHARED_ALIGNMENT = 128  # bytes: CTAs begin at multiples of it in ``shared``
_LOCAL_ALIGNMENT = 16  # bytes


class Memories:
    """``device`` is global memory; ``shared`` has ``shared_stride`` bytes per CTA, of which ``shared_bytes``
    are used; ``shared_base`` (lanes,) is the first byte of each lane's CTA. ``local`` has ``local_stride``
    bytes per lane, of which ``local_bytes`` are used.
    """

    def __init__(
        self,
        geometry: Geometry,
        device: DeviceMemory,
        parameters: Bytes,
        shared_bytes: int,
        fill: int | None = None,
    ) -> None:
        self._fill = fill
        self.device = device
        self.parameters = parameters
        self.shared_bytes: int = shared_bytes
        self.shared_stride = max(-(-shared_bytes // _SHARED_ALIGNMENT), 1) * _SHARED_ALIGNMENT
        self.shared: Bytes = self._initial_memory(spaces.padded(len(geometry.ctas) * self.shared_stride))
        self.shared_base = geometry.cta * self.shared_stride
        self.local: Bytes = spaces.padded(0)
        self.local_stride = self.local_bytes = 0
        self._lanes = geometry.lanes

    def _initial_memory(self, memory: Bytes) -> Bytes:
        """Return memory as lanes find it: zeros, or any bytes, which ``fill`` is the seed of."""
        if self._fill is None:
            return memory
        return np.random.default_rng(self._fill).integers(0, 256, memory.shape, np.uint8)

    def reserve_local(self, size: int) -> None:
        """Give every lane at least that many bytes of local memory; its contents stay."""
        used = -(-size // _LOCAL_ALIGNMENT) * _LOCAL_ALIGNMENT
        self.local_bytes = max(self.local_bytes, used)
        if used <= self.local_stride:
            return
        stride = max(used, self.local_stride * 5 // 4 // _LOCAL_ALIGNMENT * _LOCAL_ALIGNMENT)
        grown = self._initial_memory(np.zeros((self._lanes, stride), np.uint8))
        grown[:, : self.local_stride] = self.local[: self._lanes * self.local_stride].reshape(self._lanes, -1)
        self.local, self.local_stride = grown.reshape(-1), stride
