"""Messages of the Debug Adapter Protocol: bytes with a header, an empty line and JSON; arguments of requests.

Does not know what messages mean. Debug Adapter Protocol, "Base protocol".
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any, BinaryIO

from ....base.errors import OperandError
from ....isa.numerals import whole_number

Message = dict[str, Any]
_LONGEST_HEADER = 4096  # bytes of a line
_LARGEST = 1 << 24  # bytes of a message


class Malformed(Exception):
    """Bytes that are not a message; ``lost`` where it is not known at which byte the next message begins."""

    def __init__(self, message: str, *, lost: bool) -> None:
        super().__init__(message)
        self.lost = lost


def read_message(stream: BinaryIO) -> Message | None:
    """Return the next message; None at the end of the stream. Raises Malformed."""
    size = _size(stream)
    if size is None:
        return None
    content = stream.read(size)
    if len(content) < size:
        return None
    try:
        message = json.loads(content)
    except (ValueError, RecursionError):
        raise Malformed("the content of a message is not JSON", lost=False) from None
    if not isinstance(message, dict):
        raise Malformed("a message is a JSON object", lost=False)
    return message


def _size(stream: BinaryIO) -> int | None:
    """Read a header; return the bytes of its content, None at the end of the stream."""
    size: int | None = None
    while True:
        line = stream.readline(_LONGEST_HEADER)
        if not line:
            return None
        if not line.endswith(b"\n"):
            raise Malformed("a header that does not end", lost=True)
        if not line.strip():
            break
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "content-length":
            size = whole_number(value.strip())
    if size is None or size > _LARGEST:
        raise Malformed("a header without Content-Length, or with too large a number", lost=True)
    return size


class Writer:
    """Writes messages, numbered from 1; several threads may write."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._number = 0
        self._lock = threading.Lock()

    def write(self, message: Message) -> None:
        """Write a message with the next number."""
        with self._lock:
            self._number += 1
            content = json.dumps({"seq": self._number, **message}).encode()
            self._stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
            self._stream.flush()


@dataclass(frozen=True)
class Arguments:
    """The arguments of a request of a client, which may be anything."""

    command: str
    given: dict[str, Any]

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number. Raises OperandError."""
        found = self.given.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._wrong(name, "a whole number")
        return found

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises OperandError."""
        found = self.given.get(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false. Raises OperandError."""
        found = self.given.get(name, default)
        if not isinstance(found, bool):
            raise self._wrong(name, "true or false")
        return found

    def parts(self, name: str) -> list[Arguments]:
        """Return a list of objects. Raises OperandError."""
        found = self.given.get(name, [])
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._wrong(name, "a list of objects")
        return [Arguments(self.command, each) for each in found]

    def part(self, name: str) -> Arguments:
        """Return an object. Raises OperandError."""
        found = self.given.get(name, {})
        if not isinstance(found, dict):
            raise self._wrong(name, "an object")
        return Arguments(self.command, found)

    def _wrong(self, name: str, expected: str) -> OperandError:
        state = "is missing" if name not in self.given else f"is {self.given[name]!r}"
        return OperandError(f"{self.command}: {name} {state}: expected {expected}")
