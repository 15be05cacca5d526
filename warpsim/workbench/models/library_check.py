"""The check of a library of golden models: every form computes inputs that the program makes while it runs.

A word of an input is a mix of its number, so that C and NumPy make the same words without tables; D is
compared by its digest. Even cases have raw bits; odd cases lack the first bit of each exponent, so that
few sums are Inf or NaN. D is that of the kernels, never of the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.fragments import known_fields
from ...isa.instruction import Instruction
from ...sums.arithmetic import numerics
from ...sums.execution.interface import execute
from .c_model import CModel
from .c_operands import Argument
from .model_files import of_matrices

Words = npt.NDArray[np.uint64]
CASES = 2  # of each form
_PLACES = 1 << 20  # words of an argument, at most
_NAMES = ("a", "b", "c", "d", "e", "scale_a", "scale_b")


def check_lines(name: str, models: Sequence[CModel]) -> Iterator[str]:
    """Yield NAME_check.c: a program that runs all forms, and prints those whose D differs."""
    arrays = [each for model in models for each in model.arguments if each.is_array]
    yield _HEAD.replace("NAME", name)
    for word in dict.fromkeys(each.type for each in arrays):
        most = max(each.words for each in arrays if each.type == word)
        yield f"static {word} {_array(word)}[{len(_NAMES)}][{most}];"
    yield "\nint main(void) {"
    for number, model in enumerate(models):
        for case in range(number * CASES, (number + 1) * CASES):
            yield from _case_lines(model, case)
    yield f'  printf("{name}: {len(models)} forms, {len(models) * CASES} cases, %d wrong\\n", wrong);'
    yield "  return wrong != 0;"
    yield "}"


def _array(word: str) -> str:
    return f"words{word.removeprefix('uint').removesuffix('_t')}"


def _case_lines(model: CModel, case: int) -> Iterator[str]:
    """Yield what fills the arguments of a case, calls the model and compares the digest of D."""
    passed, given = list[str](), dict[str, Any]()
    for place, each in enumerate(model.arguments):
        array = f"{_array(each.type)}[{_NAMES.index(each.name)}]" if each.is_array else ""
        if not each.is_array:
            given[each.name] = _number(model.form, each, case)
        elif each.name != "d":
            seed, mask, choices = (
                (case * 8 + place) * _PLACES,
                _mask(model, each, case),
                _choices(model, each),
            )
            given[each.name] = words(each, seed, mask, choices)
            numbers = ", ".join(f"0x{number:x}ull" for number in (seed, mask, choices))
            yield f"  fill{_array(each.type)}({array}, {each.words}, {numbers});"
        passed.append(array or str(given[each.name]))
    d, digest = model.arguments[-1], digest_of(expected(model, given))
    yield f"  {model.name}({', '.join(passed)});"
    found = f"digest{_array(d.type)}({passed[-1]}, {d.words})"
    yield f'  check("{model.name}", {case % CASES}, {found}, 0x{digest:x}ull);'


# --- inputs ----------------------------------------------------------------------------------------


def _number(form: Instruction, argument: Argument, case: int) -> int:
    """Return a selector, or the id of a byte or a thread."""
    if argument.name == "selector":
        return form.selectors[case % len(form.selectors)]
    held = form.scales(argument.name[-1])
    choices = list(held.byte_ids if argument.name.startswith("byte") else held.thread_ids)
    return int(choices[case % len(choices)])


def _mask(model: CModel, argument: Argument, case: int) -> int:
    """Return the bits of a word that are random: in odd cases all but the first of each exponent."""
    form, whole = model.form, 64 if argument.type == "uint64_t" else 32
    if argument.name == "e":
        return (1 << whole) - 1 if model.operands.in_registers else 15
    scale = form.scale if argument.name.startswith("scale") else None
    element = scale or form.format(argument.name)
    kept = element.mask
    if case % 2 and element.is_float:
        kept ^= (1 << element.ignored_bits + element.fraction_bits + element.exponent_bits) >> 1
    if not model.operands.in_registers:
        return kept
    bits, shift = (8, 0) if scale else (form.storage(argument.name).bits, form.storage(argument.name).shift)
    return sum(kept << at + shift for at in range(0, whole, bits))


def _choices(model: CModel, argument: Argument) -> int:
    """Return 16 digits, those that fields of metadata have; 0 for other arguments."""
    if argument.name != "e":
        return 0
    fields = np.resize(np.flatnonzero(known_fields(model.form)), 16).tolist()
    return sum(field << 4 * at for at, field in enumerate(fields))


def _mixed(number: Words) -> Words:
    """Return SplitMix64 of numbers (Steele, Lea, Flood 2014)."""
    number = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ number >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ number >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return number ^ number >> np.uint64(31)


def words(argument: Argument, seed: int, mask: int, choices: int) -> npt.NDArray[Any]:
    """Return the words that ``fill`` of the check makes; digits of ``choices`` where it is not 0."""
    found = _mixed(np.arange(seed, seed + argument.words, dtype=np.uint64))
    if choices:
        digits = np.array([choices >> 4 * at & 15 for at in range(16)], np.uint64)
        places = (found[:, None] >> np.arange(0, 32, 4, dtype=np.uint64) & np.uint64(15)).astype(np.intp)
        found = (digits[places] << np.arange(0, 32, 4, dtype=np.uint64)).sum(-1, dtype=np.uint64)
    word = np.uint64 if argument.type == "uint64_t" else np.uint32
    return (found & np.uint64(mask)).astype(word).reshape(argument.shape)


# --- D ---------------------------------------------------------------------------------------------


def expected(model: CModel, given: dict[str, Any]) -> npt.NDArray[Any]:
    """Return D of the arguments of a case, as the kernels compute it."""
    if model.operands.in_registers:
        lanes = {name: given[name][:, None] for name in ("e", "scale_a", "scale_b") if name in given}
        return execute(model.form, **given | lanes)
    form = model.form
    batch = {name: codes[None] for name, codes in given.items()}
    d = of_matrices(form, batch, lambda operands: numerics.compute(operands, model.rule))
    return d.reshape(d.shape[1:])


def digest_of(d: npt.NDArray[Any]) -> int:
    """Return the sum of mixes of words with their places."""
    flat = d.reshape(-1).astype(np.uint64)
    return int(_mixed(flat ^ np.arange(len(flat), dtype=np.uint64) << np.uint64(40)).sum(dtype=np.uint64))


_HEAD = """#include <stdio.h>
#include "NAME.h"

static int wrong;

/* SplitMix64 */
static uint64_t mixed(uint64_t number) {
  number = (number + 1) * 0x9e3779b97f4a7c15ull;
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ number >> 27) * 0x94d049bb133111ebull;
  return number ^ number >> 31;
}

/* A random word, or, where choices are given, a word of digits that are among them. */
static uint64_t random_word(uint64_t seed, uint64_t mask, uint64_t choices) {
  uint64_t number = mixed(seed), chosen = 0;
  int at;
  if (!choices) return number & mask;
  for (at = 0; at < 32; at += 4) chosen |= (choices >> 4 * (number >> at & 15) & 15) << at;
  return chosen & mask;
}

void fillwords32(uint32_t *to, int count, uint64_t seed, uint64_t mask, uint64_t choices) {
  int at;
  for (at = 0; at < count; at++) to[at] = (uint32_t)random_word(seed + (uint64_t)at, mask, choices);
}

void fillwords64(uint64_t *to, int count, uint64_t seed, uint64_t mask, uint64_t choices) {
  int at;
  for (at = 0; at < count; at++) to[at] = random_word(seed + (uint64_t)at, mask, choices);
}

uint64_t digestwords32(const uint32_t *from, int count) {
  uint64_t sum = 0;
  int at;
  for (at = 0; at < count; at++) sum += mixed(from[at] ^ (uint64_t)at << 40);
  return sum;
}

uint64_t digestwords64(const uint64_t *from, int count) {
  uint64_t sum = 0;
  int at;
  for (at = 0; at < count; at++) sum += mixed(from[at] ^ (uint64_t)at << 40);
  return sum;
}

static void check(const char *form, int at, uint64_t found, uint64_t expected) {
  if (found == expected) return;
  wrong++;
  printf("%s, case %d: D has digest %llx, expected %llx\\n", form, at, (unsigned long long)found,
         (unsigned long long)expected);
}
"""
