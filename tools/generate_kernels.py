"""Compile the kernels of traces/kernels to PTX: ``python tools/generate_kernels.py [FOLDER]``.

Every .cu there says in its first lines for which target it is, ``// target: sm_80``, and perhaps with which
further options, ``// options: ...``. The PTX goes beside it, or to FOLDER. It depends on the text and on the
release of nvcc alone: the compiler runs in the folder of the sources, so that no path enters.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "traces" / "kernels"
RELEASE = "13.0"
_HEADER = re.compile(r"^// (target|options): (.*)$", re.MULTILINE)


def missing() -> str:
    """Return why nothing can be compiled here; empty where it can."""
    if shutil.which("nvcc") is None:
        return "nvcc is not installed"
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False).stdout
    return "" if f"release {RELEASE}," in version else f"nvcc is not of release {RELEASE}"


def compiled(source: Path) -> str:
    """Return the PTX of a source. Raises ValueError with nvcc's messages."""
    header = dict(_HEADER.findall(source.read_text()))
    chip = header["target"].removeprefix("sm_")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "module.ptx"
        command = ["nvcc", "-ptx", "-O3", f"-arch=compute_{chip}", *header.get("options", "").split()]
        done = subprocess.run(
            [*command, source.name, "-o", str(result)],
            cwd=source.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ValueError(f"{source.name}: {done.stderr or done.stdout}")
        return result.read_text()


def main(arguments: Sequence[str]) -> int:
    """Compile all of them; what is said goes to stderr."""
    if reason := missing():
        print(reason, file=sys.stderr)
        return 4
    folder = Path(arguments[0]) if arguments else SOURCES
    for source in sorted(SOURCES.glob("*.cu")):
        (folder / f"{source.stem}.ptx").write_text(compiled(source))
        print(f"{source.stem}.ptx", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
