"""A golden model in SystemVerilog: DPI-C imports, checkers of a unit, a unit to be replaced, a test bench.

Ports are packed: DPI-C passes them as words of 32 bits, which ``NAME_dpi.c`` converts to the model's.
The text is that of Verilator 5 and of the IEEE 1800 simulators.
"""

from __future__ import annotations

from collections.abc import Iterator

from .c_bench import CBench
from .c_model import CModel, own_text
from .c_operands import Argument


class SvModel:
    """NAME.sv, NAME_unit.sv, NAME_tb.sv and NAME_dpi.c of a model and its bench."""

    def __init__(self, model: CModel, bench: CBench) -> None:
        self.model, self.bench, self.name = model, bench, model.name
        self.bits = 64 if model.dot.word == "uint64_t" else 32
        self.inputs = model.inputs
        self.codes = model.dot.program.inputs

    def files(self) -> dict[str, str]:
        """Return the files by name."""
        name = self.name
        return {
            f"{name}.sv": self._filled("checker.sv"),
            f"{name}_unit.sv": self._filled("unit.sv"),
            f"{name}_tb.sv": self._filled("test_bench.sv"),
            f"{name}_dpi.c": "\n".join(self._dpi()) + "\n",
        }

    def _filled(self, file: str) -> str:
        text = own_text(file)
        form, operands = self.model.form, self.model.operands
        for key, value in {
            "ABOUT": f"{form.mnemonic}\n// on {form.target}",
            "TYPES": "\n".join(self._types()),
            "TRACE": "\n".join(self._trace()),
            "PORTS": "\n".join(f"    input {each.name}_t {each.name}," for each in self.inputs),
            "DECLARED": "\n".join(f"  {each.name}_t {each.name};" for each in self.inputs),
            "CONNECTED": ", ".join(f".{each.name}({each.name})" for each in self.inputs),
            "PASSED": ", ".join(each.name for each in self.inputs),
            "GIVEN": ", ".join(f"input {each.name}_t {each.name}" for each in self.inputs),
            "WRITTEN": ", ".join(f"output {each.name}_t {each.name}" for each in self.inputs),
            "DOT_PORTS": "\n".join(f"    input {each.name}_codes_t {each.name}," for each in self.codes),
            "DOT_DECLARED": "\n".join(f"  {each.name}_codes_t {each.name}_codes;" for each in self.codes),
            "DOT_CONNECTED": ", ".join(f".{each.name}({each.name}_codes)" for each in self.codes),
            "DOT_NAMES": ", ".join(each.name for each in self.codes),
            "DOT_PASSED": ", ".join(f"{each.name}_codes" for each in self.codes),
            "DOT_GIVEN": ", ".join(f"input {each.name}_codes_t {each.name}" for each in self.codes),
            "DOT_WRITTEN": ", ".join(f"output {each.name}_codes_t {each.name}_codes" for each in self.codes),
            "ELEMENTS": str(self.model.rows * form.shape.n),
            "LANE": "lane" if operands.in_registers else "row",
            "WORD": "register d" if operands.in_registers else "column ",
            "NAME": self.name,
        }.items():
            text = text.replace(f"@{key}@", value)
        return text

    def _width(self, words: int) -> str:
        return f"bit [{words * self.bits - 1}:0]"

    def _types(self) -> Iterator[str]:
        columns = self.model.arguments[-1].shape[-1]
        yield f"  localparam int WORD_BITS = {self.bits};"
        yield f"  localparam int D_WORDS = {self.model.arguments[-1].words};"
        yield f"  localparam int D_COLUMNS = {columns};"
        for each in self.model.arguments:
            about = f"  // {each.text}"
            if not each.is_array:
                yield f"  typedef int {each.name}_t;{about}"
            elif each.type == "uint64_t":
                yield f"  typedef bit [{64 * each.words - 1}:0] {each.name}_t;{about}"
            else:
                yield f"  typedef bit [{32 * each.words - 1}:0] {each.name}_t;{about}"
        yield "  // Codes of a dot product, each in a word."
        for code in self.codes:
            yield f"  typedef {self._width(code.count)} {code.name}_codes_t;"
        yield "  typedef bit [WORD_BITS-1:0] code_t;"

    def _trace(self) -> Iterator[str]:
        fields = self.model.dot.fields
        yield f"  localparam int INTERMEDIATES = {sum(each.count for each in fields)};"
        yield "  typedef struct packed {"
        for each in reversed(fields):
            count = f"[{each.count - 1}:0]" if each.count > 1 else ""
            about = f"  // {each.unit}" if each.unit else ""
            yield f"    bit signed {count}[63:0] {each.name};{about}"
        yield "  } trace_t;"

    # --- DPI-C ---

    def _dpi(self) -> Iterator[str]:
        name, words = self.name, self.model.dot.word
        yield f"/* {name} for DPI-C: packed bits are words of 32 bits, the lowest first. C or C++. */"
        yield f'#include "{name}_bench.h"'
        yield "#include <string.h>"
        yield "#ifdef __cplusplus"
        yield 'extern "C" {'
        yield "#endif"
        if words == "uint64_t":
            yield _WIDE_WORDS
        yield from self._call(f"void {name}_dpi", f"{name}(@, @d)")
        yield from self._call(f"int {name}_score_dpi", f"{name}_score(at, @, @d)", scores=True)
        yield from self._stimulate()
        yield from self._dots()
        yield "#ifdef __cplusplus"
        yield "}"
        yield "#endif"

    def _is_wide(self, each: Argument) -> bool:
        return each.type == "uint64_t"

    def _call(self, head: str, call: str, *, scores: bool = False) -> Iterator[str]:
        """Yield a function that converts words and calls another, which writes D, or reads it and scores."""
        d, inputs = self.model.arguments[-1], self.inputs
        given = ["int at"] * scores
        given += [f"const uint32_t *{each.name}" if each.is_array else f"int {each.name}" for each in inputs]
        given.append(f"{'const ' * scores}uint32_t *d")
        yield f"{head}({', '.join(given)}) {{"
        for each in (*inputs, d):
            if self._is_wide(each):
                yield f"  uint64_t {each.name}_words[{each.words}];"
        for each in (*inputs, *([d] * scores)):
            if self._is_wide(each):
                yield f"  joined({each.name}, {each.name}_words, {each.words});"
        names = [f"{each.name}_words" if self._is_wide(each) else each.name for each in inputs]
        made = call.replace("@d", "d_words" if self._is_wide(d) else "d").replace("@", ", ".join(names))
        yield f"  {'return ' * scores}{made};"
        if not scores and self._is_wide(d):
            yield f"  parted(d_words, d, {d.words});"
        yield "}"

    def _stimulate(self) -> Iterator[str]:
        name = self.name
        given = [f"uint32_t *{each.name}" if each.is_array else f"int *{each.name}" for each in self.inputs]
        yield f"void {name}_stimulate_dpi(long long seed, int at, {', '.join(given)}) {{"
        wide = [each for each in self.inputs if self._is_wide(each)]
        yield from (f"  uint64_t {each.name}_words[{each.words}];" for each in wide)
        names = [f"{each.name}_words" if each in wide else each.name for each in self.inputs]
        yield f"  {name}_stimulate((uint64_t)seed, at, {', '.join(names)});"
        yield from (f"  parted({each.name}_words, {each.name}, {each.words});" for each in wide)
        yield "}"

    def _dots(self) -> Iterator[str]:
        """Yield calls of one dot product: of codes, with the trace as words of 64 bits; of elements."""
        name, word = self.name, self.model.dot.word
        wide = word == "uint64_t"
        given = ", ".join(f"const uint32_t *{each.name}" for each in self.codes)
        yield f"void {name}_dot_dpi(int mistake, {given}, uint32_t *d, uint32_t *trace) {{"
        yield f"  int64_t v[{sum(each.count for each in self.model.dot.fields)}];"
        yield f"  {word} code;"
        names = list[str]()
        for each in self.codes:
            if wide:
                yield f"  uint64_t {each.name}_words[{each.count}];"
        for each in self.codes:
            of = f"{each.name}_words" if wide else each.name
            if wide:
                yield f"  joined({each.name}, {of}, {each.count});"
            names.append(of if each.count > 1 else f"{of}[0]")
        yield "  memset(v, 0, sizeof v);"
        yield f"  code = {name}_planted(mistake, {', '.join(names)}, v);"
        yield "  parted(&code, d, 1);" if wide else "  *d = code;"
        yield "  {"
        yield "    unsigned i;"
        yield "    for (i = 0; i < sizeof v / sizeof *v; i++) {"
        yield "      trace[2 * i] = (uint32_t)(uint64_t)v[i];"
        yield "      trace[2 * i + 1] = (uint32_t)((uint64_t)v[i] >> 32);"
        yield "    }"
        yield "  }"
        yield "}"
        yield from self._elements()

    def _elements(self) -> Iterator[str]:
        name, wide = self.name, self.bits == 64
        given = [
            f"const uint32_t *{each.name}" if each.is_array else f"int {each.name}" for each in self.inputs
        ]
        codes = ", ".join(f"uint32_t *{each.name}_codes" for each in self.codes)
        yield f"void {name}_element_dpi(int element, {', '.join(given)}, {codes}) {{"
        for each in self.inputs:
            if self._is_wide(each):
                yield f"  uint64_t {each.name}_words[{each.words}];"
        if wide:
            yield from (f"  uint64_t {each.name}_made[{each.count}];" for each in self.codes)
        for each in self.inputs:
            if self._is_wide(each):
                yield f"  joined({each.name}, {each.name}_words, {each.words});"
        names = [f"{each.name}_words" if self._is_wide(each) else each.name for each in self.inputs]
        made = [f"{each.name}_made" if wide else f"{each.name}_codes" for each in self.codes]
        yield f"  {name}_element(element, {', '.join(names)}, {', '.join(made)});"
        if wide:
            yield from (
                f"  parted({each.name}_made, {each.name}_codes, {each.count});" for each in self.codes
            )
        yield "}"
        yield from self._put()

    def _put(self) -> Iterator[str]:
        name, wide = self.name, self.bits == 64
        put = "int element, const uint32_t *code, const uint32_t *before, uint32_t *d"
        yield f"void {name}_put_dpi({put}) {{"
        d = self.model.arguments[-1]
        if wide:
            yield f"  uint64_t d_words[{d.words}], word;"
            yield f"  joined(before, d_words, {d.words});"
            yield "  joined(code, &word, 1);"
            yield f"  {name}_put(element, word, d_words);"
            yield f"  parted(d_words, d, {d.words});"
        else:
            yield f"  memcpy(d, before, {d.words} * sizeof *d);"
            yield f"  {name}_put(element, *code, d);"
        yield "}"


_WIDE_WORDS = """
static void joined(const uint32_t *halves, uint64_t *words, int count) {
  int i;
  for (i = 0; i < count; i++) words[i] = halves[2 * i] | (uint64_t)halves[2 * i + 1] << 32;
}

static void parted(const uint64_t *words, uint32_t *halves, int count) {
  int i;
  for (i = 0; i < count; i++) {
    halves[2 * i] = (uint32_t)words[i];
    halves[2 * i + 1] = (uint32_t)(words[i] >> 32);
  }
}
"""
