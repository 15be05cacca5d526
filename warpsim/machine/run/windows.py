"""Where words lie: the memory of a space, and the offsets in it that the lanes of a wave address.

Generic addresses are those of a window or of device memory (PTX ISA 9.1, section 5.1 "state spaces"). Knows
the memories of a wave; does not know what is read or written there.
"""

from __future__ import annotations

import numpy as np

from ...ptx.symbols import shown_variable
from ..state import spaces
from ..state.lanes import Lanes, Values
from ..state.spaces import Bytes, Offsets
from .clusters import cluster_places, in_shared, near
from .wave import Places, Wave


def _device_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    return wave.memories.device.data, wave.memories.device.offsets(addresses, size, lanes)


def _shared_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    if spaces.leave(addresses, size, wave.memories.shared_bytes):
        addresses = near(wave, lanes, addresses)
        hint = _dynamic_hint(wave)
        spaces.check_bounds(addresses, size, wave.memories.shared_bytes, lanes, "shared memory", hint)
    return wave.memories.shared, addresses + lanes.of(wave.memories.shared_base)


def _dynamic_hint(wave: Wave) -> str:
    """Return what to do where a kernel declares dynamic shared memory and the launch gives none."""
    names = [shown_variable(variable.name) for variable in wave.entry.shared if variable.dynamic]
    if not names or wave.memories.shared_bytes > wave.entry.static_shared_bytes:
        return ""
    return (
        f"; the kernel declares dynamic shared memory ({', '.join(names)}), and this launch gives none: "
        "pass its size as shared_bytes, or --shared"
    )


def _local_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    spaces.check_bounds(addresses, size, wave.memories.local_bytes, lanes, "local memory")
    return wave.memories.local, addresses + lanes.index * wave.memories.local_stride


def _parameter_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    spaces.check_alignment(addresses, size, lanes)
    spaces.check_bounds(addresses, size, wave.entry.parameter_bytes, lanes, "the parameters")
    return wave.memories.parameters, addresses


def _generic_places(wave: Wave, lanes: Lanes, addresses: Offsets, size: int) -> tuple[Bytes, Offsets]:
    """Find words behind generic addresses that all lie in one window; split_windows sees to that."""
    first = int(addresses[0]) // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES
    space = WINDOWS.get(first)
    if space is None:
        return _device_places(wave, lanes, addresses, size)
    if space == "shared":
        return cluster_places(wave, lanes, addresses - first, size)
    return PLACES[space](wave, lanes, addresses - first, size)


WINDOWS = {
    spaces.SHARED_WINDOW: "shared",
    spaces.LOCAL_WINDOW: "local",
    spaces.PARAM_WINDOW: "param",
}
PLACES: dict[str, Places] = {
    "global": _device_places,
    "const": _device_places,
    "shared": _shared_places,
    "shared::cluster": cluster_places,
    "local": _local_places,
    "param": _parameter_places,
    "generic": _generic_places,
}


def place_of(wave: Wave, lane: int, memory: Bytes, offset: int) -> str:
    """Describe a place in a memory, as a lane sees it."""
    if memory is wave.memories.shared:
        return in_shared(wave, lane, offset)
    if memory is not wave.memories.device.data:
        return "local memory"
    allocation = wave.memories.device.allocation_at(spaces.DEVICE_BASE + offset)
    return f"byte {spaces.DEVICE_BASE + offset - allocation.address} of the {allocation}"


def split_windows(lanes: Lanes, addresses: Values) -> list[Lanes]:
    """Return parts of the lanes whose generic addresses lie in one window each; mostly all of them."""
    window = spaces.integers_of(np.broadcast_to(addresses, (lanes.count,))) // spaces.WINDOW_BYTES
    if (window == window[0]).all():
        return [lanes]
    parts = list[Lanes]()
    for number in np.unique(window):
        mask = np.zeros_like(lanes.mask)
        mask[lanes.index[window == number]] = True
        parts.append(Lanes(mask))
    return parts
