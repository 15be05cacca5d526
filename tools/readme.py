"""Keep the README honest: ``python tools/readme.py [--check]``.

Reruns the command behind every ``<!-- run: COMMAND -->`` and puts what it prints into the block that
follows, and rewrites the evidence table. With --check, exits 1 if that would change the README.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import warpsim
from warpsim.views.evidence import Row, evidence_rows

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CHIPS = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120a")

_RUN = re.compile(r"(<!-- run: (.+?) -->\n+```text\n)(.*?)(\n?```)", re.DOTALL)
_TABLE = re.compile(r"(<!-- evidence table -->\n).*?(<!-- end of evidence table -->)", re.DOTALL)


# --- blocks of output ------------------------------------------------------------------------------


def output(command: str, folder: Path) -> str:
    """What the command prints, diagnostics included, run in the folder as a pipe would see it."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "110", "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    finished = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in finished.stdout.splitlines())


def with_outputs(text: str) -> str:
    """The README with every block of output made anew, in a copy of what the commands need."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("traces", "tools"):
            shutil.copytree(ROOT / part, folder / part)
        return _RUN.sub(lambda match: match[1] + output(match[2], folder) + "\n```", text)


# --- the evidence table ----------------------------------------------------------------------------


def _cell(row: Row | None) -> str:
    if row is None:
        return "-"
    if row.evidence.outputs:
        return f"**{row.evidence.outputs:,}** {row.evidence.chips}"
    return row.evidence.label


def evidence_table() -> str:
    """One line an operation and format of D, one column a chip, as Markdown."""
    rows = {(*row.key, row.target): row for row in evidence_rows(warpsim.instructions())}
    lines = ["| family | operation | D | " + " | ".join(CHIPS) + " |", "|---" * (3 + len(CHIPS)) + "|"]
    for key in sorted({row.key for row in rows.values()}):
        lines.append("| " + " | ".join([*key, *(_cell(rows.get((*key, chip))) for chip in CHIPS)]) + " |")
    return "\n".join(lines)


def rewritten(text: str) -> str:
    """The README of this version of the code."""
    text = _TABLE.sub(lambda match: f"{match[1]}\n{evidence_table()}\n\n{match[2]}", text)
    return with_outputs(text)


def main(arguments: list[str] | None = None) -> None:
    """Rewrite the README, or check it."""
    parser = argparse.ArgumentParser(description="Rewrite the outputs and the evidence table of the README.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if out of date")
    check: bool = parser.parse_args(arguments).check
    text = README.read_text(encoding="utf-8")
    fresh = rewritten(text)
    if check:
        sys.exit("README.md is out of date: run python tools/readme.py" if fresh != text else 0)
    README.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    main()
