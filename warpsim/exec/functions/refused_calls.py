"""Functions that are refused: what they need is not there, which each says by its name, once.

arrays, textures, surfaces     the machine has no tex, tld4, suld and sust
handles for other processes    each process has a device of its own
"""

from __future__ import annotations

from ..calls import Call, row
from ..error_codes import CudaError

_TEXTURES = (
    "arrays, textures and surfaces are not there, since tex, tld4, suld and sust are not executed: read "
    "linear memory with ld.global (__ldg) in place of them"
)
_PROCESSES = (
    "memory and events are not shared between processes, since each has a device of its own: use threads of "
    "a process, or copy by way of the host"
)


@row(
    *("cudaMallocArray", "cudaMalloc3DArray", "cudaMallocMipmappedArray"),
    *("cudaCreateTextureObject", "cudaCreateSurfaceObject"),
    *("cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate"),
    *("cuTexObjectCreate", "cuSurfObjectCreate", "cuTexRefCreate", "cuModuleGetTexRef", "cuModuleGetSurfRef"),
)
def textures(call: Call) -> None:
    """Refuse arrays, textures and surfaces."""
    _refuse(call, _TEXTURES)


@row(
    *("cudaIpcGetMemHandle", "cudaIpcOpenMemHandle", "cudaIpcGetEventHandle", "cudaIpcOpenEventHandle"),
    *("cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2", "cuIpcGetEventHandle", "cuIpcOpenEventHandle"),
    *("cudaMemPoolExportToShareableHandle", "cuMemPoolExportToShareableHandle"),
)
def handles_for_processes(call: Call) -> None:
    """Refuse handles of memory and events that other processes open."""
    _refuse(call, _PROCESSES)


def _refuse(call: Call, why: str) -> None:
    call.process.tally.lacking(call.name, why)
    raise CudaError("NotSupported")
