"""``warpsim demo``: the verdict on a wrong kernel that comes with the package."""

from __future__ import annotations

import io
import json
import shlex
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import IO, Annotated

import click
import numpy as np

from .options import FOLDER, Json
from .output import EXPECTED, MISMATCH, deliver, perform, say
from .verbs import Option, verb

_KERNEL = "wrong_swizzle"
_IN_A_CHECKOUT = Path(__file__).parents[3] / "traces" / "mistakes"
_LAUNCH = f"launch {_KERNEL}.ptx --block 128 --arg a.npy --arg b.npy --arg zeros:f32:64x64 --expect 2=d.npy"


@verb
def demo(
    *,
    out: Annotated[
        Path | None,
        FOLDER,
        Option(names=("-o", "--out")),
        "A folder that is empty or not there. [default: a new one among the temporary files]",
    ],
    as_json: Json,
) -> int:
    """Say what is wrong with a kernel, and write its page: a first look that needs no files.

    A tile of B is stored with another swizzle than wgmma reads. The kernel, its matrices and the right
    product go into a folder, and the commands that are run there are printed. --json prints the verdict's
    document with the paths instead.
    """
    folder = perform(_filled, Path(tempfile.mkdtemp(prefix="warpsim-demo-")) if out is None else out)
    verdict, rest = io.StringIO(), io.StringIO()
    if not as_json:
        say(f"$ cd {shlex.quote(str(folder))}")
    with chdir(folder):
        codes = [_run(f"{_LAUNCH} --why{' --json' * as_json}", verdict if as_json else None)]
        with Path("launch.txt").open("w", encoding="utf-8") as file:
            codes.append(_run(f"{_LAUNCH} --trace-mma launch.npz", file, quiet=as_json))
        codes.append(_run("view launch.npz -o launch.html", rest if as_json else None))
    if codes != [MISMATCH, MISMATCH, EXPECTED]:
        return max(codes)
    paths = {"page": str(folder / "launch.html"), "kernel": str(folder / f"{_KERNEL}.cu")}
    return deliver(
        lambda: json.loads(verdict.getvalue()) | paths,
        f"the page is {paths['page']}, the kernel {paths['kernel']}",
    )


def _filled(folder: Path) -> Path:
    """Write the kernel, its matrices and their product, exact in f32 whatever the order of sums.

    Raises OSError, UsageError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty: give a new folder")
    for name in (f"{_KERNEL}.ptx", f"{_KERNEL}.cu"):
        installed = files("warpsim.show") / "demo" / name
        text = (installed if installed.is_file() else _IN_A_CHECKOUT / name).read_bytes()
        (folder / name).write_bytes(text.replace(b"traces/mistakes/", b""))
    a, b = np.random.default_rng(1).integers(-8, 9, (2, 64, 64)).astype(np.float16)
    for name, matrix in {"a": a, "b": b, "d": a.astype(np.float32) @ b.astype(np.float32).T}.items():
        np.save(folder / f"{name}.npy", matrix)
    return folder.absolute()


def _run(line: str, output: IO[str] | None = None, *, quiet: bool = True) -> int:
    """Run a command line of warpsim and return its exit code; what it prints goes to ``output``.

    The command line is printed before, unless its output goes elsewhere and ``quiet``.
    """
    from . import cli

    if output is None or not quiet:
        say(f"$ warpsim {line}{'' if output is None else f' > {output.name}'}")
    with redirect_stdout(sys.stdout if output is None else output):
        return int(cli.main(shlex.split(line), prog_name="warpsim", standalone_mode=False))
