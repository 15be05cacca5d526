"""Statements of effect rows, right and wrong ones, and what ptxas and the machine each say about them.

Knows which operands are worth trying with an opcode. Knows no form: names come from the rows, and from
mutations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from tests.helpers import ptxas
from tests.helpers.opcode_statements import DECLARATIONS
from warpsim.base.errors import NotModelled
from warpsim.machine.opcodes.operation import Row
from warpsim.programs.launch.launching import load_text

Words = tuple[str, ...]

NOT_MODELLED = "not modelled"
MEMORY = ".shared .align 16 .b8 sm[64];"
_ATOMS = (
    "%r6, [%d1], %r2", "%d6, [%d1], %d2", "%h6, [%d1], %h2", "_, [%d1], %r2", "%r6, [%d1], 4",
    "%d6, [%d1], 4",
    "%r6, [%d1], %r2, %r3", "%d6, [%d1], %d2, %d3", "%h6, [%d1], %h2, %h3", "%r6, [%d1], %r2, %d3",
    "%d6, [%d1], %d2, %d3", "{%r1, %r2}, [%d1], {%r3, %r4}", "{%h1, %h2}, [%d1], {%h3, %h4}",
    "{%r1, %r2, %r3, _}, [%d1], {%r3, %r4, %r5, %r6}", "{%h1, %h2, %h3, %h4}, [%d1], {%h3, %h4, %h5, %h6}",
    "{%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}, [%d1+16], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}",
    "{%r1, %r2}, [%d1], {%r3, %r4}, %d3", "_, [%d1], {%r3, %r4}", "%r6, [sm], %r2", "%r6, [%r1], %r2",
)  # fmt: skip
_BARS = (
    "0", "15", "%r1", "0, 64", "%r1, %r2", "0, 33", "16", "%p6, 0, %p1", "%p6, 0, 64, !%p1", "%r6, 0, %p1",
    "%r6, %r1, %r2, %p1", "-1",
)  # fmt: skip
OPERANDS: dict[str, tuple[str, ...]] = {
    "shfl": (
        "%r6, %r1, %r2, %r3, %r4", "%r6|%p1, %r1, 1, 31, -1", "%r6|_, %r1, 1, 31, -1",
        "_|%p1, %r1, 1, 31, -1",
        "_, %r1, 1, 31, -1", "%r6, 3, %r2, %r3, %r4", "%d6, %d1, 1, 31, -1", "%r6, %r1, %r2, %r3",
        "%r6|%p1, %r1, 1, 31", "%r6, %r1, %r2",
    ),
    "vote": (
        "%p6, %p1, %r1", "%p6, !%p1, -1", "%p6, 1, -1", "%r6, %p1, %r1", "%r6, !%p1, -1", "%p6, %p1",
        "%r6, !%p1",
        "%r6|%p6, %p1, %r1",
    ),
    "match": (
        "%r6, %r1, %r2", "%r6|%p1, %r1, %r2", "%r6, %d1, -1", "%r6|%p1, %d1, -1", "_|%p1, %r1, %r2",
        "%r6|_, %r1, -1",
        "%r6, 4, %r2", "%r6, %r1", "%d6, %d1, -1",
    ),
    "redux": ("%r6, %r1, %r2", "%r6, %r1, -1", "%r6, 4, -1", "%d6, %d1, -1", "%r6, %r1"),
    "activemask": ("%r6", "%d6", "%p6"),
    "elect": ("%r6|%p1, %r1", "_|%p1, -1", "%r6, -1", "%p1, -1", "%r6|_, -1"),
    "atom": _ATOMS,
    "red": (
        *(one.split(", ", 1)[1] for one in _ATOMS if not one.startswith("{")),
        "[%d1], {%r3, %r4}", "[%d1], {%h3, %h4}", "[%d1], {%r3, %r4, %r5, %r6}",
        "[%d1], {%h3, %h4, %h5, %h6}",
        "[%d1], {%h1, %h2, %h3, %h4, %h5, %h6, %h7, %h8}", "[%d1], {%r3, %r4}, %d3",
    ),
    "bar": _BARS,
    "barrier": _BARS,
    "membar": ("", "0"),
    "fence": ("", "[%d1], 128", "[%d1], 64", "[%d1]"),
    "griddepcontrol": ("", "0"),
}  # fmt: skip


def names(row: Row, count: int, seed: int) -> list[Words]:
    """Modifiers of forms of a row: all of them, or so many."""
    forms = sorted({tuple(filter(None, choice)) for choice in row.forms()})
    return Random(seed).sample(forms, min(count, len(forms)))


def mutated(rows: Sequence[Row], count: int, seed: int) -> list[Words]:
    """Modifiers of forms with one left out, exchanged or added; what they become may be a form again."""
    random = Random(seed)
    vocabulary = sorted(
        {word for row in rows for slot in row.slots for word in slot if word} | {"u16", "v2", "sat"}
    )
    found: set[Words] = set()
    for _ in range(count):
        words = list(random.choice(names(random.choice(rows), 1, random.randrange(10**6))))
        place, act = random.randrange(len(words) + 1), random.randrange(3)
        words[place : place + (act > 0)] = [random.choice(vocabulary)] * (act < 2)
        if len(set(words)) == len(words):
            found.add(tuple(words))
    return sorted(found)


def statements(opcode: str, spelled: Iterable[Words]) -> list[str]:
    """Every name with every one of the operands."""
    return [
        f"{'.'.join((opcode, *words))} {operands};".replace(" ;", ";")
        for words in spelled
        for operands in OPERANDS[opcode]
    ]


def by_ptxas(texts: Sequence[str], target: str, version: str) -> list[str | None]:
    """Its errors, None where it takes a statement."""
    return ptxas.verdicts(texts, target=target, declarations=DECLARATIONS + MEMORY, version=version)


def by_machine(
    texts: Sequence[str], target: str, version: str, declarations: str = DECLARATIONS + MEMORY
) -> list[str | None]:
    """The machine's errors, NOT_MODELLED for what it does not model."""
    header = f".version {version}\n.target {target}\n.address_size 64\n.entry k() {{ {declarations}\n"
    module = load_text(header + "".join(f"{text}\n" for text in texts) + "}\n")
    found: list[str | None] = [None] * len(texts)
    for problem in module.problems:
        assert problem.location is not None
        line = problem.location.line - 1 - header.count("\n")
        found[line] = NOT_MODELLED if isinstance(problem, NotModelled) else problem.message
    return found
