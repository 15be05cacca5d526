"""PyTorch's operators of CUDA tensors, computed by the CPU: what ``warpsim exec --torch-on-cpu`` adds.

PyTorch's own kernels have machine code alone, which is not executed here. Where an operator has a kernel for
the CPU, its kernel for CUDA tensors is replaced: it copies them to the host, computes there, and copies back
what it has made or changed. Views and new tensors stay PyTorch's own, and so do the kernels of Triton and
torch.compile, which are PTX. Each operator is named to the server, which counts it: its result is the CPU's,
not the chip's. Random numbers are those of the CPU's generator, and so differ from those of a chip.

This file is copied beside the libraries, and imports nothing of this package. Does not know sparse, nested or
quantised tensors, whose kernels have other dispatch keys, nor graphs that capture an operator.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterator
from typing import Any

_LIBRARY, _COUNT = "libwarpsim.so.1", "warpsimComputedOnCpu"
_OWN = ("empty", "set_", "resize", "record_stream", "is_pinned", "_pin_memory", "_local_scalar_dense")
_COMPOSITE = ("aten::copy_", "aten::convolution", "aten::convolution_backward")  # the device chooses in them
_OVERWRITING = frozenset(  # what self had is not read
    f"aten::{name}_"
    for name in (
        *("copy", "fill", "zero", "uniform", "normal", "random", "bernoulli", "exponential"),
        *("geometric", "log_normal", "cauchy"),
    )
)
_DEVICE_TO_HOST, _HOST_TO_DEVICE = 2, 1  # cudaMemcpyKind

_registrations: list[Any] = []  # kernels of PyTorch live as long as their library


def compute_on_cpu(torch: Any) -> None:
    """Give each operator that the CPU has a kernel for CUDA tensors that computes there."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that kernels are replaced
        for operator in _operators(torch):
            library.impl(operator.name(), _OnCpu(torch, operator), "CUDA", allow_override=True)
    _registrations.append(library)
    for fused in ("flash", "mem_efficient", "cudnn"):  # leaves attention by products and a softmax
        getattr(torch.backends.cuda, f"enable_{fused}_sdp")(False)


def _operators(torch: Any) -> Iterator[Any]:
    """Yield the operators whose kernel for CUDA is replaced."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    computed = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    for name in torch._C._dispatch_get_all_op_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if not name.startswith("aten::") or packet.lstrip("_").startswith(_OWN) or packet in _OWN:
            continue
        if name in _COMPOSITE or (has(name, "CUDA") and computed(name, "CPU")):
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            if not _is_view(operator):
                yield operator


def _is_view(operator: Any) -> bool:
    """Return whether an operator returns memory of its arguments that it does not change."""
    aliases = [each.alias_info for each in operator._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


class _OnCpu:
    """The kernel of an operator for CUDA tensors: that of the CPU, and copies."""

    def __init__(self, torch: Any, operator: Any) -> None:
        self.torch, self.operator, self.name = torch, operator, operator.name()
        self.overwrites = self.name.partition(".")[0] in _OVERWRITING
        self.arguments = operator._schema.arguments

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Compute on the host, and copy back. Raises what the CPU's kernel raises."""
        _server().warpsimComputedOnCpu(self.name.encode())
        mirrors = _Mirrors(self.torch)
        places = [(self.arguments[place], value) for place, value in enumerate(given)]
        by_name = {each.name: each for each in self.arguments}
        values = [self._to_host(mirrors, argument, value) for argument, value in places]
        more = {name: self._to_host(mirrors, by_name[name], value) for name, value in named.items()}
        made = self.operator(*values, **more)
        mirrors.give_back()
        return mirrors.to_device(made)

    def _to_host(self, mirrors: _Mirrors, argument: Any, value: Any) -> Any:
        changes = argument.alias_info is not None and argument.alias_info.is_write
        unread = changes and (argument.is_out or self.overwrites)
        return mirrors.to_host(value, changes=changes, unread=unread)


class _Mirrors:
    """The tensors of a call on the host, each beside the tensor that it stands for."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.device: Any = None  # of the call
        self._pairs = list[tuple[Any, Any, bool]]()  # tensor, its mirror, whether it changes

    def to_host(self, value: Any, *, changes: bool, unread: bool) -> Any:
        """Return an argument as the CPU's kernel takes it; ``unread``: its content does not matter."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.to_host(each, changes=changes, unread=unread) for each in value)
        if isinstance(value, self.torch.Tensor) and value.is_cuda:
            return self._mirror(value, changes, unread)
        if isinstance(value, self.torch.device) and value.type == "cuda":
            self.device = value
            return self.torch.device("cpu")
        if isinstance(value, self.torch.Generator) and value.device.type == "cuda":
            return _generator(self.torch, value)
        return value

    def _mirror(self, tensor: Any, changes: bool, unread: bool) -> Any:
        self.device = tensor.device
        for known, mirror, _ in self._pairs:
            if known is tensor:
                return mirror
        mirror = self.torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        size = mirror.untyped_storage().nbytes()  # from the first element to the last
        if tensor.numel() and not (unread and size == tensor.numel() * tensor.element_size()):
            _copy(self.torch, mirror.data_ptr(), tensor.data_ptr(), size, _DEVICE_TO_HOST)
        self._pairs.append((tensor, mirror, changes))
        return mirror

    def give_back(self) -> None:
        """Copy what has changed to the device."""
        for tensor, mirror, changes in self._pairs:
            if changes:
                _write(self.torch, tensor, mirror)

    def to_device(self, made: Any) -> Any:
        """Return results for the program: tensors of the device."""
        if isinstance(made, (list, tuple)):
            return type(made)(self.to_device(each) for each in made)
        if not isinstance(made, self.torch.Tensor):
            return made
        for tensor, mirror, _ in self._pairs:
            if made is mirror:
                return tensor
        if self.device is None:
            return made
        result = self.torch.empty_strided(made.shape, made.stride(), dtype=made.dtype, device=self.device)
        _write(self.torch, result, made)
        return result


def _write(torch: Any, tensor: Any, mirror: Any) -> None:
    """Copy a mirror to its tensor, which takes its shape where the operator has changed that (``out``)."""
    if tensor.shape != mirror.shape:
        tensor.resize_(mirror.shape)
    if tensor.stride() != mirror.stride():
        mirror = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype).copy_(mirror)
    if tensor.numel():
        size = _span(mirror)
        _copy(torch, tensor.data_ptr(), mirror.data_ptr(), size, _HOST_TO_DEVICE)


def _span(tensor: Any) -> int:
    """Return the bytes from the first element of a tensor to the end of the last."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int((steps + 1) * tensor.element_size())


def _copy(torch: Any, target: int, source: int, size: int, kind: int) -> None:
    """Copy bytes in the order of the current stream, and wait for them. Raises RuntimeError."""
    runtime = _runtime(torch)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    pointers = (ctypes.c_void_p(target), ctypes.c_void_p(source), ctypes.c_size_t(size))
    code = runtime.cudaMemcpyAsync(*pointers, kind, stream) or runtime.cudaStreamSynchronize(stream)
    if code:
        runtime.cudaGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"CUDA error: {runtime.cudaGetErrorString(code).decode()}")


def _runtime(torch: Any) -> ctypes.CDLL:
    """Return the runtime of the version that PyTorch is for."""
    return ctypes.CDLL(f"libcudart.so.{torch.version.cuda.partition('.')[0]}")


def _server() -> ctypes.CDLL:
    return ctypes.CDLL(_LIBRARY)


_generators: dict[int, Any] = {}  # of the CPU, by those of CUDA


def _generator(torch: Any, given: Any) -> Any:
    """Return the generator of the CPU that stands for one of CUDA: with the same seed at its first use."""
    if id(given) not in _generators:
        _generators[id(given)] = (given, torch.Generator().manual_seed(given.initial_seed()))
    return _generators[id(given)][1]
