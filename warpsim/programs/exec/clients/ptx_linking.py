"""PTX texts joined to a single text, as a linker of machine code joins objects: declarations before bodies.

    .extern     goes where another text has the definition
    .weak       the first definition stays
    static      names that several texts have get the number of their text: name__link2
    .file       numbers of files, and labels of their debug sections, go on from text to text

Knows the text of declarations; does not know statements of functions, or what is linked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

_SKIPPED = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"'
_TOKEN = re.compile(rf"{_SKIPPED}|[{{}};]|\n|[^\s\"/{{}};]+|\s|/", re.DOTALL)
_ONCE = (".version", ".target", ".address_size")  # lines of the header
_LINES = (".file", *_ONCE)  # what ends with its line
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\b")
_FUNCTION = re.compile(r"\.(?:func|entry)\s+(?:\((?P<returned>[^)]*)\)\s*)?(?P<name>[\w$%]+)")
_VARIABLE = re.compile(r"\.(?:global|const|shared|local)\b[^=;]*?(?P<name>[\w$%]+)\s*(?:\[[^=;]*)?(?:=|;|$)")
_FILE = re.compile(r"^(\s*\.file\s+)(\d+)", re.MULTILINE)
_LOC = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)")
_DEBUG_LABEL = re.compile(r"\$L__(?:info_string|debug_)\w+")  # of sections, which all texts have
_NUMBER, _OWN_FEATURES = re.compile(r"\d+"), re.compile(r"sm_\d+[af]")
_WORD = re.compile(r"[\w$%]+")


@dataclass(frozen=True)
class Piece:
    """A declaration of a module: ``linkage`` is empty for what only its own text sees."""

    text: str
    name: str = ""
    linkage: str = ""
    function: bool = False

    @property
    def body(self) -> bool:
        """Whether it is a function with statements."""
        return self.function and self.text.rstrip().endswith("}")

    @property
    def prototype(self) -> str:
        """The declaration of a function without what it does."""
        return f"{self.text[: self.text.index('{')].rstrip()};"


def linked(given: Sequence[str], more: Iterable[str] = ()) -> str:
    """Return PTX texts as a single text, with the highest version and target; ``more`` have no header."""
    texts = [*given, *more]
    if len(texts) < 2:
        return "".join(texts)
    files = 0
    parts = list[list[Piece]]()
    for number, text in enumerate(texts):
        highest = max((int(file) for _, file in _FILE.findall(text)), default=0)
        parts.append(list(pieces(_number_names(text, number, files))))
        files += highest
    return "\n".join([*_header(given), *_chosen(_own_names(parts))]) + "\n"


def _header(texts: Sequence[str]) -> Iterator[str]:
    """Yield the highest version and target of the texts: several compilers have written them."""
    lines = [line for text in texts for line in text.splitlines()]
    for name in _ONCE:
        given = [line for line in lines if line.lstrip().startswith(name)]
        if given:
            yield max(given, key=_rank)


def _rank(line: str) -> tuple[list[int], bool]:
    """Return the numbers of a line of the header, and whether it is for a chip alone, as sm_90a."""
    return [int(number) for number in _NUMBER.findall(line)], _OWN_FEATURES.search(line) is not None


def _number_names(text: str, number: int, files: int) -> str:
    """Return a text whose files are counted on, and whose labels of debug sections are its own."""
    if not number:
        return text

    def moved(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) + files}"

    text = _LOC.sub(moved, _FILE.sub(moved, text))
    return _DEBUG_LABEL.sub(lambda found: f"{found[0]}__link{number + 1}", text)


def pieces(text: str) -> Iterator[Piece]:
    """Yield the declarations of a text in order."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        depth += (word == "{") - (word == "}")
        if token.start() == start and (word.isspace() or word.startswith(("//", "/*"))):
            start = token.end()  # before a declaration
        if depth or word not in (";", "}", "\n"):
            continue
        head = text[start : token.end()]
        if word == "\n" and not head.lstrip().startswith(_LINES):
            continue
        if word == "}" and "=" in head.partition("{")[0]:
            continue  # the values of a variable, which ends with ";"
        piece = _piece(head)
        if piece is not None:
            yield piece
        start = token.end()


def _piece(text: str) -> Piece | None:
    """Return a declaration; None for what stands once, in the header."""
    plain = re.sub(_SKIPPED, lambda found: found[0] if found[0][0] == '"' else " ", text, flags=re.DOTALL)
    if plain.lstrip().startswith(_ONCE) or not plain.strip("; \t\n"):
        return None
    head = plain.partition("{")[0]
    linkage = _LINKAGE.search(head)
    found = _FUNCTION.search(head)
    if found is not None:
        return Piece(text.strip(), found["name"], linkage[1] if linkage else "", function=True)
    found = _VARIABLE.search(head)
    return Piece(text.strip(), found["name"] if found else "", linkage[1] if linkage else "")


def _own_names(parts: list[list[Piece]]) -> list[list[Piece]]:
    """Return declarations whose static names are different in each text."""
    renamed = list[list[Piece]]()
    taken = set[str]()
    for number, part in enumerate(parts):
        names = {piece.name for piece in part if piece.name}
        clashing = {piece.name for piece in part if piece.name and not piece.linkage} & taken
        taken |= names
        renamed.append([_rename(piece, clashing, number + 1) for piece in part] if clashing else part)
    return renamed


def _rename(piece: Piece, names: set[str], number: int) -> Piece:
    def changed(found: re.Match[str]) -> str:
        return f"{found[0]}__link{number}" if found[0] in names else found[0]

    return replace(piece, text=_WORD.sub(changed, piece.text), name=_WORD.sub(changed, piece.name))


def _chosen(parts: list[list[Piece]]) -> Iterator[str]:
    """Yield declarations that stay: files, prototypes, variables, functions."""
    everything = [piece for part in parts for piece in part]
    bodies = dict[str, Piece]()
    variables = dict[str, Piece]()
    others = list[Piece]()
    for piece in everything:
        if piece.body:
            bodies.setdefault(piece.name, piece)
        elif piece.name and not piece.function:
            known = variables.get(piece.name)
            if known is None or known.linkage == "extern":
                variables[piece.name] = piece
        else:
            others.append(piece)
    yield from (piece.text for piece in others if not piece.function)
    declared = dict.fromkeys(piece.name for piece in others if piece.function)
    prototypes = {piece.name: piece.text for piece in others if piece.function}
    for name in declared:
        yield bodies[name].prototype if name in bodies else prototypes[name]
    yield from (piece.text for piece in variables.values())
    yield from (piece.text for piece in bodies.values())
