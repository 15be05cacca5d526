"""References by name, for what is usual. Filled below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BUILT_IN: dict[str, Callable[..., Any]] = {}
