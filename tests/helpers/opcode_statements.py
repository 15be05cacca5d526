"""PTX statements of the forms of opcode tables, and mutated ones; what ptxas and a table say about them.

Knows the spelling of statements and which registers hold a type. Knows no opcode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from random import Random

from tests.helpers import ptxas
from warpsim.machine.bind.value_types import bits_of
from warpsim.machine.opcodes.operation import Operation, Row

Words = tuple[str, ...]
Shape = tuple[Words, Words]  # how wide the results and the sources are: "1" to "64", "#" for a constant

DECLARATIONS = ".reg .b8 %c<9>; .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;"
LATER = " .reg .b128 %q<9>;"  # since PTX 8.3
PREFIXES = {"1": "%p", "8": "%c", "16": "%h", "32": "%r", "64": "%d", "128": "%q"}

# Words that name the instruction together with the opcode, and so stand next to it.
NAMES = frozenset({"lo", "hi", "wide", "l", "r"})
NAMED = frozenset({"mul", "mad", "madc", "mul24", "mad24", "dp2a", "shf"})


def is_type(word: str) -> bool:
    """Whether a modifier is a type, the order of which matters."""
    return word == "pred" or (word[-1:].isdigit() and word.lstrip("usbf")[:1].isdigit())


def shape_of(operation: Operation) -> Shape:
    """The widths of an operation's operands."""
    sources = (
        "#" if place in operation.constants else str(bits_of(source))
        for place, source in enumerate(operation.sources)
    )
    return tuple(str(bits_of(result)) for result in operation.results), tuple(sources)


def statement(opcode: str, words: Iterable[str], shape: Shape, results: int | None = None) -> str:
    """One line of PTX with that many results; by default all."""
    numbers = iter(range(1, 9))
    operands = ["0x1b" if width == "#" else f"{PREFIXES[width]}{next(numbers)}" for width in shape[1]]
    written = "|".join(f"{PREFIXES[width]}{place + 6}" for place, width in enumerate(shape[0][:results]))
    return f"{'.'.join((opcode, *filter(None, words)))} {', '.join((written, *operands))};"


def every_statement(rows: Iterable[Row]) -> Iterator[str]:
    """All forms of the rows; those with optional results with and without them."""
    for row in rows:
        for choice in row.forms():
            operation = row.build(*choice)
            shape = shape_of(operation)
            for omitted in range(operation.optional + 1):
                yield statement(row.opcode, choice, shape, len(operation.results) - omitted)


def spelling(words: Words, named: bool) -> tuple[Words, frozenset[str], Words]:
    """What the order of modifiers does not change: the name, the other words, the types in their order.

    ``named``: the first word is part of the instruction's name, as in mul.lo.
    """
    rest = words[named:]
    types = tuple(word for word in rest if is_type(word))
    return words[:named], frozenset(word for word in rest if not is_type(word)), types


def reordered(rows: Iterable[Row], seed: int) -> Iterator[str]:
    """Every form with its modifiers in another order, the types and the name left in theirs."""
    random = Random(seed)
    for row in rows:
        for choice in row.forms():
            words = tuple(filter(None, choice))
            named = row.opcode in NAMED and words[0] in NAMES
            rest = random.sample(words[named:], len(words) - named)
            types = iter([word for word in words[named:] if is_type(word)])
            changed = [next(types) if is_type(word) else word for word in rest]
            yield statement(row.opcode, (*words[:named], *changed), shape_of(row.build(*choice)))


def _mutations(words: Words, vocabulary: Sequence[str]) -> Iterator[Words]:
    for place in range(len(words)):
        yield (*words[:place], *words[place + 1 :])
        for word in vocabulary:
            if word not in words:
                yield (*words[:place], word, *words[place + 1 :])
    for place in range(len(words) + 1):
        for word in vocabulary:
            if word not in words:
                yield (*words[:place], word, *words[place:])


def _retyped(shape: Shape, old: Words, new: Words) -> Iterator[Shape]:
    """The shape with the widths of exchanged types exchanged."""
    types = [
        {str(bits_of(one)): str(bits_of(other))}
        for one, other in zip(filter(is_type, old), filter(is_type, new), strict=False)
    ]
    for exchange in types:
        yield (
            tuple(exchange.get(width, width) for width in shape[0]),
            tuple(exchange.get(width, width) for width in shape[1]),
        )


def mutants(rows: Sequence[Row], opcode: str, types: Sequence[str], count: int, seed: int) -> list[str]:
    """Statements ("name operands") that differ in one modifier from forms of the opcode, and are not forms.

    Each mutated name comes with the operands of every form of the opcode, and with its own ones retyped:
    if any assembles, ptxas takes the name.
    """
    forms = {
        tuple(filter(None, choice)): shape_of(row.build(*choice))
        for row in rows
        if row.opcode == opcode
        for choice in row.forms()
    }
    named = opcode in NAMED
    legal = {spelling(words, named) for words in forms}
    vocabulary = sorted({word for words in forms for word in words} | set(types))
    shapes = set(forms.values())
    found: dict[Words, set[Shape]] = {}
    for words in Random(f"{seed} {opcode}").sample(sorted(forms), min(count, len(forms))):
        for mutated in _mutations(words, vocabulary):
            if spelling(mutated, named) not in legal:
                wanted = found.setdefault(mutated, set(shapes))
                wanted.update(_retyped(forms[words], words, mutated))
    return [statement(opcode, words, shape) for words, tried in found.items() for shape in sorted(tried)]


def _judged(statements: Iterable[str], target: str, version: str) -> list[tuple[str, str | None]]:
    texts = list(dict.fromkeys(statements))
    declarations = DECLARATIONS + (LATER if version == "9.0" else "")
    verdicts = ptxas.verdicts(texts, target=target, declarations=declarations, version=version)
    return list(zip(texts, verdicts, strict=True))


def accepted(statements: Iterable[str], target: str, version: str = "9.0") -> list[str]:
    """Those that ptxas assembles."""
    return [text for text, error in _judged(statements, target, version) if error is None]


def refused(statements: Iterable[str], target: str, version: str = "9.0") -> list[tuple[str, str]]:
    """Those that ptxas does not assemble, and why."""
    return [(text, error) for text, error in _judged(statements, target, version) if error is not None]


def widths() -> Iterator[str]:
    """All integer and bit types, vectors and predicates included."""
    for stem, width in product("usb", (8, 16, 32, 64)):
        yield f"{stem}{width}"
    yield from ("b128", "u16x2", "s16x2", "pred")


INTEGER_TYPES = tuple(widths())
FLOAT_TYPES = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
