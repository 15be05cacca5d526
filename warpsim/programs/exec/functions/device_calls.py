"""The device: properties and attributes, from the record of the chip; limits, versions and its reset."""

from __future__ import annotations

import struct
from functools import cache

from ....isa.warps import WARP
from ....machine.grid import BLOCK_LIMITS, GRID_LIMITS
from ..calls import Call, Int, Pointer, Size, Unsigned, row
from ..clients.client import Process
from ..error_codes import CudaError
from ..libraries import table

DRIVER_VERSION = 13050
_RUNTIME_VERSIONS = {"runtime_12": 12090, "runtime_13": 13050}
_L2_BYTES, _BUS_BITS, _CONSTANT_BYTES, _PITCH = 50 << 20, 5120, 64 << 10, (1 << 31) - 1
_CLOCK_KHZ, _MEMORY_CLOCK_KHZ = 1_755_000, 2_619_000
_UUID = b"warpsim device 0"
_CLUSTERS_FROM = 90
_LIMITS = {0: 1024, 1: 1 << 20, 2: 8 << 20, 3: 2, 4: 2048, 5: 128, 6: 0}  # of cudaLimit


_ALIKE: dict[str, int | bytes | tuple[int, ...]] = {  # fields of cudaDeviceProp that all chips have alike
    "uuid": _UUID,
    "warpSize": WARP,
    "memPitch": _PITCH,
    "maxThreadsDim": BLOCK_LIMITS,
    "maxGridSize": GRID_LIMITS,
    "totalConstMem": _CONSTANT_BYTES,
    "textureAlignment": 512,
    "texturePitchAlignment": 32,
    "canMapHostMemory": 1,
    "concurrentKernels": 1,
    "asyncEngineCount": 3,
    "unifiedAddressing": 1,
    "memoryBusWidth": _BUS_BITS,
    "l2CacheSize": _L2_BYTES,
    "streamPrioritiesSupported": 1,
    "globalL1CacheSupported": 1,
    "localL1CacheSupported": 1,
    "managedMemory": 1,
    "concurrentManagedAccess": 1,
    "computePreemptionSupported": 1,
    "cooperativeLaunch": 1,
    "reservedSharedMemPerBlock": 1024,
    "hostRegisterSupported": 1,
    "memoryPoolsSupported": 1,
    "clockRate": _CLOCK_KHZ,
    "memoryClockRate": _MEMORY_CLOCK_KHZ,
    "deviceOverlap": 1,
}


def properties(process: Process) -> dict[str, int | bytes | tuple[int, ...]]:
    """Return the fields of cudaDeviceProp that are not 0, by name."""
    chip = process.settings.architecture
    limits = chip.limits
    major, minor = divmod(chip.number, 10)
    return {
        **_ALIKE,
        "name": f"warpsim {chip.name}".encode(),
        "totalGlobalMem": process.memory.capacity,
        "multiProcessorCount": process.settings.multiprocessors,
        "sharedMemPerBlock": limits.static_shared_kib * 1024,
        "regsPerBlock": limits.registers,
        "maxThreadsPerBlock": limits.threads,
        "major": major,
        "minor": minor,
        "maxThreadsPerMultiProcessor": limits.multiprocessor_threads,
        "sharedMemPerMultiprocessor": limits.multiprocessor_shared_kib * 1024,
        "regsPerMultiprocessor": limits.registers,
        "sharedMemPerBlockOptin": limits.shared_bytes,
        "maxBlocksPerMultiProcessor": limits.multiprocessor_ctas,
        "clusterLaunch": int(chip.number >= _CLUSTERS_FROM),
    }


_ATTRIBUTES = {  # number of CUdevice_attribute -> field of cudaDeviceProp, and which of several
    1: ("maxThreadsPerBlock", 0),
    **{2 + axis: ("maxThreadsDim", axis) for axis in range(3)},
    **{5 + axis: ("maxGridSize", axis) for axis in range(3)},
    8: ("sharedMemPerBlock", 0),
    9: ("totalConstMem", 0),
    10: ("warpSize", 0),
    11: ("memPitch", 0),
    12: ("regsPerBlock", 0),
    13: ("clockRate", 0),
    14: ("textureAlignment", 0),
    15: ("deviceOverlap", 0),
    16: ("multiProcessorCount", 0),
    19: ("canMapHostMemory", 0),
    31: ("concurrentKernels", 0),
    36: ("memoryClockRate", 0),
    37: ("memoryBusWidth", 0),
    38: ("l2CacheSize", 0),
    39: ("maxThreadsPerMultiProcessor", 0),
    40: ("asyncEngineCount", 0),
    41: ("unifiedAddressing", 0),
    51: ("texturePitchAlignment", 0),
    75: ("major", 0),
    76: ("minor", 0),
    78: ("streamPrioritiesSupported", 0),
    79: ("globalL1CacheSupported", 0),
    80: ("localL1CacheSupported", 0),
    81: ("sharedMemPerMultiprocessor", 0),
    82: ("regsPerMultiprocessor", 0),
    83: ("managedMemory", 0),
    89: ("concurrentManagedAccess", 0),
    90: ("computePreemptionSupported", 0),
    95: ("cooperativeLaunch", 0),
    97: ("sharedMemPerBlockOptin", 0),
    99: ("hostRegisterSupported", 0),
    106: ("maxBlocksPerMultiProcessor", 0),
    111: ("reservedSharedMemPerBlock", 0),
    115: ("memoryPoolsSupported", 0),
    120: ("clusterLaunch", 0),
}
_TENSOR_MAPS = 127


@cache
def _known_attributes() -> frozenset[int]:
    return frozenset(int(row.split()[1]) for row in table("device_attributes"))


def attribute(process: Process, number: int) -> int:
    """Return an attribute of the device; 0 for those that it lacks. Raises CudaError for unknown numbers."""
    if number == _TENSOR_MAPS:
        return int(process.settings.architecture.number >= _CLUSTERS_FROM)
    if number in _ATTRIBUTES:
        field, place = _ATTRIBUTES[number]
        value = properties(process)[field]
        return value[place] if isinstance(value, tuple) else int(value)
    if number not in _known_attributes():
        raise CudaError("InvalidValue", f"{number} is not an attribute of devices")
    return 0


@cache
def _layout(version: str) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return the bytes of cudaDeviceProp, and place and bytes of each field."""
    rows = [row.split() for row in table(f"properties_{version}")]
    return int(rows[0][2]), {name: (int(place), int(size)) for name, place, size in rows[1:]}


def property_bytes(process: Process, version: str) -> bytes:
    """Return cudaDeviceProp as a version of the runtime has it."""
    total, fields = _layout(version)
    content = bytearray(total)
    for name, value in properties(process).items():
        if name not in fields:
            continue
        place, size = fields[name]
        if isinstance(value, tuple):
            raw = struct.pack(f"<{len(value)}i", *value)
        else:
            raw = value if isinstance(value, bytes) else value.to_bytes(size, "little")
        content[place : place + len(raw)] = raw
    return bytes(content)


def check_device(device: int) -> None:
    """Raise CudaError for another device than 0."""
    if device:
        raise CudaError("InvalidDevice", f"device {device}: the only device is 0")


def version_of_runtime(call: Call) -> str:
    """Return "12" or "13" of the runtime that a call came through."""
    from ..libraries import function_named

    return function_named(call.message.number)[0].removeprefix("runtime_")


# --- the runtime ---------------------------------------------------------------------------------


@row("cudaGetDeviceCount", "cuDeviceGetCount")
def get_device_count(call: Call, result: Pointer) -> None:
    """There is one device."""
    call.put(result, "i", 1)


@row("cudaGetDevice")
def get_device(call: Call, result: Pointer) -> None:
    """Give the device of the thread."""
    call.put(result, "i", 0)


@row("cudaSetDevice", "cudaInitDevice")
def set_device(call: Call, device: Int) -> None:
    """Use a device."""
    check_device(device)


@row("cudaSetDeviceFlags", "cudaSetValidDevices")
def set_device_flags(call: Call, flags: Unsigned) -> None:
    """Nothing depends on them."""


@row("cudaGetDeviceFlags")
def get_device_flags(call: Call, result: Pointer) -> None:
    """Give the flags of the device: host memory can be mapped."""
    call.put(result, "I", 8)


@row("cudaChooseDevice")
def choose_device(call: Call, result: Pointer, wanted: Pointer) -> None:
    """There is one device."""
    call.put(result, "i", 0)


@row("cudaGetDeviceProperties", "cudaGetDeviceProperties_v2")
def get_device_properties(call: Call, result: Pointer, device: Int) -> None:
    """Give cudaDeviceProp."""
    check_device(device)
    call.write(result, property_bytes(call.process, version_of_runtime(call)))


@row("cudaDeviceGetAttribute", "cuDeviceGetAttribute")
def get_attribute(call: Call, result: Pointer, number: Int, device: Int) -> None:
    """Give an attribute of the device."""
    check_device(device)
    call.put(result, "i", attribute(call.process, number))


@row("cudaRuntimeGetVersion")
def runtime_version(call: Call, result: Pointer) -> None:
    """Give the version of the runtime."""
    call.put(result, "i", _RUNTIME_VERSIONS[f"runtime_{version_of_runtime(call)}"])


@row("cudaDriverGetVersion", "cuDriverGetVersion")
def driver_version(call: Call, result: Pointer) -> None:
    """Give the version of the driver."""
    call.put(result, "i", DRIVER_VERSION)


@row("cudaDeviceSynchronize", "cuCtxSynchronize", "cudaThreadSynchronize")
def device_synchronize(call: Call) -> None:
    """Wait for all streams."""
    if call.process.captures:
        raise CudaError("StreamCaptureUnsupported", f"{call.name} while a stream is captured")
    call.process.wait_for_all(call)
    call.connection.synchronise()


@row("cudaDeviceReset", "cudaThreadExit")
def device_reset(call: Call) -> None:
    """Forget all that the process has on the device."""
    call.process.do_until(call)
    call.connection.synchronise()
    call.process.reset(call.connection.channel)
    call.connection.last_error = 0


@row("cudaDeviceGetLimit", "cuCtxGetLimit")
def get_limit(call: Call, result: Pointer, limit: Int) -> None:
    """Give a limit of the device."""
    if limit not in _LIMITS:
        raise CudaError("UnsupportedLimit", f"limit {limit}")
    heap = call.process.device.heap.limit
    call.put(result, "Q", heap if limit == 2 else call.process.limits.get(limit, _LIMITS[limit]))


@row("cudaDeviceSetLimit", "cuCtxSetLimit")
def set_limit(call: Call, limit: Int, value: Size) -> None:
    """Set a limit; that of the heap has an effect."""
    if limit not in _LIMITS:
        raise CudaError("UnsupportedLimit", f"limit {limit}")
    if limit == 2:
        call.process.device.heap.limit = value
    call.process.limits[limit] = value


@row("cudaDeviceGetCacheConfig", "cuCtxGetCacheConfig", "cudaDeviceGetSharedMemConfig")
def get_cache_config(call: Call, result: Pointer) -> None:
    """Nothing depends on it."""
    call.put(result, "i", 0)


@row("cudaDeviceSetCacheConfig", "cuCtxSetCacheConfig", "cudaDeviceSetSharedMemConfig")
def set_cache_config(call: Call, config: Int) -> None:
    """Nothing depends on it."""


@row("cudaDeviceGetStreamPriorityRange", "cuCtxGetStreamPriorityRange")
def priority_range(call: Call, least: Pointer, greatest: Pointer) -> None:
    """Give the priorities of streams."""
    call.put_some(least, "i", 0)
    call.put_some(greatest, "i", -5)


@row("cudaDeviceCanAccessPeer", "cuDeviceCanAccessPeer")
def can_access_peer(call: Call, result: Pointer, device: Int, peer: Int) -> None:
    """There is no other device."""
    check_device(device)
    check_device(peer)
    call.put(result, "i", 0)


@row("cudaDeviceGetPCIBusId", "cuDeviceGetPCIBusId")
def pci_bus_id(call: Call, result: Pointer, size: Int, device: Int) -> None:
    """Give a bus of no machine."""
    check_device(device)
    call.write(result, b"0000:00:00.0\0"[: max(size, 0)])


@row("cudaDeviceGetByPCIBusId", "cuDeviceGetByPCIBusId")
def by_pci_bus_id(call: Call, result: Pointer, name: Pointer) -> None:
    """There is one device."""
    call.put(result, "i", 0)


@row("cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop")
def profiler(call: Call) -> None:
    """There is no profiler."""
