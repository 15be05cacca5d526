"""Words of an explanation: a headline, what to change, and other words for the same table.

The words are chosen by the table, from all atoms that make it: those of the view in which the user thinks of
it win. Sentences are made of the words of fields; no sentence belongs to a single mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..library.mistake import SPELLED
from .atoms import Atom, Facts
from .solving import Explanation, Places
from .views import View

_UNITS = {32: "register", 16: "16-bit half", 8: "byte", 4: "nibble", 2: "index", 1: "bit"}
_PLURALS = {"index": "indices", "16-bit half": "16-bit halves"}
_NOUNS = {"quad": "lane group", "thread": "thread in group", "place": "element", "part": "element"}
_TILES = {1: "next", -1: "previous", 0: "first"}
_PLAIN_KINDS = ("swapped", "copied", "xor", "rotated", "ordered", "reversed", "transposed")  # said first
_PREFERRED = ("registers", "matrix", "quads", "words", "blocks", "chunks", "memory")


@dataclass(frozen=True)
class Named:
    """The words of an explanation: ``headline``, ``advice``, and ``also``: other words for the same."""

    headline: str
    advice: str
    also: tuple[str, ...] = ()


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
        if field in ("slot", "index", "byte", "field"):
            return _UNITS.get(self.bits, "element") if field == "slot" else field
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


def words(explanation: Explanation, given: str = "registers") -> Named:
    """Return the words of an explanation; ``given`` is the view in which the user's input came."""
    speaker = speaker_of(explanation)
    atoms = _spoken(explanation, given)
    said = [atom for atom in atoms if atom is atoms[0] or atom.kind in (*_PLAIN_KINDS, "nested")]
    phrases = [_phrase(explanation, atom, speaker) for atom in said]
    first, *others = dict.fromkeys(f"{speaker.subject}: {phrase}" for phrase in phrases)
    return Named(first, advice(explanation, atoms[0], speaker), tuple(others))


def speaker_of(explanation: Explanation) -> Speaker:
    """Return the operand of an explanation for its words."""
    operand = explanation.operand
    form, name = operand.setting.instruction, operand.name
    if name == "cd":
        return Speaker(name, form.storage("d").bits)
    bits = {"e": 32 // (operand.size // form.lanes)}.get(name, 8)
    return Speaker(name, form.storage(name).bits if name in "abcd" else bits)


def _spoken(explanation: Explanation, given: str) -> list[Atom]:
    """Return the atoms of the same table and cost, the view of the user's input first."""
    own = explanation.atom
    if own.kind == "unchanged":
        return [own]
    same = [atom for atom in explanation.operand.atoms.alike(own.table) if atom.cost <= own.cost + 1]
    views = list(dict.fromkeys((given, *_PREFERRED)))

    def rank(atom: Atom) -> tuple[bool, int, int]:
        kind = _PLAIN_KINDS.index(atom.kind) if atom.kind in _PLAIN_KINDS else len(_PLAIN_KINDS)
        return not _is_half(atom), kind, views.index(atom.view.name)

    return sorted(same or [own], key=rank)


def _is_half(atom: Atom) -> bool:
    """Return whether users know an atom by rows and columns: halves, or a transposition."""
    if atom.view.name != "matrix":
        return False
    by = int(atom.facts["by"]) if atom.kind == "xor" else 0
    halves = by and (2 * by == atom.facts["size"] or (by == 8 and atom.facts["field"] == "row"))
    return atom.kind == "nested" or (bool(halves) and atom.facts["field"] in ("row", "column"))


def _phrase(explanation: Explanation, atom: Atom, speaker: Speaker) -> str:
    source, within = explanation.source, explanation.within
    if source.kind == "zero":
        if not within:
            return "not added" if speaker.operand == "c" else "all zero"
        return f"{places(within, speaker)} zero"
    moved = "" if atom.kind == "unchanged" else _MAPS[atom.kind](atom.facts, speaker, atom.view)
    valued = "" if source.kind == "own" else _VALUES[source.kind](source.facts, speaker)
    text = ", ".join(part for part in (valued, moved) if part)
    if explanation.then is not None:
        second = explanation.then
        text += f"; then {_MAPS[second.kind](second.facts, speaker, second.view)}"
    return f"{text}, only where {conditions(within, speaker)}" if within else text


# --- maps ------------------------------------------------------------------------------------------------


def _xor(facts: Facts, speaker: Speaker, view: View) -> str:
    by, size, field = int(facts["by"]), int(facts["size"]), facts["field"]
    noun, nouns = speaker.noun(field), speaker.nouns(field)
    if view.name == "registers" and field in ("slot", "index", "byte"):
        return _units(by * speaker.bits, speaker)
    if field == "row" and by == 8 and speaker.operand != "b":
        return "rows g and g + 8 exchanged"
    if 2 * by == size and size > 2:
        return f"{noun} halves exchanged"
    if size == 2:
        return f"{nouns} 0 and 1 exchanged"
    if by == size - 1:
        return f"{nouns} in reverse order"
    return f"{nouns} i and i ^ {by} exchanged"


def _units(mask: int, speaker: Speaker) -> str:
    """Return which parts of a register are exchanged, or reversed, by an exclusive or of bit positions."""
    low, top = mask & -mask, 1 << mask.bit_length()
    unit, whole = _UNITS.get(low, f"{low}-bit part"), _UNITS.get(top, f"{top} bits")
    if speaker.operand == "e" and top == 4:
        whole = "field"
    if mask == top - low:
        verb = "exchanged" if mask == low else "reversed"
        return f"{plural(unit)} of each {whole} {verb}"
    return f"{plural(unit)} i and i ^ {mask // low} of each register exchanged"


def _rotated(facts: Facts, speaker: Speaker, view: View) -> str:
    by, size = int(facts["by"]), int(facts["size"])
    signed = by if by <= size // 2 else by - size
    return f"{speaker.noun(facts['field'])} off by {signed:+d}"


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


def _bit(named: Sequence[object], speaker: Speaker) -> str:
    return f"bit {named[1]} of the {speaker.noun(str(named[0]))}"


def _blocks(facts: Facts, speaker: Speaker, view: View) -> str:
    width = 1 << int(facts["width"])
    (first, *_), (second, *_) = facts["first"], facts["second"]
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
                named[key] = _bit(facts[key], speaker)
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
    "shifted": _plain("{noun} off by {by:+d}, nothing beyond the edge"),
    "clamped": _plain("{noun} off by {by:+d}, the last repeated at the edge"),
    "scaled": _scaled,
    "constant": _plain("{noun} {value}'s elements in every {noun}"),
    "cleared": _plain("bit {bit} of the {noun} cleared"),
    "set": _plain("bit {bit} of the {noun} set"),
    "rounded down": _plain("{noun} rounded down to a multiple of {to}"),
    "remainder": _plain("{noun} modulo {of}"),
    "divided": _plain("{noun} divided by {by}"),
    "bits": _plain("bits of the {noun} in the order {order}, lowest first"),
    "interleaved": _plain("{nouns} interleaved in blocks of {width}"),
    "reversed in blocks": _plain("{nouns} reversed in blocks of {width}"),
    "rotated in blocks": _plain("{noun} off by {by:+d} in each block of {width}"),
    "bits exchanged": _plain("{first} and {second} exchanged"),
    "bit added": _plain("{first} xor {second}"),
    "bit read as": _plain("{first} read as {second}"),
    "bits rotated": _plain("{first}, {second} and {third} rotated"),
    "index rotated": _plain("bits of the index rotated by {by}"),
    "index reversed": _plain("bits of the index reversed"),
    "skewed": _plain("{noun} moved by {factor} * {other}, mod {size}"),
    "row stride": _stride("read with a {line} stride of {stride} elements, not {own}"),
    "written with stride": _stride("written with a {line} stride of {stride} elements, read with {own}"),
    "by columns": _stride("read across {line}s, {stride} elements apart"),
    "base": _plain("base off by {by:+d} elements"),
    "renumbered": lambda facts, speaker, view: f"{facts['from']} in the order of {facts['as']}",
}


# --- values ----------------------------------------------------------------------------------------------


_VALUES: dict[str, Callable[[Facts, Speaker], str]] = {
    "negated": lambda facts, speaker: "negated",
    "absolute": lambda facts, speaker: "sign lost (absolute values)",
    "sign inverted": lambda facts, speaker: "sign bit inverted (a zero point)",
    "positive": lambda facts, speaker: "negative values set to zero",
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
    "tile": lambda facts, speaker: f"those of the {_TILES[facts['by']]} tile in every tile",
    "kept": lambda facts, speaker: "what D held before, in spite of scale-d",
}


# --- places ----------------------------------------------------------------------------------------------


def places(within: Sequence[Places], speaker: Speaker) -> str:
    """Return a set of places as the subject of a sentence, with its verb: ``lanes 16-31 are``."""
    facts = within[0].facts
    if len(within) == 1 and "field" in facts and "other" not in facts:
        nouns, noun = speaker.nouns(facts["field"]), speaker.noun(facts["field"])
        first, last = _range(facts)
        if first is not None and last is not None:
            return f"{noun} {first} is" if first == last else f"{nouns} {first}-{last} are"
        if facts.get("bit") == 0:
            return f"{'odd' if facts['is'] else 'even'} {nouns} are"
    return f"places where {conditions(within, speaker)} are"


def conditions(within: Sequence[Places], speaker: Speaker) -> str:
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


def condition(within: Places, speaker: Speaker) -> str:
    """Return a set of places as a condition: ``lane >= 16``."""
    facts = within.facts
    if "bits" in facts:
        bit, other = (_bit(each, speaker) for each in facts["bits"])
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


# --- advice ----------------------------------------------------------------------------------------------


def advice(explanation: Explanation, atom: Atom, speaker: Speaker) -> str:
    """Return what to change, by the operand and the kind of the atom."""
    subject = speaker.subject
    if explanation.source.kind == "zero":
        return f"load these places of {subject}: they hold zero"
    if explanation.source.kind == "other operand":
        return f"pass the registers of {subject} in its own place"
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
        return "the order of rows and columns (row-major, column-major, .trans of ldmatrix)"
    if atom.kind == "swizzled" or atom.view.name == "chunks":
        return "the swizzle: the same where shared memory is written and where it is read"
    if atom.kind in ("row stride", "written with stride", "by columns", "base"):
        return "the stride and the base of the address"
    if "field" in atom.facts:
        return f"the index of the {speaker.noun(atom.facts['field'])}"
    return "the indices"
