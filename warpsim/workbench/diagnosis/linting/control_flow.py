"""The statements of one function in a row, and which may follow which.

A label is that of the innermost block around a branch: inline assembly repeats its own. Knows branches; does
not know predicates or what statements do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ....ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    RegisterDeclaration,
    Statement,
)

Scope = tuple[int, ...]  # numbers of the blocks around a statement, the outermost first


class ControlFlow:
    """``statements`` of a function; ``declared`` counts declarations of each register."""

    def __init__(self, kernel: Kernel) -> None:
        self.statements: list[InstructionStatement] = []
        self.declared: dict[str, int] = {}
        self._scopes: list[Scope] = []
        self._labels: dict[tuple[Scope, str], int] = {}
        self._tables: dict[str, tuple[str, ...]] = {}
        self._label, self._blocks = "", 0
        self._read(kernel.body or (), ())

    def _read(self, statements: Iterable[Statement], scope: Scope) -> None:
        for statement in statements:
            if isinstance(statement, Block):
                self._blocks += 1
                self._read(statement.statements, (*scope, self._blocks))
            elif isinstance(statement, InstructionStatement):
                self.statements.append(statement)
                self._scopes.append(scope)
            elif isinstance(statement, Label):
                self._labels[scope, statement.name] = len(self.statements)
                self._label = statement.name
            elif isinstance(statement, Directive) and statement.name == "branchtargets":
                self._tables[self._label] = tuple(name.strip() for name in statement.text.split(","))
            elif isinstance(statement, RegisterDeclaration):
                for name in statement.names:
                    self.declared[name] = self.declared.get(name, 0) + 1

    def following(self, place: int) -> Iterator[int]:
        """Yield the numbers of the statements that may come after a statement."""
        statement = self.statements[place]
        if statement.opcode == "bra":
            yield from self._targets(place, [str(operand) for operand in statement.operands or ()])
        elif statement.opcode == "brx":
            yield from self._targets(place, self._tables.get(str((statement.operands or ("",))[-1]), ()))
        ends = statement.opcode in ("bra", "brx", "ret", "exit", "trap") and statement.guard is None
        if not ends and place + 1 < len(self.statements):
            yield place + 1

    def _targets(self, place: int, names: Sequence[str]) -> Iterator[int]:
        for name in names:
            target = self._target(self._scopes[place], name)
            if target < len(self.statements):
                yield target

    def _target(self, scope: Scope, name: str) -> int:
        """Return where a label stands that is seen from a scope; behind the end for none."""
        for depth in range(len(scope), -1, -1):
            if (scope[:depth], name) in self._labels:
                return self._labels[scope[:depth], name]
        return len(self.statements)

    def behind(self, place: int) -> frozenset[int]:
        """Return the statements that may come after a statement, itself too where a loop leads back."""
        seen, left = set[int](), [*self.following(place)]
        while left:
            at = left.pop()
            if at not in seen:
                seen.add(at)
                left += self.following(at)
        return frozenset(seen)
