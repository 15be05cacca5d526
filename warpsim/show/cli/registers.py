"""``warpsim unpack``, ``pack`` and ``compress``: between registers, as a kernel dumps them, and matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from .operand_values import read_matrix, read_numbers, read_words, write_output
from .options import Converted, Mnemonic, Operand, Selector, Target
from .output import EXPECTED, deliver, perform
from .verbs import Option, verb

if TYPE_CHECKING:
    from ...isa.instruction import Instruction


@dataclass(frozen=True, kw_only=True)
class _Result:
    """The output of a verb: for JSON, for files of arrays, for files of text, and (if different) for the
    terminal.
    """

    document: dict[str, Any]
    arrays: dict[str, Any]
    lines: list[str]
    shown: list[str] | None = None


def _deliver(action: Callable[..., _Result], path: Path, out: Path | None, *given: Any) -> int:
    """Run the action, and print or write its output."""
    found = perform(action, path, *given)
    if out:
        perform(write_output, out, found.arrays, found.lines)
        return EXPECTED
    return deliver(found.document, found.lines if found.shown is None else found.shown)


def _form(mnemonic: str, target: str | None) -> Instruction:
    from ...sums.execution.interface import decode

    return decode(mnemonic, target=target)


# --- unpack ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Unpacking:
    """The options of unpack."""

    target: Target
    metadata: Annotated[
        str | None, "--e", Option(metavar="FILE"), "Metadata registers: sparse A becomes logical A."
    ]
    selector: Selector = 0
    codes: Annotated[bool, "Print codes instead of values."]
    out: Converted


@verb
def unpack(mnemonic: Mnemonic, operand: Operand, file: str, *, choices: _Unpacking) -> int:
    """Turn registers into the matrix they hold; metadata registers into the indices they name.

    FILE is .npy, .npz (FILE.npz:NAME) or text as a printf prints it, - for stdin: hexadecimal words, a line
    for each lane, perhaps with labels such as 'lane 5: a0 ='.
    """
    if choices.metadata and operand != "a":
        raise click.UsageError("--e goes with operand a")
    if operand == "e":
        return _deliver(_indices, Path(file), choices.out, mnemonic, choices)
    return _deliver(_unpacked, Path(file), choices.out, mnemonic, operand, choices)


def _indices(path: Path, mnemonic: str, choices: _Unpacking) -> _Result:
    from ...sums.execution.interface import unpack_metadata

    form = _form(mnemonic, choices.target)
    indices = unpack_metadata(form, read_words(str(path), form, "e"), choices.selector)
    return _Result(
        document={"mnemonic": form.mnemonic, "indices": indices.tolist()},
        arrays={"indices": indices},
        lines=_number_lines(indices),
        shown=_matrix_lines(indices),
    )


def _unpacked(path: Path, mnemonic: str, operand: str, choices: _Unpacking) -> _Result:
    from ...sums.execution.interface import decompress, unpack, unpack_metadata

    form = _form(mnemonic, choices.target)
    matrix = unpack(form, operand, read_words(str(path), form, operand))
    if choices.metadata:
        words = read_words(choices.metadata, form, "e")
        matrix = decompress(matrix, unpack_metadata(form, words, choices.selector), form)
    return _matrix_result(form, operand, matrix, choices.codes)


def _matrix_result(form: Instruction, operand: str, matrix: Any, as_codes: bool) -> _Result:
    from ...isa.codes import codes_of
    from ...workbench.inputs.register_text import code_lines

    element = form.format(operand)
    codes = codes_of(matrix, element, operand)
    lines = list(code_lines(codes, element.bits))
    return _Result(
        document={
            "mnemonic": form.mnemonic,
            "operand": operand,
            "format": element.name,
            "values": _json_values(matrix, element.is_float),
            "codes": _hexadecimal(codes, element.bits),
        },
        arrays={operand.upper(): _portable(matrix, codes)},
        lines=lines,
        shown=lines if as_codes else _matrix_lines(matrix),
    )


def _json_values(matrix: Any, is_float: bool) -> Any:
    """Return nested lists of numbers; infinities and not-a-number are strings, as JSON has no numbers for
    them.
    """
    import numpy as np

    if not is_float:
        return matrix.astype(np.int64).tolist()
    with np.errstate(invalid="ignore"):
        values = matrix.astype(np.float64)
    return np.where(np.isfinite(values), values.astype(object), values.astype(str).astype(object)).tolist()


def _portable(matrix: Any, codes: Any) -> Any:
    """Return the matrix where NumPy alone can read its dtype back, otherwise its codes."""
    return matrix if matrix.dtype.kind in "iufb" and matrix.dtype.isbuiltin == 1 else codes


def _matrix_lines(matrix: Any) -> list[str]:
    """Return every matrix of the leading axes, with row and column numbers."""
    import numpy as np

    from ..views.report import matrix_lines

    lines: list[str] = []
    for tile in np.ndindex(matrix.shape[:-2]):
        lines += [f"# tile {', '.join(map(str, tile))}"] if tile else []
        lines += matrix_lines(matrix[tile])
    return lines


def _number_lines(numbers: Any) -> list[str]:
    return [" ".join(map(str, row)) for row in numbers.reshape(-1, numbers.shape[-1]).tolist()]


def _hexadecimal(words: Any, bits: int) -> Any:
    """Return nested lists of words with 0x."""
    if words.ndim:
        return [_hexadecimal(part, bits) for part in words]
    return f"{int(words):#0{2 + -(-bits // 4)}x}"


# --- pack ------------------------------------------------------------------------------------------


@verb
def pack(
    mnemonic: Mnemonic, operand: Operand, file: str, *, target: Target, selector: Selector = 0, out: Converted
) -> int:
    """Turn a matrix into the registers that hold it; metadata indices into metadata registers.

    FILE is .npy, .npz (FILE.npz:NAME) or text, - for stdin: a line for each row, values or codes with 0x.
    Sparse A is given as it is stored; 'warpsim compress' takes the logical A.
    """
    if operand == "e":
        return _deliver(_packed_metadata, Path(file), out, mnemonic, target, selector)
    return _deliver(_packed, Path(file), out, mnemonic, target, operand)


def _packed(path: Path, mnemonic: str, target: str | None, operand: str) -> _Result:
    from ...sums.execution.interface import pack

    form = _form(mnemonic, target)
    matrix = read_matrix(str(path), form, operand, form.matrix_shape(operand)[1])
    return _register_result(form, {operand: pack(form, operand, matrix)})


def _packed_metadata(path: Path, mnemonic: str, target: str | None, selector: int) -> _Result:
    from ...isa.fragments import require_sparse
    from ...sums.execution.interface import pack_metadata

    form = _form(mnemonic, target)
    pattern = require_sparse(form)
    indices = read_numbers(str(path), "indices", form.shape.k // pattern.chunk * pattern.kept)
    return _register_result(form, {"e": pack_metadata(form, indices, selector)})


def _register_result(form: Instruction, registers: dict[str, Any]) -> _Result:
    from ...workbench.inputs.register_text import word_lines

    words = {name: _hexadecimal(array, 8 * array.itemsize) for name, array in registers.items()}
    return _Result(
        document={"mnemonic": form.mnemonic, "registers": words},
        arrays=registers,
        lines=list(word_lines(**registers)),
    )


# --- compress --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Compressing:
    """The options of compress."""

    target: Target
    selector: Selector = 0
    prune: Annotated[bool, "First set all but the largest magnitudes to zero."]
    stored: Annotated[bool, "Give the stored values and their indices instead of registers."]
    out: Converted


@verb
def compress(mnemonic: Mnemonic, file: str, *, choices: _Compressing) -> int:
    """Turn a logical sparse A into the registers of A and its metadata.

    FILE is .npy, .npz (FILE.npz:NAME) or text, - for stdin: A with all k columns.
    """
    return _deliver(_compressed, Path(file), choices.out, mnemonic, choices)


def _compressed(path: Path, mnemonic: str, choices: _Compressing) -> _Result:
    from ...base.errors import TraceError
    from ...isa.fragments import require_sparse
    from ...sums.execution.interface import compress, pack, pack_metadata, prune

    form = _form(mnemonic, choices.target)
    require_sparse(form)
    matrix = read_matrix(str(path), form, "a")
    if matrix.ndim < 2 or not all(matrix.shape[-2:]):
        raise TraceError(f"A has shape {matrix.shape}: expected a matrix, (..., m, k)")
    values, indices = compress(prune(matrix, form) if choices.prune else matrix, form)
    if choices.stored:
        return _stored(form, values, indices)
    metadata = pack_metadata(form, indices, choices.selector)
    return _register_result(form, {"a": pack(form, "a", values), "e": metadata})


def _stored(form: Instruction, values: Any, indices: Any) -> _Result:
    """Return values and indices as they are stored."""
    made = _matrix_result(form, "a", values, as_codes=False)
    return _Result(
        document=made.document | {"indices": indices.tolist()},
        arrays={"values": made.arrays["A"], "indices": indices},
        lines=["# values", *made.lines, "# indices", *_number_lines(indices)],
        shown=["values", *(made.shown or ()), "indices", *_matrix_lines(indices)],
    )
