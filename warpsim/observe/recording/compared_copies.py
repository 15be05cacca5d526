"""Copies of what a device holds, compared between runs under several schedules; sums whose order was open.

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
OPEN = "several threads add to one address, and PTX leaves their order open"
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
    ``keeps_all`` says that copies without sums are kept, too.
    """

    made: list[Copy] = field(default_factory=list)
    place: int = 0
    found: bool = False  # whether any launch left such sums
    keeps_all: bool = False
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
        sums = {
            name: found for name in self._sums if (found := self._places_of_sums(name, content, first)).size
        }
        kept = (bool(sums) or self.keeps_all) and self._kept + content.size <= _MOST
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

    def _places_of_sums(self, name: str, content: Bytes, first: int) -> Places:
        """Return where in a copy the sums of a format are that hold what launches left."""
        places, words = self._sums[name]
        size = np.dtype(_TYPES[name]).itemsize
        chosen = (places >= first) & (places + size <= first + content.size)
        inside = places[chosen] - first
        same: Places = inside[_words(content, inside, name) == words[chosen]] if inside.size else inside
        return same


@dataclass(kw_only=True)
class Spread:
    """The least and the greatest value of each of some floats of a copy, over several runs, by format."""

    places: dict[str, Places]
    bounds: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]]

    def widen(self, other: Spread) -> Spread:
        """Return the bounds of both."""
        bounds = dict(self.bounds)
        for name, (least, most) in other.bounds.items():
            if name not in bounds or not np.array_equal(self.places[name], other.places[name]):
                bounds[name] = least, most
            else:
                bounds[name] = _bounds(*bounds[name], least, most)
        return Spread(places={**self.places, **other.places}, bounds=bounds)

    @property
    def count(self) -> int:
        """How many floats differ in any bit."""
        return sum(int(np.count_nonzero(_differ(*bounds))) for bounds in self.bounds.values())

    def __str__(self) -> str:
        """Return how many floats differ, and the bounds of that which differs most, with their bits."""
        widest = (-1.0, "")
        for name, (least, most) in self.bounds.items():
            wide = _widths(least, most)
            if wide.size:
                worst = int(np.argmax(wide))
                pair = " to ".join(_with_bits(bound[worst : worst + 1]) for bound in (least, most))
                text = f"from {pair} ({name} at byte {self.places[name][worst]})"
                widest = max(widest, (float(wide[worst]), text))
        total = sum(places.size for places in self.places.values())
        return f"{self.count:,} of {total:,} float{'s'[: total != 1]}, the widest {widest[1]}"


def _bounds(*values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the least and the greatest of floats by their bits: -0 comes before 0, NaNs are outermost."""
    kind = values[0].dtype
    sorted_words = [_in_order(array.view(f"i{kind.itemsize}")) for array in values]
    least, most = (reduce.reduce(sorted_words) for reduce in (np.minimum, np.maximum))
    return _in_order(least).view(kind), _in_order(most).view(kind)


def _in_order(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return signed words that are in the order of the floats, for the bits of these; and back."""
    return np.where(words < 0, words ^ np.iinfo(words.dtype).max, words)


def _differ(least: npt.NDArray[Any], most: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    word = f"u{least.dtype.itemsize}"
    return np.asarray(least.view(word) != most.view(word))


def _widths(least: npt.NDArray[Any], most: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return how far apart bounds are: -1 where they have the same bits, infinitely at a NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        wide = most.astype(np.float64) - least.astype(np.float64)
    wide[np.isnan(wide)] = np.inf
    wide[~_differ(least, most)] = -1.0
    return wide


def _with_bits(value: npt.NDArray[Any]) -> str:
    """Return one value, and its bits."""
    size = value.dtype.itemsize
    return f"{value[0]!s} (0x{int(value.view(f'u{size}')[0]):0{2 * size}x})"


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
        spread.bounds[name] = _bounds(*values)
        for content in (left, right):
            content[places[:, None] + np.arange(np.dtype(_TYPES[name]).itemsize)] = 0
    return spread if np.array_equal(left, right) else None


def as_floats(copy: Copy, kind: np.dtype[Any]) -> Copy:
    """Return a copy all of whose elements count as sums; none do where they are not floats."""
    name = next((name for name, known in _TYPES.items() if np.dtype(known) == kind), "")
    places = np.arange(0, len(copy.content) - kind.itemsize + 1, kind.itemsize)
    return copy._replace(sums={name: places} if name else {})


def _words(memory: Bytes, places: Places, name: str) -> npt.NDArray[Any]:
    """Return the unsigned words of a format's size at places."""
    size = np.dtype(_TYPES[name]).itemsize
    found = np.ascontiguousarray(memory[places[:, None] + np.arange(size)])
    return found.view(f"u{size}")[:, 0]
