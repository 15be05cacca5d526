"""A whole module looked at without running it: what is not legal, what is not modelled, what is slow.

Legality is that of a target: of the text's own, or of another that is asked for. Does not know arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....base.errors import IllegalInstruction, Location, NotModelled, WarpsimError
from ....isa.families import OPCODES
from ....machine.load.program import Module
from ....programs.launch.launching import LoadedModule
from ....ptx.decode import decode_statement
from .pipelines import PipelineFinding, pipeline_findings
from .tensor_pipelines import tensor_findings


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
    """Yield matrix instructions that the target does not have, by line."""
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
