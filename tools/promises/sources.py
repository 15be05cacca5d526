"""Where figures come from, one row a figure: pages that tools have written, and commands.

Pages are read each time; commands run when they are asked for. A page that is not there has no figures.
"""

from __future__ import annotations

from dataclasses import dataclass

from .readings import Reading, sentence, sums, total

_TARGETS = ("--targets", "sm_80", "sm_90a", "sm_100a", "sm_120a")
_LEGALITY = ("tried", "accepted", "explained", "unexplained")
_OPCODES = ("statements", "explained", "false accepts", "false rejects")
_RELEASES = ("statements", "legal", "explained", "false accepts", "false rejects")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A figure by its name, from a page (a path from the root) or a command (what follows ``python -m``)."""

    name: str
    read: Reading
    page: str = ""
    command: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """What the page of promises says of it."""
        return self.page or " ".join(("python -m", *self.command))


SOURCES = (
    Source(name="changed pipelines", page="tools/pipeline_changes/outcomes.md", read=total("all")),
    Source(
        name="schedules",
        page="tools/pipeline_changes/outcomes.md",
        read=sentence(r"Intact ones: ([^:;]*?: [^;]*?the same bits)"),
    ),
    Source(name="mistakes", page="tools/user_mistakes/outcomes.md", read=sentence(r"\bAfter: ([^.]+)\.")),
    Source(
        name="faults on every pair of types",
        page="tools/mutants/outcomes.md",
        read=sentence(r"(\d[\d,]* faults, [^.]*?survive)"),
    ),
    Source(
        name="mutants of the code",
        page="tools/code_mutants/outcomes.md",
        read=sentence(r"\*\*(\d+ injected: [^*]*)\*\*"),
    ),
    Source(
        name="legality under releases",
        page="tools/legality/README.md",
        read=sums(*_RELEASES, markdown=True, of="releases of ptxas"),
    ),
    Source(name="faults", command=("tools.mutants",), read=sentence(r"(\d+ of \d+ faults caught)")),
    Source(
        name="legality",
        command=("tools.legality", *_TARGETS),
        read=sums(*_LEGALITY, of="targets"),
    ),
    Source(
        name="legality of opcodes",
        command=("tools.legality.opcodes", "--count", "100", *_TARGETS[:3]),
        read=sums(*_OPCODES, of="opcodes on targets"),
    ),
    Source(
        name="soak",
        command=("tools.soak", "--dots", "2000"),
        read=sentence(
            r"total +(\d+ rules with formats) +([\d,]+) +([\d,]+)", "{0}: {1} dot products, {2} differences"
        ),
    ),
    Source(
        name="paths",
        command=("tools.fuzz", "--differential", "--seconds", "300"),
        read=sentence(r"(\d+ cases \([^)]*\), \d+ finds)"),
    ),
    Source(
        name="fuzzing",
        command=("tools.fuzz", "--seconds", "60"),
        read=sentence(r"(\d+ cases, \d+ finds)"),
    ),
)
