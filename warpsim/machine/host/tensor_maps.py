"""Tensor maps as users make them: of a NumPy array, or of a buffer of a device.

    tensor_map(array, box=...)      cuTensorMapEncodeTiled
    tensor_map_im2col(array, ...)   cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2colWide

Dimensions stand as NumPy orders them here, the innermost last; in a map it is first (isa/tensor_map.py). A
map of a buffer has an address, and bytes. One of an array gets its address when it is an argument of a
launch: the array then lies on the device as if it were an argument itself, and comes back afterwards. Views
lie where their array does: maps of parts of one array, and the array itself as an argument, are one memory.

Knows arrays, buffers and dtypes; does not know instructions, or what a map can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.arrays import as_array, as_integer
from ...isa.layouts.swizzle import TensorSwizzle
from ...isa.tensor_maps.tensor_fields import ELEMENT_TYPES, Fill, Im2col, Interleave, Mode, Promotion
from ...isa.tensor_maps.tensor_map import TensorMap
from ..state.device import Buffer, BufferPlace

_ELEMENTS = {  # of dtypes, by name; others are moved as unsigned integers of their size
    **{f"{kind}int{bits}": f"{kind or 's'}{bits}" for kind in ("u", "") for bits in (32, 64)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
}
Whole = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class BufferMap:
    """The map of a buffer: an argument of a launch, or of ``device.array``; ``bytes(map)`` are its 128."""

    buffer: Buffer
    map: TensorMap

    def __bytes__(self) -> bytes:
        return bytes(self.map)

    def __repr__(self) -> str:
        return f"<tensor map of {self.buffer!r}: {_describe(self.map)}>"


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayMap:
    """The map of a NumPy array, which has no address yet: an argument of a launch.

    ``map`` is what it would be if the whole array that this is a part of began at address 0.
    """

    array: Whole
    map: TensorMap

    def at(self, address: int) -> TensorMap:
        """Return the map, with the array's first element at an address. Raises OperandError."""
        return replace(self.map, address=address)

    def __bytes__(self) -> bytes:
        raise OperandError(
            "a tensor map of a NumPy array has no bytes before a launch puts the array on a device: "
            "pass the map as an argument, or make it of a buffer of a warpsim.Device"
        )

    def __repr__(self) -> str:
        return f"<tensor map of {self.array.dtype} {self.array.shape}: {_describe(self.map)}>"


def _describe(map_: TensorMap) -> str:
    box = "x".join(map(str, map_.box[::-1])) if map_.im2col is None else map_.mode
    return f"box {box}, swizzle {map_.swizzle}"


Source = Buffer | BufferPlace | Whole | Any


def tensor_map(
    array: Source,
    box: Sequence[int],
    *,
    element_strides: Sequence[int] | None = None,
    swizzle: TensorSwizzle | None = "none",
    interleave: Interleave | None = "none",
    fill: Fill = "zero",
    l2_promotion: Promotion | None = "none",
    element: str | None = None,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> BufferMap | ArrayMap:
    """Return a map for copies in tile mode, as cuTensorMapEncodeTiled makes it.

    ``array`` is a NumPy or CPU torch array, a buffer, or ``buffer.at(offset)``; ``box`` has the elements that
    a copy moves along each dimension, of which it takes every ``element_strides``-th. ``swizzle`` is "none",
    "32B", "64B", "128B" or, from sm_100 on, "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B".
    ``element`` is the type of PTX ("tf32", "b4x16", ...) where it is not the dtype's; of packed types the
    array has bytes. ``shape`` (in elements) and ``strides`` (in bytes, the innermost may be left out) replace
    those of the array. Raises OperandError for what no map can be, naming the limit.
    """
    tensor = _tensor(array, element, shape, strides)
    return tensor.mapped(
        box=_numbers(box, "box"),
        element_strides=_numbers(element_strides, "element_strides"),
        swizzle=swizzle or "none",
        interleave=interleave or "none",
        fill=fill,
        l2_promotion=l2_promotion or "none",
    )


def tensor_map_im2col(
    array: Source,
    *,
    lower: Sequence[int],
    upper: Sequence[int],
    channels: int,
    pixels: int,
    mode: Mode = "im2col",
    element_strides: Sequence[int] | None = None,
    swizzle: TensorSwizzle | None = "none",
    interleave: Interleave | None = "none",
    fill: Fill = "zero",
    l2_promotion: Promotion | None = "none",
    element: str | None = None,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> BufferMap | ArrayMap:
    """Return a map for copies of columns of pixels, as cuTensorMapEncodeIm2col makes it.

    ``array`` has the axes N, D, H, W, C, of which D and H may be missing; ``lower`` and ``upper`` are the
    corners along D, H and W, in that order, of the box that a filter's base visits: its distances from the
    first and the last pixel. A copy moves ``channels`` of so many ``pixels``. ``mode`` is "im2col",
    "im2col::w" or "im2col::w::128". The rest is as for tensor_map.
    """
    tensor = _tensor(array, element, shape, strides)
    im2col = Im2col(
        lower=_numbers(lower, "lower"),
        upper=_numbers(upper, "upper"),
        channels=as_integer(channels, "channels"),
        pixels=as_integer(pixels, "pixels"),
        mode=mode,
    )
    return tensor.mapped(
        im2col=im2col,
        element_strides=_numbers(element_strides, "element_strides"),
        swizzle=swizzle or "none",
        interleave=interleave or "none",
        fill=fill,
        l2_promotion=l2_promotion or "none",
    )


def shaped_map(dtype: npt.DTypeLike, shape: Sequence[int], **fields: Any) -> TensorMap:
    """Return the map of an array that is not there, at address 0; fields are those of tensor_map or
    tensor_map_im2col.
    """
    import numpy.lib.stride_tricks as tricks

    nothing = np.empty(1, dtype)
    array = tricks.as_strided(nothing, shape, _contiguous(shape, nothing.itemsize))
    if "lower" in fields:
        return tensor_map_im2col(array, **fields).map
    return tensor_map(array, **fields).map


def _numbers(given: Sequence[int] | None, what: str) -> tuple[int, ...]:
    """Return integers, innermost first."""
    if given is None:
        return ()
    try:
        values = (given,) if isinstance(given, int | np.integer) else tuple(given)
        return tuple(as_integer(value, f"each of {what}") for value in values)[::-1]
    except TypeError:
        raise OperandError(f"{what} is a sequence of integers, not {given!r}") from None


@dataclass(frozen=True, kw_only=True)
class _Tensor:
    """What a map is made of: where the elements are, innermost dimension first."""

    held: Whole | Buffer
    address: int
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    def mapped(self, **fields: Any) -> BufferMap | ArrayMap:
        """Return the map with more fields."""
        made = TensorMap(
            address=self.address, element=self.element, sizes=self.sizes, strides=self.strides, **fields
        )
        if isinstance(self.held, Buffer):
            return BufferMap(buffer=self.held, map=made)
        return ArrayMap(array=self.held, map=made)


def _tensor(
    given: Source, element: str | None, shape: Sequence[int] | None, strides: Sequence[int] | None
) -> _Tensor:
    held, address, own_strides = _backing_store(given)
    found = _element(held.dtype, element)
    sizes = _element_shape(held.shape, found) if shape is None else _numbers(shape, "shape")[::-1]
    if strides is not None:
        outer = _outer(_numbers(strides, "strides"), len(sizes), held.dtype)
    elif shape is not None:
        outer = _contiguous(sizes, 1, bits=ELEMENT_TYPES[found].bits)[:-1][::-1]
    else:
        _check_innermost(held.shape, own_strides, held.dtype)
        outer = tuple(int(stride) for stride in own_strides[:-1])[::-1]
    return _Tensor(held=held, address=address, element=found, sizes=sizes[::-1], strides=outer)


def _backing_store(given: Source) -> tuple[Whole | Buffer, int, tuple[int, ...]]:
    """Return what holds the elements, where in it the first element is (or its address), and strides."""
    if isinstance(given, Buffer | BufferPlace):
        buffer = given.buffer if isinstance(given, BufferPlace) else given
        return buffer, given.address, _contiguous(buffer.shape, buffer.dtype.itemsize)
    array = _of(given)
    return array, first_byte(array) - first_byte(whole(array)), array.strides


def _outer(strides: tuple[int, ...], rank: int, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return strides of all dimensions but the innermost, whose own may be given, too; innermost first."""
    if len(strides) != rank:
        return strides
    if strides[0] != dtype.itemsize:
        raise OperandError(f"the innermost stride is {strides[0]} bytes: elements of {dtype} are neighbours")
    return strides[1:]


def _of(given: Any) -> Whole:
    try:
        array = as_array(given)
    except (TypeError, ValueError) as error:
        raise OperandError(f"{type(given).__name__} is not an array: {error}") from None
    if isinstance(given, list | tuple) or array.dtype.hasobject or array.dtype.kind in "USmM":
        raise OperandError(f"expected an array or a buffer, given {type(given).__name__}")
    return array


def _contiguous(shape: Sequence[int], size: int, bits: int | None = None) -> tuple[int, ...]:
    """Return strides in bytes of an array without gaps, in the order of its shape."""
    bits = 8 * size if bits is None else bits
    counts = [int(np.prod(shape[place + 1 :], dtype=object)) for place in range(len(shape))]
    return tuple(count * bits // 8 for count in counts)


def _element(dtype: np.dtype[Any], given: str | None) -> str:
    """Return the type of elements; raises OperandError where it is not as wide as the dtype."""
    natural = _ELEMENTS.get(dtype.name, f"u{8 * dtype.itemsize}")
    found = natural if given is None else given
    if found not in ELEMENT_TYPES:
        what = f"element {given!r}" if given is not None else f"elements of dtype {dtype}"
        raise OperandError(f"{what}: a tensor map has {', '.join(ELEMENT_TYPES)}")
    width = 8 if ELEMENT_TYPES[found].packed else ELEMENT_TYPES[found].bits
    if width != 8 * dtype.itemsize:
        raise OperandError(f"element {found} of an array of {dtype}: it takes items of {width} bits")
    return found


def _element_shape(shape: Sequence[int], element: str) -> tuple[int, ...]:
    """Return a shape in elements, of an array that has bytes where they are packed."""
    bits = ELEMENT_TYPES[element].bits
    if not ELEMENT_TYPES[element].packed or not shape:
        return tuple(shape)
    return (*shape[:-1], shape[-1] * 8 // bits)


def _check_innermost(shape: Sequence[int], strides: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Check that the innermost elements are neighbours, and that the other strides are not negative."""
    if shape and strides[-1] != dtype.itemsize and shape[-1] > 1:
        raise OperandError(
            f"the innermost elements of the array are {strides[-1]} bytes apart, not {dtype.itemsize}: "
            "a tensor map has neighbours there"
        )
    if any(stride < 0 for stride in strides):
        raise OperandError(f"strides of {tuple(strides)} bytes: those of a tensor map are not negative")


# --- arguments of a launch -------------------------------------------------------------------------


def whole(array: Whole) -> Whole:
    """Return the array that a view is a part of, or itself; what is put on a device. Raises OperandError.

    A view of all of an array has a shape that says more: numpy.load returns views of arrays of one dimension.
    """
    found = array
    while isinstance(found.base, np.ndarray):
        found = found.base
    if found.nbytes == array.nbytes and array.flags.c_contiguous:
        found = array
    if not found.flags.c_contiguous or not found.dtype.isnative:
        found = array
    if not found.flags.c_contiguous:
        raise OperandError(
            "the map's array is a view with gaps, and part of no array without gaps: give a copy"
        )
    return found


def first_byte(array: Whole) -> int:
    """Return the address on the host of an array's first element."""
    found: int = array.__array_interface__["data"][0]
    return found


def past_byte(array: Whole) -> int:
    """Return the address on the host of the byte behind an array's last element; strides are not negative."""
    pairs = zip(array.shape, array.strides, strict=True)
    reach = sum((int(size) - 1) * int(stride) for size, stride in pairs)
    return first_byte(array) + reach + int(array.itemsize)
