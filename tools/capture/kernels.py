"""The PTX of a kernel that executes one instruction on many cases, and where a case lies in memory.

A thread block of one warp or warpgroup takes one case, the block number saying which: it loads the registers,
for wgmma fills shared memory, executes the instruction once, and stores D. The bytes of a case are those of a
vector set: operands one after the other, each (lanes, registers). Immediates stand in the text, so that every
combination of them is a kernel of its own.

Knows the statements around an instruction, and the order of its operands (PTX ISA 9.1, sections 9.7.14.5.14,
9.7.14.6.3, 9.7.15.5.2 and 9.7.15.6.3). Does not know drivers, or what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from warpsim.base.errors import OperandError
from warpsim.isa.architectures import ARCHITECTURES
from warpsim.isa.instruction import Instruction

Array = npt.NDArray[Any]

ENTRY = "capture"
ALIGNMENT = 16  # of what a thread loads at once
SHARED_ALIGNMENT = 1024  # of the widest swizzle: moving a tile by so much does not change its pattern

DEFAULTS: dict[str, int] = {
    "selector": 0,
    "byte_id_a": 0,
    "thread_id_a": 0,
    "byte_id_b": 0,
    "thread_id_b": 0,
    "scale_d": 1,
    "imm_scale_a": 1,
    "imm_scale_b": 1,
    "imm_trans_a": 0,
    "imm_trans_b": 0,
}

_REGISTER_TYPES = {"f32": "f32", "s32": "s32", "f64": "f64"}  # of C and D; the others are untyped
_VECTOR = 4  # words that a thread copies at once


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """PTX text with one entry of two pointers: cases in, D registers out.

    ``threads`` are those of a block, which is one case; ``shared_bytes`` is the dynamic shared memory that it
    needs. A case has ``input_bytes``, in which every operand has its offset, and ``output_bytes`` of D.
    """

    ptx: str
    threads: int
    shared_bytes: int
    offsets: Mapping[str, int]
    input_bytes: int
    output_bytes: int
    entry: str = ENTRY


def build_kernel(
    instruction: Instruction, arrays: Mapping[str, Array], immediates: Mapping[str, int]
) -> Kernel:
    """Return the kernel for cases with these operands: ``arrays`` by their names in warpsim.execute, cases
    in front.

    ``immediates`` that are left out have the defaults of warpsim.execute. Raises OperandError for an
    instruction without a target.
    """
    if instruction.target is None:
        raise OperandError(f"{instruction} has no target: decode it with target='sm_…'")
    return Writer(instruction, arrays, DEFAULTS | dict(immediates)).kernel()


def version_of(instruction: Instruction) -> str:
    """Return the lowest PTX version that has the form and the target: old drivers know no newer ones."""
    major, minor = max(instruction.since, ARCHITECTURES[str(instruction.target)].since)
    return f"{major}.{minor}"


def _rounded_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _names(operand: str, count: int) -> str:
    return "{" + ", ".join(f"%{operand}{i}" for i in range(count)) + "}"


class Writer:
    """Writes the text of one kernel."""

    def __init__(
        self, instruction: Instruction, arrays: Mapping[str, Array], immediates: Mapping[str, int]
    ) -> None:
        self.instruction = instruction
        self.given = instruction.registers
        self.immediates = immediates
        self.sizes = {name: array[0].nbytes for name, array in arrays.items()}
        self.shared_bytes = _rounded_up(self.sizes.get("shared", 0), ALIGNMENT)
        self.word = instruction.register_bits // 8
        self.threads = instruction.lanes

    def kernel(self) -> Kernel:
        """Return the kernel."""
        offsets, size = self.offsets()
        output = self.threads * self.given["d"] * self.word
        return Kernel(
            ptx="\n".join(self.lines(offsets, size, output)) + "\n",
            threads=self.threads,
            shared_bytes=self.shared_bytes,
            offsets=offsets,
            input_bytes=size,
            output_bytes=output,
        )

    def offsets(self) -> tuple[dict[str, int], int]:
        """Return where the operands of a case begin, each on a boundary, and the bytes of all of them."""
        offsets, end = dict[str, int](), 0
        for name, size in self.sizes.items():
            offsets[name] = end
            end += _rounded_up(size, ALIGNMENT)
        return offsets, end

    # --- text ---

    def lines(self, offsets: Mapping[str, int], input_bytes: int, output_bytes: int) -> Iterator[str]:
        """Yield the lines of the module."""
        form = self.instruction
        yield f"// {form.mnemonic}"
        yield f".version {version_of(form)}"
        yield f".target {form.target}"
        yield ".address_size 64"
        yield ""
        if self.shared_bytes:
            yield f".extern .shared .align {SHARED_ALIGNMENT} .b8 tiles[];"
            yield ""
        yield f".visible .entry {ENTRY}(.param .u64 inputs, .param .u64 outputs)"
        yield f".reqntid {self.threads}, 1, 1"
        yield "{"
        body = (
            *self.declarations(),
            *self.pointers(input_bytes, output_bytes),
            *self.loads(offsets),
            *(self.warpgroup(offsets) if self.shared_bytes else [self.statement()]),
            *self.stores(),
            "ret;",
        )
        yield from (f"    {line}" for line in body)
        yield "}"

    def declarations(self) -> Iterator[str]:
        """Yield the registers."""
        yield ".reg .b64 %input, %output, %from, %to;"
        yield ".reg .b32 %lane, %case;"
        for operand, count in self.given.items():
            if operand in self.sizes or operand in ("c", "d"):
                yield f".reg .{self.type_of(operand)} %{operand}<{count}>;"
        if self.shared_bytes:
            yield ".reg .b64 %a_desc, %b_desc, %low, %moved;"
            yield ".reg .b32 %tile, %at, %copy<4>;"
            yield ".reg .pred %accumulate, %copies;"

    def type_of(self, operand: str) -> str:
        """Return the type of an operand's registers."""
        untyped = f"b{self.instruction.register_bits if operand in ('a', 'b', 'c', 'd') else 32}"
        if operand not in ("c", "d"):
            return untyped
        return _REGISTER_TYPES.get(self.instruction.format(operand).name, untyped)

    def pointers(self, input_bytes: int, output_bytes: int) -> Iterator[str]:
        """%input and %output are those of the case."""
        yield "mov.u32 %lane, %tid.x;"
        yield "mov.u32 %case, %ctaid.x;"
        for name, size in (("input", input_bytes), ("output", output_bytes)):
            yield f"ld.param.u64 %{name}, [{name}s];"
            yield f"cvta.to.global.u64 %{name}, %{name};"
            yield f"mad.wide.u32 %{name}, %case, {size}, %{name};"

    def loads(self, offsets: Mapping[str, int]) -> Iterator[str]:
        """Yield the registers of every operand that is in registers."""
        for operand, count in self.given.items():
            if operand not in self.sizes:
                continue
            kind = self.type_of(operand)
            each = int(kind[1:]) // 8
            yield f"mad.wide.u32 %from, %lane, {each * count}, %input;"
            for index in range(count):
                yield f"ld.global.{kind} %{operand}{index}, [%from+{offsets[operand] + each * index}];"

    def stores(self) -> Iterator[str]:
        """Yield the stores of D."""
        kind, count = self.type_of("d"), self.given["d"]
        yield f"mad.wide.u32 %to, %lane, {self.word * count}, %output;"
        for index in range(count):
            yield f"st.global.{kind} [%to+{self.word * index}], %d{index};"

    # --- mma ---

    def statement(self) -> str:
        """Return the mma."""
        form, value = self.instruction, self.immediates
        operands = [_names(operand, self.given[operand]) for operand in "dabc"]
        if form.sparse:
            operands += ["%e0", hex(value["selector"])]
        for side in "ab" if form.scale else "":
            ids = f"{{{value[f'byte_id_{side}']}, {value[f'thread_id_{side}']}}}"
            operands += [f"%scale_{side}0", ids]
        return f"{form.mnemonic} {', '.join(operands)};"

    # --- wgmma ---

    def warpgroup(self, offsets: Mapping[str, int]) -> Iterator[str]:
        """Shared memory, descriptors, the accumulator, and the instruction with what must stand around it."""
        yield "mov.u32 %tile, tiles;"
        yield from self.fill(offsets["shared"])
        yield "fence.proxy.async;"
        yield "bar.sync 0;"
        for name in ("a_desc", "b_desc"):
            if name in offsets:
                yield from self.descriptor(name, offsets[name])
        yield f"mov.pred %accumulate, {self.immediates['scale_d']};"
        yield from self.accumulator()
        yield "wgmma.fence.sync.aligned;"
        yield self.asynchronous_statement()
        yield "wgmma.commit_group.sync.aligned;"
        yield "wgmma.wait_group.sync.aligned 0;"

    def fill(self, offset: int) -> Iterator[str]:
        """Yield every thread copies 16 bytes a round; in the last round perhaps not all of them do."""
        step = self.threads * _VECTOR * 4
        yield f"mad.wide.u32 %from, %lane, {_VECTOR * 4}, %input;"
        yield f"mad.lo.u32 %at, %lane, {_VECTOR * 4}, %tile;"
        copies = _names("copy", _VECTOR)
        for start in range(0, self.shared_bytes, step):
            threads, guard = (self.shared_bytes - start) // (_VECTOR * 4), ""
            if threads < self.threads:
                guard = "@%copies "
                yield f"setp.lt.u32 %copies, %lane, {threads};"
            yield f"{guard}ld.global.v4.b32 {copies}, [%from+{offset + start}];"
            yield f"{guard}st.shared.v4.b32 [%at+{start}], {copies};"

    def descriptor(self, name: str, offset: int) -> Iterator[str]:
        """Yield descriptors count from the start of the tiles; their low 14 bits are an address divided by
        16.
        """
        yield f"ld.global.u64 %{name}, [%input+{offset}];"
        yield "cvt.u64.u32 %moved, %tile;"
        yield "shr.u64 %moved, %moved, 4;"
        yield f"add.u64 %low, %{name}, %moved;"
        yield "and.b64 %low, %low, 0x3fff;"
        yield f"and.b64 %{name}, %{name}, 0xffffffffffffc000;"
        yield f"or.b64 %{name}, %{name}, %low;"

    def accumulator(self) -> Iterator[str]:
        """Yield D is read and written: it starts as C, or as zeros where C is not given."""
        given = "c" in self.sizes
        for index in range(self.given["d"]):
            yield f"mov.b32 %d{index}, {f'%c{index}' if given else 0};"

    def asynchronous_statement(self) -> str:
        """Return the wgmma."""
        form, value = self.instruction, self.immediates
        in_registers = "a" in self.sizes
        a = _names("a", self.given["a"]) if in_registers else "%a_desc"
        operands = [_names("d", self.given["d"]), a, "%b_desc"]
        if form.sparse:
            operands += ["%e0", hex(value["selector"])]
        operands.append("%accumulate")
        if form.a.is_float:
            operands += [str(value["imm_scale_a"]), str(value["imm_scale_b"])]
        if form.a.bits == 16:
            transposed = [] if in_registers else [str(value["imm_trans_a"])]
            operands += [*transposed, str(value["imm_trans_b"])]
        return f"{form.mnemonic} {', '.join(operands)};"
