"""Keep the pages honest: ``python tools/pages.py [--check] [--part TEXT] [PAGE...]``.

Reruns the commands of the README and of the rooms' pages, and puts what they print behind them. A block of
``console`` shows its commands, in lines that begin with ``$ `` and go on behind a backslash. A comment
``<!-- run: COMMAND -->`` before a block of ``text`` has a command that is not shown. With --check,
changes nothing, shows what would change and exits 1 if something would. Commands of a page run one after
the other in a folder of their own, which has copies of traces/ and tools/; ``warpsim`` is this checkout,
installed or not. --part takes a third of the pages, beside the README: that of a text, such as a commit.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import unified_diff
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("warpsim", "tests", "tools", "traces")
TOGETHER = 2  # pages at a time: most commands keep one core busy
PARTS = 3

_HIDDEN = r"(?P<before><!-- run: (?P<command>.+?) -->\n+```text\n)(?P<output>.*?)(?P<after>\n?```)"
_SHOWN = r"^```console\n(?P<session>.*?)^```$"
_RUN = re.compile(f"{_HIDDEN}|{_SHOWN}", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*)\n", re.MULTILINE)


def pages() -> Iterator[Path]:
    """Yield the README, and every page below it."""
    yield ROOT / "README.md"
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.md"))


def commands(text: str) -> int:
    """Return the number of commands of a page."""
    found = _RUN.finditer(text)
    return sum(1 if each["session"] is None else len(_PROMPT.findall(each["session"])) for each in found)


def part_of(text: str, files: Sequence[Path]) -> list[Path]:
    """Return the README and a third of the other pages, of about as many commands as the others."""
    parts: list[list[Path]] = [[] for _ in range(PARTS)]
    counts = {file: commands(file.read_text(encoding="utf-8")) for file in files}
    for file in sorted(files, key=lambda file: -counts[file]):
        min(parts, key=lambda part: sum(counts[each] for each in part)).append(file)
    readme = ROOT / "README.md"
    return [readme, *(file for file in parts[zlib.crc32(text.encode()) % PARTS] if file != readme)]


def workplace(folder: Path) -> dict[str, str]:
    """Return the environment of commands in that folder, which gets what they need."""
    for part in ("traces", "tools"):
        shutil.copytree(ROOT / part, folder / part)
    programs = folder / ".programs"
    programs.mkdir()
    warpsim = programs / "warpsim"
    warpsim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpsim "$@"\n', encoding="utf-8")
    warpsim.chmod(0o755)
    path = os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
    return os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "110"}


def output(command: str, folder: Path, environment: dict[str, str]) -> str:
    """Return what the command prints, diagnostics included, run in the folder as a pipe would see it."""
    finished = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return "\n".join(line.rstrip() for line in finished.stdout.splitlines())


def rewritten(text: str) -> str:
    """Return a page with every block of output made anew."""
    if not _RUN.search(text):
        return text
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = workplace(folder)
        return _RUN.sub(lambda match: _again(match, folder, environment), text)


def _again(match: re.Match[str], folder: Path, environment: dict[str, str]) -> str:
    """Return a block with what its commands print now."""
    if match["session"] is None:
        return match["before"] + output(match["command"], folder, environment) + "\n```"
    given = _PROMPT.finditer(match["session"])
    printed = ((one[0], output(one["command"], folder, environment)) for one in given)
    return "".join(
        ["```console\n", *(f"{prompt}{lines}\n" if lines else prompt for prompt, lines in printed), "```"]
    )


def changes(page: Path, text: str, fresh: str) -> str:
    """Return what is out of date, line by line; empty where nothing is."""
    name = page.relative_to(ROOT).as_posix()
    lines = (text.splitlines(keepends=True), fresh.splitlines(keepends=True))
    return "".join(unified_diff(*lines, name, f"{name}, as it would be"))


def main(arguments: list[str] | None = None) -> None:
    """Rewrite the pages, or check them."""
    parser = argparse.ArgumentParser(description="Rerun the commands of the pages and rewrite their outputs.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if out of date")
    parser.add_argument("--part", metavar="TEXT", help="a third of the pages: that of a text, as a commit")
    parser.add_argument("page", nargs="*", type=Path, help="these pages only")
    given = parser.parse_args(arguments)
    files = [page.resolve() for page in given.page] or list(pages())
    files = files if given.part is None else part_of(given.part, files)
    texts = [file.read_text(encoding="utf-8") for file in files]
    long_first = sorted(texts, key=commands, reverse=True)  # so that none is left at the end
    with ThreadPoolExecutor(TOGETHER) as pool:
        made = dict(zip(long_first, pool.map(rewritten, long_first), strict=True))
    fresh = [made[text] for text in texts]
    differences = [changes(*item) for item in zip(files, texts, fresh, strict=True)]
    if given.check:
        print("".join(differences), end="")
        sys.exit("pages are out of date: run python tools/pages.py" if any(differences) else 0)
    for file, page in zip(files, fresh, strict=True):
        file.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
