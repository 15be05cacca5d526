"""Files that contradict each other: matrices and logs whose sizes or steps do not fit, with files and lines.

Looks at the texts again only where something does not fit. Knows operands by name; does not read numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .operand_values import REGISTERS

if TYPE_CHECKING:
    from ...isa.instruction import Instruction
    from ...workbench.inputs.log_places import Section

_OWN = {"a": "A", "b": "B", "e": "A"}  # operands that advance along k, and their matrices
_SHOWN = 4  # steps
_MOST_SETS = 16  # of which each is looked for


class _Source(NamedTuple):
    """An operand in a file."""

    name: str
    file: str

    @property
    def text(self) -> str | None:
        """The text of the file, None of arrays and of stdin, which was read."""
        from ...base.files.archives import read_text

        suffixes = (".npy", ".npz", ".safetensors", ".pt")
        path = Path(self.file)
        return None if path.suffix in suffixes or not path.is_file() else read_text(path)


def check_sources(form: Instruction, given: dict[str, Any], operands: Sequence[str]) -> None:
    """Raise OperandError, naming files and lines, where matrices or logs of ``given`` do not fit together."""
    if any(getattr(given.get(name), "ndim", 2) != 2 for name in "ABCD"):
        return  # batches of tiles
    sources = {name: _source(name, operands) for name in given}
    _check_matrices(given, sources)
    counts = _steps(form, given)
    if len(set(counts.values())) > 1:
        _refuse(form, given, sources, counts)
    for name in _OWN:
        if name in counts and _OWN[name] in given:
            _check_reading(form, given, sources[name], name)


def _source(name: str, operands: Sequence[str]) -> _Source:
    """Return the file of an operand: that of NAME=FILE, or a file of several operands."""
    own = next((word for word in operands if word.startswith(f"{name}=")), "")
    several = next((word for word in operands if "=" not in word), "")
    return _Source(name, own.partition("=")[2] or several)


# --- matrices ---------------------------------------------------------------------------------------------


def _check_matrices(given: dict[str, Any], sources: dict[str, _Source]) -> None:
    """Refuse A and B of other lengths along k, and a D that is not that of A and B."""
    from ...base.errors import OperandError

    if not {"A", "B"} <= given.keys():
        return
    A, B = given["A"].shape, given["B"].shape
    both = f"{_matrix('A', given, sources)} and {_matrix('B', given, sources)}"
    if A[1] != B[0]:
        raise OperandError(f"{both}: A has {A[1]} columns, but B has {B[0]} rows")
    for name in "CD":
        if name in given and given[name].shape != (A[0], B[1]) and not given.keys() & set("abcd"):
            size = " x ".join(map(str, given[name].shape))
            raise OperandError(
                f"{name} has shape {given[name].shape}, but A and B make ({A[0]}, {B[1]}): "
                f"{_at(sources[name], size)}, {both}"
            )


def _matrix(name: str, given: dict[str, Any], sources: dict[str, _Source]) -> str:
    return _at(sources[name], " x ".join(map(str, given[name].shape)))


def _at(source: _Source, size: str) -> str:
    """Return the name, the file with its lines, and the size."""
    text = source.text
    lines = "" if text is None else f", lines 1 to {len(text.rstrip().splitlines())},"
    return (
        f"{source.name} ({source.file}{lines} {size})" if lines else f"{source.name} ({source.file}, {size})"
    )


# --- steps ------------------------------------------------------------------------------------------------


def _steps(form: Instruction, given: dict[str, Any]) -> dict[str, int]:
    """Return the number of steps along k that matrices and logs have; empty where nothing is logged."""
    logged = {name: len(given[name]) for name in "abcde" if getattr(given.get(name), "ndim", 0) == 3}
    logged = {name: count for name, count in logged.items() if count > 1}
    axes = {"A": 1, "B": 0}
    whole = {
        name: -(-given[name].shape[axis] // form.shape.k) for name, axis in axes.items() if name in given
    }
    if not logged or not (whole or logged.keys() & _OWN.keys()):
        return {}
    return logged | whole


def _refuse(
    form: Instruction, given: dict[str, Any], sources: dict[str, _Source], counts: dict[str, int]
) -> None:
    from ...base.errors import OperandError

    whole = [
        f"{_matrix(name, given, sources)} has {counts[name]} of {form.shape.k}"
        for name in "AB"
        if name in counts
    ]
    wanted = next((counts[name] for name in "AB" if name in counts), max(counts.values()))
    logs = [_logged(sources[name], count, wanted) for name, count in counts.items() if name in REGISTERS]
    raise OperandError(f"the numbers of steps along k contradict each other: {'; '.join([*logs, *whole])}")


def _logged(source: _Source, count: int, wanted: int) -> str:
    """Return how many steps a log has, on which lines, and which are missing or come again."""
    from ...workbench.inputs.log_places import first_repeat, sections

    said = f"{source.name} ({source.file}"
    text = source.text
    found = [] if text is None else sections(text, source.name, count)
    if not found:
        return f"{said}) has {count} steps"
    first, last = min(each.first for each in found), max(each.last for each in found)
    said += f", lines {first} to {last}) has {count} steps"
    again = first_repeat(found)
    if again is not None:
        return f"{said}, {_two_readings(source.name, *again)}"
    return said + _missing([each.step for each in found], wanted)


def _missing(steps: list[int], wanted: int) -> str:
    """Return which steps a log lacks at its ends; those between others were refused when it was read."""
    low, high = steps[0], steps[-1]
    said = f", {low} to {high}"
    if len(steps) >= wanted:
        return said
    if low == 0:
        return f"{said}: {_spelled(range(high + 1, wanted))} missing"
    if low > 1:
        return f"{said}: {_spelled(range(low))} missing"
    ends = _spelled(range(high + 1, wanted + 1))
    return f"{said}: step 0 is missing, or, where the first step is 1, {ends} missing"


def _spelled(steps: range) -> str:
    shown = ", ".join(map(str, steps[:_SHOWN])) + (" …" if len(steps) > _SHOWN else "")
    return f"step {shown} is" if len(steps) == 1 else f"steps {shown} are"


def _two_readings(name: str, first: Section, second: Section) -> str:
    return (
        f"{name} begins on line {first.first} and again on line {second.first}: there are two readings: "
        "several tiles or steps (print 'step N:' before each), or several warps (give the lines of one warp)"
    )


def _check_reading(form: Instruction, given: dict[str, Any], source: _Source, name: str) -> None:
    """Refuse registers that come several times without a step, wrong as steps, but each right by itself."""
    from ...base.errors import OperandError
    from ...workbench.diagnosis.contents.dump_contents import Operands
    from ...workbench.inputs.log_places import are_named, first_repeat, sections

    dump, text = given[name], source.text
    if text is None or not 1 < len(dump) <= _MOST_SETS:
        return
    found = sections(text, name, len(dump))
    again = first_repeat(found)
    if again is None or are_named(text, found):
        return
    operands = Operands(form, {_OWN[name]: given[_OWN[name]]}, selector=given.get("selector", 0))
    if not operands.holding(name, dump).holds and all(operands.holding(name, each).holds for each in dump):
        raise OperandError(f"{source.file}: {_two_readings(name, *again)}")
