"""The golden models of all forms of a chip as one library of C: a header, and shared dot products.

Forms of one program of a rule call one dot product. tcgen05 is left out: its form is said by a register.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.errors import OperandError
from ...isa.instruction import Instruction
from ...sums.execution.interface import instructions
from ...sums.execution.pipeline import rule_for
from ...sums.rule_programs.rule_operations import Program
from ...sums.rule_programs.rule_templates import program_of
from .c_dot import DotProduct
from .c_model import CModel, declared_field

_LEFT_OUT = re.compile(r"\.(sync|aligned|mma_async|row\.col)\b|ordered_metadata")


def function_name(form: Instruction) -> str:
    """Return the name of a form's function: its mnemonic without what all forms have."""
    ordered = "_ordered" if "ordered_metadata" in form.mnemonic else ""
    words = re.findall(r"\w+", _LEFT_OUT.sub("", form.mnemonic))
    return "_".join(words) + ordered


@dataclass(frozen=True, kw_only=True)
class Library:
    """The models of a chip: ``dots`` are shared by ``models``."""

    name: str
    target: str
    dots: tuple[DotProduct, ...]
    models: tuple[CModel, ...]

    def files(self) -> dict[str, str]:
        """Return the files by name."""
        include = f'#include "{self.name}.h"'
        found = {f"{self.name}.h": "\n".join(self._header()) + "\n"}
        for dot in self.dots:
            parts = [include, *dot.functions(), "\n".join(dot.body())]
            found[f"{dot.name}.c"] = "\n\n".join(parts) + "\n"
        found |= {
            f"{each.name}.c": "\n\n".join([include, *each.instruction()]) + "\n" for each in self.models
        }
        sources = " ".join(name for name in found if name.endswith(".c"))
        found["Makefile"] = _MAKEFILE.replace("NAME", self.name).replace("SOURCES", sources) + "\n"
        found["CMakeLists.txt"] = _CMAKE.replace("NAME", self.name).replace("SOURCES", sources) + "\n"
        return found

    def _header(self) -> Iterator[str]:
        guard = f"{self.name.upper()}_H"
        yield f"/* Golden models of {len(self.models)} forms of {self.target}."
        yield "   Written by warpsim model --all. */"
        yield f"#ifndef {guard}"
        yield f"#define {guard}"
        yield "#include <stdint.h>"
        yield "#ifdef __cplusplus"
        yield 'extern "C" {'
        yield "#endif"
        for dot in self.dots:
            yield ""
            yield "typedef struct {"
            yield from map(declared_field, dot.fields)
            yield f"}} {dot.name}_trace;"
            yield f"{dot.prototype};"
        for each in self.models:
            yield ""
            yield from each.about()
            yield f"{each.prototype};"
            yield from each.legal_lines("declared")
        yield ""
        yield "#ifdef __cplusplus"
        yield "}"
        yield "#endif"
        yield "#endif"


def library_of(target: str, name: str) -> Library:
    """Return the library of a chip. Raises IllegalInstruction, and OperandError for a chip without forms."""
    dots: dict[Program, DotProduct] = {}
    models = list[CModel]()
    for form in instructions(target):
        if form.descriptor is not None or form.operation.startswith("tcgen05"):
            continue
        rule = rule_for(form)
        program = program_of(rule.bare, form.product)
        if program not in dots:
            dots[program] = DotProduct(f"{name}_{len(dots)}", program)
        models.append(CModel(f"{name}_{function_name(form)}", form, rule, dots[program]))
    if not models:
        raise OperandError(f"{target} has no form that a library could hold: tcgen05 needs --idesc")
    if len({each.name for each in models}) < len(models):
        raise AssertionError(f"{target}: two forms have one name")
    return Library(name=name, target=target, dots=tuple(dots.values()), models=tuple(models))


_MAKEFILE = """CFLAGS ?= -O2
OBJECTS = $(patsubst %.c,%.o,SOURCES)

libNAME.a: $(OBJECTS)
\t$(AR) rcs $@ $(OBJECTS)

%.o: %.c NAME.h
\t$(CC) -std=c99 -Wall -Wextra -Wpedantic $(CFLAGS) -c -o $@ $<"""

_CMAKE = """cmake_minimum_required(VERSION 3.13)
project(NAME C)
set(CMAKE_C_STANDARD 99)
add_library(NAME STATIC SOURCES)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})"""
