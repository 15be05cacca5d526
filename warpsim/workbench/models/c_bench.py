"""The bench of a golden model in C: stimulus at run time, coverage counters, wrong programs, a scoreboard.

NAME_bench.c includes NAME.c, and tables of data. Tiles of each corner theme are turned about at run time by
the symmetries that keep a corner, and codes of them change. Wrong programs are the rewrites of the rule's:
those that give every output so far name the mistake of a unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ...isa.instruction import Instruction
from ...isa.rules import ScaledGroups
from ..generation.coverage.bins import arithmetic_bins
from ..generation.sums.limits import Limits
from .c_model import CModel, own_text
from .c_parts import LENGTH, WIDE, c_int, constant
from .c_programs import Tables, wrapped_names, wrong_programs
from .corner_tiles import Tiles

Array = npt.NDArray[Any]


class CBench:
    """NAME_bench.c, NAME_bench.h and NAME_tables.h of a model."""

    def __init__(self, model: CModel, tiles: Tiles) -> None:
        self.model, self.form, self.name, self.tiles = model, model.form, model.name, tiles
        self.limits = Limits(instruction=model.form, rule=model.rule)
        every = arithmetic_bins(self.limits)
        reachable = [name for name, why in every.items() if not why and not name.startswith("shown: ")]
        self.bins = {name: at for at, name in enumerate(reachable)}
        self.settings = {name: len(self.bins) + at for at, name in enumerate(_setting_bins(self.form))}
        self.wrong = wrong_programs(self.limits, model.rule, model.form)
        self.tables = Tables(model.dot.program, self.wrong, model.form)

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
        given = self.model.dot.prototype.partition("(")[2].rpartition(",")[0]
        return f"{self.model.dot.word} {self.name}_planted(int mistake, {given}, int64_t *values)"

    def source(self) -> str:
        """Return NAME_bench.c."""
        parts = [
            *self._about("Stimulus, coverage and a scoreboard"),
            f'#include "{self.name}_bench.h"',
            "#include <stdio.h>",
            "#include <string.h>",
            f'#include "{self.name}.c"',
            f'#include "{self.name}_tables.h"',
            own_text("stimulus.c").rstrip(),
            *self._missing_parts(),
            own_text("bins.c").rstrip(),
            own_text("programs.c").rstrip(),
            *self._placing(),
            own_text("scoreboard.c").rstrip(),
            *self._entry_points(),
        ]
        return self._text(parts)

    def data(self) -> str:
        """Return NAME_tables.h."""
        parts = [
            *self._about("Tables: corner tiles, programs, bins"),
            *self._constants(),
            own_text("table_types.c").rstrip(),
            *self.tables.lines(),
            *self._seeds(),
            *self._names(),
        ]
        return self._text(parts)

    def _text(self, parts: Sequence[str]) -> str:
        return "\n".join(parts).replace("@NAME@", self.name) + "\n"

    def _about(self, what: str) -> Iterator[str]:
        yield f"/* {what} for {self.form.mnemonic}"
        yield f"   on {self.form.target}. Written by warpsim model: no Python while it runs. */"

    # --- constants and tables ---

    def _sizes(self) -> dict[str, int]:
        form, program, tables = self.form, self.model.dot.program, self.tables
        chunks = form.shape.k // form.pattern.chunk if form.pattern else 1
        return {
            "ROWS": self.model.rows,
            "COLUMNS": form.shape.n,
            "PRODUCTS": form.products,
            "DEPTH": form.shape.k * form.products,
            "STORED": form.stored_k,
            "CHUNKS": chunks,
            "SCALES": max(form.scale_chunks, 1),
            "PLACES": chunks if form.pattern else form.stored_k,
            "CODE_BITS": max(form.a.bits, form.b.bits, form.c.bits),
            "PRECISION": self.limits.output.precision,
            "BINS": len(self.bins) + len(self.settings),
            "MISTAKES": len(self.wrong),
            "SEEDS": len(self.tiles.themes),
            "INPUTS": len(program.inputs),
            "RULE": len(program.operations),
            "OPERATIONS": tables.operations,
            "VALUES": len(tables.values),
            "TERMS": tables.terms,
            "INTERMEDIATES": sum(each.count for each in self.model.dot.fields),
        }

    def _kinds(self) -> dict[str, bool]:
        form, limits = self.form, self.limits
        return {
            "SPARSE": form.pattern is not None,
            "SCALED": form.scale is not None,
            "FLOATS": form.a.is_float,
            "WIDE": self.model.dot.wide,
            "ALIGNED": limits.step is not None,
            "IEEE": form.a.is_float and (limits.step is None or limits.emulated),
            "EMULATED": limits.emulated,
        }

    def _constants(self) -> Iterator[str]:
        form, limits = self.form, self.limits
        numbers: dict[str, Any] = self._sizes() | {name: int(is_it) for name, is_it in self._kinds().items()}
        numbers["D_FORMAT"] = f"f_{form.d}"
        if limits.step is not None:
            numbers |= {"FRACTION_BITS": limits.fraction_bits, "CARRIES": limits.carries}
        if not form.a.is_float:
            numbers |= self._integer_products()
        for side in "abc":
            numbers[f"{side.upper()}_MASK"] = constant(form.format(side).mask)
            if form.a.is_float:
                numbers[f"{side.upper()}_SIGN"] = f"(word_t){constant(form.format(side).sign_bit)}"
        lane, word = ("lane", "register d") if self.model.operands.in_registers else ("row", "column ")
        numbers |= {"LANE_WORD": f'"{lane}"', "REGISTER_WORD": f'"{word}"'}
        yield ""
        yield f"typedef {self.model.dot.word} word_t;"
        yield from (f"#define {name} {value}" for name, value in numbers.items())

    def _integer_products(self) -> dict[str, str]:
        form = self.form
        ends = [(-each.sign_bit, each.mask ^ each.sign_bit) for each in (form.a, form.b)]
        products = [x * y for x in ends[0] for y in ends[1]]
        return {"LARGEST_PRODUCT": c_int(max(products)), "SMALLEST_PRODUCT": c_int(min(products))}

    def _seeds(self) -> Iterator[str]:
        """Yield the tiles, each in a row: its theme, then the codes of the operands."""
        form, tiles = self.form, self.tiles
        rows = {name: codes.reshape(len(codes), -1).tolist() for name, codes in tiles.codes.items()}
        yield "typedef struct {"
        yield "  const char *theme;"
        for name, codes in tiles.codes.items():
            width = next(bits for bits in (8, 16, 32, 64) if codes.max() < 1 << bits)
            yield f"  uint{width}_t {name}[{len(rows[name][0])}];"
        yield "} seed_tile;"
        yield "static const seed_tile seeds[SEEDS] = {"
        for at, theme in enumerate(tiles.themes):
            listed = ", ".join(f"{{{','.join(map(_code, each[at]))}}}" for each in rows.values())
            yield f'{{"{theme}", {listed}}},'
        yield "};"
        if form.a.is_float:
            grouped = isinstance(self.limits.rule, ScaledGroups)  # scaled before they are aligned
            added = self.limits.groups * (self.limits.step is not None and not grouped)
            for name, steps in (("step_of", self.limits.groups), ("added_in", added)):
                yield f"static const int {name}[STORED] = {{{', '.join(map(str, steps.tolist()))}}};"
        yield f"static const int place_group[] = {{{', '.join(map(str, self._places()))}}};"

    def _names(self) -> Iterator[str]:
        """Yield the names of intermediates and of bins."""
        yield "static const struct {"
        yield "  const char *name;"
        yield "  int count, is_code;"
        fields = self.model.dot.fields
        yield f"}} trace_fields[{len(fields)}] = {{"
        yield from (f'  {{"{each.name}", {each.count}, {int(each.type == "uint64_t")}}},' for each in fields)
        yield "};"
        yield "static bin_count bins[BINS + 1] = {"
        yield from wrapped_names(self.bins | self.settings, "")
        yield "};"

    def _missing_parts(self) -> Iterator[str]:
        """Yield what programs need and the model has not."""
        text = "\n".join(self.model.dot.functions())
        yield from (part for part in (LENGTH, WIDE) if part not in text)

    def _places(self) -> list[int]:
        """Return a number for each column of stored A, or chunk: equal where their order does not matter."""
        form, stored = self.form, self.form.stored_k
        orders = np.arange(stored) if self.limits.step is None and form.a.is_float else self.limits.groups
        scale = np.arange(stored) * max(form.scale_chunks, 1) // stored
        keys = [*zip(orders.tolist(), scale.tolist(), strict=True)]
        wide = stored * form.pattern.chunk // form.shape.k if form.pattern else 1
        members = [tuple(keys[at : at + wide]) for at in range(0, stored, wide)]
        return [members.index(each) for each in members]

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
        if self.form.pattern is not None and self.form.a.is_float:
            yield from self._unselected_look()
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

    def _unselected_look(self) -> Iterator[str]:
        """Yield a function that looks at the elements of B that no stored element meets."""
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
        yield f"    term n = read_code(b_code(b, k, column), &formats[f_{self.form.b}], as_stored);"
        yield "    int kind = met[k] ? FINITE : n.kind;"
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

    # --- entry points ---

    def _entry_points(self) -> Iterator[str]:
        dot = self.model.dot
        pointers = ", ".join(each.name if each.count > 1 else f"&{each.name}" for each in dot.program.inputs)
        scales = ", scales_a, scales_b" if self.form.scale else ""
        gathered_arguments = ", ".join(each.name for each in self.model.inputs if each.name != "c")
        text = own_text("entry_points.c").rstrip()
        for key, value in {
            "@OUTPUTS@": self.outputs,
            "@INPUTS@": self.declarations,
            "@ARGUMENTS@": self.arguments,
            "@WORD@": dot.word,
            "@PLANTED@": self.planted,
            "@POINTERS@": pointers,
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
        for name, _ in _immediates(self.form):
            yield f'see_case(numbered_bin("{name} %d", {name}));'
        if self.form.pattern is not None:
            yield f"see_metadata(e, {'selector' if self.model.operands.in_registers else '0'});"


def _code(code: int) -> str:
    return f"0x{code:x}" if code > 9 else str(code)


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
