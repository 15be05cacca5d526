"""The CUDA driver API by ctypes: a device, modules assembled from PTX, memory, launches.

Needs libcuda, which comes with the GPU's driver, and nothing else: the driver assembles PTX itself. This
module stands alone, so that it can be carried to a computer where warpsim cannot be installed. Knows nothing
of instructions.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


class DriverError(Exception):
    """What a device or its driver refuses, in words."""


@dataclass(frozen=True)
class Device:
    """A chip: its name, compute capability, driver, and the shared memory that a block may have."""

    chip: str
    capability: tuple[int, int]
    driver: str
    shared_bytes: int

    @property
    def compute_capability(self) -> str:
        """As in "9.0"."""
        return f"{self.capability[0]}.{self.capability[1]}"


class Driver(Protocol):
    """What a device can be asked to do. Handles and addresses are integers; all methods raise DriverError."""

    device: Device

    def load(self, ptx: str) -> int:
        """Assemble a module."""

    def unload(self, module: int) -> None:
        """Forget a module."""

    def function(self, module: int, name: str) -> int:
        """Return an entry of a module."""

    def allocate(self, size: int) -> int:
        """Return the address of memory on the device."""

    def free(self, address: int) -> None:
        """Give memory back."""

    def write(self, address: int, content: bytes) -> None:
        """Copy bytes to the device."""

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""

    def launch(
        self, function: int, blocks: int, threads: int, shared_bytes: int, pointers: Sequence[int]
    ) -> None:
        """Run a kernel whose parameters are pointers, and wait until it has finished."""

    def close(self) -> None:
        """Give the device back."""


_SUCCESS = 0
_OLD_DRIVER = 222  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION
_STUB = 34  # CUDA_ERROR_STUB_LIBRARY
_LOG_BYTES = 1 << 14
_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6  # CUjit_option
_DYNAMIC_SHARED_BYTES = 8  # CUfunction_attribute
_SHARED_BYTES, _MAJOR, _MINOR = 97, 75, 76  # CUdevice_attribute
_STATIC_LIMIT = 48 * 1024  # dynamic shared memory beyond it must be asked for
_VERSION = re.compile(r"Kernel Module(?: for \w+)?\s+(\d+\.\d+(?:\.\d+)?)")


class CudaDriver:
    """The GPU of a number, through libcuda. Raises DriverError where there is none."""

    def __init__(self, number: int = 0) -> None:
        self._cuda = _library()
        self._check("cuInit", self._cuda.cuInit(0))
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if not 0 <= number < count.value:
            raise DriverError(f"no GPU {number}: the CUDA driver sees {count.value}, counted from 0")
        handle = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(handle), ctypes.c_int(number))
        self._handle = handle
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self._call("cuCtxSetCurrent", context)
        self.device = self._described()

    def _described(self) -> Device:
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, ctypes.c_int(len(name)), self._handle)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        major, minor = version.value // 1000, version.value % 1000 // 10
        return Device(
            chip=name.value.decode(errors="replace"),
            capability=(self._attribute(_MAJOR), self._attribute(_MINOR)),
            driver=", ".join(filter(None, (f"CUDA {major}.{minor}", _kernel_module()))),
            shared_bytes=self._attribute(_SHARED_BYTES),
        )

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), self._handle)
        return value.value

    # --- modules ---

    def load(self, ptx: str) -> int:
        """Assemble a module; a refusal carries the assembler's log."""
        log = ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        module = ctypes.c_void_p()
        status = self._cuda.cuModuleLoadDataEx(
            ctypes.byref(module), ptx.encode() + b"\0", ctypes.c_uint(2), options, values
        )
        if status != _SUCCESS:
            text = log.value.decode(errors="replace").strip()
            hint = "\nthe driver is older than this PTX: update it" if status == _OLD_DRIVER else ""
            raise DriverError(f"the driver refuses the PTX: {self._name(status)}\n{text}{hint}".rstrip())
        return int(module.value or 0)

    def unload(self, module: int) -> None:
        """Forget a module."""
        self._call("cuModuleUnload", ctypes.c_void_p(module))

    def function(self, module: int, name: str) -> int:
        """Return an entry of a module."""
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), ctypes.c_void_p(module), name.encode())
        return int(function.value or 0)

    # --- memory ---

    def allocate(self, size: int) -> int:
        """Return the address of memory on the device."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuMemFree_v2", ctypes.c_uint64(address))

    def write(self, address: int, content: bytes) -> None:
        """Copy bytes to the device."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), content, ctypes.c_size_t(len(content)))

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from the device."""
        content = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", content, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return content.raw

    # --- launching ---

    def launch(
        self, function: int, blocks: int, threads: int, shared_bytes: int, pointers: Sequence[int]
    ) -> None:
        """Run a kernel whose parameters are pointers, and wait until it has finished."""
        kernel = ctypes.c_void_p(function)
        if shared_bytes > _STATIC_LIMIT:
            size = ctypes.c_int(shared_bytes)
            self._call("cuFuncSetAttribute", kernel, ctypes.c_int(_DYNAMIC_SHARED_BYTES), size)
        values = [ctypes.c_uint64(pointer) for pointer in pointers]
        places = [ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
        parameters = (ctypes.c_void_p * len(places))(*places)
        sizes = [ctypes.c_uint(block) for block in (blocks, 1, 1, threads, 1, 1, shared_bytes)]
        self._call("cuLaunchKernel", kernel, *sizes, None, parameters, None)
        self._call("cuCtxSynchronize")

    def close(self) -> None:
        """Give the device back."""
        self._call("cuDevicePrimaryCtxRelease_v2", self._handle)

    # --- statuses ---

    def _call(self, name: str, *arguments: Any) -> None:
        self._check(name, getattr(self._cuda, name)(*arguments))

    def _check(self, name: str, status: int) -> None:
        if status != _SUCCESS:
            raise DriverError(f"{name}: {self._name(status)}")

    def _name(self, status: int) -> str:
        """Return the driver's own name of a status and what it says about it."""
        texts = []
        for ask in (self._cuda.cuGetErrorName, self._cuda.cuGetErrorString):
            text = ctypes.c_char_p()
            if ask(ctypes.c_int(status), ctypes.byref(text)) == _SUCCESS and text.value:
                texts.append(text.value.decode(errors="replace"))
        more = ": only the toolkit's stub of libcuda was found" if status == _STUB else ""
        return (" (".join(texts) + ")" * (len(texts) - 1) if texts else f"error {status}") + more


def _library() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise DriverError(f"no CUDA driver on this computer: {error}") from None


def _kernel_module() -> str:
    """Return the version of the kernel's driver, as in "580.65.06", where Linux tells."""
    try:
        match = _VERSION.search(Path("/proc/driver/nvidia/version").read_text(encoding="utf-8"))
    except OSError:
        return ""
    return match[1] if match else ""
