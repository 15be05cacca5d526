"""A session: what ``warpsim debug`` and a notebook hold.

    session = Session(module["gemm"], (4, 4), 128, [A, B, C, 512])
    print(session.do("break gemm.cu:153 if lane == 5"))
    print(session.do("run"))

Knows commands; a launch in time is travel.py.
"""

from __future__ import annotations

from typing import Any

from ...workbench.debugger.travel import Travel
from .commands.command_table import completions, execute
from .commands.value_commands import filled, value_at


class Session(Travel):
    """A launch under a debugger, which goes forwards and backwards; ``do`` takes the commands of ``warpsim
    debug``. Use it as a context manager, or call ``close``.
    """

    def __init__(self, *launch: Any, **options: Any) -> None:
        super().__init__(*launch, **options)
        self.logged: list[str] = []
        self.log = lambda text: self.logged.append(self.filled(text))

    def do(self, line: str) -> str:
        """Execute a command; return what it prints. Raises OperandError for what is no command, WarpsimError
        for what commands cannot do.
        """
        text = execute(self, line)
        lines, self.logged[:] = [*self.logged], []
        return "\n".join(filter(None, (*lines, text)))

    def filled(self, text: str) -> str:
        """Return a text with the values of the expressions in braces."""
        return filled(self, text)

    def value(self, text: str) -> Any:
        """Return the value of an expression at the lane of the focus; None where it was never written.
        Raises OperandError.
        """
        value, word = value_at(self, text)
        if word is None:
            return None
        numbers = value.numbers()
        return numbers[self.standing().lane].item() if numbers.ndim else numbers.item()

    def completions(self, line: str) -> list[str]:
        """Return the words that the last word of a line may become."""
        return completions(self, line)

    def __repr__(self) -> str:
        where = "not running" if self.execution is None else f"time {self.time}, {self.focus}"
        return f"<session of {self.kernel.signature}: {where}>"
