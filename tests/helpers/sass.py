"""Executes what ptxas makes of one ``mma.sp``: nvdisasm's text, on the 32 lanes of a warp.

Knows the two dozen opcodes of the helpers that sort metadata, and no others: what it does not know raises
KeyError. Each lane reads and writes a row of words of its own; how its address comes about is not looked at.
A matrix instruction is handed to warpsim as the ordered form of its shape, fields taken literally. Opcodes as
the CUDA binary utilities name them; their meaning is that of the PTX instructions they are made for.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import warpsim
from tests.helpers import ptxas
from warpsim import Instruction
from warpsim.isa.formats import FORMATS
from warpsim.isa.fragments import read_fields

Lanes = Any  # uint32 (32,)
MASK = 0xFFFF_FFFF
LANE = np.arange(32, dtype=np.uint32)
_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
_LABEL = re.compile(r"^(\S+):$")
_HINT = re.compile(r"\.(?:reuse|ROW|COL)\b")  # of operands, which have one layout here
_WORDS = {"": 1, "64": 2, "128": 4}  # of a load or store
# Opcodes of addresses, parameters and order, whose results nobody reads here.
_IGNORED = {"LDC", "LDCU", "NOP", "IMAD.WIDE.U32", "IMAD.WIDE", "BSSY", "BSYNC", "WARPSYNC"}


# --- text -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One line: its guard, opcode and operands."""

    guard: str
    opcode: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """The lines of a kernel and its helpers, and which line each label names."""

    steps: tuple[Step, ...]
    labels: dict[str, int]


def parsed(text: str) -> Program:
    """The program of nvdisasm's output."""
    steps, labels = list[Step](), dict[str, int]()
    for line in text.splitlines():
        if label := _LABEL.match(line.strip()):
            labels[label[1]] = len(steps)
        elif found := _LINE.search(line):
            operands = [_HINT.sub("", one.strip()) for one in found[3].split(",")]
            steps.append(Step(found[1] or "PT", found[2], tuple(operands)))
    return Program(tuple(steps), labels)


def disassembled(ptx: str, target: str, folder: Path) -> str:
    """nvdisasm's text of what ptxas makes of a module."""
    (folder / "module.ptx").write_text(ptx)
    assemble = [str(ptxas.program()), f"-arch={target}", "module.ptx", "-o", "module.cubin"]
    subprocess.run(assemble, cwd=folder, check=True, capture_output=True)
    show = [str(ptxas.disassembler()), "-c", "module.cubin"]
    return subprocess.run(show, cwd=folder, check=True, capture_output=True, text=True).stdout


# --- state ------------------------------------------------------------------------------------------


@dataclass
class Warp:
    """Registers and predicates of 32 lanes, and the words that each may load and store."""

    inputs: Any  # uint32 (32, words)
    outputs: Any
    target: str
    fields: set[int] = field(default_factory=set)  # of metadata, as they came to matrix instructions
    registers: dict[str, Lanes] = field(default_factory=lambda: {"R1": np.zeros(32, np.uint32)})  # the stack
    predicates: dict[str, Any] = field(default_factory=dict)

    def read(self, operand: str) -> Lanes:
        """A register, possibly negated or complemented, or a constant."""
        if operand[0] in "-~":
            value = self.read(operand[1:])
            return (-value if operand[0] == "-" else ~value).astype(np.uint32)
        if operand in ("RZ", "URZ"):
            return np.zeros(32, np.uint32)
        if operand[0] == "R":
            return self.registers[operand]
        return np.full(32, int(operand, 0) & MASK, np.uint32)

    def holds(self, operand: str) -> Any:
        """A predicate, or the sign of a register."""
        if operand.endswith(".SIGN"):
            return self.read(operand.removesuffix(".SIGN")).view(np.int32) < 0
        if operand[0] == "!":
            return ~self.holds(operand[1:])
        return np.ones(32, np.bool_) if operand in ("PT", "UPT") else self.predicates[operand]

    def write(self, name: str, value: Any, where: Any) -> None:
        """A register of the lanes where the guard holds."""
        if name != "RZ":
            old = self.registers.get(name, np.zeros(32, np.uint32))
            self.registers[name] = np.where(where, np.asarray(value).astype(np.uint32), old)

    def write_predicate(self, name: str, value: Any, where: Any) -> None:
        """A predicate of those lanes."""
        if name != "PT":
            old = self.predicates.get(name, np.zeros(32, np.bool_))
            self.predicates[name] = np.where(where, value, old)

    def several(self, first: str, count: int) -> Any:
        """``(32, count)``: registers that follow one another."""
        number = int(first.removeprefix("R"))
        return np.stack([self.read(f"R{number + i}") for i in range(count)], axis=-1)


# --- opcodes ----------------------------------------------------------------------------------------


def _lop3(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    found = np.zeros(32, np.uint32)
    for row in (row for row in range(8) if table >> row & 1):
        found |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return found


def _funnel(low: Lanes, shift: Lanes, high: Lanes, options: list[str]) -> Lanes:
    """SHF: of 64 bits, the high word shifted to the right, or the low word to the left."""
    assert "W" not in options
    signed = high.view(np.int32).astype(np.int64) << 32 | low.astype(np.int64)
    both = signed.view(np.uint64) if "S32" not in options else signed
    count = np.minimum(shift, 32).astype(both.dtype)
    if options[0] == "R":
        return (both >> count >> (32 if "HI" in options else 0)).astype(np.uint32)
    return (both << count >> (32 if "HI" in options else 0)).astype(np.uint32)


def _prmt(a: Lanes, selector: Lanes, b: Lanes) -> Lanes:
    source = np.concatenate([one[:, None].view(np.uint8) for one in (a, b)], axis=1)
    found = np.zeros(32, np.uint32)
    for place in range(4):
        nibble = (selector >> np.uint32(4 * place) & np.uint32(15)).astype(np.intp)
        byte = np.take_along_axis(source, (nibble & 7)[:, None], axis=1)[:, 0]
        byte = np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte)
        found |= byte.astype(np.uint32) << np.uint32(8 * place)
    return found


def _shfl(mode: str, value: Lanes, given: Lanes, clamp: Lanes) -> Lanes:
    segment, bound = clamp >> 8 & 31, clamp & 31
    lowest, highest = LANE & segment, LANE & segment | bound & ~segment
    here, there = LANE.astype(np.int64), given.astype(np.int64)
    source = {"IDX": lowest | given & ~segment, "UP": here - there, "DOWN": here + there}[mode]
    inside = source >= highest if mode == "UP" else source <= highest
    return value[np.where(inside, source, LANE).astype(np.intp)]


def _unpacked(value: Lanes, kind: str) -> Lanes:
    """Two f8 codes in the low half become two f16 numbers."""
    dtype = {"E4M3": FORMATS["e4m3"].dtype, "E5M2": FORMATS["e5m2"].dtype}[kind]
    codes = np.stack([value & 0xFF, value >> 8 & 0xFF], axis=-1).astype(np.uint8).view(dtype)
    halves = codes.astype(np.float16).view(np.uint16).astype(np.uint32)
    return halves[:, 0] | halves[:, 1] << np.uint32(16)


def _saturated(a: Lanes, b: Lanes) -> Lanes:
    total = a.view(np.int32).astype(np.int64) + b.view(np.int32)
    return np.clip(total, -(1 << 31), (1 << 31) - 1)


def _added(*terms: Lanes) -> Lanes:
    return np.add.reduce(terms, dtype=np.uint32)


def _float_sum(a: Lanes, b: Lanes) -> Lanes:
    with np.errstate(all="ignore"):
        total = a.view(np.float32) + b.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FFF_FFFF), total.view(np.uint32))


_OF_REGISTERS: dict[str, Callable[..., Lanes]] = {  # the destination is the first operand, registers the rest
    "MOV": lambda a: a,
    "IMAD.SHL.U32": lambda a, b, c: a * b + c,
    "IMAD.MOV.U32": lambda a, b, c: a * b + c,
    "IMAD.IADD": lambda a, b, c: a * b + c,
    "IMAD.U32": lambda a, b, c: a * b + c,
    "IMAD": lambda a, b, c: a * b + c,
    "PRMT": _prmt,
    "VIADD": _added,
    "IADD": _added,
    "VIADD.S32.ISAT": _saturated,
    "IADD.S32.ISAT": _saturated,
    "VIADD.ISAT": _saturated,
    "FADD": _float_sum,
}
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "NE": np.not_equal, "EQ": np.equal, "GE": np.greater_equal, "LT": np.less, "GT": np.greater,
    "LE": np.less_equal,
}  # fmt: skip


def _logic(warp: Warp, operands: tuple[str, ...], where: Any) -> None:
    """LOP3: a predicate says whether any bit is set; a predicate may be or-ed with what it was."""
    named = operands[0] if operands[0].startswith("P") else ""
    destination, a, b, c, table = operands[bool(named) :][:5]
    found = _lop3(warp.read(a), warp.read(b), warp.read(c), int(table, 0))
    assert operands[-1] == "!PT"
    if named:
        warp.write_predicate(named, found != 0, where)
    warp.write(destination, found, where)


def _predicate_logic(warp: Warp, operands: tuple[str, ...], where: Any) -> None:
    first, second, *inputs = operands[:5]
    assert second == "PT"
    words = [np.where(warp.holds(one), MASK, 0).astype(np.uint32) for one in inputs]
    warp.write_predicate(first, _lop3(*words, int(operands[5], 0)) != 0, where)


def _compare(warp: Warp, options: list[str], operands: tuple[str, ...], where: Any) -> None:
    first, second, a, b, other = operands
    assert (second, options[-1]) == ("PT", "AND")
    kind = np.uint32 if "U32" in options else np.int32
    found = _COMPARED[options[0]](warp.read(a).view(kind), warp.read(b).view(kind))
    warp.write_predicate(first, found & warp.holds(other), where)


def _sum(warp: Warp, operands: tuple[str, ...], where: Any) -> None:
    """IADD3, whose predicates of carries nobody reads here."""
    destination, *terms = operands
    assert {one for one in terms if one.lstrip("!").startswith("P")} <= {"PT", "!PT"}
    values = [warp.read(one) for one in terms if not one.lstrip("!").startswith("P")]
    warp.write(destination, _added(*values), where)


def _memory(warp: Warp, step: Step, options: list[str], where: Any) -> None:
    """LDG and STG of one to four words, at the byte offset beside the address."""
    count = _WORDS[next((one for one in options if one in _WORDS), "")]
    load = step.opcode.startswith("LDG")
    register, address = step.operands if load else step.operands[::-1]
    offset = re.search(r"\+(-?0x[0-9a-f]+)\]", address)
    word, number = int(offset[1], 16) // 4 if offset else 0, int(register.strip("RZ") or 0)
    for i in range(count):
        if load:
            warp.write(f"R{number + i}", warp.inputs[:, word + i], where)
        else:
            zero = register == "RZ"
            warp.outputs[:, word + i] = np.where(
                where, 0 if zero else warp.read(f"R{number + i}"), warp.outputs[:, word + i]
            )


def _matrix_form(opcode: str, target: str) -> Instruction:
    """The ordered form of PTX that a sparse matrix instruction executes."""
    unit, sparse, shape, *types = opcode.split(".")
    assert sparse == "SP"
    m, n, k = {"1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32), "16864": (16, 8, 64)}[shape]
    satfinite = ".satfinite" if types[-1] == "SAT" else ""
    if unit == "IMMA":
        d, (a, b) = "s32", (one.lower() for one in types[:2])
    else:
        d, *inputs = (one.lower() for one in types)
        a, b = (inputs * 2)[:2] if inputs else ("f16", "f16")
    mnemonic = f"mma.sp::ordered_metadata.sync.aligned.m{m}n{n}k{k}.row.col{satfinite}.{d}.{a}.{b}.{d}"
    return warpsim.decode(mnemonic, target)


def _matrix(warp: Warp, step: Step, where: Any) -> None:
    assert where.all()
    form = _matrix_form(step.opcode, warp.target)
    destination, a, b, c, e, selector = step.operands
    count = form.registers
    zero = np.zeros((32, count["c"]), np.uint32)
    warp.fields |= set(read_fields(form, warp.several(e, 1), int(selector, 0)).ravel().tolist())
    d = warpsim.execute(
        form,
        a=warp.several(a, count["a"]),
        b=warp.several(b, count["b"]),
        c=zero if c == "RZ" else warp.several(c, count["c"]),
        e=warp.several(e, 1),
        selector=int(selector, 0),
        undefined="fallback",
    )
    number = int(destination.removeprefix("R"))
    for i in range(count["d"]):
        warp.write(f"R{number + i}", d[:, i], where)


# --- running ----------------------------------------------------------------------------------------


def run(program: Program, entry: str, warp: Warp) -> None:
    """Execute an entry to EXIT, leaving the outputs in the warp; raises KeyError for an unknown opcode."""
    place, back = program.labels[entry], list[int]()
    while True:
        step = program.steps[place]
        place += 1
        where = warp.holds(step.guard) if not step.guard.startswith("!U") else np.zeros(32, np.bool_)
        opcode, *options = step.opcode.split(".")
        if opcode == "EXIT":
            return
        if opcode == "CALL":
            back.append(place)
            place = program.labels[re.sub(r"[`()]", "", step.operands[0])]
        elif opcode == "RET":
            place = back.pop()
        elif where.any():
            _one(warp, step, opcode, options, where)


def _one(warp: Warp, step: Step, opcode: str, options: list[str], where: Any) -> None:
    operands = step.operands
    if opcode in _IGNORED or step.opcode in _IGNORED:
        return
    if opcode in ("LDG", "STG"):
        _memory(warp, step, options, where)
    elif opcode in ("HMMA", "IMMA", "QMMA"):
        _matrix(warp, step, where)
    elif opcode == "LOP3":
        _logic(warp, operands, where)
    elif opcode == "PLOP3":
        _predicate_logic(warp, operands, where)
    elif opcode == "ISETP":
        _compare(warp, options, operands, where)
    elif opcode == "IADD3":
        _sum(warp, operands, where)
    else:
        warp.write(*_result(warp, step, opcode, options), where)


def _result(warp: Warp, step: Step, opcode: str, options: list[str]) -> tuple[str, Lanes]:
    """The destination and its value."""
    operands = step.operands
    if opcode == "S2R":
        assert operands[1] in ("SR_LANEID", "SR_TID.X")  # of the only warp
        return operands[0], LANE
    if opcode == "SEL":
        chosen = np.where(warp.holds(operands[3]), warp.read(operands[1]), warp.read(operands[2]))
        return operands[0], chosen
    if opcode == "SHF":
        return operands[0], _funnel(*(warp.read(one) for one in operands[1:]), options)
    if opcode == "SHFL":
        return operands[1], _shfl(options[0], *(warp.read(one) for one in operands[2:]))
    if opcode == "F2FP":
        register, _, half = operands[1].partition(".")
        return operands[0], _unpacked(warp.read(register) >> np.uint32(16 * (half == "H1")), options[1])
    return operands[0], _OF_REGISTERS[step.opcode](*(warp.read(one) for one in operands[1:]))
