"""``.npz`` of a recording: the vector set of each statement, and the place of each execution.

The member ``manifest`` is JSON: ``schema`` (2), ``kind`` ("launch recording"), ``kernel``, ``file``,
``target``, ``grid``, ``block``, ``provenance``, ``selection`` (what was to be recorded, "" for everything),
``error`` (that ended the launch, or ""), ``statements``, ``events`` and ``words`` (counts of executions and
words of D), and ``sha256``, the digest of the other keys. A statement has ``line``,
``column``, ``text``, ``pc``, ``literal``, ``vectors`` (the manifest of a vector set) and ``where``, and
``source`` where the line that it comes from is known. There may be ``packing``: findings on the origins of
operands, each with ``line``, ``operand``, ``kind``, ``message`` and ``where``, a ``timeline``, and a
``listing`` of the sources (all in recording_parts.py). The arrays of statement 0 are ``0.a``, ``0.b`` …;
``0.where`` is ``(events, 6)`` uint64: x, y and z of the CTA, warp, index of the execution in its
warp, and time. A statement with operands in tensor memory is there once for each instruction descriptor, and
has ``addresses``: the names of the ``operands``, and the entry of ``0.addresses (events, operands)`` uint32.
Readers trust nothing: statements are parsed and bound again, hashes compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import TraceError, WarpsimError
from ....base.files.archives import read_arrays, text_of, write_arrays
from ....isa.operand_places.placements import Inputs, ScaleSelectors, TensorSettings
from ....observe.recording.recorder import LaunchEvent
from ....observe.recording.strips import Timeline
from ....ptx.decode import bind_operands, decode_statement
from ....ptx.parser import parse
from ....ptx.qualifiers import check_target
from ....ptx.statements import InstructionStatement
from ..recordings import PackingNote, Recording, StatementSet
from ..sets import VectorSet
from .manifest import array_entry, digest_of, entry_of, manifest_from, manifest_of
from .npz import COMPRESSED_BYTES, MANIFEST, read_manifest
from .recording_parts import (
    SEAL,
    check_seal,
    listing_document,
    listing_from,
    printable,
    sealed,
    source_document,
    source_from,
    timeline_document,
    timeline_from,
)

Document = dict[str, Any]

SCHEMA = 2
KIND = "launch recording"
_PLACES = 6  # columns of ``where``
_MOST_LINES = 1 << 22  # characters of a text in which a statement may stand
_MOST_COLUMNS = 1 << 16
_TEXTS = ("kernel", "file", "target", "selection", "error")
_KEYS = ("schema", "kind", *_TEXTS, "grid", "block", "provenance", "statements", *SEAL)
_OPTIONAL = ("packing", "timeline", "listing")
_STATEMENT_OPTIONAL = ("source", "addresses")
_STATEMENT_KEYS = ("line", "column", "text", "pc", "literal", "vectors", "where")
_IDS = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")


def is_recording(path: str | Path) -> bool:
    """Return whether a file is a recording, or claims to be a recording."""
    if Path(path).suffix.lower() != ".npz":
        return False
    try:
        document = json.loads(read_manifest(Path(path)))
    except (WarpsimError, OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and document.get("kind") == KIND


# --- writing ---------------------------------------------------------------------------------------


@in_default_environment
def write_recording(path: str | Path, recording: Recording) -> None:
    """Write a recording atomically. Raises OSError."""
    sets = list(recording.sets())
    arrays: dict[str, npt.NDArray[Any]] = {}
    statements = []
    for number, item in enumerate(sets):
        where = _statement_keys(item)
        arrays |= {f"{number}.{name}": array for name, array in item.vectors.arrays().items()}
        arrays[f"{number}.where"] = where
        statements.append(_statement_document(item, where))
        if addresses := _addresses(item):
            names, table = addresses
            arrays[f"{number}.addresses"] = table
            statements[-1]["addresses"] = {"operands": list(names), **entry_of(table)}
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "kernel": recording.kernel,
        "file": recording.file,
        "target": recording.target,
        "grid": list(recording.grid),
        "block": list(recording.block),
        "provenance": dict(recording.provenance),
        "selection": recording.selection,
        "error": recording.error,
        "statements": statements,
    }
    if recording.packing is not None:
        document["packing"] = [asdict(item) for item in recording.packing]
    if recording.timeline is not None:
        document["timeline"] = timeline_document(recording.timeline)
    if recording.listing:
        document["listing"] = listing_document(recording.listing)
    size = sum(array.nbytes for array in arrays.values())
    manifest = json.dumps(sealed(document, recording.events))
    members = {MANIFEST: np.array(manifest), **arrays}
    write_arrays(Path(path), members, compressed=size <= COMPRESSED_BYTES)


def _statement_keys(part: StatementSet) -> npt.NDArray[np.uint64]:
    rows = [(*event.cta, event.warp, event.index, event.time) for event in part.events]
    return np.array(rows, np.uint64)


def _addresses(part: StatementSet) -> tuple[tuple[str, ...], npt.NDArray[np.uint32]] | None:
    """Return the operands in tensor memory, and their addresses ``(events, operands)``; None for none."""
    names = tuple(part.events[0].addresses)
    rows = [[event.addresses[name] for name in names] for event in part.events]
    return (names, np.array(rows, np.uint32)) if names else None


def _statement_document(part: StatementSet, where: npt.NDArray[Any]) -> Document:
    source, start = part.statement.source, part.statement.start
    place = source.location(start)
    return {
        "line": place.line,
        "column": place.column,
        "text": str(part.statement),
        "pc": part.pc,
        "literal": part.literal,
        "vectors": manifest_of(part.vectors),
        "where": entry_of(where),
        **({} if part.location.source is None else {"source": source_document(part.location.source)}),
    }


# --- reading ---------------------------------------------------------------------------------------


@in_default_environment
def read_recording(path: str | Path) -> Recording:
    """Return the recording in a file. Raises TraceError for a malformed file, OSError."""
    path = Path(path)
    try:
        return _read(path)
    except TraceError as error:
        raise error.named(path) from None


def _read(path: Path) -> Recording:
    arrays = dict(read_arrays(path, kinds="uiU"))
    document = _document(arrays.pop(MANIFEST, None))
    grid, block = _three(document, "grid"), _three(document, "block")
    statements = _statements(document)
    events: list[LaunchEvent] = []
    for number, (given, statement) in enumerate(zip(document["statements"], statements, strict=True)):
        own = {name: arrays.pop(name) for name in list(arrays) if name.startswith(f"{number}.")}
        named = {name.partition(".")[2]: array for name, array in own.items()}
        with _of_statement(number):
            events += _events(given, statement, named, grid, block)
    if arrays:
        raise TraceError(f"array {min(arrays)!r} is of no statement")
    found = Recording(
        kernel=document["kernel"],
        file=document["file"],
        target=document["target"],
        grid=grid,
        block=block,
        events=(),
        path=str(path),
        provenance=document["provenance"],
        selection=document["selection"],
        error=document["error"],
        packing=_packing(document),
        timeline=_timeline(document, grid, block),
        listing=listing_from(document.get("listing", [])),
    )
    found = Recording(**{**vars(found), "events": tuple(sorted(events, key=found.order))})
    _check_once(found)
    check_seal(document, found.events)
    return found


class _of_statement:
    """Name the statement of the file in the errors of the block."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, WarpsimError):
            raise TraceError(f"statement {self.number}: {error.message}") from None


def _document(given: npt.NDArray[Any] | None) -> Document:
    if given is None or given.shape or given.dtype.kind != "U":
        raise TraceError("an .npz file without a manifest is not a recording")
    try:
        document = json.loads(text_of(given, "the manifest"))
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the manifest is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise TraceError(f"the manifest is not that of a {KIND}")
    if document.get("schema") != SCHEMA:
        given = document.get("schema")
        raise TraceError(f"manifest: schema {given}, but this version reads schema {SCHEMA}: record it again")
    _check_keys(without(document, _OPTIONAL), _KEYS, "manifest")
    for name in _TEXTS:
        printable(document[name], f"manifest: {name}")
    try:
        check_target(document["target"])
    except WarpsimError as error:
        raise TraceError(f"manifest: {error.message}") from None
    provenance = document["provenance"]
    if not isinstance(provenance, dict) or provenance.get("kind") not in ("model", "hardware"):
        raise TraceError("manifest: the kind of provenance is one of model, hardware")
    return document


def _packing(document: Document) -> tuple[PackingNote, ...] | None:
    """Return the notes on packing; raises TraceError for malformed notes."""
    given = document.get("packing")
    if "packing" not in document:
        return None
    if not isinstance(given, list):
        raise TraceError("manifest: packing is an array")
    return tuple(_note(item, f"packing {number}") for number, item in enumerate(given))


def _timeline(document: Document, grid: Sequence[int], block: Sequence[int]) -> Timeline | None:
    """Return the timeline; raises TraceError for a malformed timeline."""
    if "timeline" not in document:
        return None
    return timeline_from(document["timeline"], grid, _warps(block))


def _warps(block: Sequence[int]) -> int:
    return -(-math.prod(block) // 32)


def _note(given: Any, what: str) -> PackingNote:
    given = {"source": ""} | given if isinstance(given, dict) else given
    _check_keys(given, tuple(field.name for field in fields(PackingNote)), what)
    for name, value in given.items():
        if name != "line":
            printable(value, f"{what}: {name}")
    if type(given["line"]) is not int or not 1 <= given["line"] <= _MOST_LINES:
        raise TraceError(f"{what}: line is a number of at most {_MOST_LINES:,}")
    return PackingNote(**given)


def without(given: Any, names: Sequence[str]) -> Any:
    """Return an object without the keys that may be missing."""
    return (
        {key: item for key, item in given.items() if key not in names} if isinstance(given, dict) else given
    )


def _check_keys(given: Any, keys: tuple[str, ...], what: str) -> None:
    if not isinstance(given, dict):
        raise TraceError(f"{what} is not a JSON object")
    for name in given:
        if name not in keys:
            raise TraceError(f"{what}: unknown key {name!r}; the keys are {', '.join(keys)}")
    for name in keys:
        if name not in given:
            raise TraceError(f"{what}: {name} is missing")


def _three(document: Document, name: str) -> tuple[int, int, int]:
    given = document[name]
    well = isinstance(given, list) and len(given) == 3 and all(type(item) is int for item in given)
    if not well or not all(1 <= item < 1 << 31 for item in given):
        raise TraceError(f"manifest: {name} is three positive integers")
    x, y, z = given
    return x, y, z


def _statements(document: Document) -> Iterator[InstructionStatement]:
    """Yield the statements, parsed at their places; raises TraceError for those that do not parse."""
    given = document["statements"]
    if not isinstance(given, list):
        raise TraceError("manifest: statements is an array")
    for number, item in enumerate(given):
        what = f"statement {number}"
        _check_keys(without(item, _STATEMENT_OPTIONAL), _STATEMENT_KEYS, what)
        printable(item["text"], f"{what}: text")
        for name, most in (("line", _MOST_LINES), ("column", _MOST_COLUMNS), ("pc", _MOST_LINES)):
            if type(item[name]) is not int or not (name != "pc") <= item[name] <= most:
                raise TraceError(f"{what}: {name} is a number of at most {most:,}")
        if not isinstance(item["literal"], bool):
            raise TraceError(f"{what}: literal is true or false")
    text = _text(given)
    parsed = {(place.line, place.column): item for place, item in _placed(text, document["file"])}
    for number, item in enumerate(given):
        found = parsed.get((item["line"], item["column"]))
        if found is None or str(found) != item["text"]:
            raise TraceError(f"statement {number}: {item['text'][:60]!r} is not one statement at its place")
        yield found


def _text(given: list[Document]) -> str:
    """Return a text that has every statement at its original place, and nothing else."""
    lines: dict[int, str] = {}
    for item in sorted({(item["line"], item["column"], item["text"]) for item in given}):
        line, column, text = item
        before = lines.get(line, "")
        lines[line] = f"{before:<{column - 1}}{text}"
    return "\n".join(lines.get(line, "") for line in range(1, max(lines, default=0) + 1))


def _placed(text: str, file: str) -> Iterator[tuple[Any, InstructionStatement]]:
    try:
        program = parse(text, file)
    except WarpsimError as error:
        raise TraceError(f"the statements are not PTX: {error.message}") from None
    for statement in program.statements:
        if isinstance(statement, InstructionStatement):
            yield statement.source.location(statement.start), statement


def _events(
    given: Document,
    statement: InstructionStatement,
    arrays: Mapping[str, npt.NDArray[Any]],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> Iterator[LaunchEvent]:
    """Yield the executions of a statement, checked."""
    manifest = manifest_from(json.dumps(given["vectors"]))
    own = dict(arrays)
    where = own.pop("where", None)
    _check_array("where", where, array_entry("where", given["where"]))
    assert where is not None
    addresses = _read_addresses(given, own, len(where))
    if missing := manifest.arrays.keys() ^ own.keys():
        raise TraceError(f"array {min(missing)!r} is in the file or the manifest only")
    for name, array in own.items():
        _check_array(name, array, manifest.arrays[name])
    vectors = manifest.assemble({name: np.ascontiguousarray(array) for name, array in own.items()})
    _check_where(where, len(vectors), grid, block)
    for event, held in zip(_assembled(given, statement, vectors, where), addresses, strict=True):
        if not held.keys() <= {"d", *event.inputs.registers}:
            raise TraceError(f"addresses of {', '.join(held)}: not all are read from tensor memory")
        yield replace(event, addresses=held) if held else event


def _read_addresses(
    given: Document, arrays: dict[str, npt.NDArray[Any]], events: int
) -> list[dict[str, int]]:
    """Take the addresses of operands in tensor memory from the arrays; raises TraceError."""
    if "addresses" not in given:
        return [{}] * events
    document = given["addresses"]
    names = document.get("operands") if isinstance(document, dict) else None
    if not isinstance(names, list) or len(set(map(str, names))) < len(names):
        raise TraceError("addresses: operands is an array of different names")
    entry, table = array_entry("addresses", without(document, ("operands",))), arrays.pop("addresses", None)
    _check_array("addresses", table, entry)
    assert table is not None
    if entry.spec != (np.dtype(np.uint32), (events, len(names))):
        raise TraceError(f"addresses is uint32 {(events, len(names))}, not {entry.dtype} {entry.shape}")
    return [dict(zip(map(str, names), row, strict=True)) for row in table.tolist()]


def _check_array(name: str, array: npt.NDArray[Any] | None, entry: Any) -> None:
    if array is None:
        raise TraceError(f"array {name!r} is in the manifest, but not in the file")
    if (array.dtype, array.shape) != entry.spec:
        said = f"{entry.dtype} {entry.shape}"
        raise TraceError(f"array {name!r} is {array.dtype} {array.shape}, but the manifest says {said}")
    if digest_of([array]) != entry.sha256:
        raise TraceError(f"array {name!r} does not have the SHA-256 of the manifest: its data was changed")


def _check_where(
    where: npt.NDArray[Any], events: int, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    """Check that the executions are those of warps that the launch has."""
    if where.dtype != np.uint64 or where.shape != (events, _PLACES):
        raise TraceError(f"where is uint64 {(events, _PLACES)}, not {where.dtype} {where.shape}")
    limits = np.array([*grid, _warps(block), 1 << 62, 1 << 62], np.uint64)
    outside = np.argwhere(where >= limits)
    if outside.size:
        row, column = outside[0].tolist()
        what = ("x", "y", "z", "warp", "step", "time")[column]
        raise TraceError(f"event {row} has {what} {int(where[row, column])}: the launch has none such")


def _assembled(
    given: Document, statement: InstructionStatement, vectors: VectorSet, where: npt.NDArray[Any]
) -> Iterator[LaunchEvent]:
    form = vectors.instruction
    if decode_statement(statement, form.target, idesc=form.descriptor) != form:
        raise TraceError(f"{statement.mnemonic} is recorded as {form.mnemonic}")
    bound = bind_operands(form, statement, None)
    constants, varying = vectors.constants(), vectors.varying()
    source = source_from(given["source"]) if "source" in given else None
    for case, (x, y, z, warp, index, time) in enumerate(where.tolist()):
        values = constants | {name: int(array[case]) for name, array in varying.items()}
        inputs = _inputs(vectors, case, values, given["literal"])
        yield LaunchEvent(
            statement=statement,
            source=source,
            bound=bound,
            inputs=inputs,
            d=vectors.d[case],
            warps=(0,),
            cta=(x, y, z),
            warp=warp,
            index=index,
            pc=given["pc"],
            time=time,
        )


def _inputs(vectors: VectorSet, case: int, values: Mapping[str, int], literal: bool) -> Inputs:
    """Return what an execution read; its D only if the execution read D, or left lanes of it."""
    scale_d = bool(values.get("scale_d", 1) and values.get("enable_input_d", 1))
    tensor = _tensor_settings(vectors, case, values)
    names = [name for name in vectors.registers if scale_d or any(tensor.disable_output_lane) or name != "c"]
    descriptors = {name: words[case] for name, words in vectors.descriptors.items()}
    return Inputs(
        registers={name: vectors.registers[name][case] for name in names},
        selector=values.get("selector", 0),
        scale_selectors=ScaleSelectors(*(values.get(name, 0) for name in _IDS)),
        literal=literal,
        shared=None if vectors.shared is None else vectors.shared[case],
        a_descriptor=descriptors.get("a_desc"),
        b_descriptor=descriptors.get("b_desc"),
        scale_d=scale_d,
        negate=(values.get("imm_scale_a", 1) < 0, values.get("imm_scale_b", 1) < 0),
        transposed=(bool(values.get("imm_trans_a", 0)), bool(values.get("imm_trans_b", 0))),
        tensor=tensor,
    )


def _tensor_settings(vectors: VectorSet, case: int, values: Mapping[str, int]) -> TensorSettings:
    """Return the settings of a tcgen05.mma; a mask without a bit is none."""
    lanes = vectors.masks.get("disable_output_lane")
    columns = vectors.masks.get("zero_column_mask")
    words = () if lanes is None or not lanes[case].any() else tuple(lanes[case, 0].tolist())
    return TensorSettings(values.get("scale_input_d", 0), words, 0 if columns is None else int(columns[case]))


def _check_once(recording: Recording) -> None:
    """Check that no two executions have the same warp, statement and index."""
    seen = set[tuple[Any, ...]]()
    for event in recording.events:
        key = event.pc, event.cta, event.warp, event.index
        if key in seen:
            raise TraceError(f"{event.where} is recorded twice")
        seen.add(key)
