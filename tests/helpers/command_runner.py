"""Commands run in this process, with what they write to stderr kept apart, as click does from 8.2 on."""

from __future__ import annotations

from inspect import signature
from typing import Any

from click import testing

Result = testing.Result
_APART: dict[str, Any] = (
    {"mix_stderr": False} if "mix_stderr" in signature(testing.CliRunner).parameters else {}
)


class CliRunner(testing.CliRunner):
    """click's, of whatever version."""

    def __init__(self) -> None:
        super().__init__(**_APART)
