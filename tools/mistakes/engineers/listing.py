"""A list of cases, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tools.mistakes.judging import Brought, Case, Records

Make = Callable[[np.random.Generator], Brought]


class Listing:
    """Mistakes in the order in which they were written."""

    def __init__(self) -> None:
        self.cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __len__(self) -> int:
        return len(self.cases)

    def mistake(self, name: str, names: str | Records, **more: Any) -> Callable[[Make], Make]:
        """Register the function that makes what an engineer brings."""

        def register(make: Make) -> Make:
            self.cases.append(Case(name=name, make=make, names=names, **more))
            return make

        return register

    def right(self, name: str, names: str = r"as expected") -> Callable[[Make], Make]:
        """Register a kernel, or a print, in which nothing is wrong."""
        return self.mistake(name, names, right=True)
