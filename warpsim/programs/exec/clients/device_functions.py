"""The functions of the device runtime that cooperative grids and conditional nodes call, in PTX.

libcudadevrt.a has machine code. The handle of a grid is the address of what it synchronises by, in %envreg1
and %envreg2; that of a condition of a graph is the address of its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_EXTERN = re.compile(r"\.extern\s+\.func\b\s+(?:\([^)]*\)\s*)?(?P<name>[\w$%]+)")
DEVICE_FUNCTIONS = {
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
    "cudaGraphSetConditional": """
.visible .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value)
{
.reg .b64 %address; .reg .b32 %value;
ld.param.b64 %address, [handle]; ld.param.b32 %value, [value];
st.global.b32 [%address], %value;
ret;
}
""",
}


def device_functions(texts: Sequence[str]) -> Iterator[str]:
    """Yield the functions of the device runtime that PTX texts declare and do not define.

    The counter of a grid behind its handle counts CTAs in its low bits; the top bit changes with the last.
    """
    declared = {found["name"] for text in texts for found in _EXTERN.finditer(text)}
    yield from (made for name, made in DEVICE_FUNCTIONS.items() if name in declared)
