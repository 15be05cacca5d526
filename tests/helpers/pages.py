"""Reading an HTML page: is every tag closed, and does it load anything?"""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """Tags that must be closed are; lanes, texts and anything that would be loaded are collected."""

    VOID = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.lanes, self.texts, self.loaded = [], set(), [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        named = dict(attributes)
        self.lanes |= {int(named["data-lane"])} if "data-lane" in named else set()
        self.loaded += [named[name] for name in ("src", "href") if name in named]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
