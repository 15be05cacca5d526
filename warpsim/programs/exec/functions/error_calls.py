"""Errors: the last of a thread, and their names and words."""

from __future__ import annotations

from ..calls import Call, Int, Pointer, row
from ..error_codes import SUCCESS, UNRECOGNISED, CudaError, driver_name, runtime_name, words


@row("cudaGetLastError")
def get_last_error(call: Call) -> int:
    """Return the last error of the thread, and forget it."""
    found = _last(call)
    call.connection.last_error = SUCCESS
    return found


@row("cudaPeekAtLastError")
def peek_at_last_error(call: Call) -> int:
    """Return the last error of the thread."""
    return _last(call)


def _last(call: Call) -> int:
    process = call.process
    if process.failed is not None and process.failure_given:
        return process.failed.code
    return call.connection.last_error


@row("cudaGetErrorString")
def get_error_string(call: Call, error: Int) -> int:
    """Return the address of what an error says."""
    return call.kept(words(error))


@row("cudaGetErrorName")
def get_error_name(call: Call, error: Int) -> int:
    """Return the address of the name of an error."""
    return call.kept(runtime_name(error) or UNRECOGNISED)


@row("cuGetErrorString")
def driver_error_string(call: Call, error: Int, result: Pointer) -> None:
    """Give what an error says."""
    _give(call, result, words(error) if driver_name(error) else None)


@row("cuGetErrorName")
def driver_error_name(call: Call, error: Int, result: Pointer) -> None:
    """Give the name of an error."""
    _give(call, result, driver_name(error))


def _give(call: Call, result: int, text: str | None) -> None:
    call.put(result, "Q", 0 if text is None else call.kept(text))
    if text is None:
        raise CudaError("InvalidValue")


for _function in (get_error_string, get_error_name):
    _function.returns_code = False  # type: ignore[attr-defined]
