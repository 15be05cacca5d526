"""The parts that text formats share: the fields of a case as words, the manifest in a leading comment, errors
with their line.

A file begins with comment lines: a title, then the manifest as JSON from a line ``{`` to a line ``}``. Then
comes the text that the format's ``render`` yields and its ``parse`` reads back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, TraceError
from ....base.files.archives import read_lines, write_lines
from ....base.files.replacing import together
from ..parted import SetInParts
from ..sets import Spec, VectorSet
from .manifest import Manifest, digest_of, manifest_from, manifest_lines

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_SHORT = 40  # characters of the text that an error message quotes


class Lines:
    """The lines of a file, read in order; keeps the current place for errors."""

    def __init__(self, path: Path, lines: Iterable[str]) -> None:
        self.path = path
        self.lines = iter(lines)
        self.number = 0
        self.text = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.text = next(self.lines)
        self.number += 1
        return self.text

    def following(self, expected: str) -> str:
        """Return the next line; at the end of the file, raises TraceError with the ``expected`` content."""
        line = next(self, None)
        if line is None:
            raise TraceError(f"the file ends early: expected {expected}", self.place())
        return line

    def place(self, part: str = "") -> Location:
        """Return where the current line is, or a part of it."""
        start = max(self.text.find(part), 0)
        return Location(str(self.path), max(self.number, 1), start + 1, max(len(part), 1), self.text)

    def wrong(self, message: str, part: str = "") -> NoReturn:
        """Raise a TraceError that points at the current line, or at a part of it."""
        raise TraceError(message, self.place(part))

    def end(self) -> None:
        """Raise a TraceError if anything but blank lines is left."""
        for line in self:
            if line.strip():
                self.wrong("expected the end of the file: all cases are read")


@dataclass(frozen=True)
class Field:
    """An array of a set as words: a case has the ``shape`` (lanes, registers), (bytes,) or ()."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_integer(self) -> bool:
        """Whether it is an immediate that differs from case to case, which is written in decimal."""
        return self.dtype == np.int8

    def rows(self, case: Array) -> list[list[str]]:
        """Return the words of a case, a row for each lane; bytes of shared memory are one word."""
        if self.is_integer:
            return [[str(int(case))]]
        words = spelled(case)
        if len(self.shape) < 2:
            return [["".join(words)]]
        return [words[at : at + self.shape[1]] for at in range(0, len(words), self.shape[1])]

    def read(self, words: list[str], lines: Lines) -> Array:
        """Return the elements that words spell, the inverse of rows; raises TraceError."""
        if self.is_integer:
            if not re.fullmatch(r"-?\d{1,3}", words[0]) or abs(int(words[0])) > 127:
                lines.wrong(f"{words[0][:20]!r} is not a small integer", words[0])
            return np.array([int(words[0])], np.int8)
        if len(self.shape) == 1:
            words = pairs(words[0])
        return read_words(words, self.dtype, lines)


def fields_of(specs: Mapping[str, Spec]) -> list[Field]:
    """Return the fields of arrays, in their order."""
    return [Field(name, dtype, shape[1:]) for name, (dtype, shape) in specs.items()]


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """A text format: its comments, its writer and its reader.

    ``opening`` are the lines before the manifest, ``closing`` those after it; ``prefix`` begins the lines of
    the manifest. ``companion`` yields the path and lines of a file beside it.
    """

    name: str
    suffixes: tuple[str, ...]
    summary: str
    prefix: str
    render: Callable[[SetInParts, str], Iterator[str]]
    parse: Callable[[Lines, Manifest], Arrays]
    opening: tuple[str, ...] = field(default=())
    closing: tuple[str, ...] = field(default=())
    companion: Callable[[Path, SetInParts], tuple[Path, Iterator[str]]] | None = None

    def write(self, path: Path, vectors: SetInParts) -> None:
        """Write a set and its companion atomically."""
        with together():
            if self.companion:
                write_lines(*self.companion(path, vectors))
            write_lines(path, self._lines(vectors, path.stem))

    def _lines(self, vectors: SetInParts, stem: str) -> Iterator[str]:
        yield from self.head(vectors)
        yield from self.render(vectors, stem)

    def head(self, vectors: SetInParts) -> Iterator[str]:
        """Yield the lines of the manifest and those around it."""
        yield from self.opening
        for line in manifest_lines(vectors):
            yield self.prefix + line.replace("*/", "*\\/")  # a slash that does not end a C comment
        yield from self.closing

    def read(self, path: Path) -> VectorSet:
        """Return the set in a file; raises TraceError with the line, OSError."""
        lines = Lines(path, read_lines(path))
        text, place = self.manifest_text(lines)
        try:
            manifest = manifest_from(text)
            manifest.check_size()
        except TraceError as error:
            raise error.at(place) from None
        arrays = self.parse(lines, manifest)
        lines.end()
        for name, array in arrays.items():
            check_array(lines, manifest, name, array)
        return manifest.assemble(arrays)

    def in_parts(self, path: Path) -> SetInParts:
        """Return the set in a file, which is read as a whole; raises what read raises."""
        return self.read(path)

    def manifest_text(self, lines: Lines) -> tuple[str, Location]:
        """Read the manifest and the lines around it; return its text, and where it begins."""
        found: list[str] = []
        for expected in self.opening:
            if lines.following(repr(expected)) != expected:
                lines.wrong(f"this is not a {self.name} file of a vector set: expected {expected!r}")
        place = lines.place()
        while not found or found[-1] != "}":
            line = lines.following(f"the manifest, which ends in '{self.prefix}}}'")
            place = place if found else lines.place()
            if not line.startswith(self.prefix) or (not found and line != self.prefix + "{"):
                lines.wrong(f"expected a line of the manifest, which begins with {self.prefix + '{'!r}")
            found.append(line.removeprefix(self.prefix))
        for expected in self.closing:
            if lines.following(repr(expected)) != expected:
                lines.wrong(f"expected {expected!r}")
        return "\n".join(found), place


def check_array(lines: Lines, manifest: Manifest, name: str, array: Array) -> None:
    """Raise TraceError, for the file as a whole, unless an array is equal to the written array."""
    try:
        manifest.check_hash(name, digest_of([array]))
    except TraceError as error:
        raise error.at(Location(str(lines.path), 1)) from None


def numbered(vectors: SetInParts) -> Iterator[tuple[int, VectorSet]]:
    """Yield the parts of a set, each with the number of its first case."""
    start = 0
    for part in vectors.parts():
        yield start, part
        start += len(part)


def cases_of(vectors: SetInParts) -> Iterator[tuple[int, str, Arrays]]:
    """Yield number, label ("" for none) and arrays of each case."""
    for start, part in numbered(vectors):
        arrays = part.arrays()
        for case in range(len(part)):
            label = part.labels[case] if part.labels else ""
            yield start + case, label, {name: array[case] for name, array in arrays.items()}


def empty_arrays(manifest: Manifest) -> Arrays:
    """Return the arrays of a set, to be filled."""
    return {name: np.zeros(entry.shape, entry.dtype) for name, entry in manifest.arrays.items()}


# --- words -----------------------------------------------------------------------------------------


def spelled(array: Array) -> list[str]:
    """Return the elements of an array as hexadecimal digits, as many as the dtype has, row by row."""
    size = array.dtype.itemsize
    text = np.ascontiguousarray(array, array.dtype.newbyteorder(">")).tobytes().hex(" ", -size)
    return text.split(" ") if text else []


def pairs(text: str) -> list[str]:
    """Return the digits of bytes, two for each."""
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def read_words(words: list[str], dtype: npt.DTypeLike, lines: Lines) -> Array:
    """Return the elements that hexadecimal words spell; raises TraceError at a word that spells none."""
    kind = np.dtype(dtype)
    digits = 2 * kind.itemsize
    text = "".join(words)
    if len(text) != digits * len(words) or not _HEXADECIMAL.issuperset(text):
        for word in words:
            if len(word) != digits or not _HEXADECIMAL.issuperset(word):
                lines.wrong(f"{word[:_SHORT]!r} is not a word of {digits} hexadecimal digits", word[:_SHORT])
    return np.frombuffer(bytes.fromhex(text), kind.newbyteorder(">")).astype(kind)
