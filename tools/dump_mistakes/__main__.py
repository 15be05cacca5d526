"""``python -m tools.dump_mistakes [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

from tools.judging import measured

from . import log_sources, packings, prints, step_logs, stored_types

GROUPS = {
    "packings": packings.LIST,
    "step logs": step_logs.LIST,
    "log sources": log_sources.LIST,
    "stored types": stored_types.LIST,
    "prints": prints.LIST,
}

if __name__ == "__main__":
    measured(GROUPS, "What warpsim diff says of dumps, logs, stored results and prints.")
