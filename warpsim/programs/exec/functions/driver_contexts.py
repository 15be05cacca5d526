"""The driver: devices, contexts, and where its functions lie."""

from __future__ import annotations

from pathlib import Path

from ..calls import ROWS, Call, Handle, Int, Pointer, Size, Unsigned, row
from ..clients.client import Context
from ..error_codes import CudaError
from ..libraries import driver_place
from ..processes import file_at, program_of
from .device_calls import _UUID, check_device, properties

_FOUND, _NOT_FOUND = 0, 1  # of CUdriverProcAddressQueryResult
_VERSIONS = ("_v3", "_v2", "")
_PER_THREAD = 2  # of CUdriverProcAddress_flags
_DEVICE = 0
_KNOWN_TO_ASK = ("libnvrtc", "driver.")  # they go on without: NVRTC, and cuda.bindings


@row("cuInit")
def init(call: Call, flags: Unsigned) -> None:
    """Nothing is to be prepared."""
    if flags:
        raise CudaError("InvalidValue", f"{call.name}: flags {flags:#x}, where there are none")


@row("cuDeviceGet")
def device_get(call: Call, result: Pointer, ordinal: Int) -> None:
    """Give a device."""
    check_device(ordinal)
    call.put(result, "i", _DEVICE)


@row("cuDeviceGetName")
def device_name(call: Call, result: Pointer, size: Int, device: Int) -> None:
    """Give the name of the device."""
    check_device(device)
    name = properties(call.process)["name"]
    assert isinstance(name, bytes)
    if size < 1:
        raise CudaError("InvalidValue", f"{call.name}: room for {size} bytes")
    call.write(result, name[: max(size - 1, 0)] + b"\0")


@row("cuDeviceGetUuid", "cuDeviceGetUuid_v2")
def device_uuid(call: Call, result: Pointer, device: Int) -> None:
    """Give a name of 16 bytes."""
    check_device(device)
    call.write(result, _UUID)


@row("cuDeviceComputeCapability")
def compute_capability(call: Call, major: Pointer, minor: Pointer, device: Int) -> None:
    """Give the compute capability."""
    check_device(device)
    values = divmod(call.process.settings.architecture.number, 10)
    call.put(major, "i", values[0])
    call.put(minor, "i", values[1])


# --- contexts ------------------------------------------------------------------------------------


def _current(call: Call) -> int:
    return call.connection.current


@row("cuDevicePrimaryCtxRetain")
def primary_retain(call: Call, result: Pointer, device: Int) -> None:
    """Give the context that the runtime uses."""
    check_device(device)
    call.process.primary.uses += 1
    call.put(result, "Q", call.process.primary.handle)


@row("cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2")
def primary_release(call: Call, device: Int) -> None:
    """Release the context that the runtime uses."""
    check_device(device)
    call.process.primary.uses = max(call.process.primary.uses - 1, 0)


@row("cuDevicePrimaryCtxGetState")
def primary_state(call: Call, device: Int, flags: Pointer, active: Pointer) -> None:
    """Give whether the context of the runtime is used."""
    check_device(device)
    call.put_some(flags, "I", call.process.primary.flags)
    call.put_some(active, "i", 1)


@row("cuDevicePrimaryCtxSetFlags_v2")
def primary_flags(call: Call, device: Int, flags: Unsigned) -> None:
    """Set flags of the context of the runtime."""
    call.process.primary.flags = flags


@row("cuCtxCreate_v2")
def context_create(call: Call, result: Pointer, flags: Unsigned, device: Int) -> None:
    """Make a context, which is then current; its memory and handles go with it."""
    check_device(device)
    _create(call, result, flags)


@row("cuCtxCreate_v4", "cuCtxCreate_v3")
def context_create_with(
    call: Call, result: Pointer, parameters: Pointer, flags: Unsigned, device: Int
) -> None:
    """Make a context, which is then current."""
    check_device(device)
    _create(call, result, flags)


def _create(call: Call, result: int, flags: int) -> None:
    context = Context(handle=0, flags=flags)
    context.handle = call.process.handle(context)
    call.connection.contexts.append(context.handle)
    call.put(result, "Q", context.handle)


@row("cuCtxDestroy_v2")
def context_destroy(call: Call, context: Handle) -> None:
    """Forget a context."""
    call.process.drop(context, Context, "context")
    call.process.wait_for_all(call)
    call.process.destroy(call.connection.channel, context)
    contexts = call.connection.contexts
    contexts[:] = [handle for handle in contexts if handle != context]


@row("cuCtxGetCurrent")
def context_get_current(call: Call, result: Pointer) -> None:
    """Give the context that is current."""
    call.put(result, "Q", _current(call))


@row("cuCtxSetCurrent")
def context_set_current(call: Call, context: Handle) -> None:
    """Make a context current."""
    contexts = call.connection.contexts
    if contexts:
        contexts.pop()
    if context:
        call.process.held(context, Context, "context")
        contexts.append(context)


@row("cuCtxPushCurrent_v2")
def context_push(call: Call, context: Handle) -> None:
    """Make a context current, above others."""
    call.process.held(context, Context, "context")
    call.connection.contexts.append(context)


@row("cuCtxPopCurrent_v2")
def context_pop(call: Call, result: Pointer) -> None:
    """Make the context below current."""
    if not call.connection.contexts:
        raise CudaError("DeviceUninitialized", "no context is current")
    call.put_some(result, "Q", call.connection.contexts.pop())


@row("cuCtxGetDevice")
def context_device(call: Call, result: Pointer) -> None:
    """Give the device of the current context."""
    if not _current(call):
        raise CudaError("DeviceUninitialized", "no context is current")
    call.put(result, "i", _DEVICE)


@row("cuCtxGetDevice_v2")
def context_device_of(call: Call, result: Pointer, context: Handle) -> None:
    """Give the device of a context."""
    call.put(result, "i", _DEVICE)


@row("cuCtxGetFlags")
def context_flags(call: Call, result: Pointer) -> None:
    """Give the flags of the current context."""
    found = call.process.handles.get(_current(call))
    call.put(result, "I", found.flags if isinstance(found, Context) else 0)


@row("cuCtxGetApiVersion")
def context_version(call: Call, context: Handle, result: Pointer) -> None:
    """Give the version of contexts."""
    call.put(result, "I", 3020)


@row("cuCtxGetId")
def context_id(call: Call, context: Handle, result: Pointer) -> None:
    """Give a number of a context."""
    call.put(result, "Q", context or _current(call))


@row("cuCtxEnablePeerAccess", "cudaDeviceEnablePeerAccess")
def enable_peer(call: Call, peer: Handle, flags: Unsigned) -> None:
    """There is no other device."""
    raise CudaError("InvalidDevice", "there is no other device")


# --- functions by name -----------------------------------------------------------------------------


def procedure(call: Call, name: str, by_thread: bool) -> int:
    """Return the address of a function of the driver in the client, the newest form; 0 for none."""
    for version in _VERSIONS:
        form = f"{name}{version}"
        for suffix in ("_ptsz", "_ptds", "") if by_thread else ("",):
            place = driver_place(form + suffix)
            if place is not None and form in ROWS:
                return call.process.first + place
    place = next(
        (found for version in _VERSIONS if (found := driver_place(name + version)) is not None), None
    )
    return 0 if place is None else call.process.first + place


def _give(call: Call, name: int, result: int, flags: int, status: int) -> bool:
    address = procedure(call, call.text(name), bool(flags & _PER_THREAD) or call.by_thread)
    call.put(result, "Q", address)
    call.put_some(status, "i", _FOUND if address else _NOT_FOUND)
    return bool(address)


@row("cuGetProcAddress_v2")
def get_procedure(
    call: Call, name: Pointer, result: Pointer, version: Int, flags: Size, status: Pointer
) -> None:
    """Give the address of a function of the driver."""
    if not _give(call, name, result, flags, status):
        raise CudaError("SymbolNotFound")


@row("cuGetProcAddress")
def get_procedure_v1(call: Call, name: Pointer, result: Pointer, version: Int, flags: Size) -> None:
    """Give the address of a function of the driver."""
    if not _give(call, name, result, flags, 0):
        raise CudaError("SymbolNotFound")


@row("cudaGetDriverEntryPoint")
def driver_entry_point(call: Call, name: Pointer, result: Pointer, flags: Size, status: Pointer) -> None:
    """Give the address of a function of the driver."""
    _give(call, name, result, flags, status)


@row("cudaGetDriverEntryPointByVersion")
def driver_entry_point_by_version(
    call: Call, name: Pointer, result: Pointer, version: Unsigned, flags: Size, status: Pointer
) -> None:
    """Give the address of a function of the driver."""
    _give(call, name, result, flags, status)


@row("cuGetExportTable")
def get_export_table(call: Call, result: Pointer, identity: Pointer) -> None:
    """Refuse private tables; a static runtime asks for them, and is named."""
    call.put(result, "Q", 0)
    caller = file_at(call.process.number, call.message.caller)
    if not Path(caller).name.startswith(_KNOWN_TO_ASK):
        call.process.tally.say(_private(caller, program_of(call.process.number)))
    raise CudaError("NotSupported")


def _private(caller: str, program: str) -> str:
    """Return what a file that asks for a private table is, and what helps."""
    asks = f"{caller} asks the driver for a private table, as"
    name = Path(caller).name
    if name.startswith("libcudart.so"):
        soname = ".".join(name.split(".")[:3])
        return (
            f"{asks} NVIDIA's runtime does: the program names its folder before that of warpsim exec; "
            f"run it with warpsim exec env LD_PRELOAD={soname}"
        )
    link = "nvcc -cudart shared (CMake: CMAKE_CUDA_RUNTIME_LIBRARY=Shared)"
    static = f"{asks} a CUDA runtime that is linked statically does:"
    if caller == program:
        return f"{static} link with {link}, so that the program loads libcudart.so"
    return f"{static} if the library is yours, link it with {link}; a library of others cannot be used here"


@row("cuLogsRegisterCallback", "cuLogsUnregisterCallback")
def logs(call: Call, first: Pointer, second: Pointer, third: Pointer) -> None:
    """There are no logs."""
