"""A device as users hold it: its memory, and the variables of modules there."""

from __future__ import annotations

from typing import Protocol

from ..errors import OperandError
from ..machine.load.program import Module
from ..machine.state import device as state
from .symbols import Symbol, symbol_of


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
