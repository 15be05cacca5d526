"""Tensor maps as the command line gives them: an array, or the number of another argument, and fields.

    tensor_map:0:box=64x128:swizzle=128B            of the array of argument 0
    tensor_map:A.npy:box=64x64                      of an array in a file, which is not an argument itself
    tensor_map:zeros:f32:512x512:box=64x32          of an array of zeros
    tensor_map:1:lower=-1x-1:upper=-1x-1:channels=64:pixels=128     an im2col map

Dimensions are in NumPy's order. Knows spelling; tensor_map checks the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WORD = "tensor_map"
SPELLING = f"{WORD}:INDEX-or-ARRAY:box=64x128[:swizzle=128B][:fill=nan]..."


def _sizes(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


FIELDS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("box", "element_strides", "shape", "strides", "lower", "upper"), _sizes),
    **dict.fromkeys(("swizzle", "interleave", "fill", "l2_promotion", "element", "mode"), str),
    **dict.fromkeys(("channels", "pixels"), int),
}
_COLUMNS = frozenset({"lower", "upper", "channels", "pixels", "mode"})


def is_map(text: str) -> bool:
    """Return whether an argument is spelled as a map."""
    return text.partition(":")[0] == WORD


def spelled(text: str, option: str = "--arg") -> tuple[str, dict[str, Any]]:
    """Return the source and the fields of an argument. Raises UsageError."""
    parts = text.split(":")[1:]
    first = next((place for place, part in enumerate(parts) if part.partition("=")[0] in FIELDS), len(parts))
    source, given = ":".join(parts[:first]), parts[first:]
    if not source or not given:
        raise click.UsageError(f"{option} {text}: expected {SPELLING}")
    fields = dict[str, Any]()
    for part in given:
        name, equals, value = part.partition("=")
        if not equals or name not in FIELDS:
            raise click.UsageError(f"{option} {text}: no field {part!r}; there are {', '.join(FIELDS)}")
        try:
            fields[name] = FIELDS[name](value)
        except ValueError:
            raise click.UsageError(
                f"{option} {text}: {part} is not like {name}=64x128 or {name}=64"
            ) from None
    return source, fields


def made(text: str, source: Any, fields: Mapping[str, Any], option: str = "--arg") -> Any:
    """Return the map of an array. Raises UsageError."""
    from ...base.errors import OperandError
    from ...machine.host.tensor_maps import tensor_map, tensor_map_im2col

    try:
        make = tensor_map_im2col if _COLUMNS & set(fields) else tensor_map
        return make(source, **fields)
    except OperandError as error:
        raise click.UsageError(f"{option} {text}: {error.message}") from None
    except TypeError:
        needed = "box, or lower, upper, channels and pixels"
        raise click.UsageError(f"{option} {text}: fields are missing, or too many: {needed}") from None


def with_maps(texts: Sequence[str], value: Callable[[str], Any]) -> list[Any]:
    """Return the values of all arguments; maps are made of the others. Raises UsageError."""
    values = [None if is_map(text) else value(text) for text in texts]
    for place, text in enumerate(texts):
        if is_map(text):
            source, fields = spelled(text)
            values[place] = made(text, _source(text, source, texts, values, value), fields)
    return values


def _source(
    text: str, source: str, texts: Sequence[str], values: Sequence[Any], value: Callable[[str], Any]
) -> Any:
    """Return the array of a map: that of another argument, or its own."""
    if not source.isdecimal():
        return value(source)
    number = int(source)
    if number >= len(texts) or (is_map(texts[number]) and values[number] is None):
        raise click.UsageError(f"--arg {text}: argument {number} is not an earlier argument that is an array")
    array = array_of(values[number])
    if array is None:
        raise click.UsageError(f"--arg {text}: argument {number}, {texts[number]}, is not an array")
    return array


def array_of(value: Any) -> npt.NDArray[np.generic] | None:
    """Return the array of an argument, or of the map that it is; None for others."""
    found = getattr(value, "array", value)
    return found if hasattr(found, "shape") and found.ndim else None
