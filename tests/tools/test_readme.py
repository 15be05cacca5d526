"""The README's Python runs as it stands, and its two commands are those that continuous integration runs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run_in_order():
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["D"].shape == (16, 8)


def test_continuous_integration_runs_the_test_command():
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert len(commands) == 2
    assert commands[1] in script


def test_every_output_block_names_its_command():
    outputs = re.findall(r"(<!-- run: .+? -->\n+)?```text\n", README)
    assert sum(not command for command in outputs) == 1  # the syntax of a trace
