"""Arrays that a reference creates, as np.zeros does: shadows of constants, so that elements can be assigned.

NumPy asks no argument when an array is created. So, while a reference runs, the names by which its module
knows NumPy lead to a stand-in, which answers these functions, and leaves all others to NumPy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .shadow_arrays import Trace

_CREATING = tuple(each.__name__ for each in (np.zeros, np.ones, np.empty, np.full))


class _NumPy:
    """NumPy, where arrays of numbers are created as shadows; those of truth values are plain."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if name not in _CREATING:
            return found

        def create(*args: Any, **more: Any) -> Any:
            made = np.zeros(*args, **more) if name == "empty" else found(*args, **more)
            return self._trace.lift(made) if made.dtype.kind in "iuf" else made

        return create


@contextmanager
def created_in(reference: Callable[..., Any], trace: Trace) -> Iterator[None]:
    """Let what the module of a reference creates be shadows."""
    names: dict[str, Any] = getattr(inspect.unwrap(reference), "__globals__", {})
    own = [name for name, value in names.items() if value is np]
    names.update(dict.fromkeys(own, _NumPy(trace)))
    try:
        yield
    finally:
        names.update(dict.fromkeys(own, np))
