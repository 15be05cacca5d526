"""Record the figures behind the promises of ``warpsim info --promises``, and print both together.

    python -m tools.promises [--run NAME]... [--run all] [--said NAME FILE]... [--check] [--page]

Reads the figures of the pages that tools have written, and lists what statements of launched kernels
promise. With --run also runs the command of a figure, some for many minutes; --said has what such a command
has printed into a file. Figures of other commands stay as they are.
With --check, writes nothing, and exits 1 where statements or figures of pages are out of date. With --page,
writes nothing, and prints every promise with its tests, its tools and their figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import click

from warpsim.show.views.promises import promises_derived as derived
from warpsim.show.views.promises.promises import promises
from warpsim.show.views.promises.promises_derived import all_statements
from warpsim.sums.execution.interface import instructions

from .joined import joined_lines
from .sources import SOURCES, Source

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tools/promises/record.json"
STATEMENTS = Path(derived.__file__).with_name("statements.json")

Figures = dict[str, dict[str, str]]


@click.command()
@click.option("--run", "names", multiple=True, metavar="NAME", help="Run the command of this figure, or all.")
@click.option(
    "--said", "outputs", multiple=True, nargs=2, metavar="NAME FILE", help="What a command printed before."
)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if pages or statements say otherwise.")
@click.option("--page", is_flag=True, help="Write nothing; print every promise with what tests it.")
def main(names: tuple[str, ...], outputs: tuple[tuple[str, str], ...], check: bool, page: bool) -> None:
    """Write the record, check it, or print the page."""
    before = _read(RECORD) if RECORD.exists() else {"figures": {}}
    if check:
        stale = out_of_date(before)
        click.echo("\n".join(stale), nl=bool(stale))
        sys.exit("out of date: run python -m tools.promises" if stale else 0)
    if page:
        click.echo("\n".join(joined_lines(promises(instructions(), _read(STATEMENTS)), before)))
        return
    RECORD.write_text(_written(_record(before, names, outputs)), encoding="utf-8")
    STATEMENTS.write_text(_written(all_statements()), encoding="utf-8")


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _written(content: Any) -> str:
    return json.dumps(content, indent=1) + "\n"


def _record(
    before: dict[str, Any], names: tuple[str, ...], outputs: tuple[tuple[str, str], ...]
) -> dict[str, Any]:
    """Return the record with today's figures."""
    commands = {one.name: one for one in SOURCES if one.command}
    if unknown := {*names, *(name for name, _ in outputs)} - commands.keys() - {"all"}:
        raise click.UsageError(f"no command makes {', '.join(unknown)}; there are {', '.join(commands)}")
    files = {name: Path(file).read_text(encoding="utf-8") for name, file in outputs}
    texts = files | {name: _run(one) for name, one in commands.items() if name in names or "all" in names}
    ran = {
        name: _figure(commands[name], text) for name in texts if (text := _said(commands[name], texts[name]))
    }
    figures = before["figures"] | ran | page_figures()
    return {
        "date": date.today().isoformat(),
        "figures": {one.name: figures[one.name] for one in SOURCES if one.name in figures},
    }


def out_of_date(record: dict[str, Any]) -> list[str]:
    """Return what pages and tables state otherwise than a record."""
    fresh = page_figures()
    lines = [f"{name}: {fresh[name]['text']}" for name in fresh if record["figures"].get(name) != fresh[name]]
    return [*lines, *(["statements of launched kernels"] if _read(STATEMENTS) != all_statements() else [])]


def page_figures() -> Figures:
    """Return the figures of the pages that exist."""
    pages = ((one, ROOT / one.page) for one in SOURCES if one.page)
    texts = ((one, page.read_text(encoding="utf-8")) for one, page in pages if page.exists())
    return {one.name: _figure(one, text) for one, found in texts if (text := one.read(found))}


def _run(source: Source) -> str:
    """Run the command of a figure, and return what it prints."""
    click.echo(f"{source.name}: {source.where}", err=True)
    return subprocess.run(
        [sys.executable, "-m", *source.command], cwd=ROOT, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ).stdout  # fmt: skip


def _said(source: Source, output: str) -> str | None:
    """Return the figure in a command's output; None, with a message, where there is no figure."""
    text = source.read(output)
    if text is None:
        click.echo(f"{source.name}: no figures in\n{output[-1000:]}", err=True)
    return text


def _figure(source: Source, text: str) -> dict[str, str]:
    return {"text": text, "source": source.where}


if __name__ == "__main__":
    main()
