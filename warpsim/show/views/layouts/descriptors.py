"""A matrix descriptor explained, the bytes it addresses, and what is wrong with it: lines and data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, WarpsimError
from ....isa.descriptors.instruction_descriptor import InstructionDescriptor
from ....isa.descriptors.matrix_descriptor import Descriptor, Major
from ....isa.descriptors.tensor_descriptor import TensorDescriptor
from ....isa.descriptors.tile_addresses import load_tile, touched_bytes
from ....isa.descriptors.tile_shape import TileShape
from ....workbench.diagnosis.descriptors.described_tiles import diagnose

Document = dict[str, Any]  # "lines" is the text; everything else is JSON


def explained(word: int | None, fields: dict[str, Any], major: Major) -> Document:
    """Return the descriptor that is a word or has the fields (in bytes), field by field.

    A word that is not a descriptor is kept, so that ``compared`` can say what it should have been. Raises
    OperandError for fields that do not fit.
    """
    if word is None:
        descriptor = Descriptor(**{"start_address": 0, **fields})
        word = descriptor.encode()
    else:
        try:
            descriptor = Descriptor.decode(word)
        except WarpsimError as error:
            message = f"{word:#018x}: {error.message}"
            return {"word": word, "major": major, "error": error.message, "lines": [message], "differs": True}
    rows = [asdict(field) for field in descriptor.fields(major)]
    return {"word": word, "major": major, "fields": rows, "lines": list(descriptor.explain(major))}


def touched(document: Document, mn: int, k: int, bits: int) -> None:
    """Add the byte ranges that a tile of ``mn x k`` elements of so many bits takes."""
    descriptor, major = Descriptor.decode(document["word"]), document["major"]
    shape = TileShape(mn=mn, k=k, element_bits=bits, major=major)
    ranges = touched_bytes(descriptor, shape).tolist()
    document["touches"] = ranges
    total = sum(end - first for first, end in ranges)
    document["lines"] += [f"a tile of {mn} x {k} elements of {bits} bits reads {total} bytes:"]
    document["lines"] += [f"  {first:#07x}..{end - 1:#07x} ({end - first} bytes)" for first, end in ranges]


def compared(document: Document, shared: npt.NDArray[Any], tile: npt.NDArray[Any]) -> None:
    """Add whether the descriptor reads the tile ``(mn, k)`` from the memory, and what would.

    Raises OperandError for memory that is not bytes and tiles that are not of two axes.
    """
    if shared.dtype != np.uint8 or shared.ndim != 1:
        raise OperandError(f"shared memory is bytes (uint8) in one axis, not {shared.dtype} {shared.shape}")
    if tile.ndim != 2:
        raise OperandError(f"a tile has two axes (mn, k), not {tile.shape}")
    if _reads(document, shared, tile):
        document["differs"] = False
        document["lines"].append("the descriptor reads the expected tile")
        return
    suggestions = diagnose(shared, document["word"], tile, major=document["major"])
    document["differs"] = True
    document["suggestions"] = [
        {"sentence": suggestion.sentence, "word": suggestion.descriptor.encode(), "major": suggestion.major}
        for suggestion in suggestions
    ]
    document["lines"].append("the descriptor does not read the expected tile")
    document["lines"] += [f"  {item}" for item in suggestions] or ["  no change of its fields explains it"]


def _reads(document: Document, shared: npt.NDArray[Any], tile: npt.NDArray[Any]) -> bool:
    try:
        shape = TileShape.of(tile, document["major"])
        found = load_tile(shared, Descriptor.decode(document["word"]), shape)
    except WarpsimError:
        return False
    return bool((found == np.ascontiguousarray(tile).view(shape.code_dtype)).all())


def tensor_explained(word: int | None, fields: dict[str, Any], major: Major) -> Document:
    """Return the shared-memory descriptor of tcgen05 that is a word or has the fields (in bytes).

    Raises OperandError for a word that is none, and for fields that do not fit.
    """
    if word is None:
        descriptor = TensorDescriptor(**{"start_address": 0, **fields})
    else:
        descriptor = TensorDescriptor.decode(word)
    return {"word": descriptor.encode(), **asdict(descriptor), "lines": list(descriptor.explain(major))}


def instruction_explained(word: int | None, fields: dict[str, int], kind: str) -> Document:
    """Return the instruction descriptor of a kind of tcgen05.mma that is a word or has the fields.

    Raises OperandError for reserved bits, unknown fields and values that do not fit.
    """
    if word is not None:
        descriptor = InstructionDescriptor.decode(word, kind)
    else:
        known = InstructionDescriptor.__dataclass_fields__.keys() - {"kind"}
        if unknown := sorted(fields.keys() - known):
            raise OperandError(
                f"no field {unknown[0]}: an instruction descriptor has {', '.join(sorted(known))}"
            )
        descriptor = InstructionDescriptor(kind=kind, **{"m": 0, "n": 0, **fields})
    return {"word": descriptor.encode(), **asdict(descriptor), "lines": list(descriptor.explain())}
