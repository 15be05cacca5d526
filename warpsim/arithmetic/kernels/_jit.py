"""The options with which all kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

from ._cache import forgiving

Array = npt.NDArray[Any]
Planes = tuple[Array, Array, Array]  # significand int64, exponent int32, special int8
Output = tuple[int, int, int, int, bool]  # precision, fraction bits, emin, emax, nearest
Operands = tuple[Planes, Planes, Planes, Array]  # a, b, c, columns

Function = TypeVar("Function", bound=Callable[..., Any])


def interpreted() -> bool:
    """Return whether Numba compiles nothing (NUMBA_DISABLE_JIT)."""
    return bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def kernel(function: Function) -> Function:
    """Compile lazily, cache on disk, release the GIL; never fastmath, which would change bits."""
    try:
        return cast(Function, forgiving(numba.njit(cache=True, nogil=True)(function)))
    except RuntimeError:  # no writable folder for the cache: compile in every process
        return cast(Function, numba.njit(nogil=True)(function))


def variant_kernel(*numbers: int) -> Callable[[Function], Function]:
    """Compile a closure that is specialised by these numbers, and captures nothing but numbers and types.

    The numbers become part of its name, by which Numba finds it in the cache and binds calls to it: variants
    of one name that several processes compile at once could otherwise replace each other.
    """

    def decorate(function: Function) -> Function:
        function.__qualname__ += "".join(f"_{number:x}" for number in numbers)
        return kernel(function)

    return decorate
