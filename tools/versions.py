"""The versions that pyproject.toml allows, lowest and newest, on every Python: installed and tried.

    python -m tools.versions [--lowest] [--newest] [--python 3.15]... [--folder FOLDER] [--all | TEST...]

For each Python from the lowest that pyproject.toml allows to the newest that Numba has wheels for, and for
the lowest and the newest versions of every dependency and extra: makes a virtual environment (kept, if FOLDER
names one), installs into it, compares digests (tools/digests) and runs a choice of the tests, the tests that
are given, or all. Lowest are the lowest that have wheels for that Python; what they bring in themselves is
the newest. --python takes the path of one, too.

Needs uv (pip install uv), which chooses the versions. Exit code: 0 if everything passed on every Python, 1 if
something failed, 2 if nothing failed but a Python could not be had, or nothing was tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent
EXTRAS = ("distributed", "test")  # triton and bench bring gigabytes, rtl and browser other programs
RESOLUTIONS = {"lowest": "lowest-direct", "newest": "highest"}
COMPILED = ("numpy", "ml_dtypes", "numba", "llvmlite")  # of which only wheels are tried: nobody builds them
SMOKE = (
    "tests/test_public_names.py",
    "tests/isa/test_formats.py",
    "tests/show/cli/test_cli.py",
    "tests/show/cli/test_cli_process.py",
    "tests/show/cli/test_cli_hostile.py",
    "tests/show/cli/test_cli_explain.py",
    "tests/base/files",
    "tests/workbench/inputs",
    "tests/sums/arithmetic/test_cache.py",
    "tests/sums/execution/test_hostile_arguments.py",
    "tests/machine/opcodes/test_transcendental.py",
    "tests/workbench/traces/test_example_traces.py",
    "tests/show/report",
    "tests/base/cluster",
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one environment."""

    python: str
    which: str  # of RESOLUTIONS
    versions: str = ""
    digests: str = "-"
    tests: str = "-"
    failed: bool = False

    def __str__(self) -> str:
        return f"{self.python:8} {self.which:7} {self.digests:32} {self.tests:40} {self.versions}"


# --- what there is to try -------------------------------------------------------------------------------


def project() -> dict[str, Any]:
    """Return the table of that name in pyproject.toml."""
    details: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return details


def oldest_minor(details: dict[str, Any]) -> int:
    """11, of Python 3.11."""
    match = re.fullmatch(r">=3\.(\d+)", details["requires-python"])
    assert match, details["requires-python"]
    return int(match[1])


def direct(details: dict[str, Any]) -> list[str]:
    """Return the names of the dependencies, without those of extras."""
    return [re.split(r"[^\w.-]", text)[0] for text in details["dependencies"]]


def supported() -> Iterator[str]:
    """Yield versions of Python, from the lowest that is allowed to the last that Numba has a wheel for."""
    minor = oldest_minor(project())
    while compiled_for(f"3.{minor}"):
        yield f"3.{minor}"
        minor += 1


def compiled_for(python: str) -> bool:
    """Return whether some version of Numba that is allowed has a wheel for a Python."""
    requirement = next(text for text in project()["dependencies"] if text.startswith("numba"))
    words = [*uv(), "pip", "compile", "--quiet", "--only-binary", ":all:", "--python-version", python, "-"]
    found = subprocess.run(words, input=requirement, text=True, capture_output=True, check=False)
    return found.returncode == 0


def uv() -> list[str]:
    """Return the command uv, of the path or of this Python."""
    return ["uv"] if shutil.which("uv") else [sys.executable, "-m", "uv"]


def interpreter(python: str) -> str | None:
    """Return the path of a Python, which may be given instead of its version; None if it is not here."""
    words = [*uv(), "python", "find", "--no-project", "--no-python-downloads", python]
    found = subprocess.run(words, text=True, capture_output=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


# --- one environment ------------------------------------------------------------------------------------


def install(folder: Path, python: str, which: str) -> str:
    """Make an environment; the versions of the dependencies in it."""
    words: list[str | Path] = ["pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    words += ["--resolution", RESOLUTIONS[which], "--python", python, "--output-file", folder / "pins.txt"]
    words += [word for name in EXTRAS for word in ("--extra", name)]
    words += [word for name in COMPILED for word in ("--only-binary", name)]
    folder.mkdir(parents=True, exist_ok=True)
    run_uv(*words, ROOT / "pyproject.toml")
    run_uv("venv", "--quiet", "--allow-existing", "--python", python, folder)
    pip = ("pip", "install", "--quiet", "--python", folder)
    run_uv(*pip, "--requirement", folder / "pins.txt")
    run_uv(*pip, "--no-deps", "--editable", ROOT)
    pins = (folder / "pins.txt").read_text().split()
    names = [name.lower().replace("_", "-") for name in direct(project())]
    return ", ".join(pin.replace("==", " ") for pin in pins if pin.partition("==")[0] in names)


def run_uv(*words: str | Path) -> None:
    """Run a command of uv; raises CalledProcessError, uv having said why."""
    subprocess.run([*uv(), *words], check=True)


def tried(folder: Path, python: str, which: str, tests: list[str]) -> Outcome:
    """Install, compare the digests, and run tests."""
    version = subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"], text=True, capture_output=True
    ).stdout.strip()
    print(f"--- Python {version}, {which} versions", flush=True)
    try:
        versions = install(folder, python, which)
    except subprocess.CalledProcessError:
        return Outcome(python=version, which=which, tests="cannot be installed", failed=True)
    print(versions, flush=True)
    digests = said(folder, "-m", "tools.digests", "--check")
    found = said(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    return Outcome(
        python=version,
        which=which,
        versions=versions,
        digests=digests[1],
        tests=found[1],
        failed=bool(digests[0] or found[0]),
    )


def said(folder: Path, *words: str) -> tuple[int, str]:
    """Return the exit code of an environment's Python, and its last line; everything is shown."""
    variables = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    command = [folder / "bin" / "python", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    last = ""
    with subprocess.Popen(command, cwd=ROOT, env=variables, text=True, **pipes) as process:  # type: ignore[call-overload]
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return process.returncode, last


def main() -> int:
    """Try what is asked for, and say what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lowest", action="store_true", help="only the lowest versions")
    parser.add_argument("--newest", action="store_true", help="only the newest versions")
    parser.add_argument("--python", action="append", help="3.13, or a path; may be given several times")
    parser.add_argument("--folder", type=Path, help="where the environments are made, and stay")
    parser.add_argument("--all", action="store_true", help="run all tests")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    chosen = [name for name in RESOLUTIONS if getattr(given, name)] or list(RESOLUTIONS)
    tests = given.tests or ([] if given.all else [item for item in SMOKE if (ROOT / item).exists()])
    pythons = {wanted: interpreter(wanted) for wanted in given.python or supported()}
    outcomes: list[Outcome] = []
    with TemporaryDirectory() as temporary:
        for wanted, python in pythons.items():
            for which in chosen if python else ():
                name = f"{which}-{Path(wanted).name}"
                outcomes.append(tried((given.folder or Path(temporary)) / name, python, which, tests))
    missing = [wanted for wanted, python in pythons.items() if not python]
    return told(outcomes, missing)


def told(outcomes: list[Outcome], missing: list[str]) -> int:
    """Print a line for each environment and each Python that is not here; the exit code."""
    for outcome in outcomes:
        print("FAILED" if outcome.failed else "ok    ", outcome)
    for wanted in missing:
        print(f"Python {wanted} is not here: uv python install {wanted}, or give its path")
    if not outcomes and not missing:
        print("nothing was tried: without uv (pip install uv) no version of Python is known")
    return 1 if any(outcome.failed for outcome in outcomes) else 2 * (bool(missing) or not outcomes)


if __name__ == "__main__":
    sys.exit(main())
