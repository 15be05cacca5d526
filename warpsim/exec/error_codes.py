"""CUDA's error codes by name, and which of them an error of a launch or a module becomes.

Names and numbers are those of driver_types.h (tables/runtime_errors.txt); the driver has the same numbers.
"""

from __future__ import annotations

import re
from functools import cache

from ..errors import (
    Deadlock,
    DeviceAssertion,
    Fault,
    IllegalInstruction,
    NotModelled,
    OperandError,
    PtxError,
    StackOverflow,
    UndefinedBehavior,
    WarpsimError,
)
from ..machine.load.problems import NoSuchKernel
from ..machine.state.spaces import InvalidAccess, Misaligned
from .libraries import table

SUCCESS = 0
_KINDS: tuple[tuple[type[WarpsimError], str], ...] = (  # the first that fits
    (NoSuchKernel, "SymbolNotFound"),
    (Deadlock, "LaunchTimeout"),
    (DeviceAssertion, "Assert"),
    (StackOverflow, "HardwareStackError"),
    (Fault, "LaunchFailure"),
    (UndefinedBehavior, "LaunchFailure"),
    (OperandError, "InvalidConfiguration"),
    (NotModelled, "InvalidPtx"),
    (IllegalInstruction, "InvalidPtx"),
    (PtxError, "InvalidPtx"),
)
_STICKY = frozenset(
    {
        *("IllegalAddress", "MisalignedAddress", "LaunchFailure", "LaunchTimeout", "Assert"),
        *("IllegalInstruction", "HardwareStackError"),
    }
)


class CudaError(Exception):
    """A call that ends with an error: the name of its code without "cudaError", and why, for the report."""

    def __init__(self, name: str, why: str = "") -> None:
        super().__init__(f"{name}: {why}")
        self.name = name
        self.code = code(name)
        self.why = why

    @property
    def sticky(self) -> bool:
        """Whether no later call of the process succeeds."""
        return self.name in _STICKY


@cache
def _codes() -> dict[str, int]:
    pairs = (row.split() for row in table("runtime_errors"))
    return {name.removeprefix("cudaError"): int(number) for name, number in pairs}


@cache
def _names() -> dict[int, str]:
    return {number: name for name, number in _codes().items()}


def code(name: str) -> int:
    """Return the number of an error, named without "cudaError"."""
    return _codes()[name]


def runtime_name(number: int) -> str | None:
    """Return the name of a code as cudaGetErrorName gives it, None for no code."""
    if number == SUCCESS:
        return "cudaSuccess"
    return f"cudaError{_names()[number]}" if number in _names() else None


def driver_name(number: int) -> str | None:
    """Return the name of a code as cuGetErrorName gives it; that of the runtime where it has another."""
    if number == SUCCESS:
        return "CUDA_SUCCESS"
    name = _DRIVER.get(number) or _names().get(number)
    if name is None:
        return None
    return f"CUDA_ERROR_{re.sub('(?<=[a-z0-9])(?=[A-Z])', '_', name).upper()}"


_DRIVER = {  # where the driver's words are others
    2: "OutOfMemory",
    3: "NotInitialized",
    4: "Deinitialized",
    200: "InvalidImage",
    201: "InvalidContext",
    400: "InvalidHandle",
    500: "NotFound",
    700: "IllegalAddress",
    701: "LaunchOutOfResources",
    719: "LaunchFailed",
}


def words(number: int) -> str:
    """Return what a code says, from its name."""
    name = "Success" if number == SUCCESS else _names().get(number, "unrecognized error code")
    spaced = re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return "no error" if number == SUCCESS else spaced.lower()


def error_of(error: WarpsimError) -> CudaError:
    """Return what CUDA calls an error of a launch or a module."""
    cause = error.__context__
    if isinstance(error, Fault) and isinstance(cause, InvalidAccess):
        name = "MisalignedAddress" if isinstance(cause, Misaligned) else "IllegalAddress"
        return CudaError(name, str(error))
    name = next((name for kind, name in _KINDS if isinstance(error, kind)), "Unknown")
    return CudaError(name, str(error))
