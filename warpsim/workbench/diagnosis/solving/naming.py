"""Words of an explanation: values, map and places in a sentence, and what to change.

The words are chosen by the table, from all atoms that make it: those of the view in which the user thinks of
it win. Sentences are made of the words of fields; no sentence belongs to a single mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ....isa.formats import Format
from .atoms import Atom, Atoms
from .map_words import CHUNK, map_words, value_words
from .place_words import Speaker, places, where
from .views import ACCUMULATORS, ORDERS, SELECTED

_PLAIN_KINDS = ("swapped", "copied", "xor", "rotated", "ordered", "reversed", "transposed", "nested")
_SHOWN = 16  # values of a field that are listed
_PREFERRED = ("registers", "matrix", "quads", "words", "blocks", "chunks", "memory", *ORDERS)


def spoken(own: Atom, atoms: Atoms, given: str = "registers") -> list[Atom]:
    """Return the atoms of the same table and about the same cost, the view of the user's input first."""
    if own.kind == "unchanged":
        return [own]
    same = [atom for atom in atoms.alike(own.table) if atom.cost <= own.cost + 1]
    views = list(dict.fromkeys((given, *_PREFERRED)))

    def rank(atom: Atom) -> tuple[bool, int, float, int]:
        kinds = *_PLAIN_KINDS, *(atom.kind,) * _is_swizzle(atom)
        kind = kinds.index(atom.kind) if atom.kind in kinds else len(_PLAIN_KINDS) + 1
        if atom.facts.get("size") == 2 and atom.kind in ("swapped", "rotated", "ordered"):
            kind = kinds.index("xor")  # of two values all of these are the same
        return not _is_known(atom), kind, atom.cost, views.index(atom.view.name)

    return sorted(same or [own], key=rank)


def _is_swizzle(atom: Atom) -> bool:
    """Return whether chunks of 16 bytes are exchanged by bits of their line."""
    if atom.kind not in ("swizzled", "bit added"):
        return False
    return atom.facts["first"][0] == CHUNK and atom.facts["second"][0] in ("row", "column")


def _is_known(atom: Atom) -> bool:
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
    halves = by and (2 * by == atom.facts["size"] or (by == 8 and atom.facts["field"] == "row"))
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


class Spoken(Protocol):
    """What is put into words: values, places where they stand, and a second map."""

    @property
    def source(self) -> Any:
        """Values that were moved, by kind and facts."""

    @property
    def within(self) -> Sequence[Any]:
        """Predicates that all hold."""

    @property
    def then(self) -> Atom | None:
        """A map after the first."""


def phrase(explanation: Spoken, atom: Atom, speaker: Speaker) -> str:
    """Return values, map and places as a part of a sentence; empty where nothing is moved."""
    source, within = explanation.source, explanation.within
    if source.kind == "zero":
        if not within:
            return "not added" if speaker.operand == "c" else "all zero"
        return f"{places(within, speaker)} zero"
    moved = "" if atom.kind == "unchanged" else map_words(atom.kind, atom.facts, speaker, atom.view)
    values = "" if source.kind == "own" else value_words(source.kind, source.facts, speaker)
    text = ", ".join(part for part in (values, moved) if part)
    if explanation.then is not None:
        second = explanation.then
        text += f"; then {map_words(second.kind, second.facts, speaker, second.view)}"
    return text + where(within, speaker)


# --- advice ----------------------------------------------------------------------------------------------


def advice(explanation: Spoken, atom: Atom, speaker: Speaker) -> str:
    """Return what to change, by the operand and the kind of the atom."""
    subject = speaker.subject
    if explanation.source.kind == "zero":
        return f"load these places of {subject}: they hold zero"
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
    if atom.kind in ("nested", "transposed") and atom.view.name in ("matrix", "blocks"):
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
