"""Log messages of breakpoints: a text with expressions in braces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ....base.errors import OperandError
from .value_commands import printed

if TYPE_CHECKING:
    from ....workbench.debugger.travel import Travel

_BRACES = re.compile(r"\{([^{}]*)\}")


def filled(session: Travel, text: str) -> str:
    """Return a text with the values of its expressions; of those that have none, why."""

    def value(match: re.Match[str]) -> str:
        try:
            return printed(session, match[1])
        except OperandError as error:
            return f"<{error.message}>"

    return _BRACES.sub(value, text)
