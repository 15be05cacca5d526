"""Numba's cache: broken files and full disks cost time, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = """
from warpsim.sums.arithmetic.kernels._jit import kernel

@kernel
def twice(x):
    return 2 * x
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Runs a kernel of a module of its own in a process of its own: what it prints, and its warnings."""
    (tmp_path / "example.py").write_text(EXAMPLE)
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
    }

    def call(before: str = "", given: str = "21", module: str = "example") -> tuple[str, str]:
        show = f"print(example.twice({given}), sum(example.twice.stats.cache_hits.values()))"
        script = f"{before}\nimport {module} as example\n{show}"
        words = [sys.executable, "-c", script]
        done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=100, check=True)
        return done.stdout.strip(), done.stderr

    return call


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "cache").rglob("example.twice*") if path.is_file())


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_broken_files_are_compiled_again_with_one_warning(
    run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    """An empty file ended every run with exit code 130, for an EOFError was taken as Ctrl-D."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("no JIT, no cache")
    assert run() == ("42 0", "")
    data, index = files(tmp_path)
    assert (data.suffix, index.suffix) == (".nbc", ".nbi")
    index.write_bytes(b"")
    data.write_bytes(flipped(data.read_bytes()))
    for _ in range(2):
        printed, warned = run()
        assert (printed, warned.count("so kernels are compiled again")) == ("42 0", 1)
        data.write_bytes(flipped(data.read_bytes()))
    data.write_bytes(flipped(data.read_bytes()))
    assert run() == ("42 1", "")


def test_a_full_disk_is_no_error_of_a_computation(
    run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("no JIT, no cache")
    full = (
        "import errno, numba.core.caching as c\n"
        "def full(*_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "c.IndexDataCacheFile._open_for_write = full\n"
    )
    printed, warned = run(full)
    assert printed == "42 0"
    assert warned.count("cannot be written: kernels will be compiled again (No space left on device)") == 1
    assert files(tmp_path) == []


def test_types_that_have_moved_are_no_broken_file(
    run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    """Numba reads a file, with the types that it names, before it looks of which sources that is."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("no JIT, no cache")
    for module in ("pairs", "couples"):
        (tmp_path / f"{module}.py").write_text(
            "from typing import NamedTuple\nclass Pair(NamedTuple):\n    x: int\n"
        )
        (tmp_path / "example.py").write_text(f"import {module}\n" + EXAMPLE.replace("2 * x", "2 * x.x"))
        assert run(given=f"example.{module}.Pair(21)") == ("42 0", "")
        assert run(given=f"example.{module}.Pair(21)") == ("42 1", "")
        (tmp_path / f"{module}.py").unlink()


def test_a_module_that_has_moved_is_no_broken_file(
    run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    """The machine code of a file names its module, which may be called otherwise after an update."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("no JIT, no cache")
    assert run() == ("42 0", "")
    moved = f"import sys; sys.path.remove({str(tmp_path)!r}); sys.path.append({str(tmp_path.parent)!r})"
    assert run(moved, module=f"{tmp_path.name}.example") == ("42 0", "")
    assert run(moved, module=f"{tmp_path.name}.example") == ("42 1", "")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has other permissions")
@pytest.mark.parametrize("where", ["NUMBA_CACHE_DIR", "__pycache__"])
def test_a_cache_that_other_users_can_write_is_not_used(
    where: str, run: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    """Numba executes what it finds there, with any digest."""
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("no JIT, no cache")
    beside = where == "__pycache__"
    before = "import os; os.environ.pop('NUMBA_CACHE_DIR')" if beside else ""
    shared = tmp_path / (where if beside else "cache")
    assert run(before) == ("42 0", "")
    assert run(before) == ("42 1", "")
    shared.chmod(0o777)
    for _ in range(2):
        printed, warned = run(before)
        assert printed == "42 0"
        assert warned.count(f"{shared} has mode 777, so that other users can write there") == 1
