"""What Python programs load at their start, as sitecustomize: CUDA's functions of Python come from here.

``cuda.bindings`` has the runtime linked statically, and gives its modules capsules that say where each
function lies (PyCapsule of Python's C interface). When such a module has been imported, the capsules of the
runtime are replaced by those of the library here, and what returns NVRTC's cubin by what returns its PTX.
PyTorch, where the user asks for it, gets operators that the CPU computes (client_torch.py).

This file is copied beside the libraries, and imports nothing of this package: it runs in any Python 3.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

TORCH_ON_CPU = "WARPSIM_EXEC_TORCH_ON_CPU"  # set where the CPU is to compute PyTorch's operators
Change = Callable[[ModuleType], None]
_CUBIN, _PTX = "_nvrtcGetCUBIN", "_nvrtcGetPTX"
_FORMS_OF_THREADS = ("_ptsz", "_ptds")  # of functions, for a default stream of each thread


def take_functions(capsules: dict[str, Any], library: ctypes.CDLL, suffixes: Sequence[str] = ()) -> None:
    """Replace capsules of functions ``_name`` by those of a library, with the first suffix that it has."""
    for name, capsule in capsules.items():
        forms = (getattr(library, name[1:] + suffix, None) for suffix in (*suffixes, ""))
        function = next((form for form in forms if form is not None), None)
        if function is not None:
            capsules[name] = _capsule(ctypes.cast(function, ctypes.c_void_p), capsule)


def _capsule(address: ctypes.c_void_p, like: Any) -> Any:
    """Return a capsule of a function, with the name of another: its C type."""
    name, make = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_New
    name.restype, name.argtypes = ctypes.c_void_p, [ctypes.py_object]
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(address, name(like), None)


def _runtime(capsules: dict[str, Any]) -> None:
    take_functions(capsules, _library())


def _runtime_of_threads(capsules: dict[str, Any]) -> None:
    take_functions(capsules, _library(), _FORMS_OF_THREADS)


def _library() -> ctypes.CDLL:
    """Return the runtime of the version that the package is for."""
    major = sys.modules["cuda.bindings"].__version__.partition(".")[0]
    return ctypes.CDLL(f"libcudart.so.{major}")


def _nvrtc(capsules: dict[str, Any]) -> None:
    """Return PTX for machine code: NVRTC has made both."""
    for suffix in ("Size", ""):
        if _CUBIN + suffix in capsules and _PTX + suffix in capsules:
            capsules[_CUBIN + suffix] = capsules[_PTX + suffix]


REPLACED: dict[str, Callable[[dict[str, Any]], None]] = {  # module -> what replaces its capsules
    "cuda.bindings._bindings.cyruntime": _runtime,
    "cuda.bindings._bindings.cyruntime_ptds": _runtime_of_threads,
    "cuda.bindings._internal.runtime": _runtime,
    "cuda.bindings._internal.runtime_ptds": _runtime_of_threads,
    "cuda.bindings._internal.nvrtc": _nvrtc,
}


class Finder:
    """Finds the modules that are changed once they are loaded."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module lies, or None where nothing of it is changed."""
        change = _change(name)
        spec = None if change is None else PathFinder.find_spec(name, path, target)
        if change is not None and spec is not None and spec.loader is not None:
            setattr(spec.loader, "exec_module", _loading(spec.loader.exec_module, change))  # noqa: B010
        return spec


def _change(name: str) -> Change | None:
    """Return what changes a module once it is loaded, or None."""
    if name == "torch" and TORCH_ON_CPU in os.environ:
        return _torch
    if name in REPLACED:
        return lambda module: REPLACED[name](getattr(module, "__pyx_capi__", {}))
    return None


def _torch(module: ModuleType) -> None:
    """Compute operators on the CPU, where PyTorch is for CUDA."""
    if module.version.cuda is not None:
        import_module("warpsim_torch").compute_on_cpu(module)  # client_torch.py, which lies beside this file


def _loading(load: Change, change: Change) -> Change:
    """Return what loads a module and then changes it."""

    def loaded(module: ModuleType) -> None:
        load(module)
        change(module)

    return loaded


def _next_customization() -> None:
    """Load the sitecustomize that this file stands in front of, as Python itself does."""
    own = os.path.dirname(os.path.realpath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if os.path.realpath(path) != own])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if __name__ == "sitecustomize":
    if "WARPSIM_EXEC_SOCKET" in os.environ:
        sys.meta_path.insert(0, Finder)
    _next_customization()
