"""Variations of sums: other choices of a rule, a few at a time, drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from warpsim.isa.instruction import Instruction
from warpsim.sums.execution.pipeline import rule_for

from ..candidates import computing
from ..experiments.experiment import Trial
from ..operands import Rng
from .equivalence import settled
from .sums import Choices, chosen, computed, grouped
from .variation import Variation

Draw = Callable[[Rng, Instruction, Choices], dict[str, Any]]


def variations(trial: Trial, count: int, rng: Rng) -> Iterator[Variation]:
    """So many ways to sum, none twice, each with a key that says which candidates it equals on all inputs."""
    form, rule = trial.form, rule_for(trial.form)
    base, seen = chosen(form, rule), set[Any]()
    while len(seen) < count:
        changes = _drawn(rng, form, base)
        choices = replace(base, **changes)
        if choices in seen or choices == base:
            continue
        seen.add(choices)
        yield Variation(
            name=_words(changes),
            arithmetic=computing(lambda operands, _, choices=choices: computed(operands, choices)),  # type: ignore[misc]
            key=settled(form, rule, choices),
        )


def listed(trial: Trial) -> dict[str, Any]:
    """Return the keys of the trial's candidates whose choices can be told from their names."""
    form, rule = trial.form, rule_for(trial.form)
    base = chosen(form, rule)
    found: dict[str, Any] = {}
    for candidate in trial.candidates:
        for choices in _of_name(candidate.name, form, base):
            found[candidate.name] = settled(form, rule, choices)
    return found


def _of_name(name: str, form: Instruction, base: Choices) -> Iterator[Choices]:
    """Yield the choices that a candidate of sparse-grouping, exponent-floor or fp8-sync stands for."""
    if name.startswith("emulated") and not base.c_last:
        base = _emulation(form, base)
    place, half = np.arange(form.stored_k), form.stored_k // 2
    length = len(base.groups[0])
    kind, _, number = name.rpartition(" ")
    emulated = form.stored_k // 2
    orders = {
        "reversed": (place[::-1], length),
        "even-odd": (np.argsort(place % 2, kind="stable"), max(half, 1)),
        "chunk pairs": (np.argsort(place % 4 // 2, kind="stable"), max(half, 1)),
        "emulated": (np.argsort(place % 4 // 2, kind="stable"), emulated),
        "emulated, swapped": (np.argsort(1 - place % 4 // 2, kind="stable"), emulated),
        "emulated by halves": (place, emulated),
        "emulated even-odd": (np.argsort(place % 2, kind="stable"), emulated),
    }
    if name == "dense" or name == f"floor {base.floor}":
        yield base
    elif name in orders and name.startswith("emulated") == base.c_last:
        yield replace(base, groups=grouped(*orders[name]))
    elif kind == "groups of" and base.exact > 1:
        yield replace(base, exact=int(number))
    elif kind == "groups of":
        yield replace(base, groups=grouped(place, int(number)))
    elif kind in ("floor", "emulated, floor", "no"):
        yield replace(base, floor=-1000 if kind == "no" else int(number))
    elif "F=" in name and name.startswith(("F=", "emulated, F=")):
        yield replace(base, fraction_bits=int(name.rpartition("=")[2]))
    elif name.startswith("native") and not base.c_last:
        bits = int(name.split("=")[1].split(",")[0])
        precision = {13: 14, 25: 24}[bits] if form.d.name == "f32" else base.precision
        floor = {13: (-132, -20), 25: (-133, -21)}[bits][form.d.bits == 16]
        native = replace(base, groups=grouped(place, int(number)), fraction_bits=bits)
        yield replace(native, precision=precision, floor=floor)


def _emulation(form: Instruction, base: Choices) -> Choices:
    """Return the emulation of fp8-sync where the model has none: its numbers, and C at the end."""
    f16 = form.d.bits == 16
    places = np.argsort(np.arange(form.stored_k) % 4 // 2, kind="stable")
    return replace(
        base,
        groups=grouped(places, form.stored_k // 2),
        fraction_bits=25,
        floor=-21 if f16 else -133,
        precision=11 if f16 else 24,
        c_last=True,
    )


def _words(changes: dict[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in changes.items())


def _short(value: Any) -> str:
    if not isinstance(value, tuple):
        return str(value)
    return " | ".join(" ".join(map(str, group)) for group in value)


# --- what is drawn ---------------------------------------------------------------------------------


def _drawn(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    """One to three changes."""
    names = list(_DRAWS)
    changes: dict[str, Any] = {}
    for place in rng.choice(len(names), size=int(rng.choice([1, 1, 2, 3])), replace=False):
        changes |= _DRAWS[names[int(place)]](rng, form, base)
    return {name: value for name, value in changes.items() if value != getattr(base, name)}


def _groups(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    """Other lengths; other orders: backward, every so many, halves exchanged, any."""
    stored = form.stored_k
    if base.exact > 1:
        chunk = stored // form.scale_chunks
        lengths = [item for item in (2, 4, 8, 16, 32, 64) if item <= chunk]
        return {"exact": int(rng.choice(lengths))}
    place = np.arange(stored)
    stride = int(rng.choice([2, 4, 8]))
    orders = (place, place[::-1], np.argsort(place % stride, kind="stable"), np.roll(place, stored // 2))
    which = int(rng.integers(len(orders) + 1))
    order = orders[which] if which < len(orders) else rng.permutation(stored)
    lengths = [length for length in range(1, stored + 1) if length < 5 or stored % length == 0]
    return {"groups": grouped(order, int(rng.choice(lengths)))}


def _number(name: str, *distances: int) -> Draw:
    def draw(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
        return {name: getattr(base, name) + int(rng.choice(distances))}

    return draw


def _one_of(name: str, *values: Any) -> Draw:
    def draw(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
        return {name: values[int(rng.integers(len(values)))]}

    return draw


def _between(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    return {
        "between": str(rng.choice(["zero", "nearest", "away", "down"])),
        "between_precision": base.precision - int(rng.integers(0, 3)),
    }


def _precision(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    return {"precision": int(rng.integers(max(base.precision - 4, 2), form.d.fraction_bits + 2))}


def _nan(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    top = form.d.infinity
    return {
        "nan": top | int(rng.integers(1, 1 << form.d.fraction_bits)) | int(rng.choice([0, form.d.sign_bit]))
    }


def _c_last(rng: Rng, form: Instruction, base: Choices) -> dict[str, Any]:
    """Return C at the end, or at the beginning; and how it is added there."""
    if base.c_last and rng.random() < 0.5:
        return {"last_rounding": "zero"}
    return {"c_last": not base.c_last} if form.scale is None else {}


_DRAWS: dict[str, Draw] = {
    "groups": _groups,
    "fraction bits": _number("fraction_bits", -8, -4, -3, -2, -1, 1, 2, 3, 4),
    "floor": _number("floor", -40, -20, -9, -5, -3, -2, -1, 1, 2, 3, 5, 9, 20, 40),
    "precision": _precision,
    "rounding": _one_of("rounding", "zero", "even", "away", "down"),
    "cut": _one_of("cut", "down", "nearest", "away", "sticky"),
    "between": _between,
    "carries": _one_of("carry_bits", 0, 1, 2, 3),
    "normalised": _one_of("normalised", True),
    "zeros": _one_of("zeros_count", True),
    "flushed": _one_of("flushed", "a", "b", "c", "d", "ab", "abc", "cd", "abcd"),
    "saturates": _one_of("saturates", True),
    "small zero": _one_of("small_zero", True),
    "negative zero": _one_of("negative_zero", True),
    "C last": _c_last,
    "zero times infinity": _one_of("zero_times_infinity", "infinity", "zero"),
    "opposed": _one_of("opposed", "positive"),
    "NaN": _nan,
}
