"""What goes over the socket between a client's agent and the server; agent.c has the same layouts.

A call is one message: the function's number, six integer and four floating registers, and the words of the
stack behind the return address. Orders go back until the return. Knows bytes; does not know functions.
"""

from __future__ import annotations

import array
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

HELLO = 0xFFFF_FFFF  # numbers of messages that are not calls
CALLED = 0xFFFF_FFFE
ENDS = 0xFFFF_FFFC  # of a process that ends
ASKS = 0xFFFF_FFFD  # of a process that asks for a run: documents follow (serving/remote.py)
_MESSAGE = struct.Struct("<II6Q4d12QQ")
_ORDER = struct.Struct("<II7Q")
_WORD = struct.Struct("<Q")
_RETURN, _PUT, _GET, _SYSTEM_CALL, _CALL, _PRINT, _DESCRIPTOR = range(7)
_MOST = 1 << 30  # bytes of an order
_MMAP, _MPROTECT = 9, 10  # system calls of Linux on x86-64
_PIECE = 1 << 20
_LONGEST_DOCUMENT = 1 << 28
_PRCTL, _SET_PTRACER = 157, 0x59616D61


class Gone(Exception):
    """The client has closed its socket, or sent what is not a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """A call of a client: ``words`` are integer registers, then words of the stack."""

    number: int
    integers: tuple[int, ...]
    floats: tuple[float, ...]
    stack: tuple[int, ...]
    caller: int  # the address that the function returns to


class Channel:
    """One thread of a client, by its socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self.descriptor = -1  # of the memory that is shared, in the client

    def peer(self) -> tuple[int, int]:
        """Return process and user of the client, as the kernel knows them."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process, user, _ = struct.unpack("3i", raw)
        return process, user

    def receive(self) -> Message:
        """Wait for the next message. Raises Gone."""
        fields = _MESSAGE.unpack(self._bytes(_MESSAGE.size))
        return Message(fields[0], fields[2:8], fields[8:12], fields[12:24], fields[24])

    def answer(self, value: int) -> None:
        """Order the return from the call. Raises Gone."""
        self._order(_RETURN, value & 0xFFFF_FFFF_FFFF_FFFF)

    def put(self, address: int, content: bytes) -> None:
        """Order the client to write bytes into its memory."""
        for first in range(0, len(content), _MOST):
            part = content[first : first + _MOST]
            self._order(_PUT, address + first, payload=part)

    def get(self, address: int, size: int) -> bytes:
        """Return bytes of the client's memory, which the client sends."""
        self._order(_GET, address, size)
        return self._bytes(size)

    def print(self, text: bytes) -> None:
        """Order the client to print on its stdout."""
        self._order(_PRINT, payload=text)

    def call(self, function: int, *arguments: int) -> None:
        """Order the client to call a function of its own; a message with CALLED comes when that has ended."""
        self._order(_CALL, function, *arguments)

    def share(self, descriptor: int, base: int, size: int) -> int:
        """Let the client map memory at an address, without access; return the address that it got."""
        shared = array.array("i", [descriptor])
        order = _ORDER.pack(_DESCRIPTOR, 0, *([0] * 7))
        self._send_with(order, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, shared)])
        self.descriptor = there = self._word()
        shared_and_fixed = 0x01 | 0x100000 | 0x4000  # MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE
        found = self._system_call(_MMAP, base, size, 0, shared_and_fixed, there, 0)
        if found != base:  # a child that has its parent's mapping after fork
            found = self._system_call(_MMAP, base, size, 0, 0x01 | 0x10 | 0x4000, there, 0)
        return found

    def map_over(self, descriptor: int, address: int, size: int, place: int, *, shared: bool) -> int:
        """Let the client map bytes of the shared memory, from ``place`` on, over memory of its own, to be
        shared, or copied once it is written to; return the address, or an error number of Linux.
        """
        flags = (0x01 if shared else 0x02) | 0x10  # MAP_SHARED or MAP_PRIVATE | MAP_FIXED
        return self._system_call(_MMAP, address, size, 3, flags, descriptor, place)

    def protect(self, address: int, size: int, *, accessible: bool) -> int:
        """Let the client read and write mapped memory, or not; return 0, or an error number of Linux."""
        return self._system_call(_MPROTECT, address, size, 3 if accessible else 0)

    def permit(self, process: int) -> None:
        """Let a process read the client's memory that is not its parent, where Linux asks for that (Yama)."""
        self._system_call(_PRCTL, _SET_PTRACER, process, 0, 0, 0)

    # --- a process that asks for a run ---

    def ask(self) -> None:
        """Say that documents follow. Raises Gone."""
        self._send(_MESSAGE.pack(ASKS, *([0] * 24)))

    def send_document(self, document: Any) -> None:
        """Send what JSON has. Raises Gone."""
        content = json.dumps(document).encode()
        self._send(_WORD.pack(len(content)) + content)

    def receive_document(self, largest: int = _LONGEST_DOCUMENT) -> Any:
        """Wait for what JSON has, at most ``largest`` bytes. Raises Gone, also for what is none."""
        size = self._word()
        if size > largest:
            raise Gone
        try:
            return json.loads(self._bytes(size))
        except (ValueError, RecursionError):
            raise Gone from None

    def receive_item(self) -> tuple[str, Any]:
        """Wait for a document that is a kind and its content. Raises Gone, also for another."""
        document = self.receive_document()
        try:
            check_document(document, (str, object))
        except ValueError:
            raise Gone from None
        return document[0], document[1]

    def _system_call(self, number: int, *arguments: int) -> int:
        self._order(_SYSTEM_CALL, number, *arguments)
        return self._word()

    def _word(self) -> int:
        found: int = _WORD.unpack(self._bytes(_WORD.size))[0]
        return found

    def _order(self, verb: int, *arguments: int, payload: bytes = b"") -> None:
        padded = (*arguments, 0, 0, 0, 0, 0, 0, 0)[:7]
        self._send(_ORDER.pack(verb, len(payload), *padded) + payload)

    def _send(self, content: bytes) -> None:
        try:
            self._socket.sendall(content)
        except OSError:
            raise Gone from None

    def _send_with(self, content: bytes, ancillary: list[tuple[int, int, array.array[int]]]) -> None:
        try:
            self._socket.sendmsg([content], ancillary)
        except OSError:
            raise Gone from None

    def _bytes(self, size: int) -> bytes:
        parts, left = list[bytes](), size
        while left:
            try:
                part = self._socket.recv(min(left, _PIECE))
            except OSError:
                raise Gone from None
            if not part:
                raise Gone
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def check_document(document: Any, pattern: Any, place: str = "the document") -> None:
    """Raise ValueError, naming the place, unless a document of JSON has the form of a pattern.

    A pattern is a type, a list with the pattern of every element, a tuple with a pattern for each element,
    or a dictionary: patterns by key, all of which must be there, or by ``str`` that of every value.
    """
    kind = pattern if isinstance(pattern, type) else list if isinstance(pattern, tuple) else type(pattern)
    is_number = kind is float and type(document) is int
    if not (is_number or isinstance(document, kind)) or (kind is int and isinstance(document, bool)):
        raise ValueError(f"{place}: expected {kind.__name__}, given {type(document).__name__}")
    if isinstance(pattern, tuple) and len(document) != len(pattern):
        raise ValueError(f"{place}: expected {len(pattern)} elements, given {len(document)}")
    if isinstance(pattern, dict):
        by_key = pattern if str not in pattern else dict.fromkeys(document, pattern[str])
        for key, inner in by_key.items():
            if key not in document:
                raise ValueError(f"{place} has no {key!r}")
            check_document(document[key], inner, f"{place}[{key!r}]")
    elif isinstance(pattern, list | tuple):
        inners = pattern if isinstance(pattern, tuple) else pattern * len(document)
        for index, (each, inner) in enumerate(zip(document, inners, strict=True)):
            check_document(each, inner, f"{place}[{index}]")
