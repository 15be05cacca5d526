"""``warpsim explore``: write the layouts of all forms to one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from .options import MnemonicOrNone, NeededOut
from .output import deliver, perform
from .verbs import Option, verb

if TYPE_CHECKING:
    from ..report.explorer import Explorer


@verb
def explore(
    mnemonic: MnemonicOrNone = None,
    *,
    out: Annotated[NeededOut, Option(metavar="FILE.html"), "Where to write the page."] = Path(
        "explorer.html"
    ),
) -> int:
    """Write a page with the layouts of every form of every target: one HTML file that loads nothing.

    B above D and A beside it, metadata, scales and shared tiles, from element to lane and back; PTX, CuTe
    layouts and C code to copy; figures as text, CSV, Markdown and LaTeX. It opens at MNEMONIC.
    """
    made = perform(_explorer, Path("MNEMONIC"), mnemonic)
    perform(made.save, out)
    size = out.stat().st_size
    document = {"page": out.as_posix(), "bytes": size, "forms": made.forms, "opens_at": made.form}
    return deliver(document, f"{out.as_posix()}: {made.forms:,} forms, {size / 1e6:.1f} MB")


def _explorer(_: Path, mnemonic: str | None) -> Explorer:
    from ..report.explorer import explore as explorer_of

    return explorer_of(mnemonic) if mnemonic else explorer_of()
