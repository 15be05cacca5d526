"""Functions that are refused: what they need is not there, which each says by its name, once.

arrays, textures, surfaces     the machine has no tex, tld4, suld and sust
handles for other processes    each process has a device of its own
nvJitLink                      it links machine code, which is not executed here
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..calls import Call, row
from ..error_codes import CudaError
from ..libraries import table

_TEXTURES = (
    "arrays, textures and surfaces are not there, since tex, tld4, suld and sust are not executed: read "
    "linear memory with ld.global (__ldg) in place of them"
)
_TEXTURE_NAMES = re.compile(r"Array|Tex(Obj|Ref|ture)|Surf(Obj|Ref|ace)|cuMemcpy(Ato|[DH]toA)|GetChannelDesc")
_OTHERS = re.compile(r"Graphics|External|Linear")  # of other interfaces; and a limit of the chip
_MACHINE_CODE = "it links machine code, and kernels are executed here from PTX: link PTX by cuLinkCreate"
_LINKER_INTERNAL = 6  # NVJITLINK_ERROR_INTERNAL
_PROCESSES = (
    "memory and events are not shared between processes, since each has a device of its own: use threads of "
    "a process, or copy by way of the host"
)


def _texture_functions() -> Iterator[str]:
    """Yield the functions of arrays, textures and surfaces, without _ptsz and _ptds."""
    lines = [line for version in ("driver", "runtime_12", "runtime_13") for line in table(version)]
    for name in sorted({line.removesuffix("_ptsz").removesuffix("_ptds") for line in lines}):
        if _TEXTURE_NAMES.search(name) and not _OTHERS.search(name):
            yield name


@row(*table("jit_linker_12"), *table("jit_linker_13"))
def link_machine_code(call: Call) -> int:
    """Refuse what NVIDIA's libraries ask of nvJitLink, by a code of nvJitLinkResult."""
    call.process.tally.lacking(call.name, _MACHINE_CODE)
    return _LINKER_INTERNAL


@row(*_texture_functions())
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
