"""Numbers and matrices in the notation of other programs, in the notation of C and as lines of rows.

LaTeX's matrices, Fortran's and Mathematica's exponents, decimal commas, minus signs of documents. Does not
know what the numbers are.
"""

from __future__ import annotations

import re

_LATEX = re.compile(
    r"\\begin\s{0,8}\{(?:[bBpvV]?matrix|smallmatrix|array|tabular)\*?\}(?:\s{0,8}\{[^{}]{0,99}\})?",
    re.IGNORECASE,
)
_LATEX_END = re.compile(r"\\end\s{0,8}\{")
_LATEX_ROW = re.compile(r"\\\\(?:\s{0,8}\[[^\]]{0,40}\])?")
_LATEX_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule|cline\{[^{}]{0,40}\})")
_LATEX_POWER = re.compile(
    r"\s{0,8}\\(?:times|cdot)\s{0,8}10\s{0,8}\^\s{0,8}\{?\s{0,8}([+-]?\d{1,4})\s{0,8}\}?"
)
_FORTRAN = re.compile(r"(?<![\w.])(\d{0,40}\.\d{0,40})[dD]([+-]?\d{1,3})(?![\w.])")  # no hexadecimal word
_COMMA = re.compile(r"[+-]?\d{1,40},\d{1,40}(?:[eE][+-]?\d{1,4})?")
_GRID = re.compile(r"^[ \t]{0,8}\+[-=+]++[ \t]{0,8}$\n?", re.MULTILINE)  # lines between rows of tables
_INTEGER = re.compile(r"[+-]?\d{1,40}")


def in_plain_notation(text: str, columns: int) -> str:
    """Return a text with the same numbers in the notation of C; LaTeX's matrices as lines of rows.

    Lines with so many ``columns`` between semicolons or tabs may have decimal commas.
    """
    text = text.replace("\u2212", "-").replace("*^", "e")
    if _LATEX.search(text):
        text = _latex_rows(text)
    text = _GRID.sub("", text)
    if "0x" not in text.lower() and "." in text:
        text = _FORTRAN.sub(r"\1e\2", text)
    return _with_points(text, columns)


def _latex_rows(text: str) -> str:
    """Return the rows of the first matrix."""
    start = _LATEX.search(text)
    if start is None:
        return text
    end = _LATEX_END.search(text, start.end())
    body = text[start.end() : end.start() if end else len(text)]
    body = _LATEX_POWER.sub(r"e\1", _LATEX_RULES.sub("", body)).replace("\\,", "").replace("$", "")
    rows = (row.replace("&", " ").split() for row in _LATEX_ROW.split(body))
    return "\n".join(" ".join(row) for row in rows if row)


def _with_points(text: str, columns: int) -> str:
    """Return decimal points for commas, where every cell between semicolons or tabs has at most one comma."""
    if "." in text or "," not in text or not re.search(r"[;\t]", text):
        return text
    cells = [cell.strip() for cell in re.split(r"[;\t\n]", text) if cell.strip()]
    fitting = [bool(_COMMA.fullmatch(cell) or _INTEGER.fullmatch(cell)) for cell in cells]
    if not cells or not all(fitting) or not any("," in cell for cell in cells):
        return text
    lines = [re.split(r"[;\t]", line.strip().rstrip(";")) for line in text.splitlines() if line.strip()]
    if any(len(line) != columns for line in lines):
        return text
    return "\n".join(" ".join(cell.strip().replace(",", ".") for cell in line) for line in lines)
