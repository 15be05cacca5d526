"""Launches of every kind, attributes of kernels, and occupancy from the limits of the chip."""

from __future__ import annotations

from typing import NamedTuple

from ....isa.architectures import ARCHITECTURES
from ....machine.run.wave import Entry
from ..calls import Call, Dimensions3, Handle, Int, Pointer, Size, Unsigned, row
from ..clients.client_launches import (
    COOPERATIVE,
    LaunchRequest,
    check_sizes,
    execute,
    packed_parameters,
    parameter_bytes,
)
from ..clients.client_modules import Kernel
from ..clients.pending_work import IN_ORDER
from ..cuda_structures import (
    ATTRIBUTE_BYTES,
    DriverLaunchConfig,
    FunctionAttributes,
    LaunchAttribute,
    RuntimeLaunchConfig,
    size_of,
)
from ..error_codes import CudaError
from ..graphs import GraphNode, NodeKind
from .registration import kernel_of

_TOGETHER = {COOPERATIVE: (1).to_bytes(ATTRIBUTE_BYTES, "little")}
_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 0  # of the extra parameters of cuLaunchKernel
_MAX_DYNAMIC, _NON_PORTABLE = 8, 14  # of cudaFuncAttribute and CUfunction_attribute
_CACHE_MODE = 7
_SETTABLE = range(8, 16)  # of these; the others are what the compiler has made
_EXTRA_WORDS = 5
_MOST_ATTRIBUTES = 256  # of a launch


def submit(call: Call, stream: int, request: LaunchRequest) -> None:
    """Give a launch to a stream. Raises CudaError for what cannot be launched."""
    work = launch_work(request)
    if call.process.settings.schedule != IN_ORDER:
        check_sizes(call.process, request)
    call.process.submit(call, call.stream(stream), work)


def launch_work(request: LaunchRequest) -> GraphNode:
    """Return the work of a launch. Raises CudaError for what cannot be launched."""
    request.check()
    return GraphNode(
        request.label,
        lambda later: execute(later.process, request),
        kind=NodeKind.KERNEL,
        fields=request,
    )


class RuntimeLaunch(NamedTuple):
    """The parameters of cudaLaunchKernel and cudaLaunchCooperativeKernel."""

    function: Pointer
    grid: Dimensions3
    block: Dimensions3
    arguments: Pointer
    shared: Size
    stream: Handle


class DriverLaunch(NamedTuple):
    """The parameters of cuLaunchKernel; cuLaunchCooperativeKernel lacks the last."""

    function: Handle
    grid_x: Unsigned
    grid_y: Unsigned
    grid_z: Unsigned
    block_x: Unsigned
    block_y: Unsigned
    block_z: Unsigned
    shared: Unsigned
    stream: Handle
    arguments: Pointer
    extra: Pointer


def _runtime_request(call: Call, asked: RuntimeLaunch, *, cooperative: bool) -> LaunchRequest:
    kernel = kernel_of(call, asked.function)
    return LaunchRequest(
        kernel=kernel,
        function=asked.function,
        grid=asked.grid,
        block=asked.block,
        parameters=parameter_bytes(kernel, call.read, asked.arguments),
        shared_bytes=asked.shared,
        attributes=_TOGETHER if cooperative else {},
    )


@row("cudaLaunchKernel", "__cudaLaunchKernel")
def launch_kernel(call: Call, asked: RuntimeLaunch) -> None:
    """Launch what <<<>>> launches."""
    submit(call, asked.stream, _runtime_request(call, asked, cooperative=False))


@row("cudaLaunchCooperativeKernel")
def launch_cooperative(call: Call, asked: RuntimeLaunch) -> None:
    """Launch a grid that may synchronise as a whole."""
    submit(call, asked.stream, _runtime_request(call, asked, cooperative=True))


@row("cudaLaunchKernelExC")
def launch_with_attributes(call: Call, config: Pointer, function: Pointer, arguments: Pointer) -> None:
    """Launch with a cudaLaunchConfig_t."""
    kernel = kernel_of(call, function)
    parameters = parameter_bytes(kernel, call.read, arguments)
    _launch_ex(call, kernel, function, call.structure(RuntimeLaunchConfig, config), parameters)


@row("cuLaunchKernelEx")
def driver_launch_ex(
    call: Call, config: Pointer, function: Handle, arguments: Pointer, extra: Pointer
) -> None:
    """Launch with a CUlaunchConfig."""
    kernel = kernel_of(call, function)
    parameters = _parameters(call, kernel, arguments, extra)
    _launch_ex(call, kernel, function, call.structure(DriverLaunchConfig, config), parameters)


def _launch_ex(
    call: Call,
    kernel: Kernel,
    function: int,
    config: RuntimeLaunchConfig | DriverLaunchConfig,
    parameters: list[bytes],
) -> None:
    if config.attribute_count > _MOST_ATTRIBUTES:
        raise CudaError("InvalidValue", f"{call.name}: {config.attribute_count} attributes")
    places = (config.attributes + index * size_of(LaunchAttribute) for index in range(config.attribute_count))
    attributes = dict(call.structure(LaunchAttribute, place) for place in places)
    request = LaunchRequest(
        kernel=kernel,
        function=function,
        grid=config.grid,
        block=config.block,
        parameters=parameters,
        shared_bytes=config.shared,
        attributes=attributes,
    )
    submit(call, config.stream, request)


def _driver_request(call: Call, asked: DriverLaunch, *, cooperative: bool) -> LaunchRequest:
    kernel = kernel_of(call, asked.function)
    return LaunchRequest(
        kernel=kernel,
        function=asked.function,
        grid=(asked.grid_x, asked.grid_y, asked.grid_z),
        block=(asked.block_x, asked.block_y, asked.block_z),
        parameters=_parameters(call, kernel, asked.arguments, 0 if cooperative else asked.extra),
        shared_bytes=asked.shared,
        attributes=_TOGETHER if cooperative else {},
    )


@row("cuLaunchKernel")
def driver_launch(call: Call, asked: DriverLaunch) -> None:
    """Launch a kernel of a module."""
    submit(call, asked.stream, _driver_request(call, asked, cooperative=False))


@row("cuLaunchCooperativeKernel")
def driver_launch_cooperative(call: Call, asked: DriverLaunch) -> None:
    """Launch a grid that may synchronise as a whole."""
    submit(call, asked.stream, _driver_request(call, asked, cooperative=True))


def _parameters(call: Call, kernel: Kernel, arguments: int, extra: int) -> list[bytes]:
    """Return parameters, by an address each, or packed in a block."""
    if arguments or not extra:
        return parameter_bytes(kernel, call.read, arguments)
    words = call.get(extra, f"{_EXTRA_WORDS}Q")
    pairs = dict(zip(words[::2], words[1::2], strict=False))
    if _BUFFER_POINTER not in pairs or _BUFFER_SIZE not in pairs:
        raise CudaError("InvalidValue", f"{call.name}: extra parameters without a block of bytes")
    (size,) = call.get(pairs[_BUFFER_SIZE], "Q")
    return packed_parameters(kernel, call.read(pairs[_BUFFER_POINTER], size))


# --- attributes ----------------------------------------------------------------------------------


def set_attribute(kernel: Kernel, attribute: int, value: int) -> None:
    """Set an attribute of a kernel. Raises CudaError; without words where no attribute has the number.

    Programs ask so whether a later driver's attribute is there, and do without it.
    """
    if attribute not in _SETTABLE:
        raise CudaError("InvalidValue")
    limits = ARCHITECTURES[kernel.image.chip].limits
    if attribute == _MAX_DYNAMIC:
        static = kernel.launchable.entry.static_shared_bytes
        if not 0 <= value <= limits.shared_bytes - static:
            most = limits.shared_bytes - static
            raise CudaError("InvalidValue", f"{kernel.signature}: {value} dynamic bytes, at most {most}")
        kernel.dynamic_bytes = value
    elif attribute == _NON_PORTABLE:
        kernel.any_cluster = bool(value)
    kernel.attributes[attribute] = value


def declared_shared_bytes(entry: Entry) -> int:
    """Return the bytes of shared memory that declarations take, less those that align the dynamic part."""
    ends = (each.offset + each.size for each in entry.shared if not each.dynamic)
    return min(entry.static_shared_bytes, max(ends, default=0))


def attribute_of(kernel: Kernel, attribute: int) -> int:
    """Return an attribute of a kernel, by its number in CUfunction_attribute."""
    limits = ARCHITECTURES[kernel.image.chip].limits
    entry = kernel.launchable.entry
    number = ARCHITECTURES[kernel.image.chip].number
    known = {
        0: entry.tuning.most_threads or limits.threads,
        1: declared_shared_bytes(entry),
        2: sum(each.size for each in kernel.image.module.variables if each.space == "const"),
        3: entry.local_bytes,
        4: min(
            entry.registers, limits.thread_registers, kernel.image.most_registers or limits.thread_registers
        ),
        5: kernel.image.virtual_chip,
        6: number,
        7: 0,
        _MAX_DYNAMIC: _dynamic(kernel),
        9: -1,
        _NON_PORTABLE: int(kernel.any_cluster),
    }
    return known.get(attribute, kernel.attributes.get(attribute, 0))


def _dynamic(kernel: Kernel) -> int:
    if kernel.dynamic_bytes is not None:
        return kernel.dynamic_bytes
    return max((48 << 10) - kernel.launchable.entry.static_shared_bytes, 0)


@row("cudaFuncSetAttribute", "cuFuncSetAttribute")
def func_set_attribute(call: Call, function: Pointer, attribute: Int, value: Int) -> None:
    """Set an attribute of a kernel."""
    set_attribute(kernel_of(call, function), attribute, value)


@row("cuKernelSetAttribute")
def kernel_set_attribute(call: Call, attribute: Int, value: Int, function: Handle, device: Int) -> None:
    """Set an attribute of a kernel of a library."""
    set_attribute(kernel_of(call, function), attribute, value)


@row("cuFuncGetAttribute")
def func_get_attribute(call: Call, result: Pointer, attribute: Int, function: Handle) -> None:
    """Give an attribute of a kernel."""
    call.put(result, "i", attribute_of(kernel_of(call, function), attribute))


@row("cuKernelGetAttribute")
def kernel_get_attribute(call: Call, result: Pointer, attribute: Int, function: Handle, device: Int) -> None:
    """Give an attribute of a kernel of a library."""
    call.put(result, "i", attribute_of(kernel_of(call, function), attribute))


@row("cudaFuncGetAttributes")
def func_get_attributes(call: Call, result: Pointer, function: Pointer) -> None:
    """Give cudaFuncAttributes."""
    kernel = kernel_of(call, function)
    numbers = (1, 2, 3, 0, 4, 5, 6, _CACHE_MODE, 8, 9)  # of cudaFuncAttribute, in the order of the structure
    values = (0 if number == _CACHE_MODE else attribute_of(kernel, number) for number in numbers)
    call.put_structure(result, FunctionAttributes(*values))


@row(
    "cudaFuncSetCacheConfig", "cuFuncSetCacheConfig", "cudaFuncSetSharedMemConfig", "cuFuncSetSharedMemConfig"
)
def func_set_cache(call: Call, function: Pointer, config: Int) -> None:
    """Nothing depends on it."""
    kernel_of(call, function)


@row("cuKernelSetCacheConfig")
def kernel_set_cache(call: Call, kernel: Handle, config: Int, device: Int) -> None:
    """Nothing depends on it."""
    kernel_of(call, kernel)


@row("cudaFuncGetName", "cuFuncGetName", "cuKernelGetName")
def func_get_name(call: Call, result: Pointer, function: Pointer) -> None:
    """Give the name of a kernel."""
    if not function and call.name.startswith("cu") and not call.name.startswith("cuda"):
        raise CudaError("InvalidValue", f"{call.name}: a null pointer for a kernel")
    call.put(result, "Q", call.kept(kernel_of(call, function).name))


@row("cudaGetFuncBySymbol")
def function_by_symbol(call: Call, result: Pointer, function: Pointer) -> None:
    """Give the handle of a kernel: the address of its host function."""
    kernel_of(call, function)
    call.put(result, "Q", function)


@row("cudaFuncGetParamInfo", "cuFuncGetParamInfo", "cuKernelGetParamInfo")
def parameter_info(call: Call, function: Pointer, index: Size, offset: Pointer, size: Pointer) -> None:
    """Give where a parameter of a kernel begins, and its bytes."""
    parameters = kernel_of(call, function).parameters
    if index >= len(parameters):
        raise CudaError("InvalidValue")  # how programs find the last parameter: no finding
    call.put(offset, "Q", parameters[index].offset)
    call.put_some(size, "Q", parameters[index].bytes)


@row("cudaFuncGetParamCount", "cuFuncGetParamCount", "cuKernelGetParamCount")
def parameter_count(call: Call, function: Pointer, result: Pointer) -> None:
    """Give how many parameters a kernel has."""
    call.put(result, "Q", len(kernel_of(call, function).parameters))


# --- occupancy -----------------------------------------------------------------------------------


@row(
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
)
def occupancy(call: Call, result: Pointer, function: Pointer, threads: Int, shared: Size) -> None:
    """Give the CTAs that a multiprocessor can have at a time."""
    if threads < 1:
        raise CudaError("InvalidValue", f"{call.name}: {threads} threads of a CTA")
    call.put(result, "i", ctas_of_multiprocessor(kernel_of(call, function), threads, shared))


class PotentialBlock(NamedTuple):
    """The parameters of cuOccupancyMaxPotentialBlockSize; a ``limit`` of 0 is none."""

    grid: Pointer
    block: Pointer
    function: Pointer
    callback: Pointer
    shared: Size
    limit: Int


@row("cuOccupancyMaxPotentialBlockSize", "cuOccupancyMaxPotentialBlockSizeWithFlags")
def potential_block(call: Call, asked: PotentialBlock) -> None:
    """Give the block that fills a multiprocessor best, and how many of them the chip has at a time."""
    kernel = kernel_of(call, asked.function)

    def filled(threads: int) -> int:
        bytes_ = call.connection.call_host(asked.callback, threads) if asked.callback else asked.shared
        return ctas_of_multiprocessor(kernel, threads, bytes_) * threads

    most = attribute_of(kernel, 0)
    best = max(range(min(most, asked.limit) if asked.limit > 0 else most, 0, -32), key=filled)
    call.put(asked.block, "i", best)
    call.put(asked.grid, "i", max(filled(best) // best, 1) * call.process.settings.multiprocessors)


@row("cudaOccupancyAvailableDynamicSMemPerBlock", "cuOccupancyAvailableDynamicSMemPerBlock")
def available_shared(call: Call, result: Pointer, function: Pointer, ctas: Int, threads: Int) -> None:
    """Give the dynamic shared memory that so many CTAs of a multiprocessor can have each."""
    kernel = kernel_of(call, function)
    if ctas < 1 or threads < 1:
        raise CudaError("InvalidValue", f"{call.name}: {ctas} CTAs of {threads} threads")
    limits = ARCHITECTURES[kernel.image.chip].limits
    share = limits.multiprocessor_shared_kib * 1024 // max(ctas, 1) - 1024
    share -= kernel.launchable.entry.static_shared_bytes
    call.put(result, "Q", max(min(share, attribute_of(kernel, _MAX_DYNAMIC)), 0))


@row("cudaOccupancyMaxPotentialClusterSize", "cuOccupancyMaxPotentialClusterSize")
def potential_cluster(call: Call, result: Pointer, function: Pointer, config: Pointer) -> None:
    """Give the largest cluster of a kernel."""
    kernel = kernel_of(call, function)
    limits = ARCHITECTURES[kernel.image.chip].limits
    call.put(result, "i", limits.cluster if kernel.any_cluster else limits.portable_cluster)


@row("cudaOccupancyMaxActiveClusters", "cuOccupancyMaxActiveClusters")
def active_clusters(call: Call, result: Pointer, function: Pointer, config: Pointer) -> None:
    """Give the clusters that the chip can have at a time, as many as multiprocessors allow."""
    kernel_of(call, function)
    call.put(result, "i", max(call.process.settings.multiprocessors // 2, 1))


def ctas_of_multiprocessor(kernel: Kernel, threads: int, dynamic_bytes: int) -> int:
    """Return the CTAs that a multiprocessor can have at a time; 0 where it cannot have any."""
    limits = ARCHITECTURES[kernel.image.chip].limits
    static = kernel.launchable.entry.static_shared_bytes
    return limits.ctas_of_multiprocessor(threads, static + dynamic_bytes)
