"""``warpsim model``: write a golden model in C."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import click

from .options import FOLDER, Idesc, Json, MnemonicOrNone, NeededTarget
from .output import deliver, perform
from .verbs import Option, verb

_NAME = re.compile(r"[A-Za-z]\w{0,60}", re.ASCII)


def _name_of(text: str) -> str:
    """Return an identifier of C. Raises UsageError."""
    if not _NAME.fullmatch(text):
        raise click.UsageError(f"--name {text!r}: expected an identifier of C, such as f16_model")
    return text


@dataclass(kw_only=True)
class Request:
    """The options of the verb, and the form."""

    target: NeededTarget
    name: Annotated[str | None, Option(parse=_name_of), "Name of the functions and of the files."]
    out: Annotated[Path, FOLDER, Option(names=("-o", "--out")), "Write the files into this folder."]
    unit: Annotated[
        str | None,
        Option(metavar="PARAMETER=VALUE,..."),
        "A unit of your own: length, fraction_bits, exponent_floor, group, precision, rounding.",
    ]
    idesc: Idesc
    all_forms: Annotated[bool, Option(names=("--all",)), "Write a library of all forms of the chip."]
    force: Annotated[bool, "Replace files that are there."]
    as_json: Json
    source: str | None = field(default=None, init=False)


@verb
def model(source: Annotated[MnemonicOrNone, Option(metavar="MNEMONIC")] = None, *, request: Request) -> int:
    """Write a golden model of a form on a chip, in C99 and SystemVerilog, to link without Python.

    \b
    NAME.h, NAME.c    NAME_dot: a dot product of codes, with every intermediate
                      NAME: the instruction, on registers of a warp as warpsim.execute
                      takes them; of wgmma and tcgen05.mma on matrices of codes
    NAME.hpp          the same with std::array
    NAME_check.c      runs NAME_cases.h: corner cases with the D of the kernels
    NAME_bench.h, .c  corner cases made at run time, coverage counters, a scoreboard
                      that names the mistake of a unit; NAME_tables.h: its data
    NAME.sv           the model by DPI-C, and modules that check a unit
    NAME_unit.sv      the unit, to be replaced; NAME_tb.sv runs it; NAME_dpi.c
    Makefile          make check, make bench (Verilator 5); CMakeLists.txt: check

    The model has integers alone. The header states the evidence of the rule. The functions are reentrant:
    no allocation, no globals, no floating point (the bench has static state). --unit changes numbers of
    the chip's rule: the model is then of a unit that no chip has.
    --all writes libNAME instead, all forms of the chip, those of tcgen05 of a common shape: NAME.h, shared
    dot products, a function for each form, and a check of them all. Files that are there are kept, and the
    verb fails, without --force.
    """
    request.source = source
    return perform(_done, request.out, request)


def _done(folder: Path, request: Request) -> int:
    if request.all_forms == bool(request.source) or (request.all_forms and (request.unit or request.idesc)):
        raise click.UsageError("expected a MNEMONIC, or --all without --unit and --idesc")
    return _library(folder, request) if request.all_forms else _form(folder, request, request.source or "")


def _library(folder: Path, request: Request) -> int:
    """Write all forms of a chip."""
    from ...workbench.models.c_library import library_of
    from ...workbench.models.model_files import write_model

    target = request.target
    library = library_of(target, request.name or f"warpsim_{target}")
    files = library.files()
    write_model(folder, files, force=request.force)
    document: dict[str, Any] = {
        "target": target,
        "forms": len(library.models),
        "dot_products": len(library.dots),
        "files": len(files),
        "lines": sum(text.count("\n") for text in files.values()),
    }
    said = "{forms:,} forms, {dot_products} dot products, {files:,} files, {lines:,} lines"
    return deliver(document, lambda: [said.format(**document), f"build it: make -C {folder}"])


def _form(folder: Path, request: Request, source: str) -> int:
    """Write a form."""
    from ...sums.execution.interface import decode
    from ...sums.execution.pipeline import rule_for
    from ...workbench.models.c_model import CModel, check_name
    from ...workbench.models.model_files import cases_of, files_of, write_model
    from ...workbench.models.own_units import unit_rule

    if request.name is None:
        raise click.UsageError("missing option --name")
    form = decode(source, target=request.target, idesc=request.idesc)
    rule = rule_for(form)
    if request.unit:
        rule = unit_rule(rule, request.unit)
    check_name(request.name, form, rule)
    written = CModel(request.name, form, rule)
    files = files_of(written, cases_of(written, own_numbers=request.unit is not None))
    write_model(folder, files, force=request.force)
    document: dict[str, Any] = {
        "instruction": form.mnemonic,
        "target": form.target,
        "evidence": rule.evidence.label,
        "files": {name: text.count("\n") for name, text in files.items()},
    }
    return deliver(document, lambda: _lines(folder, document))


def _lines(folder: Path, document: dict[str, Any]) -> list[str]:
    counts = [f"{count:>7,} lines  {folder / name}" for name, count in document["files"].items()]
    return [*counts, f"evidence: {document['evidence']}", f"check it: make -C {folder} check"]
