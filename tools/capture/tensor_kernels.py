"""The PTX of a kernel that executes one tcgen05.mma of a CTA on many cases.

A thread is a lane of tensor memory: it brings the words of its lane by tcgen05.st, one thread issues the
instruction, and when its commit has arrived every thread stores the words of D of its lane. A and B are tiles
behind shared-memory descriptors. PTX ISA 9.3, sections 9.7.17.7 to 9.7.17.11. Does not know drivers, or what
the numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from warpsim.base.errors import NotModelled
from warpsim.isa.instruction import Instruction

from .kernels import Array, Kernel, Writer

OPCODE = "tcgen05"
_CELLS = ("c", "scale_a", "scale_b")  # operands that lie in tensor memory, in the order of their columns
_PLACES = {"c": "d", "scale_a": "sfa", "scale_b": "sfb"}  # registers with their addresses
_LARGEST = 128  # columns that a statement loads or stores


def tensor_kernel(
    instruction: Instruction, arrays: Mapping[str, Array], immediates: Mapping[str, int]
) -> Kernel:
    """Return the kernel for cases with these operands; raises NotModelled for pairs, sparse A and A in
    tensor memory.
    """
    if instruction.lanes > 128 or instruction.sparse or "a" in arrays:
        raise NotModelled(f"{instruction}: kernels take dense forms of a CTA, with A behind a descriptor")
    return _TensorWriter(instruction, arrays, immediates).kernel()


def _pieces(count: int) -> Iterator[tuple[int, int]]:
    """Yield the first column and the number of columns of each statement: powers of two."""
    first = 0
    while first < count:
        size = min(_LARGEST, 1 << (count - first).bit_length() - 1)
        yield first, size
        first += size


class _TensorWriter(Writer):
    """Writes the text of one kernel; %base is where its columns begin, and %where the lanes of a warp."""

    def declarations(self) -> Iterator[str]:
        """Yield the variables of a thread, and of the CTA what the allocation and the commit need."""
        yield ".shared .b32 allocated;"
        yield ".shared .align 8 .b64 complete;"
        yield ".reg .b64 %input, %output, %from, %to, %a_desc, %b_desc, %low, %moved;"
        yield ".reg .b32 %lane, %case, %tile, %at, %copy<4>, %base, %where, %address, %sfa, %sfb, %idesc;"
        yield ".reg .pred %copies, %first, %warp, %over;"
        for operand in (*_CELLS, "d"):
            if operand in self.sizes or operand == "d":
                yield f".reg .b32 %{operand}<{self.given[operand]}>;"

    def warpgroup(self, offsets: Mapping[str, int]) -> Iterator[str]:
        """Yield the allocation, the operands in both memories, the instruction, and the words of D."""
        yield "setp.eq.u32 %first, %lane, 0;"
        yield "setp.lt.u32 %warp, %lane, 32;"
        yield "@%warp tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [allocated], 512;"
        yield "@%first mbarrier.init.shared::cta.b64 [complete], 1;"
        yield "mov.u32 %tile, tiles;"
        yield from self.fill(offsets["shared"])
        yield "fence.proxy.async;"
        yield "bar.sync 0;"
        yield "ld.shared.b32 %base, [allocated];"
        yield "and.b32 %where, %lane, 96;"
        yield "shl.b32 %where, %where, 16;"
        yield "add.u32 %where, %where, %base;"
        yield from self.cells()
        yield from self.multiplication(offsets)
        yield from self.result()

    def columns(self) -> dict[str, int]:
        """Return the first column of each operand in tensor memory; D is where C is."""
        places, end = dict[str, int](), 0
        for operand in _CELLS:
            if operand in self.given:
                places[operand] = end
                end += self.given[operand]
        return places

    def cells(self) -> Iterator[str]:
        """Yield the stores of operands into tensor memory, and what makes them visible to the instruction."""
        for operand, place in self.columns().items():
            if operand not in self.sizes:
                continue
            for first, size in _pieces(self.given[operand]):
                words = ", ".join(f"%{operand}{first + each}" for each in range(size))
                yield f"add.u32 %address, %where, {place + first};"
                yield f"tcgen05.st.sync.aligned.32x32b.x{size}.b32 [%address], {{{words}}};"
        yield "tcgen05.wait::st.sync.aligned;"
        yield "tcgen05.fence::before_thread_sync;"
        yield "bar.sync 0;"
        yield "tcgen05.fence::after_thread_sync;"

    def multiplication(self, offsets: Mapping[str, int]) -> Iterator[str]:
        """Yield the instruction of one thread, and the wait of all for its commit."""
        for name in ("a_desc", "b_desc"):
            yield from self.descriptor(name, offsets[name])
        for operand, place in self.columns().items():
            if operand != "c":
                yield f"add.u32 %{_PLACES[operand]}, %base, {place};"
        yield f"mov.b32 %idesc, {self.instruction.descriptor:#010x};"
        scales = "[%sfa], [%sfb], " if self.instruction.scale else ""
        enabled = self.immediates.get("enable_input_d", 1)
        name = self.instruction.mnemonic
        yield f"@%first {name} [%base], %a_desc, %b_desc, %idesc, {scales}{enabled};"
        commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
        yield f"@%first {commit} [complete];"
        yield "again:"
        yield "mbarrier.try_wait.parity.shared::cta.b64 %over, [complete], 0;"
        yield "@!%over bra again;"
        yield "tcgen05.fence::after_thread_sync;"

    def result(self) -> Iterator[str]:
        """Yield the loads of D, and the end of the allocation."""
        for first, size in _pieces(self.given["d"]):
            words = ", ".join(f"%d{first + each}" for each in range(size))
            yield f"add.u32 %address, %where, {first};"
            yield f"tcgen05.ld.sync.aligned.32x32b.x{size}.b32 {{{words}}}, [%address];"
        yield "tcgen05.wait::ld.sync.aligned;"
        yield "bar.sync 0;"
        yield "@%warp tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 512;"

    def type_of(self, operand: str) -> str:
        """Return the type of the registers of an operand: words of tensor memory."""
        return "b32"
