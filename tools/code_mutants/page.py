"""What became of the mutants, as a page: figures of each class, survivors, and what is no mutant at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .mutant import CLASSES, Mutant
from .trial import Verdict

_HEAD = """# One-line changes to warpsim's code, and whether its tests notice

Made by `python -m tools.code_mutants --json FILE --page`. {drawn} of the list's mutants were drawn evenly
over classes, modules and kinds of slip (`python -m tools.code_mutants.proposing`), {written} written by hand
where a developer would slip. *Equivalent* are those that no test can notice: they do not count as injected.

**{injected} injected: {killed} killed ({share:.1f} %), {live} survive**; {equivalent} more are equivalent.

"""


def page(mutants: Sequence[Mutant], verdicts: Sequence[Verdict]) -> str:
    """Return the whole page, of the mutants of a list that have verdicts."""
    same = [mutant for mutant in mutants if mutant.equivalent]
    killed = sum(verdict.killed for verdict in verdicts)
    by_hand = sum(mutant.what.startswith("by hand") for mutant in mutants)
    head = _HEAD.format(
        drawn=len(mutants) - by_hand,
        written=by_hand,
        injected=len(verdicts),
        killed=killed,
        share=100 * killed / max(len(verdicts), 1),
        live=len(verdicts) - killed,
        equivalent=len(same),
    )
    live = [verdict.mutant for verdict in verdicts if not verdict.killed]
    parts = [*_figures(verdicts, same), *_section("Survivors", live), *_section("Equivalent", same)]
    return head + "\n".join(parts) + "\n"


def _figures(verdicts: Sequence[Verdict], same: Iterable[Mutant]) -> Iterator[str]:
    """Yield a table of the classes."""
    yield "| class | injected | killed | survive | equivalent |"
    yield "|---|---:|---:|---:|---:|"
    equivalent = [item.kind for item in same]
    for kind in (*CLASSES, "all"):
        mine = [verdict for verdict in verdicts if kind in (verdict.mutant.kind, "all")]
        killed = sum(item.killed for item in mine)
        others = len(equivalent) if kind == "all" else equivalent.count(kind)
        yield f"| {kind} | {len(mine)} | {killed} | {len(mine) - killed or ''} | {others or ''} |"


def _section(title: str, mutants: Sequence[Mutant]) -> Iterator[str]:
    if mutants:
        yield from ("", f"## {title}", "")
    for mutant in mutants:
        yield f"- {mutant.file}: `{mutant.old}` → `{mutant.new}`: {mutant.explanation or 'not explained'}"
