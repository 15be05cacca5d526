"""JSON lines: the manifest in the first line, then an object for each case.

The first line is the manifest; every other line is a case: its number, its label, if any, and every
array as nested lists of hexadecimal strings, lanes then registers; bytes of shared memory as a single string,
immediates that differ as integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import TraceError
from ....base.files.archives import read_lines, write_lines
from ..parted import SetInParts
from ..sets import VectorSet
from .manifest import Manifest, manifest_from, manifest_of
from .text_format import Lines, check_array, numbered, read_words, spelled


class JsonLines:
    """The reader and writer of JSON lines."""

    name = "jsonl"
    suffixes = (".jsonl",)
    summary = "JSON lines, an object a case"

    def write(self, path: Path, vectors: SetInParts) -> None:
        """Write a set atomically."""
        write_lines(path, _render(vectors))

    def read(self, path: Path) -> VectorSet:
        """Return the set in a file; raises TraceError with the line, OSError."""
        lines = Lines(path, read_lines(path))
        text = lines.following("the manifest")
        try:
            manifest = manifest_from(text)
            manifest.check_size()
        except TraceError as error:
            raise error.at(lines.place()) from None
        arrays = {name: np.zeros(entry.shape, entry.dtype) for name, entry in manifest.arrays.items()}
        for case in range(manifest.cases):
            document = _object(lines, case, manifest)
            for name, array in arrays.items():
                array[case] = _elements(lines, name, document[name], array)
        lines.end()
        for name, array in arrays.items():
            check_array(lines, manifest, name, array)
        return manifest.assemble(arrays)

    def in_parts(self, path: Path) -> SetInParts:
        """Return the set in a file, which is read as a whole; raises what read raises."""
        return self.read(path)


def _render(vectors: SetInParts) -> Iterator[str]:
    yield json.dumps(manifest_of(vectors))
    for start, part in numbered(vectors):
        arrays = part.arrays()
        for case in range(len(part)):
            label = {"label": part.labels[case]} if part.labels else {}
            values = {name: _value(array[case]) for name, array in arrays.items()}
            yield json.dumps({"case": start + case, **label, **values})


def _value(array: npt.NDArray[Any]) -> Any:
    if array.dtype == np.int8:
        return int(array)
    words = spelled(array)
    if array.ndim == 2:
        return [words[at : at + array.shape[1]] for at in range(0, len(words), array.shape[1])]
    return "".join(words)


# --- reading ---------------------------------------------------------------------------------------


def _object(lines: Lines, case: int, manifest: Manifest) -> dict[str, Any]:
    """Return the object of a case, with the required keys."""
    try:
        document = json.loads(lines.following(f"case {case}"))
    except (ValueError, RecursionError) as error:
        lines.wrong(f"no JSON: {error}")
    label = {"label"} if manifest.labels else set()
    keys = {"case", *label, *manifest.arrays}
    if not isinstance(document, dict) or document.keys() != keys:
        lines.wrong(f"expected an object of {', '.join(sorted(keys))}")
    if document["case"] != case:
        lines.wrong(f"expected case {case}")
    if label and document["label"] != manifest.labels[case]:
        lines.wrong("the label is not the one of the manifest")
    return document


def _elements(lines: Lines, name: str, value: Any, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    shape = array.shape[1:]
    if array.dtype == np.int8:
        if type(value) is not int or abs(value) > 127:
            lines.wrong(f"{name} is a small integer")
        return np.array(value, np.int8)
    rows = value if len(shape) == 2 else [[value]]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        lines.wrong(f"{name} is a list of lanes, each a list of registers")
    words = [word for row in rows for word in row]
    if not all(isinstance(word, str) for word in words):
        lines.wrong(f"the words of {name} are strings of hexadecimal digits")
    if len(shape) == 1:
        words = [words[0][at : at + 2] for at in range(0, len(words[0]), 2)]
    found = read_words(words, array.dtype, lines)
    counts = {len(row) for row in rows} if len(shape) == 2 else set(shape[-1:])
    if found.size != np.prod(shape, dtype=int) or counts != set(shape[-1:]):
        lines.wrong(f"{name} has the shape {list(shape)} in every case")
    return found.reshape(shape)
