"""Prose and names use plain technical English: things are not persons, and "one" is a number.

Counted in docstrings, comments, string literals and names of ``warpsim/``. A room that is not ready has a
budget, which may only fall. ``python tests/test_language.py`` lists the words.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.house import nodes

ROOT = Path(__file__).parent.parent / "warpsim"
PERSONS = (
    r"who|whom|whoever|somebody|someone|nobody|anybody|anyone|everybody|everyone|tell|tells|telling|told"
)
# "one" is a number before a noun, "of" or "or more", and after these words.
QUANTIFIED = r"(?:at least|at most|exactly|only|than|by|plus|minus|zero or|to|just)"
FUNCTION_WORDS = (
    "a after again alone already also an and another are as at be because before beside but by can "
    "could did do does either else for from given had has have if in instead into is it its itself "
    "leaves less like may must near next no not on or other per points reads should since so stands "
    "takes than that the their then there they this those though till to unless until was were what "
    "when where which while whose why will with without would writes "
)
PRONOUN = (
    r"one(?: after the other| by one)|ones(?!' complement)|"
    rf"one(?!'s complement)(?='s|[.,;:!?)\]]|$| (?:{'|'.join(FUNCTION_WORDS.split())})\b)"
)
NUMERAL = re.compile(
    rf"\b{QUANTIFIED} one\b|\bone (?:or (?:more|two|several|both)|to (?:two|three|four|five))\b"
    r"|\bone[- ]to[- ]one\b",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(rf"\b(?:{PERSONS})\b|\b(?:{PRONOUN})", re.IGNORECASE)
PARTS = {"somebody", "someone", "nobody", "anybody", "whoever", "who", "tell", "tells", "told"}  # of names
ALLOWED = {  # what is meant: 1 bits, the number 1, a modifier of PTX
    ("workbench/generation/coverage/bins.py", "one"),
    ("workbench/generation/coverage/operand_classes.py", "one"),
    ("workbench/explanation/rule_steps.py", "ones"),
    ("workbench/explanation/explanation_text.py", "ones"),
    ("sums/arithmetic/kernels/llvm/floors.py", "one"),
    ("sums/arithmetic/kernels/octets.py", "one"),
    ("sums/arithmetic/kernels/llvm/vectors.py", "one"),
    ("machine/opcodes/tensor/commits.py", "one"),  # .mbarrier::arrive::one
}
BUDGETS: dict[str, int] = {}  # room -> words that are still to be replaced


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of every docstring, block of comments and string literal."""
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of every function, class, parameter and variable."""
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def found(path: Path) -> Iterator[str]:
    """Yield every forbidden word of a module, with its line."""
    name = path.relative_to(ROOT).as_posix()
    for line, text in prose(path):
        plain = NUMERAL.sub("", re.sub(r"\s+", " ", text))
        for match in FORBIDDEN.finditer(plain):
            if (name, match[0]) not in ALLOWED:
                yield f"{name}:{line}: {plain[max(match.start() - 30, 0) : match.end() + 20]!r}"
    for line, word in names(path):
        if (word == "one" or PARTS & set(word.lower().split("_"))) and (name, word) not in ALLOWED:
            yield f"{name}:{line}: the name {word}"


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


ROOMS = sorted({room_of(path) for path in ROOT.rglob("*.py")})


@pytest.mark.parametrize("room", ROOMS)
def test_things_are_no_persons_and_one_is_a_number(room: str) -> None:
    words = [word for path in sorted(ROOT.rglob("*.py")) if room_of(path) == room for word in found(path)]
    assert len(words) <= BUDGETS.get(room, 0), "\n".join(words)


def test_budgets_are_of_rooms() -> None:
    assert set(BUDGETS) <= set(ROOMS)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Return one lane, at least one.", 0),
        ("one of these, one or more, by one, a one-to-one map, one's complement", 0),
        ("the one that was read; each one", 2),
        ("those who are told", 2),
        ("other ones", 1),
    ],
)
def test_pronouns_are_told_from_numbers(text: str, count: int) -> None:
    assert len(FORBIDDEN.findall(NUMERAL.sub("", text))) == count


if __name__ == "__main__":
    for module in sorted(ROOT.rglob("*.py")):
        for word in found(module):
            print(word)  # noqa: T201
