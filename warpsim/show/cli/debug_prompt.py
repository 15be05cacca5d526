"""The prompt of ``warpsim debug``: with history and completion where prompt_toolkit is installed.

Knows lines that are typed; does not know commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..debugger import Session


def reader(session: Session, prompt: str) -> Callable[[], str]:
    """Return what reads a line. It raises EOFError and KeyboardInterrupt."""
    try:
        import prompt_toolkit
    except ImportError:
        return lambda: input(prompt)
    return _rich_reader(prompt_toolkit, session, prompt)


def _rich_reader(toolkit: Any, session: Session, prompt: str) -> Callable[[], str]:
    from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class Words(Completer):  # type: ignore[misc]
        """The names of commands, and what they take."""

        def get_completions(self, document: Any, event: Any) -> Iterator[Any]:
            """Yield what the last word may become."""
            line = document.text_before_cursor
            last = line.rpartition(" ")[2]
            for word in session.completions(line):
                yield Completion(word, start_position=-len(last))

    def toolbar() -> str:
        where = "not running" if session.execution is None else f"time {session.time}, {session.focus}"
        return f" {where}   help: commands   Tab: complete   Ctrl-C: stop the launch   Ctrl-D: quit"

    file = _history_file()
    talk = toolkit.PromptSession(
        history=InMemoryHistory() if file is None else FileHistory(str(file)),
        completer=Words(),
        auto_suggest=AutoSuggestFromHistory(),
        bottom_toolbar=toolbar,
        complete_while_typing=False,
    )
    return lambda: str(talk.prompt(prompt))


def _history_file() -> Path | None:
    """Return the file of lines that were typed before; None where there is no place for it."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "warpsim"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder / "debug_history"
