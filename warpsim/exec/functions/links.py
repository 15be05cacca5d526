"""cuLink*, which joins PTX, and the functions of the device runtime that cooperative grids call.

Libraries that are linked hold machine code. Of libcudadevrt.a the two functions of cooperative grids are here
in PTX: the handle of a grid is the address of what it synchronises by, in %envreg1 and %envreg2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..calls import Call, Handle, Int, Pointer, Size, Unsigned, row
from ..error_codes import CudaError
from ..jit_options import JitOptions

_INPUT_CUBIN, _INPUT_PTX, _INPUT_LIBRARY = 0, 1, 4  # of CUjitInputType
KEPT = "// most registers of a thread: "
_NAMES = {_INPUT_CUBIN: "a cubin", 2: "a fat binary", 3: "an object", _INPUT_LIBRARY: "a library"}
_ARCHIVE = b"!<arch>\n"
_NAME = r"\s+(?:\([^)]*\)\s*)?(?P<name>[\w$%]+)"  # of a function, behind what it returns
_EXTERN = re.compile(r"\.extern(?P<rest>\s+\.func\b" + _NAME + ")")
_DEFINED = re.compile(r"\.(visible|weak)\s+\.func\b" + _NAME)
_DEVICE = {
    "cudaCGGetIntrinsicHandle": """
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle (.param .b32 scope)
{
.reg .b32 %low, %high; .reg .b64 %address;
mov.b32 %high, %envreg1; mov.b32 %low, %envreg2;
mov.b64 %address, {%low, %high};
st.param.b64 [handle], %address;
ret;
}
""",
    "cudaCGSynchronize": """
.visible .func (.param .b32 status) cudaCGSynchronize (.param .b64 handle, .param .b32 flags)
{
.reg .b32 %x, %y, %z, %size, %step, %old, %now; .reg .b64 %address; .reg .pred %other, %first, %same;
ld.param.b64 %address, [handle];
barrier.sync 0;
mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %other, %x, 0;
@%other bra done;
mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;
mul.lo.u32 %size, %x, %y; mul.lo.u32 %size, %size, %z;
mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.eq.u32 %first, %x, 0;
sub.u32 %step, 0x80000001, %size; selp.b32 %step, %step, 1, %first;
fence.acq_rel.gpu;
atom.global.acq_rel.gpu.add.u32 %old, [%address+4], %step;
wait:
ld.global.acquire.gpu.u32 %now, [%address+4];
xor.b32 %now, %now, %old; setp.ge.s32 %same, %now, 0;
@%same bra wait;
fence.acq_rel.gpu;
done:
barrier.sync 0;
mov.b32 %now, 0; st.param.b32 [status], %now;
ret;
}
""",
}


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
        return joined([*self.parts, *device_functions(self.parts)]) + kept


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
            f"{name} is linked without its machine code: of its functions there are {', '.join(_DEVICE)}"
        )
    elif kind == _INPUT_PTX:
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


def joined(parts: list[bytes]) -> str:
    """Return PTX texts as a single text: the directives of the first, the declarations of all.

    Functions that are .extern in one text, and defined in another, have the linkage of the definition.
    """
    texts = [part.decode(errors="surrogateescape") for part in parts]
    rest = [
        "\n".join(
            line
            for line in text.splitlines()
            if not line.strip().startswith((".version", ".target", ".address_size"))
        )
        for text in texts[1:]
    ]
    together = "\n".join([*texts[:1], *rest])
    linkages = {name: linkage for linkage, name in _DEFINED.findall(together)}

    def linked(found: re.Match[str]) -> str:
        return f".{linkages.get(found['name'], 'extern')}{found['rest']}"

    return _EXTERN.sub(linked, together)


def device_functions(parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the functions of the device runtime that PTX texts declare and do not define.

    The counter of a grid behind its handle counts CTAs in its low bits; the top bit changes with the last.
    """
    text = b"\n".join(parts).decode(errors="surrogateescape")
    declared = {found["name"] for found in _EXTERN.finditer(text)}
    for name, made in _DEVICE.items():
        if name in declared:
            yield made.encode()


@row("cuLinkDestroy")
def link_destroy(call: Call, state: Handle) -> None:
    """Forget a link."""
    call.process.drop(state, Link, "link")
