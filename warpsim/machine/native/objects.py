"""Machine code of functions: compiled by LLVM for this processor, kept in the user's cache, loaded at need.

It calls nothing: an object that lacks a function of a library is refused. An object that has what LLVM is
known to select wrongly is compiled again without AVX-512 (wrong_folds.py), and a process uses no function
before the self-test has passed. An object is kept under the digest of its text, the processor, the version of
LLVM and what objects are searched for, behind a digest of its own; what is damaged is compiled again. Of each
a note is kept, too, under what it was made of, so that a process does not have to write the text of what is
not there. Where there is no LLVM, or it does not know this text, there are no functions. Knows text and
bytes; does not know statements.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from threading import RLock
from typing import Any

from ...base.files.kept import KeptFiles
from . import self_test
from .wrong_folds import WRONG_FOLDS, wrong_folds

Function = Callable[[Any, int, Any, Any], int]
_KEPT = KeptFiles("machine-code", 64 << 20)
_NOTES = KeptFiles("machine-code-notes", 1 << 18)
_LEVEL = 2


class NoCompiler(Exception):
    """There is no LLVM here that compiles such text."""


class Compiler:
    """LLVM for this processor."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self.llvm = llvm
        if llvm.llvm_version_info < (20, 0):
            raise NoCompiler("LLVM is older than 20")
        if sys.platform != "linux":
            raise NoCompiler("objects are looked through as Linux has them")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features()
        self.name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
        self.features = "" if self.name == "generic" else features.flatten()
        self.machine = self._machine(self.features)
        masks = "+avx512f" in self.features.split(",")
        self.narrow = self._machine(f"{self.features},-avx512f") if masks else None
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)
        self.lock = RLock()
        self.whole = True  # whether no thread that compiled is missing
        self.functions: dict[str, Function] = {}  # by name
        self.passes: bool | None = None  # the self-test; None before it
        os.register_at_fork(after_in_child=self._disable_in_fork)

    def _machine(self, features: str) -> Any:
        options = {"cpu": self.name, "features": features, "opt": _LEVEL, "jit": True}
        target = self.llvm.Target.from_default_triple()
        return target.create_target_machine(**options, reloc="default", codemodel="jitdefault")

    def _disable_in_fork(self) -> None:
        """Compile nothing in a fork that lacks the thread which was compiling: LLVM is as that left it."""
        self.whole = self.lock.acquire(blocking=False)
        self.lock = RLock()

    def compiled(self, text: str) -> bytes:
        """Return the object of a function, without AVX-512 where LLVM folds wrongly; raises NoCompiler."""
        found = self._emit_object(text, self.machine)
        if self.narrow is not None and wrong_folds(found):
            found = self._emit_object(text, self.narrow)
        if not found.startswith(_MAGIC):
            raise NoCompiler("an object that is not ELF of 64 bits")
        if calls_others(found):
            raise NoCompiler("this processor needs functions of a library for it")
        return found

    def _emit_object(self, text: str, machine: Any) -> bytes:
        llvm = self.llvm
        try:
            module = llvm.parse_assembly(text)
            module.triple, module.data_layout = llvm.get_default_triple(), str(machine.target_data)
            module.verify()
        except RuntimeError as error:
            raise NoCompiler(str(error)) from None
        options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
        options.loop_vectorization = True
        options.loop_unrolling = options.loop_interleaving = options.slp_vectorization = False
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        found: bytes = machine.emit_object(module)
        return found

    def loaded(self, content: bytes, name: str) -> Function:
        """Return the function of an object, which is the only one of this name in the process."""
        self.engine.add_object_file(self.llvm.ObjectFileRef.from_data(content))
        self.engine.finalize_object()
        address = self.engine.get_function_address(name)
        kind = ctypes.PYFUNCTYPE(
            ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
        )
        return kind(address)


def calls_others(content: bytes) -> bool:
    """Return whether an object needs what it does not have: a symbol that lies in no section (ELF-64)."""
    (sections,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    for place in range(sections, sections + size * count, size):
        (kind,) = struct.unpack_from("<I", content, place + 4)
        start, length = struct.unpack_from("<QQ", content, place + 24)
        if kind == _SYMBOLS:
            symbols = struct.iter_unpack("<IBBHQQ", content[start : start + length])
            if any(name and not section for name, _, _, section, _, _ in symbols):
                return True
    return False


_SYMBOLS = 2  # the type of the section of symbols
_MAGIC = b"\x7fELF\x02\x01"  # of 64 bits, the lowest byte first


@cache
def _compiler() -> Compiler | None:
    try:
        return Compiler()
    except (ImportError, NoCompiler, RuntimeError, AttributeError):
        return None


def available() -> bool:
    """Return whether functions can be compiled here."""
    return expected() and _compiler() is not None


def expected() -> bool:
    """Return whether functions can probably be compiled here: LLVM is there, which takes long to load."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and _is_there() and not failed_self_test()


@cache
def _is_there() -> bool:
    return find_spec("llvmlite") is not None


def is_kept(text: str) -> bool:
    """Return whether the function of a text needs no compiler: it is loaded, or in the user's cache."""
    compiler = _compiler()
    assert compiler is not None
    name = _name(compiler, text)
    return name in compiler.functions or _KEPT.find(name) is not None


def note(origin: str) -> None:
    """Note for the next processes that what this says has been made to machine code."""
    compiler = _compiler()
    if compiler is not None:
        _NOTES.keep(_name(compiler, origin), b"")


def is_noted(origin: str) -> bool:
    """Return whether a process has noted this; its function may be gone, and that of other text be noted."""
    compiler = _compiler() if _NOTES.any() else None
    return compiler is not None and _NOTES.find(_name(compiler, origin)) is not None


def function(text: str) -> Function:
    """Return the function of a text, whose place is taken by ``@basic_block``. Raises NoCompiler."""
    compiler = _compiler()
    if compiler is None:
        raise NoCompiler("there is no LLVM here")
    if not _passes(compiler):
        raise NoCompiler(failed_self_test())
    return _function(compiler, text)


def _function(compiler: Compiler, text: str) -> Function:
    name = _name(compiler, text)
    with compiler.lock:
        known = compiler.functions.get(name)
        if known is None and not compiler.whole:
            raise NoCompiler("this process was forked while its parent compiled")
        if known is None:
            content = _KEPT.find(name)
            if content is None:
                content = compiler.compiled(text.replace("@basic_block", f"@{name}"))
                _KEPT.keep(name, content)
            known = compiler.functions[name] = compiler.loaded(content, name)
    return known


def _passes(compiler: Compiler) -> bool:
    """Return whether machine code passes its test, which the first caller makes; warn where it does not."""
    with compiler.lock:
        if compiler.passes is None:
            found = self_test.failure(partial(_function, compiler))
            compiler.passes = not found
            if found:
                version = ".".join(map(str, compiler.llvm.llvm_version_info))
                _FAILURES.append(
                    f"machine code of statements is not used: its self-test failed ({found}; LLVM {version}, "
                    f"{compiler.name}); results are right, launches are slower"
                )
                warnings.warn(_FAILURES[0], RuntimeWarning, stacklevel=3)
        return compiler.passes


_FAILURES: list[str] = []


def failed_self_test() -> str:
    """Return why this process uses no machine code though there is LLVM, "" where it may use it."""
    return _FAILURES[0] if _FAILURES else ""


def _name(compiler: Compiler, text: str) -> str:
    """Return the name of a function: another for another text, processor, compiler or judge of objects."""
    llvm = compiler.llvm
    parts = (
        text,
        compiler.name,
        compiler.features,
        str(llvm.llvm_version_info),
        str(_LEVEL),
        repr(WRONG_FOLDS),
    )
    return f"block_{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}"
