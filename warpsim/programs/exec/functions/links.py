"""cuLink*, which joins PTX. Libraries that are linked hold machine code, and are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..calls import Call, Handle, Int, Pointer, Size, Unsigned, row
from ..clients.device_functions import DEVICE_FUNCTIONS, device_functions
from ..clients.ptx_linking import linked
from ..error_codes import CudaError
from ..jit_options import JitOptions

_INPUT_CUBIN, _INPUT_PTX, _INPUT_LIBRARY = 0, 1, 4  # of CUjitInputType
KEPT = "// most registers of a thread: "
_NAMES = {_INPUT_CUBIN: "a cubin", 2: "a fat binary", 3: "an object", _INPUT_LIBRARY: "a library"}
_ARCHIVE = b"!<arch>\n"
_PTX_BEGINS = re.compile(rb"\s*(//|\.version)")  # what stands for a cubin, where a compiler's PTX is kept


@dataclass(eq=False)
class Link:
    """Parts that are linked: PTX texts; the result is kept for the client.

    The result is PTX, whose last line keeps the most registers of a thread: clients copy images.
    """

    parts: list[bytes] = field(default_factory=list)
    most_registers: int | None = None

    def text(self) -> str:
        """Return the result."""
        kept = "" if self.most_registers is None else f"\n{KEPT}{self.most_registers}\n"
        texts = [part.decode(errors="surrogateescape") for part in self.parts]
        return linked(texts, device_functions(texts)) + kept


@row("cuLinkCreate_v2")
def link_create(call: Call, count: Unsigned, options: Pointer, values: Pointer, result: Pointer) -> None:
    """Begin to link."""
    asked = JitOptions(call, count, options, values)
    call.put(result, "Q", call.process.handle(Link(most_registers=asked.most_registers)))


@row("cuLinkAddData_v2")
def link_add_data(call: Call, state: Handle, kind: Int, data: Pointer, size: Size, name: Pointer) -> None:
    """Add PTX."""
    called = call.text(name) if name else "data"
    _add(call, call.process.held(state, Link, "link"), kind, call.read(data, size), called)


@row("cuLinkAddFile_v2")
def link_add_file(call: Call, state: Handle, kind: Int, name: Pointer) -> None:
    """Add a file of PTX."""
    link = call.process.held(state, Link, "link")
    file = call.text(name)
    _add(call, link, kind, call.process.file_content(file), file)


def _add(call: Call, link: Link, kind: int, content: bytes, name: str) -> None:
    """Add PTX, or ignore a library: a kernel that needs a symbol of it is refused by that name."""
    if kind == _INPUT_LIBRARY and content.startswith(_ARCHIVE):
        call.process.tally.say(
            f"{name} is linked without its machine code: of its functions there are "
            f"{', '.join(DEVICE_FUNCTIONS)}"
        )
    elif kind == _INPUT_PTX or (kind == _INPUT_CUBIN and _PTX_BEGINS.match(content)):
        link.parts.append(content.rstrip(b"\0"))
    else:
        what = _NAMES.get(kind, f"input of type {kind}")
        raise CudaError("InvalidPtx", f"{call.name}: {what} cannot be linked here: compile to PTX")


@row("cuLinkComplete")
def link_complete(call: Call, state: Handle, image: Pointer, size: Pointer) -> None:
    """Give all PTX together, as a module to load."""
    link = call.process.held(state, Link, "link")
    text = link.text()
    call.put(image, "Q", call.kept(text))
    call.put_some(size, "Q", len(text.encode(errors="surrogateescape")) + 1)


@row("cuLinkDestroy")
def link_destroy(call: Call, state: Handle) -> None:
    """Forget a link."""
    call.process.drop(state, Link, "link")
