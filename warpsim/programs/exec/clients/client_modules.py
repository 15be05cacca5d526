"""Modules of a client: fat binaries that its runtime registers, and images that it loads itself.

An image is unpacked and loaded when one of its kernels or variables is first asked for, since programs
register far more than they use. Knows images and names; does not know launches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from ....base.errors import WarpsimError
from ....isa.architectures import ARCHITECTURES
from ....machine.load.program import Module
from ....machine.run.wave import Parameter
from ...launch.launching import LaunchableKernel, LoadedModule, load_text
from ...launch.loading import source_lines
from ..error_codes import CudaError, error_of
from ..fatbinary import MAGIC, Entry, best_ptx, containers, entries_of
from .device_functions import device_functions
from .ptx_linking import linked

_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d+)([af]?)", re.MULTILINE)
_CONTAINER = MAGIC.to_bytes(4, "little")
_ELF = b"\x7fELF"
_MOST_LETTERS = 32 << 20  # of PTX, of modules that are idle
_NESTED = "__cudaCDP"  # begins the names of functions that launch from kernels
_NO_PARALLELISM = "\nkernels do not launch kernels here: launch them from the host"
Text = tuple[str, str, str]  # PTX, its name, and the chip


class ModulePool:
    """Loaded modules that no process uses any more, for processes that load the same text.

    A module is of one image at a time, since each image has variables of its own.
    """

    def __init__(self) -> None:
        self._idle: dict[Text, list[LoadedModule]] = {}  # those used last at the end
        self._letters = 0

    def take(self, text: Text) -> LoadedModule:
        """Return a module of a PTX text, its name and the chip. Raises CudaError."""
        idle = self._idle.get(text)
        if idle:
            self._letters -= len(text[0])
            return idle.pop()
        content, name, chip = text
        try:
            return load_text(content, name, chip, source_lines)
        except WarpsimError as error:
            raise error_of(error) from None

    def give_back(self, module: LoadedModule) -> None:
        """Keep a module, and let go of those that have been idle for the longest time."""
        source = module.module.program.source
        text = (source.text, source.file, module.target)
        self._idle[text] = [*self._idle.pop(text, ()), module]
        self._letters += len(source.text)
        while self._letters > _MOST_LETTERS:
            first = next(iter(self._idle))
            self._letters -= len(first[0]) * len(self._idle.pop(first))


@dataclass(eq=False)
class Image:
    """A module of a client; ``content`` gives its fat binary, PTX or cubin when that is asked for."""

    content: Callable[[], bytes]
    chip: str
    name: str
    pool: ModulePool
    kernels: dict[str, Kernel] = field(default_factory=dict)
    most_registers: int | None = None  # of a thread, as an option of the driver's compiler limits them

    @cached_property
    def loaded(self) -> LoadedModule:
        """The module for the chip. Raises CudaError, which names the fix where there is no PTX."""
        text = self._ptx(self.content()).decode(errors="surrogateescape")
        return self.pool.take((text, f"PTX of {self.name}", self.chip))

    def _ptx(self, content: bytes) -> bytes:
        """Return the PTX that suits the chip."""
        architecture = ARCHITECTURES[self.chip]
        if content.startswith(_ELF):
            raise CudaError("NoKernelImageForDevice", f"{self.name}: the module is SASS alone: {self._fix()}")
        if b".version" in content and not content.startswith(_CONTAINER):
            return content.rstrip(b"\0")
        try:
            whole, *objects = containers(content)
            parts = [self._best(container) for container in objects]
            texts = [part.text().decode(errors="surrogateescape") for part in parts if part is not None]
            if texts and self._best(whole) is None:
                return linked(texts, device_functions(texts)).encode(errors="surrogateescape")
            return self._chosen(list(entries_of(whole)), architecture.number).text()
        except WarpsimError as error:
            raise CudaError("InvalidPtx", f"{self.name}: {error}") from None

    def _best(self, container: bytes) -> Entry | None:
        """Return the PTX of a container for the chip; None where it has none."""
        entries = [entry for entry in entries_of(container) if self._runs(entry)]
        return best_ptx(entries, ARCHITECTURES[self.chip].number)

    def _chosen(self, entries: list[Entry], chip: int) -> Entry:
        """Return the PTX of an image. Raises CudaError."""
        found = best_ptx([entry for entry in entries if self._runs(entry)], chip)
        if found is None:
            held = ", ".join(
                sorted({f"{'PTX' if entry.ptx else 'SASS'} of sm_{entry.chip}" for entry in entries})
            )
            why = f"{self.name} has no PTX for {self.chip}, only {held or 'nothing'}: {self._fix()}"
            raise CudaError("NoKernelImageForDevice", why)
        return found

    def _runs(self, entry: Entry) -> bool:
        """Return whether PTX is for every later chip, or for this."""
        if not entry.ptx:
            return False
        if entry.chip > ARCHITECTURES[self.chip].number:
            return False
        found = _TARGET.search(entry.text()[:8192])
        if found is None or not found[2]:
            return True
        return f"sm_{found[1].decode()}{found[2].decode()}" == self.chip

    def _fix(self) -> str:
        number = ARCHITECTURES[self.chip].name.removeprefix("sm_")
        return f"compile with -gencode arch=compute_{number},code=compute_{number}"

    @cached_property
    def virtual_chip(self) -> int:
        """The number of the chip that the PTX is for, which may be older: 80 for sm_80."""
        found = _TARGET.search(self.module.program.source.text[:8192].encode(errors="replace"))
        return int(found[1]) if found else ARCHITECTURES[self.chip].number

    @property
    def module(self) -> Module:
        """What the machine executes."""
        return self.loaded.module

    def kernel(self, name: str) -> Kernel:
        """Return a kernel by its name in the PTX. Raises CudaError "SymbolNotFound"."""
        if name not in self.kernels:
            if name not in self.loaded.entries:
                raise CudaError("SymbolNotFound", f"{self.name} has no kernel {name}")
            self.kernels[name] = Kernel(self, name)
        return self.kernels[name]


@dataclass(eq=False)
class Kernel:
    """A kernel of an image, and what the host has set for it."""

    image: Image
    name: str
    dynamic_bytes: int | None = None  # of shared memory that launches may ask for; None as it comes
    any_cluster: bool = False  # clusters of sizes that are not portable
    attributes: dict[int, int] = field(default_factory=dict)

    @cached_property
    def launchable(self) -> LaunchableKernel:
        """The kernel, bound. Raises CudaError "InvalidPtx" for statements that are not known."""
        try:
            return self.image.loaded[self.name]
        except WarpsimError as error:
            found = error_of(error)
            more = _NO_PARALLELISM if _NESTED in found.why else ""
            raise CudaError(found.name, found.why + more) from None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, whether it can be executed or not."""
        return self.image.loaded.parameters(self.name)

    @property
    def signature(self) -> str:
        """Its name in C++."""
        return self.launchable.signature


@dataclass(eq=False)
class Library:
    """What cuLibraryLoadData or cuModuleLoadData made of an image."""

    image: Image


@dataclass(eq=False)
class Modules:
    """What the runtime of one process has registered."""

    chip: str
    program: str
    pool: ModulePool
    binaries: dict[int, int] = field(default_factory=dict)  # addresses, by handle
    images: dict[int, Image] = field(default_factory=dict)  # by handle, once asked for
    functions: dict[int, tuple[int, int]] = field(default_factory=dict)  # by host function: handle, name
    variables: dict[int, tuple[int, int]] = field(default_factory=dict)  # by host variable: handle, name
    managed: set[int] = field(default_factory=set)  # that hold the address of a managed variable
    kernels: dict[int, Kernel] = field(default_factory=dict)  # by host function, once asked for
    _made: list[Image] = field(default_factory=list)

    def forked(self) -> Modules:
        """Return what a child has registered after fork: the same, in memory of its own."""
        made = Modules(self.chip, self.program, self.pool, dict(self.binaries), managed=set(self.managed))
        made.functions, made.variables = dict(self.functions), dict(self.variables)
        return made

    def image(self, content: Callable[[], bytes], name: str) -> Image:
        """Make an image."""
        self._made.append(Image(content, self.chip, name, self.pool))
        return self._made[-1]

    def close(self, *, reusable: bool) -> None:
        """Let others use the modules, unless what happened to them is not known."""
        for image in self._made if reusable else ():
            if "loaded" in vars(image):
                self.pool.give_back(image.loaded)
        self._made.clear()
