"""The explorer's page: its template, style and scripts around the catalogue, all in one text of HTML.

Scripts and style are the explorer's own and, where it has none of a name, the report's. Needs jinja2.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from functools import cache

from ...environment import in_default_environment
from ..page import bundle, rendered, source
from .catalogue import catalogue

FOLDERS = ("explorer/static", "static")


@in_default_environment
def page(form: str) -> str:
    """Return the whole page, opened at a form; it loads nothing from anywhere."""
    return rendered(
        "explorer/templates/explorer.html",
        start=json.dumps({"form": form}),
        catalogue=_packed(),
        style=source("static/report.css") + source("explorer/static/explorer.css"),
        script=bundle("explorer.js", folders=FOLDERS),
    )


@cache
def _packed() -> str:
    """Return the catalogue as JSON, compressed (zlib) and in base64."""
    content = json.dumps(catalogue(), separators=(",", ":")).encode()
    return b64encode(zlib.compress(content, 9)).decode("ascii")
