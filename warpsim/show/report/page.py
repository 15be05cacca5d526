"""The page around the data: template, style and scripts, all in one text of HTML.

The scripts are plain modules in static/. In the page they stand in one script, each in a function of
its own: ``import`` and ``export`` become assignments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from ...base.environment import in_default_environment
from ...base.errors import present
from ...base.files.content_policy import content_policy
from ...base.files.version import __version__
from .document import ReportData

if TYPE_CHECKING:
    from jinja2 import Environment

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.MULTILINE)
_COMMENTS = re.compile(r"^[ \t]*//.*\n", re.MULTILINE)  # lines of nothing else, which no page needs


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("warpsim.show.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(name: str) -> str:
    """Return the text of a file beside this module."""
    environment = _environment()
    loader = present(environment.loader, "loader")
    return loader.get_source(environment, name)[0]


def rendered(template: str, script: str, **values: Any) -> str:
    """Return the page that a template makes of values, with its script and the policy for it alone."""
    policy = content_policy(script)
    values |= {"version": __version__, "script": script, "policy": policy}
    return _environment().get_template(template).render(**values)


@in_default_environment
def page(report: ReportData) -> str:
    """Return the whole page: it loads nothing from anywhere."""
    return rendered(
        "templates/report.html",
        report=report.document,
        timeline=report.timeline,
        document=_embedded(json.dumps(report.document, separators=(",", ":"))),
        arrays=report.pool.text(),
        style=source("static/report.css") + source("static/print.css"),
        script=bundle("main.js"),
    )


def frame(html: str, title: str) -> str:
    """Return the page within a frame of its own, for a notebook's cell."""
    return (
        f'<iframe title="{escape(title)}" sandbox="allow-scripts" '
        f'style="width:100%;height:860px;border:1px solid #8884;border-radius:8px" '
        f'srcdoc="{escape(html)}"></iframe>'
    )


def _embedded(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c")


# --- scripts ---------------------------------------------------------------------------------------


def bundle(*entries: str, folders: Sequence[str] = ("static",)) -> str:
    """Return modules and their imports as one script, imported modules first; the first folder wins."""
    names = _in_order(entries, folders)
    return "\n".join(["const modules = {};", *(_wrapped(name, folders) for name in names)])


def _module(name: str, folders: Sequence[str]) -> str:
    """Return the text of a module of scripts."""
    loader = present(_environment().loader, "loader")
    known = set(loader.list_templates())
    return source(next(path for folder in folders if (path := f"{folder}/{name}") in known))


def _in_order(entries: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Return the modules that the entries need, each after the modules that it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        for _, imported in _IMPORT.findall(_module(name, folders)):
            visit(imported)
        if name not in order:
            order.append(name)

    for entry in entries:
        visit(entry)
    return order


def _wrapped(name: str, folders: Sequence[str]) -> str:
    """Return one module as a function that returns what it exports."""
    text = _COMMENTS.sub("", _module(name, folders))
    exported = ", ".join(_EXPORT.findall(text))
    body = _IMPORT.sub(lambda match: f'const {{{match[1]}}} = modules["{match[2]}"];\n', text)
    return (
        f'modules["{name}"] = (() => {{\n{_EXPORT.sub("", body).strip()}\nreturn {{ {exported} }};\n}})();\n'
    )
