"""What Python programs load at their start: capsules of functions, replaced when a module is imported."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpsim.programs.exec import client_python
from warpsim.programs.exec.client_python import REPLACED, TORCH_ON_CPU, Finder, take_functions

Run = Callable[..., Any]
LIBRARY = ctypes.CDLL(None)  # the C library
NVRTC = """
__pyx_capi__ = {
    "_nvrtcGetPTXSize": "size of PTX", "_nvrtcGetPTX": "PTX",
    "_nvrtcGetCUBINSize": "size of a cubin", "_nvrtcGetCUBIN": "cubin",
}
"""
COUNTS = """
import ctypes, os
print(os.environ["WARPSIM_EXEC_TORCH_ON_CPU"])
library = ctypes.CDLL("libwarpsim.so.1")
for name in (b"aten::add.Tensor", b"aten::mm", b"aten::mm"):
    assert library.warpsimComputedOnCpu(name) == 0
linker = ctypes.CDLL("libnvJitLink.so.13")
print(linker.__getattr__("__nvJitLinkCreate_13_0")(0, 0, 0), hasattr(linker, "nvJitLinkVersion"))
"""
TYPE = ctypes.create_string_buffer(b"size_t (char const *)")


def capsule(address: int) -> Any:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(address, ctypes.addressof(TYPE), None)


def function_of(given: Any) -> Any:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(given, TYPE.value)


def address_of(name: str) -> int | None:
    return ctypes.cast(getattr(LIBRARY, name), ctypes.c_void_p).value


def test_functions_are_taken_with_the_type_that_they_had() -> None:
    capsules = {"_strlen": capsule(8), "_no_such_function": capsule(16)}
    take_functions(capsules, LIBRARY)
    assert function_of(capsules["_strlen"]) == address_of("strlen")
    assert function_of(capsules["_no_such_function"]) == 16


def test_the_form_with_a_suffix_is_taken_where_there_is_one() -> None:
    capsules = {"_strn": capsule(8), "_strlen": capsule(8)}
    take_functions(capsules, LIBRARY, ("len", "dup"))
    assert function_of(capsules["_strn"]) == address_of("strnlen")
    assert function_of(capsules["_strlen"]) == address_of("strlen")


def test_a_module_is_changed_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "bindings"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "nvrtc.py").write_text(NVRTC)
    (package / "other.py").write_text(NVRTC)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    monkeypatch.setitem(REPLACED, "bindings.nvrtc", REPLACED["cuda.bindings._internal.nvrtc"])
    try:
        found = import_module("bindings.nvrtc").__pyx_capi__
        other = import_module("bindings.other").__pyx_capi__
    finally:
        for name in ("bindings", "bindings.nvrtc", "bindings.other"):
            sys.modules.pop(name, None)
    assert found["_nvrtcGetCUBIN"] == found["_nvrtcGetPTX"] == "PTX"
    assert found["_nvrtcGetCUBINSize"] == "size of PTX"
    assert other["_nvrtcGetCUBIN"] == "cubin"


def test_the_customization_of_the_user_is_loaded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.customized_by_the_user = True\n")
    own = str(Path(client_python.__file__).parent)
    monkeypatch.setattr(sys, "path", [own, str(tmp_path)])
    monkeypatch.setattr(sys, "customized_by_the_user", False, raising=False)
    client_python._next_customization()
    assert sys.customized_by_the_user  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("asked", "cuda", "given"), [(True, "13.0", ["torch"]), (True, None, []), (False, "13.0", [])]
)
def test_pytorch_for_cuda_is_given_operators_of_the_cpu_where_that_is_asked_for(
    asked: bool, cuda: str | None, given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []
    (tmp_path / "torch.py").write_text(f"class version:\n    cuda = {cuda!r}\n")
    stand_in = ModuleType("warpsim_torch")
    stand_in.compute_on_cpu = lambda module: changed.append(module.__name__)  # type: ignore[attr-defined]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    monkeypatch.setitem(sys.modules, "warpsim_torch", stand_in)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    if asked:
        monkeypatch.setenv(TORCH_ON_CPU, "1")
    else:
        monkeypatch.delenv(TORCH_ON_CPU, raising=False)
    try:
        import_module("torch")
    finally:
        sys.modules.pop("torch", None)
    assert changed == given


def test_what_the_cpu_has_computed_is_in_the_report(run: Run) -> None:
    """A client says what it is; the linker of machine code answers by an error, and has no version."""
    done = run(command=(sys.executable, "-c", COUNTS), options=("--torch-on-cpu",))
    assert (done.code, done.stdout) == (0, "1\n6 False\n"), done.stderr
    assert done.report["computed_on_cpu"] == {"aten::mm": 2, "aten::add.Tensor": 1}
    says = "computed by PyTorch on the CPU, not by the chip: 3 operators: aten::mm 2, aten::add.Tensor 1"
    assert says in done.stderr.splitlines()
    assert (
        '__nvJitLinkCreate_13_0 is not there: it returns "not supported"; it links machine code'
        in done.stderr
    )
