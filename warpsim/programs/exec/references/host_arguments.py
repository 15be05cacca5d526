"""The parameters of a host program's launch as arguments of a reference.

An array is the memory from its address to the end of the allocation, of one axis; those of Numba have their
shape. Fields of a structure that the reference declares as a ctypes.Structure are arguments, too. Knows
bytes and memory; does not execute.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError
from ....machine.run.wave import Parameter
from ....machine.state.spaces import DEVICE_BASE
from ....observe.algebra.leaves import Argument
from ..host_launch import HostLaunch
from .argument_types import annotated_type, annotations_of, parameter_types, type_named

Array = npt.NDArray[Any]
ADDRESS = 8  # bytes
_NUMBA = re.compile(r"Array<(.+), (\d+), \w")
_MEMBERS = 5  # of an array of Numba before its shape: two references, count, element size, address


@dataclass(frozen=True, kw_only=True)
class _Word:
    """Bytes of a parameter, what C++ and the reference call their type, and what the argument is called."""

    name: str
    content: bytes
    parameter: int
    offset: int = 0
    text: str = ""
    annotation: Any = None
    structure: str = ""
    kind: str = ""  # of the parameter in PTX


def argument_count(launch: HostLaunch) -> int:
    """Return how many arguments a reference of a launch takes."""
    types = parameter_types(launch.kernel.signature)
    return len(types) if any(map(_NUMBA.match, types)) else len(launch.kernel.parameters)


class HostArguments:
    """The arguments of a launch, one by one."""

    def __init__(self, launch: HostLaunch, function: Callable[..., Any]) -> None:
        self.launch, self.own = launch, annotations_of(function)
        self.parameters = launch.kernel.parameters
        self.found: list[Argument] = []
        self.open: list[int] = []  # arrays whose type nothing says

    def read(self) -> list[Argument]:
        """Return the arguments."""
        types = parameter_types(self.launch.kernel.signature)
        if any(_NUMBA.match(each) for each in types):
            self._add_numba_arguments(types)
        else:
            known = types if len(types) == len(self.parameters) else [""] * len(self.parameters)
            for index, parameter in enumerate(self.parameters):
                self._add(self._word(index, index, known[index], parameter))
        return self.found

    def _word(self, place: int, index: int, text: str, parameter: Parameter) -> _Word:
        name, annotation = self.own[place] if place < len(self.own) else (f"parameter {index}", None)
        return _Word(
            name=name, content=self.launch.parameters[index], parameter=index, text=text,
            annotation=annotation, kind=parameter.kind,
        )  # fmt: skip

    def _add(self, word: _Word) -> None:
        if isinstance(word.annotation, type) and issubclass(word.annotation, ctypes.Structure):
            self._structure(word, word.annotation)
            return
        if len(word.content) == ADDRESS and word.text in ("", *_pointers(word.text)):
            array = self._memory(int.from_bytes(word.content, "little"), word)
            if array is not None:
                self._argument(word, array)
                return
        self._argument(word, _number(word))

    def _argument(self, word: _Word, content: Array | None, *, shapeless: bool = True) -> None:
        found = Argument(len(self.found), word.name, content, structure=word.structure)
        found.parameter, found.offset = word.parameter, word.offset
        found.shapeless = shapeless and content is not None and content.ndim == 1
        self.found.append(found)

    def _memory(self, address: int, word: _Word) -> Array | None:
        """Return the memory from an address to the end of its allocation, None where there is none."""
        memory = self.launch.device.memory
        allocation = memory.find(address)
        if allocation is None:
            return None
        kind = annotated_type(word.annotation) or type_named(word.text.rstrip("*& "))
        if kind is None:
            self.open.append(len(self.found))
            kind = np.dtype(np.uint8)
        first, past = address - DEVICE_BASE, allocation.address + allocation.size - DEVICE_BASE
        count = (past - first) // kind.itemsize
        return memory.data[first : first + count * kind.itemsize].copy().view(kind)

    def _structure(self, word: _Word, kind: type[ctypes.Structure]) -> None:
        """Add the fields of a structure, with their paths; those of structures in it likewise.

        Raises OperandError.
        """
        if ctypes.sizeof(kind) != len(word.content):
            raise OperandError(
                f"{word.name} is declared as {kind.__name__} of {ctypes.sizeof(kind)} bytes, parameter "
                f"{word.parameter} of the kernel has {len(word.content)}"
            )
        for name, own, *_ in getattr(kind, "_fields_", ()):
            first = getattr(kind, name).offset
            field = replace(
                word, name=f"{word.name}.{name}", offset=word.offset + first, annotation=own,
                content=word.content[first : first + ctypes.sizeof(own)],
                structure=word.structure or word.name, text="", kind="",
            )  # fmt: skip
            pointed = getattr(own, "_type_", None)
            if issubclass(own, ctypes.Structure):
                self._structure(field, own)
            elif isinstance(pointed, type) and not issubclass(own, ctypes.Array):
                self._add(replace(field, annotation=pointed, text="*"))
            elif own is ctypes.c_void_p:
                self._add(replace(field, annotation=None))
            else:
                self._argument(field, np.frombuffer(field.content, np.dtype(own))[0])

    def _add_numba_arguments(self, types: Sequence[str]) -> None:
        """Add the arguments of a kernel of Numba, whose arrays are several parameters each."""
        index = 0
        for place, text in enumerate(types):
            array = _NUMBA.match(text)
            word = self._word(place, index, text, self.parameters[index])
            if array is None:
                self._add(word)
                index += 1
                continue
            axes, last = int(array[2]), index + _MEMBERS
            members = self.launch.parameters[index : last + 2 * axes]
            address = int.from_bytes(members[_MEMBERS - 1], "little")
            flat = self._memory(address, replace(word, text=array[1]))
            numbers = [int.from_bytes(each, "little", signed=True) for each in members[_MEMBERS:]]
            content = None if flat is None else strided(flat, numbers[:axes], numbers[axes:], word.name)
            self._argument(replace(word, parameter=last - 1), content, shapeless=False)
            index = last + 2 * axes


def strided(flat: Array, shape: Sequence[int], strides: Sequence[int], name: str) -> Array:
    """Return memory as an array of a shape, with strides in bytes. Raises OperandError for what leaves it."""
    ends = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    past = sum(max(end, 0) for end in ends) + flat.itemsize
    if min(shape) < 0 or (0 not in shape and (min(ends) < 0 or past > flat.nbytes)):
        raise OperandError(
            f"{name}: shape {tuple(shape)} with strides {tuple(strides)} leaves the {flat.nbytes:,} bytes "
            "from its address to the end of the allocation"
        )
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


def _pointers(text: str) -> tuple[str, ...]:
    return (text,) if text.endswith(("*", "&")) else ()


def _number(word: _Word) -> Array | None:
    """Return a number as its annotation, C++ or PTX names its type; None for other bytes."""
    size = len(word.content)
    kind = annotated_type(word.annotation) or type_named(word.text)
    if kind is None or kind.itemsize != size:
        letter = "f" if word.kind.startswith("f") else "i"
        kind = np.dtype(f"{letter}{size}") if size in (2, 4, 8) or (size == 1 and letter == "i") else None
    return None if kind is None else np.frombuffer(word.content, kind)[0]
