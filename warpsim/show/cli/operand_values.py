"""Operands of an instruction as the command line gives them: NAME=VALUE and files of arrays.

Names are the arguments of warpsim.execute; A, B, C and D are the matrices instead of the registers. Knows
``.npy``, ``.npz`` and text (see register_text); does not check that operands fit the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ...isa.numerals import integer_in
from ...isa.warps import WARP

if TYPE_CHECKING:
    from ...isa.formats import Format
    from ...isa.instruction import Instruction

REGISTERS = ("a", "b", "c", "d", "e", "scale_a", "scale_b")
MATRICES = ("A", "B", "C", "D")
DESCRIPTORS = ("a_desc", "b_desc")
IMMEDIATES = (
    "selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b",
    "scale_d", "imm_scale_a", "imm_scale_b", "imm_trans_a", "imm_trans_b",
)  # fmt: skip
SCALES = ("SCALE_A", "SCALE_B")  # matrices, beside dumps of which they are the right scales
NAMES = (*REGISTERS, *MATRICES, *SCALES, *DESCRIPTORS, "shared", *IMMEDIATES)

# --- NAME=VALUE ------------------------------------------------------------------------------------


def operands_from(form: Instruction, given: Sequence[str], layout: str | None = None) -> dict[str, Any]:
    """Return arrays and integers by name; a matrix as it is, other operands as warpsim.execute takes them.

    ``layout`` is the user's own form of texts of registers, if there is one (see spelled_out). D as decimals
    is returned with how it was ``printed``. Raises UsageError, TraceError.
    """
    from ...isa.formats import FORMATS
    from ...workbench.inputs.printed_forms import ORDERS

    found: dict[str, Any] = {}
    stored = FORMATS.get(layout or "")
    order = layout if layout in ORDERS else ""
    layout = None if stored or order else layout
    for text in sorted(given, key=lambda text: text.startswith(("C=", "D="))):  # A and B state their shapes
        name, equals, value = text.partition("=")
        with _named(text):
            if not equals:
                found |= _archive(text) if text.endswith(".npz") else _dump(form, text, layout)
            elif name not in NAMES:
                raise click.UsageError(
                    f"{text!r}: no operand is called {name!r}; there are {', '.join(NAMES)}"
                )
            else:
                narrow = _stored(form, value, stored) if name == "D" and value.endswith(".npy") else {}
                how = _Text(layout, order, _product_shape(found))
                found |= narrow or {name: _value(form, name, value, how)}
                found |= _printed(form, name, value, how)
    return found


@contextmanager
def _named(text: str) -> Iterator[None]:
    """Name the operand in the errors of the block if there are several operands."""
    from ...base.errors import TraceError

    try:
        yield
    except OSError as error:
        raise TraceError(f"{text}: {error.strerror}") from None
    except TraceError as error:
        raise error.named(text) from None


class _Text(NamedTuple):
    """The user's own form of a text of registers, the order of numbers without rows, and rows and columns of
    the whole C and D, where known.
    """

    layout: str | None = None
    order: str = ""
    shape: tuple[int, int] | None = None


def _product_shape(found: dict[str, Any]) -> tuple[int, int] | None:
    """Return rows and columns of the product of A and B, where both are given."""
    A, B = found.get("A"), found.get("B")
    return None if A is None or B is None or A.ndim != 2 or B.ndim != 2 else (A.shape[0], B.shape[1])


def _value(form: Instruction, name: str, value: str, how: _Text) -> Any:
    if name in IMMEDIATES or name in DESCRIPTORS:
        number = integer_in(value)
        if number is None:
            raise click.UsageError(f"{name}={value}: expected an integer, decimal or with 0x")
        return number
    if name == "shared" or name in SCALES:
        return read_array_file(value, name)
    if name in MATRICES:
        return read_matrix(value, form, name.lower(), how=how)
    return read_words(value, form, name, how.layout)


def _stored(form: Instruction, source: str, stored: Format | None) -> dict[str, Any]:
    """Return D in the type of the form, and in which narrower type it was stored; empty for other arrays.

    NumPy has no names for some types: two bytes are bf16, a byte is of the type of ``--type``. Raises
    TraceError where it is not given.
    """
    from ...base.errors import TraceError
    from ...base.files.archives import read_array
    from ...isa.formats import FORMATS
    from ...workbench.diagnosis.dumps.dump_comparison import TYPES, Stored

    array = read_array(Path(source))
    size, own = array.dtype.itemsize, form.d
    if not own.is_float or array.dtype.kind not in "Vf" or array.dtype.fields or size >= own.dtype.itemsize:
        return {}
    fitting = [FORMATS[name] for name in TYPES if FORMATS[name].dtype.itemsize == size]
    named = [item for item in fitting if item.dtype == array.dtype] or [
        item for item in fitting if item == stored
    ]
    chosen = named or [item for item in fitting if item.name == "bf16"]
    if not chosen:
        names = " or ".join(item.name for item in fitting)
        raise TraceError(f"{source}: elements of {size} bytes: state their type by --type, {names}")
    return {"D": array.view(chosen[0].dtype).astype(own.dtype), "printed": Stored(chosen[0])}


def _printed(form: Instruction, name: str, value: str, how: _Text) -> dict[str, Any]:
    """Return how D is printed in a text of decimals; the search compares in that precision."""
    wanted = _wanted(form, name, how)
    if name not in ("d", "D") or (text := _text(value, how.layout, wanted) if value != "-" else None) is None:
        return {}
    from ...workbench.inputs.register_text import printed_as

    printed = printed_as(text, name if name == "d" else "")
    return {} if printed is None else {"printed": printed}


def _dump(form: Instruction, source: str, layout: str | None) -> dict[str, Any]:
    """Return the registers of text with the names of operands in it."""
    from ...base.errors import TraceError
    from ...workbench.inputs.register_text import names_in, printed_as

    if source.endswith(".npy"):
        raise click.UsageError(f"{source!r}: which operand is it? NAME={source}")
    text = _text(source, layout, _wanted(form, "d")) or ""
    names = [name for name in names_in(text) if name in REGISTERS]
    if not names:
        message = "no words with the name of an operand before them, as in 'a0 = 0x3c003c00'"
        raise TraceError(message).named(source)
    made = {name: _words(text, form, name) for name in names}
    results = [name for name in names if name in "cd"][-1:]  # accumulators, which are compared
    printed = printed_as(text, results[0]) if results else None
    return made if printed is None else made | {"printed": printed}


def _archive(path: str) -> dict[str, Any]:
    """Return every array of an ``.npz`` file, by its name."""
    from ...base.errors import TraceError
    from ...base.files.archives import read_arrays

    arrays = read_arrays(Path(path), "ubif")
    for name in arrays:
        if name not in NAMES:
            message = f"array {name!r}: no operand is called that; there are {', '.join(NAMES)}"
            raise TraceError(message).named(path)
    return {
        name: _immediate(path, name, array) if name in IMMEDIATES else array for name, array in arrays.items()
    }


def _immediate(path: str, name: str, array: Any) -> int:
    """Return the only integer of an array. Raises TraceError."""
    from ...base.errors import TraceError

    if array.shape != () or array.dtype.kind not in "iub":
        raise TraceError(f"{name} is {array.dtype} {array.shape}, not one integer").named(path)
    return int(array)


# --- arrays ----------------------------------------------------------------------------------------


def read_words(source: str, form: Instruction, operand: str, layout: str | None = None) -> Any:
    """Return registers ``(..., lanes, registers)`` of an operand: a word for all of them, or a file.

    Raises TraceError, OSError.
    """
    word = integer_in(source)
    text = _text(source, layout, _wanted(form, operand)) if word is None else hex(word)
    return read_array_file(source, operand) if text is None else _words(text, form, operand)


def _words(text: str, form: Instruction, operand: str) -> Any:
    from ...workbench.inputs.register_text import has_digits_alone, reading_from

    bits = form.register_bits if operand in "abcd" else 32
    element = form.format(operand) if operand in "abcd" and form.storage(operand).bits >= 8 else None
    registers = form.registers.get(operand, 1)
    words = reading_from(text, form.lanes, registers, bits, operand, element).words
    return _metadata(words, form) if operand == "e" and has_digits_alone(text, "e") else words


def _metadata(words: Any, form: Instruction) -> Any:
    """Return metadata that were printed as eight decimal digits each, read as hexadecimal words.

    They stay if all their indices are distinct in each chunk, and are decimals if those of the decimals are;
    otherwise raises TraceError.
    """
    import numpy as np

    from ...base.errors import TraceError

    decimals = np.array([int(f"{word:x}") for word in words.ravel().tolist()], words.dtype)
    for reading in (words, decimals.reshape(words.shape)):
        fields = reading[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
        if form.pattern is not None and form.pattern.distinct[fields].all():
            return reading
    word = f"{words.flat[0]:x}"
    raise TraceError(
        f"e = {word}: there are two readings, neither of which is metadata of {form.pattern}: hexadecimal "
        f"(print 0x{word}) or decimal (print 0x{int(word):08x})"
    )


def read_dump(source: str) -> Any:
    """Return words of any shape; text has a line for each lane or other row. Raises TraceError, OSError."""
    from ...workbench.inputs.register_text import dump_from

    text = _text(source)
    return read_array_file(source, "d") if text is None else dump_from(text)


def read_decimals(source: str) -> Any:
    """Return the decimals of a text of numbers alone, and how they were printed; None for other files."""
    from ...base.files.archives import read_text
    from ...workbench.inputs.decimals import decimals_in

    return None if source == "-" or _is_of_arrays(source) else decimals_in(read_text(Path(source)))


def read_matrix(
    source: str, form: Instruction, operand: str, columns: int | None = None, *, how: _Text | None = None
) -> Any:
    """Return the matrix ``(..., rows, columns)`` of an operand in its format's dtype or as codes.

    A of a sparse instruction is logical. Raises TraceError, OSError.
    """
    from ...workbench.inputs.decimals import nearest
    from ...workbench.inputs.register_text import columns_in, elements_from, numbers_from

    wanted = _wanted(form, operand.upper(), how) if columns is None else None
    text = _text(source, None, wanted)
    if text is None:
        return elements_from(read_array_file(source, operand.upper()), form.format(operand), operand.upper())
    if columns is None:
        columns = form.shape.k if operand == "a" else form.matrix_shape(operand)[1]
        columns = columns_in(text, columns if wanted is None else wanted.columns)
    values, printed = numbers_from(text, columns)
    element = form.format(operand)
    if printed is not None and element.is_float:
        return nearest(values, element).view(element.dtype)
    return elements_from(values, element, operand.upper())


def read_numbers(source: str, name: str, columns: int) -> Any:
    """Return an array of integers, such as metadata indices. Raises TraceError, OSError."""
    from ...workbench.inputs.register_text import matrix_from

    text = _text(source)
    return read_array_file(source, name) if text is None else matrix_from(text, columns)


def _wanted(form: Instruction, name: str, how: _Text | None = None) -> Any:
    """Return what the text of an operand is to be; None for operands that are only printed as words."""
    from ...workbench.inputs.printed_forms import Wanted

    small = name.lower()
    if small not in "abcd" or (small in "ab" and form.lanes > WARP) or form.products > 1:
        return None
    if form.descriptor is not None:  # words of tensor memory are not printed as fragments
        return None
    shape = form.shape
    rows, columns = {"a": (shape.m, shape.k), "b": (shape.k, shape.n)}.get(small, (shape.m, shape.n))
    how = how or _Text()
    known = how.shape if name in "CD" else None
    rows, columns = known or (rows, columns)
    return Wanted(
        name=name,
        rows=rows,
        columns=columns,
        lanes=form.lanes,
        values=form.in_registers(small).layout.values,
        order=how.order,
        whole=known is not None,
    )


def _text(source: str, layout: str | None = None, wanted: Any = None) -> str | None:
    """Return the text of a file, or of stdin where it is ``-``, in a form that is read here; None for files
    of arrays.
    """
    from ...base.files.archives import read_stdin, read_text
    from ...workbench.inputs.printed_forms import plain_text
    from ...workbench.inputs.register_text import spelled_out

    if _is_of_arrays(source):
        return None
    text = read_stdin() if source == "-" else read_text(Path(source))
    text = text if layout is None else spelled_out(text, layout)
    return text if wanted is None else plain_text(text, wanted)


def _is_of_arrays(source: str) -> bool:
    """Return whether a file holds arrays by its name, and no text."""
    return source.endswith(".npy") or re.search(r"\.(npz|safetensors|pt)(:|$)", source) is not None


def read_array_file(source: str, name: str, *, for_device: bool = False) -> Any:
    """Return the array of an ``.npy`` file, or of an ``.npz`` file: the array of that name, the only array,
    or, with ``FILE.npz:NAME``, another. ``for_device`` allows as many bytes as the memory of a device takes.
    """
    from ...base.errors import TraceError
    from ...base.files.archives import LARGEST_ARRAY, LARGEST_OPERAND, read_array, read_arrays
    from ...workbench.inputs.tensor_files import read_tensors

    if source.endswith(".npy"):
        return read_array(Path(source), LARGEST_ARRAY if for_device else LARGEST_OPERAND)
    file, _, chosen = source.partition(":")
    if Path(file).suffix in (".safetensors", ".pt"):
        return _chosen(read_tensors(Path(file)), chosen, name, file)
    if not Path(source).suffix.startswith(".npz"):
        raise TraceError("expected .npy or .npz").named(source)
    file, _, member = source.partition(".npz:") if ".npz:" in source else (source[:-4], "", "")
    arrays = read_arrays(Path(f"{file}.npz"), "ubif")
    return _chosen(arrays, member, name, f"{file}.npz")


def _chosen(arrays: Mapping[str, Any], member: str, name: str, file: str) -> Any:
    """Return the array of that member, of that name, or the only array."""
    from ...base.errors import TraceError

    wanted = member or (name if name in arrays else "")
    if not wanted and len(arrays) == 1:
        return next(iter(arrays.values()))
    if wanted not in arrays:
        message = f"no array {wanted or name!r}; the arrays are {', '.join(arrays)[:400]}"
        raise TraceError(message).named(file)
    return arrays[wanted]


# --- writing ---------------------------------------------------------------------------------------


def write_output(path: Path, arrays: dict[str, Any], lines: Sequence[str]) -> None:
    """Write arrays to ``.npz``, a single array to ``.npy``, lines to any other file. Raises UsageError,
    OSError.
    """
    from ...base.files.archives import write_array, write_arrays, write_lines

    if path.suffix == ".npz":
        write_arrays(path, arrays)
    elif path.suffix == ".npy":
        if len(arrays) > 1:
            raise click.UsageError(f"{path}: {', '.join(arrays)} are several arrays: write an .npz file")
        write_array(path, next(iter(arrays.values())))
    else:
        write_lines(path, lines)
