"""Vector sets of any size: as they are made, and as they lie in files, a part at a time.

A set that is made goes to files without a name, a file for each array, and is read from there as often as it
takes: a format writes hashes first, or each array as a whole. Knows parts; does not know formats.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from ...base.errors import present
from ...isa.instruction import Instruction
from .sets import Spec, VectorSet, part_cases

Array = npt.NDArray[Any]


class SetInParts(Protocol):
    """A set that may be larger than the memory: a VectorSet, or one behind a file."""

    @property
    def instruction(self) -> Instruction:
        """The instruction on its target."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What computed d."""

    @property
    def seed(self) -> int | None:
        """The seed of its cases."""

    @property
    def title(self) -> str:
        """How the cases were chosen."""

    @property
    def labels(self) -> tuple[str, ...]:
        """A description for each case, or none."""

    def __len__(self) -> int:
        """Return the number of cases."""

    def constants(self) -> dict[str, int]:
        """Return the immediates that are the same in all cases."""

    def specs(self) -> dict[str, Spec]:
        """Return dtype and shape of every array, in the order of files."""

    def blocks(self, name: str) -> Iterator[Array]:
        """Yield an array in pieces of some megabytes, in order. Raises TraceError, OSError."""

    def parts(self) -> Iterator[VectorSet]:
        """Yield the set in parts of some megabytes, in order. Raises TraceError, OSError."""


def read_block(file: Any, spec: Spec, count: int) -> Array:
    """Return the next elements of an array along its first axis. Raises EOFError, and what reading raises."""
    dtype, shape = spec
    array = np.empty((count, *shape[1:]), dtype.newbyteorder("<"))
    rest = memoryview(array.data).cast("B")
    while len(rest):
        size = file.readinto(rest)
        if not size:
            raise EOFError
        rest = rest[size:]
    return array.astype(dtype, copy=False)


class SpooledSet:
    """A set that is made: its parts are added in order, all with the same arrays. A context.

    Files without a name hold the arrays, in ``folder`` or that of temporary files. Immediates are arrays as
    soon as there are two parts. Raises OSError.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[str, IO[bytes]] = {}
        self._cases, self._labels = 0, list[str]()
        self._first: VectorSet | None = None

    def __enter__(self) -> SpooledSet:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def __len__(self) -> int:
        return self._cases

    def add(self, part: VectorSet) -> None:
        """Take the next cases."""
        varying = _varying(part)
        self._first = part if self._first is None else replace(self._first, immediates=_varying(self._first))
        for name, array in (part.arrays() | varying).items():
            if name not in self._files:
                self._files[name] = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (closed in __exit__)
            little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            self._files[name].write(little.data)
        self._cases += len(part)
        self._labels += map(sys.intern, part.labels)

    @property
    def first(self) -> VectorSet:
        """The first part."""
        return present(self._first, "a part")

    @property
    def instruction(self) -> Instruction:
        """The instruction on its target."""
        return self.first.instruction

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What computed d."""
        return self.first.provenance

    @property
    def seed(self) -> int | None:
        """The seed of its cases."""
        return self.first.seed

    @property
    def title(self) -> str:
        """How the cases were chosen."""
        return self.first.title

    @property
    def labels(self) -> tuple[str, ...]:
        """A description for each case, or none."""
        return tuple(self._labels)

    def constants(self) -> dict[str, int]:
        """Return the immediates that are the same in all cases."""
        return self.first.constants()

    def specs(self) -> dict[str, Spec]:
        """Return dtype and shape of every array, in the order of files."""
        return {
            name: (dtype, (self._cases, *shape[1:])) for name, (dtype, shape) in self.first.specs().items()
        }

    def blocks(self, name: str) -> Iterator[Array]:
        """Yield an array in pieces of some megabytes, in order. Raises OSError."""
        specs = self.specs()
        step, file, place = part_cases(specs), self._files[name], 0
        for start in range(0, self._cases, step):
            file.seek(place)
            yield read_block(file, specs[name], min(step, self._cases - start))
            place = file.tell()

    def parts(self) -> Iterator[VectorSet]:
        """Yield the set in parts of some megabytes, in order. Raises OSError."""
        specs, start = self.specs(), 0
        for blocks in zip(*(self.blocks(name) for name in specs), strict=True):
            part = _with_arrays(self.first, dict(zip(specs, blocks, strict=True)))
            yield replace(part, labels=tuple(self._labels[start : start + len(part)]))
            start += len(part)


def _varying(part: VectorSet) -> dict[str, Array]:
    """Return all immediates as arrays."""
    given = part.immediates.items()
    return {name: np.array(np.broadcast_to(np.asarray(value, np.int8), len(part))) for name, value in given}


def _with_arrays(like: VectorSet, arrays: Mapping[str, Array]) -> VectorSet:
    """Return a set of these arrays, without labels, that is otherwise like another."""
    return replace(
        like,
        registers={name: arrays[name] for name in like.registers},
        d=arrays["d"],
        immediates={name: arrays.get(name, value) for name, value in like.immediates.items()},
        descriptors={name: arrays[name] for name in like.descriptors},
        shared=arrays.get("shared"),
        labels=(),
        masks={name: arrays[name] for name in like.masks},
    )
