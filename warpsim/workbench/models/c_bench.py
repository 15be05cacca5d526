"""The bench of a golden model in C: stimulus at run time, coverage counters, wrong programs, a scoreboard.

NAME_bench.c includes NAME.c. Tiles of each corner theme are a table; at run time they are turned about by the
symmetries that keep a corner, and codes of them change. Wrong programs are the rewrites of the rule's: those
that give every output so far name the mistake of a unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.formats import FORMATS, Format
from ...isa.instruction import Instruction
from ...sums.rule_programs.program_rewrites import rewrites, rewritten
from ..generation.sums.limits import Limits
from ..generation.sums.rewrite_words import rewrite_words
from . import c_bins
from .c_dot import Field
from .c_looks import SeenDot, WrongDot, seen_ieee
from .c_model import CModel, own_text
from .c_parts import constant, far_cut, rounding
from .corner_tiles import Tiles

Array = npt.NDArray[Any]
_OF_A_KIND = 8  # wrong programs


class CBench:
    """NAME_bench.c and NAME_bench.h of a model."""

    def __init__(self, model: CModel, tiles: Tiles) -> None:
        self.model, self.form, self.name, self.tiles = model, model.form, model.name, tiles
        self.limits = Limits(instruction=model.form, rule=model.rule)
        self.bins = {name: at for at, name in enumerate(c_bins.bins_of(self.limits))}
        self.settings = {name: len(self.bins) + at for at, name in enumerate(_setting_bins(self.form))}
        program, right = model.dot.program, model.dot.fields
        self.wrong = [*self._mistakes(right)]
        self.seen = SeenDot(self.name, program, self.limits, self.bins)

    def _mistakes(self, right: Sequence[Field]) -> Iterator[tuple[str, WrongDot]]:
        """Yield wrong programs that C computes, the simplest of each kind, with their words."""
        kinds = Counter[str]()
        for each in rewrites(self.model.rule.bare, self.form.product):
            if kinds[each.kind] >= _OF_A_KIND:
                continue
            program = rewritten(self.model.rule.bare, self.form.product, each)
            try:
                dot = WrongDot(self.name, f"wrong_{kinds.total()}", program, right)
                list(dot.body())
            except OverflowError:
                continue  # more bits than an integer of C
            kinds[each.kind] += 1
            yield rewrite_words(self.limits, each), dot

    @cached_property
    def arguments(self) -> str:
        """The inputs of the instruction, as they are passed."""
        return ", ".join(each.name for each in self.model.inputs)

    @property
    def declarations(self) -> str:
        """The inputs of the instruction, as they are declared."""
        return ", ".join(each.declaration for each in self.model.inputs)

    @property
    def outputs(self) -> str:
        """The inputs of the instruction, as a stimulus writes them."""
        return ", ".join(
            each.declaration.removeprefix("const ") if each.is_array else f"int *{each.name}"
            for each in self.model.inputs
        )

    def header(self) -> str:
        """Return NAME_bench.h."""
        name, guard = self.name, f"{self.name.upper()}_BENCH_H"
        return (
            own_text("bench_header.h")
            .replace("@NAME@", name)
            .replace("@GUARD@", guard)
            .replace("@OUTPUTS@", self.outputs)
            .replace("@INPUTS@", self.declarations)
            .replace("@WORD@", self.model.dot.word)
            .replace("@PLANTED@", self.planted)
            .replace("@CODE_OUTPUTS@", self.code_outputs)
        )

    @property
    def code_outputs(self) -> str:
        """The codes of a dot product, as they are written."""
        word = self.model.dot.word
        return ", ".join(f"{word} *{each.name}_codes" for each in self.model.dot.program.inputs)

    @property
    def planted(self) -> str:
        """The declaration of a dot product with a mistake."""
        given = self.model.dot.prototype.partition("(")[2]
        return f"{self.model.dot.word} {self.name}_planted(int mistake, {given}"

    def source(self) -> str:
        """Return NAME_bench.c."""
        text = own_text("bench.c")
        parts = [
            f"/* Stimulus, coverage and a scoreboard for {self.form.mnemonic}",
            f"   on {self.form.target}. Written by warpsim model: no Python while it runs. */",
            f'#include "{self.name}_bench.h"',
            "#include <stdio.h>",
            "#include <string.h>",
            f'#include "{self.name}.c"',
            *self._constants(),
            *self._seeds(),
            text.rstrip(),
            *self._looks(),
            *self._wrong_programs(),
            *self._placing(),
            *self._trace(),
            own_text("scoreboard.c").rstrip(),
            *self._entry_points(),
        ]
        return "\n".join(parts).replace("@NAME@", self.name) + "\n"

    # --- constants and tables ---

    def _constants(self) -> Iterator[str]:
        form, model = self.form, self.model
        pattern = form.pattern
        chunks = form.shape.k // pattern.chunk if pattern else 1
        numbers = {
            "ROWS": model.rows,
            "COLUMNS": form.shape.n,
            "PRODUCTS": form.products,
            "DEPTH": form.shape.k * form.products,
            "STORED": form.stored_k,
            "CHUNKS": chunks,
            "SCALES": max(form.scale_chunks, 1),
            "PLACES": chunks if pattern else form.stored_k,
            "SPARSE": int(pattern is not None),
            "SCALED": int(form.scale is not None),
            "FLOATS": int(form.a.is_float),
            "CODE_BITS": max(form.a.bits, form.b.bits, form.c.bits),
            "ALIGNED": int(self.limits.step is not None),
            "ROUNDED": int(any(model.dot.program.named("round"))),
            "IEEE": int(form.a.is_float and (self.limits.step is None or self.limits.emulated)),
            "BINS": len(self.bins) + len(self.settings),
            "MISTAKES": len(self.wrong),
            "SEEDS": len(self.tiles.themes),
        }
        yield ""
        yield f"typedef {model.dot.word} word_t;"
        yield from (f"#define {name} {value}" for name, value in numbers.items())
        lane, word = ("lane", "register d") if model.operands.in_registers else ("row", "column ")
        yield f'#define LANE_WORD "{lane}"'
        yield f'#define REGISTER_WORD "{word}"'
        yield f"#define MAGNITUDE(x) ({'(x).m | (x).h' if model.dot.wide else '(x).m'})"
        for side in "abc":
            yield f"#define {side.upper()}_MASK {constant(form.format(side).mask)}"
            if form.a.is_float:
                yield f"#define {side.upper()}_SIGN (word_t){constant(form.format(side).sign_bit)}"

    def _seeds(self) -> Iterator[str]:
        form, tiles = self.form, self.tiles
        listed = ", ".join(f'"{theme}"' for theme in tiles.themes)
        yield f"static const char *const seed_theme[SEEDS] = {{{listed}}};"
        for name, codes in tiles.codes.items():
            width = next(bits for bits in (8, 16, 32, 64) if codes.max() < 1 << bits)
            rows = codes.reshape(len(codes), -1)
            yield f"static const uint{width}_t seed_{name}[SEEDS][{rows.shape[1]}] = {{"
            yield from (f"{{{','.join(f'0x{code:x}' for code in row.tolist())}}}," for row in rows)
            yield "};"
        if form.a.is_float:
            added = self.limits.groups * (
                self.limits.step is not None and not c_bins.is_scaled_group(self.limits)
            )
            for name, steps in (("step_of", self.limits.groups), ("added_in", added)):
                yield f"static const int {name}[STORED] = {{{', '.join(map(str, steps.tolist()))}}};"
        yield f"static const int place_group[] = {{{', '.join(map(str, self._places()))}}};"

    def _places(self) -> list[int]:
        """Return a number for each column of stored A, or chunk: equal where their order does not matter."""
        form, stored = self.form, self.form.stored_k
        orders = np.arange(stored) if self.limits.step is None and form.a.is_float else self.limits.groups
        scale = np.arange(stored) * max(form.scale_chunks, 1) // stored
        keys = [*zip(orders.tolist(), scale.tolist(), strict=True)]
        wide = stored * form.pattern.chunk // form.shape.k if form.pattern else 1
        members = [tuple(keys[at : at + wide]) for at in range(0, stored, wide)]
        return [members.index(each) for each in members]

    # --- what is seen ---

    def _looks(self) -> Iterator[str]:
        if self.seen.uses_ieee:
            yield seen_ieee(wide=self.model.dot.wide)
        yield from self._step_looks()
        sides: dict[str, Format] = {side: self.form.format(side) for side in "abc"}
        if self.form.scale:
            sides |= {"scale_a": self.form.scale, "scale_b": self.form.scale}
        for name, element in sides.items():
            conditions = {f"{name}: {kind}": test for kind, test in c_bins.code_conditions(element).items()}
            yield f"static void see_{name}(uint64_t code, int kind) {{"
            yield f"  code &= {constant(element.mask)};"
            yield "  (void)kind;"
            yield from (f"  {line}" for line in c_bins.hits(self.bins, conditions))
            yield "}"
        if self.form.a.is_float:
            yield from self._dot_look()
        yield from self.seen.body()

    def _step_looks(self) -> Iterator[str]:
        if self.form.a.is_float:
            yield "static int vanished_before, beyond, overflowed;"
        kinds = {
            "aligned": c_bins.aligned_step,
            "ieee": c_bins.ieee_step,
            "integer": c_bins.integer_step,
        }
        names = {at.name for at in self.model.dot.program.operations}
        used = {"aligned": "round" in names and self.limits.step is not None}
        used["ieee"] = "ieee" in names or ("round" in names and self.limits.step is None)
        used["integer"] = "wrap" in names
        for kind, conditions in kinds.items():
            if not used[kind]:
                continue
            yield f"static void see_{kind}(const step *s, int last) {{"
            yield "  (void)last;"
            yield from (f"  {line}" for line in c_bins.hits(self.bins, conditions(self.limits)))
            if kind != "integer":
                yield "  overflowed |= s->finite && s->overflow;"
                yield "  vanished_before = s->finite && s->vanished && s->negative;"
            if kind == "aligned":
                yield f"  beyond |= product_beyond(s, {self.form.d.bias});"
            yield "}"

    def _dot_look(self) -> Iterator[str]:
        form, scaled = self.form, self.form.scale is not None
        scales = "const number *sa, const number *sb, " if scaled else ""
        d = form.d
        if form.pattern is not None:
            yield "static int unselected_nan, unselected_inf;"
        yield "static void see_dot(const number *x, const number *y, const number *z,"
        yield f"                    {scales}const number *p, uint64_t code) {{"
        yield "  causes w = why_special(x, y);"
        yield f"  uint64_t magnitude = code & {constant(d.mask & ~d.sign_bit)};"
        yield f"  int negative = (code & {constant(d.sign_bit)}) != 0, k;"
        yield "  int only_minus_zeros = MAGNITUDE(z[0]) == 0 && z->negative, both_subnormal = 0;"
        yield "  int nan_scale_a = 0, nan_scale_b = 0, scaled_nonzero = 0;"
        yield "  int asked = z->kind != FINITE || w.count;"
        yield "  (void)nan_scale_a, (void)nan_scale_b, (void)scaled_nonzero;"
        yield "  for (k = 0; k < STORED; k++) {"
        yield "    only_minus_zeros &= p[k].kind == 0 && MAGNITUDE(p[k]) == 0 && p[k].negative;"
        small = [
            f"{n}[k].m && !{n}[k].kind && {n}[k].m < {constant(1 << e.fraction_bits)}"
            for n, e in (("x", form.a), ("y", form.b))
        ]
        yield f"    both_subnormal |= {small[0]} && {small[1]};"
        if scaled:
            yield "    nan_scale_a |= sa[k].kind == NOT_A_NUMBER;"
            yield "    nan_scale_b |= sb[k].kind == NOT_A_NUMBER;"
            yield "    scaled_nonzero |= (sa[k].kind || sb[k].kind) && (x[k].m && y[k].m);"
        yield "  }"
        if scaled:
            yield "  w.scale = nan_scale_a || nan_scale_b;"
        yield "  asked = (asked || w.scale) && !overflowed;"
        conditions = c_bins.special_dot(self.limits) | c_bins.result_dot(self.limits)
        yield from (f"  {line}" for line in c_bins.hits(self.bins, conditions))
        yield "  (void)magnitude, (void)negative, (void)only_minus_zeros;"
        yield "}"

    # --- wrong programs ---

    def _wrong_programs(self) -> Iterator[str]:
        modes = {mode for _, each in self.wrong for at in each.program.named("cut") for mode in at.given[:2]}
        if any(self.model.dot.program.named("cut")):
            yield from (far_cut(mode) for mode in sorted(modes))
        printed = {at.given[:1] for at in self.model.dot.program.named("round")}
        for _, each in self.wrong:
            for at in each.program.named("round"):
                given = at.given[:2] if at.given[1:2] != ("",) else at.given[:1]
                if given not in printed:
                    printed.add(given)
                    yield "\n".join(rounding(given[0], FORMATS[given[0].format], *given[1:]))
        for _, each in self.wrong:
            yield "\n".join(each.body())
        types = self.model.dot.prototype.partition("(")[2]
        yield f"typedef {self.model.dot.word} (*dot_function)({types};"
        yield "static const struct {"
        yield "  const char *name;"
        yield "  dot_function dot;"
        yield "  int traced; /* has the intermediates of the rule */"
        yield "} mistakes[MISTAKES] = {"
        yield from (
            f'    {{"{name}", {each.function}, {int(bool(each.fields))}}},' for name, each in self.wrong
        )
        yield "};"

    # --- places ---

    def _placing(self) -> Iterator[str]:
        """Yield functions that write codes into arguments, and read those of D."""
        operands = self.model.operands
        yield from operands.writers()
        yield operands.reader("d")
        lane, word = operands.place("d")[:2] if operands.in_registers else ("row", "column")
        for name, place in (("lane_of", lane), ("word_of", word)):
            yield f"static int {name}(int row, int column) {{"
            yield "  (void)row, (void)column;"
            yield f"  return {place};"
            yield "}"
        if self.form.pattern is not None:
            yield from self._metadata_looks()
        yield ""
        yield f"static void put_tile({self.outputs}) {{"
        yield "  int i, j;"
        yield from (f"  {line}" for line in self._put_lines())
        yield "}"

    def _put_lines(self) -> Iterator[str]:
        for each in self.model.inputs:
            if each.is_array:
                fill = f"({each.type})random_word()" if self.model.operands.in_registers else "0"
                yield f"for (i = 0; i < {each.words}; i++) {each.name}[i] = {fill};"
        yield from self._setting_lines()
        yield "for (i = 0; i < ROWS; i++) {"
        yield "  for (j = 0; j < STORED; j++) put_a(a, i, j, drawn.a[i][j]);"
        yield "  for (j = 0; j < COLUMNS; j++) put_c(c, i, j, drawn.c[i][j]);"
        yield "}"
        yield "for (i = 0; i < DEPTH; i++)"
        yield "  for (j = 0; j < COLUMNS; j++) put_b(b, i, j, drawn.b[i][j]);"
        if self.form.pattern is not None:
            selector = "*selector" if self.model.operands.in_registers else "0"
            yield "for (i = 0; i < ROWS; i++)"
            yield f"  for (j = 0; j < CHUNKS; j++) put_e(e, {selector}, i, j, drawn.field[i][j]);"
        for side in "ab" if self.form.scale else "":
            line, code = ("ROWS", "a[i][j]") if side == "a" else ("COLUMNS", "b[j][i]")
            ids = f"*byte_id_{side}, *thread_id_{side}" if self.model.operands.in_registers else "0, 0"
            yield f"for (i = 0; i < {line}; i++)"
            yield "  for (j = 0; j < SCALES; j++)"
            yield f"    put_scale_{side}(scale_{side}, {ids}, i, j, drawn.scale_{code});"

    def _metadata_looks(self) -> Iterator[str]:
        """Yield functions that ask for fields of metadata, and for B that no stored element meets."""
        chunk_field = self.model.operands.field_of_chunk()
        yield "static int has_field(const uint32_t *e, int selector, int chunk, uint32_t field) {"
        yield "  int row, found = 0;"
        yield "  (void)selector;"
        yield f"  for (row = 0; row < ROWS; row++) found |= {chunk_field} == field;"
        yield "  return found;"
        yield "}"
        if not self.form.a.is_float:
            return
        given = "const word_t *b, const uint32_t *e, int selector, int row, int column"
        yield f"static void look_at_unselected({given}) {{"
        yield "  unsigned char met[DEPTH] = {0};"
        yield "  int s, k, chunk, field, index;"
        yield "  (void)selector;"
        yield "  for (s = 0; s < STORED; s++) {"
        yield from (f"    {line}" for line in self.model.column_of())
        yield "    met[k] = 1;"
        yield "  }"
        yield "  unselected_nan = unselected_inf = 0;"
        yield "  for (k = 0; k < DEPTH; k++) {"
        yield f"    int kind = met[k] ? FINITE : (int)read_{self.form.b}(b_code(b, k, column)).kind;"
        yield "    unselected_nan |= kind == NOT_A_NUMBER;"
        yield "    unselected_inf |= kind == INFINITE;"
        yield "  }"
        yield "}"

    def _setting_lines(self) -> Iterator[str]:
        """Yield the choice of immediates."""
        for name, values in _immediates(self.form):
            listed = ", ".join(map(str, values))
            yield "{"
            yield f"  static const int values[] = {{{listed}}};"
            yield f"  *{name} = values[random_below({len(values)})];"
            yield "}"

    # --- intermediates ---

    def _trace(self) -> Iterator[str]:
        fields = self.model.dot.fields
        count = sum(each.count for each in fields)
        yield f"#define INTERMEDIATES {count}"
        yield "static const struct {"
        yield "  const char *name;"
        yield "  int count, is_code;"
        yield f"}} trace_fields[{len(fields)}] = {{"
        yield from (
            f'    {{"{each.name}", {each.count}, {int(each.type == "uint64_t")}}},' for each in fields
        )
        yield "};"
        yield "static void flat_trace(const @NAME@_trace *t, int64_t *v) {"
        yield "  int i;"
        for each in fields:
            if each.count > 1:
                yield f"  for (i = 0; i < {each.count}; i++) *v++ = (int64_t)t->{each.name}[i];"
            else:
                yield f"  *v++ = (int64_t)t->{each.name};"
        yield "  (void)i;"
        yield "}"
        yield "static bin_count bins[BINS + 1] = {"
        yield from (f'    {{"{name}", 0, 0}},' for name in (*self.bins, *self.settings))
        yield '    {"", 0, 0}};'

    # --- entry points ---

    def _entry_points(self) -> Iterator[str]:
        dot = self.model.dot
        codes = ", ".join(each.name for each in dot.program.inputs)
        scales = ", scales_a, scales_b" if self.form.scale else ""
        gathered_arguments = ", ".join(each.name for each in self.model.inputs if each.name != "c")
        text = own_text("entry_points.c").rstrip()
        for key, value in {
            "@OUTPUTS@": self.outputs,
            "@INPUTS@": self.declarations,
            "@ARGUMENTS@": self.arguments,
            "@WORD@": dot.word,
            "@PLANTED@": self.planted,
            "@CODES@": codes,
            "@SCALES@": ("\n  word_t scales_a[STORED], scales_b[STORED];" if scales else ""),
            "@PASSED@": scales,
            "@ELEMENT@": gathered_arguments,
            "@CODE_OUTPUTS@": self.code_outputs,
            "@PASSED_CODES@": ", scale_a_codes, scale_b_codes" if scales else "",
            "@UNUSED@": "  " + " ".join(f"(void){each.name};" for each in self.model.inputs),
            "@UNSELECTED@": self._unselected(),
            "@SETTINGS@": "\n".join(f"  {line}" for line in self._setting_looks()),
        }.items():
            text = text.replace(key, value)
        yield text

    def _unselected(self) -> str:
        if self.form.pattern is None or not self.form.a.is_float:
            return ""
        selector = "selector" if self.model.operands.in_registers else "0"
        return f"      look_at_unselected(b, e, {selector}, row, column);\n"

    def _setting_looks(self) -> Iterator[str]:
        form = self.form
        for name, values in _immediates(form):
            yield from (
                f"see_case({self.settings[f'{name} {value}']}, {name} == {value});" for value in values
            )
        if form.pattern is not None:
            selector = "selector" if self.model.operands.in_registers else "0"
            for chunk in range(form.shape.k // form.pattern.chunk):
                for value in _fields(form):
                    at = self.settings[f"metadata: chunk {chunk}, field {value:#06b}"]
                    yield f"see_case({at}, has_field(e, {selector}, {chunk}, {value}));"


def _immediates(form: Instruction) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the immediates of a model, with their values."""
    if form.reads_tiles or not all(form.has_registers(each) for each in "abcd"):
        return
    if form.pattern is not None:
        yield "selector", form.selectors
    for side in "ab" if form.scale else "":
        held = form.scales(side)
        yield f"byte_id_{side}", list(held.byte_ids)
        yield f"thread_id_{side}", list(held.thread_ids)


def _fields(form: Instruction) -> list[int]:
    from ..generation.cases.placement import legal_fields

    return [int(each) for each in legal_fields(form)]


def _setting_bins(form: Instruction) -> Iterator[str]:
    for name, values in _immediates(form):
        yield from (f"{name} {value}" for value in values)
    if form.pattern is not None:
        for chunk in range(form.shape.k // form.pattern.chunk):
            yield from (f"metadata: chunk {chunk}, field {value:#06b}" for value in _fields(form))
