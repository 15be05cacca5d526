"""Options of the compiler of PTX in the driver (CUjit_option): the limit of registers, logs, the time.

Knows where options lie in the client, and gives back what they ask for; other options have no effect.
"""

from __future__ import annotations

import struct

from .calls import Call

_MOST_REGISTERS, _WALL_TIME = 0, 2
_LOGS = {False: (3, 4), True: (5, 6)}  # buffer and bytes of it: of what is said, of errors


class JitOptions:
    """The options of a call: ``values`` by number, as words, and where each word lies."""

    def __init__(self, call: Call, count: int = 0, options: int = 0, values: int = 0) -> None:
        self._call = call
        numbers = call.get(options, f"{count}i") if count else ()
        words = call.get(values, f"{count}Q") if count else ()
        self.values = dict(zip(numbers, words, strict=True))
        self._places = {number: values + 8 * place for place, number in enumerate(numbers)}

    @property
    def most_registers(self) -> int | None:
        """The most registers of a thread, None for no limit."""
        return self.values.get(_MOST_REGISTERS, 0) & 0xFFFF_FFFF or None

    def ended(self, seconds: float, error: str = "") -> None:
        """Give the time, in milliseconds, and the logs, whose sizes become the bytes that they hold."""
        if _WALL_TIME in self._places:
            self._call.write(self._places[_WALL_TIME], struct.pack("<f", seconds * 1e3))
        for of_errors, (buffer, size) in _LOGS.items():
            room = self.values.get(size, 0) & 0xFFFF_FFFF
            if not room or not self.values.get(buffer, 0):
                continue
            text = (error if of_errors else "").encode(errors="replace")[: room - 1]
            self._call.write(self.values[buffer], text + b"\0")
            self._call.write(self._places[size], struct.pack("<I", len(text)))
