"""Errors about a module as a whole: a kernel that is not there, and many problems as one error.

Knows errors; does not know what makes a statement a problem.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import IllegalInstruction, NotModelled, OperandError, WarpsimError


class NoSuchKernel(OperandError, KeyError):
    """A module has no kernel of that name; the message lists those it has."""


class _Several(WarpsimError):
    """All problems of a kernel; shown in their order, placed at the first."""

    def __init__(self, problems: Sequence[WarpsimError]) -> None:
        first = problems[0]
        more = len(problems) - 1
        super().__init__(f"{first.message} (and {more} more problem{'s'[: more != 1]})", first.location)
        self.problems = tuple(problems)

    def render(self) -> str:
        """Return every problem with its place and caret."""
        return "\n".join(problem.render() for problem in self.problems)


class IllegalKernel(_Several, IllegalInstruction):
    """A kernel with several problems, not all of them legal PTX."""


class UnmodelledKernel(_Several, NotModelled):
    """A kernel with several problems, each of them legal PTX."""


def joined(problems: Sequence[WarpsimError]) -> WarpsimError:
    """One error for them all: the problem itself where it is the only one."""
    if len(problems) == 1:
        return problems[0]
    legal = all(isinstance(problem, NotModelled) for problem in problems)
    return UnmodelledKernel(problems) if legal else IllegalKernel(problems)
