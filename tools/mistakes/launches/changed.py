"""The kernels of tcgen05 in traces/kernels: their launches, and their PTX with a change."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np

from tests.helpers import tensor_core_products, tensor_kinds_products, tensor_pipeline_products
from tests.helpers.kernel_cases import FOLDER
from tests.helpers.kernel_products import Case

from .kernels import Prepared
from .tensor_listed import Change


@cache
def changed(change: Change) -> str:
    """Return the PTX of a file with a change, in the kernel or in the first header that has the text."""
    with tempfile.TemporaryDirectory() as folder:
        for source in FOLDER.glob("*.cu*"):
            shutil.copy(source, folder)
        if change.old:
            _put(Path(folder), change)
        command = ["nvcc", "-ptx", "-O3", "-lineinfo", "-arch=compute_100a", f"{change.file}.cu"]
        subprocess.run([*command, "-o", "module.ptx"], cwd=folder, check=True)
        return (Path(folder) / "module.ptx").read_text()


def _put(folder: Path, change: Change) -> None:
    """Replace the text of a change behind the kernel's name, or else in what all kernels share."""
    own = folder / f"{change.file}.cu"
    for file in (own, *sorted(folder.glob("tensor*.cuh"))):
        text = file.read_text()
        name = text.find(f"{change.kernel}(") if file == own else 0
        at = text.find(change.old, name)
        if at < 0:
            at = text.find(change.old)
        if at >= 0:
            file.write_text(text[:at] + change.new + text[at + len(change.old) :])
            return
    raise AssertionError(f"{change.kernel}: {change.name}: the text is not there")


def _launch(make: Callable[[np.random.Generator], Case]) -> Prepared:
    case = make(np.random.default_rng(1))
    return Prepared(
        grid=case.grid if isinstance(case.grid, tuple) else (case.grid,),
        block=case.block,
        arguments=[*case.passed(list(case.arguments))],
        expected=case.expected,
        tolerance=0.0,
        shared_bytes=case.shared_bytes,
        cluster=case.cluster,
    )


_CORE, _KINDS = tensor_core_products, tensor_kinds_products.TENSOR_KINDS
_MADE: dict[str, Callable[[np.random.Generator], Case]] = {
    "tensor_f16": partial(_CORE.f16, size=(256, 128, 256)),
    "tensor_sparse_f16": partial(_CORE.sparse_f16, size=(256, 64, 256)),
    "tensor_mxf8": partial(_CORE.mxf8, size=(256, 64, 512)),
    "tensor_nvf4": partial(_CORE.nvf4, size=(128, 64, 512)),
    "tensor_s8": _KINDS["tensor_s8"],
    "tensor_copied_metadata": _KINDS["tensor_copied_metadata"],
    "tensor_stationary_f16": _KINDS["tensor_stationary_f16"],
    **tensor_pipeline_products.TENSOR_PIPELINES,
}
TENSOR_KERNELS = {name: partial(_launch, make) for name, make in _MADE.items()}
