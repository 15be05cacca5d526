"""Loading of modules: ``python -m tools.bench.loading [FILE.ptx ...] [--megabytes 2] [--repeat 3]``.

Prints, in time of the processor, what it takes to look through a text and take one kernel of it;
microseconds and bytes of memory a statement where all kernels are taken; and, to compare, the binding of each
statement, which happens to those that are executed. Without files the text is pipelines.ptx and
dense_tiles.ptx of traces/kernels, repeated under other names up to so many megabytes.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from warpsim.machine.load.program import Module, load_module

from .measure import Result

_FOLDER = Path(__file__).parents[2] / "traces" / "kernels"
_SOURCES = ("pipelines.ptx", "dense_tiles.ptx")
_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.MULTILINE)
_HEAD = """\
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 shared[];
"""


def repeated(megabytes: float) -> str:
    """Return a text of so many megabytes: kernels of this repository, again and again under other names."""
    texts = [(_FOLDER / name).read_text() for name in _SOURCES]
    bodies = [text[text.index(".visible .entry") :] for text in texts]
    parts, size = [_HEAD], 0
    while size < megabytes * 1e6:
        body = bodies[len(parts) % len(bodies)]
        names = "|".join(_ENTRY.findall(body))  # those of parameters begin with them
        parts.append(re.sub(rf"\b(?={names})", f"m{len(parts)}_", body))
        size += len(parts[-1])
    return "".join(parts)


def _least(repeat: int, prepare: Callable[[], Module], run: Callable[[Module], object]) -> float:
    times = []
    for _ in range(repeat):
        module = prepare()
        gc.collect()
        start = time.process_time()
        run(module)
        times.append(time.process_time() - start)
    return min(times)


def _passed(text: str, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        load_module(text)
        times.append(time.process_time() - start)
    return min(times)


def measured(text: str, repeat: int) -> Iterator[Result]:
    """Yield the figures of a text."""
    load_module(text).bind()  # tables of opcodes are made once in a process
    last = load_module(text).entries[-1]
    looked = _passed(text, repeat)
    one = _least(repeat, lambda: load_module(text), lambda module: module.entry(last))
    bound = _least(repeat, lambda: load_module(text), lambda module: module.bind())
    tracemalloc.start()
    module = load_module(text)
    module.bind()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    count = module.statements
    executed = _least(1, lambda: module, lambda module: [module.execution(record) for record in module.code])
    each = 1e6 / count
    yield Result(name="one kernel taken", seconds=looked + one, figure=looked + one, unit="s", goal=3)
    rows = ((looked + bound, f"all {count} statements", 10), (looked, "of that, looked through", None))
    for seconds, title, goal in (*rows, (executed, "binding each of them", None)):
        yield Result(name=title, seconds=seconds, figure=seconds * each, unit="us a statement", goal=goal)
    yield Result(name="memory", seconds=0, figure=kept / count, unit="bytes a statement", goal=1024)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.loading", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--megabytes", type=float, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    texts = {path.name: path.read_text() for path in given.files}
    for name, text in (texts or {"repeated kernels": repeated(given.megabytes)}).items():
        print(f"{name}: {len(text) / 1e6:.1f} MB")
        for result in measured(text, given.repeat):
            goal = f"[{result.goal:g}]" if result.goal else ""
            print(f"{result.name:32} {result.figure:10.3f} {result.unit:18} {goal}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
