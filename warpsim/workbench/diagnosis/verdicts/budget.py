"""The work of one diagnosis: executed statements, counted, so that an answer is the same on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

STATEMENTS = 400_000  # half a minute at most of launches that fill a wave, with matrix instructions
_SHARE = 4  # an execution may run that part of what its search has left
_TIMES = 4  # or that many times the statements of the launch itself


class Budget:
    """Statements that the executions of a diagnosis may run together, without the launch itself.

    A statement counts once for all lanes of a wave that execute it together. ``whole`` are the statements of
    the launch, which each further execution is taken to need before it begins.
    """

    def __init__(self, statements: int = STATEMENTS) -> None:
        self.statements = self.left = statements
        self.whole = 0
        self._kept, self._search = 0, "further executions"
        self._untried: dict[str, None] = {}  # searches, in order
        self._unended = Counter[str]()  # executions, by search

    @contextmanager
    def search(self, name: str) -> Iterator[None]:
        """Leave half of the statements to later searches, while this search executes."""
        outer = self._kept, self._search
        self._kept, self._search = self._kept + (self.left - self._kept) // 2, name
        try:
            yield
        finally:
            self._kept, self._search = outer

    def allows(self) -> bool:
        """Return whether the search may execute once more; remember the search where it may not."""
        if self.left - self._kept >= max(self.whole, 1):
            return True
        self._untried[self._search] = None
        return False

    @property
    def most(self) -> int:
        """The statements that the next execution may run: a mistake undone can make a loop endless."""
        return max((self.left - self._kept) // _SHARE, _TIMES * self.whole, 1)

    def spend(self, statements: int) -> None:
        """Count an execution; the first is the launch itself."""
        if self.whole:
            self.left -= statements
        else:
            self.whole = max(statements, 1)

    def cut(self) -> None:
        """Remember an execution that has not ended within the budget."""
        self._unended[self._search] += 1

    def notes(self) -> Iterator[str]:
        """Yield what of the searches was not tried, or not to its end."""
        limit = f"(budget of {self.statements:,} statements)"
        if self._untried:
            yield f"not tried: the rest of {', '.join(self._untried)} {limit}"
        if self._unended:
            counts = ", ".join(f"{count} of {name}" for name, count in self._unended.items())
            yield f"not executed to the end: {counts} {limit}"
