"""The library of a chip: every form in a header, and functions that compute what the kernels do."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np

from tests.workbench.models.test_golden_models import needs_cc
from warpsim.workbench.models.c_library import library_of
from warpsim.workbench.models.model_files import cases_of, write_model


@needs_cc
def test_a_library_computes_every_form(tmp_path: Path) -> None:
    library = library_of("sm_80", "lib")
    write_model(tmp_path, library.files(), force=False)
    compiled = ["gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-shared", "-fPIC"]
    sources = sorted(path.name for path in tmp_path.glob("*.c"))
    subprocess.run([*compiled, "-o", "lib.so", *sources], cwd=tmp_path, check=True)
    loaded = ctypes.CDLL(str(tmp_path / "lib.so"))
    assert len(library.dots) < len(library.models) // 2
    for model in library.models[::12]:
        for case in cases_of(model)[:4]:
            words = {
                each.name: np.uint64 if each.type == "uint64_t" else np.uint32 for each in model.arguments
            }
            arrays = [
                np.ascontiguousarray(case.arguments[each.name], words[each.name])
                if each.is_array
                else int(case.arguments[each.name])
                for each in model.inputs
            ]
            d = np.zeros(case.d.shape, words["d"])
            given = [x.ctypes.data_as(ctypes.c_void_p) if isinstance(x, np.ndarray) else x for x in arrays]
            getattr(loaded, model.name)(*given, d.ctypes.data_as(ctypes.c_void_p))
            assert np.array_equal(d, case.d), model.name
