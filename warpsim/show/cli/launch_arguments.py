"""Arguments of a kernel as the command line gives them, and results that are written or compared.

    A.npy                     an array in a file        null              a null pointer
    zeros:f32:512x512         an array of zeros         bytes:FILE        a by-value parameter
    random:f16:64x64:SEED     normal or integers        i32:512  f32:1.5  a number
    hex:f32:0x7fc00000        a number by its bits

Knows files and dtypes; the launch checks whether an argument suits its parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...isa.numerals import integer_in, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ...machine.host.device import Symbol
    from ...programs.launch.array_agreement import Agreement
    from ...programs.launch.launching import LoadedModule

_LARGEST = 1 << 34  # bytes of an array that is made here
_MOST_AXES = 32
_INTEGERS = {f"{kind}{bits}": f"{kind}{bits}" for kind in "ui" for bits in (8, 16, 32, 64)}
_NUMPY = {
    **_INTEGERS,
    **{f"s{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"b{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip
KINDS = "FILE.npy, zeros:TYPE:SHAPE, random:TYPE:SHAPE:SEED, TYPE:NUMBER, hex:TYPE:BITS, bytes:FILE, null"


def argument(text: str) -> Any:
    """Return the value of an ``--arg``. Raises UsageError for its spelling, TraceError
    and OSError for files.
    """
    word, colon, rest = text.partition(":")
    if text == "null":
        return None
    if colon and word in _MAKERS:
        return _MAKERS[word](text, rest)
    if colon and word in _types():
        return _number(text, word, rest)
    if text.endswith((".npy", ".npz")) or ".npz:" in text:
        from .operand_values import read_array_file

        return read_array_file(text, "array", for_device=True)
    raise click.UsageError(f"--arg {text}: {_untyped(text)}expected {KINDS}")


def _untyped(text: str) -> str:
    """Return how a number is given, where a text is a number alone."""
    try:
        float(text)
    except ValueError:
        return ""
    kind = "i32" if text.strip("+-").isdigit() else "f32"
    return f"a number has its type in front, as in {kind}:{text}; "


def _types() -> dict[str, np.dtype[Any]]:
    """Return dtypes by the names of PTX; integers also by NumPy's abbreviations."""
    import numpy as np

    from ...isa.formats import FORMATS

    integers = {name: np.dtype(f"{kind[0]}{int(kind[1:]) // 8}") for name, kind in _NUMPY.items()}
    return integers | {name: np.dtype(item.dtype) for name, item in FORMATS.items() if item.is_float}


def typed(text: str, name: str, option: str = "--arg") -> np.dtype[Any]:
    """Return the dtype of a name. Raises UsageError."""
    known = _types()
    if name not in known:
        raise click.UsageError(f"{option} {text}: no type {name!r}; there are {', '.join(known)}")
    return known[name]


def shape_of(text: str, shape: str, option: str = "--arg") -> tuple[int, ...]:
    """Return sizes that are spelled as 512x512. Raises UsageError."""
    parts = [whole_number(part, _LARGEST) for part in shape.split("x")]
    found = tuple(part for part in parts if part is not None)
    if len(found) < len(parts) or len(parts) > _MOST_AXES:
        raise click.UsageError(f"{option} {text}: the shape {shape!r} is not like 512x512")
    return found


def _shape(text: str, shape: str, size: int) -> tuple[int, ...]:
    found = shape_of(text, shape)
    total = size
    for item in found:
        total *= item
    if total > _LARGEST:
        raise click.UsageError(f"--arg {text}: {total:,} bytes, more than {_LARGEST:,}")
    return found


def _zeros(text: str, rest: str) -> npt.NDArray[Any]:
    import numpy as np

    name, _, shape = rest.partition(":")
    dtype = typed(text, name)
    return np.zeros(_shape(text, shape, dtype.itemsize), dtype)


def _random(text: str, rest: str) -> npt.NDArray[Any]:
    """Return standard normal floats, or integers of the whole range; a seed always gives the same bits."""
    import numpy as np

    name, _, more = rest.partition(":")
    shape_text, _, seed = more.partition(":")
    dtype = typed(text, name)
    shape = _shape(text, shape_text, dtype.itemsize)
    number = whole_number(seed or "0")
    if number is None:
        raise click.UsageError(f"--arg {text}: the seed {seed!r} is not a number")
    generator = np.random.default_rng(number)
    if dtype.kind in "ui":
        low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return generator.integers(low, high, shape, dtype, endpoint=True)
    return generator.standard_normal(shape, np.float32 if dtype.itemsize < 8 else dtype).astype(dtype)


def _bits(text: str, rest: str) -> Any:
    import numpy as np

    name, _, number = rest.partition(":")
    dtype = typed(text, name)
    bits = _integer(text, number)
    if not 0 <= bits < 1 << 8 * dtype.itemsize:
        raise click.UsageError(f"--arg {text}: {number} does not fit in {8 * dtype.itemsize} bits")
    return np.array(bits, f"u{dtype.itemsize}").view(dtype)


def _content(text: str, rest: str) -> bytes:
    from ...base.files.archives import read_content

    return read_content(Path(rest))


def _number(text: str, name: str, number: str) -> Any:
    """Return a number in a type; a float is rounded to it."""
    import numpy as np

    dtype = _types()[name]
    if dtype.kind in "ui":
        integer, known = _integer(text, number), np.iinfo(dtype)
        if not known.min <= integer <= known.max:
            raise click.UsageError(f"--arg {text}: {name} goes from {known.min} to {known.max}")
        return np.array(integer, dtype)
    try:
        value = float(number)
    except ValueError:
        raise click.UsageError(f"--arg {text}: {number!r} is not a number") from None
    with np.errstate(all="ignore"):
        return np.array(value).astype(dtype)


def _integer(text: str, number: str) -> int:
    value = integer_in(number)
    if value is None:
        raise click.UsageError(f"--arg {text}: {number!r} is not an integer")
    return value


_MAKERS: dict[str, Callable[[str, str], Any]] = {
    "zeros": _zeros,
    "random": _random,
    "hex": _bits,
    "bytes": _content,
}

# --- results ---------------------------------------------------------------------------------------


def placed(option: str, text: str, count: int) -> tuple[int, Path]:
    """Return ``INDEX=FILE.npy`` of --save and --expect: the parameter, and the file. Raises UsageError."""
    word, equals, path = text.partition("=")
    index = whole_number(word)
    if not equals or index is None or not path.endswith(".npy"):
        raise click.UsageError(f"{option} {text}: expected INDEX=FILE.npy, with the number of a parameter")
    if index >= count:
        raise click.UsageError(f"{option} {text}: there are {count} arguments, 0 to {count - 1}")
    return index, Path(path)


@dataclass(frozen=True, kw_only=True)
class ArrayCheck:
    """The comparison of the array of a parameter with a file, bit by bit or within a tolerance."""

    index: int
    file: str
    agreement: Agreement

    @property
    def first(self) -> tuple[tuple[int, ...], str, str] | None:
        """The index of the first element that differs, with the bits or the values of both."""
        found, place = self.agreement, self.agreement.first
        if place is None:
            return None
        shown = str if found.tolerance else _hex
        return place, shown(found.given[place]), shown(found.expected[place])


def compared(index: int, path: Path, array: npt.NDArray[Any], tolerance: float = 0.0) -> ArrayCheck:
    """Compare an array with that of a file, bit by bit, or as values within a relative tolerance.

    Raises TraceError where shapes or element sizes differ.
    """
    from ...base.errors import TraceError
    from ...base.files.archives import LARGEST_ARRAY, read_array
    from ...programs.launch.array_agreement import agreement

    wanted = read_array(path, LARGEST_ARRAY)
    if wanted.shape != array.shape or not (tolerance or wanted.dtype.itemsize == array.dtype.itemsize):
        given, expected = (f"{item.dtype} {item.shape}" for item in (array, wanted))
        raise TraceError(f"{path}: holds {expected}, but parameter {index} is {given}")
    return ArrayCheck(index=index, file=str(path), agreement=agreement(array, wanted, tolerance))


def _hex(element: np.generic) -> str:
    return f"0x{element.tobytes()[::-1].hex()}"


# --- variables of the module: NAME=FILE.npy ----------------------------------------------------------


def set_symbols(module: LoadedModule, texts: tuple[str, ...]) -> None:
    """Set every variable to the content of its file. Raises UsageError, TraceError."""
    from ...base.errors import OperandError
    from ...base.files.archives import read_array

    for symbol, path in named_symbols(module, texts, "--symbol"):
        try:
            symbol.set(read_array(path))
        except OperandError as error:
            raise click.UsageError(f"--symbol {symbol.name}={path}: {error.message}") from None


def named_symbols(
    module: LoadedModule, texts: tuple[str, ...], option: str = "--save-symbol"
) -> list[tuple[Symbol, Path]]:
    """Find the variables and files that texts name. Raises UsageError, which lists the variables."""
    from ...base.errors import OperandError

    found = []
    for text in texts:
        name, equals, path = text.rpartition("=")
        if not (name and equals and path):
            raise click.UsageError(f"{option} {text}: expected NAME=FILE.npy")
        try:
            found.append((module.symbol(name), Path(path)))
        except OperandError as error:
            raise click.UsageError(f"{option} {text}: {error.message}") from None
    return found
