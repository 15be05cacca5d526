"""CSV: a row for every lane of every case, a column for each register, for spreadsheets and data frames.

Words are hexadecimal digits. The data of a case as a whole (descriptors, shared memory as bytes, immediates
that differ) is in the row of lane 0. Comment lines begin with ``#`` (pandas: ``comment="#"``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..parted import SetInParts
from .manifest import Manifest
from .text_format import Arrays, Lines, TextFormat, numbered, read_words, spelled


def _header(shapes: dict[str, tuple[int, ...]]) -> list[str]:
    columns = ["case", "lane"]
    for name, shape in shapes.items():
        columns += [f"{name}{index}" for index in range(shape[2])] if len(shape) == 3 else [name]
    return columns


def _render(vectors: SetInParts, stem: str) -> Iterator[str]:
    yield ",".join(_header({name: shape for name, (_, shape) in vectors.specs().items()}))
    for start, part in numbered(vectors):
        arrays = part.arrays()
        for case in range(len(part)):
            cells = [_cells(array[case : case + 1]) for array in arrays.values()]
            for lane in range(vectors.instruction.lanes):
                row = (cell[lane] if lane < len(cell) else "" for cell in cells)
                yield ",".join([f"{start + case},{lane}", *row])


def _cells(array: npt.NDArray[np.generic]) -> list[str]:
    """Return the cells of an array in each lane's row: the lane's registers, or the data of the case as a
    whole.
    """
    if array.dtype == np.int8:
        return [str(int(array[0]))]
    if array.ndim == 1:
        return spelled(array)
    if array.ndim == 2:
        return ["".join(spelled(array))]
    words, count = spelled(array), array.shape[2]
    return [",".join(words[lane : lane + count]) for lane in range(0, len(words), count)]


# --- reading ---------------------------------------------------------------------------------------


def _parse(lines: Lines, manifest: Manifest) -> Arrays:
    shapes = {name: entry.shape for name, entry in manifest.arrays.items()}
    header = _header(shapes)
    if lines.following("the names of the columns") != ",".join(header):
        lines.wrong(f"expected the columns {','.join(header)}")
    arrays = {name: np.zeros(entry.shape, entry.dtype) for name, entry in manifest.arrays.items()}
    for case in range(manifest.cases):
        for lane in range(manifest.instruction.lanes):
            cells = lines.following(f"lane {lane} of case {case}").split(",")
            if len(cells) != len(header):
                lines.wrong(f"{len(cells)} cells, expected {len(header)}")
            if cells[:2] != [str(case), str(lane)]:
                lines.wrong(f"expected case {case}, lane {lane}")
            _fill(lines, arrays, cells, case, lane)
    return arrays


def _fill(lines: Lines, arrays: Arrays, cells: list[str], case: int, lane: int) -> None:
    """Put the cells of a row into the arrays."""
    at = 2
    for array in arrays.values():
        count = array.shape[2] if array.ndim == 3 else 1
        words, at = cells[at : at + count], at + count
        if array.ndim == 3:
            array[case, lane] = read_words(words, array.dtype, lines)
        elif lane:
            if words[0]:
                lines.wrong("what belongs to a case stands in the row of lane 0", words[0])
        else:
            array[case] = _case_values(lines, words[0], array)


def _case_values(lines: Lines, cell: str, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    if array.dtype == np.int8:
        if not re.fullmatch(r"-?\d{1,3}", cell) or abs(int(cell)) > 127:
            lines.wrong(f"{cell[:20]!r} is not a small integer", cell)
        return np.array(int(cell), np.int8)
    digits = 2 * array.dtype.itemsize
    words = read_words([cell[i : i + digits] for i in range(0, len(cell), digits)], array.dtype, lines)
    if words.size != (array.shape[1] if array.ndim == 2 else 1):
        lines.wrong(f"{words.size} bytes of shared memory, expected {array.shape[-1]}")
    return words if array.ndim == 2 else words.reshape(())


CSV = TextFormat(
    name="csv",
    suffixes=(".csv",),
    summary="a row a lane, a column a register",
    opening=("# warpsim vector set: a row for every lane of every case, words in hexadecimal",),
    prefix="# ",
    render=_render,
    parse=_parse,
)
