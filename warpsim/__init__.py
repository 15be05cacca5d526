"""Bit-exact simulation of NVIDIA tensor-core instructions on warp registers.

Names are imported when first used, so that ``import warpsim`` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .diagnosis import diagnose
    from .errors import (
        ClusterError,
        IllegalInstruction,
        NotModelled,
        OperandError,
        PtxError,
        TraceError,
        UndefinedBehavior,
        WarpsimError,
    )
    from .generation.generate import corner_vectors, coverage, generate_vectors
    from .generation.separation import separate
    from .inspection import (
        compare_registers,
        compare_targets,
        convert_metadata,
        detect_metadata,
        draw_layout,
        explain,
        find_element,
        find_lane,
        find_sources,
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
    from .linting import lint
    from .machine import Warp
    from .matrix_products import gemm, gemm_sparse
    from .outcomes import Outcome, verify
    from .register_traces import RegisterTrace, read_register_trace
    from .report import Report, view
    from .vectors import VectorSet, make_vectors, read_vectors, write_vectors
    from .warming import warmup
    from .warpgroup import Warpgroup

__version__ = "0.1.0"

__all__ = [
    "ClusterError",
    "IllegalInstruction",
    "Instruction",
    "NotModelled",
    "OperandError",
    "Outcome",
    "PtxError",
    "RegisterTrace",
    "Report",
    "TraceError",
    "UndefinedBehavior",
    "VectorSet",
    "Warp",
    "Warpgroup",
    "WarpsimError",
    "compare_registers",
    "compare_targets",
    "compress",
    "convert_metadata",
    "corner_vectors",
    "coverage",
    "decode",
    "decompress",
    "detect_metadata",
    "diagnose",
    "draw_layout",
    "evidence",
    "execute",
    "explain",
    "find_element",
    "find_lane",
    "find_sources",
    "fragment",
    "gemm",
    "gemm_sparse",
    "generate_vectors",
    "instructions",
    "lint",
    "make_vectors",
    "matmul",
    "metadata_map",
    "pack",
    "pack_metadata",
    "prune",
    "read_register_trace",
    "read_vectors",
    "separate",
    "unpack",
    "unpack_metadata",
    "verify",
    "view",
    "warmup",
    "write_vectors",
]

_HOMES = {
    "Instruction": "instruction",
    "Report": "report",
    "Warp": "machine",
    "gemm": "matrix_products",
    "gemm_sparse": "matrix_products",
    "Warpgroup": "warpgroup",
    "view": "report",
    "warmup": "warming",
    "compare_registers": "inspection",
    "compare_targets": "inspection",
    "convert_metadata": "inspection",
    "detect_metadata": "inspection",
    "draw_layout": "inspection",
    "explain": "inspection",
    "find_element": "inspection",
    "find_lane": "inspection",
    "find_sources": "inspection",
    "corner_vectors": "generation.generate",
    "coverage": "generation.generate",
    "diagnose": "diagnosis",
    "generate_vectors": "generation.generate",
    "separate": "generation.separation",
    "lint": "linting",
    "Outcome": "outcomes",
    "verify": "outcomes",
    "RegisterTrace": "register_traces",
    "read_register_trace": "register_traces",
    "VectorSet": "vectors",
    "make_vectors": "vectors",
    "read_vectors": "vectors",
    "write_vectors": "vectors",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'warpsim' has no attribute {name!r}")
    from .environment import default_environment

    errors = import_module(".errors", __name__)
    name_of_home = "errors" if hasattr(errors, name) else _HOMES.get(name, "interface")
    with default_environment():  # for the numbers that modules hold
        home = import_module(f".{name_of_home}", __name__)
    value = getattr(home, name)
    globals()[name] = value
    return value
