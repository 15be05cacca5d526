"""The arguments of a launch: what a user holds becomes the bytes of the kernel's parameters.

    NumPy, ml_dtypes and CPU torch arrays   copied to the device; the parameter is the address; what can be
                                            written comes back in place after the launch, strides and all
    Buffer, buffer.at(offset)               its address
    tensor maps                             their 128 bytes, or the address of those; the map's array is
                                            copied as if it were an argument itself
    numbers, arrays of no dimension         by value, in the type of the parameter
    bytes, structured scalars               by value, as they are; so is what has ``__bytes__``
    structures of ctypes                    by value, or by address and then copied back (structures.py)
    None                                    a null pointer

One array that is passed twice is one buffer. Arrays that overlap without being the same are copied each for
itself, and come back in the order of the parameters: the last one stays. Does not execute anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import OperandError
from ...isa.arrays import as_array
from ...ptx.symbols import shown_variable
from ..run.wave import Parameter
from ..state.device import Buffer, BufferPlace, Device
from ..state.spaces import Bytes, padded
from .structures import Field, Structure, structure_of
from .tensor_maps import ArrayMap, BufferMap, first_byte, past_byte, whole

Content = npt.NDArray[np.uint8]
Place = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype[Any]]  # of an array: first byte, shape, strides
_POINTERS = ("u64", "b64", "s64", "u32", "b32", "s32")


@dataclass(kw_only=True)
class Arguments:
    """The bytes of all parameters, and what to do with arrays that were copied to the device afterwards."""

    content: Bytes
    buffers: list[Buffer | None] = field(default_factory=list)  # of each parameter
    write_back: list[Callable[[], None]] = field(default_factory=list)
    before: dict[int, npt.NDArray[Any]] = field(default_factory=dict)  # of arrays that came back changed
    known: dict[Place, Buffer] = field(default_factory=dict)  # of arrays


def arguments_of(
    device: Device, parameters: Sequence[Parameter], size: int, given: Sequence[Any]
) -> Arguments:
    """Return the arguments, in the order of the parameters; raises OperandError naming the parameter at
    fault.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes | bytearray):
        raise OperandError(f"the arguments are a list or tuple, not {_kind(given)}")
    if len(given) != len(parameters):
        wanted = (
            ", ".join(f"{shown_variable(parameter.name)} (.{parameter.kind})" for parameter in parameters)
            or "none"
        )
        raise OperandError(
            f"{len(given)} arguments, but the kernel has {len(parameters)} parameters: {wanted}"
        )
    arguments = Arguments(content=padded(size))
    pairs = list(zip(parameters, given, strict=True))
    arguments.buffers = [None] * len(pairs)
    # Maps come last: their arrays are parts of those that are arguments themselves.
    for parameter, value in sorted(pairs, key=lambda pair: _turn(pair[1])):
        try:
            content = _bytes(device, parameter, value, arguments)
        except OperandError as error:
            raise OperandError(f"{what(parameter)}: {error.message}") from None
        arguments.content[parameter.offset : parameter.offset + parameter.bytes] = content
    return arguments


def device_of(given: Sequence[Any]) -> Device | None:
    """Return the device of the first buffer among the arguments, or None."""
    if not isinstance(given, Sequence):
        return None
    fields = (each.value for argument in given if isinstance(argument, Structure) for each in argument.fields)
    owners = (
        argument.buffer if isinstance(argument, BufferPlace | BufferMap) else argument
        for argument in (*given, *fields)
    )
    return next((owner.device for owner in owners if isinstance(owner, Buffer)), None)


def _turn(value: Any) -> int:
    """Return when an argument gets its turn: arrays come before structures, and maps of arrays last."""
    return 2 if isinstance(value, ArrayMap) else int(isinstance(value, Structure))


def what(parameter: Parameter) -> str:
    """Return a parameter in words."""
    size = f"{parameter.bytes} byte{'s'[: parameter.bytes != 1]}"
    return f"parameter {parameter.index}, {shown_variable(parameter.name)} (.{parameter.kind}, {size})"


def _bytes(device: Device, parameter: Parameter, value: Any, arguments: Arguments) -> Content:
    """Return the bytes of one parameter."""
    if value is None:
        return _pointer(parameter, 0, "None, a null pointer,")
    if isinstance(value, Buffer | BufferPlace):
        return _buffer_content(device, parameter, value, arguments)
    if isinstance(value, BufferMap | ArrayMap):
        return _map_content(device, parameter, value, arguments)
    held = value if isinstance(value, Structure) else structure_of(value)
    if held is not None:
        points = not isinstance(value, Structure | ctypes.Structure)
        return _structure_content(device, parameter, held, points, arguments)
    if isinstance(value, bytes | bytearray | memoryview | np.void):
        return _struct(parameter, value.tobytes() if isinstance(value, np.void) else bytes(value))
    if not hasattr(value, "dtype") and hasattr(value, "__bytes__"):
        return _struct(parameter, bytes(value))
    array = _array(value)
    if not array.ndim:
        record = issubclass(array.dtype.type, np.void)
        return _struct(parameter, array.tobytes()) if record else _scalar(parameter, array)
    if isinstance(value, list | tuple):
        raise OperandError(
            f"a {_kind(value)} is not an array: results could not come back; give a NumPy array"
        )
    arguments.buffers[parameter.index] = buffer = _upload(device, parameter, array, arguments)
    return _pointer(parameter, buffer.address, "an array, which is passed by its address,")


def _array(value: Any) -> npt.NDArray[Any]:
    try:
        array = as_array(value)
    except (TypeError, ValueError) as error:
        raise OperandError(f"{_kind(value)} is not understood: {error}") from None
    if array.dtype.hasobject or array.dtype.kind in "USmM":
        raise OperandError(f"expected an array, a number, bytes or None, given {_kind(value)}")
    return array


def _kind(value: Any) -> str:
    return type(value).__name__


def _buffer_content(
    device: Device, parameter: Parameter, value: Buffer | BufferPlace, arguments: Arguments
) -> Content:
    buffer = value.buffer if isinstance(value, BufferPlace) else value
    _check_device(device, buffer)
    arguments.buffers[parameter.index] = buffer
    return _pointer(parameter, value.address, "a buffer, which is passed by its address,")


def _check_device(device: Device, buffer: Buffer) -> None:
    if buffer.device is not device:
        raise OperandError("the buffer belongs to another device")


def _pointer(parameter: Parameter, address: int, given: str) -> Content:
    """Return an address; raises OperandError where the parameter is none."""
    if parameter.kind not in _POINTERS or address >= 1 << 8 * parameter.bytes:
        raise OperandError(f"given {given} but expected {_expected_text(parameter)}")
    return np.frombuffer(address.to_bytes(parameter.bytes, "little"), np.uint8)


def _expected_text(parameter: Parameter) -> str:
    """Return what suits a parameter, in words."""
    if parameter.kind == "b8":
        return f"{parameter.bytes} bytes by value"
    if parameter.kind[0] == "f":
        return f"a number for .{parameter.kind}"
    return f"an integer of {8 * parameter.bytes} bits"


# --- buffers that are kept ---------------------------------------------------------------------------

_KEPT = 1 << 26  # bytes of buffers that a launch keeps a copy of
_AT_ONCE = 1 << 20  # bytes that are compared at once


def buffer_of(value: Any) -> Buffer | None:
    """Return the buffer of an argument: itself, that of a place, or that of a tensor map; None for others."""
    held = value if isinstance(value, Buffer) else getattr(value, "buffer", None)
    return held if isinstance(held, Buffer) else None


def buffers_before(given: Sequence[Any]) -> dict[int, npt.NDArray[Any]] | None:
    """Return the content of device buffers by argument; None where they are too large to keep."""
    buffers = {index: found for index, value in enumerate(given) if (found := buffer_of(value))}
    if sum(found.allocation.size for found in buffers.values()) > _KEPT:
        return None
    return {index: found.get() for index, found in buffers.items()}


def changed_buffers(
    given: Sequence[Any], before: Mapping[int, npt.NDArray[Any]]
) -> dict[int, npt.NDArray[Any]]:
    """Return the content before of buffers that hold something else now."""
    found = {}
    for index, content in before.items():
        buffer = buffer_of(given[index])
        if buffer is not None and not same_bits(buffer.get(), content):
            found[index] = content
    return found


# --- arrays ----------------------------------------------------------------------------------------


def _upload(device: Device, parameter: Parameter, array: npt.NDArray[Any], arguments: Arguments) -> Buffer:
    """Return a buffer with an array's bytes, which come back after the launch if the array can be written."""
    if not array.dtype.isnative:
        raise OperandError(f"the array has dtype {array.dtype.str}, whose byte order is not the device's")
    place = array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
    if place not in arguments.known:
        arguments.known[place] = device.array(array, parameter.name)
    buffer = arguments.known[place]
    if array.flags.writeable:
        before = arguments.before  # and not the arguments: they hold this function
        arguments.write_back.append(lambda: _come_back(array, buffer, parameter.index, before))
    return buffer


def _come_back(
    array: npt.NDArray[Any], buffer: Buffer, index: int, before: dict[int, npt.NDArray[Any]]
) -> None:
    """Copy a buffer to an array; keep in ``before`` what was in the array if that is not the same."""
    content = buffer.device.memory.bytes_of(buffer.allocation).view(buffer.dtype).reshape(buffer.shape)
    if not same_bits(content, array):
        before[index] = array.copy()
        put_bits(array, content)


def same_bits(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """Return whether two arrays of one shape and dtype have the same bytes; copies rows, not all of them."""
    if first.ndim == 0 or first.nbytes <= _AT_ONCE:
        return first.tobytes() == second.tobytes()
    rows = max(_AT_ONCE * len(first) // first.nbytes, 1)
    return all(
        first[row : row + rows].tobytes() == second[row : row + rows].tobytes()
        for row in range(0, len(first), rows)
    )


def put_bits(array: npt.NDArray[Any], content: npt.NDArray[Any]) -> None:
    """Copy an array to another of its dtype, as bits: no value is converted."""
    size = array.dtype.itemsize
    if size in (1, 2, 4, 8) and array.dtype.names is None:
        array.view(f"u{size}")[...] = content.view(f"u{size}")
    else:
        array[...] = content


# --- structures ------------------------------------------------------------------------------------


def _structure_content(
    device: Device, parameter: Parameter, held: Structure, points: bool, arguments: Arguments
) -> Content:
    """Return the bytes of a structure, or the address where they are put and come back from."""

    def given(field: Field) -> bytes:
        name = f"{parameter.name}.{field.name}"
        kind = _POINTERS[0] if field.points else "b8"
        place = replace(parameter, name=name, kind=kind, bytes=field.size)
        try:
            return _bytes(device, place, field.value, arguments).tobytes()
        except OperandError as error:
            raise OperandError(f"field {field.name}: {error.message}") from None

    contents = {each: given(each) for each in sorted(held.fields, key=lambda each: _turn(each.value))}
    arguments.buffers[parameter.index] = None
    content = held.content(contents.__getitem__)
    if parameter.kind not in _POINTERS or (parameter.bytes == len(content) and not points):
        return _struct(parameter, content)
    buffer = device.array(np.frombuffer(content, np.uint8), parameter.name)
    arguments.write_back.append(lambda: held.written(buffer.get().tobytes()))
    return _pointer(parameter, buffer.address, "a structure, which is passed by its address,")


# --- tensor maps -----------------------------------------------------------------------------------


def _map_content(
    device: Device, parameter: Parameter, value: BufferMap | ArrayMap, arguments: Arguments
) -> Content:
    """Return the bytes of a map, or the address where they are put."""
    if isinstance(value, ArrayMap):
        buffer, offset = _containing_buffer(device, parameter, value.array, arguments)
        content = bytes(value.at(buffer.address + offset))
    else:
        buffer, content = value.buffer, bytes(value)
        _check_device(device, buffer)
    arguments.buffers[parameter.index] = buffer
    if parameter.kind not in _POINTERS:
        return _struct(parameter, content)
    place = device.array(np.frombuffer(content, np.uint8), parameter.name)
    return _pointer(parameter, place.address, "a tensor map, which is passed by its address,")


def _containing_buffer(
    device: Device, parameter: Parameter, array: npt.NDArray[Any], arguments: Arguments
) -> tuple[Buffer, int]:
    """Return the buffer of an array that an array is a part of, and the place in it."""
    first, past = first_byte(array), past_byte(array)
    for place, buffer in arguments.known.items():
        start = place[0]
        if start <= first and past <= start + buffer.allocation.size and _gapless(place):
            return buffer, first - start
    found = whole(array)
    return _upload(device, parameter, found, arguments), first - first_byte(found)


def _gapless(place: Place) -> bool:
    """Return whether an array's elements lie in memory as they do on the device."""
    _, shape, strides, dtype = place
    expected = dtype.itemsize
    for size, stride in zip(shape[::-1], strides[::-1], strict=True):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


# --- values ----------------------------------------------------------------------------------------


def _struct(parameter: Parameter, content: bytes) -> Content:
    if len(content) != parameter.bytes:
        raise OperandError(f"expected {parameter.bytes} bytes, given {len(content)}")
    return np.frombuffer(content, np.uint8)


def _scalar(parameter: Parameter, value: npt.NDArray[Any]) -> Content:
    """Return a number in the type of the parameter; without a type there it keeps its own."""
    if value.dtype.kind in "iub":
        return _integer_content(parameter, int(value))
    if value.dtype.kind not in "fV":
        raise OperandError(f"given a {value.dtype}, but expected {_expected_text(parameter)}")
    if parameter.kind[0] in "us":
        raise OperandError(f"given {value} of {value.dtype}, but expected {_expected_text(parameter)}")
    return _float_content(parameter, value)


def _integer_content(parameter: Parameter, value: int) -> Content:
    size = parameter.bytes
    if parameter.kind[0] == "f":
        return _float_content(parameter, np.array(float(value)))
    if size > 8:
        raise OperandError(f"given the integer {value}, but expected {_expected_text(parameter)}")
    least, most = -(1 << 8 * size - 1), (1 << 8 * size) - 1
    if not least <= value <= most:
        raise OperandError(f"{value} does not fit in {8 * size} bits: {least} to {most} does")
    return np.frombuffer((value & most).to_bytes(size, "little"), np.uint8)


def _float_content(parameter: Parameter, value: npt.NDArray[Any]) -> Content:
    """Convert to .f16 to .f64; Python's floats, which are f64, to .b32 and .b64, too."""
    size = parameter.bytes
    typed = parameter.kind[0] == "f" or (value.dtype == np.float64 and parameter.kind in ("b32", "b64"))
    if typed and size in (2, 4, 8):
        with np.errstate(all="ignore"):
            value = value.astype(f"f{size}")
    if value.dtype.itemsize != size:
        raise OperandError(f"given a {value.dtype} of {value.dtype.itemsize} bytes: it does not fit")
    return np.frombuffer(value.tobytes(), np.uint8)
