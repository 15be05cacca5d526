"""C header: every array as a constant, ``[cases][lanes][registers]``, for firmware and C++ testbenches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

import numpy as np
import numpy.typing as npt

from ..parted import Array, SetInParts
from ..sets import Spec
from .manifest import ArrayEntry, Manifest
from .readmemh import identifier
from .text_format import Arrays, Field, Lines, TextFormat, read_words, spelled

_DEFINITION = re.compile(r"static const (u?int(?:8|32|64))_t \w+?((?:\[\d+\])+) = \{")


def _render(vectors: SetInParts, stem: str) -> Iterator[str]:
    name = identifier(stem)
    constants = {"cases": len(vectors), "lanes": vectors.instruction.lanes, **vectors.constants()}
    yield f"#ifndef {name.upper()}_VECTORS_H"
    yield f"#define {name.upper()}_VECTORS_H"
    yield "#include <stdint.h>"
    for constant, value in constants.items():
        yield f"#define {name.upper()}_{constant.upper()} {value}"
    for operand, spec in vectors.specs().items():
        yield from _definition(f"{name}_{operand}", spec, vectors.blocks(operand))
    yield "#endif"


def _definition(name: str, spec: Spec, blocks: Iterator[Array]) -> Iterator[str]:
    """Yield an array in the braces of C, with a line for each row of its last axis."""
    dtype, shape = spec
    yield f"static const {dtype.name}_t {name}{''.join(f'[{size}]' for size in shape)} = {{"
    for array in blocks:
        yield from _rows(array)
    yield "};"


def _rows(array: Array) -> Iterator[str]:
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(-1, 1)
    lanes = array.shape[1] if array.ndim == 3 else 1
    for row, words in enumerate(rows):
        text = ", ".join(_spelled(words))
        text = text if array.ndim == 1 else f"{{{text}}}"
        first, last = row % lanes == 0, row % lanes == lanes - 1
        yield f"{'{' if array.ndim == 3 and first else ''}{text}{'}' if array.ndim == 3 and last else ''},"


def _spelled(words: npt.NDArray[np.generic]) -> list[str]:
    if words.dtype == np.int8:
        return [str(word) for word in words.tolist()]
    suffix = "u" if words.dtype.itemsize < 8 else "ull"
    return [f"0x{word}{suffix}" for word in spelled(words)]


# --- reading ---------------------------------------------------------------------------------------


def _parse(lines: Lines, manifest: Manifest) -> Arrays:
    arrays = {name: _array(lines, name, entry) for name, entry in manifest.arrays.items()}
    if lines.following("'#endif'") != "#endif":
        lines.wrong("expected '#endif': all arrays are read")
    return arrays


def _array(lines: Lines, name: str, entry: ArrayEntry) -> npt.NDArray[np.generic]:
    """Return the next array, which has this name; lines of the preprocessor may stand before it."""
    line = lines.following(f"array {name}")
    while line.startswith("#") and line != "#endif":
        line = lines.following(f"array {name}")
    sizes = "".join(f"[{size}]" for size in entry.shape)
    match = _DEFINITION.fullmatch(line)
    if not match or match[1] != entry.dtype.name or match[2] != sizes or f"_{name}[" not in line:
        lines.wrong(f"expected 'static const {entry.dtype.name}_t ..._{name}{sizes} = {{'")
    width = entry.shape[-1] if len(entry.shape) > 1 else 1
    rows = [_row(lines, entry, width) for _ in range(prod(entry.shape) // width)]
    if lines.following("'};'") != "};":
        lines.wrong(f"expected '}};': {name} has {prod(entry.shape)} elements")
    return np.concatenate(rows).reshape(entry.shape)


def _row(lines: Lines, entry: ArrayEntry, width: int) -> npt.NDArray[np.generic]:
    words = [word.strip() for word in lines.following("a row of an array").strip("{},").split(",")]
    if len(words) != width:
        lines.wrong(f"{len(words)} elements, expected a row of {width}")
    if entry.dtype == np.int8:
        return Field("", entry.dtype, ()).read(words, lines)
    suffix = "u" if entry.dtype.itemsize < 8 else "ull"
    for word in words:
        if not (word.startswith("0x") and word.endswith(suffix)):
            lines.wrong(f"{word[:20]!r} is not a word such as 0x...{suffix}", word)
    return read_words([word.removeprefix("0x").removesuffix(suffix) for word in words], entry.dtype, lines)


C_HEADER = TextFormat(
    name="c",
    suffixes=(".h",),
    summary="C header, a constant array an operand",
    opening=("/* warpsim vector set as C arrays [cases][lanes][registers]",),
    prefix=" * ",
    closing=(" */",),
    render=_render,
    parse=_parse,
)
