"""A call of a CUDA function: its arguments, the client's memory, and the table of functions, a row each.

A row is a Python function whose parameters, by their annotations, say which registers and words of the stack
hold them (the System V ABI of x86-64); a NamedTuple stands for several. It returns a code of CUDA, None for
success, or what the function returns; CudaError is the code that it names. Does not know what functions do.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .clients.client import Process
from .cuda_structures import Structure, layout, numbers, unpack
from .error_codes import CudaError
from .libraries import function_named
from .messages import Channel, Message
from .streams import LEGACY, PER_THREAD, Stream

Pointer = int  # how a parameter lies in a register: 64 bits,
Size = int
Handle = int
AsyncStream = int  # behind the others, of functions that are named Async; 0 of others
Int = int  # 32 bits
Unsigned = int
Dimensions3 = tuple[int, int, int]  # dim3 by value
Extent = tuple[int, int, int]  # cudaExtent by value: three words of the stack
Pitched = tuple[int, int, int, int]  # cudaPitchedPtr by value
Function = TypeVar("Function", bound=Callable[..., "int | None"])
_SUFFIXES = ("_ptsz", "_ptds")  # forms whose stream 0 is that of the thread
_LONGEST_TEXT = 1 << 16


class Caller(Protocol):
    """A thread of a client, as calls see it: client_threads.py has it."""

    channel: Channel
    last_error: int
    contexts: list[int]
    configurations: list[tuple[object, ...]]
    own_stream: int
    capture_mode: int

    @property
    def current(self) -> int:
        """The context that is current; 0 for none."""

    def call_host(self, function: int, *arguments: int) -> int:
        """Have the client call a function of its own."""

    def synchronise(self) -> None:
        """Print what device code has printed."""


@dataclass(eq=False, slots=True)
class Call:
    """A call of one thread of a process. ``by_thread`` says that stream 0 is the thread's own."""

    connection: Caller
    process: Process
    name: str
    message: Message
    by_thread: bool = False

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the client's memory. Raises CudaError for an address that it has not mapped."""
        return self.process.client_memory.read(self.connection.channel, address, size)

    def write(self, address: int, content: bytes) -> None:
        """Write bytes to the client's memory. Raises CudaError."""
        self.process.client_memory.write(self.connection.channel, address, content)

    def get(self, address: int, form: str) -> tuple[Any, ...]:
        """Return fields of a structure of the client, as struct names them."""
        try:
            fields = struct.Struct("<" + form)
        except struct.error:
            raise CudaError("InvalidValue", f"{self.name}: more elements than memory has") from None
        return fields.unpack(self.read(address, fields.size))

    def put(self, address: int, form: str, *values: Any) -> None:
        """Write fields; a null pointer raises CudaError "InvalidValue"."""
        self._put(address, "<" + form, *values)

    def _put(self, address: int, form: str, *values: Any) -> None:
        if not address:
            raise CudaError("InvalidValue", f"{self.name}: a null pointer for a result")
        try:
            content = struct.pack(form, *values)
        except struct.error:
            raise CudaError("InvalidValue", f"{self.name}: a result leaves its type: {values}") from None
        self.write(address, content)

    def structure(self, kind: type[Structure], address: int) -> Structure:
        """Return a structure of the client."""
        return unpack(kind, self.read(address, struct.calcsize(layout(kind))))

    def put_structure(self, address: int, value: tuple[Any, ...]) -> None:
        """Write a structure, as ``put`` writes fields."""
        self._put(address, layout(type(value)), *numbers(value))

    def put_some(self, address: int, form: str, *values: Any) -> None:
        """Write fields where the client asks for them."""
        if address:
            self.put(address, form, *values)

    def text(self, address: int) -> str:
        """Return a string of the client."""
        found = b""
        while b"\0" not in found and len(found) < _LONGEST_TEXT:
            place = address + len(found)
            found += self.read(place, min(256, 4096 - place % 4096))
        return found.partition(b"\0")[0].decode(errors="replace")

    def kept(self, text: str) -> int:
        """Return the address of a string that stays in the client."""
        return self.process.kept_text(self.connection.channel, text)

    @property
    def of_runtime_13(self) -> bool:
        """Whether the function is of runtime 13, where functions of graphs have the data of edges."""
        return function_named(self.message.number)[0] == "runtime_13"

    def stream(self, handle: int) -> Stream:
        """Return a stream by its handle, 0 for that of the call's form. Raises CudaError."""
        form = PER_THREAD if self.by_thread else LEGACY
        return self.process.stream(handle or form, self.connection.own_stream)


class Row:
    """A function of CUDA: names, and the Python function that answers it."""

    def __init__(self, function: Callable[..., int | None], name: str = "") -> None:
        self.function = function
        parameters = list(inspect.signature(function).parameters.values())[1:]
        self.names = tuple(parameter.name for parameter in parameters)
        kinds = (_kind(str(parameter.annotation), name) for parameter in parameters)
        self._readers = [_reader(function, kind) for kind in kinds]

    def arguments(self, message: Message) -> list[Any]:
        """Return the arguments of a call."""
        place = _Place(message)
        return [read(place) for read in self._readers]


class _Place:
    """Where the next argument lies."""

    def __init__(self, message: Message) -> None:
        self.integers = iter(message.integers)
        self.left = len(message.integers)
        self.stack = iter(message.stack)

    def word(self) -> int:
        if self.left:
            self.left -= 1
            return next(self.integers)
        return next(self.stack)

    def words(self, count: int) -> tuple[int, ...]:
        """Return words that go to registers together, or to the stack."""
        if count <= 2 and self.left >= count:
            return tuple(self.word() for _ in range(count))
        return tuple(next(self.stack) for _ in range(count))


def _signed(place: _Place) -> int:
    value = place.word() & 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def _dimensions(place: _Place) -> tuple[int, int, int]:
    first, second = place.words(2)
    return first & 0xFFFF_FFFF, first >> 32, second & 0xFFFF_FFFF


_NONE = "none"  # an argument that a function does not have
_READERS: dict[str, Callable[[_Place], Any]] = {
    "Pointer": _Place.word,
    "Size": _Place.word,
    "Handle": _Place.word,
    "Int": _signed,
    _NONE: lambda _: 0,
    "Unsigned": lambda place: place.word() & 0xFFFF_FFFF,
    "Dimensions3": _dimensions,
    "Extent": lambda place: place.words(3),
    "Pitched": lambda place: place.words(4),
}
ROWS: dict[str, Row] = {}


def _kind(annotation: str, name: str) -> str:
    """Return how a parameter of a function is read."""
    if annotation != "AsyncStream":
        return annotation
    return "Handle" if "Async" in name else _NONE


def _reader(function: Callable[..., Any], kind: str) -> Callable[[_Place], Any]:
    """Return what reads a parameter: of a kind above, or a NamedTuple of them."""
    if kind in _READERS:
        return _READERS[kind]
    record = function.__globals__[kind]
    readers = [_reader(function, str(each.__forward_arg__)) for each in record.__annotations__.values()]
    return lambda place: record(*(read(place) for read in readers))


def row(*names: str) -> Callable[[Function], Function]:
    """Make a Python function the answer to functions of CUDA, by their names without _ptsz and _ptds."""

    def note(function: Function) -> Function:
        for name in names:
            assert name not in ROWS, f"{name} has two rows"
            ROWS[name] = Row(function, name)
        return function

    return note


def row_of(name: str) -> tuple[Row | None, bool]:
    """Return the row of a function, and whether its stream 0 is that of the thread."""
    plain = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
    return ROWS.get(name) or ROWS.get(plain), plain != name
