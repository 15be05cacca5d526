"""Vector sets to and from a device: which jobs a set is, and the set that its outputs make.

Every combination of immediates in a set is a job, since immediates stand in the text of a kernel. Knows what
a device has computed; does not know whether it should have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from warpsim import __version__
from warpsim.base.errors import IllegalInstruction
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.instruction import Instruction
from warpsim.ptx.qualifiers import on_target
from warpsim.workbench.vectors.sets import VectorSet

from .driver import Device, Driver, DriverError
from .jobs import Job, pack_cases, run_job
from .kernels import Kernel, build_kernel
from .tensor_kernels import OPCODE, tensor_kernel

_PTX_OF_MANY = "one kernel for each combination of immediates; this is the first"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Cases of a set that have their immediates in common: their places, kernel and job."""

    cases: npt.NDArray[np.intp]
    kernel: Kernel
    job: Job


def target_of(device: Device) -> str:
    """Return the target that has most of a chip's instructions: sm_90a for compute capability 9.0.

    Raises DriverError for a chip that warpsim does not know.
    """
    number = 10 * device.capability[0] + device.capability[1]
    names = [name for name, target in ARCHITECTURES.items() if target.number == number]
    if not names:
        raise DriverError(
            f"{device.chip} has compute capability {device.compute_capability}, which warpsim does not model"
        )
    return next((name for name in names if name.endswith("a")), names[0])


def for_device(instruction: Instruction, device: Device) -> Instruction:
    """Return the form for a chip: on its own target where that is one of the chip's, otherwise on the
    chip's first.

    Raises IllegalInstruction where the chip does not have the form.
    """
    number = 10 * device.capability[0] + device.capability[1]
    if instruction.target and ARCHITECTURES[instruction.target].number == number:
        return instruction
    target = target_of(device)
    if target not in instruction.targets:
        raise IllegalInstruction(f"{instruction} is not on {device.chip} ({target})")
    return on_target(replace(instruction, target=None), target)


def parts_of(vectors: VectorSet) -> Iterator[Part]:
    """Yield the jobs of a set."""
    names = list(vectors.varying())
    columns = np.stack([np.zeros(len(vectors), np.int64), *vectors.varying().values()], axis=-1)
    values, group = np.unique(columns, axis=0, return_inverse=True)
    arrays = {name: array for name, array in vectors.arrays().items() if name not in {*names, "d"}}
    for index, combination in enumerate(values):
        cases = np.flatnonzero(group.ravel() == index)
        constants = vectors.constants() | dict(zip(names, combination[1:].tolist(), strict=True))
        chosen = {name: array[cases] for name, array in arrays.items()}
        build = tensor_kernel if vectors.instruction.family.opcode == OPCODE else build_kernel
        kernel = build(vectors.instruction, chosen, constants)
        yield Part(cases=cases, kernel=kernel, job=job_of(kernel, chosen))


def job_of(kernel: Kernel, arrays: Mapping[str, Any]) -> Job:
    """Return a kernel with its cases."""
    return Job(
        ptx=kernel.ptx,
        entry=kernel.entry,
        threads=kernel.threads,
        shared_bytes=kernel.shared_bytes,
        output_bytes=kernel.output_bytes,
        inputs=pack_cases(arrays, kernel.offsets, kernel.input_bytes),
    )


def captured(vectors: VectorSet, driver: Driver) -> VectorSet:
    """Return the set with the D of a device. Raises DriverError."""
    parts = list(parts_of(vectors))
    return folded(vectors, parts, [run_job(driver, part.job) for part in parts], provenance(driver.device))


def folded(vectors: VectorSet, parts: list[Part], outputs: list[Any], origin: Mapping[str, Any]) -> VectorSet:
    """Return the set with the D that the outputs of its jobs hold."""
    d = np.zeros_like(vectors.d)
    for part, output in zip(parts, outputs, strict=True):
        words = np.ascontiguousarray(output).view(d.dtype)
        d[part.cases] = words.reshape(len(part.cases), *d.shape[1:])
    ptx: dict[str, Any] = {"ptx": parts[0].kernel.ptx}
    if len(parts) > 1:
        ptx |= {"kernels": len(parts), "note": _PTX_OF_MANY}
    return replace(vectors, d=d, provenance={**origin, **ptx})


def provenance(device: Device, date: str | None = None) -> dict[str, Any]:
    """Return where outputs come from, but for the PTX."""
    simulated = device.chip.startswith("simulated ")
    origin = {"kind": "model", "version": __version__} if simulated else {"kind": "hardware"}
    return {
        **origin,
        "chip": device.chip,
        "compute_capability": device.compute_capability,
        "driver": device.driver,
        "date": date or datetime.now(UTC).date().isoformat(),
    }


def file_words(mnemonic: str, title: str) -> str:
    """Return a file's name for a set, without its suffix: the instruction, and what its cases are."""
    words = (mnemonic.replace("::", "_"), re.sub(r"[^\w-]+", "_", title))
    return ".".join(filter(None, words))
