"""Register traces of real GPUs: logs of register values become vector sets of the chip's results.

A case needs every register of A, B, C, of the metadata and, afterwards, of D. What such logs hold, and lack:

* Values are those before the instruction. D is found in a second log, taken after (``after``), or where a
  later instruction of the same warp names the register, before any visible instruction overwrites it.
* NVBit's tool and CUTracer, unchanged, record getSize() / 4 registers of each operand: only the first, unless
  the instruction is a load or store. They must be changed to record all registers (see HOW_TO_RECORD).
* The selector of sparse forms is visible in the disassembly; whether PTX had ``.sp`` or
  ``.sp::ordered_metadata`` is not: metadata that is always ascending is taken as ordered.
* The chip is not named, and must be given as ``target``. Block-scaled forms take their scale selectors from a
  uniform register, m8n8k4 and f64 forms are several instructions, wgmma reads shared memory: not read here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....isa import fragments
from ....isa.instruction import Instruction
from ....ptx.qualifiers import check_target
from ..sets import VectorSet
from .logs import Record, read_records
from .sass_forms import ZERO, Sass, forms_by_name, is_matrix, parse

HOW_TO_RECORD = """\
In the tool's loop over operands, record every register of a matrix instruction's operand, not getSize() / 4
of them: D, A, B, C in this order, then the metadata register, as many as 'warpsim info MNEMONIC' says, up to
17. Make room for them: reg_vals[32][8] of NVBit's common.h, MAX_REG_OPERANDS 16 of CUTracer's, are less. Run
the program twice, with IPOINT_BEFORE and with IPOINT_AFTER (CUTracer: CUTRACER_INSTRUMENT_IPOINT_UNIFORM=b,
then a), and give the second log as --after. With one log alone, record every instruction of the kernel: D
is then taken from the next instruction that reads it."""

Lane = npt.NDArray[np.uint32]  # (32,): a register


@dataclass(kw_only=True, eq=False)
class Execution:
    """A matrix instruction in a log, its inputs, and the known registers of D."""

    form: Instruction
    sass: Sass
    record: Record
    inputs: Mapping[str, npt.NDArray[np.uint32]]
    d: dict[int, Lane] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)

    @property
    def wanted(self) -> range:
        """The numbers of the registers of D."""
        return range(self.sass.registers[0], self.sass.registers[0] + self.form.held("d").words)

    @property
    def complete(self) -> bool:
        """Whether all registers of D are known."""
        return self.d.keys() == set(self.wanted)


@dataclass(frozen=True, kw_only=True)
class RegisterTrace:
    """The content of a log: sets of executions, and the reasons why others are left
    out, with their number.
    """

    sets: tuple[VectorSet, ...]
    missing: Mapping[str, int]
    instructions: int


def read_register_trace(
    path: str | Path, target: str, *, after: str | Path | None = None, chip: str = "a GPU"
) -> RegisterTrace:
    """Return the matrix instructions of a log as vector sets, a set for each form.

    ``after`` is a log of the same run taken after each instruction. Raises TraceError, also for a file that
    is not a log, IllegalInstruction for an unknown target, OSError.
    """
    path, after = Path(path), Path(after) if after else None
    check_target(target)
    missing: Counter[str] = Counter()
    executions = list(_executions(read_records(path), target, missing, follow=after is None))
    if after:
        _match(executions, read_records(after), target)
    good = [execution for execution in executions if execution.complete]
    if lost := len(executions) - len(good):
        missing["D was never seen whole after the instruction"] += lost
    provenance = {"kind": "hardware", "chip": chip, "source": "register trace", "file": path.name}
    sets = tuple(_set(form, same, provenance) for form, same in _grouped(good).items())
    return RegisterTrace(sets=sets, missing=dict(missing), instructions=len(good) + missing.total())


# --- from records to executions --------------------------------------------------------------------


def _executions(
    records: Iterable[Record], target: str, missing: Counter[str], *, follow: bool
) -> Iterator[Execution]:
    """Yield the matrix instructions whose inputs are known; with ``follow``, D as later records show it."""
    pending: dict[tuple[str, ...], list[Execution]] = {}
    for record in records:
        sass = parse(record.sass)
        if sass is None:
            continue
        form = _form(sass, target)
        values = _values(record, sass, form)
        if follow:
            waiting = pending.get(record.warp, [])
            _observe(waiting, sass, form, values)
            pending[record.warp] = [
                item for item in waiting if len(item.d) + len(item.lost) < len(item.wanted)
            ]
        if is_matrix(sass.name):
            found = _execution(record, sass, form, values, missing)
            if found:
                pending.setdefault(record.warp, []).append(found)
                yield found


def _form(sass: Sass, target: str) -> Instruction | None:
    """Return a form with that name; all of them have the same registers."""
    named = forms_by_name(target).get(sass.name)
    return named[0] if named else None


def _values(record: Record, sass: Sass, form: Instruction | None) -> dict[int, Lane]:
    """Return the value of every register that a record names, if the record identifies it."""
    numbers = record.numbers or _numbers(sass, form, len(record.values))
    named = dict(zip(numbers, record.values, strict=True)) if numbers else {}
    named.pop(ZERO, None)
    return named


def _numbers(sass: Sass, form: Instruction | None, count: int) -> tuple[int, ...] | None:
    """Return the registers of the recorded values: all of each operand, or equally many of each."""
    operands = sass.registers
    if form and len(operands) == len(_operands(form)):
        widths = [form.held(name).words for name in _operands(form)]
        for zero in (None, 1, 0):  # RZ may count as its operand, as one register, or not at all
            full = zip(operands, widths, strict=True)
            counts = [width if zero is None or item != ZERO else zero for item, width in full]
            if sum(counts) == count:
                return _spread(operands, counts)
    if operands and count % len(operands) == 0:
        return _spread(operands, [count // len(operands)] * len(operands))
    return None


def _spread(operands: Iterable[int], counts: Iterable[int]) -> tuple[int, ...]:
    pairs = zip(operands, counts, strict=True)
    return tuple(ZERO if pair == ZERO else pair + i for pair, count in pairs for i in range(count))


def _operands(form: Instruction) -> tuple[str, ...]:
    """Return the register operands of the SASS instruction, in order."""
    return ("d", "a", "b", "c", "e") if form.sparse else ("d", "a", "b", "c")


def _observe(waiting: list[Execution], sass: Sass, form: Instruction | None, values: dict[int, Lane]) -> None:
    """Take D from the registers that a record names; values it overwrites without naming are lost.

    The first operand may be written, four registers of it at most where the form is not known.
    """
    width = form.held("d").words if form else 4
    written = range(sass.registers[0], sass.registers[0] + width) if sass.registers else range(0)
    for item in waiting:
        unseen = set(item.wanted) - item.d.keys() - item.lost
        item.d |= {number: values[number] for number in unseen & values.keys()}
        item.lost |= (unseen - values.keys()) & set(written)


def _execution(
    record: Record, sass: Sass, form: Instruction | None, values: dict[int, Lane], missing: Counter[str]
) -> Execution | None:
    """Return a matrix instruction with its inputs; None if they are not known, and the reason is counted."""
    if form is None or len(sass.registers) != len(_operands(form)):
        missing[f"{sass.name} is not read here, or not an instruction of this target"] += 1
        return None
    if form.sparse and sass.immediate not in form.selectors:
        missing[f"{sass.name}: the disassembly ends in no selector of this form"] += 1
        return None
    inputs = {}
    for name, first in zip(_operands(form)[1:], sass.registers[1:], strict=True):
        count = form.held(name).words
        known = {number: values[number] for number in range(first, first + count) if number in values}
        if first != ZERO and len(known) < count:
            missing[f"{sass.name}: {len(known)} of the {count} registers of {name} are in the log"] += 1
            return None
        lanes = [known.get(first + index, np.zeros(32, np.uint32)) for index in range(count)]
        inputs[name] = np.stack(lanes, axis=-1)
    return Execution(form=_variant(form, sass, inputs), sass=sass, record=record, inputs=inputs)


def _variant(form: Instruction, sass: Sass, inputs: Mapping[str, npt.NDArray[np.uint32]]) -> Instruction:
    """Return the form of that name; the form with ordered metadata only where all metadata ascends."""
    if form.pattern is None or not form.ordered or sass.immediate not in form.selectors:
        return form
    fields = fragments.read_fields(form, inputs["e"], sass.immediate)
    if form.pattern.ascending[fields].all():
        return form
    named = forms_by_name(str(form.target))[sass.name]
    return next((item for item in named if not item.ordered), form)


# --- D from a second log, and sets -----------------------------------------------------------------


def _match(executions: list[Execution], records: Iterable[Record], target: str) -> None:
    """Take D from a log taken after: the n-th matrix instruction of a warp is the n-th there."""
    grouped: dict[tuple[tuple[str, ...], str], list[Record]] = {}
    for record in records:
        grouped.setdefault((record.warp[-2:], record.sass), []).append(record)
    results = {key: iter(found) for key, found in grouped.items()}
    for execution in executions:
        result = next(results.get((execution.record.warp[-2:], execution.record.sass), iter(())), None)
        if result is not None:
            values = _values(result, execution.sass, execution.form)
            execution.d |= {number: values[number] for number in execution.wanted if number in values}


def _grouped(executions: Iterable[Execution]) -> dict[Instruction, list[Execution]]:
    groups: dict[Instruction, list[Execution]] = {}
    for execution in executions:
        groups.setdefault(execution.form, []).append(execution)
    return groups


def _set(form: Instruction, same: list[Execution], provenance: Mapping[str, Any]) -> VectorSet:
    names = _operands(form)[1:]
    selectors = np.array([item.sass.immediate or 0 for item in same], np.int8)
    return VectorSet(
        instruction=form,
        registers={name: np.stack([item.inputs[name] for item in same]) for name in names},
        d=np.stack([np.stack([item.d[number] for number in item.wanted], axis=-1) for item in same]),
        immediates={"selector": selectors} if form.sparse else {},
        descriptors={},
        shared=None,
        provenance=provenance,
        seed=None,
        title="register trace",
        labels=tuple(
            f"line {item.record.line}, CTA {item.record.warp[-2]} warp {item.record.warp[-1]}"
            for item in same
        ),
    )
