"""Boxes that statements name: the map behind an address, the pieces of the box, their places in memory.

What is wrong is found here, before anything moves: an address without a map, or a map of another kind or
rank; coordinates that PTX excludes; a box that leaves memory. Does not know operands or forms
(opcodes/tensors.py), nor when bytes move. PTX ISA 9.1, sections 9.7.9.27.1.1 "Restriction on Tensor Copy
instructions" and 9.7.9.27.1.2.

Inferred: that sm_90 has neither elements with gaps nor atoms of more than 16 bytes, since tensormap.replace
has none of them there; that coordinates need no alignment, as halos of stencils have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ....base.errors import OperandError, WarpsimError
from ....isa.architectures import has, least_targets
from ....isa.features import Feature
from ....isa.tensor_maps.tensor_box import Pieces, box_pieces, row_pieces
from ....isa.tensor_maps.tensor_fields import MAP_ALIGNMENT, MAP_BYTES
from ....isa.tensor_maps.tensor_map import TensorMap, decode
from ...run.clusters import FIRST, RANK_BYTES
from ...run.events import observers_of
from ...run.wave import Wave
from ...state import spaces
from ...state.lanes import DivergentPath, Lanes, Values
from ...state.side_tables import SideTable
from ...state.spaces import InvalidAccess
from ..memory.transfers import load, store
from .tensor_moves import REDUCTIONS, Landed

Reader = Callable[[Wave, DivergentPath], Values]

ALIGNMENT = 128  # of a box in shared memory, in bytes
FOUR = ("tile::gather4", "tile::scatter4")
_LATER_SWIZZLES = ("128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B", "96B")
_LATER_ELEMENTS = ("b4x16", "b4x16_p64", "b6x16_p32")
_WRONG_WINDOWS = {spaces.SHARED_WINDOW: "shared", spaces.LOCAL_WINDOW: "local"}


@dataclass(frozen=True, kw_only=True)
class Box:
    """Which box a statement names; readers give one value a lane."""

    rank: int
    mode: str
    map: Reader
    coordinates: tuple[Reader, ...]
    offsets: tuple[Reader, ...]
    target: str
    stored: bool
    reduction: str


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedBox:
    """The box of one lane."""

    lanes: Lanes  # a single lane
    map: TensorMap
    pieces: Pieces

    @property
    def lane(self) -> int:
        """The number of the lane."""
        return int(self.lanes.index[0])


def values_of(read: Reader | None, wave: Wave, path: DivergentPath, lanes: Lanes) -> list[int]:
    """One integer for each of the lanes; 0 where there is nothing to read."""
    given = np.zeros((), np.int64) if read is None else read(wave, path)
    return [int(value) for value in np.broadcast_to(lanes.of(given), (lanes.count,)).tolist()]


def _signed_values(read: Reader, wave: Wave, path: DivergentPath, lanes: Lanes) -> list[int]:
    return [(value ^ 1 << 31) - (1 << 31) for value in values_of(read, wave, path, lanes)]


def single(wave: Wave, lane: int) -> Lanes:
    """One lane of a wave."""
    mask = np.zeros(wave.lanes, np.bool_)
    mask[lane] = True
    return Lanes(mask)


@contextmanager
def at_lane(wave: Wave, path: DivergentPath, lane: int) -> Iterator[None]:
    """Give errors that are raised in the block the place of the statement, and the name of the lane.

    An OperandError becomes a Fault: the kernel computed the operand. Errors with a place stay as they are.
    """
    record = wave.code[path.pc]
    try:
        yield
    except OperandError as error:
        raise wave.fault(record, lane, f"{record.statement.mnemonic}: {error.message}") from None
    except WarpsimError as error:
        if error.location is not None:
            raise
        message = f"{record.statement.mnemonic}: {error.message} [{wave.describe_lane(lane)}]"
        raise type(error)(message, record.statement.location()) from None


def boxes_of(box: Box, wave: Wave, path: DivergentPath, lanes: Lanes) -> list[NamedBox]:
    """Return the box of each lane. Raises Fault, InvalidAccess, UndefinedBehavior and NotModelled."""
    maps = values_of(box.map, wave, path, lanes)
    coordinates = [_signed_values(read, wave, path, lanes) for read in box.coordinates]
    offsets = [values_of(read, wave, path, lanes) for read in box.offsets]
    found = list[NamedBox]()
    for place, lane in enumerate(lanes.index.tolist()):
        single_lane = single(wave, lane)
        with at_lane(wave, path, lane):
            map_ = map_at(wave, path, single_lane, maps[place])
            at = [each[place] for each in coordinates]
            pieces = _pieces(box, map_, at, [each[place] for each in offsets])
            _check_allocated(wave, lane, pieces)
        found.append(NamedBox(lanes=single_lane, map=map_, pieces=pieces))
    return found


# --- maps --------------------------------------------------------------------------------------------


# By address: maps among the parameters, which stay the same.
_PARAMETER_MAPS = SideTable[dict[int, TensorMap]](lambda _: {})


def map_at(wave: Wave, path: DivergentPath, lane: Lanes, address: int) -> TensorMap:
    """Return the map at a generic address. Raises InvalidAccess, and OperandError for what is none."""
    known = _PARAMETER_MAPS.of(wave)
    if address in known:
        return known[address]
    observers_of(wave).map_used(wave, path, lane, address)
    found = _map_read(wave, path, lane, address)
    if spaces.window_of(address) == spaces.window_of(spaces.PARAM_WINDOW):
        known[address] = found
    return found


def _map_read(wave: Wave, path: DivergentPath, lane: Lanes, address: int) -> TensorMap:
    window = _WRONG_WINDOWS.get(address // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES)
    if window is not None:
        reason = f"is in .{window}: tensor maps are in .param, .const or .global"
        raise InvalidAccess(int(lane.index[0]), address, reason)
    return decode(map_bytes(wave, path, lane, "generic", address))


def map_bytes(wave: Wave, path: DivergentPath, lane: Lanes, space: str, address: int) -> bytes:
    """Return the 128 bytes at an address. Raises InvalidAccess."""
    check_map_place(wave, lane, space, address)
    halves = [np.array([address + first], np.int64) for first in range(0, MAP_BYTES, MAP_ALIGNMENT)]
    words = [load(wave, path, lane, space, half, 8, MAP_ALIGNMENT // 8) for half in halves]
    return b"".join(np.ascontiguousarray(word).tobytes() for word in words)


def check_map_place(wave: Wave, lane: Lanes, space: str, address: int) -> None:
    """Check that a map can lie at an address; raises InvalidAccess."""
    if address % MAP_ALIGNMENT:
        reason = f"is not a multiple of {MAP_ALIGNMENT}, as those of tensor maps are"
        raise InvalidAccess(int(lane.index[0]), address, reason)
    wave.locate(space, lane, np.array([address + MAP_BYTES - 1], np.int64), 1)


def put_map(
    wave: Wave,
    path: DivergentPath,
    lane: Lanes,
    space: str,
    address: int,
    content: bytes,
    *,
    released: bool = False,
) -> None:
    """Write 128 bytes at an address; ``released`` says that a fence is part of it. Raises InvalidAccess."""
    if observers_of(wave) and space != "shared" and address >= spaces.DEVICE_BASE:
        observers_of(wave).map_changed(wave, path, lane, address, released)
    for first in range(0, MAP_BYTES, MAP_ALIGNMENT):
        words = np.frombuffer(content[first : first + MAP_ALIGNMENT], np.uint64)
        store(wave, path, lane, space, np.array([address + first], np.int64), words[None, :])


def _check_map(box: Box, map_: TensorMap) -> None:
    """Check that the map suits the statement; raises OperandError."""
    mode = "tile" if box.mode in ("tile", *FOUR) else "im2col"
    if map_.mode != mode:
        raise OperandError(f"the map is for {map_.mode}, but the instruction for {mode}")
    if map_.rank != box.rank:
        raise OperandError(f"the map's tensor has {map_.rank} dimensions, but the instruction {box.rank}")
    later = [
        f"{what} {word}"
        for what, word, words in (
            ("swizzle", map_.swizzle, _LATER_SWIZZLES),
            ("elements of", map_.element, _LATER_ELEMENTS),
        )
        if word in words
    ]
    if later and not has(box.target, Feature.WIDE_ATOMS):
        raise OperandError(
            f"the map has {later[0]}: it needs {least_targets(Feature.WIDE_ATOMS)}, not {box.target}"
        )


def _check_store(box: Box, map_: TensorMap, coordinates: Sequence[int]) -> None:
    """Check what a store cannot do; raises OperandError (PTX ISA 9.1, section 9.7.9.27.1.1)."""
    for coordinate in coordinates:
        if coordinate < 0:
            raise OperandError(f"coordinate {coordinate}: those of a store to global memory are not negative")
    if map_.element == "b4x16_p64" or map_.swizzle == "128B_ATOM_32B_FLIP_8B":
        what = map_.element if map_.element == "b4x16_p64" else f"swizzle {map_.swizzle}"
        raise OperandError(f"the map has {what}, which loads have and stores to global memory have not")
    im2col = map_.im2col
    if im2col is not None and (min(im2col.lower) < 0 or max(im2col.upper) > 0):
        raise OperandError("the corners of the map leave the tensor: those of a store stay inside")
    _check_reduction(box, map_)


def _check_reduction(box: Box, map_: TensorMap) -> None:
    if box.reduction and map_.element not in REDUCTIONS[box.reduction]:
        known = ", ".join(REDUCTIONS[box.reduction])
        raise OperandError(f".{box.reduction} of {map_.element}: it takes elements of {known}")


def _pieces(box: Box, map_: TensorMap, coordinates: Sequence[int], offsets: Sequence[int]) -> Pieces:
    _check_map(box, map_)
    if box.stored:
        _check_store(box, map_, coordinates)
    element = bool(box.reduction)
    if box.mode in FOUR:
        return row_pieces(map_, coordinates, element=element)
    return box_pieces(map_, coordinates, offsets=offsets, element=element)


def _check_allocated(wave: Wave, lane: int, pieces: Pieces) -> None:
    """Check that every byte inside of the tensor is in an allocation; raises InvalidAccess."""
    addresses = pieces.addresses if pieces.whole else pieces.addresses[pieces.inside]
    wrong = wave.memories.device.outside(addresses, pieces.size)
    if wrong is not None:
        reason = wave.memories.device.describe(wrong)
        raise InvalidAccess(lane, wrong, f"of the map's tensor {reason}")


# --- shared memory -----------------------------------------------------------------------------------


def landing(wave: Wave, box: NamedBox, space: str, address: int) -> Landed:
    """Return where in ``wave.memories.shared`` the pieces of a box lie that is put at an address. Raises
    InvalidAccess.
    """
    inner = address % RANK_BYTES
    if address % ALIGNMENT:
        reason = f"is not a multiple of {ALIGNMENT}, as those of boxes of tensors are"
        raise InvalidAccess(box.lane, address, reason)
    first = int(wave.locate(space, box.lanes, np.array([address], np.int64), 1)[1][0])
    found = box.pieces.landing(inner, box.map)
    if found.end > wave.memories.shared_bytes:
        size = f"a box of {box.pieces.bytes} bytes ends at {found.end:#x}"
        reason = f"lacks room: {size}, beyond {wave.memories.shared_bytes} bytes of shared memory"
        raise InvalidAccess(box.lane, address, reason)
    return Landed(found, first - inner)


def signal(wave: Wave, box: NamedBox, space: str, address: int) -> tuple[int, int]:
    """Return the offset of an mbarrier in ``wave.memories.shared``, and its bytes. Raises InvalidAccess."""
    offset = wave.locate(space, box.lanes, np.array([address], np.int64), 8)[1]
    return int(offset[0]), box.pieces.counted


def ranked(address: int, rank: int) -> int:
    """Return the same offset in the CTA of that rank."""
    return address % RANK_BYTES + (rank + FIRST) * RANK_BYTES
