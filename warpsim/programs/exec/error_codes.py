"""CUDA's error codes by name, and which of them an error of a launch or a module becomes.

Names and numbers are those of driver_types.h (tables/runtime_errors.txt) and cuda.h (driver_errors.txt),
which have the same numbers; texts are those of cudaGetErrorString (error_texts.txt).
"""

from __future__ import annotations

from functools import cache

from ...base.errors import (
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
from ...machine.load.problems import NoSuchKernel
from ...machine.state.spaces import InvalidAccess, Misaligned
from .libraries import table

SUCCESS = 0
UNRECOGNISED = "unrecognized error code"  # what CUDA's runtime says of a number that is not a code
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
    """Return the name of a code as cuGetErrorName gives it, None for no code."""
    return _driver_names().get(number)


@cache
def _driver_names() -> dict[int, str]:
    return {int(number): name for name, number in (row.split() for row in table("driver_errors"))}


@cache
def _texts() -> dict[int, str]:
    return {int(number): text for number, _, text in (row.partition(" ") for row in table("error_texts"))}


def words(number: int) -> str:
    """Return what cudaGetErrorString and cuGetErrorString say of a code."""
    return _texts().get(number, UNRECOGNISED)


def error_of(error: WarpsimError) -> CudaError:
    """Return what CUDA calls an error of a launch or a module."""
    cause = error.__context__
    if isinstance(error, Fault) and isinstance(cause, InvalidAccess):
        name = "MisalignedAddress" if isinstance(cause, Misaligned) else "IllegalAddress"
        return CudaError(name, str(error))
    name = next((name for kind, name in _KINDS if isinstance(error, kind)), "Unknown")
    return CudaError(name, str(error))
