"""Tensor maps that can exist: fields that keep every limit, and their 128 bytes.

PTX ISA 9.1, section 5.5 "Tensors".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .tensor_fields import TensorFields
from .tensor_map_bytes import check_bytes, check_set, decode_fields, encode
from .tensor_map_rules import check


@dataclass(frozen=True, kw_only=True)
class TensorMap(TensorFields):
    """A tensor map, innermost dimension first; ``bytes(map)`` are its 128 bytes.

    Raises OperandError for fields that no map can have, naming the limit.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self)

    def __bytes__(self) -> bytes:
        return encode(self)


@lru_cache(maxsize=1024)
def decode(content: bytes) -> TensorMap:
    """Return the map in 128 bytes; raise OperandError for other bytes, and for maps that cannot exist."""
    check_bytes(content)
    check_set(content)
    return TensorMap(**vars(decode_fields(content)))
