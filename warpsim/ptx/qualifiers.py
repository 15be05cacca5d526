"""From the modifiers of an ``mma`` to the legal form they spell, or to what would be legal instead.

ptxas takes modifiers in almost any order (CUTLASS and compilers make use of it), so they are sorted
into groups; only the order of the types, of the two layouts, and of the bit operation before
``.popc`` carries meaning. PTX ISA 9.1, sections 9.7.14.5.14 "mma" and 9.7.14.6.3 "mma.sp"; the order
rules are those of ptxas 13.0.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from operator import ne

from ..base.errors import IllegalInstruction
from ..isa.architectures import ARCHITECTURES, targets_text
from ..isa.families import forms
from ..isa.formats import FORMATS
from ..isa.instruction import Instruction

# What is taken as legal unless the text or the caller says otherwise: the newest version that ptxas was asked
# about. From 9.0 on it adds one group of forms, mxf4nvf4 with 4X scales of ue8m0 (9.1), and targets.
PTX_VERSION = (9, 5)

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_TYPES = FORMATS.keys() | {"u32", "s16", "u16", "f16x2"}  # of elements, and others that ptxas takes for types
_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp"})
_BIT_OPERATIONS = frozenset({"and", "xor", "or"})


@dataclass(frozen=True, kw_only=True)
class _Group:
    """One choice that a mnemonic makes: how it is called and read off a form.

    ``named`` groups are called by name in messages; the values of the others speak for themselves.
    ``weight`` says how reluctantly a message advises to change it: shapes are rarely typing errors.
    """

    name: str
    read: Callable[[Instruction], str]
    named: bool = False
    weight: int = 0


def _ctype(form: Instruction) -> str:
    return str(form.c) if "c" in form.family.types else ""


_GROUPS = (
    _Group(name="sparsity modifier", read=lambda form: form.variant, weight=3),
    _Group(name="shape", read=lambda form: str(form.shape), named=True, weight=2),
    _Group(name="alayout", read=lambda form: form.a_layout, named=True),
    _Group(name="blayout", read=lambda form: form.b_layout, named=True),
    _Group(name=".satfinite", read=lambda form: "satfinite" if form.satfinite else ""),
    _Group(name=".kind", read=lambda form: f"kind::{form.kind}" if form.kind else ""),
    _Group(name=".block_scale", read=lambda form: "block_scale" if form.scale else ""),
    _Group(
        name=".scale_vec", read=lambda form: f"scale_vec::{form.scale_vector}" if form.scale_vector else ""
    ),
    _Group(name="rounding", read=lambda form: form.rounding),
    _Group(name="dtype", read=lambda form: str(form.d), named=True, weight=1),
    _Group(name="atype", read=lambda form: str(form.a), named=True, weight=1),
    _Group(name="btype", read=lambda form: str(form.b), named=True, weight=1),
    _Group(name="ctype", read=_ctype, named=True, weight=1),
    _Group(name="stype", read=lambda form: str(form.scale or ""), named=True),
    _Group(
        name="bit operation", read=lambda form: f"{form.bit_operation}.popc" if form.bit_operation else ""
    ),
)


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The modifiers an opcode must have, and the groups that its types and layouts fill, in order.

    ``typed`` says in words whose types they are.
    ``layouts`` None: the opcode takes layouts and ignores them.
    """

    required: tuple[str, ...]
    types: tuple[str, ...]
    typed: str
    layouts: tuple[str, ...] | None


# ptxas 13.0 takes wgmma.mma_async without .aligned, and with layouts, which then mean nothing.
_SYNTAX = {
    "mma": Syntax(
        required=("sync", "aligned"),
        types=("dtype", "atype", "btype", "ctype", "stype"),
        typed="D, A, B, C and the scales",
        layouts=("alayout", "blayout"),
    ),
    "wgmma": Syntax(
        required=("mma_async", "sync"), types=("dtype", "atype", "btype"), typed="D, A and B", layouts=None
    ),
}

Choices = tuple[str, ...]  # one value a group, empty where nothing is given
Version = tuple[int, int]


@cache
def _forms_by_choices(opcode: str) -> dict[Choices, Instruction]:
    return {tuple(group.read(form) for group in _GROUPS): form for form in forms(opcode).values()}


class ModifierError(IllegalInstruction):
    """An illegal instruction, and which of its modifiers is wrong (None: a modifier is missing)."""

    def __init__(self, message: str, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index


# --- the form --------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def resolve(opcode: str, modifiers: tuple[str, ...], target: str | None, version: Version) -> Instruction:
    """Return the form that the modifiers spell, on the target; raises ModifierError.

    ``target`` None means any target.
    """
    if target is not None:
        check_target(target, version)
    values, places = _groups_of(opcode, modifiers)
    for modifier in _SYNTAX[opcode].required:
        if modifier not in values:
            raise ModifierError(f"{opcode} needs the modifier '.{modifier}'")
    choices = tuple(values.get(group.name, "") for group in _GROUPS)
    form = _forms_by_choices(opcode).get(choices)
    if form is None:
        raise _no_such_form(opcode, choices, places, target, version)
    if version < form.since:
        raise _too_old(form.mnemonic, form.since, version)
    if target is not None and target not in form.targets:
        raise _not_on_target(form, choices, places, target, version)
    return replace(form, target=target)


def on_target(form: Instruction, target: str | None) -> Instruction:
    """Return the instruction on a (different) target; raises IllegalInstruction where it does not exist
    there.
    """
    if target is None or target == form.target:
        return form
    check_target(target)
    if target not in form.targets:
        raise ModifierError(f"{form.mnemonic} is not on {target}; it is on {targets_text(form.targets)}")
    return replace(form, target=target)


def default_version(target: str | None) -> Version:
    """Return the PTX version of text that names none: 9.5, or the first version that has the target."""
    known = ARCHITECTURES.get(target or "")
    return PTX_VERSION if known is None else max(PTX_VERSION, known.since)


def check_target(target: str, version: Version | None = None) -> None:
    """Raise IllegalInstruction for a target that is not in the table, or newer than the PTX version."""
    if not isinstance(target, str) or target not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModifierError(f"unknown target {target!r}; known are {known}")
    since = ARCHITECTURES[target].since
    if version is not None and version < since:
        raise _too_old(target, since, version)


def _too_old(what: str, since: Version, version: Version) -> ModifierError:
    needed, given = (f"{major}.{minor}" for major, minor in (since, version))
    return ModifierError(
        f"{what} needs PTX ISA {needed}; this is read as {given} (set .version, or version=)"
    )


# --- sorting modifiers into groups ------------------------------------------------------------------

_MEMBERS: dict[str, Iterable[str]] = {
    "mma_async": ("mma_async",),
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
_ONLY_OF = {"mma_async": "wgmma"}
_REPEATABLE = frozenset({"sync", ".satfinite"})  # as ptxas has it
_KINDS_OF_MODIFIERS = (
    "it has .sync, .aligned, a shape, layouts, types and, in some forms, "
    ".sp, .satfinite, .kind, .block_scale, .scale_vec, a rounding or a bit operation"
)


def _group_of(modifier: str) -> str:
    """Return the group a modifier belongs to; types and layouts are numbered by the caller."""
    if _SHAPE.fullmatch(modifier):
        return "shape"
    for group, members in _MEMBERS.items():
        if modifier in members:
            return group
    return _PREFIXES.get(modifier.partition("::")[0], "")


def _groups_of(opcode: str, modifiers: tuple[str, ...]) -> tuple[dict[str, str], dict[str, int]]:
    """Return the value of each group and the index of the modifier that set it."""
    values: dict[str, str] = {}
    places: dict[str, int] = {}
    lists: dict[str, list[int]] = {"type": [], "layout": []}
    for index, modifier in enumerate(modifiers):
        group = _group_of(modifier)
        if not group or _ONLY_OF.get(modifier, opcode) != opcode:
            raise _unknown_modifier(opcode, modifier, index)
        if group in lists:
            lists[group].append(index)
        elif group in values and group not in _REPEATABLE:
            raise ModifierError(f"'.{modifier}': the {group} is already given as '.{values[group]}'", index)
        else:
            values[group], places[group] = modifier, index
    syntax = _SYNTAX[opcode]
    if syntax.layouts is not None:
        _number(modifiers, lists["layout"], syntax.layouts, "layouts (of A, B)", values, places)
    what = f"types (of {syntax.typed})"
    _number(modifiers, lists["type"], syntax.types, what, values, places)
    _join_popc(opcode, values, places)
    return values, places


def _number(
    modifiers: tuple[str, ...],
    given: list[int],
    groups: tuple[str, ...],
    what: str,
    values: dict[str, str],
    places: dict[str, int],
) -> None:
    if len(given) > len(groups):
        extra = given[len(groups)]
        raise ModifierError(f"'.{modifiers[extra]}': at most {len(groups)} {what} are expected", extra)
    for group, index in zip(groups, given, strict=False):
        values[group], places[group] = modifiers[index], index


def _join_popc(opcode: str, values: dict[str, str], places: dict[str, int]) -> None:
    operation, popc = places.get("bit operation"), places.get("popc")
    if operation is None and popc is None:
        return
    if operation is None or popc is None or popc < operation:
        alone = popc if operation is None else operation
        known = sorted({form.bit_operation for form in _forms_by_choices(opcode).values()} - {""})
        spellings = _alternatives([f"'.{name}.popc'" for name in known])
        raise ModifierError(f"a bit operation is spelled {spellings}, in this order", alone)
    values["bit operation"] += ".popc"


def _unknown_modifier(opcode: str, modifier: str, index: int) -> ModifierError:
    known = {word: None for choices in _forms_by_choices(opcode) for word in choices if word}
    near = difflib.get_close_matches(modifier, [*_SYNTAX[opcode].required, *known], n=3)
    advice = f"did you mean {_alternatives([f'.{word}' for word in near])}?" if near else _KINDS_OF_MODIFIERS
    return ModifierError(f"{opcode} has no modifier '.{modifier}'; {advice}", index)


# --- what would be legal ---------------------------------------------------------------------------

_MOST_CHANGES = 2  # that advice spells out; beyond, it names whole forms
_MOST_REPAIRS = 3
_MOST_VALUES = 6
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class _Repair:
    """Groups to change, to fill and to empty, and the forms that this may lead to."""

    changed: tuple[int, ...]
    added: tuple[int, ...]
    emptied: tuple[int, ...]
    leads_to: list[Choices]

    @property
    def groups(self) -> tuple[int, ...]:
        return tuple(sorted(self.changed + self.added + self.emptied))

    @property
    def order(self) -> tuple[int, bool, tuple[int, ...]]:
        """Likely repairs first: of light groups, and additions before changes."""
        return sum(_GROUPS[i].weight for i in self.groups), bool(self.changed or self.emptied), self.groups


def _no_such_form(
    opcode: str, choices: Choices, places: dict[str, int], target: str | None, version: Version
) -> ModifierError:
    """Return what to change, in as few groups as possible, to reach a legal form on the target, or on any."""
    anywhere = _nearest(opcode, choices, None, version)
    if not anywhere:
        return _too_old(opcode, min(form.since for form in _forms_by_choices(opcode).values()), version)
    here = _nearest(opcode, choices, target, version)
    where = f" on {target}" if target else ""
    message = f"{opcode} has no such form{where}"
    if here:
        message += f": {_advice(opcode, here, choices)}"
    if not here or len(anywhere[0].groups) < len(here[0].groups):
        elsewhere = _forms_by_choices(opcode)[anywhere[0].leads_to[0]].targets
        message += f"; on {targets_text(elsewhere)}: {_advice(opcode, anywhere[:1], choices)}"
    return ModifierError(message, _first_repaired((here or anywhere)[0], places))


def _not_on_target(
    form: Instruction, choices: Choices, places: dict[str, int], target: str, version: Version
) -> ModifierError:
    opcode = form.family.opcode
    message = f"{form.mnemonic} is not on {target}; it is on {targets_text(form.targets)}"
    here = _nearest(opcode, choices, target, version)
    if not here:
        return ModifierError(message)
    message += f". On {target}: {_advice(opcode, here, choices)}"
    return ModifierError(message, _first_repaired(here[0], places))


def _nearest(opcode: str, choices: Choices, target: str | None, version: Version) -> list[_Repair]:
    """Return the repairs that touch the fewest groups, likely repairs first; empty if there are no forms at
    all.
    """
    distances = {
        near: sum(map(ne, near, choices))
        for near, form in _forms_by_choices(opcode).items()
        if form.since <= version and (target is None or target in form.targets)
    }
    least = min(distances.values(), default=0)
    repairs: dict[tuple[tuple[int, ...], ...], list[Choices]] = {}
    for near in (near for near, distance in distances.items() if distance == least):
        groups = [i for i, (x, y) in enumerate(zip(near, choices, strict=True)) if x != y]
        changed = tuple(i for i in groups if near[i] and choices[i])
        added = tuple(i for i in groups if not choices[i])
        emptied = tuple(i for i in groups if not near[i])
        repairs.setdefault((changed, added, emptied), []).append(near)
    found = [_Repair(changed=c, added=a, emptied=e, leads_to=n) for (c, a, e), n in repairs.items()]
    return sorted(found, key=lambda repair: repair.order)


def _first_repaired(repair: _Repair, places: dict[str, int]) -> int | None:
    """Return the first modifier that the repair touches; None if it only adds some."""
    return next((places[_GROUPS[i].name] for i in repair.groups if _GROUPS[i].name in places), None)


def _advice(opcode: str, repairs: Sequence[_Repair], choices: Choices) -> str:
    if len(repairs[0].groups) > _MOST_CHANGES:
        return f"the nearest form is {_forms_by_choices(opcode)[repairs[0].leads_to[0]].mnemonic}"
    return "; or ".join(_sentence(repair, choices) for repair in repairs[:_MOST_REPAIRS])


def _sentence(repair: _Repair, choices: Choices) -> str:
    """Return ``change ctype from .f16 to .f32``, ``add .kind::f8f6f4``, ``leave out .satfinite``."""
    parts = []
    if repair.changed:
        given = _fragment(choices, repair.changed)
        values = _closest_first(_fragments(repair, repair.changed), given)
        named = any(_GROUPS[i].named for i in repair.changed) or len(repair.changed) > 1
        what = f"{_group_names(repair.changed)} from {given}" if named else given
        parts.append(f"change {what} to {_alternatives(values)}")
    if repair.added:
        parts.append(f"add {_label(repair.added)}{_alternatives(_fragments(repair, repair.added))}")
    if repair.emptied:
        words = " and ".join(f".{choices[i]}" for i in repair.emptied)
        parts.append(f"leave out {_label(repair.emptied)}{words}")
    return " and ".join(parts)


def _fragment(choices: Choices, groups: Sequence[int]) -> str:
    """Return the piece of a mnemonic that the groups spell: ``.f16.f16``."""
    return "".join(f".{choices[i]}" for i in groups)


def _fragments(repair: _Repair, groups: Sequence[int]) -> list[str]:
    return list(dict.fromkeys(_fragment(near, groups) for near in repair.leads_to))


def _closest_first(values: Sequence[str], given: str) -> list[str]:
    """Of too many values to show, those with the closest numbers; in the order of the tables."""

    def distance(value: str) -> int:
        pairs = zip(_NUMBER.findall(value), _NUMBER.findall(given), strict=False)
        return sum(abs(int(x) - int(y)) for x, y in pairs)

    closest = sorted(values, key=distance)[:_MOST_VALUES]
    return sorted(values, key=lambda value: value not in closest)


def _group_names(groups: Sequence[int]) -> str:
    return " and ".join(_GROUPS[i].name for i in groups)


def _label(groups: Sequence[int]) -> str:
    """Return ``ctype `` in front of a value that does not say what it is."""
    return f"{_GROUPS[groups[0]].name} " if len(groups) == 1 and _GROUPS[groups[0]].named else ""


def _alternatives(words: Sequence[str]) -> str:
    """Return ``a``, ``a or b``, ``a, b or c``, cut where there are too many."""
    more = len(words) - _MOST_VALUES
    shown = [*words[:_MOST_VALUES], f"{more} more"] if more > 0 else list(words)
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
