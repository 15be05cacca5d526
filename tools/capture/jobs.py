"""Running a kernel on the bytes of many cases, a bounded number at a time.

Stands alone with driver.py and NumPy, so that both can be carried to a computer without warpsim. Knows sizes;
does not know what the bytes mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .driver import Driver, DriverError

LARGEST_LAUNCH = 1 << 28  # bytes of the cases of one launch, in and out
MOST_BLOCKS = 1 << 16  # of one launch


@dataclass(frozen=True)
class Job:
    """A kernel (see kernels.Kernel) and its cases: ``inputs`` is ``(cases, bytes of a case)`` uint8."""

    ptx: str
    entry: str
    threads: int
    shared_bytes: int
    output_bytes: int
    inputs: Any


def pack_cases(arrays: Mapping[str, Any], offsets: Mapping[str, int], input_bytes: int) -> Any:
    """Return ``(cases, input_bytes)`` uint8: the bytes of arrays with the cases in front, each at its
    offset.
    """
    cases = len(next(iter(arrays.values())))
    packed = np.zeros((cases, input_bytes), np.uint8)
    for name, offset in offsets.items():
        content = np.ascontiguousarray(arrays[name]).reshape(cases, -1).view(np.uint8)
        packed[:, offset : offset + content.shape[1]] = content
    return packed


def run_job(driver: Driver, job: Job) -> Any:
    """Return ``(cases, output_bytes)`` uint8. Raises DriverError."""
    if job.shared_bytes > driver.device.shared_bytes:
        raise DriverError(
            f"a case needs {job.shared_bytes:,} bytes of shared memory, but a block on {driver.device.chip} "
            f"has {driver.device.shared_bytes:,}"
        )
    outputs = np.empty((len(job.inputs), job.output_bytes), np.uint8)
    module = driver.load(job.ptx)
    try:
        function = driver.function(module, job.entry)
        step = max(1, min(MOST_BLOCKS, LARGEST_LAUNCH // (job.inputs.shape[1] + job.output_bytes)))
        for start in range(0, len(job.inputs), step):
            cases = slice(start, start + step)
            outputs[cases] = _launched(driver, function, job, job.inputs[cases])
    finally:
        driver.unload(module)
    return outputs


def _launched(driver: Driver, function: int, job: Job, inputs: Any) -> Any:
    cases = len(inputs)
    size = cases * job.output_bytes
    with _memory(driver, inputs.nbytes) as source, _memory(driver, size) as target:
        driver.write(source, np.ascontiguousarray(inputs).tobytes())
        driver.write(target, b"\xa5" * size)  # what a kernel does not write shows
        driver.launch(function, cases, job.threads, job.shared_bytes, (source, target))
        return np.frombuffer(driver.read(target, size), np.uint8).reshape(cases, job.output_bytes)


@contextmanager
def _memory(driver: Driver, size: int) -> Iterator[int]:
    address = driver.allocate(size)
    try:
        yield address
    finally:
        driver.free(address)
