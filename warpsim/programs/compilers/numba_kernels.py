"""Kernels of Numba: compiled by ``numba.cuda`` to PTX, and run here on arrays in main memory.

    def axpy(out, a, x, y): ...                     # the function that would stand under @numba.cuda.jit

    warpsim.launch_numba(axpy, 4, 256, [out, a, x, y])

Knows how Numba passes arguments: an array is a struct of seven or more parameters. Numba's own rules type the
arguments. Compiling needs the CUDA toolkit (libNVVM, or what the package numba-cuda needs), but no GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import NotModelled, OperandError
from ...isa.arrays import as_array
from ...machine.state.device import Buffer
from ..launch.launching import LaunchableKernel, LaunchReport, load_text

Function = Callable[..., Any]


@in_default_environment
def compile_numba(function: Function, args: Sequence[Any], *, target: str = "sm_80", **options: Any) -> str:
    """Return the PTX text of one kernel, a function or a ``numba.cuda.jit`` object, for these arguments.

    ``options`` are those of ``numba.cuda.compile_ptx``: fastmath, lineinfo, opt. Arrays are typed as
    contiguous by rows, because they are copied so. Raises OperandError where Numba cannot compile for CUDA.
    """
    numba, cuda = _compiler()
    types = tuple(_type(numba, value) for value in args)
    chip = divmod(int(re.sub(r"\D", "", target)), 10)
    try:
        with _device_of(cuda, chip):
            ptx, _ = cuda.compile_ptx(getattr(function, "py_func", function), types, cc=chip, **options)
    except (ImportError, OSError, RuntimeError) as error:  # Numba's message for a library that is not found
        raise OperandError(f"Numba does not compile for CUDA here: {error}") from error
    return str(ptx)


def _compiler() -> tuple[Any, Any]:
    """Return Numba and its CUDA target; raises OperandError."""
    try:
        import numba
        import numba.cuda.dispatcher
    except ImportError as error:
        raise OperandError(f"Numba's CUDA target is needed: pip install numba-cuda ({error})") from None
    return numba, numba.cuda


@contextmanager
def _device_of(cuda: Any, chip: tuple[int, int]) -> Iterator[None]:
    """Compile for this target in the block: Numba compiles the functions that a kernel calls for the current
    device.
    """
    asked = cuda.dispatcher.get_current_device
    cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=chip)
    try:
        yield
    finally:
        cuda.dispatcher.get_current_device = asked


def launch_numba(
    function: Function, grid: Any, block: Any, args: Sequence[Any], *, target: str = "sm_80", **keywords: Any
) -> LaunchReport:
    """Run a function of Numba's CUDA dialect on a grid; arrays among ``args`` are written back in place.

    ``args`` are arrays of NumPy or PyTorch (CPU), buffers and numbers; ``keywords`` are those of a launch:
    shared_bytes, checks, record and so on. Raises what compiling and launching raise.
    """
    kernel = _kernel(compile_numba(function, args, target=target), target)
    return kernel(grid, block, numba_arguments(args), **keywords)


@lru_cache(maxsize=64)
def _kernel(ptx: str, target: str) -> LaunchableKernel:
    module = load_text(ptx, "numba.ptx", target)
    return module[module.entries[0]]


def _type(numba: Any, value: Any) -> Any:
    """Return Numba's type of an argument."""
    array = _array(value)
    if array is None:
        return numba.typeof(value)
    dtype = numba.from_dtype(array.dtype)
    return numba.types.Array(dtype, array.ndim, "C", readonly=not _writable(array))


def _writable(array: Any) -> bool:
    return isinstance(array, Buffer) or bool(array.flags.writeable)


def _array(value: Any) -> Any:
    """Return an array or buffer that is passed by its address; None for any other argument."""
    if isinstance(value, Buffer):
        return value
    if isinstance(value, int | float | complex | tuple | np.generic):
        return None
    array = as_array(value)
    return array if array.ndim else None


def numba_arguments(args: Sequence[Any]) -> list[Any]:
    """Return the parameters of a kernel that Numba has compiled, for the arguments of its function."""
    return [parameter for value in args for parameter in _parameters(value)]


def _parameters(value: Any) -> Iterator[Any]:
    """Yield the parameters of an array: two null pointers, its size, item size, data, shape and strides."""
    array = _array(value)
    if array is None:
        yield from _numbers(value)
        return
    size = array.dtype.itemsize
    yield from (None, None, int(np.prod(array.shape, dtype=np.int64)), size, value)
    yield from array.shape
    yield from (size * int(np.prod(array.shape[axis:], dtype=np.int64)) for axis in range(1, array.ndim + 1))


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for item in value:
            yield from _parameters(item)
    elif isinstance(value, complex | np.complexfloating):
        yield from (value.real, value.imag)
    elif isinstance(value, bool | np.bool_):
        yield int(value)
    elif isinstance(value, int | float | np.integer | np.floating):
        yield value
    else:
        raise NotModelled(f"an argument of Numba of type {type(value).__name__}")
