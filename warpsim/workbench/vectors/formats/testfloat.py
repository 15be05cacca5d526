"""TestFloat-style lines: every element of D as a dot product, operands then result, in hexadecimal.

A line is ``a... b... c d``: the k codes of a row of A, those of a column of B, the element of C and that of
D; for sparse A the stored codes and the rows of B that they meet, so that each line is an independent dot
product. Block-scaled forms have their scales between ``b`` and ``c``: those of the row, then those of the
column. A case's lines are D row by row (m8n8k4 f16: its four products in order).

Comment lines keep the data that is not part of a dot product. Before a case's lines stand its number and ``#=
NAME WORDS`` for the data outside dot products: metadata, scales, descriptors, shared memory, immediates that
differ. After them, ``#^ NAME WORDS`` is the exclusive-or of the registers and of registers made from the
lines alone: padding bits, rows of B that no row of A meets. Reading reverses all of it, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import TraceError, WarpsimError, located
from ....isa.formats import Format
from ....isa.fragments import codes_from, gather, registers_of
from ....isa.instruction import Instruction
from ....isa.products import Codes, Operands
from ....sums.execution.inputs import inputs_by_name
from ..parted import SetInParts
from ..sets import VectorSet
from .manifest import Manifest
from .text_format import Arrays, Lines, TextFormat, empty_arrays, numbered, pairs, read_words, spelled

Array = npt.NDArray[Any]

_LINES = "abcd"  # the operands that lines give


# --- dot products of a case ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A case as matrices of codes with an axis of products in front, and columns of sparse A."""

    form: Instruction
    operands: Operands
    d: Codes

    def fields(self) -> Iterator[tuple[str, Format, Codes]]:
        """Name, format and codes ``(products, m, n, count)`` of the fields of lines, in their order."""
        o, form = self.operands, self.form
        m, n = form.matrix_shape("d")
        a = np.broadcast_to(_products(o.a)[:, :, None, :], (form.products, m, n, form.stored_k))
        b = np.swapaxes(_products(o.b), -1, -2)[:, None]  # (products, 1, n, k)
        if o.columns is None:
            b = np.broadcast_to(b, (form.products, m, n, form.shape.k))
        else:
            b = np.take_along_axis(b, _products(o.columns)[:, :, None, :], axis=-1)
        yield "a", form.a, a
        yield "b", form.b, b
        if form.scale and o.scale_a is not None and o.scale_b is not None:
            chunks = (1, m, n, form.scale_chunks)
            yield "scale_a", form.scale, np.broadcast_to(_products(o.scale_a)[:, :, None, :], chunks)
            columns = np.swapaxes(_products(o.scale_b), -1, -2)
            yield "scale_b", form.scale, np.broadcast_to(columns[:, None], chunks)
        yield "c", form.c, _products(o.c)[..., None]
        yield "d", form.d, _products(self.d)[..., None]


def _products(codes: Codes) -> Codes:
    """Return ``(products, rows, columns)`` of the matrices of one case."""
    return codes.reshape(-1, *codes.shape[-2:])


def case_of(vectors: VectorSet) -> Case:
    """Return the only case of a set; metadata is read literally, even if it is undefined."""
    (part,) = vectors.inputs()
    form = vectors.instruction
    operands = gather(form, inputs_by_name({**part.arguments, "undefined": "fallback"}))
    operands = replace(operands, **{name: _first(getattr(operands, name)) for name in _ARRAYS})
    return Case(form=form, operands=operands, d=_first(codes_from(vectors.d, form, "d")))


_ARRAYS = ("a", "b", "c", "columns", "scale_a", "scale_b")


def _first(array: Array | None) -> Any:
    """Return an operand without its batch axis of length 1, or None for an operand that is not there."""
    return array[0] if array is not None and array.ndim > 2 else array


# --- writing ---------------------------------------------------------------------------------------


def _render(vectors: SetInParts, stem: str) -> Iterator[str]:
    for start, part in numbered(vectors):
        for index in range(len(part)):
            yield from _rendered(part.part(index, index + 1), start + index)


def _rendered(case: VectorSet, number: int) -> Iterator[str]:
    label = f": {case.labels[0]}" if case.labels else ""
    yield f"# case {number}{label}"
    arrays = case.arrays()
    for name, array in _side_arrays(arrays).items():
        yield f"#= {name} {_text(array)}"
    lines = [*_dot_products(case_of(case))]
    yield from lines
    rebuilt = _rebuilt(case, [line.split(" ") for line in lines])
    for name, words in rebuilt.items():
        if (words != arrays[name]).any():
            yield f"#^ {name} {_text(words ^ arrays[name])}"


def _side_arrays(arrays: Arrays) -> Arrays:
    """Return the arrays of a case that are not operands of its lines."""
    return {name: array for name, array in arrays.items() if name not in _LINES}


def _text(array: Array) -> str:
    return "".join(spelled(array)) if array.dtype == np.uint8 else " ".join(spelled(array))


def _dot_products(case: Case) -> Iterator[str]:
    fields = [_spelled(codes, element) for _, element, codes in case.fields()]
    for parts in zip(*fields, strict=True):
        yield " ".join(parts)


def _digits(element: Format) -> int:
    return -(-element.bits // 4)


def _spelled(codes: Codes, element: Format) -> list[str]:
    """Return a text for each dot product: its codes, with as many digits as the format needs."""
    digits = _digits(element)
    words = spelled(np.ascontiguousarray(codes).astype(f"u{max(1, digits // 2)}"))
    words = [word[-digits:] for word in words]
    count = codes.shape[-1]
    return [" ".join(words[at : at + count]) for at in range(0, len(words), count)]


# --- registers from lines --------------------------------------------------------------------------


def _rebuilt(case: VectorSet, lines: list[list[str]]) -> Arrays:
    """Return registers ``(1, lanes, registers)`` made from nothing but the lines of a
    case and its metadata.
    """
    form, operands = case.instruction, case_of(case).operands
    m, n = form.matrix_shape("d")
    codes, at = {}, 0
    for name, element, count in _columns(form):
        codes[name] = _codes([line[at : at + count] for line in lines], element)
        codes[name] = codes[name].reshape(form.products, m, n, count)
        at += count
    matrices = {"a": codes["a"][:, :, 0, :], "c": codes["c"][..., 0], "d": codes["d"][..., 0]}
    if operands.columns is None:
        matrices["b"] = np.swapaxes(codes["b"][:, 0], -1, -2)
    else:
        matrices["b"] = _scattered(codes["b"], _products(operands.columns), form)
    present = [name for name in _LINES if name in case.arrays()]
    batched = {name: matrices[name][None] if form.products > 1 else matrices[name] for name in present}
    return {name: registers_of(matrix, form, name) for name, matrix in batched.items()}


def _columns(form: Instruction) -> list[tuple[str, Format, int]]:
    """Return name, format and number of the words of a line."""
    scales = [(name, form.scale, form.scale_chunks) for name in ("scale_a", "scale_b") if form.scale]
    k = form.stored_k
    return [("a", form.a, k), ("b", form.b, k), *scales, ("c", form.c, 1), ("d", form.d, 1)]


def _codes(words: list[list[str]], element: Format) -> Codes:
    digits = _digits(element)
    size = max(2, digits + digits % 2)
    text = "".join(word.rjust(size, "0") for line in words for word in line)
    codes = np.frombuffer(bytes.fromhex(text), f">u{size // 2}")
    return codes.astype(element.code_dtype)


def _scattered(b: Codes, columns: Array, form: Instruction) -> Codes:
    """Return B ``(1, k, n)`` of the rows that stored elements meet; zeros elsewhere."""
    matrix = np.zeros((1, *form.matrix_shape("b")), b.dtype)
    for row in range(form.shape.m):
        matrix[0, columns[0, row]] = b[0, row].T
    return matrix


# --- reading ---------------------------------------------------------------------------------------


def _parse(lines: Lines, manifest: Manifest) -> Arrays:
    arrays = empty_arrays(manifest)
    lines.following("'# case 0'")
    for case in range(manifest.cases):
        if not f"{lines.text}:".startswith(f"# case {case}:"):
            lines.wrong(f"expected '# case {case}'")
        _read_case(lines, manifest, case, arrays)
    if lines.text.strip():
        lines.wrong("expected the end of the file: all cases are read")
    return arrays


def _read_case(lines: Lines, manifest: Manifest, case: int, arrays: Arrays) -> None:
    """Fill a case of the arrays; the line after the case becomes the current line."""
    part = {name: array[case : case + 1] for name, array in arrays.items()}
    for name, array in _side_arrays(part).items():
        lines.following(f"'#= {name}'")
        array[:] = _read_comment(lines, f"#= {name} ", array)
    beginning = lines.place()
    numbers: list[int] = []
    products: list[list[str]] = []
    for _ in range(manifest.instruction.products * np.prod(manifest.instruction.matrix_shape("d"))):
        products.append(_read_product(lines, manifest.instruction, len(products)))
        numbers.append(lines.number)
    with located(lambda: beginning), _as_trace_error(case):
        _fill(manifest, case, part, products)
    following = next(lines, "")
    while following.startswith("#^ "):
        name = following.split(" ")[1]
        if name not in part or name not in _LINES:
            lines.wrong(f"unknown operand {name[:20]!r} of a '#^' line", name)
        part[name] ^= _read_comment(lines, f"#^ {name} ", part[name])
        following = next(lines, "")
    if not following:
        lines.text = ""
    _check_lines(lines, manifest.assemble(part, case), products, numbers)


def _read_comment(lines: Lines, start: str, array: Array) -> Array:
    if not lines.text.startswith(start):
        lines.wrong(f"expected {start + 'WORDS'!r}")
    text = lines.text.removeprefix(start)
    words = pairs(text) if array.dtype == np.uint8 else text.split(" ")
    if len(words) != array.size:
        lines.wrong(f"{len(words)} words, expected {array.size}")
    return read_words(words, array.dtype, lines).reshape(array.shape)


def _read_product(lines: Lines, form: Instruction, index: int) -> list[str]:
    words = lines.following(f"dot product {index} of a case").split(" ")
    wanted = [_digits(element) for _, element, count in _columns(form) for _ in range(count)]
    if len(words) != len(wanted):
        lines.wrong(f"{len(words)} words, expected the {len(wanted)} of a dot product")
    for word, digits in zip(words, wanted, strict=True):
        if len(word) != digits or word.strip("0123456789abcdef"):
            lines.wrong(f"{word[:20]!r} is not a word of {digits} hexadecimal digits", word)
    return words


def _fill(manifest: Manifest, case: int, part: Arrays, products: list[list[str]]) -> None:
    """Put registers made from the lines of a case into its arrays."""
    for name, words in _rebuilt(manifest.assemble(part, case), products).items():
        part[name][:] = words


@contextmanager
def _as_trace_error(case: int) -> Iterator[None]:
    """Convert, in the block, errors of computing with a case to TraceErrors of the file."""
    try:
        yield
    except WarpsimError as error:
        raise TraceError(f"case {case}: {error.message}") from None


def _check_lines(lines: Lines, case: VectorSet, products: list[list[str]], numbers: list[int]) -> None:
    """Raise TraceError for a line that contradicts the other lines of the case."""
    for number, words, again in zip(numbers, products, _dot_products(case_of(case)), strict=True):
        if " ".join(words) != again:
            lines.number, lines.text = number, " ".join(words)
            lines.wrong("this line contradicts others of its case, or the comments around them")


TESTFLOAT = TextFormat(
    name="testfloat",
    suffixes=(".testfloat", ".tv"),
    summary="a dot product a line: a... b... c d",
    opening=("# warpsim vector set, a dot product a line: a... b... c d",),
    prefix="# ",
    render=_render,
    parse=_parse,
)
