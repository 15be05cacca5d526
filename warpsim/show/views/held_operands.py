"""What register dumps hold: as text for people, and as plain data for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...workbench.diagnosis import Holding, Location, Part, StepLog
from ...workbench.diagnosis.contents.dump_places import several
from .findings import diagnosis_document, diagnosis_lines

Document = dict[str, Any]
_NAMES = {"e": "metadata (e)", "scale_a": "scales of A", "scale_b": "scales of B"}
_COLUMNS = {"e": "chunks", "scale_a": "chunks"}
_OTHERS = 3  # explanations and maps that are listed


def holding_lines(found: Holding) -> Iterator[str]:
    """Yield whether a dump holds a matrix; if not, where its elements are and how it was packed."""
    name = _NAMES.get(found.operand, found.operand.upper())
    if found.holds:
        yield _held_line(name, found)
        if found.note:
            yield f"  {found.note}"
        return
    unit = "bytes" if found.operand.startswith("scale") else "words"
    right = f"{found.equal} of {found.total} {unit} are right"
    if found.steps > 1:
        parts = found.location.parts if found.location else ()
        what = _part_text(parts[0], found, found.step) if parts else "its elements follow no map"
        verb = "are" if found.operand.startswith("scale") else "is"
        first = f"step {found.step} is the first of {found.steps} at which {name} {verb} wrong"
        yield f"{first}: {what}; {right}"
    else:
        yield f"{name}: the dump does not hold the matrix: {right}"
    if found.note:
        yield f"  {found.note}"
    if found.location is not None:
        yield from _location_lines(found.location, found)
    for at, location in found.later:
        summary = "; ".join(_part_text(part, found, at) for part in location.parts)
        right = f"{location.right} of {location.total} elements are right"
        yield f"  step {at}: {right}: {summary or 'its elements are in no matrix'}"


def _is_located(location: Location | None) -> bool:
    return location is not None and bool(location.parts or location.value)


def _held_line(name: str, found: Holding) -> str:
    unit = "bytes" if found.operand.startswith("scale") else "words"
    if found.steps > 1:
        each = f"{found.total // found.steps} {unit}"
        return f"{name}: the dump holds the matrix in every step, all {found.steps} steps of {each}"
    where = _tile_text(found.operand, found.tile, found) if found.tile != (0, 0) else ""
    what = f"{where} of the matrix" if where else "the matrix"
    return f"{name}: the dump holds {what}, all {found.total} {unit} that are read"


def _tile_text(operand: str, tile: tuple[int, int], found: Holding, meant: tuple[int, int] = (0, 0)) -> str:
    """Return the k step and the rows or columns in which a tile differs from that which is meant."""
    rows, columns = found.size
    texts = []
    for first, other, size, what, along in (
        (tile[0], meant[0], rows, "chunks" if operand == "scale_b" else "rows", _k_axis(operand) == 0),
        (tile[1], meant[1], columns, _COLUMNS.get(operand, "columns"), _k_axis(operand) == 1),
    ):
        if first != other:
            step = f"k step {first // size}, " if along and not first % size else ""
            which = f"{what} {first} to {first + size - 1}" if size > 1 else f"{what[:-1]} {first}"
            texts.append(step + which)
    return " and ".join(texts)


def _k_axis(operand: str) -> int | None:
    """Return the axis of an operand's matrix that is k; None for C and D."""
    return {"a": 1, "e": 1, "scale_a": 1, "b": 0, "scale_b": 0}.get(operand)


def _meant(found: Holding, step: int) -> tuple[int, int]:
    """Return the first row and column of the tile that is meant in a step."""
    row, column = found.tile
    if found.steps == 1 or (axis := _k_axis(found.operand)) is None:
        return found.tile
    by = (step - found.step) * found.size[axis]
    return (row, column + by) if axis else (row + by, column)


def _stale(found: Holding, tile: tuple[int, int], step: int) -> str:
    """Return how far a whole tile is behind or ahead of the step in which it is used."""
    axis, meant = _k_axis(found.operand), _meant(found, step)
    if found.steps == 1 or axis is None or tile[1 - axis] != meant[1 - axis]:
        return ""
    by, rest = divmod(tile[axis] - meant[axis], found.size[axis])
    if rest or not by:
        return ""
    far = f"{abs(by)} step{'s'[: abs(by) != 1]}"
    return f" ({far} ahead)" if by > 0 else f" (stale: {far} behind)"


def _location_lines(location: Location, found: Holding) -> Iterator[str]:
    """Yield each part with its formula, then what the layout has, what is left and what is not certain."""
    for number, part in enumerate(location.parts):
        where = f" ({part.where})" if part.where else ""
        if number or found.steps == 1 or part.count < location.total:  # else it was named before
            text = _part_text(part, found, found.step)
            yield f"  {part.count} of {location.total} elements{where}: {text}"
        if part.name and part.name.advice:
            yield f"    {part.name.advice}"
        if part.formula and not part.in_order:
            yield f"    {part.source}: {part.formula}"
    if location.layout and any(part.formula and not part.in_order for part in location.parts):
        yield f"    right would be: {location.layout}"
        if location.legend:
            yield f"    {location.legend}"
    if location.value:
        yield f"  {location.value}"
    if not _is_located(location) and not found.note:
        yield f"  its elements follow no map of the matrix; {location.right} of {location.total} are right"
    if location.left and location.parts:
        yield f"  {location.left} elements follow none of these, the first: {location.first}"
    if location.others:
        yield from (f"  or, on these values, the same: {other}" for other in location.others[:_OTHERS])


def _part_text(part: Part, found: Holding, step: int) -> str:
    """Return where a part is that is used in a step, and what it is in a kernel's terms."""
    where = _tile_text(found.operand, part.tile, found, _meant(found, step)) if part.tile else ""
    own = part.source == found.source or not part.source
    matrix = "" if own else f"they are of {part.source}"
    named = part.name.text if part.name else ""
    if where and own and part.in_order:
        return f"{where} of {part.source}" + (_stale(found, part.tile, step) if part.tile else "")
    return (
        ": ".join(filter(None, (matrix, f"in {where}" if where else "", named)))
        or f"located in {part.source}"
    )


def holding_document(found: Holding) -> Document:
    """Return the same as JSON-ready data."""
    return {
        "operand": found.operand,
        "equal": found.equal,
        "total": found.total,
        "holds": found.holds,
        "step": found.step,
        "steps": found.steps,
        "tile": list(found.tile),
        "note": found.note,
        "location": None if found.location is None else _location_document(found.location),
        "later": [{"step": at, "location": _location_document(each)} for at, each in found.later],
    }


def step_lines(found: StepLog) -> Iterator[str]:
    """Yield the first wrong step of a log of accumulators, and what it did."""
    if found.note:
        yield found.note
    loaded = f" for the {' and '.join(found.loaded)} that were loaded" if found.loaded else ""
    if found.as_expected:
        yield f"D is as expected in every step, all {found.steps} steps{loaded}"
        return
    step = found.wrong[0]
    yield f"step {step} is the first of {found.steps} at which D is wrong{loaded}: {_step_text(found)}"
    for cause in found.causes:
        yield f"  matches bit for bit: step {step}: {cause.name}"
        yield f"    {cause.advice}"
    if found.diagnosis is not None:
        yield from (f"  {line}" for line in diagnosis_lines(found.diagnosis))
    if len(found.wrong) > 1:
        yield f"  steps {several(found.wrong)} are wrong by themselves, each from the D before it"


def _step_text(found: StepLog) -> str:
    if found.causes:
        return found.causes[0].name
    diagnosis = found.diagnosis
    if diagnosis is not None and diagnosis.matches:
        return " + ".join(diagnosis.matches[0].simplest.names)
    return "no explanation gives its D from the D before"


def step_document(found: StepLog) -> Document:
    """Return the same as JSON-ready data."""
    return {
        "steps": found.steps,
        "as_expected": found.as_expected,
        "wrong": list(found.wrong),
        "loaded": list(found.loaded),
        "note": found.note,
        "causes": [{"name": cause.name, "advice": cause.advice} for cause in found.causes],
        "diagnosis": None if found.diagnosis is None else diagnosis_document(found.diagnosis),
    }


def _location_document(location: Location) -> Document:
    return {
        "elements": location.total,
        "right": location.right,
        "parts": [
            {
                "source": part.source,
                "elements": part.count,
                "where": part.where,
                "kind": part.kind,
                "formula": part.formula,
                "tile": None if part.tile is None else list(part.tile),
                "name": part.name and part.name.text,
                "advice": part.name and part.name.advice,
            }
            for part in location.parts
        ],
        "value": location.value,
        "first_left": location.first,
        "others": list(location.others),
    }
