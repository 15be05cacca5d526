"""Words of maps and of values: a phrase for each kind of atom and of source, made of the words of fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..library.mistake import SPELLED
from .atoms import Facts, Where
from .views import ACCUMULATORS, SELECTED, View

CHUNK = "16-byte chunk"
_LISTED = 16  # values of a field, up to which they are listed
_TILES = {1: "next", -1: "previous", 0: "first"}


def _xor(facts: Facts, speaker: Speaker, view: View) -> str:
    by, size, field = int(facts["by"]), int(facts["size"]), str(facts["field"])
    noun, nouns = speaker.noun(field), speaker.nouns(field)
    if view.name == "registers" and field in ("slot", "index", "byte"):
        mask = by * speaker.bits
        # which parts of a register are exchanged, or reversed, by an exclusive or of bit positions
        low, top = mask & -mask, 1 << mask.bit_length()
        unit, whole = UNITS.get(low, f"{low}-bit part"), UNITS.get(top, f"{top} bits")
        if speaker.operand == "e" and top == 4:
            whole = "field"
        if mask == top - low:
            verb = "exchanged" if mask == low else "reversed"
            return f"{plural(unit)} of each {whole} {verb}"
        return f"{plural(unit)} i and i ^ {mask // low} of each register exchanged"
    if field == "row" and by == 8 and speaker.operand != "b":
        return "rows g and g + 8 exchanged"
    if 2 * by == size and size > 2:
        return f"{noun} halves exchanged"
    if size == 2:
        return f"{nouns} 0 and 1 exchanged"
    if by == size - 1:
        return f"{nouns} in reverse order"
    return f"{nouns} i and i ^ {by} exchanged"


def _rotated(facts: Facts, speaker: Speaker, view: View) -> str:
    by, size = int(facts["by"]), int(facts["size"])
    signed = by if by <= size // 2 else by - size
    return f"{speaker.noun(facts['field'])} off by {signed:+d}"


def _shifted(facts: Facts, speaker: Speaker, view: View) -> str:
    by, field = int(facts["by"]), str(facts["field"])
    if view.name == "registers" and field in ("slot", "index", "byte"):
        each = "word" if speaker.operand == "e" else "register"
        return f"each {each} shifted {'left' if by < 0 else 'right'} by {abs(by) * speaker.bits} bits"
    return f"{speaker.noun(field)} off by {by:+d}, nothing beyond the edge"


def _renumbered(facts: Facts, speaker: Speaker, view: View) -> str:
    read, held, each = str(facts["from"]), str(facts["as"]), int(facts["each"])
    if ACCUMULATORS in (read, held) and {read, held} & {"matrix", "memory"}:
        undone = ", undone" * (held == ACCUMULATORS)
        return f"k in the order of accumulators (D of the product before, packed as A){undone}"
    if speaker.operand == "e" and "matrix" in (read, held) and {read, held} & {"registers", SELECTED}:
        return "in memory order, not reordered" + ", undone (reordered twice)" * (held == "matrix")
    if (held, read) == ("registers", "matrix"):
        return f"lane l holds elements {each} * l to {each} * l + {each - 1} (addressed as lane * {each})"
    if (held, read) == ("matrix", "registers"):
        return f"in the order of lanes, {each} elements each (addressed as lane * {each})"
    return f"{read} in the order of {held}"


def _scaled(facts: Facts, speaker: Speaker, view: View) -> str:
    noun, by = speaker.noun(facts["field"]), int(facts["by"])
    term = f"{facts['factor']} * i{f' + {by}' if by else ''}"
    return f"{noun} i holds {noun} {f'({term})' if by else term} mod {facts['size']}"


def _swapped(facts: Facts, speaker: Speaker, view: View) -> str:
    return f"{speaker.nouns(facts['field'])} {facts['first']} and {facts['second']} exchanged"


def _copied(facts: Facts, speaker: Speaker, view: View) -> str:
    noun = speaker.noun(facts["field"])
    return f"{noun} {facts['at']} holds {noun} {facts['from']}'s elements"


def _ordered(facts: Facts, speaker: Speaker, view: View) -> str:
    order = facts["order"]
    moved = [at for at, source in enumerate(order) if at != source]
    if len(moved) == 2:
        return f"{speaker.nouns(facts['field'])} {moved[0]} and {moved[1]} exchanged"
    return f"{speaker.nouns(facts['field'])} in the order {', '.join(map(str, order))}"


def _added(facts: Facts, speaker: Speaker, view: View) -> str:
    """Return a bit added to another as an exchange where the other is set; of chunks, as a swizzle."""
    (field, bit), (other, other_bit) = facts["first"], facts["second"]
    if field == CHUNK:
        return _swizzled({**facts, "width": 1}, speaker, view)
    size, other_size = (view.fields[view.field(name)].size for name in (field, other))
    exchanged = _xor({"field": field, "size": size, "by": 1 << bit}, speaker, view)
    within = Where(view, {"field": other, "size": other_size, "bit": other_bit, "is": 1}, np.zeros(0, bool))
    return exchanged + where((within,), speaker)


def _reordered(facts: Facts, speaker: Speaker, view: View) -> str:
    """Return the order of the bits of a value; of few values their order."""
    size, order = int(facts["size"]), facts["order"]
    if size > _LISTED:
        return f"bits of the {speaker.noun(facts['field'])} in the order {order}, lowest first"
    values = [sum((value >> bit & 1) << to for to, bit in enumerate(order)) for value in range(size)]
    return f"{speaker.nouns(facts['field'])} in the order {', '.join(map(str, values))}"


def _blocks(facts: Facts, speaker: Speaker, view: View) -> str:
    width = 1 << int(facts["width"])
    (first, *_), (second, *_) = facts["first"], facts["second"]
    if view.name == "matrix" and {field.size for field in view.fields} == {width}:
        return "transposed"
    if view.name == "blocks" and width == 8:
        return "8 x 8 blocks transposed"
    return f"blocks of {width} x {width} of {speaker.noun(first)} and {speaker.noun(second)} transposed"


def _swizzled(facts: Facts, speaker: Speaker, view: View) -> str:
    (first, low), (second, from_low) = facts["first"], facts["second"]
    mask = (1 << int(facts["width"])) - 1
    inner = (
        f"{speaker.noun(second)} / {1 << from_low} & {mask}"
        if from_low
        else f"{speaker.noun(second)} & {mask}"
    )
    shift = f" * {1 << low}" if low else ""
    return f"swizzled: {speaker.noun(first)} ^ ({inner}){shift}"


def _nested(facts: Facts, speaker: Speaker, view: View) -> str:
    names = facts["field"], facts["other"]
    if view.name == "matrix" and set(names) == {"row", "column"}:
        how = "rows read as columns" if names[0] == "column" else "columns read as rows"
        return f"transposed ({how})"
    if view.name == "memory" and set(names) == {"row", "column"}:
        return "transposed in each tile (K-major and MN-major confused: the transpose bit)"
    return f"{speaker.noun(names[0])} and {speaker.noun(names[1])} nested in the other order"


def _stride(how: str) -> Callable[[Facts, Speaker, View], str]:
    def text(facts: Facts, speaker: Speaker, view: View) -> str:
        line = speaker.noun(view.fields[0].name)
        wrapped = ", wrapped" * bool(facts.get("wrapped"))
        return how.format(line=line, stride=facts.get("stride"), own=facts.get("own")) + wrapped

    return text


def _plain(text: str) -> Callable[[Facts, Speaker, View], str]:
    """Return a phrase with the nouns of its fields and the facts put in."""

    def made(facts: Facts, speaker: Speaker, view: View) -> str:
        named = {
            key: facts[key] for key in facts if key not in ("field", "other", "first", "second", "third")
        }
        if "field" in facts:
            named |= {"noun": speaker.noun(facts["field"]), "nouns": speaker.nouns(facts["field"])}
        if "other" in facts:
            named["other"] = speaker.noun(facts["other"])
        for key in ("first", "second", "third"):
            if isinstance(facts.get(key), list):
                named[key] = bit_words(facts[key], speaker)
        return text.format(**named)

    return made


_MAPS: dict[str, Callable[[Facts, Speaker, View], str]] = {
    "xor": _xor,
    "rotated": _rotated,
    "swapped": _swapped,
    "copied": _copied,
    "ordered": _ordered,
    "transposed": _blocks,
    "swizzled": _swizzled,
    "nested": _nested,
    "reversed": _plain("{nouns} in reverse order"),
    "shifted": _shifted,
    "clamped": _plain("{noun} off by {by:+d}, the last repeated at the edge"),
    "scaled": _scaled,
    "constant": _plain("{noun} {value}'s elements in every {noun}"),
    "cleared": _plain("bit {bit} of the {noun} cleared"),
    "set": _plain("bit {bit} of the {noun} set"),
    "rounded down": _plain("{noun} rounded down to a multiple of {to}"),
    "remainder": _plain("{noun} modulo {of}"),
    "divided": _plain("{noun} divided by {by}"),
    "bits": _reordered,
    "interleaved": _plain("{nouns} interleaved in blocks of {width}"),
    "spread": _plain("{nouns} spread: {width} in the room of twice as many, the rest empty"),
    "packed": _plain("{nouns} packed: the first half of each {width} * 2 alone, close together"),
    "reversed in blocks": _plain("{nouns} reversed in blocks of {width}"),
    "rotated in blocks": _plain("{noun} off by {by:+d} in each block of {width}"),
    "bits exchanged": _plain("{first} and {second} exchanged"),
    "bit added": _added,
    "bit read as": _plain("{first} read as {second}"),
    "bits rotated": _plain("{first}, {second} and {third} rotated"),
    "index rotated": _plain("bits of the index rotated by {by}"),
    "index reversed": _plain("bits of the index reversed"),
    "skewed": _plain("{noun} moved by {factor} * {other}, mod {size}"),
    "row stride": _stride("read with a {line} stride of {stride} elements, not {own}"),
    "written with stride": _stride("written with a {line} stride of {stride} elements, read with {own}"),
    "by columns": _stride("read across {line}s, {stride} elements apart"),
    "base": _plain("base off by {by:+d} elements"),
    "renumbered": _renumbered,
}


_VALUES: dict[str, Callable[[Facts, Speaker], str]] = {
    "negated": lambda facts, speaker: "negated",
    "absolute": lambda facts, speaker: "sign lost (absolute values)",
    "sign inverted": lambda facts, speaker: "sign bit inverted (a zero point)",
    "positive": lambda facts, speaker: "negative values set to zero (ReLU)",
    "times": lambda facts, speaker: f"times {facts['factor']:.6g}",
    "rounded": lambda facts, speaker: f"rounded to {facts['to']}",
    "cut": lambda facts, speaker: f"truncated to {facts['to']}",
    "tf32": lambda facts, speaker: f"f32 not rounded to tf32 ({'cvt.rn' if facts['to even'] else 'cvt.rna'})",
    "read as": lambda facts, speaker: f"{facts['type']} bits read as {facts['own']}, values converted",
    "passed as": lambda facts, speaker: f"bits of {facts['type']} passed as {facts['own']}",
    "offset": lambda facts, speaker: f"values off by {facts['by']:+d} (a zero point)",
    "bytes exchanged": lambda facts, speaker: "bytes of each element reversed",
    "halves exchanged": lambda facts, speaker: "16-bit halves of each element exchanged",
    "nibbles exchanged": lambda facts, speaker: "nibbles of each byte exchanged",
    "nibble": lambda facts, speaker: (
        f"the {facts['part']} nibble alone{', sign extended' * bool(facts['signed'])}"
    ),
    "inverted": lambda facts, speaker: "all bits inverted",
    "part lost": lambda facts, speaker: f"the {facts['kept']} half of each element alone, the rest zero",
    "misplaced": lambda facts, speaker: (
        f"elements {abs(facts['by'])} bits too {'high' if facts['by'] > 0 else 'low'} in their bytes"
    ),
    "index xor": lambda facts, speaker: f"each index xor {facts['by']}",
    "index bits exchanged": lambda facts, speaker: "bits of each index exchanged",
    "indices as fields": lambda facts, speaker: "indices 0 and 1 written as fields",
    "fields as indices": lambda facts, speaker: "fields written as indices 0 and 1",
    "index everywhere": lambda facts, speaker: f"index {facts['value']} everywhere",
    "scale of 1": lambda facts, speaker: "ignored (they act as 1.0)",
    "exponent off": lambda facts, speaker: f"exponent off by {facts['by']:+d}",
    "scale inverted": lambda facts, speaker: "inverted (1 / scale)",
    "other operand": lambda facts, speaker: (
        f"the registers of {SPELLED.get(facts['operand'], facts['operand'].upper())}"
    ),
    "integers": lambda facts, speaker: f"fractions lost ({facts['by']} to integers)",
    "flushed": lambda facts, speaker: "subnormal values set to zero",
    "without C": lambda facts, speaker: "C not added",
    "tile": lambda facts, speaker: f"those of the {_TILES[facts['by']]} tile in every tile",
    "kept": lambda facts, speaker: "what D held before, in spite of scale-d",
}


def map_words(kind: str, facts: Facts, speaker: Speaker, view: View) -> str:
    """Return the words of a map of a kind and facts in a view."""
    return _MAPS[kind](facts, speaker, view)


def value_words(kind: str, facts: Facts, speaker: Speaker) -> str:
    """Return the words of a function of values, or of another source of values."""
    return _VALUES[kind](facts, speaker)


UNITS = {32: "register", 16: "16-bit half", 8: "byte", 4: "nibble", 2: "index", 1: "bit"}
_PLURALS = {"index": "indices", "16-bit half": "16-bit halves"}
_TILE_FIELDS = ("row tile", "column tile", "k step")  # fields of views of whole matrices
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
        in_tiles = any(field.name in _TILE_FIELDS for field in within[0].view.fields)
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
