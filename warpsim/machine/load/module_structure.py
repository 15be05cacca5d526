"""What a module is made of, beyond single declarations: the order of its first directives, directives that do
not stand where they are, and functions that are there twice (PTX ISA 9.1, sections 5.4, 11.1 and 11.7).

Knows statements; does not know what they do, nor a target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...base.errors import IllegalInstruction
from ...isa.architectures import ARCHITECTURES
from ...ptx.sections import files_of, labels_of
from ...ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Parameter,
    Program,
    RegisterDeclaration,
    Statement,
    VariableDeclaration,
)
from .directives import OF_BODIES
from .initial import element_bytes

_HEAD = ("version", "target", "address_size")  # in this order; .target may be repeated
_LAST_OF = {6: 5, 7: 8, 8: 8, 9: 5}  # PTX versions: the last minor of each major that ptxas 13.5 knows
_OPTIONS = ("texmode_unified", "texmode_independent", "debug")
_OLD_OPTION, _WITH_OLD_OPTION = "map_f64_to_f32", ("sm_10", "sm_11", "sm_12")
_OLD_TARGETS = (  # whose PTX ptxas 13.0 still assembles for newer chips
    *_WITH_OLD_OPTION, "sm_13", "sm_20", "sm_21", "sm_30", "sm_32", "sm_35", "sm_37",
    "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62",
)  # fmt: skip
LABELLED = ("branchtargets", "calltargets", "callprototype")
_LINES = ("loc", "loc_intermediate")
_IN_FUNCTIONS = (*LABELLED, *_LINES, "pragma", "target")
_SINCE = {"loc_intermediate": (9, 4), "nv_intermediate_source_section": (9, 4)}  # PTX versions
_CONSTANT_BYTES = 1 << 16  # of all variables of a module


def structure_problems(program: Program) -> Iterator[IllegalInstruction]:
    """Yield what ptxas refuses of the parts of a module."""
    yield from _head(program.statements)
    yield from _options(program.statements)
    yield from _constants(program.statements)
    yield from _section_labels(program.statements)
    yield from _section_files(program.statements)
    known: dict[str, Statement] = {}
    for statement in program.statements:
        if isinstance(statement, Directive):
            yield from _directive(statement, known)
        elif isinstance(statement, Block | InstructionStatement):
            yield _problem(statement, "statements stand in functions, not in modules")
        elif isinstance(statement, VariableDeclaration):
            if isinstance(known.get(statement.name), Kernel):
                yield _problem(statement, f"{statement.name} is a function, too")
            known.setdefault(statement.name, statement)
        elif isinstance(statement, Kernel):
            yield from _function(statement, known.get(statement.name))
            if statement.body is not None or statement.name not in known:
                known[statement.name] = statement


def unknown_version(version: tuple[int, int]) -> str:
    """Return what is wrong with a version that there is not, or not yet; "" for nothing."""
    major, minor = version
    last = max(_LAST_OF)
    if (major in _LAST_OF and minor > _LAST_OF[major]) or major > last:
        return f"there is no PTX {major}.{minor} known here: the newest is {last}.{_LAST_OF[last]}"
    return ""


def _head(statements: Sequence[Statement]) -> Iterator[IllegalInstruction]:
    """Yield directives of the head that stand elsewhere, or twice."""
    place = 0
    for number, statement in enumerate(statements):
        if not isinstance(statement, Directive) or statement.name not in _HEAD:
            place = len(_HEAD)
            continue
        wanted = _HEAD.index(statement.name)
        again = place == wanted + 1 and statement.name == "target"
        if (wanted == 0) != (number == 0) or (wanted < place and not again):
            yield _problem(
                statement, "a module begins with .version, .target and .address_size, in this order"
            )
        place = max(place, wanted + 1)


def _options(statements: Sequence[Statement]) -> Iterator[IllegalInstruction]:
    """Yield targets with options that there are not, or not together."""
    for statement in statements:
        if isinstance(statement, Directive) and statement.name == "target":
            target, *options = [word.strip() for word in statement.text.split(",")]
            if target not in ARCHITECTURES and target not in _OLD_TARGETS:
                yield _problem(statement, f"unknown target {target!r}")
            known = (*_OPTIONS, _OLD_OPTION) if target in _WITH_OLD_OPTION else _OPTIONS
            unknown = [word for word in options if word not in known]
            if unknown:
                yield _problem(
                    statement, f"unknown option {unknown[0]!r} of .target: known are {', '.join(_OPTIONS)}"
                )
            if set(_OPTIONS[:2]) <= set(options):
                yield _problem(statement, f"{_OPTIONS[0]} and {_OPTIONS[1]} do not go together")
        elif isinstance(statement, Directive) and statement.name == "address_size" and not _wide(statement):
            yield _problem(statement, "addresses of 32 bits are not supported: ptxas takes them no more")


def _wide(statement: Directive) -> bool:
    return int(statement.text.rstrip("U"), 0) == 64


def _constants(statements: Sequence[Statement]) -> Iterator[IllegalInstruction]:
    variables = [
        each for each in statements if isinstance(each, VariableDeclaration) and each.space == "const"
    ]
    size = sum(each.size for each in variables)
    if size > _CONSTANT_BYTES and all(each.size <= _CONSTANT_BYTES for each in variables):
        yield _problem(variables[-1], f"{size} bytes in .const: a module has at most {_CONSTANT_BYTES}")


def _section_labels(statements: Sequence[Statement]) -> Iterator[IllegalInstruction]:
    """Yield sections with a label that a section has already."""
    known = set[str]()
    for statement in statements:
        if isinstance(statement, Directive) and statement.name == "section":
            for label in labels_of(statement.text):
                if label in known:
                    yield _problem(statement, f"the label {label} stands in sections twice")
                known.add(label)


def _section_files(statements: Sequence[Statement]) -> Iterator[IllegalInstruction]:
    """Yield sections of intermediate source with a file that no .file before them names."""
    known = set[int]()
    for statement in statements:
        if isinstance(statement, Directive) and statement.name == "file":
            known.add(int(statement.text.split()[0]))
        elif isinstance(statement, Directive) and statement.name == "nv_intermediate_source_section":
            for number in files_of(statement.text):
                if number not in known:
                    yield _problem(
                        statement, f".sourceFileName: {number}: no .file before it has this number"
                    )


def too_early(statement: Directive, version: tuple[int, int]) -> Iterator[IllegalInstruction]:
    """Yield a directive that the PTX version does not have."""
    since = _SINCE.get(statement.name, (0, 0))
    if version < since:
        yield _problem(statement, f".{statement.name} needs PTX {'.'.join(map(str, since))}")


def _directive(statement: Directive, known: dict[str, Statement]) -> Iterator[IllegalInstruction]:
    """Yield what is wrong with a directive of a module."""
    if statement.name in LABELLED or statement.name in _LINES:
        yield _problem(statement, f".{statement.name} stands in functions, not in modules")
    elif statement.name == "pragma" and OF_BODIES.search(statement.text):
        yield _problem(statement, f"the pragma {statement.text.strip()} stands in functions, not in modules")
    elif statement.name == "alias":
        yield from _alias(statement, known)


def _alias(statement: Directive, known: dict[str, Statement]) -> Iterator[IllegalInstruction]:
    """Yield what is wrong with an alias, which is known by its directive from then on."""
    name, aliased = (word.strip() for word in statement.text.split(","))
    alias, function = known.get(name), known.get(aliased)
    if isinstance(alias, Directive):
        yield _problem(statement, f"{name} is an alias already")
    elif not isinstance(alias, Kernel) or not isinstance(function, Kernel) or alias.body is not None:
        yield _problem(statement, ".alias takes a function that is declared without a body, and another")
    elif function.kind == "entry" or function.linkage in ("weak", "extern"):
        yield _problem(statement, f"{aliased} has no alias: it is .{function.linkage or function.kind}")
    elif _prototype(alias, aligned=True) != _prototype(function, aligned=True):
        yield _problem(
            statement, f"{name} has other parameters than {aliased}, or only one function is .noreturn"
        )
    else:
        known[name] = statement


def _function(kernel: Kernel, known: Statement | None) -> Iterator[IllegalInstruction]:
    """Yield what is wrong with a function beside what its name was declared as before."""
    if kernel.linkage == "common":
        yield _problem(kernel, f"{kernel.name}: .common is for variables")
    if kernel.linkage == "extern" and kernel.body is not None:
        yield _problem(kernel, f"{kernel.name} is .extern and has a body")
    if isinstance(known, VariableDeclaration):
        yield _problem(kernel, f"{kernel.name} is a variable, too")
    if isinstance(known, Directive) and kernel.body is not None:
        yield _problem(kernel, f"{kernel.name} is an alias, too")
    if not isinstance(known, Kernel):
        return
    if known.body is not None and kernel.body is not None:
        yield _problem(kernel, f"{kernel.name} has two bodies")
    elif _prototype(known) != _prototype(kernel):
        yield _problem(
            kernel, f"{kernel.name} is declared otherwise before: other parameters, or another kind"
        )
    elif kernel.linkage != known.linkage and (kernel.linkage or known.linkage == "extern"):
        yield _problem(kernel, f"{kernel.name} is declared with another linkage before")


def _prototype(kernel: Kernel, aligned: bool = False) -> object:
    """Return what two declarations of a function share, with the alignments that it leaves out."""
    given = [[_kind(each, aligned) for each in items] for items in (kernel.results, kernel.parameters)]
    return kernel.kind, "noreturn" in kernel.tuning, given


def _kind(parameter: Parameter, aligned: bool) -> object:
    if isinstance(parameter, RegisterDeclaration):
        return parameter.type, parameter.vector
    align = parameter.align or (element_bytes(parameter.type) if aligned else None)
    return parameter.space, parameter.type, parameter.vector, parameter.extents, align


def misplaced(statement: Statement) -> IllegalInstruction | None:
    """Return what is wrong with a directive or function in a function, None for nothing."""
    if isinstance(statement, Directive) and statement.name not in _IN_FUNCTIONS:
        return _problem(statement, f".{statement.name} stands in modules, not in functions")
    if isinstance(statement, Kernel) and (statement.kind == "entry" or statement.body is not None):
        return _problem(statement, f"{statement.name}: functions do not lie in each other")
    return None


def _problem(statement: Statement, message: str) -> IllegalInstruction:
    return IllegalInstruction(message, statement.location())
