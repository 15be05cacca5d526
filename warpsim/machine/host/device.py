"""A device as users hold it: its memory, and the variables of modules there.

Variables are what cudaMemcpyToSymbol and cudaMemcpyFromSymbol see. Knows declarations and bytes;
does not know kernels. PTX ISA 9.1, section 5.1 "state spaces".
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...base.errors import OperandError
from ...isa.arrays import as_array, as_integer
from ...ptx.statements import VariableDeclaration
from ...ptx.symbols import matching, shown
from ..grid import symbols_of
from ..load.program import Module
from ..state import device as state
from ..state.device import Buffer

_LETTERS = {"b": "u", "u": "u", "s": "i", "f": "f"}


class Symbol(Buffer):
    """A variable of a module: ``get``, ``set`` and ``address``; ``shape`` and ``dtype`` are those declared.

    Compilers declare arrays and structures as bytes, so ``set`` takes any array of as many bytes for those,
    and ``get`` gives the shape and dtype that were set last.
    """

    def __init__(self, device: state.Device, declaration: VariableDeclaration, address: int) -> None:
        kind, shape = _dtype_and_shape(declaration)
        super().__init__(device, device.memory.allocation_at(address), shape, kind)
        self.name = shown(declaration.name)

    def set(self, value: Any, offset: int = 0) -> None:
        """Copy an array there, or a part of the variable from byte ``offset`` on.

        Raises OperandError, naming both sizes and types, where the array does not fit.
        """
        array = np.asarray(as_array(value), order="C")
        start, size = as_integer(offset, "an offset in a variable"), self.allocation.size
        fits = 0 <= start <= size - array.nbytes if start else array.nbytes == size
        if not fits or not self._takes(array.dtype):
            given = f"{array.dtype} {array.shape}, {array.nbytes} bytes"
            place = f" from byte {start} on" if start else ""
            own = f"{self.dtype} {self.shape}, {size} bytes"
            raise OperandError(f"{self.name} is {own}, but the array is {given}{place}")
        memory = self.device.memory
        memory.bytes_of(self.allocation)[start : start + array.nbytes] = array.reshape(-1).view(np.uint8)
        memory.written(self.allocation)
        if array.nbytes == size and self.dtype == np.uint8:
            self.shape, self.dtype = array.shape, array.dtype

    def _takes(self, dtype: np.dtype[Any]) -> bool:
        """Return whether an array of a dtype may be the content: as declared, or of bytes or bits alone."""
        declared = self.dtype
        return dtype == declared or declared.kind == "u" or (dtype.kind in "ui" and declared.kind in "ui")

    def __repr__(self) -> str:
        return f"<Symbol {self.name}: {self.dtype} {self.shape} at {self.address:#x}>"


def _dtype_and_shape(declaration: VariableDeclaration) -> tuple[np.dtype[Any], tuple[int, ...]]:
    bits = int("".join(letter for letter in declaration.type.partition("x")[0] if letter.isdigit()))
    packed = declaration.type.endswith("x2")
    letter = "u" if packed or bits == 128 else _LETTERS[declaration.type[0]]
    size = min(bits // 8 * (2 if packed else 1), 8)
    kind = np.dtype(f"<{letter}{size}")
    count = declaration.size // size
    shape = declaration.extents
    return kind, shape if int(np.prod(shape, dtype=np.int64)) == count else (count,)


def _declared_by_source(name: str) -> bool:
    """Return whether a variable is none of the compiler's own, such as the text of a printf."""
    return not name.startswith("$")


def symbol_of(device: state.Device, module: Module, name: str) -> Symbol:
    """Find a variable of a module by its name in PTX or in C++. Raises OperandError, which lists them."""
    addresses = symbols_of(device, module)
    found = matching(name, addresses)
    if len(found) != 1:
        known = ", ".join(map(shown, found or filter(_declared_by_source, addresses))) or "none"
        problem = (
            f"{name!r} names several variables:" if found else f"no variable {name!r}; the variables are"
        )
        raise OperandError(f"{problem} {known}")
    declarations = (
        statement for statement in module.program.statements if isinstance(statement, VariableDeclaration)
    )
    declaration = next(variable for variable in declarations if variable.name == found[0])
    return Symbol(device, declaration, addresses[found[0]])


class _Loaded(Protocol):
    """A loaded module, as far as its variables are concerned."""

    @property
    def module(self) -> Module: ...

    @property
    def target(self) -> str: ...


class Device(state.Device):
    """A chip with global memory. ``target`` is its PTX target, such as "sm_90a", or None for any.

    ``device.array(x)`` copies an array there; buffers stay until the device goes. ``heap_bytes`` is the size
    of the heap that malloc of device code takes from, as cudaLimitMallocHeapSize sets it.
    """

    def symbol(self, module: _Loaded, name: str) -> Symbol:
        """Return a variable of a module, by its name in PTX or in C++, on this device.

        Raises OperandError, which lists the variables, and for a module of another chip.
        """
        if self.target not in (None, module.target):
            raise OperandError(f"the device is {self.target}, but the module is loaded for {module.target}")
        return symbol_of(self, module.module, name)
