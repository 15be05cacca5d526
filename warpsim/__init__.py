"""Bit-exact simulation of NVIDIA tensor-core instructions on warp registers.

Names are imported when first used, so that ``import warpsim`` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import (
        IllegalInstruction,
        NotModelled,
        OperandError,
        PtxError,
        TraceError,
        UndefinedBehavior,
        WarpsimError,
    )
    from .instruction import Instruction
    from .interface import (
        compress,
        decode,
        decompress,
        evidence,
        execute,
        fragment,
        instructions,
        matmul,
        metadata_map,
        pack,
        pack_metadata,
        prune,
        unpack,
        unpack_metadata,
    )
    from .machine import Warp
    from .matrix_products import gemm, gemm_sparse
    from .warpgroup import Warpgroup

__version__ = "0.1.0"

__all__ = [
    "IllegalInstruction",
    "Instruction",
    "NotModelled",
    "OperandError",
    "PtxError",
    "TraceError",
    "UndefinedBehavior",
    "Warp",
    "Warpgroup",
    "WarpsimError",
    "compress",
    "decode",
    "decompress",
    "evidence",
    "execute",
    "fragment",
    "gemm",
    "gemm_sparse",
    "instructions",
    "matmul",
    "metadata_map",
    "pack",
    "pack_metadata",
    "prune",
    "unpack",
    "unpack_metadata",
]

_HOMES = {
    "Instruction": "instruction",
    "Warp": "machine",
    "gemm": "matrix_products",
    "gemm_sparse": "matrix_products",
    "Warpgroup": "warpgroup",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'warpsim' has no attribute {name!r}")
    errors = import_module(".errors", __name__)
    home = errors if hasattr(errors, name) else import_module(f".{_HOMES.get(name, 'interface')}", __name__)
    value = getattr(home, name)
    globals()[name] = value
    return value
