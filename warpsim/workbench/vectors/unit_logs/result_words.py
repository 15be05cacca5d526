"""Words without places, in the order of the set: ``$writememh``, hexadecimal text, ``.npy`` and ``.npz``.

The number of words and their width say what they are: registers of D of every case, the whole memory of a
case as ``$readmemh`` loaded it, one long word for each lane or for each case (the lowest lane and register
last, as SystemVerilog prints a vector), or elements of the matrix D.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import Location, TraceError
from ....base.files.archives import read_array, read_arrays
from ....isa.fragments import codes_from, registers_of
from ..formats.readmemh import offsets
from ..sets import VectorSet
from .unit_results import Line, UnitResults, digits_of, value_and_mask, wrong

_COMMENT = re.compile(r"//.*|#.*|/\*.*?\*/")
_LEAST = 0.5  # of all words that have to be as expected where the order is decided by them

Reading = Callable[[Sequence[str], VectorSet], tuple[npt.NDArray[Any], npt.NDArray[Any]]]


@dataclass(frozen=True, kw_only=True)
class Order:
    """A meaning of words: its name, the number of words in a case and the digits of each."""

    name: str
    says: str
    count: int
    digits: int
    read: Reading


def is_words(lines: Sequence[str]) -> bool:
    """Return whether lines hold hexadecimal words alone, and addresses as ``$writememh`` writes them."""
    tokens = [token for line in lines for token in _COMMENT.sub("", line).replace(",", " ").split()]
    return bool(tokens) and all(digits_of(token.removeprefix("@")) is not None for token in tokens)


def read_words(path: Path, lines: Sequence[str], vectors: VectorSet, order: str) -> UnitResults:
    """Return the results that words are. Raises TraceError where their number fits nothing, or two orders."""
    tokens = [*_tokens(path, lines)]
    widths = {len(token) for token in tokens}
    if len(widths) > 1:
        width = len(tokens[0])
        odd = next(token for token in tokens if len(token) != width)
        raise TraceError(
            f"{path}: words of {width} and of {len(odd)} hexadecimal digits ({odd}): expected one width"
        )
    fitting = [
        each
        for each in _orders(vectors)
        if each.digits in widths
        and len(tokens) % each.count == 0
        and len(tokens) // each.count <= len(vectors)
    ]
    if order:
        fitting = [each for each in fitting if each.name == order]
    if not fitting:
        raise TraceError(_unfitting(path, tokens, vectors))
    made = [(each, *each.read(tokens, vectors)) for each in fitting]
    return _decided(path, made, vectors)


def _tokens(path: Path, lines: Sequence[str]) -> Iterator[str]:
    """Yield the digits of each word; addresses have to go on where the words before them end."""
    count = 0
    for number, text in enumerate(lines, 1):
        for token in _COMMENT.sub("", text).replace(",", " ").split():
            if token.startswith("@"):
                if int(token[1:], 16) != count:
                    line = Line(str(path), number, text)
                    raise wrong(line, f"address {token}, but the next word is @{count:x}", token)
                continue
            count += 1
            yield digits_of(token) or ""


def _orders(vectors: VectorSet) -> Iterator[Order]:
    form, lanes, registers = vectors.instruction, *vectors.d.shape[1:]
    word = 2 * vectors.d.dtype.itemsize
    m, n, code = form.shape.m, form.shape.n, form.d.bits // 4
    whole = sum(count for _, count in _places(vectors).values())
    yield Order(
        name="registers", says="registers of D by case, lane and register", count=lanes * registers,
        digits=word, read=_registers,
    )  # fmt: skip
    if whole != lanes * registers:
        yield Order(name="memory", says="all words of each case", count=whole, digits=8, read=_memory)
    if word == 16:
        yield Order(
            name="words", says="registers of D in two words, the low one first", count=2 * lanes * registers,
            digits=8, read=_halves,
        )  # fmt: skip
    if registers > 1:
        yield Order(
            name="lanes", says="all registers of a lane in a word, d0 last", count=lanes,
            digits=word * registers, read=_vectors,
        )  # fmt: skip
    yield Order(
        name="cases", says="all registers of a case in a word, d0 of lane 0 last", count=1,
        digits=word * registers * lanes, read=_vectors,
    )  # fmt: skip
    yield Order(
        name="matrix", says="elements of D by case, row and column", count=m * n * form.products,
        digits=code, read=_matrix,
    )  # fmt: skip


def _places(vectors: VectorSet) -> dict[str, tuple[int, int]]:
    return offsets({name: (array.dtype, array.shape) for name, array in vectors.arrays().items()})


def _numbers(tokens: Sequence[str], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    pairs = [value_and_mask(token) for token in tokens]
    return tuple(np.array([pair[at] for pair in pairs], dtype) for at in (0, 1))  # type: ignore[return-value]


def _registers(tokens: Sequence[str], vectors: VectorSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    shape = (-1, *vectors.d.shape[1:])
    d, known = _numbers(tokens, vectors.d.dtype)
    return d.reshape(shape), known.reshape(shape)


def _halves(tokens: Sequence[str], vectors: VectorSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    return _registers([high + low for low, high in zip(tokens[::2], tokens[1::2], strict=True)], vectors)


def _memory(tokens: Sequence[str], vectors: VectorSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    places = _places(vectors)
    start, count = places["d"]
    size = sum(words for _, words in places.values())
    chosen = [
        token for at in range(0, len(tokens), size) for token in tokens[at + start : at + start + count]
    ]
    return (_halves if vectors.d.dtype.itemsize == 8 else _registers)(chosen, vectors)


def _vectors(tokens: Sequence[str], vectors: VectorSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    width = 2 * vectors.d.dtype.itemsize
    cuts = range(len(tokens[0]), -1, -width)
    return _registers([token[low:high] for token in tokens for high, low in pairwise(cuts)], vectors)


def _matrix(tokens: Sequence[str], vectors: VectorSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    form = vectors.instruction
    lead = (form.products,) if form.products > 1 else ()
    shape = (-1, *lead, form.shape.m, form.shape.n)
    d, known = _numbers(tokens, np.dtype(form.d.code_dtype))
    made = [registers_of(codes.reshape(shape), form, "d") for codes in (d, known)]
    return made[0], made[1]


def _decided(path: Path, made: list[Any], vectors: VectorSet) -> UnitResults:
    """Return the reading that there is, or the only reading under which most of D is as expected."""
    equal = []
    for _, d, known in made:
        expected = vectors.d[: len(d)]
        equal.append(float((((d ^ expected) & known) == 0).mean()))
    chosen = 0
    if any(not np.array_equal(d, made[0][1]) for _, d, _ in made):
        likely = [at for at, share in enumerate(equal) if share >= _LEAST]
        if len(likely) != 1:
            names = "; ".join(
                f"--format {each.name}: {each.says} ({share:.1%} as expected)"
                for (each, _, _), share in zip(made, equal, strict=True)
            )
            raise TraceError(f"{path}: these words can be read in {len(made)} ways: {names}")
        chosen = likely[0]
    order, d, known = made[chosen]
    notes = [f"read as {order.says}"]
    if len(d) < len(vectors):
        notes.append(f"there are words of {len(d)} of {len(vectors)} cases")
        rest = np.zeros((len(vectors) - len(d), *d.shape[1:]), d.dtype)
        d, known = np.concatenate([d, rest]), np.concatenate([known, rest])
    return UnitResults(d=d, known=known, notes=tuple(notes))


def _unfitting(path: Path, tokens: Sequence[str], vectors: VectorSet) -> str:
    ways = "; ".join(
        f"{each.count * len(vectors):,} words of {each.digits} digits ({each.says})"
        for each in _orders(vectors)
    )
    return (
        f"{path}: {len(tokens):,} words of {len(tokens[0])} hexadecimal digits are not a D of "
        f"{len(vectors):,} cases: expected {ways}"
    )


# --- arrays ----------------------------------------------------------------------------------------


def read_stored(path: Path, vectors: VectorSet, order: str) -> UnitResults:
    """Return the results in an array file: registers, or matrices of codes or of the element type."""
    array = read_array(path) if path.suffix == ".npy" else _member(path)
    form, shape = vectors.instruction, vectors.d.shape
    lead = (form.products,) if form.products > 1 else ()
    matrix = (len(vectors), *lead, form.shape.m, form.shape.n)
    element = np.dtype(form.d.code_dtype)
    if array.shape == shape and array.dtype == vectors.d.dtype and order != "matrix":
        d = array
    elif array.shape == matrix and array.dtype.itemsize == element.itemsize:
        d = registers_of(np.ascontiguousarray(array).view(element), form, "d")
    else:
        raise TraceError(
            f"{path}: {array.dtype} {array.shape} is not a D of this set: expected registers "
            f"{vectors.d.dtype} "
            f"{shape}, or matrices {matrix} of {form.d.name} or its codes",
            Location(str(path), 1),
        )
    ones = np.full_like(d, np.iinfo(d.dtype).max)
    assert codes_from(d, form, "d").shape == matrix
    return UnitResults(d=d, known=ones)


def _member(path: Path) -> npt.NDArray[Any]:
    """Return array ``d`` of an archive, which may be another vector set."""
    arrays = read_arrays(path, "ubifUV")
    if "d" not in arrays:
        raise TraceError(f"{path}: no array d; there are {', '.join(sorted(arrays)) or 'none'}")
    return arrays["d"]
