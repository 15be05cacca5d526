"""What the code that nvcc generates calls: fat binaries, kernels and variables of the program itself."""

from __future__ import annotations

from ....machine.host.device import symbol_of
from ..calls import Call, Dimensions3, Handle, Int, Pointer, Size, row
from ..clients.client import Process
from ..clients.client_modules import Image, Kernel
from ..cuda_structures import FatbinaryWrapper
from ..error_codes import CudaError
from ..fatbinary import HEADER_BYTES, MAGIC, WRAPPER_MAGIC, container_bytes


def image_at(call: Call, address: int, name: str) -> Image:
    """Return the image whose fat binary, PTX or cubin lies at an address of the client."""
    connection = call.connection

    def content() -> bytes:
        later = Call(connection, call.process, call.name, call.message)
        return image_bytes(later, address)

    return call.process.modules.image(content, name)


def image_bytes(call: Call, address: int) -> bytes:
    """Return the bytes of an image, whose size its header or its end says. Raises CudaError."""
    header = call.read(address, HEADER_BYTES)
    magic = int.from_bytes(header[:4], "little")
    if magic == WRAPPER_MAGIC:
        wrapper = call.structure(FatbinaryWrapper, address)
        return image_bytes(call, wrapper.data) + _objects(
            call, wrapper.objects if wrapper.version == _LINKED else 0
        )
    if header[:4] == b"\x7fELF":
        return header
    if magic == MAGIC:
        return call.read(address, container_bytes(header))
    return _until_nul(call, address)


def _objects(call: Call, place: int) -> bytes:
    """Return the containers of the objects that a program was linked of (-rdc=true)."""
    found = b""
    while place and (container := call.get(place, "Q")[0]):
        found += image_bytes(call, container)
        place += 8
    return found


def _until_nul(call: Call, address: int) -> bytes:
    parts = list[bytes]()
    while not parts or b"\0" not in parts[-1]:
        parts.append(
            call.read(
                address, 65536 - address % 4096 if _is_mapped(call, address) else _bytes_to_page_end(address)
            )
        )
        address += len(parts[-1])
    return b"".join(parts).partition(b"\0")[0]


def _is_mapped(call: Call, address: int) -> bool:
    try:
        call.read(address + 65536 - address % 4096 - 1, 1)
    except CudaError:
        return False
    return True


def _bytes_to_page_end(address: int) -> int:
    """Bytes to the end of the page."""
    return 4096 - address % 4096


_FIRST_BINARY = 0x1000
_LINKED = 2  # version of the wrapper of a program that was linked


@row("__cudaRegisterFatBinary")
def register_fat_binary(call: Call, wrapper: Pointer) -> int:
    """Return a handle of the fat binary of an object file."""
    binaries = call.process.modules.binaries
    handle = _FIRST_BINARY + 16 * len(binaries)
    binaries[handle] = wrapper
    return handle


register_fat_binary.returns_code = False  # type: ignore[attr-defined]


def image_of(call: Call, handle: int) -> Image:
    """Return the image that was registered with a handle. Raises CudaError."""
    modules = call.process.modules
    if handle not in modules.images:
        if handle not in modules.binaries:
            raise CudaError("InvalidResourceHandle", f"{call.name}: {handle:#x} is not a fat binary")
        modules.images[handle] = image_at(call, modules.binaries[handle], modules.program)
    return modules.images[handle]


@row("__cudaUnregisterFatBinary")
def unregister(call: Call, handle: Handle) -> None:
    """Do what streams have been given, since the program ends."""
    call.process.do_until(call)


@row("__cudaRegisterFatBinaryEnd")
def registration_ends(call: Call, handle: Handle) -> None:
    """Nothing is to do: images are loaded when they are used, and forgotten with the process."""


@row("__cudaRegisterFunction")
def register_function(call: Call, handle: Handle, function: Pointer, symbol: Pointer, name: Pointer) -> None:
    """Note a kernel by the address of its host function."""
    modules = call.process.modules
    modules.functions[function] = handle, name
    modules.kernels.pop(function, None)


@row("__cudaRegisterVar")
def register_variable(call: Call, handle: Handle, variable: Pointer, symbol: Pointer, name: Pointer) -> None:
    """Note a variable by its address in the host program."""
    modules = call.process.modules
    modules.variables[variable] = handle, name


@row("__cudaRegisterManagedVar")
def register_managed(call: Call, handle: Handle, variable: Pointer, symbol: Pointer, name: Pointer) -> None:
    """Note a managed variable, whose address the host program keeps in a variable of its own."""
    register_variable(call, handle, variable, symbol, name)
    call.process.modules.managed.add(variable)
    call.process.memory.managed.add(call.text(name))


@row("__cudaInitModule")
def init_module(call: Call, handle: Handle) -> int:
    """Give a program the addresses of its managed variables, whose pages it then reads and writes."""
    process = call.process
    for variable in process.modules.managed:
        owner, name = process.modules.variables[variable]
        if owner == handle:
            found = symbol_of(process.device, image_of(call, handle).module, call.text(name)).allocation
            if call.connection.channel.protect(found.address, max(found.size, 1), accessible=True):
                raise CudaError("MemoryAllocation", f"{found.name}: the client cannot map its page")
            call.put(variable, "Q", found.address)
    return 1


init_module.returns_code = False  # type: ignore[attr-defined]


def kernel_of(call: Call, function: int) -> Kernel:
    """Return a kernel by its host function, or by its own handle. Raises CudaError."""
    process: Process = call.process
    held = process.handles.get(function)
    if isinstance(held, Kernel):
        return held
    modules = process.modules
    if function not in modules.kernels:
        if function not in modules.functions:
            raise CudaError("InvalidDeviceFunction", f"{call.name}: no kernel is registered at {function:#x}")
        handle, name = modules.functions[function]
        modules.kernels[function] = image_of(call, handle).kernel(call.text(name))
    return modules.kernels[function]


@row("__cudaGetKernel", "cudaGetKernel")
def get_kernel(call: Call, result: Pointer, function: Pointer) -> None:
    """Give the handle of a kernel: the address of its host function."""
    if function not in call.process.modules.functions:
        raise CudaError("InvalidDeviceFunction", f"{call.name}: no kernel is registered at {function:#x}")
    call.put(result, "Q", function)


@row("__cudaPushCallConfiguration")
def push_configuration(
    call: Call, grid: Dimensions3, block: Dimensions3, shared: Size, stream: Handle
) -> None:
    """Keep what stands in <<<>>>."""
    call.connection.configurations.append((grid, block, shared, stream))


@row("__cudaPopCallConfiguration")
def pop_configuration(call: Call, grid: Pointer, block: Pointer, shared: Pointer, stream: Pointer) -> None:
    """Give back what stood in <<<>>>."""
    if not call.connection.configurations:
        raise CudaError("MissingConfiguration", "a launch without <<<>>>")
    sizes, threads, bytes_, handle = call.connection.configurations.pop()
    call.put(grid, "3I", *sizes)  # type: ignore[misc]
    call.put(block, "3I", *threads)  # type: ignore[misc]
    call.put(shared, "Q", bytes_)
    call.put(stream, "Q", handle)


@row("__cudaGetProcAddress")
def runtime_procedure(call: Call, name: Pointer, result: Pointer, version: Int) -> None:
    """Refuse: the runtime's own functions are found by the loader."""
    raise CudaError("NotSupported")


@row("warpsimComputedOnCpu")
def computed_on_cpu(call: Call, name: Pointer) -> None:
    """Count an operator of PyTorch that the CPU has computed: of our own library, which has no other
    function (client_torch.py).
    """
    call.process.tally.on_cpu[call.text(name)] += 1
