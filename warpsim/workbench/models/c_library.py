"""The golden models of all forms of a chip as one library of C: a header, shared dot products, and a check.

Forms of one program of a rule call one dot product. Of tcgen05.mma, whose shape and types a register states,
the library has every form with each pair of types of A and D, of a common shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.errors import OperandError
from ...isa.families.tcgen05 import numerics_of, typical
from ...isa.instruction import Instruction
from ...ptx.qualifiers import on_target
from ...sums.execution.interface import instructions
from ...sums.execution.pipeline import rule_for
from ...sums.rule_programs.rule_operations import Program
from ...sums.rule_programs.rule_templates import program_of
from .c_dot import DotProduct
from .c_model import CModel, declared_field
from .library_check import check_lines

_LEFT_OUT = re.compile(r"\.(sync|aligned|mma_async|row\.col)\b|ordered_metadata")


def function_name(form: Instruction) -> str:
    """Return the name of a form's function: its mnemonic without what all forms have, and its descriptor."""
    ordered = "_ordered" if "ordered_metadata" in form.mnemonic else ""
    stated = f" {form.product} {form.scale or ''} {numerics_of(form)}" if form.descriptor is not None else ""
    words = re.findall(r"\w+", _LEFT_OUT.sub("", form.mnemonic) + stated)
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
        found[f"{self.name}_check.c"] = "\n".join(check_lines(self.name, self.models)) + "\n"
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
    """Return the library of a chip.

    Raises IllegalInstruction for an unknown chip, OperandError for a name inside the library.
    """
    dots: dict[Program, DotProduct] = {}
    models = list[CModel]()
    described = (on_target(form, target) for form in typical() if target in form.targets)
    for form in (*instructions(target), *described):
        rule = rule_for(form)
        program = program_of(rule.bare, form.product)
        if program not in dots:
            dots[program] = DotProduct(f"{name}_{len(dots)}", program)
        models.append(CModel(f"{name}_{function_name(form)}", form, rule, dots[program]))
    if len({each.name for each in models}) < len(models):
        raise AssertionError(f"{target}: two forms have one name")
    library = Library(name=name, target=target, dots=tuple(dots.values()), models=tuple(models))
    _check_name(library)
    return library


def _check_name(library: Library) -> None:
    """Raise OperandError where something else has the library's name, or a name that begins with it."""
    own = {each.name + end for each in library.dots for end in ("", "_dot", "_trace")}
    own |= {each.name + end for each in library.models for end in ("", "_legal")}
    code = [part for dot in library.dots for part in (*dot.functions(), *dot.body())]
    code += [part for model in library.models for part in model.instruction()] + ["stdint stdio main"]
    for word in sorted({word for part in code for word in re.findall(r"[A-Za-z_]\w*", part)}):
        if word not in own and (word + "_").startswith(f"{library.name}_"):
            raise OperandError(f"--name {library.name}: {word} is a name inside the library: choose another")


_MAKEFILE = """CFLAGS ?= -O2
OBJECTS = $(patsubst %.c,%.o,SOURCES)

libNAME.a: $(OBJECTS)
\t$(AR) rcs $@ $(OBJECTS)

NAME_check: NAME_check.o libNAME.a
\t$(CC) -o $@ NAME_check.o libNAME.a

.PHONY: check
check: NAME_check
\t./NAME_check

%.o: %.c NAME.h
\t$(CC) -std=c99 -Wall -Wextra -Wpedantic $(CFLAGS) -c -o $@ $<"""

_CMAKE = """cmake_minimum_required(VERSION 3.13)
project(NAME C)
set(CMAKE_C_STANDARD 99)
add_library(NAME STATIC SOURCES)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
add_executable(NAME_check NAME_check.c)
target_link_libraries(NAME_check NAME)
enable_testing()
add_test(check NAME_check)"""
