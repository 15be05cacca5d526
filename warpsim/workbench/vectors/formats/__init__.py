"""Files of vector sets: a module for each format, with an object that has a name, suffixes, ``read`` and
``write``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ....base.errors import OperandError, TraceError
from ..parted import SetInParts
from ..sets import VectorSet
from .c_header import C_HEADER
from .npz import NpzFormat
from .readmemh import READMEMH
from .tables import CSV, JSON_LINES
from .testfloat import TESTFLOAT


class VectorFormat(Protocol):
    """The interface of every format."""

    @property
    def name(self) -> str:
        """The name on the command line."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of its files."""

    @property
    def summary(self) -> str:
        """A description in a few words."""

    def read(self, path: Path) -> VectorSet:
        """Return the set in a file; raises TraceError, OSError."""

    def in_parts(self, path: Path) -> SetInParts:
        """Return the set in a file, to be taken in parts, if possible without holding the whole; raises what
        read raises.
        """

    def write(self, path: Path, vectors: SetInParts) -> None:
        """Write a set atomically; raises OSError."""


FORMATS: tuple[VectorFormat, ...] = (NpzFormat(), READMEMH, TESTFLOAT, C_HEADER, CSV, JSON_LINES)


def format_of(path: Path, name: str | None = None) -> VectorFormat:
    """Return the format of that name, or of a file's suffix; raises OperandError."""
    for item in FORMATS:
        if item.name == name or (name is None and path.suffix.lower() in item.suffixes):
            return item
    if name is not None:
        raise OperandError(f"unknown format {name!r}; known are {', '.join(item.name for item in FORMATS)}")
    suffixes = ", ".join(suffix for item in FORMATS for suffix in item.suffixes)
    raise OperandError(f"unknown format suffix {path.suffix!r} of {path.name!r}; known are {suffixes}")


def read_vectors(path: str | Path) -> VectorSet:
    """Return the set in a file; the suffix gives its format. Raises TraceError for a
    malformed file, OSError.
    """
    path = Path(path)
    try:
        return format_of(path).read(path)
    except TraceError as error:
        raise error.named(path) from None


def write_vectors(path: str | Path, vectors: VectorSet, format: str | None = None) -> None:
    """Write a set atomically, in the format of that name or of the suffix.

    Raises OperandError for an unknown format, OSError.
    """
    format_of(Path(path), format).write(Path(path), vectors)
