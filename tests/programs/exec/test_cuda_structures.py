"""Structures of CUDA have the layout that a C compiler gives them."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from warpsim.programs.exec import cuda_structures
from warpsim.programs.exec.cuda_structures import layout, numbers, size_of, unpack

# The C type, and the C fields where those of the class begin.
WHOLE: dict[str, tuple[str, str]] = {
    "RuntimeLaunchConfig": ("cudaLaunchConfig_t", "gridDim blockDim dynamicSmemBytes stream attrs numAttrs"),
    "DriverLaunchConfig": ("CUlaunchConfig", "gridDimX blockDimX sharedMemBytes hStream attrs numAttrs"),
    "LaunchAttribute": ("cudaLaunchAttribute", "id val"),
    "PitchedPointer": ("cudaPitchedPtr", "ptr pitch xsize ysize"),
    "RuntimeCopy3D": ("cudaMemcpy3DParms", "srcArray dstArray extent kind"),
    "DriverCopy2D": ("CUDA_MEMCPY2D", "srcXInBytes dstXInBytes WidthInBytes Height"),
    "DriverCopy3D": ("CUDA_MEMCPY3D", "srcXInBytes dstXInBytes WidthInBytes"),
    "FillParameters": ("cudaMemsetParams", "dst pitch value elementSize width height"),
    "MemoryLocation": ("cudaMemLocation", "type id"),
    "AllocationProperties": (
        "CUmemAllocationProp",
        "type requestedHandleTypes location win32HandleMetaData allocFlags",
    ),
    "AccessDescription": ("CUmemAccessDesc", "location flags"),
    "KernelNodeParameters": (
        "cudaKernelNodeParams",
        "func gridDim blockDim sharedMemBytes kernelParams extra",
    ),
    "DriverKernelNodeParameters": ("CUDA_KERNEL_NODE_PARAMS_v2", "func kern ctx"),
    "HostNodeParameters": ("cudaHostNodeParams", "fn userData"),
    "AllocationNodeParameters": (
        "cudaMemAllocNodeParams",
        "poolProps accessDescs accessDescCount bytesize dptr",
    ),
    "InstantiateParameters": ("cudaGraphInstantiateParams", "flags uploadStream errNode_out result_out"),
    "UpdateResult": ("cudaGraphExecUpdateResultInfo", "result errorNode errorFromNode"),
}
TYPEDEFS = (
    *("cudaLaunchConfig_t", "cudaLaunchAttribute", "cudaGraphInstantiateParams"),
    "cudaGraphExecUpdateResultInfo",
)
BEGINNINGS: dict[str, tuple[str, str]] = {
    "FunctionAttributes": (
        "cudaFuncAttributes",
        "sharedSizeBytes constSizeBytes localSizeBytes maxThreadsPerBlock numRegs ptxVersion binaryVersion "
        "cacheModeCA maxDynamicSharedSizeBytes preferredShmemCarveout",
    ),
    "PoolProperties": ("cudaMemPoolProps", "allocType handleTypes location"),
    "PointerAttributes": ("cudaPointerAttributes", "type device devicePointer hostPointer"),
    "ConditionalNodeParameters": ("cudaConditionalNodeParams", "handle type size"),
}


def offsets(kind: Any) -> list[int]:
    """Return where each field of a structure begins: the places of 1, 2, 3 ... in its bytes."""
    form = layout(kind)
    count = len(struct.unpack(form, bytes(struct.calcsize(form))))
    marked = list(struct.unpack(form, bytes(range(1, struct.calcsize(form) + 1))))
    whole = unpack(kind, bytes(range(1, struct.calcsize(form) + 1)))
    assert list(numbers(whole)) == marked
    assert len(marked) == count
    return [_first_byte(value) - 1 for value in whole]


def _first_byte(value: Any) -> int:
    while isinstance(value, tuple):
        value = value[0]
    return value[0] if isinstance(value, bytes) else value & 0xFF


@pytest.fixture(scope="module")
def told(cuda_headers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The size and offsets of each structure, by a C compiler."""
    folder = tmp_path_factory.mktemp("structures")
    lines = []
    for name, (c_name, fields) in {**WHOLE, **BEGINNINGS}.items():
        keyword = "" if c_name.startswith("CU") or c_name in TYPEDEFS else "struct "
        asked = [f"offsetof({keyword}{c_name}, {field})" for field in fields.split()]
        values = ", ".join(f"(int)({each})" for each in (f"sizeof({keyword}{c_name})", *asked))
        lines.append(f'printf("{name}{" %d" * (len(asked) + 1)}\\n", {values});')
    source = folder / "structures.c"
    source.write_text(
        "#include <cuda.h>\n#include <cuda_runtime_api.h>\n#include <stddef.h>\n#include <stdio.h>\n"
        f"int main(void) {{ {chr(10).join(lines)} return 0; }}\n"
    )
    program = folder / "structures"
    subprocess.run(["cc", "-w", "-o", str(program), str(source), f"-I{cuda_headers}"], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return {name: [int(each) for each in rest] for name, *rest in map(str.split, printed.splitlines())}


@pytest.mark.parametrize("name", [*WHOLE, *BEGINNINGS])
def test_a_structure_is_laid_out_as_in_c(told: dict[str, list[int]], name: str) -> None:
    """Offsets of all fields are those of C, and the size of whole structures."""
    kind = getattr(cuda_structures, name)
    size, *wanted = told[name]
    found = offsets(kind)
    assert found == wanted
    if name in WHOLE:
        assert size_of(kind) == size
