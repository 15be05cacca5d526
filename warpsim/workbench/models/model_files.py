"""The folder of a golden model: header, source, a wrapper for C++, cases with their D, what runs them.

The cases are corner cases of the form; their D is that of the kernels, or of the reference where a unit has
numbers of its own, never of the model itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.environment import in_default_environment
from ...base.errors import TraceError
from ...base.files.archives import write_content
from ...base.files.replacing import together
from ...isa.fragments import indices_of, legal_fields, registers_of, signed
from ...isa.instruction import Instruction
from ...isa.products import Operands
from ...isa.sparsity import stored_columns
from ...sums.arithmetic import numerics, reference
from ..generation.coverage.vector_coverage import gathered
from ..generation.generate import generate_vectors
from ..vectors.sets import Part
from .c_bench import CBench
from .c_model import CModel
from .corner_tiles import tiles_of
from .sv_model import SvModel

Array = npt.NDArray[Any]
_WORDS = 100_000  # of all cases, about
_CASES = 64


@dataclass(frozen=True, kw_only=True)
class Case:
    """The arguments of one call by name, without D, and the D that the call has to write."""

    arguments: Mapping[str, Array | int]
    d: Array


@in_default_environment
def cases_of(model: CModel, *, own_numbers: bool = False, seed: int = 0) -> list[Case]:
    """Return corner cases of a model; ``own_numbers`` says that its rule is that of no chip."""
    form = model.form
    words = sum(int(np.prod(form.matrix_shape(each))) for each in "abcd")
    count = min(_CASES, max(2, _WORDS // words))
    vectors = generate_vectors(form, count=count, seed=seed)
    compute = reference.compute if own_numbers else numerics.compute
    found, rng = list[Case](), np.random.default_rng(seed)
    for part in vectors.inputs():
        operands = gathered(form, part)
        if model.operands.in_registers:
            codes = compute(operands, model.rule)
            codes = codes.reshape(-1, form.products, *codes.shape[1:]) if form.products > 1 else codes
            found += _of_registers(part, registers_of(codes, form, "d"))
        else:
            found += _of_matrices(form, operands, lambda given: compute(given, model.rule), rng)
    return found


def _of_registers(part: Part, d: Array) -> Iterator[Case]:
    """Yield the cases of a part of a vector set."""
    for at, words in enumerate(d):
        given = {
            name: value[at] if isinstance(value, np.ndarray) else value
            for name, value in part.arguments.items()
            if name != "undefined"
        }
        yield Case(arguments=given, d=words)


def _of_matrices(
    form: Instruction, drawn: Operands, compute: Callable[[Operands], Array], rng: np.random.Generator
) -> Iterator[Case]:
    """Yield cases with codes that a vector set has; metadata is drawn again, as fields."""
    given: dict[str, Array] = {name: getattr(drawn, name) for name in "abc"}
    if form.pattern is not None:
        legal = np.flatnonzero(legal_fields(form)).astype(np.uint8)
        chunks = (len(drawn.c), form.shape.m, form.shape.k // form.pattern.chunk)
        given["e"] = rng.choice(legal, chunks)
    for name in ("scale_a", "scale_b") if form.scale else ():
        given[name] = getattr(drawn, name)
    d = of_matrices(form, given, compute)
    for at, codes in enumerate(d):
        yield Case(arguments={name: array[at] for name, array in given.items()}, d=codes)


def of_matrices(form: Instruction, given: Mapping[str, Array], compute: Callable[[Operands], Array]) -> Array:
    """Return D of a batch of the arguments of a model on matrices: codes, fields of metadata, scales."""
    codes = {name: given[name].astype(form.format(name).code_dtype) for name in "abc"}
    a, b = (signed(codes[name], form.format(name), form.product.negated["ab".index(name)]) for name in "ab")
    columns = None
    if form.pattern is not None:
        columns = stored_columns(indices_of(form, given["e"].astype(np.uint8)), form.pattern)
    scales = {name: given[name].astype(np.uint8) for name in ("scale_a", "scale_b") if form.scale}
    return compute(Operands(product=form.product, a=a, b=b, c=codes["c"], columns=columns, **scales))


# --- texts -----------------------------------------------------------------------------------------


def cases_lines(model: CModel, cases: Sequence[Case]) -> Iterator[str]:
    """Yield NAME_cases.h: an array for each argument, the cases first."""
    yield f"/* Cases of {model.name}, with the D that warpsim computes. */"
    yield f"#define CASES {len(cases)}"
    for each in model.arguments:
        if each.is_array:
            rows = [case.d if each.name == "d" else case.arguments[each.name] for case in cases]
            words = [np.asarray(row).reshape(-1) for row in rows]
            yield f"static const {each.type} case_{each.name}[CASES][{len(words[0])}] = {{"
            yield from (f"{{{','.join(f'0x{word:x}' for word in row.tolist())}}}," for row in words)
        else:
            yield f"static const int case_{each.name}[CASES] = {{"
            yield ", ".join(str(case.arguments[each.name]) for case in cases)
        yield "};"


def check_lines(model: CModel, cases: Sequence[Case]) -> Iterator[str]:
    """Yield NAME_check.c: a program that runs the cases, and prints the words that differ."""
    word, count = model.dot.word, cases[0].d.size
    columns = cases[0].d.shape[-1]
    row = "lane" if model.operands.in_registers else "row"
    column = "register" if model.operands.in_registers else "column"
    yield "#include <stdio.h>"
    yield f'#include "{model.name}.h"'
    yield f'#include "{model.name}_cases.h"'
    yield ""
    yield "int main(void) {"
    yield f"  static {word} d[{count}];"
    yield "  int at, word, wrong = 0;"
    yield "  for (at = 0; at < CASES; at++) {"
    names = [f"case_{each.name}[at]" for each in model.arguments[:-1]]
    yield f"    {model.name}({', '.join([*names, 'd'])});"
    yield f"    for (word = 0; word < {count}; word++) {{"
    yield "      if (d[word] == case_d[at][word]) continue;"
    yield "      if (++wrong > 20) continue;"
    place = f"word / {columns}, word % {columns}"
    values = "(unsigned long long)case_d[at][word], (unsigned long long)d[word]"
    yield f'      printf("case %d, {row} %d, {column} %d: expected %llx, got %llx\\n", at, {place},'
    yield f"             {values});"
    yield "    }"
    yield "  }"
    yield f'  printf("{model.name}: %d cases, %d of %d words wrong\\n", CASES, wrong, CASES * {count});'
    yield "  return wrong != 0;"
    yield "}"


def wrapper_lines(model: CModel) -> Iterator[str]:
    """Yield NAME.hpp: the same call with std::array, for Verilator and SystemC."""
    name, word = model.name, model.dot.word
    yield f"/* {name} for C++: arrays of known sizes, D by value. */"
    yield f"#ifndef {name.upper()}_HPP"
    yield f"#define {name.upper()}_HPP"
    yield "#include <array>"
    yield "#include <cstdint>"
    yield f'#include "{name}.h"'
    yield ""
    yield f"namespace {name}_model {{"
    given, passed = list[str](), list[str]()
    for each in model.arguments[:-1]:
        if each.is_array:
            yield f"using {each.name}_t = std::array<{each.type}, {each.words}>;"
            given.append(f"const {each.name}_t &{each.name}")
            passed.append(f"{each.name}.data()")
        else:
            given.append(each.declaration)
            passed.append(each.name)
    yield f"using d_t = std::array<{word}, {model.arguments[-1].words}>;"
    yield f"inline d_t execute({', '.join(given)}) {{"
    yield "  d_t d{};"
    yield f"  {name}({', '.join([*passed, 'd.data()'])});"
    yield "  return d;"
    yield "}"
    yield f"}}  // namespace {name}_model"
    yield "#endif"


_MAKEFILE = """CFLAGS ?= -O2
VERILATOR ?= verilator
ARGUMENTS ?=
NAME_check: NAME_check.c NAME.c NAME.h NAME_cases.h
\t$(CC) -std=c99 -Wall -Wextra -Wpedantic $(CFLAGS) -o $@ NAME_check.c NAME.c

obj_dir/NAME_tb: NAME.sv NAME_unit.sv NAME_tb.sv NAME_dpi.c NAME_bench.c NAME_bench.h NAME_tables.h \\
\t  NAME.c NAME.h
\t$(VERILATOR) --binary --timing -Wno-fatal -Wno-lint --top-module NAME_tb -CFLAGS -I.. -o NAME_tb \\
\t  NAME.sv NAME_unit.sv NAME_tb.sv NAME_dpi.c NAME_bench.c

.PHONY: check bench
check: NAME_check
\t./NAME_check
bench: obj_dir/NAME_tb
\t./obj_dir/NAME_tb $(ARGUMENTS)"""

_CMAKE = """cmake_minimum_required(VERSION 3.13)
project(NAME C)
set(CMAKE_C_STANDARD 99)
add_library(NAME STATIC NAME.c)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
add_executable(NAME_check NAME_check.c)
target_link_libraries(NAME_check NAME)
enable_testing()
add_test(NAME check COMMAND NAME_check)"""


def files_of(model: CModel, cases: Sequence[Case]) -> dict[str, str]:
    """Return the files of the folder, by name."""
    name, bench = model.name, CBench(model, tiles_of(model.form))
    return {
        f"{name}.h": model.header(),
        f"{name}.c": model.source(),
        f"{name}.hpp": _text(wrapper_lines(model)),
        f"{name}_cases.h": _text(cases_lines(model, cases)),
        f"{name}_check.c": _text(check_lines(model, cases)),
        f"{name}_bench.h": bench.header(),
        f"{name}_bench.c": bench.source(),
        f"{name}_tables.h": bench.data(),
        **SvModel(model, bench).files(),
        "Makefile": _MAKEFILE.replace("NAME", name) + "\n",
        "CMakeLists.txt": _CMAKE.replace("NAME", name).replace(f"add_test({name} ", "add_test(NAME ") + "\n",
    }


def write_model(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write files into a folder that is made where it is missing: all of them, or none.

    Raises TraceError where a file is there and ``force`` is not given, and OSError.
    """
    there = [name for name in files if (folder / name).exists()]
    if there and not force:
        raise TraceError(f"{folder}: {there[0]} is there already; --force replaces it")
    folder.mkdir(parents=True, exist_ok=True)
    with together():
        for name, text in files.items():
            write_content(folder / name, text.encode())


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"
