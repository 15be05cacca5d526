"""The rules of lint: each a function from one tile of registers to findings.

Nothing is executed: what registers contain is judged by itself, and against logical A where it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ....base.errors import present
from ....isa.families import forms
from ....isa.fragments import codes_from, indices_of, known_fields, read_fields
from ....isa.metadata.detection import named_columns
from ....isa.products import Codes
from ....isa.registers import Words
from ....isa.sparsity import decompress
from ..library.all_mistakes import mistakes
from ..library.grids import Setting
from ..library.mistake import Mistake
from .subject import Finding, Subject

LintRule = Callable[[Subject], Iterator[Finding]]
Flags = Any  # npt.NDArray[np.bool_], which its own methods do not return


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


def _empty_words(subject: Subject) -> Iterator[Finding]:
    for lane in subject.read_lanes[subject.words[subject.read_lanes] == 0]:
        yield Finding(
            severity="error",
            rule="empty-word",
            message=f"lane {lane}: the metadata word is 0, and no legal field is",
            fix="load the metadata of this lane, or use the selector of the lanes that have it",
            lane=int(lane),
        )


def _undefined_fields(subject: Subject) -> Iterator[Finding]:
    """Yield fields that PTX leaves undefined under either variant."""
    rule = "tf32-field" if subject.pattern.kept == 1 else "equal-indices"
    fix = "write 0b0100 or 0b1110" if subject.pattern.kept == 1 else "name two different units"
    zeros = _zero_chunks(subject)
    for row, chunk in _bad_fields(subject, subject.pattern.distinct):
        hidden = "; its stored values are zero, so that results do not show it" if zeros[row, chunk] else ""
        yield Finding(
            severity="error",
            rule=rule,
            message=f"{_field_text(subject, row, chunk)} is undefined{hidden}",
            fix=fix,
            **subject.place(row, chunk),
        )


def _descending_fields(subject: Subject) -> Iterator[Finding]:
    """Yield descending indices: undefined when ordered, unknown where ptxas does not sort them."""
    instruction = subject.instruction
    legal = known_fields(instruction) | ~subject.pattern.distinct
    for row, chunk in _bad_fields(subject, legal):
        unknown = f"not known to work on {instruction.target}"
        because = "under sp::ordered_metadata" if instruction.ordered else unknown
        yield Finding(
            severity="error" if instruction.ordered else "warning",
            rule="descending-indices",
            message=f"{_field_text(subject, row, chunk)} descends, {because}",
            fix="exchange the two indices together with the two stored units",
            **subject.place(row, chunk),
        )


def _bad_fields(subject: Subject, legal: Flags) -> list[tuple[int, int]]:
    """Return row and chunk of fields that are not legal, those in empty words apart."""
    lane = subject.map[:, 0].reshape(subject.fields.shape)
    bad = ~legal[subject.fields] & (subject.words[lane] != 0)
    return [(int(row), int(chunk)) for row, chunk in np.argwhere(bad)]


def _field_text(subject: Subject, row: int, chunk: int) -> str:
    place, value = subject.place(row, chunk), int(subject.fields[row, chunk])
    low, high = place["bits"]
    indices = ", ".join(str(index) for index in subject.pattern.decode_table[value])
    named = f" (indices {indices})" if subject.pattern.kept > 1 else ""
    return f"lane {place['lane']}, bits {high}..{low} (row {row}, chunk {chunk}): field {value:#06b}{named}"


def _half_rows(subject: Subject) -> Iterator[Finding]:
    """Yield rows of one half all legal, those of the other all not."""
    legal: Flags = subject.pattern.distinct[subject.fields]
    lower: Flags = np.arange(len(legal)) % 16 < 8
    for bad, good in ((lower, ~lower), (~lower, lower)):
        if legal[good].all() and not legal[bad].any():
            rows = "g" if bad is lower else "g + 8"
            yield Finding(
                severity="error",
                rule="row-half",
                message=f"rows {rows} have no legal metadata, all other rows have",
                fix=f"rows g + 8 have their fields in {_half_place(subject)}: supply both halves",
            )


def _half_place(subject: Subject) -> str:
    wide = subject.instruction.storage("a").bits >= 16
    return "the upper 16 bits of the same lane" if wide else "the odd lane of each pair"


def _ignored_lanes(subject: Subject) -> Iterator[Finding]:
    """Yield lanes with data that the selector does not read; an error if only they are legal."""
    instruction = subject.instruction
    filled: Flags = subject.words.reshape(-1, 4).any(axis=0)
    for other in instruction.selectors:
        lanes = slice(other * instruction.metadata_words, (other + 1) * instruction.metadata_words)
        if other == subject.selector or not filled[lanes].any():
            continue
        e = present(subject.e, "e")
        legal = [
            subject.pattern.distinct[read_fields(instruction, e, which)].all()
            for which in (subject.selector, other)
        ]
        wrong = legal == [False, True]
        yield Finding(
            severity="error" if wrong else "note",
            rule="ignored-lanes",
            message=f"selector {subject.selector} ignores {_thread_text(lanes)} of each quad, which "
            + ("alone hold legal metadata" if wrong else "hold data"),
            fix=f"these lanes belong to selector {other}",
        )


def _thread_text(lanes: slice) -> str:
    threads = range(lanes.start, lanes.stop)
    return f"lane{'s'[: len(threads) != 1]} {', '.join(map(str, threads))}"


def _read_lanes(subject: Subject) -> str:
    """Return which lanes of a quad the selector reads."""
    lanes = np.unique(subject.read_lanes % 4)
    return "all lanes" if len(lanes) == 4 else _thread_text(slice(int(lanes[0]), int(lanes[-1]) + 1))


def _broadcast(subject: Subject) -> Iterator[Finding]:
    """Yield all words that are read of a quad alike, or its upper pair a copy of the lower pair."""
    quads = subject.quads
    if quads.shape[1] < 2 or not quads.any():
        return
    if (quads == quads[:, :1]).all():
        uniform = (subject.fields == subject.fields[0, 0]).all()
        yield Finding(
            severity="note" if uniform else "warning",
            rule="broadcast-word",
            message=f"{_read_lanes(subject)} of each quad hold the same metadata word"
            + (", and every chunk the same pattern, which hides errors of the layout" if uniform else ""),
            fix="each of the lanes that are read describes chunks or rows of its own",
        )
    elif quads.shape[1] == 4 and (quads[:, :2] == quads[:, 2:]).all():
        yield Finding(
            severity="warning",
            rule="two-k-halves",
            message="lanes 2, 3 of each quad repeat lanes 0, 1: the metadata of half of k twice",
            fix="lane bit 0 chooses the row half and lane bit 1 the k half: k64 is not k32 twice",
        )


def _plain_sp(subject: Subject) -> Iterator[Finding]:
    """Yield plain .sp where the ordered variant exists (ptxas advises so from PTX 8.5 on)."""
    instruction = subject.instruction
    other = forms().get(instruction.mnemonic.replace("mma.sp.", "mma.sp::ordered_metadata."))
    if other is not None and other.variant == "sp":  # wgmma has no such variant
        return
    if instruction.variant != "sp" or other is None or other.since > subject.version:
        return
    sort = subject.e is not None and not subject.pattern.ascending[subject.fields].all()
    yield Finding(
        severity="note",
        rule="plain-sp",
        message="plain .sp may run slower: ptxas sorts its metadata in software on sm_100 and later",
        fix=("sort the pairs and write " if sort else "write ") + other.mnemonic,
    )


# --- stored values -------------------------------------------------------------------------------------


def _stored(subject: Subject) -> Codes:
    """Return ``(m, chunks, units kept, unit)``: the stored codes of A."""
    a = present(subject.a, "a")
    codes = codes_from(a, subject.instruction, "a")
    return codes.reshape(len(codes), -1, subject.pattern.kept, subject.pattern.unit)


def _is_zero(subject: Subject, codes: Codes) -> Flags:
    element = subject.instruction.a
    sign = element.sign_bit if element.is_float else 0
    zero: Flags = codes & codes.dtype.type(element.mask & ~sign) == 0
    return zero


def _zero_chunks(subject: Subject) -> Flags:
    """Return ``(m, chunks)``: whether everything stored of a chunk is zero; False where A is not given."""
    if subject.a is None:
        return np.zeros(subject.fields.shape, np.bool_)
    zeros: Flags = _is_zero(subject, _stored(subject)).all(axis=(-2, -1))
    return zeros


def _padding_indices(subject: Subject) -> Iterator[Finding]:
    """Yield stored zeros: a wrong index of theirs changes no result."""
    unit_is_zero = _is_zero(subject, _stored(subject)).all(axis=-1)
    if not unit_is_zero.any():
        return
    row, chunk, unit = (int(x) for x in np.argwhere(unit_is_zero)[0])
    yield Finding(
        severity="note",
        rule="padding-index",
        message=f"{int(unit_is_zero.sum())} of {unit_is_zero.size} stored units are zero (first: row {row}, "
        f"chunk {chunk}, unit {unit}): errors in their indices do not show in results",
        fix="test with non-zero values in every stored place",
        row=row,
        chunk=chunk,
    )


def _containers(subject: Subject) -> Iterator[Finding]:
    """Yield bits around the codes of fp6 and fp4 in bytes."""
    for name, words in (("a", subject.a), ("b", subject.b)):
        element, storage = subject.instruction.format(name), subject.instruction.storage(name)
        if words is None or storage.bits == element.bits:
            continue
        octets = np.ascontiguousarray(words).view(np.uint8)
        padding = octets & np.uint8(~(element.mask << storage.shift) & 0xFF)
        if not padding.any():
            continue
        low = storage.shift and not (octets & 0xF0).any()
        yield Finding(
            severity="error" if low else "warning",
            rule="container-padding",
            message=f"{name.upper()}: bits of the bytes outside the {element} code are set",
            fix="the code sits in bits 5..2: shift the words left by 2" if low else "write zeros there",
            lane=int(np.argwhere(padding)[0, 0]),
            bits=(storage.shift, storage.shift + element.bits - 1),
        )


# --- against logical A ---------------------------------------------------------------------------------


def _agrees(subject: Subject, registers: dict[str, Words]) -> bool:
    """Return whether metadata, and A's registers where given, describe logical A."""
    matrix = present(subject.matrix, "matrix")
    fields = read_fields(subject.instruction, registers["e"], subject.selector)
    if "a" not in registers:
        zero = _is_zero(subject, matrix)
        return bool(zero[~named_columns(fields, subject.pattern)].all())
    values = codes_from(registers["a"], subject.instruction, "a")
    dense = decompress(values, indices_of(subject.instruction, fields), subject.pattern)
    return bool((dense == matrix).all())


def _against_matrix(subject: Subject) -> Iterator[Finding]:
    """Yield a not as described: the rearrangements that would mend it, or else the first place."""
    e = present(subject.e, "e")
    registers = {"e": e} | ({} if subject.a is None else {"a": subject.a})
    if _agrees(subject, registers):
        return
    found = [
        mistake
        for mistake in _rearrangements(subject)
        if set(mistake.operands) <= set(registers)
        and mistake.mend is not None
        and _agrees(subject, registers | mistake.mend(registers))
    ]
    for mistake in found:
        yield Finding(
            severity="error",
            rule="row-half" if mistake.exchanges_row_halves else "arrangement",
            message=f"logical A comes out if {mistake.name} is undone",
            fix=mistake.advice,
        )
    if not found:
        yield _first_lost(subject)


def _rearrangements(subject: Subject) -> Sequence[Mistake]:
    known = mistakes(Setting(instruction=subject.instruction, selector=subject.selector))
    return [mistake for mistake in known if mistake.operands in (("e",), ("a",))]


def _first_lost(subject: Subject) -> Finding:
    """Return the first element of A that the registers do not give."""
    matrix = present(subject.matrix, "matrix")
    lost = ~_is_zero(subject, matrix) & ~named_columns(subject.fields, subject.pattern)
    if not lost.any():
        return Finding(
            severity="error",
            rule="stored-values",
            message="the metadata names every non-zero of A, but the stored values are not A's",
            fix="compare with warpsim.compress",
        )
    row, column = (int(x) for x in np.argwhere(lost)[0])
    chunk = column // subject.pattern.chunk
    return Finding(
        severity="error",
        rule="lost-value",
        message=f"A[{row}, {column}] is not zero, but the metadata names no such column "
        f"({int(lost.sum())} values of A are lost)",
        fix="compare with warpsim.compress and warpsim.pack_metadata",
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
