"""Places in shared memory by the variables that they lie in, as C++ names them: ``full[1]``, ``tile+128``.

Compilers declare arrays and structures of C++ as bytes, so an element is named only where its size is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ptx.symbols import shown, shown_variable
from .scope import Variable

_MBARRIER = 8  # bytes


def place_name(variables: Sequence[Variable], address: int, *, mbarrier: bool = False) -> str | None:
    """Return the name of a byte of shared memory, of an ``mbarrier`` there; None where no variable has it.

    Bytes with the alignment of an mbarrier that hold mbarriers are an array of them. Of dynamic shared memory
    several variables may name the same bytes: it has no names.
    """
    for variable in variables:
        if not variable.dynamic and variable.offset <= address < variable.offset + variable.size:
            barriers = mbarrier and variable.element == 1 and variable.alignment == _MBARRIER
            size = _MBARRIER if barriers else variable.element
            return _unique(variables, variable) + _within(variable, address - variable.offset, size)
    return None


def _unique(variables: Sequence[Variable], variable: Variable) -> str:
    """Return the short name of a variable, with the function that declares it where two have that name."""
    name = shown_variable(variable.name)
    alike = sum(shown_variable(other.name) == name for other in variables)
    return name if alike == 1 else shown(variable.name)


def _within(variable: Variable, offset: int, size: int) -> str:
    """Return the element at an offset in a variable, or the offset where its elements are not known."""
    if size == 1 or variable.size <= size:
        return f"+{offset}" if offset else ""
    number, rest = divmod(offset, size)
    shape = variable.extents if size == variable.element and variable.extents else (variable.size // size,)
    index = "".join(f"[{each}]" for each in np.unravel_index(number, shape))
    return index + (f"+{rest}" if rest else "")
