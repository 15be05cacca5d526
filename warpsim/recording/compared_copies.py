"""Copies to the host, compared between runs under several schedules; and sums whose order was open.

Several threads that add floats to one address leave a sum whose last bits depend on their order, which PTX
leaves open. Where a copy differs in such sums alone, it has no error: they lie between two bounds. A word
counts as such a sum as long as it holds what the launch left there. Does not know calls or reports.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
_TYPES: Mapping[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
_MOST = 1 << 28  # bytes of copies that are kept; of others there is a digest


class Copy(NamedTuple):
    """A copy to the host: the call, a digest of its bytes, and, where sums are in it, these and the bytes.

    ``sums`` are places of the first byte of sums whose order was open, by format. ``shared`` says that it is
    memory that the host reads without a copy.
    """

    call: str
    digest: bytes
    content: bytes
    sums: Mapping[str, Places]
    place: int = 0
    shared: bool = False


@dataclass
class Copies:
    """The copies to the host of one run, and the sums that launches left in the memory of the device.

    ``place`` is that of the next copy among the work that was given, in whatever order that is done.
    """

    made: list[Copy] = field(default_factory=list)
    place: int = 0
    found: bool = False  # whether any launch left such sums
    _sums: dict[str, tuple[Places, npt.NDArray[Any]]] = field(default_factory=dict)  # places, words there
    _kept: int = 0

    def launched(self, words: Mapping[str, Places], memory: Bytes) -> None:
        """Take the sums that a launch left at offsets in the memory of the device."""
        self.found = self.found or bool(words)
        for name, places in words.items():
            before = self._sums.get(name, (places[:0],))[0]
            union = np.union1d(before, places)
            self._sums[name] = union, _words(memory, union, name)

    def add(self, call: str, content: Bytes, first: int, *, shared: bool = False) -> None:
        """Take a copy of bytes from an offset in the memory of the device on."""
        sums = {name: found for name in self._sums if (found := self._inside(name, content, first)).size}
        kept = bool(sums) and self._kept + content.size <= _MOST
        self._kept += content.size if kept else 0
        digest = blake2b(content.tobytes(), digest_size=16).digest()
        self.made.append(
            Copy(call, digest, content.tobytes() if kept else b"", sums if kept else {}, self.place, shared)
        )

    def in_order(self) -> list[Copy]:
        """Return the copies as they were given."""
        return sorted(self.made, key=lambda copy: copy.place)

    def text(self, place: int) -> str:
        """Describe the copy of a place, the first of which is 1."""
        *before, copy = self.in_order()[:place]
        number = 1 + sum(not each.shared for each in before)
        return (
            f"{'memory that the host reads' if copy.shared else f'copy {number} to the host'} ({copy.call})"
        )

    def take(self, document: Mapping[str, Any]) -> None:
        """Take the copies of a document."""
        self.found = self.found or document["found"]
        for call, digest, content, sums, place, shared in document["made"]:
            places = {name: np.array(found, np.int64) for name, found in sums.items()}
            self.made.append(Copy(call, bytes.fromhex(digest), b64decode(content), places, place, shared))

    def document(self) -> dict[str, Any]:
        """Return the copies as JSON has them."""
        made = [
            (
                copy.call,
                copy.digest.hex(),
                b64encode(copy.content).decode(),
                {name: places.tolist() for name, places in copy.sums.items()},
                copy.place,
                copy.shared,
            )
            for copy in self.made
        ]
        return {"found": self.found, "made": made}

    def _inside(self, name: str, content: Bytes, first: int) -> Places:
        """Return where in a copy the sums of a format are that hold what launches left."""
        places, words = self._sums[name]
        size = np.dtype(_TYPES[name]).itemsize
        chosen = (places >= first) & (places + size <= first + content.size)
        inside = places[chosen] - first
        same: Places = inside[_words(content, inside, name) == words[chosen]] if inside.size else inside
        return same


@dataclass(kw_only=True)
class Spread:
    """The least and the greatest value of every sum of a copy, over several runs, by format."""

    places: dict[str, Places]
    bounds: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]

    def widen(self, other: Spread) -> Spread:
        """Return the bounds of both."""
        bounds = dict(self.bounds)
        for name, (least, most) in other.bounds.items():
            if name not in bounds or not np.array_equal(self.places[name], other.places[name]):
                bounds[name] = least, most
            else:
                bounds[name] = np.minimum(bounds[name][0], least), np.maximum(bounds[name][1], most)
        return Spread(places={**self.places, **other.places}, bounds=bounds)

    def __str__(self) -> str:
        """Return how many sums differ, and the bounds of that which differs most."""
        count, widest = 0, (-1.0, "")
        for name, (least, most) in self.bounds.items():
            wide = most.astype(np.float64) - least.astype(np.float64)
            count += int(np.count_nonzero(wide))
            worst = int(np.argmax(wide))
            text = f"{least[worst]!s} or {most[worst]!s} ({name} at byte {self.places[name][worst]})"
            widest = max(widest, (float(wide[worst]), text))
        return f"{count:,} sum{'s'[: count != 1]} of floats, as {widest[1]}"


def spread_of(first: Copy, second: Copy) -> Spread | None:
    """Return the bounds of sums in which two copies differ; None where they differ in anything else."""
    if not first.content or len(first.content) != len(second.content):
        return None
    left, right = (np.frombuffer(copy.content, np.uint8).copy() for copy in (first, second))
    spread = Spread(places={}, bounds={})
    for name in dict.fromkeys((*first.sums, *second.sums)):
        both = [copy.sums[name] for copy in (first, second) if name in copy.sums]
        places = np.unique(np.concatenate(both))
        values = [_words(content, places, name).view(_TYPES[name]) for content in (left, right)]
        spread.places[name] = places
        spread.bounds[name] = np.minimum(*values), np.maximum(*values)
        for content in (left, right):
            content[places[:, None] + np.arange(np.dtype(_TYPES[name]).itemsize)] = 0
    return spread if np.array_equal(left, right) else None


def _words(memory: Bytes, places: Places, name: str) -> npt.NDArray[Any]:
    """Return the unsigned words of a format's size at places."""
    size = np.dtype(_TYPES[name]).itemsize
    found = np.ascontiguousarray(memory[places[:, None] + np.arange(size)])
    return found.view(f"u{size}")[:, 0]
