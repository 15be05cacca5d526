"""Tensors in files of other libraries: ``.safetensors``, and ``.pt`` where PyTorch is installed.

bf16 and fp8 are returned in the dtypes of ml_dtypes, as NumPy has none. Knows files; does not know
instructions.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ...base.errors import TraceError
from ...base.files.archives import LARGEST_ARRAY, check_printable
from ...base.files.opening import open_input
from ...isa.arrays import as_array

Arrays = dict[str, npt.NDArray[Any]]
_LARGEST_HEADER = 100 << 20
_DTYPES = {  # names of the format's specification
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


def read_tensors(path: Path) -> Mapping[str, npt.NDArray[Any]]:
    """Return every tensor of a file by name; a single tensor of a ``.pt`` file is "". Raises TraceError,
    OSError.

    Of safetensors a tensor is read when it is taken.
    """
    if path.suffix != ".pt":
        return Safetensors(path)
    with open_input(path, LARGEST_ARRAY, regular=True) as file:
        return _read_torch(path, file)


class Safetensors(Mapping[str, npt.NDArray[Any]]):
    """The tensors of a file by name, each read when it is taken; raises TraceError, OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_input(path, sys.maxsize, regular=True) as file, _readable(path):
            held = os.fstat(file.fileno()).st_size
            size = int.from_bytes(file.read(8), "little")
            if size > min(_LARGEST_HEADER, held):
                raise ValueError(f"its header claims {size:,} bytes")
            header = json.loads(file.read(size))
            self._begin, self._held = 8 + size, held - 8 - size
            self._entries = {name: item for name, item in header.items() if name != "__metadata__"}
            for name, item in self._entries.items():
                check_printable(name)
                self._place(item)

    def _place(self, entry: Any) -> tuple[int, int, np.dtype[Any], tuple[int, ...]]:
        """Return first and last byte of a tensor, its dtype and its shape; raises ValueError and others."""
        first, last = entry["data_offsets"]
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(int(side) for side in entry["shape"])
        if not 0 <= first <= last <= self._held or last - first != prod(shape) * dtype.itemsize:
            raise ValueError(f"{shape} {dtype} do not lie in bytes {first} to {last} of {self._held:,}")
        return first, last, dtype, shape

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        entry = self._entries[name]
        with _readable(self.path), open_input(self.path, sys.maxsize, regular=True) as file:
            first, last, dtype, shape = self._place(entry)
            if last - first > LARGEST_ARRAY:
                raise ValueError(f"tensor {name!r} has {last - first:,} bytes, more than {LARGEST_ARRAY:,}")
            file.seek(self._begin + first)
            return np.frombuffer(file.read(last - first), dtype).reshape(shape).copy()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Let what a malformed file raises in a block be a TraceError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise TraceError(f"cannot be read as safetensors: {error}").named(path) from None


def _read_torch(path: Path, file: BinaryIO) -> Arrays:
    """Return the unpickled content; only tensors are unpickled."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        message = ".pt files are read by PyTorch, which is not installed: save .safetensors"
        raise TraceError(message).named(path) from None
    try:
        found: Any = torch.load(file, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(f"cannot be read as tensors: {reason}").named(path) from None
    named = found if isinstance(found, dict) else {"": found}
    return {name: as_array(item) for name, item in named.items()}
