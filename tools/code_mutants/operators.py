"""Slips as changes of one place in one line of Python: what a tired developer writes instead.

Each operator takes a node of the syntax tree and gives the texts that could stand in its place, with a few
words on what was changed. Knows nothing of warpsim but pairs of names that are easily taken for each other.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Slip = tuple[ast.AST, str, str]  # the node whose text is replaced, the new text, what was changed

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_OPERATIONS: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("//",),
    ast.FloorDiv: ("%", "*"),
    ast.Mod: ("//",),
    ast.LShift: (">>",),
    ast.RShift: ("<<",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&", "^"),
    ast.BitXor: ("|",),
}
_ORDERED = (ast.Sub, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
_TWINS = (
    ("row", "column"),
    ("rows", "columns"),
    ("m", "n"),
    ("n", "k"),
    ("a", "b"),
    ("c", "d"),
    ("scale_a", "scale_b"),
    ("lane", "value"),
    ("first", "last"),
    ("first", "second"),
    ("low", "high"),
    ("lower", "upper"),
    ("start", "end"),
    ("left", "right"),
    ("old", "new"),
    ("source", "target"),
    ("read", "write"),
    ("reads", "writes"),
    ("leading", "stride"),
    ("width", "pitch"),
    ("min", "max"),
    ("any", "all"),
    ("signed", "unsigned"),
    ("before", "after"),
    ("warp", "lane"),
    ("bits", "bytes"),
)
_TWIN = {item: other for pair in _TWINS for item, other in (pair, pair[::-1])}


def slips(tree: ast.AST) -> Iterator[Slip]:
    """Yield every slip that some operator proposes, outside of annotations, texts and docstrings."""
    names = _names_of_functions(tree)
    for node in _code(tree):
        for operator in OPERATORS:
            yield from operator(node)
        yield from _twin(node, names)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes that are executed and no mere text."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_comment", "decorator_list", "msg"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr) or not isinstance(child, ast.AST) or _is_type(child):
                continue
            yield child
            yield from _code(child)


def _is_type(node: ast.AST) -> bool:
    """Return an alias of a type, an import, or what only type checkers and assertions of our own read."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        return isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert))


def _comparison(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, new = ast.unparse(node.left), ast.unparse(node.comparators[0]), _COMPARISONS
        yield node, f"{left} {new[type(node.ops[0])]} {right}", "comparison"


def _operation(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.BinOp) and not (_no_number(node.left) or _no_number(node.right)):
        for sign in _OPERATIONS.get(type(node.op), ()):
            yield node, _joined(node.left, sign, node.right, node), "operation"
        sides = (node.left, node.right)
        if type(node.op) in _ORDERED and not any(isinstance(side, ast.Constant) for side in sides):
            yield node, _joined(node.right, _sign(node), node.left, node), "operands swapped"


def _sign(node: ast.BinOp) -> str:
    text = ast.unparse(ast.BinOp(left=ast.Name("x"), op=node.op, right=ast.Name("y")))
    return text[2:-2]


def _joined(left: ast.expr, sign: str, right: ast.expr, node: ast.BinOp) -> str:
    """Return both sides in brackets where they are operations themselves."""
    sides = [
        f"({ast.unparse(side)})"
        if isinstance(side, (ast.BinOp, ast.IfExp, ast.Compare))
        else ast.unparse(side)
        for side in (left, right)
    ]
    return f"({sides[0]} {sign} {sides[1]})"


def _no_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (int, float)) or node.value is None
    return isinstance(node, (ast.JoinedStr, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp))


def _number(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield node, str(node.value + 1), "number"
        if node.value > 1:
            yield node, str(node.value - 1), "number"
            yield node, str(node.value * 2), "number"


def _flag(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value), "flag"


def _condition(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.BoolOp):
        word = "or" if isinstance(node.op, ast.And) else "and"
        yield node, f"({f' {word} '.join(_bracketed(value) for value in node.values)})", "and/or"
        same = "and" if word == "or" else "or"
        for place in range(len(node.values)):
            rest = [_bracketed(value) for number, value in enumerate(node.values) if number != place]
            yield node, f"({f' {same} '.join(rest)})", "condition dropped"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
        yield node, ast.unparse(node.operand), "negation dropped"


def _bracketed(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, (ast.BoolOp, ast.IfExp)) else text


def _choice(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.IfExp):
        test, body, other = map(ast.unparse, (node.test, node.body, node.orelse))
        yield node, f"({other} if {test} else {body})", "choice swapped"


def _call(node: ast.AST) -> Iterator[Slip]:
    """Yield the first two arguments, where both are names: ``f(b, a)``."""
    if isinstance(node, ast.Call) and len(node.args) >= 2 and not node.keywords:
        function, arguments = ast.unparse(node.func), [ast.unparse(argument) for argument in node.args]
        named = all(
            isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)) for argument in node.args[:2]
        )
        if named and function not in ("max", "min", "isinstance"):
            yield (
                node,
                f"{function}({', '.join([arguments[1], arguments[0], *arguments[2:]])})",
                "arguments swapped",
            )


def _statement(node: ast.AST) -> Iterator[Slip]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass", "statement dropped"
    if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATIONS:
        target, value = ast.unparse(node.target), ast.unparse(node.value)
        yield node, f"{target} = {value}", "accumulation dropped"
    if isinstance(node, ast.Continue):
        yield node, "break", "loop left"
    if isinstance(node, ast.Raise):
        yield node, "pass", "refusal dropped"


def _twin(node: ast.AST, names: dict[ast.AST, set[str]]) -> Iterator[Slip]:
    """Yield the other one of a pair of names, if the function knows it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node in names:
        other = _TWIN.get(node.id)
        if other in names[node]:
            yield node, str(other), "name"
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in _TWIN:
        yield node, f"{ast.unparse(node.value)}.{_TWIN[node.attr]}", "name"


def _names_of_functions(tree: ast.AST) -> dict[ast.AST, set[str]]:
    """For every node of a function, the names that occur in it."""
    found: dict[ast.AST, set[str]] = {}
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            inside = list(ast.walk(function))
            names = {item.id for item in inside if isinstance(item, ast.Name)}
            names |= {item.arg for item in inside if isinstance(item, ast.arg)}
            for node in inside:
                found.setdefault(node, set()).update(names)
    return found


OPERATORS: tuple[Callable[[ast.AST], Iterator[Slip]], ...] = (
    _comparison,
    _operation,
    _number,
    _flag,
    _condition,
    _choice,
    _call,
    _statement,
)
