"""A device as users hold it: its memory, and the variables of modules there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import OperandError
from ..machine.state import device as state
from .symbols import Symbol, symbol_of

if TYPE_CHECKING:
    from .launching import LoadedModule


class Device(state.Device):
    """A chip with global memory. ``target`` is its PTX target, such as "sm_90a", or None for any.

    ``device.array(x)`` copies an array there; buffers stay until the device goes. ``heap_bytes`` is the size
    of the heap that malloc of device code takes from, as cudaLimitMallocHeapSize sets it.
    """

    def symbol(self, module: LoadedModule, name: str) -> Symbol:
        """A variable of a module, by its name in PTX or in C++, on this device.

        Raises OperandError, which lists the variables, and for a module of another chip.
        """
        if self.target not in (None, module.target):
            raise OperandError(f"the device is {self.target}, but the module is loaded for {module.target}")
        return symbol_of(self, module.module, name)
