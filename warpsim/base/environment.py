"""The floating-point environment that results are computed in: round to nearest, subnormal numbers kept.

The environment belongs to the thread, and any library may have changed it: a library linked with
``-ffast-math`` flushes subnormal numbers to zero from the moment it is loaded. All code that computes with
floats, in NumPy, ml_dtypes or compiled kernels (and all code that compiles kernels), therefore runs in
``default_environment()``. So does every task of a thread pool. The environment found at entry is restored at
exit, also after an error.

Two multiplications detect the current environment, on every platform alike and in a tenth of a microsecond.
Nothing is cached, so that a callback may change the environment, too. The environment is set only where it
differs: with the C library's fegetenv and fesetenv on Linux, macOS and BSD, and with _controlfp_s on Windows.
Where no function can set it, an error is raised; results never have other bits.

Does not know what is computed. Exception masks are not read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from inspect import isgeneratorfunction
from math import prod
from typing import Any, ParamSpec, TypeVar

from .errors import WarpsimError

__all__ = ["default_environment", "in_default_environment", "is_default"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Restore = Callable[[], object]

# The first product is subnormal (0 if results are flushed) and inexact: 3/4 of a unit, truncated by two of
# the roundings. The second product has it as a factor (0 if operands are flushed) and is inexact by 1/4 of a
# unit, which only upward rounding shows. The factors are exact in every environment.
_FACTORS = tuple(map(float.fromhex, ("0x1p-1022", "0x1.0000000000003p-2", "0x1.1p+1000")))
_EXPECTED = float.fromhex("0x1.1000000000004p-24")


def is_default() -> bool:
    """Return whether this thread rounds to nearest and keeps subnormal numbers, both as operands and as
    results.
    """
    return prod(_FACTORS) == _EXPECTED  # a function of C: no compiler of Python can fold it


class default_environment:
    """Compute a block in the default environment, and restore the previous environment at its end.

    May be nested, at almost no cost. Not for a block that yields: its caller would run in this environment.
    Raises WarpsimError where the environment differs and cannot be set.
    """

    __slots__ = ("_restore",)

    def __enter__(self) -> None:
        self._restore = None if prod(_FACTORS) == _EXPECTED else _set_default()

    def __exit__(self, *error: object) -> None:
        if self._restore is not None:
            self._restore()


def in_default_environment(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return the function wrapped to compute in the default environment; also for tasks of thread pools."""
    assert not isgeneratorfunction(function), f"{function} would hand its environment to its caller"

    @wraps(function)
    def guarded(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        if prod(_FACTORS) == _EXPECTED:
            return function(*arguments, **named)
        with default_environment():
            return function(*arguments, **named)

    return guarded


# --- setting it ----------------------------------------------------------------------------------------

_BYTES = 64  # no smaller than any platform's fenv_t


def _set_default() -> Restore:
    """Set the default environment of this thread; return the function that restores the
    previous environment.
    """
    restore = _setter()()
    if not is_default():
        restore()
        raise WarpsimError(
            "another library has set a rounding mode, or flushes subnormal numbers to zero, and on this "
            "platform that cannot be undone: results would have other bits"
        )
    return restore


@cache
def _setter() -> Callable[[], Restore]:
    """Return how this platform sets the default environment."""
    import ctypes

    try:
        if sys.platform == "win32":
            return _by_control_word(ctypes.CDLL("ucrtbase")._controlfp_s)
        return _by_environment(ctypes.CDLL(None))
    except (AttributeError, OSError, ValueError):  # no such function, library or symbol
        return lambda: lambda: None


def _by_environment(library: Any) -> Callable[[], Restore]:
    """Set the environment with fegetenv and fesetenv, as C99 has them."""
    import ctypes

    get, put = library.fegetenv, library.fesetenv
    get.argtypes = put.argtypes = [ctypes.c_void_p]
    default = _default_of(library)

    def set_default() -> Restore:
        found = ctypes.create_string_buffer(_BYTES)
        get(found)
        put(default)
        return lambda: put(found)

    return set_default


def _default_of(library: Any) -> Any:
    """Return FE_DFL_ENV: -1 with glibc and musl, elsewhere the address of a named object."""
    import ctypes

    names = {"darwin": "_FE_DFL_ENV", "freebsd": "__fe_dfl_env"}
    for system, name in names.items():
        if sys.platform.startswith(system):
            return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, name)))
    return ctypes.c_void_p(-1)


_ROUNDING_AND_DENORMALS = 0x03000300  # _MCW_DN | _MCW_RC, for which 0 is the default


def _by_control_word(control: Any) -> Callable[[], Restore]:
    """Set the environment with Microsoft's _controlfp_s(current, new, mask)."""
    import ctypes

    def set_default() -> Restore:
        found = ctypes.c_uint()
        control(ctypes.byref(found), 0, 0)
        control(ctypes.byref(ctypes.c_uint()), 0, _ROUNDING_AND_DENORMALS)
        return lambda: control(ctypes.byref(ctypes.c_uint()), found.value, _ROUNDING_AND_DENORMALS)

    return set_default
