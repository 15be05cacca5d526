"""What keeps wgmma from running asynchronously: statements that ptxas has to guard, found in the text alone.

ptxas 13.0 says so itself, as C7517 (it inserts a wait), C7519 (it inserts a wgmma.fence), and C7509, C7510,
C7511, C7514 or C7515 (it serialises every wgmma of the function); the performance of the kernel is then lost.
Rules, the first three along every path of a function's control flow:

    in flight    a register that an unfinished wgmma writes is used by another statement
    end          the function ends with a wgmma in flight
    fence        a register of a wgmma was written since the last wgmma.fence
    call         the function calls what ptxas cannot put in place of the call, wherever the call stands
    places       one register is an accumulator at several places of the vectors of D

Knows names and control flow; does not know lanes, values or shared memory, nor what calls do with registers
(nothing), and leaves alone what else depends on how ptxas allocates registers (C7511: too many of them, or
accumulators that are set singly between wgmmas). PTX ISA 9.1, 9.7.15.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....base.errors import Location
from ....isa.families import multiplies_tiles
from ....ptx.constants import Immediate
from ....ptx.operands import Address, Operand, Register, Vector
from ....ptx.statements import (
    Block,
    Directive,
    InstructionStatement,
    Kernel,
    Label,
    Program,
    RegisterDeclaration,
    Statement,
    operand_names,
)

_NO_RESULT = frozenset(
    {"st", "red", "bar", "barrier", "bra", "ret", "exit", "call", "stmatrix", "wgmma", "cp"}
)
_MOST_COMMITS = 16  # groups that are distinguished


@dataclass(frozen=True, kw_only=True)
class PipelineFinding:
    """One statement that ptxas has to guard, and the wgmma that it concerns."""

    rule: str
    message: str
    location: Location
    fix: str

    def render(self) -> str:
        """Return the finding in the assembler's shape, with the caret."""
        text = f"{self.location}: warning: {self.message} [{self.rule}]\n{self.location.excerpt()}"
        return f"{text}\n{self.location}: fix: {self.fix}"


@dataclass(frozen=True, kw_only=True)
class _State:
    """What may be so before a statement: registers that a wgmma writes, by commits since then and where;
    those that others have written since the last fence, and whether there was none at all."""

    flying: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    dirty: frozenset[str] = frozenset()
    unfenced: bool = True

    def joined(self, other: _State) -> _State:
        """Return what may hold on either path."""
        flying = dict(self.flying)
        for name, known in other.flying.items():
            flying[name] = min(known, flying.get(name, known))
        unfenced = self.unfenced or other.unfenced
        return _State(flying=flying, dirty=self.dirty | other.dirty, unfenced=unfenced)


def pipeline_findings(program: Program) -> list[PipelineFinding]:
    """Return what ptxas has to guard in each function of a module, in the order of the text."""
    kernels = (
        statement
        for statement in program.statements
        if isinstance(statement, Kernel) and statement.body is not None
    )
    inlined = _inlined(program)
    return [finding for kernel in kernels for finding in _Pipeline(kernel, inlined).findings()]


def _inlined(program: Program) -> frozenset[str]:
    """Return functions that ptxas puts in place of calls: those with a body from which nothing else is
    called.

    ptxas goes further down; what calls such a function calls nothing in the end.
    """
    functions = {
        statement.name: statement
        for statement in program.statements
        if isinstance(statement, Kernel) and statement.body is not None
    }
    calls = {
        name: {_callee(call) for call in _instructions(kernel.body or ()) if call.opcode == "call"}
        for name, kernel in functions.items()
    }
    found = frozenset[str]()
    while more := {name for name, called in calls.items() if called <= found} - found:
        found |= more
    return found


def _instructions(statements: Iterable[Statement]) -> Iterator[InstructionStatement]:
    for statement in statements:
        if isinstance(statement, Block):
            yield from _instructions(statement.statements)
        elif isinstance(statement, InstructionStatement):
            yield statement


def _callee(statement: InstructionStatement) -> str:
    """Return the name of what is called: a function, or a register with its address."""
    return next((str(operand) for operand in statement.operands or () if isinstance(operand, Register)), "")


class _Pipeline:
    """The statements of one function, and what may be so before each of them."""

    def __init__(self, kernel: Kernel, inlined: frozenset[str] = frozenset()) -> None:
        self.inlined = inlined
        self.flow = ControlFlow(kernel)
        self.statements = self.flow.statements
        self.accumulators = frozenset(name for statement in self.statements for name in _results(statement))
        # a name of several registers is not followed
        self.accumulators -= {name for name, count in self.flow.declared.items() if count > 1}

    def findings(self) -> Iterator[PipelineFinding]:
        """Yield a finding for each statement and rule."""
        if not self.accumulators:
            return
        places: dict[str, tuple[int, int]] = {}
        used = False
        for place, state in sorted(self._states().items()):
            statement = self.statements[place]
            for finding in self._at(statement, state):
                used |= finding.rule == "in-flight"
                if finding.rule != "end" or not used:  # where D is read, ptxas waits there
                    yield finding
            yield from self._called(statement)
            yield from self._placed(statement, places)

    def _called(self, statement: InstructionStatement) -> Iterator[PipelineFinding]:
        """Yield a call that is not inlined: external, by address, or recursive."""
        if statement.opcode == "call" and (name := _callee(statement)) not in self.inlined:
            yield PipelineFinding(
                rule="call",
                message=f"{name} is called in a function with wgmma, and ptxas cannot put its body here: it "
                "serialises every wgmma of the function (C7510, or C7509 for functions that call themselves)",
                location=statement.location(),
                fix="leave the call out (printf and assert too), or make its body part of this function",
            )

    def _placed(
        self, statement: InstructionStatement, places: dict[str, tuple[int, int]]
    ) -> Iterator[PipelineFinding]:
        """Yield an accumulator that was another element of D earlier; ``places`` keeps the first."""
        line = statement.location().line
        for index, name in enumerate(_results(statement)):
            known, first = places.setdefault(name, (index, line))
            if known != index and name in self.accumulators:
                yield PipelineFinding(
                    rule="places",
                    message=f"{name} is element {index} of D here, but element {known} of that of the wgmma "
                    f"at line {first}: D lies in registers in a row, so that ptxas has to copy them, and "
                    "serialises every wgmma of the function (C7511)",
                    location=statement.location(),
                    fix="give each D registers of its own, or the same registers in the same order",
                )
                return

    def _states(self) -> dict[int, _State]:
        """Return what may be so before each statement that can be reached: the fixpoint along all paths."""
        states, left = {0: _State()}, [0]
        while left:
            place = left.pop()
            after = self._state_behind(place, states[place])
            for following in self.flow.following(place):
                known = states.get(following)
                joined = after if known is None else known.joined(after)
                if joined != known:
                    states[following] = joined
                    left.append(following)
        return states

    def _state_behind(self, place: int, state: _State) -> _State:
        statement = self.statements[place]
        if statement.opcode != "wgmma":
            written = self.accumulators.intersection(_defined_registers(statement))
            return replace(state, dirty=state.dirty | written) if written else state
        verb = statement.modifiers[0] if statement.modifiers else ""
        if verb == "fence":
            return replace(state, dirty=frozenset(), unfenced=False)
        if verb == "commit_group":
            older = {name: (min(age + 1, _MOST_COMMITS), at) for name, (age, at) in state.flying.items()}
            return replace(state, flying=older)
        if verb == "wait_group":
            return replace(state, flying=_still_in_flight(state.flying, statement))
        issued = dict.fromkeys(self.accumulators.intersection(_results(statement)), (0, place))
        return replace(state, flying={**state.flying, **issued})

    def _at(self, statement: InstructionStatement, state: _State) -> Iterator[PipelineFinding]:
        if multiplies_tiles(statement.opcode, statement.modifiers):
            yield from self._unfenced(statement, state)
            return
        if statement.opcode in ("ret", "exit") and state.flying:
            first = self.statements[min(at for _, at in state.flying.values())].location()
            yield PipelineFinding(
                rule="end",
                message=f"the wgmma at line {first.line} may be in flight where the function ends: ptxas "
                "inserts a wait (C7517)",
                location=statement.location(),
                fix="first wgmma.commit_group.sync.aligned; and wgmma.wait_group.sync.aligned 0;",
            )
            return
        used = [name for name in statement.names if name in state.flying]
        if used:
            name = used[0]
            first = self.statements[state.flying[name][1]].location()
            used_as = "written" if name in _defined_registers(statement) else "read"
            yield PipelineFinding(
                rule="in-flight",
                message=f"{name} is {used_as} while the wgmma at line {first.line}, whose accumulator it is, "
                "may be in flight: ptxas inserts a wait (C7517), or serialises every wgmma of the function "
                "(C7514, C7515)",
                location=statement.location(),
                fix="first wgmma.commit_group.sync.aligned; and wgmma.wait_group.sync.aligned 0;",
            )

    def _unfenced(self, statement: InstructionStatement, state: _State) -> Iterator[PipelineFinding]:
        """Yield a wgmma whose registers others have written since the last fence."""
        registers = _results(statement)
        touched = [name for name in registers if name in state.dirty]
        if not registers or not (touched or state.unfenced):
            return
        said = f"{touched[0]} was written since" if touched else "there is none"
        if state.unfenced:
            said = "on some way from the start there is none"
        yield PipelineFinding(
            rule="fence",
            message=f"this wgmma needs a wgmma.fence before it, but {said}: ptxas inserts a fence (C7519)",
            location=statement.location(),
            fix="put wgmma.fence.sync.aligned; before the first wgmma, behind what writes its registers",
        )


def _results(statement: InstructionStatement) -> tuple[str, ...]:
    """Return the accumulator registers of a wgmma.mma_async; none for other statements."""
    if not multiplies_tiles(statement.opcode, statement.modifiers) or not statement.operands:
        return ()
    first = statement.operands[0]
    elements: tuple[Operand, ...] = first.elements if isinstance(first, Vector) else ()
    return tuple(element.name for element in elements if isinstance(element, Register))


def _defined_registers(statement: InstructionStatement) -> tuple[str, ...]:
    operands = statement.operands or ()
    if statement.opcode in _NO_RESULT or not operands or isinstance(operands[0], Address):
        return ()
    return tuple(operand_names(operands[0]))


def _still_in_flight(
    flying: Mapping[str, tuple[int, int]], statement: InstructionStatement
) -> Mapping[str, tuple[int, int]]:
    """Return what may be in flight behind a wait_group; a wait for 0 leaves nothing."""
    operand = (statement.operands or (None,))[0]
    pending = operand.value if isinstance(operand, Immediate) else _MOST_COMMITS
    if not pending:
        return {}
    return {name: known for name, known in flying.items() if known[0] <= pending}


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
