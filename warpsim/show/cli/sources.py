"""The subjects of explain, lint and diff: a trace, a vector set, or a mnemonic with operands.

A text that looks like an instruction is a mnemonic, unless there is such a file; any other text is a file, a
trace if its name ends in ``.ptx`` and a vector set otherwise.

Names of instructions as disassemblers print them, such as HMMA.16816.F32, become PTX mnemonics: the first
form of the target that fits, as a name says less than a mnemonic. They follow the output of ``cuobjdump
-sass`` for sm_75 to sm_90; the names of newer chips are not known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .operand_values import operands_from
from .options import idesc_of

if TYPE_CHECKING:
    from ...isa.instruction import Instruction
    from ...isa.operand_places.placements import Inputs
    from ...observe.recording.selection import Selection
    from ...workbench.traces.running import Run
    from ...workbench.vectors.parted import SetInParts
    from ...workbench.vectors.recordings import Recording
    from ...workbench.vectors.sets import VectorSet

_MNEMONIC = re.compile(r"\s*(\w*mma|tcgen05\.mma)\b|[^/]*\.sync\b", re.IGNORECASE)
_NAME = re.compile(r"([HIDBQ]G?MMA)((?:\.\w+)*)")
_SHAPES = {
    "884": (8, 8, 4), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128),
    "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
    "16864": (16, 8, 64), "168128": (16, 8, 128), "168256": (16, 8, 256),
}  # fmt: skip
_OTHERS = {"H": ("f16", "bf16", "tf32"), "D": ("f64",), "B": ("b1",)}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An execution: the instruction on its target, its operands, the D given for it, and its name."""

    instruction: Instruction
    inputs: Inputs
    d: Any
    title: str


def is_file(source: str) -> bool:
    """Return whether a source is a file, and not a mnemonic: it exists, or does not look
    like an instruction.
    """
    return os.path.exists(source) or not _MNEMONIC.match(source)


def is_vectors(source: str) -> bool:
    """Return whether a file is a vector set by its name."""
    return Path(source).suffix != ".ptx" and is_file(source)


def is_recording(source: str) -> bool:
    """Return whether a source is the file of a launch's recording."""
    if Path(source).suffix.lower() != ".npz":
        return False
    from ...workbench.vectors.formats.recording import is_recording as says_so  # traces do not need it

    return says_so(source)


def recorded(source: str, selection: Selection | None = None) -> Recording:
    """Return the recording in a file, or the part of it that is selected."""
    from ...workbench.vectors.formats.recording import read_recording

    found = read_recording(source)
    return found if selection is None else found.selected(selection)


def check_unselected(source: str, selection: Selection | None) -> None:
    """Raise UsageError where --select is given for a file that is not a recording."""
    if selection is not None and not is_recording(source):
        raise click.UsageError("--select chooses from a recording")


def subject_of(
    source: str,
    *,
    event: int | None,
    warp: int | None,
    case: int,
    selection: Selection | None = None,
    literal: bool = False,
) -> Subject:
    """Return an execution of the trace, recording or vector set in a file; UsageError for options of another
    kind.
    """
    if is_recording(source):
        if warp is not None or case:
            raise click.UsageError("--event and --select choose from a recording")
        return _recorded_event(recorded(source, selection), event, literal)
    check_unselected(source, selection)
    unused = (event, warp) != (None, None) if is_vectors(source) else case != 0
    if unused:
        raise click.UsageError("--event and --warp choose from a trace, --case from a vector set")
    if is_vectors(source):
        return _case(open_set(source), source, case, literal)
    return _event(executed(source, literal=literal), event, warp)


def read_set(source: str) -> VectorSet:
    """Return the vector set in a file."""
    from ...workbench.vectors.formats import read_vectors

    return read_vectors(source)


def open_set(source: str) -> SetInParts:
    """Return the vector set in a file, to be taken in parts."""
    from ...workbench.vectors.formats import format_of

    return format_of(Path(source)).in_parts(Path(source))


def executed(source: str, *, literal: bool = False) -> Run:
    """Return the trace in a file, run with its hazards ignored, undefined metadata perhaps read literally."""
    from ...workbench.traces.reading import read_trace
    from ...workbench.traces.running import run_trace

    return run_trace(read_trace(Path(source)), hazards="off", undefined="fallback" if literal else "error")


def _case(vectors: SetInParts, source: str, case: int, literal: bool) -> Subject:
    from ...base.errors import OperandError
    from ...sums.execution.inputs import inputs_by_name

    if case not in range(len(vectors)):
        raise OperandError(f"case {case}: the set has {len(vectors)} cases, 0 to {len(vectors) - 1}")
    start = 0
    for piece in vectors.parts():  # to the end, where the hashes are compared
        if case in range(start, start + len(piece)):
            (part,), d = piece.inputs(case - start, case - start + 1), piece.d[case - start]
        start += len(piece)
    arguments = {
        name: value[0] if hasattr(value, "shape") else value for name, value in part.arguments.items()
    }
    label = f", {vectors.labels[case]}" if vectors.labels else ""
    return Subject(
        instruction=vectors.instruction,
        inputs=replace(inputs_by_name(arguments), literal=literal),
        d=d,
        title=f"{source}: case {case} of {len(vectors)}{label}",
    )


def _recorded_event(recording: Recording, number: int | None, literal: bool) -> Subject:
    from ...base.errors import OperandError

    count = len(recording.events)
    number = count - 1 if number is None else number
    if number not in range(count):
        known = f"there are 0 to {count - 1}" if count else "there are none"
        raise OperandError(f"event {number}: {known}")
    event = recording.events[number]
    place = event.statement.location()
    return Subject(
        instruction=event.instruction,
        inputs=replace(event.inputs, literal=literal or event.inputs.literal),
        d=event.d,
        title=f"{place.file}:{place.line}: event {number} of {count}: {event.place}",
    )


def _event(run: Run, number: int | None, warp: int | None) -> Subject:
    from ...base.errors import OperandError

    count = len(run.events)
    if number is None:
        number = count - 1
    if number not in range(count):
        known = f"matrix instructions 0 to {count - 1}" if count else "no matrix instruction"
        raise OperandError(f"event {number}: the trace executes {known}")
    event = run.events[number]
    parts = {first // 32: (inputs, d) for first, inputs, d in event.executions()}
    chosen = next(iter(parts)) if warp is None else warp
    if chosen not in parts:
        raise OperandError(f"warp {warp} does not execute this: there are {', '.join(map(str, parts))}")
    inputs, d = parts[chosen]
    place = event.statement.location()
    which = f", warp {chosen}" if len(parts) > 1 else ""
    return Subject(
        instruction=event.instruction,
        inputs=inputs,
        d=d,
        title=f"{place.file}:{place.line}: event {number} of {count}{which}",
    )


def decoded(
    mnemonic: str, target: str | None, operands: Sequence[str], layout: str | None = None
) -> tuple[Instruction, dict[str, Any]]:
    """Return a mnemonic, or a name of a disassembler, on its target, and its operands by name; ``layout`` is
    the user's own form of their text, if any. A tcgen05.mma has its instruction descriptor among them.
    """
    from ...sums.execution.interface import decode

    given = {name: value for name, _, value in (text.partition("=") for text in operands)}
    text = mnemonic_of(mnemonic, target) if is_sass(mnemonic) else mnemonic
    word, numerics = given.get("idesc"), given.get("numerics")
    form = decode(text, target=target, idesc=None if word is None else idesc_of(word), numerics=numerics)
    named = [item for item in operands if item.partition("=")[0] not in ("idesc", "numerics")]
    return form, operands_from(form, named, layout)


# --- names of SASS ------------------------------------------------------------------------------------


def is_sass(text: str) -> bool:
    """Return whether a text is such a name."""
    return bool(_NAME.fullmatch(text.strip()))


def mnemonic_of(name: str, target: str | None) -> str:
    """Return the PTX mnemonic of a name on a target. Raises IllegalInstruction where no form fits."""
    from ...base.errors import IllegalInstruction
    from ...sums.execution.interface import instructions

    match = _NAME.fullmatch(name.strip())
    if match and target:
        words = [word.lower() for word in match[2].split(".") if word]
        fitting = [form for form in instructions(target) if _fits(form, match[1], words)]
        if fitting:
            return min(fitting, key=lambda form: (not form.ordered, form.satfinite)).mnemonic
    where = f" on {target}" if target else ": give --target, the chip that it is of"
    raise IllegalInstruction(f"{name}: no instruction is known by this name{where}")


def _fits(form: Instruction, operation: str, words: list[str]) -> bool:
    kinds = _multiplicands(operation[0])
    named = [word for word in words if word in kinds]
    a, b = (named * 2)[:2] if named else (kinds[0], kinds[0])
    shape = form.shape.m, form.shape.n, form.shape.k
    results = [word for word in words if word in ("f32", "f16")]
    group = form.lanes == 128
    return (
        ("G" in operation) == group
        and _shape(words, group) == shape
        and form.sparse == ("sp" in words)
        and (form.a.name, form.b.name) == (a, b)
        and (not results or form.d.name == results[0])
        and form.satfinite == ("sat" in words)
        and not form.scale
    )


def _multiplicands(letter: str) -> tuple[str, ...]:
    """Return what a letter multiplies: the types that its names mention, the first
    where none is mentioned.
    """
    from ...isa.formats import floats_of, integers_of

    if letter == "I":
        return (*integers_of(8), *integers_of(4))
    return floats_of(8) if letter == "Q" else _OTHERS[letter]


def _shape(words: list[str], group: bool) -> tuple[int, ...] | None:
    if group:
        sizes = [re.fullmatch(r"(\d+)x(\d+)x(\d+)", word) for word in words]
        return next((tuple(map(int, size.groups())) for size in sizes if size), None)
    return next((_SHAPES[word] for word in words if word in _SHAPES), None)
