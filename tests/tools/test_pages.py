"""The pages say what is true: their Python runs, their files exist, and the README stays short and complete.

Their commands are rerun by ``python tools/pages.py --check``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click
import pytest

from tests.helpers.command_runner import CliRunner
from tests.test_imports import ORDER
from tools.pages import PARTS, ROOT, changes, commands, pages, part_of, rewritten
from warpsim.show.cli import cli

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in pages()}

every_page = pytest.mark.parametrize("page", PAGES)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def links(page: str) -> list[str]:
    """Where the links of a page lead; code and comments have none."""
    prose = re.sub(r"^```.*?^```|<!--.*?-->|`[^`\n]*`", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)]+)\)", prose)


def rows(text: str, heading: str) -> list[str]:
    """The words in code at the start of the rows of the first table after a heading."""
    table = text.split(f"\n## {heading}\n")[1].split("|---|")[1].split("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


# --- every page ------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_python_examples_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "traces", tmp_path / "traces")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)


def test_parts_have_each_page_and_about_as_many_commands() -> None:
    """A commit chooses a part by its text; the README is in all of them."""
    found = {tuple(part_of(f"commit {number}", list(pages()))) for number in range(40)}
    assert len(found) == PARTS
    assert all(part[0] == ROOT / "README.md" for part in found)
    rest = [page for part in found for page in part[1:]]
    assert sorted(rest) == sorted(page for page in pages() if page != ROOT / "README.md")
    counts = [sum(commands(page.read_text(encoding="utf-8")) for page in part) for part in found]
    assert max(counts) < 2 * min(counts)


@every_page
def test_every_output_block_names_its_command(page: str) -> None:
    assert all(re.findall(r"(<!-- run: .+? -->\n+)?^```text\n", PAGES[page], re.MULTILINE))


@every_page
def test_every_session_begins_with_a_command(page: str) -> None:
    assert [block for block in blocks(page, "console") if not block.startswith("$ ")] == []


@every_page
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`([\w-]+/[\w/.-]*?(?:\.py|\.md|/))`", PAGES[page])
    folders = (ROOT, (ROOT / page).parent, ROOT / "warpsim")
    assert not [one for one in named if not any((folder / one).exists() for folder in folders)]


@every_page
def test_links_inside_the_repository_lead_somewhere(page: str) -> None:
    inside = [link.partition("#")[0] for link in links(page) if "://" not in link]
    assert not [link for link in inside if not ((ROOT / page).parent / link).exists()]


# --- the README ------------------------------------------------------------------------------------


def test_the_readme_is_short() -> None:
    assert len(README.encode()) <= 10 * 1024


def test_the_readme_links_to_nothing_that_a_package_index_lacks() -> None:
    """The index shows the README alone, at an address where relative links and headings lead nowhere."""
    assert all("://" in link for link in links("README.md"))


def test_continuous_integration_runs_the_test_command() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README, re.DOTALL)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert len(commands) == 2
    assert commands[1] in script


def test_the_readme_and_the_help_have_every_verb_in_the_same_words() -> None:
    said = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", README, re.MULTILINE))
    assert list(said) == rows(README, "The verbs") == cli.list_commands(click.Context(cli))
    helped = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    assert not [
        text for name, text in said.items() if not re.search(rf"^  {name} +{re.escape(text)}$", helped, re.M)
    ]


def test_the_architecture_has_every_room() -> None:
    assert rows(PAGES["warpsim/README.md"], "The house") == [
        room for room in reversed(ORDER) if not room.startswith("__")
    ]


# --- rerunning -------------------------------------------------------------------------------------

STALE = "<!-- run: echo 'a  b  '; ls; echo c >&2; exit 3 -->\n```text\nold\n```\n\n```text\nkept\n```\n"


def test_outputs_are_what_commands_print() -> None:
    fresh = rewritten(STALE)
    assert fresh == STALE.replace("old", "a  b\ntools\ntraces\nc")
    assert rewritten(fresh) == fresh


SESSION = "```console\n$ echo a \\\n    b > c\n$ cat c; exit 3\nold\n```\n"


def test_commands_that_are_shown_are_rerun_in_order() -> None:
    fresh = rewritten(SESSION)
    assert fresh == SESSION.replace("old", "a b")
    assert rewritten(fresh) == fresh


def test_an_installed_command_is_not_needed() -> None:
    text = "<!-- run: warpsim --version -->\n```text\n```\n"
    assert "warpsim, version" in rewritten(text)


def test_what_is_out_of_date_is_shown() -> None:
    assert changes(ROOT / "README.md", "a\nb\n", "a\nb\n") == ""
    assert "-b\n+c\n" in changes(ROOT / "README.md", "a\nb\n", "a\nc\n")
