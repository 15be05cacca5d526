"""Messages of the Debug Adapter Protocol as bytes: a header with Content-Length, an empty line, JSON.

Knows bytes; does not know what messages mean. Debug Adapter Protocol, "Base protocol".
"""

from __future__ import annotations

import json
import threading
from typing import Any, BinaryIO

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
