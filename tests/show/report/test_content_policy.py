"""Every page of HTML allows its own script, and nothing that a text in it could bring along."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import warpsim
from warpsim.show.views.drawings import svg

TRACE = Path(__file__).parents[3] / "traces" / "mma_sp_m16n8k32_f16.ptx"
EXECUTED = (None, "module", "text/javascript")  # types of scripts that a browser executes


class Parts(HTMLParser):
    """The policies, and the text of each script that a browser would execute."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.policies: list[str] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given: dict[str, Any] = dict(attrs)
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policies.append(given["content"])
            assert not self.scripts, "the policy comes first"
        self.inside = tag == "script" and given.get("type") in EXECUTED
        if self.inside:
            self.scripts.append("")
        assert not [name for name in given if name.startswith("on")], "no policy of hashes allows a handler"
        assert not {"src", "href"} & given.keys() or given.get("href", "").startswith("#")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: warpsim.view(TRACE).html,
    "explorer": lambda: warpsim.explore().html,
    "figures": lambda: svg.page("A title <script>alert(1)</script>", []),
}


@pytest.mark.parametrize("name", PAGES)
def test_only_the_own_script_is_allowed(name: str) -> None:
    found = Parts(PAGES[name]())
    (policy,), (script,) = found.policies, found.scripts
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    digest = b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode()
    assert rules.pop("script-src") == [f"'sha256-{digest}'"]
    assert rules.pop("style-src") == ["'unsafe-inline'"]
    assert rules == {"default-src": ["'none'"], "base-uri": ["'none'"], "form-action": ["'none'"]}
