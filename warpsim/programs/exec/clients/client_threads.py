"""One thread of a client: receives its calls, has rows answer them, and keeps the thread's own errors.

Knows the order of a call: message, row, orders, return. Does not know functions of CUDA.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from ....base.errors import WarpsimError
from .. import functions  # noqa: F401 (its modules fill the table of rows)
from ..calls import Call, Row, row_of
from ..error_codes import SUCCESS, CudaError, code, driver_name, error_of
from ..libraries import function_named
from ..messages import CALLED, ENDS, HELLO, Channel, Gone, Message
from .client import Process
from .held_launches import goes_together

_IN_DRIVER = {"InvalidDeviceFunction": "InvalidResourceHandle"}  # of codes that the runtime alone has
_PAUSE = 0.02  # seconds for other threads
_NOT_SUPPORTED, _UNKNOWN = "NotSupported", "Unknown"
_FOREVER = frozenset(  # functions that answer also after an error that no call survives
    {"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName", "cudaDeviceReset"}
    | {"cuGetErrorString", "cuGetErrorName", "__cudaUnregisterFatBinary", "cudaRuntimeGetVersion"}
    | {"cudaDriverGetVersion", "cuDriverGetVersion", "cudaGetDevice", "cudaGetDeviceCount"}
)
_BEFORE_USE = (  # functions that make no context
    *("__cuda", "cudaGetDevice", "cudaDeviceGet", "cudaDriverGet", "cudaRuntimeGet", "cudaGetError"),
    *("cudaGetLastError", "cudaPeekAtLastError", "cudaGetDriverEntryPoint", "cudaChooseDevice"),
)
_OF_A_CONTEXT = (  # functions of the driver that need a context
    *("cuMemAlloc", "cuMemFree", "cuMemcpy", "cuMemset", "cuMemHost", "cuModuleLoad", "cuStreamCreate"),
    *("cuEventCreate", "cuLaunchKernel"),
    "cuKernelGetParam",  # "with no current context" an error, say cuda.core's tests of num_arguments
)
_STATELESS = frozenset({"cudaGetLastError", "cudaPeekAtLastError", "cudaGetErrorString", "cudaGetErrorName"})


@cache
def _function(number: int) -> tuple[str, str, Row | None, bool]:
    """Return library, name, row and stream form of a function."""
    library, name = function_named(number)
    return library, name, *row_of(name)


class Connection:
    """A thread of a client. ``lock`` is held while a row answers; ``trace`` shows calls.

    ``last_error`` is what cudaGetLastError returns next.
    """

    def __init__(
        self, lock: threading.Lock, trace: Callable[[str], object], channel: Channel, process: Process
    ) -> None:
        self._lock, self._show = lock, trace
        self.channel = channel
        self.process = process
        self.last_error = SUCCESS
        self.contexts: list[int] = []  # that are current, the innermost last
        self._uses_runtime = False  # whose primary context is current where no other is
        self._ends = False  # the process: its functions are called no more
        self.configurations: list[tuple[object, ...]] = []  # of <<<>>>, until the launch
        self.own_stream = 0x9000_0000 + process.threads * 16
        self.capture_mode = 0
        process.threads += 1

    @property
    def current(self) -> int:
        """The context that is current; 0 for none."""
        primary = self.process.primary.handle if self._uses_runtime else 0
        return self.contexts[-1] if self.contexts else primary

    def serve(self) -> None:
        """Answer calls until the client leaves. Raises Gone."""
        while True:
            message = self.channel.receive()
            if message.number == HELLO:
                raise Gone
            self.channel.answer(self._answer(message))

    def call_host(self, function: int, *arguments: int) -> int:
        """Have the client call a function of its own; answer its calls of CUDA meanwhile."""
        if self._ends:
            return 0
        self.channel.call(function, *arguments)
        self._lock.release()
        try:
            while True:
                message = self.channel.receive()
                if message.number == CALLED:
                    return message.integers[0]
                self.channel.answer(self._answer(message))
        finally:
            self._lock.acquire()

    def synchronise(self) -> None:
        """Print on the client's stdout what device code has printed."""
        if self.process.printed:
            text = "".join(self.process.printed)
            self.process.printed.clear()
            self.channel.print(text.encode(errors="surrogateescape"))

    def _end(self, message: Message) -> int:
        """Do what streams have been given, as the process ends; what that ends with has been noted."""
        with self._lock:
            self._ends = True
            call = Call(self, self.process, "the end of the process", message)
            with suppress(CudaError):
                self.process.do_held()
                self.process.do_until(call)
        return SUCCESS

    def _answer(self, message: Message) -> int:
        """Return what a call returns."""
        if message.number == ENDS:
            return self._end(message)
        try:
            library, name, row, by_thread = _function(message.number)
        except IndexError:
            raise Gone from None
        with self._lock:
            self.process.tally.calls[name] += 1
            if library.startswith("runtime") and not name.startswith(_BEFORE_USE):
                self._uses_runtime = self.process.uses_runtime = True
            self.process.current = self.current or self.process.primary.handle
            call = Call(self, self.process, name, message, by_thread)
            try:
                result = self._result(call, row)
            except CudaError as error:
                result = self._fail(library, name, error)
            except WarpsimError as error:
                result = self._fail(library, name, error_of(error))
            except Gone:
                raise
            except Exception:
                self.process.tally.broken += 1
                self.process.tally.say(f"{traceback.format_exc()}{name}: this is a mistake of warpsim")
                result = code(_UNKNOWN)
            if library.startswith("runtime") and result and name not in _STATELESS:
                self._remember(name, row, result)
            if self.process.settings.trace_calls:
                self._trace(call, row, result)
            return result

    def _remember(self, name: str, row: Row | None, result: int) -> None:
        """Keep an error for cudaGetLastError; other results than codes are not errors."""
        if row is None or getattr(row.function, "returns_code", True):
            self.last_error = result

    def _result(self, call: Call, row: Row | None) -> int:
        if row is None:
            self.process.tally.lacking(call.name)
            return code(_NOT_SUPPORTED)
        self._do_held(call)
        if self.process.failed is not None and call.name not in _FOREVER:
            self.process.failure_given = True
            return self.process.failed.code
        if call.name.startswith(_OF_A_CONTEXT) and not self.current and not self.process.uses_runtime:
            raise CudaError("DeviceUninitialized", f"{call.name}: no context is current in this thread")
        result = row.function(call, *row.arguments(call.message))
        return SUCCESS if result is None else result

    def _do_held(self, call: Call) -> None:
        """Do launches that are held, before what is no launch; threads beside this may add theirs before."""
        if not self.process.together or goes_together(call.name):
            return
        if self.process.threads > 1:
            self._lock.release()
            time.sleep(_PAUSE)
            self._lock.acquire()
        self.process.do_held()

    def _fail(self, library: str, name: str, error: CudaError) -> int:
        """Return the code of an error; the driver has no errors of its own for some."""
        if error.sticky:
            self.process.failed, self.process.failure_given = error, True
        if error.why:
            self.process.tally.call_failed(name, error)
        if library == "driver" and driver_name(error.code) is None:
            return code(_IN_DRIVER.get(error.name, "InvalidValue"))
        return error.code

    def _trace(self, call: Call, row: Row | None, result: int) -> None:
        arguments = ""
        if row is not None:
            pairs = zip(row.names, row.arguments(call.message), strict=True)
            arguments = ", ".join(f"{name}={_value_text(value)}" for name, value in pairs)
        caller = f"{self.process.number}:{threading.get_ident() & 0xFFFF:04x}"
        self._show(f"[{caller}] {call.name}({arguments}) = {result}")


def _value_text(value: object) -> str:
    return hex(value) if isinstance(value, int) and value > 4096 else str(value)
