"""What valid inputs are made of: files of ``traces/``, arrays as files, and what a command leaves."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from warpsim.show.cli import main

from .case import Case

TRACES = Path(__file__).parents[2] / "traces"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
WARPGROUP = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def file(name: str) -> bytes:
    """Return the content of a file of ``traces/``."""
    return (TRACES / name).read_bytes()


def npy(array: object) -> bytes:
    """Return a ``.npy`` file."""
    stream = io.BytesIO()
    np.save(stream, array)  # type: ignore[arg-type]
    return stream.getvalue()


def npz(**arrays: object) -> bytes:
    """Return a ``.npz`` file."""
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def safetensors(**arrays: np.ndarray[Any, Any]) -> bytes:
    """Return a ``.safetensors`` file, of f16 and f32."""
    header, data = dict[str, Any](), b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        header[name] = {
            "dtype": {2: "F16", 4: "F32"}[array.itemsize],
            "shape": array.shape,
            "data_offsets": [len(data), end],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def left_by(case: Case, name: str) -> bytes:
    """Return the file of that name that a command writes."""
    home = Path.cwd()
    with TemporaryDirectory() as folder:
        case.write(Path(folder))
        os.chdir(folder)
        try:
            with suppress(SystemExit), redirect_stdout(io.StringIO()):
                main(list(case.command))
            return Path(name).read_bytes()
        finally:
            os.chdir(home)
