"""Random structured programs, as PTX and as what each thread computes in Python integers.

A program works on six 32-bit variables of a thread: it assigns, branches, loops as often as its data say, and
may return early. The oracle runs each thread by itself on the tree of the program; it shares nothing with the
machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random

VARIABLES = 6
MASK = (1 << 32) - 1


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)


def _clamped(value: int) -> int:
    return min(max(value, -1 << 31), (1 << 31) - 1) & MASK


_OPERATIONS = {  # PTX -> what it does to Python integers
    "add.u32": lambda a, b: (a + b) & MASK,
    "sub.u32": lambda a, b: (a - b) & MASK,
    "mul.lo.u32": lambda a, b: a * b & MASK,
    "xor.b32": lambda a, b: a ^ b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda a, b: min(_signed(a), _signed(b)) & MASK,
    "max.s32": lambda a, b: max(_signed(a), _signed(b)) & MASK,
    "mul.hi.u32": lambda a, b: a * b >> 32,
    "mul.hi.s32": lambda a, b: _signed(a) * _signed(b) >> 32 & MASK,
    "shl.b32": lambda a, b: a << min(b, 32) & MASK,
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: _signed(a) >> min(b, 32) & MASK,
    "add.sat.s32": lambda a, b: _clamped(_signed(a) + _signed(b)),
    "sub.sat.s32": lambda a, b: _clamped(_signed(a) - _signed(b)),
}
_COMPARISONS = {
    "lt.u32": lambda a, b: a < b,
    "eq.u32": lambda a, b: a == b,
    "ge.u32": lambda a, b: a >= b,
    "ne.u32": lambda a, b: a != b,
}


@dataclass(frozen=True)
class Assign:
    """``variable = left operation right``; right is a variable or, from VARIABLES on, a constant."""

    variable: int
    operation: str
    left: int
    right: int
    guard: tuple[str, int, int] | None = None  # a comparison that must hold


@dataclass(frozen=True)
class Choose:
    """if comparison: then, else: other."""

    comparison: tuple[str, int, int]
    then: tuple[Node, ...]
    other: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """As often as the lowest bits of a variable say."""

    variable: int
    bits: int
    body: tuple[Node, ...]


@dataclass(frozen=True)
class Leave:
    """Return, with the variables as they are."""


Node = Assign | Choose | Repeat | Leave


def random_program(random: Random, depth: int = 3, size: int = 5) -> tuple[Node, ...]:
    """A program of about so many statements a block, nested so deep."""
    return tuple(_node(random, depth, size) for _ in range(random.randint(1, size)))


def _node(random: Random, depth: int, size: int) -> Node:
    pick = random.random()
    variable = random.randrange(VARIABLES)
    comparison = (random.choice(list(_COMPARISONS)), variable, random.randrange(VARIABLES))
    if depth == 0 or pick < 0.5:
        right = random.choice([random.randrange(VARIABLES), VARIABLES + random.randrange(1 << 10)])
        guard = comparison if random.random() < 0.2 else None
        operation = random.choice(list(_OPERATIONS))
        return Assign(random.randrange(VARIABLES), operation, random.randrange(VARIABLES), right, guard)
    if pick < 0.8:
        other = random_program(random, depth - 1, size) if random.random() < 0.5 else ()
        return Choose(comparison, random_program(random, depth - 1, size), other)
    if pick < 0.95:
        return Repeat(variable, random.randint(1, 3), random_program(random, depth - 1, 3))
    return Leave()


# --- the oracle ------------------------------------------------------------------------------------


class _Returned(Exception):
    pass


def run_thread(program: tuple[Node, ...], variables: list[int]) -> list[int]:
    """The variables after the program."""
    values = list(variables)
    with suppress(_Returned):
        _run(program, values)
    return values


def _run(program: tuple[Node, ...], values: list[int]) -> None:
    for node in program:
        if isinstance(node, Assign):
            if node.guard is None or _holds(node.guard, values):
                right = values[node.right] if node.right < VARIABLES else node.right - VARIABLES
                values[node.variable] = _OPERATIONS[node.operation](values[node.left], right)
        elif isinstance(node, Choose):
            _run(node.then if _holds(node.comparison, values) else node.other, values)
        elif isinstance(node, Repeat):
            for _ in range(values[node.variable] & (1 << node.bits) - 1):
                _run(node.body, values)
        else:
            raise _Returned


def _holds(comparison: tuple[str, int, int], values: list[int]) -> bool:
    name, left, right = comparison
    return _COMPARISONS[name](values[left], values[right])


# --- as PTX ----------------------------------------------------------------------------------------


class _Writer:
    """Numbers labels and loop counters while a program is written."""

    def __init__(self) -> None:
        self.labels = 0
        self.counters = 0

    def label(self) -> str:
        self.labels += 1
        return f"$L{self.labels}"

    def lines(self, program: tuple[Node, ...]) -> Iterator[str]:
        for node in program:
            if isinstance(node, Assign):
                yield from self.assigned(node)
            elif isinstance(node, Choose):
                yield from self.chosen(node)
            elif isinstance(node, Repeat):
                yield from self.repeated(node)
            else:
                yield "bra $END;"

    def assigned(self, node: Assign) -> Iterator[str]:
        right = f"%v{node.right}" if node.right < VARIABLES else str(node.right - VARIABLES)
        text = f"{node.operation} %v{node.variable}, %v{node.left}, {right};"
        if node.guard is not None:
            yield compared(node.guard)
            text = f"@%p {text}"
        yield text

    def chosen(self, node: Choose) -> Iterator[str]:
        other, end = self.label(), self.label()
        yield from (compared(node.comparison), f"@!%p bra {other};")
        yield from self.lines(node.then)
        yield from (f"bra.uni {end};", f"{other}:")
        yield from self.lines(node.other)
        yield f"{end}:"

    def repeated(self, node: Repeat) -> Iterator[str]:
        begin, end, counter = self.label(), self.label(), f"%c{self.counters}"
        self.counters += 1
        yield f"and.b32 {counter}, %v{node.variable}, {(1 << node.bits) - 1};"
        yield from (f"{begin}:", f"setp.eq.u32 %p, {counter}, 0;", f"@%p bra {end};")
        yield from self.lines(node.body)
        yield from (f"sub.u32 {counter}, {counter}, 1;", f"bra {begin};", f"{end}:")


def compared(comparison: tuple[str, int, int]) -> str:
    """The setp of a comparison."""
    name, left, right = comparison
    return f"setp.{name} %p, %v{left}, %v{right};"


def as_ptx(program: tuple[Node, ...]) -> str:
    """A kernel ``run(buffer)`` that loads six words a thread, runs the program and stores them again."""
    writer = _Writer()
    body = list(writer.lines(program))
    places = range(VARIABLES)
    return "\n".join(
        [
            ".version 8.0\n.target sm_80\n.address_size 64",
            ".visible .entry run(.param .u64 buffer) {",
            f".reg .b32 %v<{VARIABLES}>, %c<{max(writer.counters, 1)}>, %t<4>;",
            ".reg .b64 %d<3>; .reg .pred %p;",
            "mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mov.u32 %t2, %ntid.x;",
            "mad.lo.u32 %t3, %t1, %t2, %t0; mul.wide.u32 %d0, %t3, 24;",
            "ld.param.u64 %d1, [buffer]; add.u64 %d2, %d1, %d0;",
            *(f"ld.global.u32 %v{place}, [%d2+{4 * place}];" for place in places),
            *body,
            "$END:",
            *(f"st.global.u32 [%d2+{4 * place}], %v{place};" for place in places),
            "ret; }",
        ]
    )
