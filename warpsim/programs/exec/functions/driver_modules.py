"""Modules and libraries that a program loads itself."""

from __future__ import annotations

import time

from ....base.errors import OperandError
from ....machine.host.device import symbol_of
from ..calls import Call, Handle, Pointer, Unsigned, row
from ..clients.client_modules import Image, Kernel, Library
from ..error_codes import CudaError
from ..jit_options import JitOptions
from .links import KEPT
from .registration import image_bytes

_LONGEST_KEPT = len(KEPT) + 16


def _load_image(call: Call, result: int, content: bytes, name: str, options: JitOptions) -> None:
    """Load an image at once, so that what is wrong is said now."""
    image = call.process.modules.image(lambda: content, name)
    _, kept, number = content[-_LONGEST_KEPT:].rstrip(b"\0\n").rpartition(KEPT.encode())
    image.most_registers = options.most_registers or (int(number) if kept and number.isdigit() else None)
    start = time.perf_counter()
    try:
        image.loaded  # noqa: B018 (it raises what is wrong)
    except CudaError as error:
        options.ended(time.perf_counter() - start, error.why or error.name)
        raise
    options.ended(time.perf_counter() - start)
    call.put(result, "Q", call.process.handle(Library(image)))


def _library(call: Call, handle: int) -> Image:
    found = call.process.held(handle, Library, "module")
    assert isinstance(found, Library)
    return found.image


@row("cuModuleLoadData", "cuModuleLoadFatBinary")
def module_load_data(call: Call, result: Pointer, image: Pointer) -> None:
    """Load a module from memory."""
    _load_image(call, result, image_bytes(call, image), call.process.modules.program, JitOptions(call))


@row("cuModuleLoadDataEx")
def module_load_data_ex(
    call: Call, result: Pointer, image: Pointer, count: Unsigned, options: Pointer, values: Pointer
) -> None:
    """Load a module from memory."""
    asked = JitOptions(call, count, options, values)
    _load_image(call, result, image_bytes(call, image), call.process.modules.program, asked)


@row("cuLibraryLoadData", "cudaLibraryLoadData")
def library_load_data(
    call: Call, result: Pointer, image: Pointer, options: Pointer, values: Pointer, count: Unsigned
) -> None:
    """Load a library from memory."""
    asked = JitOptions(call, count, options, values)
    _load_image(call, result, image_bytes(call, image), call.process.modules.program, asked)


@row("cuModuleLoad", "cuLibraryLoadFromFile", "cudaLibraryLoadFromFile")
def module_load(call: Call, result: Pointer, name: Pointer) -> None:
    """Load a module from a file, whose name counts from the client's folder."""
    file = call.text(name)
    _load_image(call, result, call.process.file_content(file), file, JitOptions(call))


@row("cuModuleUnload", "cuLibraryUnload", "cudaLibraryUnload")
def module_unload(call: Call, handle: Handle) -> None:
    """Forget a module."""
    call.process.drop(handle, Library, "module")


@row("cuModuleGetLoadingMode")
def loading_mode(call: Call, result: Pointer) -> None:
    """Modules are loaded when they are used."""
    call.put(result, "i", 2)


@row("cuModuleGetFunction", "cuLibraryGetKernel", "cudaLibraryGetKernel")
def get_function(call: Call, result: Pointer, module: Handle, name: Pointer) -> None:
    """Give a kernel of a module."""
    call.put(result, "Q", _kernel_handle(call, _library(call, module).kernel(call.text(name))))


def _kernel_handle(call: Call, kernel: Kernel) -> int:
    handles = call.process.handles
    known = next((handle for handle, value in handles.items() if value is kernel), None)
    return call.process.handle(kernel) if known is None else known


@row("cuKernelGetFunction")
def kernel_function(call: Call, result: Pointer, kernel: Handle) -> None:
    """Give a kernel for the current context: the same."""
    call.process.held(kernel, Kernel, "kernel")
    call.put(result, "Q", kernel)


@row("cuKernelGetLibrary")
def kernel_library(call: Call, result: Pointer, kernel: Handle) -> None:
    """Give the library of a kernel."""
    image = call.process.held(kernel, Kernel, "kernel").image
    known = next(
        handle
        for handle, value in call.process.handles.items()
        if isinstance(value, Library) and value.image is image
    )
    call.put(result, "Q", known)


@row("cuLibraryGetModule", "cuFuncGetModule")
def library_module(call: Call, result: Pointer, library: Handle) -> None:
    """Give the module of a library: the same."""
    call.put(result, "Q", library)


@row("cuModuleGetFunctionCount", "cuLibraryGetKernelCount", "cudaLibraryGetKernelCount")
def function_count(call: Call, result: Pointer, module: Handle) -> None:
    """Give the number of kernels."""
    call.put(result, "I", len(_library(call, module).loaded.entries))


@row("cuLibraryEnumerateKernels", "cuModuleEnumerateFunctions", "cudaLibraryEnumerateKernels")
def enumerate_kernels(call: Call, results: Pointer, number: Unsigned, library: Handle) -> None:
    """Give the kernels of a library."""
    image = _library(call, library)
    for place, name in enumerate(image.loaded.entries[:number]):
        call.put(results + 8 * place, "Q", _kernel_handle(call, image.kernel(name)))


@row("cuFuncIsLoaded")
def function_is_loaded(call: Call, result: Pointer, function: Handle) -> None:
    """Give that a kernel is loaded."""
    call.put(result, "i", 1)


@row("cuFuncLoad")
def function_load(call: Call, function: Handle) -> None:
    """Load a kernel."""
    call.process.held(function, Kernel, "kernel").launchable  # noqa: B018


@row("cuModuleGetGlobal_v2", "cuLibraryGetGlobal", "cudaLibraryGetGlobal")
def get_global(call: Call, address: Pointer, size: Pointer, module: Handle, name: Pointer) -> None:
    """Give address and bytes of a variable."""
    image = _library(call, module)
    try:
        found = symbol_of(call.process.device, image.module, call.text(name))
    except OperandError as error:
        raise CudaError("SymbolNotFound", f"{call.name}: {error}") from None
    call.put_some(address, "Q", found.address)
    call.put_some(size, "Q", found.allocation.size)
