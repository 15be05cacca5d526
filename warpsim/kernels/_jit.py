"""The one place that decides how kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy.typing as npt

Array = npt.NDArray[Any]
Planes = tuple[Array, Array, Array]  # significand int64, exponent int32, special int8
Output = tuple[int, int, int, int, bool]  # the last five arguments of rounding.rounded

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile lazily, cache on disk, release the GIL; never fastmath, which would change bits.

    A kernel that is a closure has numbers and types in it, no other compiled function, or the cache never
    finds it again; and no other kernel calls it: closures compiled in different processes may have the same
    name, and a call is bound by name.
    """
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
