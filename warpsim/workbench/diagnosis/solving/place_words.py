"""Words of fields and places: nouns of an operand's fields, and sets of places in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..library.mistake import SPELLED
from .atoms import Facts, Where

UNITS = {32: "register", 16: "16-bit half", 8: "byte", 4: "nibble", 2: "index", 1: "bit"}
_PLURALS = {"index": "indices", "16-bit half": "16-bit halves"}
_TILES = ("row tile", "column tile", "k step")  # fields of views of whole matrices
_NOUNS = {
    "quad": "lane group",
    "thread": "thread in group",
    "place": "element in 16-byte chunk",
    "part": "element",
}


@dataclass(frozen=True)
class Speaker:
    """The operand whose fields are put into words: its name and the width of its places in bits."""

    operand: str
    bits: int

    @property
    def subject(self) -> str:
        """The operand's name in a sentence."""
        return SPELLED.get(self.operand, self.operand.upper())

    def noun(self, field: str) -> str:
        """Return the word for a field."""
        if self.operand.startswith("scale") and field == "byte":
            return "byte id"
        if field in ("slot", "index", "byte", "field"):
            return UNITS.get(self.bits, "element") if field == "slot" else field
        if (self.operand, field) in (("a", "column"), ("b", "row")):
            return "k"
        return _NOUNS.get(field, field)

    def nouns(self, field: str) -> str:
        """Return the plural of the word for a field."""
        return plural(self.noun(field))


def plural(noun: str) -> str:
    """Return the plural of a noun; k stays k."""
    if noun == "k":
        return noun
    if "block" in noun:
        return noun.replace("block", "blocks", 1)
    first, inside, rest = noun.partition(" in ")
    return f"{_PLURALS.get(first, first + 's')}{inside}{rest}"


def places(within: Sequence[Where], speaker: Speaker) -> str:
    """Return a set of places as the subject of a sentence, with its verb: ``lanes 16-31 are``."""
    noun = _noun(within, speaker)
    if noun is None:
        return f"places where {conditions(within, speaker)} are"
    text, plural_verb = noun
    return f"{text} {'are' if plural_verb else 'is'}"


def where(within: Sequence[Where], speaker: Speaker) -> str:
    """Return a set of places at the end of a sentence: ``on odd lanes only``; empty for all places."""
    noun = _noun(within, speaker)
    if noun is not None:
        return f" on {noun[0]} only"
    return f", only where {conditions(within, speaker)}" if within else ""


def _noun(within: Sequence[Where], speaker: Speaker) -> tuple[str, bool] | None:
    """Return places as a noun and whether it is a plural; None where they are no range, nor odd or even."""
    if len(within) != 1 or "field" not in within[0].facts or "other" in within[0].facts:
        return None
    facts = within[0].facts
    nouns, noun = speaker.nouns(facts["field"]), speaker.noun(facts["field"])
    first, last = _range(facts)
    axis, of_blocks, width = str(facts["field"]).partition(" block of ")
    if first is not None and last is not None and of_blocks and within[0].view.name == "blocks":
        in_tiles = any(field.name in _TILES for field in within[0].view.fields)
        lines = f"{speaker.nouns(axis)} {first * int(width)}-{(last + 1) * int(width) - 1}"
        return lines + " of each tile" * in_tiles, True
    if first is not None and last is not None:
        return (f"{noun} {first}", False) if first == last else (f"{nouns} {first}-{last}", True)
    if facts.get("bit") == 0:
        return f"{'odd' if facts['is'] else 'even'} {nouns}", True
    return None


def conditions(within: Sequence[Any], speaker: Speaker) -> str:
    """Return the conditions that all hold."""
    return " and ".join(condition(each, speaker) for each in within)


def _range(facts: Facts) -> tuple[int | None, int | None]:
    """Return the first and last value of a condition on a field; None where it is no range."""
    size = int(facts["size"])
    if "value" in facts:
        return int(facts["value"]), int(facts["value"])
    if "from" in facts:
        return int(facts["from"]), size - 1
    if "below" in facts:
        return 0, int(facts["below"]) - 1
    half = 1 << int(facts["bit"])
    if 2 * half == size:
        return (half, size - 1) if facts["is"] else (0, half - 1)
    return None, None


def condition(within: Where, speaker: Speaker) -> str:
    """Return a set of places as a condition: ``lane >= 16``."""
    facts = within.facts
    if "bits" in facts:
        bit, other = (bit_words(each, speaker) for each in facts["bits"])
        if "xor" in facts:
            return f"{bit} {'differs from' if facts['xor'] else 'equals'} {other}"
        return f"{bit} is {facts['are'][0]} and {other} is {facts['are'][1]}"
    noun = speaker.noun(facts["field"])
    if "other" in facts:
        sign, by = (">=" if facts["is"] == "beyond" else "<"), int(facts["by"])
        return f"{noun} {sign} {speaker.noun(facts['other'])}{f' {by:+d}' if by else ''}"
    first, last = _range(facts)
    if first is not None and last is not None:
        return f"{noun} is {first}" if first == last else f"{noun} is {first} to {last}"
    if facts["bit"] == 0:
        return f"{noun} is {'odd' if facts['is'] else 'even'}"
    return f"bit {facts['bit']} of the {noun} is {facts['is']}"


def bit_words(named: Sequence[object], speaker: Speaker) -> str:
    """Return a bit of a field, from its name and number."""
    return f"bit {named[1]} of the {speaker.noun(str(named[0]))}"
