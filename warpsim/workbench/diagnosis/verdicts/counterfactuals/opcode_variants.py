"""Statements that should be another form of their opcode: another rounding, signedness or comparison.

The module is loaded again with one modifier of the statements of one form exchanged for another that the rows
of the opcode have; what makes every output right is the cause. Rounding can make a few elements right by
chance, so nothing is tried where few are wrong. Comparisons decide which terms a sum has: those of a line of
the user's are tried with equality decided the other way, and with a number of the launch for a bound; what
algebra then proves is a fact. Knows rows of opcodes and text; does not know what they do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from .....base.errors import Location, WarpsimError
from .....machine.opcodes import rows_of
from .....machine.opcodes.effect import Effect
from .....machine.opcodes.operation import Row
from .....machine.run.wave import Record
from .....observe.algebra.locating.located_record import user_line
from .....programs.launch.launching import load_text
from .....ptx.statements import InstructionStatement
from .....ptx.symbols import shown_variable
from ..launch_causes import Cause
from ..output_errors import OutputError
from ..repeated_launch import RepeatedLaunch
from ..tried_repairs import Repair, Trial

_SHARE = 1 / 16  # of an output's elements that are wrong
_FIRST = ("cvt", "setp", "shr", "mul", "mad", "fma", "add")  # opcodes that are tried first
_FUNCTION = re.compile(r"\.(?:entry|func)\b")
_WIDTH = re.compile(r"[a-z]+(\d+)")
_LISTED = 4  # other statements of the form
_EVIDENCE = "the module was loaded with the other form in its place: every output is as expected"
Modifiers = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Group:
    """The statements of one form in a kernel, as places of their mnemonics."""

    opcode: str
    modifiers: Modifiers
    places: tuple[Location, ...]

    @property
    def mnemonic(self) -> str:
        """The form."""
        return ".".join((self.opcode, *self.modifiers))


def opcode_variants(trial: Trial, errors: Sequence[OutputError], opcodes: Sequence[str] = ()) -> list[Cause]:
    """Return the form that makes every output right in the place of another; of ``opcodes`` alone, if any."""
    if all(error.count < _SHARE * error.wrong.size for error in errors):
        return []
    groups = [group for group in _groups(trial.launch) if not opcodes or group.opcode in opcodes]
    return trial.first("other forms of statements", _variants(trial, groups))


def _variants(trial: Trial, groups: Sequence[_Group]) -> Iterator[Repair]:
    for group in groups:
        first, *others = group.places
        where = f" in {len(group.places)} statements" if others else ""
        for form in _other_forms(group.opcode, group.modifiers):
            other = ".".join((group.opcode, *form))
            changes = dict.fromkeys(group.places, (group.mnemonic, other))
            launch = _with_changes(trial.launch, changes) if trial.budget.allows() else None
            if launch is not None:
                cause = Cause(
                    kind="statement",
                    message=f"with {other} in the place of {group.mnemonic}{where} every output is "
                    "as expected",
                    location=first,
                    evidence=_EVIDENCE,
                    fix=f"use {other}",
                    also=tuple(("another statement of the form", place) for place in others[:_LISTED]),
                )
                yield Repair(cause=cause, launch=launch)


# --- statements ------------------------------------------------------------------------------------


def _groups(launch: RepeatedLaunch) -> list[_Group]:
    """Return the forms of a kernel's statements that compute lane by lane, those tried first in front."""
    found: dict[tuple[str, Modifiers], list[Location]] = {}
    for record in _own(launch):
        statement = record.statement
        if _pure(statement.opcode):
            key = statement.opcode, statement.modifiers
            found.setdefault(key, []).append(statement.location())
    order = {opcode: number for number, opcode in enumerate(_FIRST)}
    return [
        _Group(opcode=opcode, modifiers=modifiers, places=tuple(places))
        for (opcode, modifiers), places in sorted(
            found.items(), key=lambda item: order.get(item[0][0], len(order))
        )
    ]


def _own(launch: RepeatedLaunch) -> Iterator[Record]:
    """Yield the statements of a kernel, without the functions that it calls."""
    entry, text = launch.kernel.entry, launch.kernel.module.program.source.text
    begin = entry.code[entry.start].statement.location().line
    starts = (text.count("\n", 0, found.start()) + 1 for found in _FUNCTION.finditer(text))
    end = next((line for line in starts if line > begin), len(text))
    for record in entry.code[entry.start :]:
        if not begin <= record.statement.location().line < end:
            return
        yield record


def _pure(opcode: str) -> list[Row]:
    return [row for row in rows_of(opcode) if not isinstance(row, Effect)]


@cache
def _forms(opcode: str) -> tuple[Modifiers, ...]:
    return tuple(dict.fromkeys(written for row in _pure(opcode) for written in row.by_modifiers))


def _other_forms(opcode: str, modifiers: Modifiers) -> Iterator[Modifiers]:
    """Yield forms of which one modifier is another, of as many bits if it is a type."""
    for other in _forms(opcode):
        if len(other) == len(modifiers):
            differing = [pair for pair in zip(modifiers, other, strict=True) if pair[0] != pair[1]]
            if len(differing) == 1 and _is_as_wide(*differing[0]):
                yield other


def _is_as_wide(first: str, second: str) -> bool:
    widths = [match and match[1] for match in map(_WIDTH.fullmatch, (first, second))]
    return widths[0] == widths[1]


# --- comparisons -----------------------------------------------------------------------------------

_STRICT = {"lt": "le", "gt": "ge", "lo": "ls", "hi": "hs"}
_TURNED = _STRICT | {other: word for word, other in _STRICT.items()}
_INTEGER = re.compile(r"[sub](?:16|32|64)")


Changes = Mapping[Location, tuple[str, str]]  # at a statement: a part of its text, and what stands for it


class _Comparison(NamedTuple):
    """Comparisons of a line decided otherwise, and the mistake and its fix; ``near`` have numbers next to the
    bound that is tried: where both do as well, it is ``open`` which number is right.
    """

    changes: Changes
    said: tuple[str, str]
    near: tuple[Changes, ...] = ()
    open: tuple[str, str] = ("", "")


def other_comparisons(trial: Trial, proves: Callable[[RepeatedLaunch], bool]) -> list[Cause]:
    """Return the line whose comparisons, decided otherwise, make every output right, if algebra ``proves``
    that the launch then computes the reference.
    """

    def right(changes: Changes) -> RepeatedLaunch | None:
        launch = _with_changes(trial.launch, changes) if trial.budget.allows() else None
        return launch if launch is not None and trial.wrong_of(launch) == 0 else None

    with trial.budget.search("other comparisons"):
        for statements in _compared(trial.launch):
            for each in _decided_otherwise(trial.launch, statements):
                if (launch := right(each.changes)) is not None and proves(launch):
                    vague = bool(each.near) and all(right(changes) for changes in each.near)
                    place = next(iter(each.changes))
                    return [_of_comparison(place, *(each.open if vague else each.said))]
    return []


def _of_comparison(place: Location, message: str, fix: str) -> Cause:
    return Cause(
        kind="comparison",
        message=message,
        location=replace(place, source=user_line(place.source)),
        evidence="proven: with this comparison the launch computes the reference",
        fix=fix,
    )


def _compared(launch: RepeatedLaunch) -> Iterator[list[InstructionStatement]]:
    """Yield the comparisons of integers, those of a line of the user's together."""
    lines = dict[str, list[InstructionStatement]]()
    for record in _own(launch):
        statement = record.statement
        if statement.opcode == "setp" and _INTEGER.fullmatch(statement.modifiers[-1]):
            place = statement.location()
            lines.setdefault(str(user_line(place.source) or place), []).append(statement)
    yield from lines.values()


def _decided_otherwise(
    launch: RepeatedLaunch, statements: Sequence[InstructionStatement]
) -> Iterator[_Comparison]:
    forms = {each.modifiers for each in statements if each.modifiers[0] in _TURNED}
    for word, *more in sorted(forms):
        old, new = (".".join(("setp", name, *more)) for name in (word, _TURNED[word]))
        alike = [each for each in statements if each.modifiers == (word, *more)]
        what = "leaves out equal numbers" if word in _STRICT else "takes equal numbers, too"
        said = f"{old} {what}; the reference does not", f"use {new}"
        yield _Comparison({each.location(): (old, new) for each in alike}, said)
    for bound in sorted({_bound(each) for each in statements}):
        texts = {each.location(): each.operand_text or "" for each in statements if _bound(each) == bound}
        for register, name, value in _numbers(launch):
            changes, *near = (
                {at: (text, text.removesuffix(bound) + other) for at, text in texts.items()}
                for other in (register, str(value - 1), str(value + 1))
            )
            said = (
                f"it compares with {bound}, where the reference needs {value}",
                f"compare with {value} ({name})",
            )
            vague = (
                f"it compares with {bound}: with other numbers, as {value}, the launch computes the reference"
            )
            if register != bound:
                yield _Comparison(changes, said, tuple(near), (vague, "check this bound"))


def _bound(statement: InstructionStatement) -> str:
    return (statement.operand_text or "").rpartition(",")[2].strip()


def _numbers(launch: RepeatedLaunch) -> list[tuple[str, str, int]]:
    """Return registers that integers of the launch are loaded to, with their names and values, each once."""
    values = {each.name: launch.args[each.index] for each in launch.kernel.parameters}
    found = dict[int, list[tuple[str, str]]]()
    for record in _own(launch):
        statement = record.statement
        if statement.opcode == "ld" and "param" in statement.modifiers:
            register, _, address = (statement.operand_text or "").partition(",")
            name = address.strip(" []")
            if isinstance(values.get(name), int | np.integer):
                found.setdefault(int(values[name]), []).append((register.strip(), shown_variable(name)))
    return [(each[0][0], " or ".join(name for _, name in each), value) for value, each in found.items()]


# --- the text --------------------------------------------------------------------------------------


def _with_changes(launch: RepeatedLaunch, changes: Changes) -> RepeatedLaunch | None:
    """Return the launch of a text with some statements changed; None where the text is not legal then."""
    module = launch.kernel.module
    source = module.program.source
    lines = source.text.split("\n")
    for place in sorted(changes, key=lambda place: -place.column):  # of a line, the last first
        line, (old, new) = lines[place.line - 1], changes[place]
        at = line.find(old, place.column - 1)
        if at < 0 or ";" in line[place.column - 1 : at]:
            return None  # a macro, modifiers in another order, or a statement of several lines
        lines[place.line - 1] = line[:at] + new + line[at + len(old) :]
    try:
        kernel = load_text("\n".join(lines), source.file, module.target)[launch.kernel.entry.name]
    except WarpsimError:
        return None
    return replace(launch, kernel=kernel)
