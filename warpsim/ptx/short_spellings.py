"""Short spellings of matrix instructions, and the names of SASS: which form of PTX they stand for.

``m16n8k16.f32.bf16``, ``mma.sp.16832.f32.f16``, ``HMMA.16816.F32``. What is left out is plain:
one type stands for all, or where no form has that, for A and B; two are D, and A and B; no word for sparsity,
saturation, rounding, kind or scales means none where the form exists without. SASS has a single name for both
kinds of metadata; it is read as ordered. Knows names alone; PTX proper is read by the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cache

from ..isa.families import OPCODES, forms
from ..isa.instruction import Instruction
from ..isa.sass_names import name_of

_SHAPE = re.compile(r"m?(\d+)[xn](?:n)?(\d+)[xk](\d+)")
_BARE_SHAPE = re.compile(r"\d{3,8}")
_WORD = re.compile(r"(?:@!?U?P\w+\s+)?([\w.:]{2,80})(\s[^{}\[\]]*)?;?", re.ASCII)
_SASS = re.compile(r"[HIQOBD]G?MMA", re.IGNORECASE)
_WHOLE = frozenset({"sync", "aligned"})  # of a mnemonic that is taken by the letter
_PROSE = re.compile(r"[\w.:\s/-]{1,200}", re.ASCII)  # words, and no operands of PTX
_MOST = 6  # forms that a message lists


class Short:
    """The words of a name that is not a mnemonic of PTX, and the forms that they may mean."""

    def __init__(self, text: str, found: Sequence[Instruction], near: Sequence[str]) -> None:
        self.text, self.found, self.near = text, found, near

    def message(self, target: str | None) -> str:
        """Return what to say of a name that fits no form, or several; ``target`` None is any."""
        where = f" of {target}" if target else ""
        if not self.found:
            advice = f"; nearest: {', '.join(self.near)}" if self.near else ""
            return f"{self.text} fits no matrix instruction{where}{advice}"
        names = [form.mnemonic for form in self.found]
        more = f", and {len(names) - _MOST} more" if len(names) > _MOST else ""
        return f"{self.text} fits {len(names)} instructions{where}: {', '.join(names[:_MOST])}{more}"


def read_short(text: str, target: str | None) -> Short | None:
    """Return the forms that a name may mean, on a target if any is there; None for what is not a short name.

    A text with .sync or .aligned, or with operands of PTX, is taken by the letter, and no short name.
    """
    match = _WORD.fullmatch(text.strip())
    if match is None:
        return None
    name, operands = match[1], match[2]
    if _SASS.fullmatch(name.partition(".")[0]):
        return _from_sass(name, target)
    words = name.lower().split(".")
    if operands or not _WHOLE.isdisjoint(words) or not (words[0] in OPCODES or _is_shape(words[0])):
        return None
    if words[0] in OPCODES and not all(_is_shape(word) or word in _vocabulary() for word in words):
        return None  # the parser names the modifier that there is not
    return _from_words(name, words, target)


def example_of(text: str, target: str | None) -> str:
    """Return the mnemonic that has the most of the words of a text; empty where no form has any of them.

    It is what the words spell as a short name, if they do, and else the shortest of those with the most.
    """
    words = re.split(r"[.\s/]+", text.strip().lower())
    known = [word for word in words if _is_shape(word) or word in _vocabulary()]
    if not (known and _PROSE.fullmatch(text)):
        return ""
    short = _from_words(text, known, target)
    return short.found[0].mnemonic if short.found else next(iter(short.near), "")


@cache
def _vocabulary() -> frozenset[str]:
    words = {
        word for form in forms().values() for word in (*_other_modifiers(form), form.a_layout, form.b_layout)
    }
    return frozenset(words) | _type_names()


def _here(found: Iterable[Instruction], target: str | None) -> list[Instruction]:
    """Return the forms that a target has, or all of them where it has none."""
    found = list(found)
    return [form for form in found if target is None or target in form.targets] or found


# --- SASS -------------------------------------------------------------------------------------------


@cache
def _sass_names() -> dict[str, tuple[Instruction, ...]]:
    named: dict[str, list[Instruction]] = {}
    for form in forms().values():
        if form.products == 1:  # of four products there are several instructions
            named.setdefault(name_of(form).upper(), []).append(form)
        if form.a.bits == 64 and form.shape.m == 8:  # as sm_80 has it
            named.setdefault(name_of(form).replace("8x8x4", "884"), []).append(form)
    return {name: tuple(found) for name, found in named.items()}


def _from_sass(name: str, target: str | None) -> Short:
    table, given = _sass_names(), name.upper()
    names = [given] if given in table else [known for known in table if _is_within(given, known)]
    names = [
        known for known in names if any(target in (None, *form.targets) for form in table[known])
    ] or names
    # Of kinds that differ in spelling alone, as mxf4 and mxf4nvf4 with scales of ue8m0, the first is taken.
    readings = [_plainest(_here(table[known], target), ordered=True)[0] for known in names]
    near = [] if readings else get_close_matches(given, table, 3, 0.6)
    return Short(name, readings, near)


def _is_within(given: str, known: str) -> bool:
    """Return whether all words of a name stand in another, in their order, and both or none is sparse."""
    words, asked = iter(known.split(".")), given.split(".")
    return ("SP" in asked) == (".SP." in known) and all(word in words for word in asked)


# --- words of PTX -----------------------------------------------------------------------------------


def _is_shape(word: str) -> bool:
    return bool(_SHAPE.fullmatch(word) or _BARE_SHAPE.fullmatch(word))


def _shapes(form: Instruction) -> set[str]:
    m, n, k = form.shape.m, form.shape.n, form.shape.k
    return {f"m{m}n{n}k{k}", f"{m}x{n}x{k}", f"{m}{n}{k}"}


def _types(form: Instruction) -> list[str]:
    return [str(form.format(operand)) for operand in form.family.types]


def _guess(types: tuple[str, ...], form: Instruction) -> int | None:
    """Return 0 where the types given are those of a form, 1 where they are but those of A and B; or None."""
    if form.scale and types[-1:] == (str(form.scale),):
        types = types[:-1]
    d, a, b, *c = full = _types(form)
    ways: dict[tuple[str, ...], int] = {(): 0, tuple(full): 0}
    if a == b:
        ways[a,] = 1
    if c in ([], [d]):
        ways[d, a, b] = 0
        ways |= {way: 0 for way in ((d, a), *([(a,)] if a == d else [])) if a == b}
    return ways.get(types)


def _other_modifiers(form: Instruction) -> set[str]:
    """Return the words of a form besides opcode, shape, layouts and types."""
    words = {"satfinite" if form.satfinite else "", form.rounding, form.variant, *form.family.modifiers}
    words |= {"block_scale"} if form.scale else set()
    words |= {f"kind::{form.kind}", form.kind} if form.kind else set()
    words |= {f"scale_vec::{form.scale_vector.lower()}"} if form.scale_vector else set()
    words |= {form.bit_operation, "popc"} if form.bit_operation else set()
    words |= {"sp"} if form.sparse else set()
    return words | {form.family.opcode}


@cache
def _type_names() -> frozenset[str]:
    return frozenset(name for form in forms().values() for name in (*_types(form), str(form.scale)))


def _from_words(name: str, words: list[str], target: str | None) -> Short:
    types = tuple(word for word in words if word in _type_names())
    layouts = tuple(word for word in words if word in ("row", "col"))
    shapes = [word for word in words if _is_shape(word)]
    rest = {word for word in words if word not in (*types, *layouts, *shapes)}
    tests: list[Callable[[Instruction], bool]] = [
        lambda form: rest <= _other_modifiers(form),
        lambda form: layouts in ((), (form.a_layout, form.b_layout)),
        lambda form: _shapes(form).issuperset(shapes),
        lambda form: form.sparse <= any(word.startswith("sp") for word in rest),
        lambda form: _guess(types, form) is not None,
    ]
    candidates = _here(forms().values(), target)
    found = [form for form in candidates if all(test(form) for test in tests)]
    if not found:
        return Short(name, (), _nearest(words, candidates))
    least = min(_guess(types, form) or 0 for form in found)
    found = [form for form in found if _guess(types, form) == least]
    return Short(name, _plainest(found, ordered="sp" not in rest), ())


def _nearest(words: Sequence[str], candidates: Sequence[Instruction]) -> list[str]:
    """Return a few mnemonics that have the most words, after those that are none are mended."""
    known = {
        word
        for form in candidates
        for word in (*_other_modifiers(form), *_shapes(form), *_types(form))
        if word
    }
    mended = [next(iter(get_close_matches(word, known, 1, 0.5)), word) for word in words]
    held = {
        form.mnemonic: sum(
            word in _other_modifiers(form) | _shapes(form) | {*_types(form)} for word in mended
        )
        for form in candidates
    }
    return sorted(held, key=lambda name: (-held[name], len(name)))[:3]


# --- the plainest of several ------------------------------------------------------------------------


def _optional_words(form: Instruction) -> tuple[str, ...]:
    """Return what a form may go without: the empty string stands for what it does not say."""
    satfinite, scale = "satfinite" if form.satfinite else "", str(form.scale or "")
    return form.variant, satfinite, form.rounding, form.kind, scale, form.scale_vector


def _remaining_key(form: Instruction) -> tuple[object, ...]:
    types = tuple(str(form.format(operand)) for operand in "abcd")
    return form.family.opcode, form.shape, types, form.a_layout, form.b_layout, form.bit_operation


def _is_plainer(form: Instruction, other: Instruction, ordered: bool) -> bool:
    """Return whether ``form`` is ``other`` with less said; of both kinds of metadata, as ``ordered`` asks."""
    if form is other or _remaining_key(form) != _remaining_key(other):
        return False
    pairs = list(zip(_optional_words(form), _optional_words(other), strict=True))
    if form.variant and other.variant and form.variant != other.variant:
        return form.ordered == ordered and all(x == y for x, y in pairs[1:])
    return all(x in ("", y) for x, y in pairs)


def _plainest(found: Sequence[Instruction], ordered: bool) -> list[Instruction]:
    """Return the forms of which no other says the same with less."""
    return [form for form in found if not any(_is_plainer(other, form, ordered) for other in found)]
