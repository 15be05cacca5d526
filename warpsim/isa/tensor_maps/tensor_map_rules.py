"""What tensor maps can be: the limits of cuTensorMapEncodeTiled, …Im2col and …Im2colWide, one function each.

Source: their documentation in cuda.h of CUDA 13.0, and PTX ISA 9.1, sections 5.5 and 9.7.9.27.1.1. Inferred,
as both only say so of boxes in tile mode: that the channels of an im2col box make multiples of 16 bytes. Not
checked, though cuda.h writes it as an assertion: that strides grow with the dimensions, which maps in use
(heads within rows) do not. Does not know arrays, addresses of boxes, or chips.
"""

from __future__ import annotations

from collections.abc import Callable

from ...base.errors import OperandError
from .tensor_fields import (
    ELEMENT_TYPES,
    FILLS,
    INTERLEAVES,
    MOST_DIMENSIONS,
    PROMOTIONS,
    SWIZZLES,
    TensorFields,
)

_SPANS = {  # bytes of a box's row, at most
    "32B": 32,
    "64B": 64,
    "96B": 96,
    "128B": 128,
    "128B_ATOM_32B": 128,
    "128B_ATOM_32B_FLIP_8B": 128,
    "128B_ATOM_64B": 128,
}
_PADDED_SWIZZLES = {
    "b4x16_p64": ("none", "128B", "128B_ATOM_32B"),
    "b6x16_p32": ("none", "128B", "128B_ATOM_32B", "128B_ATOM_64B"),
}
_WIDE_SWIZZLES = ("64B", "128B", "128B_ATOM_32B")
_CORNERS = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}  # by rank
_PADDED_ELEMENTS = 128  # of a row, in and out of the box


def check(map_: TensorFields) -> None:
    """Raise OperandError for the first limit that a map breaks."""
    for rule in RULES:
        rule(map_)


def _names(map_: TensorFields) -> None:
    """Words are known words."""
    for what, given, known in (
        ("element", map_.element, ELEMENT_TYPES),
        ("interleave", map_.interleave, INTERLEAVES),
        ("swizzle", map_.swizzle, SWIZZLES),
        ("fill", map_.fill, FILLS),
        ("l2_promotion", map_.l2_promotion, PROMOTIONS),
    ):
        if given not in known:
            raise OperandError(f"{what} {given!r}: expected {', '.join(map(repr, known))}")


def _rank(map_: TensorFields) -> None:
    least = 3 if map_.im2col or map_.interleave != "none" else 1
    if not least <= map_.rank <= MOST_DIMENSIONS:
        why = " of im2col" if map_.im2col else " with interleave" if least == 3 else ""
        raise OperandError(f"a tensor of {map_.rank} dimensions: a map{why} has {least} to {MOST_DIMENSIONS}")


def _lengths(map_: TensorFields) -> None:
    """One value a dimension."""
    wanted = {"strides": map_.rank - 1, "element_strides": map_.rank}
    wanted |= {} if map_.im2col else {"box": map_.rank}
    for what, count in wanted.items():
        given = getattr(map_, what)
        if len(given) != count:
            dimensions = f"a tensor of {map_.rank} dimension{'s'[: map_.rank != 1]}"
            raise OperandError(f"{what} has {len(given)} values, but {dimensions} has {count}")
    if map_.im2col:
        for what, given in (("lower", map_.im2col.lower), ("upper", map_.im2col.upper)):
            if len(given) != map_.rank - 2:
                raise OperandError(
                    f"the {what} corner has {len(given)} values, "
                    f"but a tensor of {map_.rank} dimensions has {map_.rank - 2} of pixels"
                )


def alignment(map_: TensorFields) -> int:
    """Of the global address and of strides, in bytes."""
    return 32 if map_.interleave == "32B" or map_.type.padded else 16


def _why(map_: TensorFields) -> str:
    return (
        "" if alignment(map_) == 16 else f" with {'interleave 32B' if not map_.type.padded else map_.element}"
    )


def _address(map_: TensorFields) -> None:
    if map_.address % alignment(map_) or not 0 <= map_.address < 1 << 64:
        raise OperandError(
            f"global address {map_.address:#x}: expected a multiple of {alignment(map_)} bytes{_why(map_)}"
        )


def _sizes(map_: TensorFields) -> None:
    for dimension, size in enumerate(map_.sizes):
        if not 1 <= size <= 1 << 32:
            raise OperandError(f"{_dimension(map_, dimension)} has {size} elements: a map has 1 to 2**32")
    multiple = {"b4x16": 2, "b4x16_p64": 128, "b6x16_p32": 128}.get(map_.element, 1)
    if map_.sizes[0] % multiple:
        raise OperandError(
            f"the innermost dimension has {map_.sizes[0]} elements: "
            f"with {map_.element} it is a multiple of {multiple}"
        )


def _dimension(map_: TensorFields, dimension: int) -> str:
    """Return a dimension in words, whatever the order of counting."""
    return "the innermost dimension" if not dimension else f"dimension {dimension} from inside"


def _strides(map_: TensorFields) -> None:
    for dimension, stride in enumerate(map_.strides, 1):
        what = f"the stride of {stride} bytes of {_dimension(map_, dimension)}"
        if stride % alignment(map_):
            raise OperandError(f"{what}: expected a multiple of {alignment(map_)} bytes{_why(map_)}")
        if not 0 <= stride < 1 << 40:
            raise OperandError(f"{what}: expected less than 2**40")


def _element_strides(map_: TensorFields) -> None:
    for dimension, step in enumerate(map_.element_strides):
        if not 1 <= step <= 8:
            raise OperandError(f"the element stride {step} of {_dimension(map_, dimension)}: expected 1 to 8")


def _box(map_: TensorFields) -> None:
    """Check the box of tile mode."""
    for dimension, extent in enumerate(map_.box):
        if not 1 <= extent <= 256:
            raise OperandError(
                f"a box of {extent} elements along {_dimension(map_, dimension)}: it has 1 to 256"
            )


def _corners(map_: TensorFields) -> None:
    """Check the corners of an im2col box, and that it holds a pixel."""
    im2col = map_.im2col
    if im2col is None:
        return
    first, last = _CORNERS[3 if im2col.mode != "im2col" else map_.rank]
    for what, corner in (("lower", im2col.lower), ("upper", im2col.upper)):
        for offset in corner:
            if not first <= offset <= last:
                tensor = f"a tensor of {map_.rank} dimensions"
                raise OperandError(f"{offset} in the {what} corner: in {tensor} it is {first} to {last}")
    for size, low, high in zip(map_.sizes[1:-1], im2col.lower, im2col.upper, strict=True):
        if size + high <= low:
            raise OperandError(
                f"corners {low} and {high} leave no pixel of {size}: the last pixel is {size - 1 + high}"
            )


def _columns(map_: TensorFields) -> None:
    """Channels and pixels of an im2col box."""
    if map_.im2col is None:
        return
    for what, given, most in (
        ("channels per pixel", map_.im2col.channels, 256),
        ("pixels per column", map_.im2col.pixels, 1024),
    ):
        if not 1 <= given <= most:
            raise OperandError(f"{given} {what}: expected 1 to {most}")


def _row(map_: TensorFields) -> None:
    """Bytes of a row of the box."""
    what = "channels" if map_.im2col else "elements of the innermost dimension"
    row = f"{map_.inner} {what} of {map_.element}"
    if map_.type.padded and map_.inner != _PADDED_ELEMENTS:
        raise OperandError(f"a box with {row}: it has exactly {_PADDED_ELEMENTS} of them")
    if map_.interleave == "none" and map_.inner * map_.type.bits % 128:
        size = map_.inner * map_.type.bits / 8
        raise OperandError(f"a box with {row} has rows of {size:g} bytes: expected a multiple of 16 bytes")
    span = _SPANS.get(map_.swizzle)
    size = map_.inner * map_.type.shared_bits // 8
    if map_.interleave == "none" and span is not None and size > span:
        raise OperandError(
            f"a box with {row} has rows of {size} bytes: with swizzle {map_.swizzle} it has at most {span}"
        )


def _check_interleave(map_: TensorFields) -> None:
    if map_.interleave == "32B" and map_.swizzle != "32B":
        raise OperandError(f"interleave 32B with swizzle {map_.swizzle}: it goes with swizzle 32B only")
    if map_.interleave != "none" and map_.element == "b6x16_p32":
        raise OperandError(f"interleave {map_.interleave} with b6x16_p32: it goes without interleave only")
    if map_.interleave != "none" and map_.swizzle == "96B":
        raise OperandError(f"interleave {map_.interleave} with swizzle 96B: it goes without interleave only")
    if map_.interleave != "none" and map_.mode in ("im2col::w", "im2col::w::128"):
        raise OperandError(f"interleave {map_.interleave} with {map_.mode}: it goes without interleave only")


def _swizzles(map_: TensorFields) -> None:
    padded = _PADDED_SWIZZLES.get(map_.element)
    if padded is not None and map_.swizzle not in padded:
        raise OperandError(f"swizzle {map_.swizzle} with {map_.element}: it goes with {', '.join(padded)}")
    wide = map_.mode in ("im2col::w", "im2col::w::128")
    if wide and map_.swizzle not in _WIDE_SWIZZLES:
        raise OperandError(
            f"swizzle {map_.swizzle} with {map_.mode}: it goes with {', '.join(_WIDE_SWIZZLES)}"
        )


def _fill(map_: TensorFields) -> None:
    if map_.fill == "nan" and not map_.type.floating:
        raise OperandError(f'fill "nan" with {map_.element}: only elements in floating point have NaN')


RULES: tuple[Callable[[TensorFields], None], ...] = (
    *(_names, _rank, _lengths, _address, _sizes, _strides, _element_strides, _box, _corners, _columns),
    *(_row, _check_interleave, _swizzles, _fill),
)
