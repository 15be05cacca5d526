"""The bench of a golden model in C: stimulus at run time, coverage counters, wrong programs, a scoreboard.

NAME_bench.c includes NAME.c. Tiles of each corner theme are a table; at run time they are turned about by the
symmetries that keep a corner, and codes of them change. Wrong programs are the rewritings of the rule's: those that
give every output so far name the mistake of a unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...isa.formats import FORMATS, Format
from ...isa.fragments import fields_of
from ...isa.instruction import Instruction
from ...sums.rule_programs.rewritings import rewritings
from ...sums.rule_programs.rule_operations import Operation, Program
from ..generation.cases.corners import themes_of
from ..generation.coverage.vector_coverage import gathered
from ..generation.generate import generate_vectors
from ..generation.sums.limits import Limits
from . import c_bins
from .c_dot import DotProduct, Field
from .c_model import CModel
from .c_parts import constant, far_cut, ieee_sum, rounding

Array = npt.NDArray[Any]
_CODES = 60_000  # of all tiles, about
_TILES = 4  # of a theme, at most
_TEXTS = Path(__file__).parent


class WrongDot(DotProduct):
    """A wrong program: a function of its own, with the intermediates of the right program where it has those."""

    def __init__(self, name: str, function: str, program: Program, right: Sequence[Field]) -> None:
        super().__init__(name, program, bounded=False)
        self.function = function
        if [_kind(each) for each in self.fields] != [_kind(each) for each in right]:
            self.fields = ()

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"static {super().prototype.replace(f'{self.name}_dot(', f'{self.function}(')}"

    def _ending(self) -> Iterator[str]:
        return super()._ending() if self.fields else iter(["  (void)trace;"])


def _kind(field: Field) -> tuple[str, str, int]:
    return field.type, field.name, field.count


class SeenDot(DotProduct):
    """The rule's program with a look at each step, which notes the bins that are hit."""

    def __init__(self, name: str, program: Program, limits: Limits, bins: Mapping[str, int]) -> None:
        super().__init__(name, program)
        self.limits, self.bins = limits, bins
        self._steps = 0

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"static {super().prototype.replace(f'{self.name}_dot(', 'seen_dot(').rpartition(',')[0]})"

    def _ending(self) -> Iterator[str]:
        form = self.limits.instruction
        sides = [("a", "A"), ("b", "B"), ("c", "C")]
        sides += [("scale_a", "SA"), ("scale_b", "SB")] if form.scale else []
        for name, numbers in sides:
            if self.ranges.count(numbers) > 1:
                yield f"  {self._loop(numbers)} see_{name}({name}[i], {numbers}[i].kind);"
            else:
                yield f"  see_{name}({name}, {numbers}[0].kind);"
        if form.a.is_float:
            scaled = "SA, SB, " if form.scale else ""
            names = [at.result for at in self.program.named("mul")]
            products = "PS" if "PS" in names else "P"
            yield f"  see_dot(A, B, C, {scaled}{products}, (uint64_t){self.program.result});"

    def _round(self, at: Operation, total: str, unit: str, numbers: str) -> Iterator[str]:
        yield from super()._round(at, total, unit, numbers)
        output, element = at.given[0], FORMATS[at.given[0].format]
        aligned = self.limits.step is not None
        top = self.program.by_result[unit].values[0] if aligned else unit
        kept = self.program.by_result[total].values[0] if aligned else "0"
        yield from self._terms(numbers, f"!special_{at.result}")
        yield f"now.top = {top}, now.unit = {unit}, now.kept = {kept}, now.total = {total};"
        how = f"{output.precision}, {int(output.nearest)}, {element.fraction_bits}, {element.exponent_bits}"
        yield f"look_at_rounding(&now, {how});"
        if aligned:
            yield "look_at_terms(&now);"
        yield self._asked("aligned" if aligned else "ieee", at)

    def _ieee(self, at: Operation, numbers: str) -> Iterator[str]:
        for line in super()._ieee(at, numbers):
            yield line.replace("= ieee(", "= ieee_seen(")
        finite = f"!special({numbers}, {self.ranges.count(numbers)})"
        yield from self._terms(numbers, finite)
        yield self._asked("ieee", at)

    def _wrap(self, at: Operation, total: str) -> Iterator[str]:
        yield from super()._wrap(at, total)
        kept = self.program.by_result[total].values[0]
        yield from self._terms(self.program.by_result[kept].values[0], "1")
        yield f"now.kept = {kept}, now.total = {total};"
        yield self._asked("integer", at)

    def _terms(self, numbers: str, finite: str) -> Iterator[str]:
        fraction = [part.fraction for part in self.ranges.parts[numbers] for _ in range(part.count)]
        yield "{"
        yield f"  static const int fraction[{len(fraction)}] = {{{', '.join(map(str, fraction))}}};"
        yield "  now.fraction = fraction;"
        yield "}"
        yield f"now.x = {numbers}, now.count = {len(fraction)}, now.finite = {finite};"

    def _asked(self, kind: str, at: Operation) -> str:
        return f"see_{kind}(&now, {int(at.result == self.program.result)});"

    @property
    def uses_ieee(self) -> bool:
        """Whether a step is an IEEE operation."""
        return any(self.program.named("ieee"))


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Tiles of corner cases: the theme of each, and arrays of codes whose first axis is the tiles."""

    themes: tuple[str, ...]
    codes: Mapping[str, Array]


@in_default_environment
def tiles_of(form: Instruction, seed: int = 0) -> Tiles:
    """Return some tiles of each theme: codes, fields of metadata and scales as matrices."""
    shape = form.shape
    each = (shape.m * form.stored_k + shape.k * shape.n + shape.m * shape.n) * form.products
    themes = len(themes_of(form, "corner"))
    count = themes * max(1, min(_TILES, _CODES // (each * themes)))
    vectors = generate_vectors(form, kind="corner", count=count, seed=seed)
    found: dict[str, list[Array]] = {}
    for part in vectors.inputs():
        operands = gathered(form, part)
        arrays = {name: getattr(operands, name) for name in ("a", "b", "c", "scale_a", "scale_b")}
        if form.pattern is not None:
            unit, chunk = form.pattern.unit, form.pattern.chunk
            arrays["e"] = fields_of(form, (operands.columns % chunk // unit)[..., ::unit])  # type: ignore[operator]
        for name, array in arrays.items():
            if array is not None:
                found.setdefault(name, []).append(array.reshape(-1, form.products, *array.shape[1:]))
    return Tiles(
        themes=tuple(vectors.labels), codes={name: np.concatenate(parts) for name, parts in found.items()}
    )


class CBench:
    """NAME_bench.c and NAME_bench.h of a model."""

    def __init__(self, model: CModel, tiles: Tiles) -> None:
        self.model, self.form, self.name, self.tiles = model, model.form, model.name, tiles
        self.limits = Limits(instruction=model.form, rule=model.rule)
        self.bins = {name: at for at, name in enumerate(c_bins.bins_of(self.limits))}
        self.settings = {name: len(self.bins) + at for at, name in enumerate(_setting_bins(self.form))}
        program, right = model.dot.program, model.dot.fields
        self.wrong = [
            (each.name, WrongDot(self.name, f"wrong_{at}", each.program, right))
            for at, each in enumerate(rewritings(program))
        ]
        self.seen = SeenDot(self.name, program, self.limits, self.bins)

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
            _TEMPLATES["header"]
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
        text = (_TEXTS / "bench.c").read_text(encoding="utf-8")
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
            (_TEXTS / "scoreboard.c").read_text(encoding="utf-8").rstrip(),
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
            "IEEE": int(self.limits.step is None or self.limits.emulated),
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
            yield _seen_ieee(wide=self.model.dot.wide)
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
        yield f"static void see_dot(const number *x, const number *y, const number *z, {scales}const number *p, uint64_t code) {{"
        yield "  causes w = why_special(x, y);"
        yield f"  uint64_t magnitude = code & {constant(d.mask & ~d.sign_bit)};"
        yield f"  int negative = (code & {constant(d.sign_bit)}) != 0, k;"
        yield "  int only_minus_zeros = MAGNITUDE(z[0]) == 0 && z->negative, both_subnormal = 0;"
        yield "  int nan_scale_a = 0, nan_scale_b = 0, scaled_nonzero = 0, asked = z->kind != FINITE || w.count;"
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
        yield "} mistakes[MISTAKES] = {"
        yield from (f'    {{"{name}", {each.function}}},' for name, each in self.wrong)
        yield "};"

    # --- places ---

    def _placing(self) -> Iterator[str]:
        """Yield functions that write codes into arguments, and read those of D."""
        operands = self.model.operands
        yield from operands.writers()
        yield operands.reader("d")
        lane, word = operands.place("d")[:2] if operands.in_registers else ("row", "column")
        for name, place in (("lane_of", lane), ("word_of", word)):
            yield f"static int {name}(int row, int column) {{ (void)row, (void)column; return {place}; }}"
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
        yield "static void look_at_unselected(const word_t *b, const uint32_t *e, int selector, int row, int column) {"
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
            yield f"{{ static const int values[] = {{{listed}}}; *{name} = values[random_below({len(values)})]; }}"

    # --- intermediates ---

    def _trace(self) -> Iterator[str]:
        fields = self.model.dot.fields
        count = sum(each.count for each in fields)
        yield f"#define INTERMEDIATES {count}"
        yield "static const struct {"
        yield "  const char *name;"
        yield "  int count;"
        yield f"}} trace_fields[{len(fields)}] = {{"
        yield from (f'    {{"{each.name}", {each.count}}},' for each in fields)
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
        text = _TEMPLATES["entry"]
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


def _seen_ieee(*, wide: bool) -> str:
    """Return the function ``ieee``, which notes what its rounding did."""
    text = ieee_sum(wide=wide)
    text = text[text.index("/* The exact sum of one or two numbers") :]
    for old, new in (
        ("static uint64_t ieee(", "static uint64_t ieee_seen("),
        (
            "  if (found == 3) return nan;",
            "  now.zero = now.tail = now.overflow = now.subnormal = now.vanished = now.carried = 0;\n  if (found == 3) return nan;",
        ),
        (
            "  if ((sum.h | sum.l) == 0) return",
            "  now.negative = negative;\n  now.zero = (sum.h | sum.l) == 0;\n  if (now.zero) return",
        ),
        (
            "  if (place + s < low) s = low - place;",
            "  now.subnormal = place + s < low;\n  if (now.subnormal) s = low - place;",
        ),
        (
            "  kept += (uint64_t)away;",
            "  now.tail = (int)rest;\n  now.odd = (int)(kept & 1);\n  now.carried = kept > 0 && ((kept + (uint64_t)away) & kept) == 0;\n  now.vanished = kept + (uint64_t)away == 0;\n  kept += (uint64_t)away;",
        ),
        ("  if (code >= infinity) {", "  now.overflow = code >= infinity;\n  if (code >= infinity) {"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    return text


_TEMPLATES = {
    "header": """/* Stimulus, coverage and a scoreboard for @NAME@. Static state: one bench at a time. */
#ifndef @GUARD@
#define @GUARD@
#include "@NAME@.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The inputs of a case: the same for the same seed and case. */
void @NAME@_stimulate(uint64_t seed, int at, @OUTPUTS@);

/* Compare D of a unit with the model's, count bins, and rule out mistakes. Returns the wrong elements. */
int @NAME@_score(int at, @INPUTS@, const @WORD@ *d);

/* The next line of the scoreboard; "" where there is none. */
const char *@NAME@_line(void);

/* End the scoreboard: lines of the totals, of the mistakes that give every output, of the bins that were missed. */
void @NAME@_end(void);

/* A dot product with a mistake: 1 to the number of mistakes; 0 is none. */
@PLANTED@;
int @NAME@_mistakes(void);
const char *@NAME@_mistake(int mistake);

/* Elements of D, row after row: the codes that one is made of, and where its code goes in D. */
void @NAME@_element(int element, @INPUTS@, @CODE_OUTPUTS@);
void @NAME@_put(int element, @WORD@ code, @WORD@ *d);

/* Intermediates as integers, in the order of @NAME@_trace, and the name of each. */
void @NAME@_flat(const @NAME@_trace *trace, int64_t *values);
const char *@NAME@_intermediate(int intermediate);

#ifdef __cplusplus
}
#endif
#endif
""",
    "entry": """
void @NAME@_element(int element_number, @INPUTS@, @CODE_OUTPUTS@) {
  int row = element_number / COLUMNS, column = element_number % COLUMNS;
  element(@ELEMENT@, row, column, a_codes, b_codes@PASSED_CODES@);
  c_codes[0] = c_code(c, row, column);
}

void @NAME@_put(int element_number, @WORD@ code, @WORD@ *d) {
  put_d(d, element_number / COLUMNS, element_number % COLUMNS, code);
}

void @NAME@_flat(const @NAME@_trace *trace, int64_t *values) { flat_trace(trace, values); }

const char *@NAME@_intermediate(int intermediate) {
  return intermediate < 0 || intermediate >= INTERMEDIATES ? "" : intermediate_name(intermediate);
}
void @NAME@_stimulate(uint64_t seed, int at, @OUTPUTS@) {
  current_seed = seed;
  draw_tile(seed, at);
  put_tile(@ARGUMENTS@);
}

@PLANTED@ {
  if (mistake < 1 || mistake > MISTAKES) return @NAME@_dot(@CODES@, trace);
  return mistakes[mistake - 1].dot(@CODES@, trace);
}

static void see_settings(@INPUTS@) {
  (void)a, (void)b, (void)c;
@SETTINGS@
}

int @NAME@_score(int at, @INPUTS@, const @WORD@ *d) {
  word_t left[STORED], right[STORED], expected, got;@SCALES@
  int row, column, wrong = 0, i;
  current_case = at;
  cases++;
  see_settings(@ARGUMENTS@);
  for (row = 0; row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      element(@ELEMENT@, row, column, left, right@PASSED@);
@UNSELECTED@      expected = seen_dot(left, right, c_code(c, row, column)@PASSED@);
      count_hits();
      got = d_code(d, row, column);
      elements++;
      wrong += expected != got;
      for (i = 0; i < MISTAKES; i++)
        if (needed(i)) weigh(i, expected, got, mistakes[i].dot(left, right, c_code(c, row, column)@PASSED@, 0));
    }
  wrong_elements += wrong;
  wrong_cases += wrong > 0;
  for (row = 0; wrong && row < ROWS; row++)
    for (column = 0; column < COLUMNS; column++) {
      @NAME@_trace model, unit;
      if (lines_shown >= SHOWN) return wrong;
      element(@ELEMENT@, row, column, left, right@PASSED@);
      expected = @NAME@_dot(left, right, c_code(c, row, column)@PASSED@, &model);
      got = d_code(d, row, column);
      if (expected == got) continue;
      i = suspect();
      memset(&unit, 0, sizeof unit);
      if (i >= 0 && mistakes[i].dot(left, right, c_code(c, row, column)@PASSED@, &unit) != got) i = -1;
      report(row, column, expected, got, &model, i >= 0 ? &unit : 0, i);
    }
  return wrong;
}""",
}
