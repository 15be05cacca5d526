"""From the modifiers of an ``mma`` to the legal form they spell, or to what would be legal instead.

ptxas takes modifiers in almost any order (CUTLASS and compilers make use of it), so they are sorted
into slots; only the order of the types, of the two layouts, and of the bit operation before
``.popc`` carries meaning. PTX ISA 9.1, sections 9.7.14.5.14 "mma" and 9.7.14.6.3 "mma.sp"; the order
rules are those of ptxas 13.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from ..architectures import ARCHITECTURES
from ..errors import IllegalInstruction
from ..families import forms
from ..instruction import Instruction

PTX_VERSION = (9, 0)  # what is taken as legal unless the text or the caller names a version

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_TYPES = frozenset(
    "f64 f32 tf32 f16 bf16 e5m2 e4m3 e3m2 e2m3 e2m1 ue8m0 ue4m3 s32 u32 s16 u16 s8 u8 s4 u4 b1 f16x2".split()
)
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_BIT_OPERATIONS = frozenset({"and", "xor", "or"})


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One choice that a mnemonic makes: how it is called, read off a form, and spelled."""

    name: str
    read: Callable[[Instruction], str]

    def spelled(self, value: str) -> str:
        """``.value``, or what leaving it out is called."""
        return f".{value}" if value else f"no {self.name}"


_SLOTS = (
    Slot(name="sparsity modifier", read=lambda form: form.variant),
    Slot(name="shape", read=lambda form: str(form.shape)),
    Slot(name="alayout", read=lambda form: form.a_layout),
    Slot(name="blayout", read=lambda form: form.b_layout),
    Slot(name=".satfinite", read=lambda form: "satfinite" if form.satfinite else ""),
    Slot(name=".kind", read=lambda form: f"kind::{form.kind}" if form.kind else ""),
    Slot(name=".block_scale", read=lambda form: "block_scale" if form.scale else ""),
    Slot(name=".scale_vec", read=lambda form: f"scale_vec::{form.scale_vector}" if form.scale_vector else ""),
    Slot(name="rounding", read=lambda form: form.rounding),
    Slot(name="dtype", read=lambda form: str(form.d)),
    Slot(name="atype", read=lambda form: str(form.a)),
    Slot(name="btype", read=lambda form: str(form.b)),
    Slot(name="ctype", read=lambda form: str(form.c)),
    Slot(name="stype", read=lambda form: str(form.scale or "")),
    Slot(name="bit operation", read=lambda form: f"{form.bit_operation}.popc" if form.bit_operation else ""),
)
_TYPE_SLOTS = ("dtype", "atype", "btype", "ctype", "stype")
_LAYOUT_SLOTS = ("alayout", "blayout")

Choices = tuple[str, ...]  # one value a slot


def _choices(form: Instruction) -> Choices:
    return tuple(slot.read(form) for slot in _SLOTS)


@lru_cache(maxsize=None)
def _forms_by_choices(opcode: str) -> dict[Choices, Instruction]:
    return {_choices(form): form for form in forms().values() if form.family.opcode == opcode}


class ModifierError(IllegalInstruction):
    """An illegal instruction, and which of its modifiers is to blame (None: one is missing)."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


# --- sorting modifiers into slots ------------------------------------------------------------------


def _slot_of(modifier: str) -> str:
    """The slot a modifier belongs to; types and layouts are numbered by the caller."""
    if _SHAPE.fullmatch(modifier):
        return "shape"
    for slot, members in _MEMBERS.items():
        if modifier in members:
            return slot
    prefix = modifier.partition("::")[0]
    return _PREFIXES.get(prefix, "")


_MEMBERS: dict[str, Iterable[str]] = {
    "sync": ("sync",),
    "aligned": ("aligned",),
    "layout": ("row", "col"),
    "type": _TYPES,
    ".satfinite": ("satfinite",),
    ".block_scale": ("block_scale",),
    "rounding": _ROUNDINGS,
    "bit operation": _BIT_OPERATIONS,
    "popc": ("popc",),
}
_PREFIXES = {"sp": "sparsity modifier", "kind": ".kind", "scale_vec": ".scale_vec"}
_REPEATABLE = frozenset({"sync", ".satfinite"})  # as ptxas has it


def _sorted(opcode: str, modifiers: tuple[str, ...]) -> tuple[dict[str, str], dict[str, int]]:
    """The value of each slot and the index of the modifier that set it."""
    values: dict[str, str] = {}
    places: dict[str, int] = {}
    lists: dict[str, list[int]] = {"type": [], "layout": []}
    for index, modifier in enumerate(modifiers):
        slot = _slot_of(modifier)
        if not slot:
            raise ModifierError(f"unknown modifier '.{modifier}' of {opcode}", index)
        if slot in lists:
            lists[slot].append(index)
        elif slot in values and slot not in _REPEATABLE:
            raise ModifierError(f"'.{modifier}': {slot} is already given as '.{values[slot]}'", index)
        else:
            if slot == "bit operation" and "popc" in values:
                raise ModifierError(f"'.{modifier}' stands before '.popc', not after it", index)
            values[slot], places[slot] = modifier, index
    _number(modifiers, lists["layout"], _LAYOUT_SLOTS, "layouts (of A, B)", values, places)
    _number(modifiers, lists["type"], _TYPE_SLOTS, "types (of D, A, B, C and the scales)", values, places)
    return values, places


def _number(
    modifiers: tuple[str, ...],
    given: list[int],
    slots: tuple[str, ...],
    what: str,
    values: dict[str, str],
    places: dict[str, int],
) -> None:
    if len(given) > len(slots):
        extra = given[len(slots)]
        raise ModifierError(f"'.{modifiers[extra]}': at most {len(slots)} {what} are expected", extra)
    for slot, index in zip(slots, given, strict=False):
        values[slot], places[slot] = modifiers[index], index


def _require(opcode: str, values: dict[str, str]) -> None:
    for slot in ("sync", "aligned"):
        if slot not in values:
            raise ModifierError(f"{opcode} needs the modifier '.{slot}'")
    if ("popc" in values) != ("bit operation" in values):
        raise ModifierError("a bit operation is spelled '.and.popc' or '.xor.popc'")
    for slot in ("shape", *_LAYOUT_SLOTS, *_TYPE_SLOTS[:4]):
        if slot not in values:
            example = next(iter(_forms_by_choices(opcode).values()))
            raise ModifierError(f"{opcode} needs its {slot}, as in {example}")


# --- finding the form, or the nearest ones ---------------------------------------------------------


@lru_cache(maxsize=4096)
def resolve(opcode: str, modifiers: tuple[str, ...], target: str | None, version: tuple[int, int]) -> Instruction:
    """The form that the modifiers spell, on the target; raises ModifierError.

    ``target`` None means any target.
    """
    values, places = _sorted(opcode, modifiers)
    _require(opcode, values)
    if "popc" in values:
        values["bit operation"] += ".popc"
    choices = tuple(values.get(slot.name, "") for slot in _SLOTS)
    form = _forms_by_choices(opcode).get(choices)
    if form is None:
        raise _nearest(opcode, choices, places, target)
    _check_version(form, version)
    return form if target is None else _on_target(form, target)


def on_target(form: Instruction, target: str | None) -> Instruction:
    """The instruction on a (different) target; raises IllegalInstruction where it does not exist there."""
    if target is None or target == form.target:
        return form
    return _on_target(form, target)


def check_target(target: str) -> None:
    """Raise IllegalInstruction for a target that is not in the table."""
    if target not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModifierError(f"unknown target {target!r}; known are {known}")


def _on_target(form: Instruction, target: str) -> Instruction:
    check_target(target)
    if target not in form.targets:
        raise ModifierError(f"{form.mnemonic} is not on {target}; it is on {_targets(form.targets)}")
    return replace(form, target=target)


def _targets(names: Iterable[str]) -> str:
    return ", ".join(name for name in ARCHITECTURES if name in names)


def _check_version(form: Instruction, version: tuple[int, int]) -> None:
    if version < form.since:
        needed, given = (".".join(map(str, pair)) for pair in (form.since, version))
        raise ModifierError(
            f"{form.mnemonic} needs PTX ISA {needed}; this is read as {given} (set .version, or version=)"
        )


def _nearest(opcode: str, choices: Choices, places: dict[str, int], target: str | None) -> ModifierError:
    """What to change, one slot at a time if possible, to reach a legal form."""
    known = _forms_by_choices(opcode)
    here = {c: form for c, form in known.items() if target is None or target in form.targets} or known
    score = {c: sum(x != y for x, y in zip(c, choices, strict=True)) for c in here}
    least = min(score.values())
    nearest = [c for c in here if score[c] == least]
    first = _differing(nearest[0], choices)
    blamed = places.get(_SLOTS[first[0]].name)
    where = f" on {target}" if target else ""
    return ModifierError(f"no such form of {opcode}{where}: {_advice(nearest, choices)}", blamed)


def _differing(near: Choices, choices: Choices) -> tuple[int, ...]:
    return tuple(i for i, (x, y) in enumerate(zip(near, choices, strict=True)) if x != y)


def _advice(nearest: list[Choices], choices: Choices) -> str:
    options: dict[tuple[int, ...], list[str]] = {}
    for near in nearest:
        differing = _differing(near, choices)
        spelled = " with ".join(_SLOTS[i].spelled(near[i]) for i in differing)
        listed = options.setdefault(differing, [])
        if spelled not in listed:
            listed.append(spelled)
    sentences = []
    for differing, listed in list(options.items())[:3]:
        given = " with ".join(_SLOTS[i].spelled(choices[i]) for i in differing)
        sentences.append(f"in place of {given}, legal here: {', '.join(listed[:8])}")
    return "; or ".join(sentences)
