"""Lint of the registers of a sparse instruction: what is undefined, ignored, or probably not meant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.environment import in_default_environment
from ....base.errors import IllegalInstruction, Location, NotModelled, OperandError, WarpsimError
from ....isa.codes import codes_of
from ....isa.families import OPCODES
from ....isa.fragments import checked_registers, require_sparse, shaped
from ....isa.instruction import Instruction
from ....machine.load.program import Module
from ....programs.launch.launching import LoadedModule
from ....ptx.decode import Form, decode_statement, resolved
from ....ptx.qualifiers import PTX_VERSION
from .pipelines import PipelineFinding, pipeline_findings
from .rules import RULES, selector_rule
from .subject import Alike, Finding, Subject, alone
from .tensor_pipelines import tensor_findings

__all__ = ["Finding", "lint"]


_TILES = 4096  # that are looked at together


def lint(
    instruction: Form,
    *,
    e: npt.ArrayLike | None = None,
    selector: int = 0,
    a: npt.ArrayLike | None = None,
    b: npt.ArrayLike | None = None,
    matrix: npt.ArrayLike | None = None,
    target: str | None = None,
    version: tuple[int, int] = PTX_VERSION,
) -> tuple[Finding, ...]:
    """Return findings on the registers of a sparse instruction, by tile and in the order of the rules; empty
    if all is well.

    ``e``, ``a`` and ``b`` are registers ``(..., lanes, registers)``, of which any may be left out;
    ``matrix`` is logical A ``(..., m, k)``, and may also be given as ``a``. ``version`` is the PTX version
    of the text. Raises OperandError for a dense instruction, shapes and dtypes.
    """
    form = resolved(instruction, target)
    found = alike(form, e=e, selector=selector, a=a, b=b, matrix=matrix, version=version)
    return by_tile(found)


@in_default_environment
def alike(
    form: Instruction,
    *,
    selector: int = 0,
    version: tuple[int, int] = PTX_VERSION,
    most: int | None = None,
    cases: npt.NDArray[np.intp] | None = None,
    **operands: npt.ArrayLike | None,
) -> list[Alike]:
    """Return what ``lint`` finds in some tiles after the other, by rule: how many findings, and the first
    ``most`` of them. ``cases`` are the numbers of the tiles, which have a single axis then. Raises
    OperandError.
    """
    require_sparse(form)
    given = {name: value for name, value in operands.items() if value is not None}
    if "a" in given and np.shape(given["a"])[-2:] == (form.shape.m, form.shape.k):
        given.setdefault("matrix", given.pop("a"))
    arrays = {name: _array(form, name, value) for name, value in given.items()}
    subject = Subject(instruction=form, selector=selector, version=version, most=most)
    wrong = tuple(selector_rule(subject))
    return [*map(alone, wrong)] or [
        each
        for some in _some_tiles(subject, arrays, cases)
        for needs, rule in RULES
        if all(getattr(some, name) is not None for name in needs)
        for each in rule(some)
    ]


def joined(found: Iterable[Alike], most: int | None = None) -> list[Alike]:
    """Join what is alike: keep the first ``most`` findings, and order by the tile of the first."""
    kinds: dict[tuple[str, str, str], list[Alike]] = {}
    for each in found:
        kinds.setdefault((each.severity, each.rule, each.fix), []).append(each)
    return sorted(
        (
            replace(
                parts[0],
                count=sum(each.count for each in parts),
                findings=tuple(finding for each in parts for finding in each.findings)[:most],
            )
            for parts in kinds.values()
        ),
        key=lambda each: _tile_of(each.findings[0]),
    )


def by_tile(found: Iterable[Alike]) -> tuple[Finding, ...]:
    """Return the findings that are there, by tile and in the order in which they are given."""
    return tuple(sorted((finding for each in found for finding in each.findings), key=_tile_of))


def _tile_of(finding: Finding) -> tuple[int, ...]:
    return finding.tile or ()


def _array(form: Instruction, name: str, value: npt.ArrayLike) -> npt.NDArray[Any]:
    if name != "matrix":
        return checked_registers(value, form, name)
    return shaped(codes_of(value, form.a, "A"), (form.shape.m, form.shape.k), "A")


def _some_tiles(
    subject: Subject, arrays: dict[str, npt.NDArray[Any]], cases: npt.NDArray[np.intp] | None
) -> Iterator[Subject]:
    """Yield some thousand tiles after the other; raises OperandError where leading axes do not fit."""
    try:
        lead = np.broadcast_shapes(*(array.shape[:-2] for array in arrays.values()))
    except ValueError:
        raise OperandError("the leading axes (tiles) of the arrays do not broadcast together") from None
    full = {name: np.broadcast_to(array, (*lead, *array.shape[-2:])) for name, array in arrays.items()}
    tiles = math.prod(lead)
    for start in range(0, tiles, _TILES):
        numbers = np.arange(start, min(start + _TILES, tiles))
        places = np.unravel_index(numbers, lead) if lead else ()
        named = places if cases is None else cases[numbers]
        positions = np.array(named, np.intp).reshape(len(lead), len(numbers)).T
        some: dict[str, Any] = {
            name: array[places] if lead else array[np.newaxis] for name, array in full.items()
        }
        yield replace(subject, positions=positions, **some)


@dataclass(frozen=True, kw_only=True)
class ModuleCheck:
    """What was found in a module: ``illegal`` statements, those that are legal but ``unmodelled``, and what
    ptxas has to serialise or guard (``slow``), or what tcgen05 statements lack (``incomplete``)."""

    target: str
    version: tuple[int, int]
    entries: tuple[str, ...]
    statements: int
    illegal: tuple[WarpsimError, ...]
    unmodelled: tuple[WarpsimError, ...]
    slow: tuple[PipelineFinding, ...]
    incomplete: tuple[PipelineFinding, ...] = ()

    @property
    def warnings(self) -> tuple[PipelineFinding, ...]:
        """What is legal, and slow or wrong all the same."""
        return (*self.slow, *self.incomplete)


def check_module(loaded: LoadedModule) -> ModuleCheck:
    """Return everything that can be said about a module without running it."""
    module = loaded.module
    problems = list(_sharpened(module))
    unmodelled = tuple(problem for problem in problems if isinstance(problem, NotModelled))
    return ModuleCheck(
        target=module.target,
        version=module.version,
        entries=module.entries,
        statements=module.statements,
        illegal=tuple(problem for problem in problems if not isinstance(problem, NotModelled)),
        unmodelled=unmodelled,
        slow=tuple(pipeline_findings(module.program)),
        incomplete=tuple(tensor_findings(module.program, module.target)),
    )


def _sharpened(module: Module) -> Iterator[WarpsimError]:
    """Yield the problems of a module; a matrix instruction that is not modelled may be illegal, too."""
    matrices = dict(_illegal_matrices(module))
    for problem in module.problems:
        yield (
            matrices.get(problem.location.line, problem)
            if isinstance(problem, NotModelled) and problem.location
            else problem
        )


def _illegal_matrices(module: Module) -> Iterator[tuple[int, IllegalInstruction]]:
    module.bind()
    for record in module.code:
        statement = record.statement
        if statement.opcode not in OPCODES or (statement.modifiers[:1] not in (("mma_async",), ("sync",))):
            continue
        try:
            decode_statement(statement, module.target, module.version)
        except IllegalInstruction as error:
            place = error.location or Location("", 0)
            yield place.line, error
