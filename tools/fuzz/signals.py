"""Send signals to commands at any moment: each ends, with the exit code of the signal, and leaves nothing.

    python -m tools.fuzz.signals [--rounds 4] [--seed TEXT] [--only NAME]

In each round every command is sent SIGINT, SIGTERM and SIGHUP, each at a random moment of the time that the
command takes alone. The exit code is 130, 143 or 129, or, where the command was done before the signal came,
its own. There is no traceback, no process, no temporary folder and no half-written file afterwards. Exit code
1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "traces" / "kernels"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_STARTED = "import os; from warpsim.__main__ import main; os.write({0}, b'.'); os.close({0}); main()"
SIGNALS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}
_MOST = 60.0  # seconds until a command that was sent a signal has to end
_LONGEST = 8.0  # seconds after which signals come at the latest
_ROUNDS = 20  # of a debugger's script, backwards and forwards
_SIZE = 192  # rows and columns of the product that is launched
_LAUNCH = (
    *(
        "launch",
        str(KERNELS / "dense_tiles.ptx"),
        "--entry",
        "dense_f16",
        "--grid",
        f"{_SIZE // 32},{_SIZE // 32}",
    ),
    *("--block", "64", "--arg", "a.npy", "--arg", "a.npy", "--arg", f"zeros:f32:{_SIZE}x{_SIZE}"),
    *("--arg", f"i32:{_SIZE}", "--arg", f"i32:{_SIZE}"),
)
_DEBUG = ("debug", *_LAUNCH[1:], "--commands", "commands.txt")
_QUIET = "trap '' INT; exec $0 $1"  # else Python prints a traceback of its own
_CLIENT = str(Path(__file__).with_name("signal_client.py"))
ENDLESS = ("exec", "stubborn", "client", "serve")
_STUBBORN = "trap '' INT TERM HUP; sleep 61 & wait; wait"
COMMANDS = {
    "launch": (*_LAUNCH, "--save", "2=out.npy"),
    "processes": (*_LAUNCH, "--processes", "2", "--save", "2=out.npy"),
    "record": (*_LAUNCH, "--trace-mma", "out.npz"),
    "debug": _DEBUG,
    "vectors": ("vectors", DENSE, "--target", "sm_80", "-n", "4000", "-o", "out.npz"),
    "view": ("view", str(ROOT / "traces" / "mma_m16n8k16_f16.ptx"), "-o", "out.html"),
    "exec": ("exec", "sh", "-c", "sleep 62 & sleep 63"),
    "stubborn": ("exec", "sh", "-c", _STUBBORN),
    "client": ("exec", "--trace-mma", "recorded", "sh", "-c", _QUIET, sys.executable, _CLIENT),
    "nvcc": ("launch", str(KERNELS / "dense_tiles.cu"), *_LAUNCH[2:]),
    "serve": ("exec", "--serve", "--server", "place"),
}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended: ``code`` as shells have it, ``left`` what it left behind."""

    code: int
    said: str
    left: tuple[str, ...]


def ended(name: str, moment: float | None, sent: str = "SIGINT") -> Ended:
    """Run a command in a folder of its own, and send it a signal some seconds after its start, or none."""
    with TemporaryDirectory() as work, TemporaryDirectory() as temporary, TemporaryDirectory() as cache:
        _prepare(Path(work))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": temporary}
        environment["WARPSIM_FUZZ"] = mark = f"{os.getpid()} {time.monotonic()}"
        ready, starts = os.pipe()
        words = [sys.executable, "-c", _STARTED.format(starts), *COMMANDS[name]]
        with (Path(cache) / "said").open("w+b") as said:
            child = subprocess.Popen(
                words,
                cwd=work,
                env=environment,
                pass_fds=[starts],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            os.close(starts)
            os.read(ready, 1)
            os.close(ready)
            code = _waited(child, moment, sent)
            said.seek(0)
            text = said.read().decode(errors="replace")
        left = [f"process {each}" for each in _marked(mark)]
        left += [f"temporary {path.name}" for path in Path(temporary).iterdir()]
        left += [f"file {path.name}" for path in Path(work).rglob("*.partial")]
        _kill(_marked(mark))
    return Ended(code=code if code >= 0 else 128 - code, said=text, left=tuple(left))


def _prepare(folder: Path) -> None:
    np.save(folder / "a.npy", np.ones((_SIZE, _SIZE), np.float16))
    (folder / "commands.txt").write_text("run\n" + "reverse-continue\ncontinue\n" * _ROUNDS)


def _waited(child: subprocess.Popen[bytes], moment: float | None, sent: str) -> int:
    """Return the exit code of a process that is sent a signal; -SIGKILL where it does not end."""
    try:
        return child.wait(moment)
    except subprocess.TimeoutExpired:
        child.send_signal(getattr(signal, sent))
    try:
        return child.wait(_MOST)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait() or -signal.SIGKILL


def _marked(mark: str) -> list[int]:
    """Return the processes that were started with a variable of this value, but for zombies."""
    wanted, found = f"WARPSIM_FUZZ={mark}".encode(), list[int]()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _kill(processes: Sequence[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def problem_of(found: Ended, allowed: set[int]) -> str:
    """Return what is wrong with an end; "" where nothing is."""
    if found.code not in allowed:
        return f"exit code {found.code}, and not {' or '.join(map(str, sorted(allowed)))}"
    for words in ("Traceback", "Exception ignored", "mistake of warpsim", "Fatal Python error"):
        if words in found.said:
            return f"it says {words!r}"
    return f"it leaves {', '.join(found.left)}" if found.left else ""


def lengths(names: Sequence[str]) -> Iterator[tuple[str, float, set[int]]]:
    """Yield commands, the seconds that each takes alone at most, and its own exit codes."""
    for name in names:
        start = time.monotonic()
        if name in ENDLESS:
            yield name, _LONGEST, set()
            continue
        alone = ended(name, None)
        yield name, time.monotonic() - start, {alone.code}


def main() -> int:
    """Send signals; return the exit code."""
    given = _arguments()
    rng, count, finds = Random(given.seed), 0, 0
    commands = list(lengths([name for name in COMMANDS if given.only in (None, name)]))
    for _ in range(given.rounds):
        for name, seconds, own in commands:
            for sent, code in SIGNALS.items():
                moment = rng.uniform(0.02, min(seconds, _LONGEST))
                found = ended(name, moment, sent)
                problem = problem_of(found, {code, *own})
                count += 1
                if problem:
                    finds += 1
                    print(
                        f"--- {name}, {sent} after {moment:.2f} s: {problem}\n{found.said[-800:]}", flush=True
                    )
    print(f"{count} signals, {finds} finds")
    return 1 if finds else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", default=date.today().isoformat())
    parser.add_argument("--only", metavar="NAME", choices=list(COMMANDS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
