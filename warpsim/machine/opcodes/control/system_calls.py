"""Functions that device code calls and the CUDA driver provides: vprintf, malloc, free, __assertfail.

CUDA C++ Programming Guide, "Formatted Output", "Assertion" and "Dynamic Global Memory Allocation and
Operations". All lanes that call execute a function, in the order of their numbers. Knows arguments and
what each function does with them; does not know how a call passes arguments (see flow.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....base.errors import DeviceAssertion
from ...run.wave import Entry, Wave
from ...run.windows import WINDOWS
from ...state import spaces
from ...state.device_runtime import DeviceRuntime, Printed
from ...state.lanes import DivergentPath, Lanes, Values
from .c_format import Words, formatted

_LONGEST = 1 << 16  # bytes of a string; memory without a NUL is not a string
# Of a wave and the lanes that call, and one word a lane for each argument, the result or None.
SystemCall = Callable[[Wave, DivergentPath, Lanes, Sequence[Values]], "Values | None"]


def _print(wave: Wave, path: DivergentPath, lanes: Lanes, arguments: Sequence[Values]) -> Values:
    """vprintf(format, arguments): the number of arguments, -1 for a null format."""
    location = wave.code[path.pc].statement.location()
    formats, lists = (argument.tolist() for argument in arguments)
    results, runtime = list[int](), runtime_of(wave)
    for lane, text_address, list_address in zip(lanes.index.tolist(), formats, lists, strict=True):
        text = string_at(wave, lane, text_address) if text_address else None
        if text is None:
            results.append(-1)
            runtime.remarks[location, f"printf: no format lies at {text_address:#x}"] = None
            continue
        words = Words(_reader(bytes_behind(wave, lane, list_address)))
        found = formatted(text, words, lambda address, lane=lane: string_at(wave, lane, address))  # type: ignore[misc]
        if words.missing:
            wanted = (
                f"printf: {words.missing} of the {words.taken} arguments that the format names are missing"
            )
            runtime.remarks[location, wanted] = None
        thread = int(wave.thread[lane])
        x, y, z = wave.ctas[wave.cta[lane]].tolist()
        shown = found.decode("utf-8", errors="replace")
        item = Printed(text=shown, cta=(x, y, z), warp=thread // 32, lane=thread % 32, location=location)
        runtime.print(item)
        results.append(words.taken)
    return np.array(results, np.int64)


def _reader(memory: spaces.Bytes | None) -> Callable[[int, int], int | None]:
    def read(offset: int, size: int) -> int | None:
        if memory is None or offset + size > memory.size:
            return None
        return int.from_bytes(memory[offset : offset + size].tobytes(), "little")

    return read


def _assert(wave: Wave, path: DivergentPath, lanes: Lanes, arguments: Sequence[Values]) -> None:
    """__assertfail(expression, file, line, function, bytes of a character): ends the launch."""
    lane = int(lanes.index[0])
    words = [*(int(argument[0]) for argument in arguments), *(0,) * 4][:4]
    texts = [string_at(wave, lane, words[place]) for place in (0, 1, 3)]
    expression, file, function = ((text or b"?").decode("utf-8", errors="replace") for text in texts)
    message = f"assertion '{expression}' failed at {file}:{words[2]}, in {function}"
    place = wave.code[path.pc].statement.location()
    raise DeviceAssertion(f"{message} [{wave.describe_lanes(lanes)}]", place)


def _allocate(wave: Wave, path: DivergentPath, lanes: Lanes, arguments: Sequence[Values]) -> Values:
    """malloc(size): an address, 0 where the heap is used up."""
    heap, location = runtime_of(wave).heap, wave.code[path.pc].statement.location()
    return np.array([heap.allocate(size, location) for size in arguments[0].tolist()], np.int64)


def _free(wave: Wave, path: DivergentPath, lanes: Lanes, arguments: Sequence[Values]) -> None:
    """free(address); a null pointer is none."""
    heap = runtime_of(wave).heap
    for lane, address in zip(lanes.index.tolist(), arguments[0].tolist(), strict=True):
        if address and not heap.free(address):
            message = f"free({address:#x}): no block that malloc gave begins there, or it is free already"
            raise wave.fault(wave.code[path.pc], lane, message)


PARAMETERS = {"free": 1, "malloc": 1, "vprintf": 2}
SYSTEM_CALLS: dict[str, SystemCall] = {
    "__assertfail": _assert,
    "free": _free,
    "malloc": _allocate,
    "vprintf": _print,
}


def calls_the_system(entry: Entry) -> bool:
    """Return whether a module calls any of these functions."""
    calls = (record.statement for record in entry.code if record.statement.opcode == "call")
    return any(not SYSTEM_CALLS.keys().isdisjoint(call.names) for call in calls)


def runtime_of(wave: Wave) -> DeviceRuntime:
    """Return what the launch has of a device runtime."""
    assert wave.runtime is not None, "a wave of a launch has a runtime"
    return wave.runtime


def bytes_behind(wave: Wave, lane: int, address: int) -> spaces.Bytes | None:
    """Return the bytes from a generic address to the end of what it lies in; None where it lies in
    nothing.
    """
    first = address // spaces.WINDOW_BYTES * spaces.WINDOW_BYTES
    space, offset = WINDOWS.get(first), address - first
    if space == "local":
        memory = wave.memories.local.reshape(wave.lanes, -1)[lane]
    elif space == "shared":
        base = int(wave.memories.shared_base[lane])
        memory = wave.memories.shared[base : base + wave.memories.shared_bytes]
    elif space == "param":
        memory = wave.memories.parameters[: wave.entry.parameter_bytes]
    elif wave.memories.device.outside(np.array([address], np.int64), 1) is None:
        allocation = wave.memories.device.allocation_at(address)
        memory, offset = wave.memories.device.bytes_of(allocation), address - allocation.address
    else:
        return None
    return memory[offset:] if offset < memory.size else None


def string_at(wave: Wave, lane: int, address: int) -> bytes | None:
    """Return the bytes at a generic address up to a NUL; None where there is no memory or no NUL."""
    memory = bytes_behind(wave, lane, address)
    if memory is None:
        return None
    text, nul, _ = memory[:_LONGEST].tobytes().partition(b"\0")
    return text if nul else None
