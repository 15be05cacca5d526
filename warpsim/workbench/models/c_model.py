"""A golden model in C99: NAME.h and NAME.c of one form on one chip, freestanding and reentrant.

``NAME_dot`` computes an element of D from codes, with every intermediate; ``NAME`` a whole instruction. The
header states the evidence of the rule: a model that hides that a rule is inferred would be worse than none.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib.resources import files
from textwrap import wrap

from ...base.errors import OperandError, present
from ...isa.fragments import legal_fields
from ...isa.instruction import Instruction
from ...isa.rules import Rule
from ...sums.rule_programs.rule_templates import program_of
from .c_dot import DotProduct, Field
from .c_operands import Argument, Operands

_WIDTH = 100
# Headers that the files include, and keywords of C99 and C++11 (ISO 14882, section 2.12) that no text has.
_RESERVED = """
stdint stdio string array cstdint
alignas alignof and and_eq asm auto bitand bitor bool catch class compl constexpr decltype delete explicit
export extern false friend goto inline mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public register restrict signed template this thread_local throw true try typename union
using virtual volatile wchar_t while xor xor_eq
"""


def own_text(name: str) -> str:
    """Return a text of this package, which may lie in a zip archive."""
    return present(pkgutil.get_data(__package__, name), name).decode()


def check_name(name: str, form: Instruction, rule: Rule) -> None:
    """Raise OperandError for a name that the model gives something else."""
    names = (each.name for each in files(__package__).iterdir() if each.name.endswith(".c"))
    texts = [CModel("_", form, rule).source(), *map(own_text, names)]
    code = re.sub(r"/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)
    if name in re.findall(r"\w+", code + _RESERVED):
        raise OperandError(f"{name} is a name inside the model: choose another, such as {name}_model")


class CModel:
    """The model of a form by a rule, under a name that is an identifier of C; its dot product may be shared.

    Raises OverflowError where a sum of the rule needs more than 63 bits.
    """

    def __init__(self, name: str, form: Instruction, rule: Rule, dot: DotProduct | None = None) -> None:
        self.name, self.form, self.rule = name, form, rule
        self.dot = dot or DotProduct(name, program_of(rule.bare, form.product))
        self.operands = Operands(form, self.dot.word)
        self.arguments = tuple(self.operands.arguments())

    @property
    def prototype(self) -> str:
        """The declaration of NAME."""
        return f"void {self.name}({', '.join(each.declaration for each in self.arguments)})"

    def header(self) -> str:
        """Return NAME.h."""
        guard = f"{self.name.upper()}_H"
        return "\n".join(
            [
                *self.about(),
                f"#ifndef {guard}",
                f"#define {guard}",
                "#include <stdint.h>",
                "#ifdef __cplusplus",
                'extern "C" {',
                "#endif",
                "",
                "/* The intermediates of a dot product, in the order in which they are computed. */",
                "typedef struct {",
                *map(declared_field, self.dot.fields),
                f"}} {self.name}_trace;",
                "",
                "/* An element of D: codes in stored order, as many as stored columns; trace may be 0. */",
                f"{self.dot.prototype};",
                "",
                "/* The whole instruction.",
                *(f"   {each.name}: {each.text}" for each in self.arguments),
                "*/",
                f"{self.prototype};",
                *self.legal_lines("declared"),
                "",
                "#ifdef __cplusplus",
                "}",
                "#endif",
                "#endif",
                "",
            ]
        )

    def about(self) -> Iterator[str]:
        """Yield the comment that says what the model is of, and the evidence of its rule."""
        evidence = self.rule.evidence
        yield f"/* {self.form.mnemonic}"
        yield f"   on {self.form.target}: golden model."
        lines = wrap(f"Evidence: {evidence.label}. {evidence.detail}".replace("*/", "* /"), _WIDTH - 3)
        yield from (f"   {line}" for line in lines)
        if self.form.pattern is not None:
            yield "   Undefined metadata is read literally: NAME_legal is 0.".replace("NAME", self.name)
        if self.form.products > 1:
            yield f"   The {self.form.products} independent products are stacked, row after row."
        yield "   Written by warpsim model. */"

    def source(self) -> str:
        """Return NAME.c."""
        include = f'#include "{self.name}.h"'
        parts = [include, *self.dot.functions(), "\n".join(self.dot.body()), *self.instruction()]
        return "\n\n".join(parts) + "\n"

    def instruction(self) -> Iterator[str]:
        """Yield the functions of NAME.c beside the dot product."""
        parts = (self._element(), self._body(), self.legal_lines("defined"))
        texts = (*self.operands.functions(), *("\n".join(lines) for lines in parts))
        yield from filter(None, texts)

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments without D."""
        return self.arguments[:-1]

    @property
    def scales(self) -> str:
        """What is passed of the scales of an element, after its codes."""
        return ", scales_a, scales_b" if self.form.scale else ""

    def _element(self) -> Iterator[str]:
        """Yield the function that gathers an element's codes of A, of B, and its scales."""
        form, word = self.form, self.dot.word
        outputs = ["left", "right", *(["scales_a", "scales_b"] if form.scale else [])]
        given = [*(each.declaration for each in self.inputs if each.name != "c"), "int row", "int column"]
        yield "/* What an element of D is made of: A as it is stored, and what it meets of B. */"
        yield f"static void element({', '.join(given)},"
        yield f"                    {', '.join(f'{word} *{each}' for each in outputs)}) {{"
        yield f"  int s, k{', chunk, field, index' if form.sparse else ''};"
        yield f"  for (s = 0; s < {form.stored_k}; s++) {{"
        yield from (f"    {line}" for line in self._factors())
        yield "  }"
        if any(each.name == "selector" for each in self.arguments) and len(form.selectors) == 1:
            yield "  (void)selector;"
        yield "}"

    @property
    def rows(self) -> int:
        """The rows of D; those of independent products are stacked."""
        return self.form.shape.m * self.form.products

    def _body(self) -> Iterator[str]:
        form, word = self.form, self.dot.word
        words = form.lanes * form.held("d").words if self.operands.in_registers else 0
        yield f"{self.prototype} {{"
        yield f"  {word} left[{form.stored_k}], right[{form.stored_k}], code;"
        if form.scale:
            yield f"  {word} scales_a[{form.stored_k}], scales_b[{form.stored_k}];"
        yield f"  int row, column{', at' if words else ''};"
        if words:
            yield f"  {word} result[{words}]; /* d may be c */"
            yield f"  for (at = 0; at < {words}; at++) result[at] = 0;"
        given = ", ".join(each.name for each in self.inputs if each.name != "c")
        yield f"  for (row = 0; row < {self.rows}; row++)"
        yield f"  for (column = 0; column < {form.shape.n}; column++) {{"
        yield f"    element({given}, row, column, left, right{self.scales});"
        yield f"    code = {self.dot.name}_dot(left, right, c_code(c, row, column){self.scales}, 0);"
        yield from (f"    {line}" for line in self._store())
        yield "  }"
        if words:
            yield f"  for (at = 0; at < {words}; at++) d[at] = result[at];"
        yield "}"

    def column_of(self) -> Iterator[str]:
        """Yield what sets ``k``, the row of B that stored element ``s`` of A meets."""
        pattern = self.form.pattern
        if pattern is None:
            yield "k = s;"
            return
        half = f"s / {pattern.unit} % 2" if pattern.unit > 1 else "s % 2"
        index = "field >> 1 & 1" if pattern.kept == 1 else f"field >> 2 * ({half}) & 3"
        unit = f" * {pattern.unit} + s % {pattern.unit}" if pattern.unit > 1 else ""
        yield f"chunk = s / {pattern.stored};"
        yield f"field = (int){self.operands.field_of_chunk()};"
        yield f"index = {index};"
        yield f"k = chunk * {pattern.chunk} + index{unit};"

    def _factors(self) -> Iterator[str]:
        form = self.form
        yield "left[s] = a_code(a, row, s);"
        yield from self.column_of()
        row = f"{form.shape.k} * (row / {form.shape.m}) + k" if form.products > 1 else "k"
        yield f"right[s] = b_code(b, {row}, column);"
        if form.scale:
            chunk = f"k / {form.shape.k // form.scale_chunks}"
            yield from (f"scales_{side}[s] = {self.operands.scale_of_chunk(side, chunk)};" for side in "ab")

    def _store(self) -> Iterator[str]:
        if not self.operands.in_registers:
            yield f"d[row * {self.form.shape.n} + column] = code;"
            return
        lane, register, bit = self.operands.place("d")
        shifted = f" << ({bit})" if bit != "0" else ""
        yield f"result[({lane}) * {self.form.held('d').words} + ({register})] |= code{shifted};"

    # --- legal metadata ---

    def legal_lines(self, part: str) -> Iterator[str]:
        """Yield NAME_legal, declared or defined: whether PTX defines what metadata means."""
        pattern, form = self.form.pattern, self.form
        if pattern is None:
            return
        selector = ", int selector" if self.operands.in_registers else ""
        prototype = f"int {self.name}_legal(const uint32_t *e{selector})"
        if part == "declared":
            yield "/* Whether every field of the metadata has a meaning: 1 or 0. */"
            yield f"{prototype};"
            return
        legal = sum(1 << field for field, meant in enumerate(legal_fields(form)) if meant)
        yield f"{prototype} {{"
        yield "  int row, chunk, legal = 1;"
        yield f"  for (row = 0; row < {form.shape.m}; row++)"
        yield f"  for (chunk = 0; chunk < {form.shape.k // pattern.chunk}; chunk++)"
        yield f"    legal &= 0x{legal:x} >> {self.operands.field_of_chunk()} & 1;"
        if self.operands.in_registers and len(form.selectors) == 1:
            yield "  (void)selector;"
        yield "  return legal;"
        yield "}"


def declared_field(field: Field) -> str:
    """Return the line of an intermediate in NAME_trace."""
    count, unit = f"[{field.count}]" if field.count > 1 else "", f" /* {field.unit} */" if field.unit else ""
    return f"  {field.type} {field.name}{count};{unit}"
