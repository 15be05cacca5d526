"""Show how a test fails: ``python tools/failing_test.py``, for the page of warpsim/show/testing.

Runs the test of that page with the wrong k among the arguments, in the current folder, and prints its failure
without what differs from run to run.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import warpsim

PAGE = Path(warpsim.__file__).parent / "show" / "testing" / "README.md"


def example() -> str:
    """Return the test of the page, wrong."""
    text = PAGE.read_text(encoding="utf-8")
    code = text.partition("```py\n")[2].partition("```")[0]
    return code.replace("[a, b, d, N, K]", "[a, b, d, N, 64]").replace('"sm_80", "sm_90a"', '"sm_80"')


def main() -> None:
    """Write the test beside the kernel, run it, and print its failure."""
    folder = Path("traces/kernels")
    test = folder / "test_product.py"
    test.write_text(example(), encoding="utf-8")
    plugins = ["-p", "no:warpsim", "-p", "warpsim.show.testing.plugin"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, test.name]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    test.unlink()
    failure = re.search(r"^E .*?(?=^=)", ended.stdout, re.DOTALL | re.MULTILINE)
    print(failure[0].rstrip() if failure else ended.stdout)


if __name__ == "__main__":
    main()
