"""Control characters in what is printed: escaped, as names of files and their content may be any bytes.

A terminal obeys them, and a name that breaks or reverses a line reads as another message. Knows text; does
not print.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SUSPECT = re.compile(r"[^\x20-\x7e\n\t]")
_CONTROLS = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
}  # also bidi controls (Cf) and bytes that are not text (Cs)
_PARTS = re.compile(r"[/:=,.]")

_BLANK = r"(?m)(^|=|\b(?:error:|wrote|kept|to|of|and|against) ){}(?=:|,|$)"  # where a name stands in a text

_names: dict[str, str] = {}  # parts of names that break lines, escaped
_blanks: dict[re.Pattern[str], str] = {}  # names of white space alone, quoted


class _Escapes(dict[int, str]):
    """What each character is shown as, by its number."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_control = unicodedata.category(character) in _CONTROLS
        self[code] = character.encode("unicode_escape").decode() if is_control else character
        return self[code]


_ESCAPES = _Escapes({ord("\n"): "\n", ord("\t"): "\t"})
_ESCAPES_OF_NAMES = _Escapes()


def note_names(words: Iterable[str]) -> None:
    """Have line breaks escaped in these words, and in parts of them, wherever they are printed.

    Parts of white space alone are quoted where a name stands: at the start of a line, after "=" or "wrote".
    """
    for word in words:
        for part in (word, *_PARTS.split(word)):
            if part.isspace():
                _blanks[re.compile(_BLANK.format(re.escape(part)))] = f"'{part.translate(_ESCAPES_OF_NAMES)}'"
            elif part and (shown := part.translate(_ESCAPES_OF_NAMES)) != part:
                _names[part] = shown


def escaped(text: str) -> str:
    r"""Return a text to be printed: ``\x1b`` in place of a control character, lines and tabs as they are."""
    for pattern, quoted in _blanks.items():
        text = pattern.sub(lambda found, quoted=quoted: found[1] + quoted, text)  # type: ignore[misc]
    for name in sorted(_names, key=len, reverse=True):
        text = text.replace(name, _names[name])
    return text.translate(_ESCAPES) if _SUSPECT.search(text) else text
