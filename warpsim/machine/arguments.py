"""The arguments of a launch: what a user holds becomes the bytes of the kernel's parameters.

Knows arrays, scalars and buffers; does not execute anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import OperandError
from .device import Buffer, Device
from .program import Parameter
from .spaces import Bytes, padded


@dataclass(kw_only=True)
class Arguments:
    """The bytes of all parameters, and what to do with arrays that were copied to the device afterwards."""

    content: Bytes
    buffers: list[Buffer | None] = field(default_factory=list)  # of each parameter
    write_back: list[Callable[[], None]] = field(default_factory=list)


def arguments_of(
    device: Device, parameters: Sequence[Parameter], size: int, given: Sequence[Any]
) -> Arguments:
    """The arguments, in the order of the parameters; raises OperandError naming the parameter at fault."""
    if len(given) != len(parameters):
        wanted = ", ".join(f"{one.name} (.{one.kind})" for one in parameters) or "none"
        raise OperandError(
            f"{len(given)} arguments, but the kernel has {len(parameters)} parameters: {wanted}"
        )
    arguments = Arguments(content=padded(size))
    for parameter, value in zip(parameters, given, strict=True):
        content = _bytes(device, parameter, value, arguments)
        arguments.content[parameter.offset : parameter.offset + parameter.bytes] = content
    return arguments


def _bytes(device: Device, parameter: Parameter, value: Any, arguments: Arguments) -> npt.NDArray[np.uint8]:
    """The bytes of one parameter."""
    buffer = None
    if isinstance(value, Buffer):
        if value.device is not device:
            raise OperandError(f"{_what(parameter)}: the buffer belongs to another device")
        buffer = value
    elif isinstance(value, np.ndarray) and value.ndim and value.dtype.names is None:
        buffer = _uploaded(device, parameter, value, arguments)
    arguments.buffers.append(buffer)
    if buffer is not None:
        return _integer(parameter, buffer.address)
    if value is None:
        return _integer(parameter, 0)
    if isinstance(value, bytes | bytearray | memoryview):
        return _struct(parameter, bytes(value))
    if isinstance(value, np.void):
        return _struct(parameter, value.tobytes())
    return _scalar(parameter, value)


def _what(parameter: Parameter) -> str:
    return f"parameter {parameter.index}, {parameter.name} (.{parameter.kind}, {parameter.bytes} bytes)"


def _uploaded(device: Device, parameter: Parameter, array: npt.NDArray[Any], arguments: Arguments) -> Buffer:
    """A buffer with an array's bytes, which come back after the launch if the array can be written."""
    if parameter.bytes not in (4, 8):
        raise OperandError(f"{_what(parameter)}: an array is passed by its address, of 8 bytes")
    buffer = device.array(array, parameter.name)
    if array.flags.writeable:

        def back() -> None:
            array[...] = buffer.get()

        arguments.write_back.append(back)
    return buffer


def _integer(parameter: Parameter, value: int) -> npt.NDArray[np.uint8]:
    size = parameter.bytes
    if size > 8 or not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        raise OperandError(f"{_what(parameter)}: {value:#x} does not fit")
    return np.frombuffer((value & (1 << 8 * size) - 1).to_bytes(size, "little"), np.uint8)


def _struct(parameter: Parameter, content: bytes) -> npt.NDArray[np.uint8]:
    if len(content) != parameter.bytes:
        raise OperandError(f"{_what(parameter)}: {len(content)} bytes are given")
    return np.frombuffer(content, np.uint8)


def _scalar(parameter: Parameter, value: Any) -> npt.NDArray[np.uint8]:
    """A Python or NumPy number; a float goes to a parameter of the bits of its type."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iubfV" or array.dtype.hasobject:
        raise OperandError(f"{_what(parameter)}: {type(value).__name__} is no array, number, bytes or None")
    if array.dtype.kind in "iub":
        if parameter.kind[0] == "f":
            array = array.astype(f"f{parameter.bytes}")
        else:
            return _integer(parameter, int(array))
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            array = array.astype(f"f{parameter.bytes}") if parameter.bytes in (2, 4, 8) else array
    if array.dtype.itemsize != parameter.bytes:
        raise OperandError(f"{_what(parameter)}: a {array.dtype} has {array.dtype.itemsize} bytes")
    return np.frombuffer(array.tobytes(), np.uint8)
