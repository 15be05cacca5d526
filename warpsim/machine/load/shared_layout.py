"""Where the variables of a module lie in shared memory, and how much of it a kernel takes.

Variables of different kernels may share their places, as they do under ptxas. Knows declarations; does not
know the memory itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...ptx.statements import VariableDeclaration, instructions_of
from ..bind.functions import Function

_WORD = re.compile(r"[\w$%]+")


class SharedLayout:
    """The places given so far; ``functions`` are those of the module, as they become known."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._common: dict[str, int] = {}  # end of each variable that no kernel declares
        self._end = 0  # of all
        self._dynamic_alignment = 16

    def place(self, statement: VariableDeclaration, alignment: int, function: Function | None) -> int:
        """Return the address of a variable, which a kernel may have declared."""
        size = statement.size
        own = function if function is not None and function.kernel.kind == "entry" else None
        start = max(own.shared_end, self._common_end(own)) if own else self._end
        offset = -(-start // alignment) * alignment
        self._end = max(self._end, offset + size)
        if not size:
            self._dynamic_alignment = max(self._dynamic_alignment, alignment)
        elif own:
            own.shared_end = offset + size
        else:
            self._common[statement.name] = offset + size
        return offset

    def static_bytes(self, function: Function) -> int:
        """Return bytes that declarations take of a kernel's shared memory, up to where the dynamic part
        begins.
        """
        end = max(function.shared_end, self._common_end(function))
        return -(-end // self._dynamic_alignment) * self._dynamic_alignment

    def _common_end(self, function: Function) -> int:
        """Return the end of those shared variables that no kernel declares and this kernel may use: that its
        text names, or all where it names functions of the module.
        """
        if not self._common:
            return 0
        body = function.kernel.body
        words = set[str]() if body is None else {*_WORD.findall(body.source.text, body.start, body.end)}
        if not words.isdisjoint(self._common) or not words.isdisjoint(
            self._functions
        ):  # in comments, perhaps
            operands = (statement.operand_text for statement in instructions_of(body or ()))
            words = {word for text in operands for word in _WORD.findall(text or "")}
        calls = any(self._functions[name].kernel.body is not None for name in words & self._functions.keys())
        used = self._common if calls else words & self._common.keys()
        return max((self._common[name] for name in used), default=0)
