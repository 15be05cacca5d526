"""Tensors in files of other libraries: ``.safetensors``, and ``.pt`` where PyTorch is installed.

bf16 and fp8 are returned in the dtypes of ml_dtypes, as NumPy has none. Knows files; does not know
instructions.
"""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..errors import TraceError
from ..isa.arrays import as_array

Arrays = dict[str, npt.NDArray[Any]]
_LARGEST_HEADER = 100 << 20
_DTYPES = {  # names of the format's specification
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip


def read_tensors(path: Path) -> Arrays:
    """Return every tensor of a file by name; a single tensor of a ``.pt`` file is "". Raises TraceError,
    OSError.
    """
    return _of_torch(path) if path.suffix == ".pt" else _of_safetensors(path)


def _of_safetensors(path: Path) -> Arrays:
    content = path.read_bytes()
    try:
        size = int.from_bytes(content[:8], "little")
        if size > min(_LARGEST_HEADER, len(content)):
            raise ValueError(f"its header claims {size:,} bytes")
        header = json.loads(content[8 : 8 + size])
        data = content[8 + size :]
        return {name: _tensor(item, data) for name, item in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise TraceError(f"cannot be read as safetensors: {error}").named(path) from None


def _tensor(entry: Any, data: bytes) -> npt.NDArray[Any]:
    first, last = entry["data_offsets"]
    dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(int(side) for side in entry["shape"])
    if not 0 <= first <= last <= len(data) or last - first != prod(shape) * dtype.itemsize:
        raise ValueError(f"{shape} {dtype} do not lie in bytes {first} to {last} of {len(data):,}")
    return np.frombuffer(data[first:last], dtype).reshape(shape).copy()


def _of_torch(path: Path) -> Arrays:
    """Return the unpickled content; only tensors are unpickled."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        message = ".pt files are read by PyTorch, which is not installed: save .safetensors"
        raise TraceError(message).named(path) from None
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise TraceError(f"cannot be read as tensors: {reason}").named(path) from None
    named = found if isinstance(found, dict) else {"": found}
    return {name: as_array(item) for name, item in named.items()}
