"""Words of an explanation: a headline, what to change, and other words for the same table.

The words are chosen by the table, from all atoms that make it: those of the view in which the user thinks of
it win. Sentences are made of the words of fields; no sentence belongs to a single mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....isa.formats import Format
from ..library.mistake import Record
from .atoms import Atom, Atoms
from .fitting import Piece
from .map_words import CHUNK, Speaker, map_words, places, value_words, where
from .solving import Explanation
from .views import ACCUMULATORS, ORDERS, SELECTED

_PLAIN_KINDS = ("swapped", "copied", "xor", "rotated", "ordered", "reversed", "transposed", "nested")
_SHOWN = 16  # values of a field that are listed
_PREFERRED = ("registers", "matrix", "quads", "words", "blocks", "chunks", "memory", *ORDERS)


@dataclass(frozen=True)
class Named:
    """The words of an explanation: ``headline``, ``advice``, and ``also``: other words for the same.

    ``records`` are kinds and facts of all of them: of values, of maps, and ``where``.
    """

    headline: str
    advice: str
    also: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()


def words(explanation: Explanation, given: str = "registers") -> Named:
    """Return the words of an explanation; ``given`` is the view in which the user's input came."""
    speaker = speaker_of(explanation)
    atoms = spoken(explanation.atom, explanation.operand.atoms, given)
    said = [atom for atom in atoms if atom is atoms[0] or atom.kind in _PLAIN_KINDS]
    phrases = [phrase(explanation, atom, speaker) for atom in said]
    first, *others = dict.fromkeys(f"{speaker.subject}: {phrase}" for phrase in phrases)
    records = tuple(_records(explanation, atoms))
    return Named(first, advice(explanation, atoms[0], speaker), tuple(others), records)


def _records(explanation: Explanation, atoms: Sequence[Atom]) -> Iterator[Record]:
    """Yield kinds and facts of the values, of every name of the map, of a second map, and of the places."""
    source, then = explanation.source, explanation.then
    if source.kind != "own":
        yield source.kind, source.facts
    yield from ((atom.kind, atom.facts) for atom in atoms if atom.kind != "unchanged")
    if then is not None:
        yield then.kind, then.facts
    yield from (("where", each.facts) for each in explanation.within)


def speaker_of(explanation: Explanation) -> Speaker:
    """Return the operand of an explanation for its words."""
    operand = explanation.operand
    form, name = operand.setting.instruction, operand.name
    if name == "cd":
        return Speaker(name, form.storage("d").bits)
    bits = 32 // (operand.size // form.lanes) if name == "e" else 8
    return Speaker(name, form.storage(name).bits if name in "abcd" else bits)


def spoken(own: Atom, atoms: Atoms, given: str = "registers", operand: str = "") -> list[Atom]:
    """Return the atoms of the same table and about the same cost, the view of the user's input first.

    Rows of ``operand`` b are k, of which only halves are known by name.
    """
    if own.kind == "unchanged":
        return [own]
    same = atoms.alike(own.table, own.cost + 1)
    views = list(dict.fromkeys((given, *_PREFERRED)))

    def rank(atom: Atom) -> tuple[bool, int, float, int]:
        kinds = *_PLAIN_KINDS, *(atom.kind,) * _is_swizzle(atom)
        kind = kinds.index(atom.kind) if atom.kind in kinds else len(_PLAIN_KINDS) + 1
        if atom.facts.get("size") == 2 and atom.kind in ("swapped", "rotated", "ordered"):
            kind = kinds.index("xor")  # of two values all of these are the same
        return not _is_known(atom, operand), kind, atom.cost, views.index(atom.view.name)

    return sorted(same or [own], key=rank)


def _is_swizzle(atom: Atom) -> bool:
    """Return whether chunks of 16 bytes are exchanged by bits of their line."""
    if atom.kind not in ("swizzled", "bit added"):
        return False
    return atom.facts["first"][0] == CHUNK and atom.facts["second"][0] in ("row", "column")


def _is_known(atom: Atom, operand: str) -> bool:
    """Return whether users know an atom by its name: halves, a transposition, a selector, accumulators."""
    if atom.facts.get("field") in ("selector", "thread id"):
        return True
    if atom.kind == "renumbered":
        read = {atom.facts["from"], atom.facts["as"]}
        return read in ({"registers", "matrix"}, {SELECTED, "matrix"}) or (
            ACCUMULATORS in read and bool(read & {"matrix", "memory"})
        )
    if atom.view.name != "matrix":
        return False
    by = int(atom.facts["by"]) if atom.kind == "xor" else 0
    rows = atom.facts.get("field") == "row" and operand != "b"
    halves = by and (2 * by == atom.facts["size"] or (by == 8 and rows))
    return atom.kind in ("nested", "interleaved") or (
        bool(halves) and atom.facts["field"] in ("row", "column")
    )


def valued(source: Any, element: Format) -> str:
    """Return a function of values as a part of a sentence."""
    return value_words(source.kind, source.facts, Speaker("a", element.bits))


def unit_words(units: tuple[str, Sequence[int]], speaker: Speaker) -> str:
    """Return the order of a field whose values come from anywhere, -1 for nothing."""
    field, order = units
    shown = ", ".join("none" if at < 0 else str(at) for at in order[:_SHOWN])
    return f"{speaker.nouns(field)} hold those of {shown}" + ", …" * (len(order) > _SHOWN)


def phrase(explanation: Explanation | Piece, atom: Atom, speaker: Speaker) -> str:
    """Return values, map and places as a part of a sentence; empty where nothing is moved."""
    source, within = explanation.source, explanation.within
    if source.kind == "zero":
        if not within:
            return "not added" if speaker.operand == "c" else "all zero"
        return f"{places(within, speaker)} zero"
    moved = "" if atom.kind == "unchanged" else _moved(explanation, atom, speaker)
    values = "" if source.kind == "own" else value_words(source.kind, source.facts, speaker)
    text = ", ".join(part for part in (values, moved) if part)
    if explanation.then is not None:
        second = explanation.then
        text += f"; then {map_words(second.kind, second.facts, speaker, second.view)}"
    return text + where(within, speaker)


def _moved(explanation: Any, atom: Atom, speaker: Speaker) -> str:
    meant = selector_meant(explanation, atom)
    return (
        map_words(atom.kind, atom.facts, speaker, atom.view) if meant is None else f"selector {meant} meant"
    )


def selector_meant(explanation: Any, atom: Atom) -> int | None:
    """Return the selector whose metadata are read in place of the given selector; None for other maps."""
    if atom.facts.get("field") != "selector":
        return None
    selectors = atom.view.coordinates[:, atom.view.field("selector")]
    own = np.flatnonzero(selectors == explanation.operand.setting.selector)
    read = np.unique(selectors[atom.table[own]])
    return int(read[0]) if len(read) == 1 and (atom.table[own] >= 0).all() else None


# --- advice ----------------------------------------------------------------------------------------------


def advice(explanation: Any, atom: Atom, speaker: Speaker) -> str:
    """Return what to change, by the operand and the kind of the atom."""
    subject = speaker.subject
    if explanation.source.kind == "zero":
        return f"load these places of {subject}: they hold zero"
    meant = selector_meant(explanation, atom)
    if meant is not None:
        own = explanation.operand.setting.selector
        return f"pass sparsity selector {meant}, or move the words to the lanes that selector {own} reads"
    if explanation.source.kind == "times" and speaker.operand == "c":
        return "check beta, and that the accumulator is added once"
    if explanation.source.kind == "times":
        return f"a factor of {explanation.source.facts['factor']:.6g} enters: check scales, alpha and beta"
    if explanation.source.kind == "tile":
        return f"correct the index of the tile in the addresses of {subject}"
    if explanation.source.kind == "other operand":
        return f"pass the registers of {subject} in its own place"
    if atom.kind == "unchanged" and speaker.operand == "d":
        return "the result is right, and changes where it is stored: store it as the instruction returns it"
    if atom.kind == "unchanged":
        return f"the values of {subject} change on the way: convert them as the instruction takes them"
    if atom.kind == "swapped" and not explanation.within and explanation.then is None:
        facts = atom.facts
        nouns = speaker.nouns(facts["field"])
        return f"exchange {nouns} {facts['first']} and {facts['second']} of {subject}"
    stored = {"d": "store", "cd": "load and store"}.get(speaker.operand, "load")
    return f"{stored} each element of {subject} in its own place: correct {_correct(atom, speaker)}"


def _correct(atom: Atom, speaker: Speaker) -> str:
    """Return which computation of the user an atom points at."""
    if atom.kind in ("nested", "transposed") and atom.view.name in ("matrix", "memory", "blocks"):
        how = " (row-major, column-major, .trans of ldmatrix)" if speaker.operand in "abcd" else ""
        return f"the order of rows and columns{how}"
    if atom.kind == "swizzled" or atom.view.name == "chunks":
        return "the swizzle: the same where shared memory is written and where it is read"
    if atom.kind in ("row stride", "written with stride", "by columns", "base"):
        return "the stride and the base of the address"
    if atom.facts.get("field") in ("slot", "index", "byte", "field", "part"):
        return f"the order of {speaker.nouns(atom.facts['field'])} in a word"
    if "field" in atom.facts and speaker.noun(atom.facts["field"]) == "k":
        return "the index along k"
    if "field" in atom.facts:
        return f"the index of the {speaker.noun(atom.facts['field'])}"
    return "the indices"
