"""The lowest versions that pyproject.toml allows, installed and tried.

    python tools/lowest.py [--python python3.11] [--folder FOLDER] [TEST...]

Makes a virtual environment (kept, if FOLDER names one), installs every dependency and extra at its lower
bound, and runs a choice of the tests in it, or the tests that are given. Exit code: that of pytest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
EXTRAS = ("distributed", "report", "test")  # triton and bench bring gigabytes, rtl and browser other programs
SMOKE = (
    "tests/test_public_names.py",
    "tests/isa/test_formats.py",
    "tests/cli/test_cli.py",
    "tests/cli/test_cli_process.py",
    "tests/cli/test_cli_hostile.py",
    "tests/files",
    "tests/arithmetic/test_cache.py",
    "tests/execution/test_hostile_arguments.py",
    "tests/traces/test_example_traces.py",
    "tests/report",
    "tests/cluster",
)
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,]*\])?>=([\w.]+)")


def lower_bounds(project: dict[str, object]) -> dict[str, str]:
    """The lowest version of every dependency; of one that is named twice, the higher of its bounds."""
    details: dict[str, object] = project["project"]  # type: ignore[assignment]
    extras: dict[str, list[str]] = details["optional-dependencies"]  # type: ignore[assignment]
    wanted = [*details["dependencies"], *(one for name in EXTRAS for one in extras[name])]  # type: ignore[misc]
    bounds: dict[str, str] = {}
    for text in wanted:
        match = _REQUIREMENT.match(text)
        assert match, f"{text!r} has no lower bound"
        name, version = match.groups()
        bounds[name] = max(bounds.get(name, version), version, key=_numbers)
    return bounds


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def main() -> int:
    """Install and try."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="python3.11", help="the oldest that pyproject.toml allows")
    parser.add_argument("--folder", type=Path, help="where the environment is made, and stays")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    bounds = lower_bounds(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    with TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        python = folder / "bin" / "python"
        if not python.exists():
            subprocess.run([given.python, "-m", "venv", folder], check=True)
        pins = [f"{name}=={version}" for name, version in bounds.items()]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *pins], check=True)
        print("installed:", *pins, flush=True)
        tests = [one for one in given.tests or SMOKE if (ROOT / one.partition("::")[0]).exists()]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        words = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        return subprocess.run(words, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
