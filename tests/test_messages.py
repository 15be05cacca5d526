"""Control never depends on the words of a message: no test of a sentence by prefix, suffix or substring."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.helpers.families import each_of
from tools.house import nodes

ROOT = Path(__file__).parent.parent / "warpsim"
SENTENCES = {"message", "remark", "advice", "fix", "how", "sentence", "cause", "verdict", "said"}
KNOWN = {  # modules that parse files whose lines have several words
    "workbench/vectors/formats/testfloat.py",
    "workbench/vectors/register_traces/logs.py",
}
METHODS = {"startswith", "endswith", "find", "index", "count", "partition", "rpartition", "split"}


def mentions_sentence(node: ast.AST) -> bool:
    """Whether an expression is a message, or an attribute or a string conversion of one."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    if isinstance(node, ast.Name):
        return node.id in SENTENCES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(mentions_sentence(argument) for argument in node.args)
    return False


def has_words(node: ast.AST) -> bool:
    """Whether an expression is a string of several words: a part of a sentence, and no identifier."""
    return any(
        isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value.strip()
        for part in ast.walk(node)
    )


def matches(parts: Iterable[ast.AST]) -> Iterator[int]:
    """Yield the lines that compare a part of a message with text."""
    for node in parts:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            pattern, text = node.args[0], node.func.value
            words = node.func.attr in {"startswith", "endswith"} and has_words(pattern)
            if words or (node.func.attr in METHODS and mentions_sentence(text)):
                yield node.lineno
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            inside = node.comparators[0]
            words = isinstance(node.left, ast.Constant) and has_words(node.left)
            if mentions_sentence(inside) or (
                words and isinstance(inside, ast.Name | ast.JoinedStr | ast.Call)
            ):
                yield node.lineno


def found(source: str) -> list[int]:
    return list(matches(ast.walk(ast.parse(source))))


@each_of(path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).as_posix() not in KNOWN)
def test_control_does_not_depend_on_messages(path: Path) -> None:
    assert not list(matches(nodes(path)))


def test_matches_are_found() -> None:
    assert found('x = name.startswith("C and D")') == [1]
    assert found('x = "not advanced" in name') == [1]
    assert found('x = str(remark).startswith("D")') == [1]
    assert found('x = "permuted" in finding.message') == [1]
    assert not found('x = name.startswith("imm_") or name in ("a b", "c")')
