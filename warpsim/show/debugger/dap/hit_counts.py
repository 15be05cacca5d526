"""Hit conditions of breakpoints: ``3``, ``== 3``, ``> 3``, ``>= 3``, ``% 3``."""

from __future__ import annotations

import re
from collections.abc import Callable

from ....base.errors import OperandError

_SPELLING = re.compile(r"\s*(==|>=|>|%|)\s*([0-9]{1,9})\s*")


def hit_condition(text: str) -> Callable[[int], bool]:
    """Return whether a hit, counted from 1, stops; a number alone is the first that does. Raises
    OperandError.
    """
    match = _SPELLING.fullmatch(text)
    if match is None or not int(match[2]):
        raise OperandError(f"hit condition {text}: expected a count, as in 3, == 3, > 3, >= 3 or % 3")
    sign, count = match[1], int(match[2])
    match sign:
        case "==":
            return lambda hits: hits == count
        case ">":
            return lambda hits: hits > count
        case "%":
            return lambda hits: hits % count == 0
    return lambda hits: hits >= count
