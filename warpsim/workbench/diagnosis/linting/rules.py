"""The rules of lint: each a function from tiles of registers to findings.

Nothing is executed: what registers contain is judged by itself, and against logical A where it is given. A
rule looks at all tiles together, and words only the findings that are wanted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import present
from ....isa.families import forms
from ....isa.fragments import codes_from, indices_of, known_fields, read_fields
from ....isa.metadata.detection import named_columns
from ....isa.products import Codes
from ....isa.registers import Words
from ....isa.sparsity import decompress
from ..library.setting import Setting
from ..solving.other_causes import named_mistake, permutations
from ..solving.solving import Explanation
from .subject import Alike, Finding, Severity, Subject, alone

_MOST = 4.0  # cost of a map
LintRule = Callable[[Subject], Iterator[Alike]]
Flags = Any  # npt.NDArray[np.bool_], which its own methods do not return


def _group_findings(
    subject: Subject,
    places: npt.NDArray[np.intp],
    describe: Callable[..., dict[str, Any]],
    *,
    severity: Severity,
    rule: str,
    fix: str,
) -> Iterator[Alike]:
    """Yield what is alike at places ``(findings, 1 or more)``, whose first number is that of the tile.

    ``describe`` takes the numbers of a place and returns the message, and where in the tile it is.
    """
    if len(places):
        findings = tuple(
            Finding(severity=severity, rule=rule, fix=fix, tile=subject.tile(place[0]), **describe(*place))
            for place in places[: subject.most].tolist()
        )
        yield Alike(severity=severity, rule=rule, fix=fix, count=len(places), findings=findings)


def _tiles_with(
    subject: Subject, which: Flags, message: str, severity: Severity, rule: str, fix: str
) -> Iterator[Alike]:
    """Yield what is alike of whole tiles ``(tiles,)``."""
    places = np.argwhere(which)
    yield from _group_findings(
        subject, places, lambda _: {"message": message}, severity=severity, rule=rule, fix=fix
    )


# --- metadata by itself --------------------------------------------------------------------------------


def selector_rule(subject: Subject) -> Iterator[Finding]:
    """Yield a selector that the form does not have; no other rule makes sense then."""
    if subject.selector not in subject.instruction.selectors:
        legal = ", ".join(map(str, subject.instruction.selectors))
        yield Finding(
            severity="error",
            rule="selector",
            message=f"sparsity selector {subject.selector}: {subject.instruction} has {legal}",
            fix=f"use {legal}",
        )


def _empty_words(subject: Subject) -> Iterator[Alike]:
    def describe(_: int, place: int) -> dict[str, Any]:
        lane = int(subject.read_lanes[place])
        return {"message": f"lane {lane}: the metadata word is 0, and no legal field is", "lane": lane}

    yield from _group_findings(
        subject,
        np.argwhere(subject.words[:, subject.read_lanes] == 0),
        describe,
        severity="error",
        rule="empty-word",
        fix="load the metadata of this lane, or use the selector of the lanes that have it",
    )


def _undefined_fields(subject: Subject) -> Iterator[Alike]:
    def describe(tile: int, row: int, chunk: int) -> dict[str, Any]:
        hidden = ""
        if subject.a is not None and _zero_units(subject)[tile, row, chunk].all():
            hidden = "; its stored values are zero, so that results do not show it"
        message = f"{_field_text(subject, tile, row, chunk)} is undefined{hidden}"
        return {"message": message, **subject.place(row, chunk)}

    yield from _group_findings(
        subject,
        _bad_fields(subject, subject.pattern.distinct),
        describe,
        severity="error",
        rule="tf32-field" if subject.pattern.kept == 1 else "equal-indices",
        fix="write 0b0100 or 0b1110" if subject.pattern.kept == 1 else "name two different units",
    )


def _descending_fields(subject: Subject) -> Iterator[Alike]:
    """Yield descending indices: undefined when ordered, unknown where ptxas does not sort them."""
    instruction = subject.instruction
    unknown = f"not known to work on {instruction.target}"
    because = "under sp::ordered_metadata" if instruction.ordered else unknown

    def describe(*place: int) -> dict[str, Any]:
        message = f"{_field_text(subject, *place)} descends, {because}"
        return {"message": message, **subject.place(*place[1:])}

    yield from _group_findings(
        subject,
        _bad_fields(subject, known_fields(instruction) | ~subject.pattern.distinct),
        describe,
        severity="error" if instruction.ordered else "warning",
        rule="descending-indices",
        fix="exchange the two indices together with the two stored units",
    )


def _bad_fields(subject: Subject, legal: Flags) -> npt.NDArray[np.intp]:
    """Return tile, row and chunk of fields that are not legal, those in empty words apart."""
    lane = subject.map[:, 0].reshape(subject.fields.shape[1:])
    return np.argwhere(~legal[subject.fields] & (subject.words[:, lane] != 0))


def _field_text(subject: Subject, tile: int, row: int, chunk: int) -> str:
    place, value = subject.place(row, chunk), int(subject.fields[tile, row, chunk])
    low, high = place["bits"]
    indices = ", ".join(str(index) for index in subject.pattern.decode_table[value])
    named = f" (indices {indices})" if subject.pattern.kept > 1 else ""
    return f"lane {place['lane']}, bits {high}..{low} (row {row}, chunk {chunk}): field {value:#06b}{named}"


def _half_rows(subject: Subject) -> Iterator[Alike]:
    """Yield rows of one half all legal, those of the other all not."""
    legal: Flags = subject.pattern.distinct[subject.fields]
    lower: Flags = np.arange(legal.shape[1]) % 16 < 8
    wide = subject.instruction.storage("a").bits >= 16
    place = "the upper 16 bits of the same lane" if wide else "the odd lane of each pair"
    for bad, good in ((lower, ~lower), (~lower, lower)):
        rows = "g" if bad is lower else "g + 8"
        half = legal[:, good].all(axis=(1, 2)) & ~legal[:, bad].any(axis=(1, 2))
        message = f"rows {rows} have no legal metadata, all other rows have"
        fix = f"rows g + 8 have their fields in {place}: supply both halves"
        yield from _tiles_with(subject, half, message, "error", "row-half", fix)


def _ignored_lanes(subject: Subject) -> Iterator[Alike]:
    """Yield lanes with data that the selector does not read; an error if only they are legal."""
    instruction = subject.instruction
    filled: Flags = subject.words.reshape(len(subject.words), -1, 4).any(axis=1)
    illegal = ~subject.pattern.distinct[subject.fields].all(axis=(1, 2))
    for other in instruction.selectors:
        if other == subject.selector:
            continue
        lanes = slice(other * instruction.metadata_words, (other + 1) * instruction.metadata_words)
        has_data = filled[:, lanes].any(axis=1)
        fields = read_fields(instruction, present(subject.e, "e"), other)
        wrong = illegal & subject.pattern.distinct[fields].all(axis=(1, 2))
        ignored = f"selector {subject.selector} ignores {_thread_text(lanes)} of each quad, which "
        alone_legal, held = f"{ignored}alone hold legal metadata", f"{ignored}hold data"
        rule, fix = "ignored-lanes", f"selector {other} reads these lanes"
        yield from _tiles_with(subject, has_data & wrong, alone_legal, "error", rule, fix)
        yield from _tiles_with(subject, has_data & ~wrong, held, "note", rule, fix)


def _thread_text(lanes: slice) -> str:
    threads = range(lanes.start, lanes.stop)
    return f"lane{'s'[: len(threads) != 1]} {', '.join(map(str, threads))}"


def _read_lanes(subject: Subject) -> str:
    lanes = np.unique(subject.read_lanes % 4)
    return "all lanes" if len(lanes) == 4 else _thread_text(slice(int(lanes[0]), int(lanes[-1]) + 1))


def _broadcast(subject: Subject) -> Iterator[Alike]:
    """Yield all words that are read of a quad alike, or its upper pair a copy of the lower pair."""
    quads, fields = subject.quads, subject.fields
    if quads.shape[2] < 2:
        return
    same = (quads == quads[..., :1]).all(axis=(1, 2)) & quads.any(axis=(1, 2))
    uniform = (fields == fields[:, :1, :1]).all(axis=(1, 2))
    text = f"{_read_lanes(subject)} of each quad hold the same metadata word"
    hides = ", and every chunk the same pattern, which hides errors of the layout"
    rule, fix = "broadcast-word", "give each lane that is read the metadata of its own chunks or rows"
    yield from _tiles_with(subject, same & uniform, text + hides, "note", rule, fix)
    yield from _tiles_with(subject, same & ~uniform, text, "warning", rule, fix)
    if quads.shape[2] == 4:
        repeated = (quads[..., :2] == quads[..., 2:]).all(axis=(1, 2)) & ~same & quads.any(axis=(1, 2))
        text = "lanes 2, 3 of each quad repeat lanes 0, 1: the metadata of half of k twice"
        fix = "lane bit 0 chooses the row half and lane bit 1 the k half: k64 metadata is not two k32 blocks"
        yield from _tiles_with(subject, repeated, text, "warning", "two-k-halves", fix)


def _plain_sp(subject: Subject) -> Iterator[Alike]:
    """Yield plain .sp where the ordered variant exists (ptxas advises so from PTX 8.5 on)."""
    instruction = subject.instruction
    other = forms().get(instruction.mnemonic.replace("mma.sp.", "mma.sp::ordered_metadata."))
    if other is not None and other.variant == "sp":  # wgmma has no such variant
        return
    if instruction.variant != "sp" or other is None or other.since > subject.version:
        return
    sort: Flags = np.zeros(subject.tiles, np.bool_)
    if subject.e is not None:
        sort = ~subject.pattern.ascending[subject.fields].all(axis=(1, 2))
    message = "plain .sp may run slower: ptxas sorts its metadata in software on sm_100 and later"
    for which, verb in ((sort, "sort the pairs and write"), (~sort, "write")):
        yield from _tiles_with(subject, which, message, "note", "plain-sp", f"{verb} {other.mnemonic}")


# --- stored values -------------------------------------------------------------------------------------


def _stored_codes(subject: Subject) -> Codes:
    """Return ``(tiles, m, chunks, units kept, unit)``: the stored codes of A."""
    codes = codes_from(present(subject.a, "a"), subject.instruction, "a")
    return codes.reshape(*codes.shape[:2], -1, subject.pattern.kept, subject.pattern.unit)


def _is_zero(subject: Subject, codes: Codes) -> Flags:
    element = subject.instruction.a
    sign = element.sign_bit if element.is_float else 0
    zero: Flags = codes & codes.dtype.type(element.mask & ~sign) == 0
    return zero


def _zero_units(subject: Subject) -> Flags:
    """Return ``(tiles, m, chunks, units kept)``: whether all that is stored of a unit is zero."""
    zeros: Flags = _is_zero(subject, _stored_codes(subject)).all(axis=-1)
    return zeros


def _padding_indices(subject: Subject) -> Iterator[Alike]:
    """Yield stored zeros: a wrong index of theirs changes no result."""
    zeros = _zero_units(subject)

    def describe(tile: int) -> dict[str, Any]:
        row, chunk, unit = (int(x) for x in np.argwhere(zeros[tile])[0])
        message = (
            f"{int(zeros[tile].sum())} of {zeros[tile].size} stored units are zero (first: row {row}, "
            f"chunk {chunk}, unit {unit}): errors in their indices do not show in results"
        )
        return {"message": message, "row": row, "chunk": chunk}

    yield from _group_findings(
        subject,
        np.argwhere(zeros.any(axis=(1, 2, 3))),
        describe,
        severity="note",
        rule="padding-index",
        fix="test with non-zero values in every stored place",
    )


def _containers(subject: Subject) -> Iterator[Alike]:
    """Yield bits around the codes of fp6 and fp4 in bytes."""
    for name, words in (("a", subject.a), ("b", subject.b)):
        element, storage = subject.instruction.format(name), subject.instruction.storage(name)
        if words is None or storage.bits == element.bits:
            continue
        octets = np.ascontiguousarray(words).view(np.uint8)
        padding = octets & np.uint8(~(element.mask << storage.shift) & 0xFF)
        low = (octets & 0xF0 == 0).all(axis=(1, 2)) & bool(storage.shift)
        yield from _padded(subject, name, padding, low)


def _padded(subject: Subject, name: str, padding: npt.NDArray[np.uint8], low: Flags) -> Iterator[Alike]:
    """Yield tiles of an operand with bits in its padding; in those that are ``low`` all codes are."""
    element, storage = subject.instruction.format(name), subject.instruction.storage(name)

    def describe(tile: int) -> dict[str, Any]:
        return {
            "message": f"{name.upper()}: bits of the bytes outside the {element} code are set",
            "lane": int(np.argwhere(padding[tile])[0, 0]),
            "bits": (storage.shift, storage.shift + element.bits - 1),
        }

    kinds: tuple[tuple[Severity, Flags, str], ...] = (
        ("error", low, "the code sits in bits 5..2: shift the words left by 2"),
        ("warning", ~low, "write zeros there"),
    )
    for severity, which, fix in kinds:
        places = np.argwhere(padding.any(axis=(1, 2)) & which)
        yield from _group_findings(
            subject, places, describe, severity=severity, rule="container-padding", fix=fix
        )


# --- against logical A ---------------------------------------------------------------------------------


def _agrees(subject: Subject, registers: dict[str, Words]) -> Flags:
    """Return ``(tiles,)``: whether metadata, and A's registers where given, describe logical A."""
    matrix = present(subject.matrix, "matrix")
    fields = read_fields(subject.instruction, registers["e"], subject.selector)
    if "a" not in registers:
        zero = _is_zero(subject, matrix)
        return (zero | named_columns(fields, subject.pattern)).all(axis=(-2, -1))
    values = codes_from(registers["a"], subject.instruction, "a")
    dense = decompress(values, indices_of(subject.instruction, fields), subject.pattern)
    return (dense == matrix).all(axis=(-2, -1))


def _against_matrix(subject: Subject) -> Iterator[Alike]:
    """Yield a not as described: the rearrangements that would mend it, or else the first place."""
    e = present(subject.e, "e")
    registers = {"e": e} | ({} if subject.a is None else {"a": subject.a})
    for tile in np.flatnonzero(~_agrees(subject, registers)).tolist():
        single = subject.only(tile)
        yield from map(alone, _reasons(single, {name: w[tile : tile + 1] for name, w in registers.items()}))


def _reasons(subject: Subject, registers: dict[str, Words]) -> Iterator[Finding]:
    """Yield why the registers of a single tile do not describe its logical A."""
    found = [named_mistake(each) for each in _rearrangements(subject, registers)]
    for mistake in found:
        halves = any(kind == "xor" and (f["field"], f["by"]) == ("row", 8) for kind, f in mistake.records)
        yield Finding(
            severity="error",
            rule="row-half" if halves else "arrangement",
            message=f"logical A comes out if {mistake.name} is undone",
            fix=mistake.advice,
            tile=subject.tile(0),
        )
    if not found:
        yield _first_lost(subject)


def _rearrangements(subject: Subject, registers: dict[str, Words]) -> list[Explanation]:
    """Return the simplest maps of metadata or A that give the logical A once they are undone."""
    setting = Setting(instruction=subject.instruction, selector=subject.selector)
    maps = (permutations(setting, name, _MOST) for name in "ea" if name in registers)
    for _, level in groupby(heapq.merge(*maps, key=lambda each: each.cost), key=lambda each: each.cost):
        found = [
            each
            for each in level
            if _agrees(subject, registers | present(each.inverse, "inverse").applied(registers)).all()
        ]
        if found:
            return found
    return []


def _first_lost(subject: Subject) -> Finding:
    """Return the first element of A that the registers of a single tile do not give."""
    matrix = present(subject.matrix, "matrix")
    lost = ~_is_zero(subject, matrix) & ~named_columns(subject.fields, subject.pattern)
    if not lost.any():
        return Finding(
            severity="error",
            rule="stored-values",
            message="the metadata names every non-zero of A, but the stored values are not A's",
            fix="compare with warpsim.compress",
            tile=subject.tile(0),
        )
    _, row, column = (int(x) for x in np.argwhere(lost)[0])
    chunk = column // subject.pattern.chunk
    return Finding(
        severity="error",
        rule="lost-value",
        message=f"A[{row}, {column}] is not zero, but the metadata names no such column "
        f"({int(lost.sum())} values of A are lost)",
        fix="compare with warpsim.compress and warpsim.pack_metadata",
        tile=subject.tile(0),
        **subject.place(row, chunk),
    )


# --- the rules -----------------------------------------------------------------------------------------

# What the rule needs to be given, and the rule; they run only with a legal selector.
RULES: tuple[tuple[tuple[str, ...], LintRule], ...] = (
    (("e",), _empty_words),
    (("e",), _undefined_fields),
    (("e",), _descending_fields),
    (("e",), _half_rows),
    (("e",), _ignored_lanes),
    (("e",), _broadcast),
    ((), _plain_sp),
    (("a",), _padding_indices),
    ((), _containers),
    (("e", "matrix"), _against_matrix),
)
