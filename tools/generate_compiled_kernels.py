"""Compile the Python kernels in traces/kernels/triton and /numba to PTX, where their compilers are.

    python tools/generate_compiled_kernels.py

Each text begins with a comment that says with what, for which target, threads and bytes of shared memory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numba
import numpy as np

import warpsim
from tests.helpers.compiled_cases import CASES, CompiledCase


def compiled(case: CompiledCase) -> str:
    """Return the PTX text of a case, with its heading."""
    if case.compiler == "triton":
        import triton

        found = warpsim.compile_triton(
            case.function(), case.arguments, case.constants, target=case.target, **case.options
        )
        told = f"Triton {triton.__version__}, {case.target}, {found.block} threads, {found.shared_bytes}"
        return f"// {told} bytes of shared memory\n{found.ptx}"
    text = warpsim.compile_numba(case.function(), case.arguments, target=case.target)
    threads = int(np.prod(case.block))
    return f"// Numba {numba.__version__}, {case.target}, {threads} threads, 0 bytes of shared memory\n{text}"


def main() -> None:
    """Write those that can be compiled here."""
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # names of files
    for name, make in CASES.items():
        case = make()
        try:
            text = compiled(case)
        except (ImportError, warpsim.OperandError) as error:
            print(f"{name}: left as it is ({error})")
            continue
        case.source.with_suffix(".ptx").write_text(
            "\n".join(map(str.rstrip, text.strip().splitlines())) + "\n"
        )
        print(name)


if __name__ == "__main__":
    main()
