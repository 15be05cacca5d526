"""``$readmemh``: the cases as 32-bit words, a word for each line, for a memory of a SystemVerilog testbench.

A case takes a fixed number of words: every operand lane by lane, a lane's registers in order, low word first
where a register or descriptor has 64 bits; shared memory as little-endian words; an immediate that differs
from case to case as a word in two's complement. The places are parameters of a package in a file beside it
with suffix ``.svh``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..parted import SetInParts
from ..sets import Spec, VectorSet
from .manifest import Manifest
from .text_format import Arrays, Lines, TextFormat, numbered, read_words, spelled

ImageWords = npt.NDArray[np.uint32]


# --- the image of a case ---------------------------------------------------------------------------


def offsets(specs: Mapping[str, Spec]) -> dict[str, tuple[int, int]]:
    """Return the first word of each array in a case, and its number of words."""
    places, start = {}, 0
    for name, (dtype, shape) in specs.items():
        count = -(-prod(shape[1:]) * _element_bytes(dtype) // 4)
        places[name] = start, count
        start += count
    return places


def _element_bytes(dtype: np.dtype[Any]) -> int:
    """Return the number of bytes of an element: immediates are words."""
    return 4 if dtype == np.int8 else dtype.itemsize


def image(array: npt.NDArray[Any]) -> ImageWords:
    """Return the words ``(cases, words)`` of an array."""
    if array.dtype == np.int8:
        return array.astype(np.int32).view(np.uint32).reshape(len(array), 1)
    flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(len(array), -1).view(np.uint8)
    padded = np.pad(flat, ((0, 0), (0, -flat.shape[1] % 4)))
    return padded.view("<u4").astype(np.uint32, copy=False)


def from_image(words: ImageWords, spec: Spec) -> npt.NDArray[Any]:
    """Return the array with this image; the inverse of ``image``."""
    dtype, shape = spec
    if dtype == np.int8:
        return words.view(np.int32).astype(np.int8).reshape(shape)
    flat = np.ascontiguousarray(words, "<u4").view(np.uint8)[:, : prod(shape[1:]) * dtype.itemsize]
    return np.ascontiguousarray(flat).view(dtype.newbyteorder("<")).astype(dtype).reshape(shape)


# --- the memory ------------------------------------------------------------------------------------


def _render(vectors: SetInParts, stem: str) -> Iterator[str]:
    for start, part in numbered(vectors):
        yield from _rendered(part, start)


def _rendered(vectors: VectorSet, start: int) -> Iterator[str]:
    """Yield the words of a part whose first case has that number."""
    arrays = vectors.arrays()
    images = {name: image(array) for name, array in arrays.items()}
    lane = "T" if vectors.instruction.descriptor is None else "lane "
    comments = {
        name: [*_comments(name, arrays[name].shape, len(words[0]), lane)] for name, words in images.items()
    }
    for case in range(len(vectors)):
        label = f": {vectors.labels[case]}" if vectors.labels else ""
        yield f"// case {start + case}" + label.encode("ascii", "replace").decode("ascii")
        for name, words in images.items():
            for word, comment in zip(spelled(words[case]), comments[name], strict=True):
                yield word + comment


def _comments(name: str, shape: tuple[int, ...], count: int, called: str) -> Iterator[str]:
    """Yield a comment on the first word of every lane, or of the array; ``called`` is what lanes are."""
    lanes = shape[1] if len(shape) == 3 else 1
    for word in range(count):
        lane, rest = divmod(word, count // lanes)
        yield "" if rest else f" // {name}" + (f" {called}{lane}" if lanes > 1 else "")


def _parse(lines: Lines, manifest: Manifest) -> Arrays:
    specs = {name: entry.spec for name, entry in manifest.arrays.items()}
    places = offsets(specs)
    size = sum(count for _, count in places.values())
    blocks = [_case(lines, case, size) for case in range(manifest.cases)]
    words = np.concatenate(blocks).reshape(manifest.cases, size)
    return {name: from_image(words[:, at : at + n], specs[name]) for name, (at, n) in places.items()}


def _case(lines: Lines, case: int, size: int) -> ImageWords:
    """Return the words of the next case."""
    words: list[str] = []
    while len(words) < size:
        content, _, _ = lines.following(f"word {len(words)} of case {case}").partition("//")
        for token in content.split():
            if token.startswith("@"):
                _check_address(lines, token, case * size + len(words))
                continue
            read_words([token], np.uint32, lines)
            words.append(token)
        if len(words) > size:
            lines.wrong(f"a case has {size} words, but case {case} has more")
    return read_words(words, np.uint32, lines)


def _check_address(lines: Lines, token: str, expected: int) -> None:
    if not re.fullmatch("[0-9a-fA-F]{1,16}", token[1:]) or int(token[1:], 16) != expected:
        lines.wrong(f"address {token[:20]!r}, but the next word is @{expected:x}", token)


# --- the parameters --------------------------------------------------------------------------------


def _parameters(path: Path, vectors: SetInParts) -> tuple[Path, Iterator[str]]:
    return path.with_suffix(".svh"), _parameter_lines(path, vectors)


def _parameter_lines(path: Path, vectors: SetInParts) -> Iterator[str]:
    """Yield a package of parameters: the form, the number of cases, and where each operand is."""
    name = identifier(path.stem) + "_vectors"
    specs = vectors.specs()
    places = offsets(specs)
    form = vectors.instruction
    file = path.name.encode("unicode_escape").decode("ascii")
    yield f"// {file}: {form.mnemonic} on {form.target}"
    word = "register" if form.descriptor is None else "column of tensor memory"
    yield f"// case i, operand X, lane l, {word} r: word i * CASE_WORDS + X_OFFSET + l * X_REGISTERS + r"
    yield f"`ifndef {name.upper()}_SVH"
    yield f"`define {name.upper()}_SVH"
    yield f"package {name};"
    counts = {"CASES": len(vectors), "CASE_WORDS": sum(count for _, count in places.values())}
    counts |= {"LANES": form.lanes, "M": form.shape.m, "N": form.shape.n, "K": form.shape.k}
    counts |= {key.upper(): value for key, value in vectors.constants().items()}
    for operand, (start, count) in places.items():
        counts[f"{operand.upper()}_OFFSET"] = start
        counts[f"{operand.upper()}_WORDS"] = count
        _, shape = specs[operand]
        if len(shape) == 3:
            counts[f"{operand.upper()}_REGISTERS"] = count // shape[1]
    for parameter, value in counts.items():
        yield f"  localparam int {parameter} = {value};"
    yield "endpackage"
    yield "`endif"


def identifier(stem: str) -> str:
    """Return a name for C and SystemVerilog made from that of a file."""
    name = re.sub(r"\W", "_", stem, flags=re.ASCII)
    return name if name[:1].isalpha() else f"v{name}"


READMEMH = TextFormat(
    name="readmemh",
    suffixes=(".hex", ".mem"),
    summary="$readmemh words, and a SystemVerilog package of their places (.svh)",
    opening=("// warpsim vector set for $readmemh: one 32-bit word a line; the .svh file has the places",),
    prefix="// ",
    render=_render,
    parse=_parse,
    companion=_parameters,
)
