"""What check says of kernels with wgmma, and what ptxas 13.0 says: they warn of the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ptxas
from tests.helpers.kernel_cases import FOLDER
from warpsim.programs.launch.launching import load_text
from warpsim.workbench.diagnosis.linting.pipelines import pipeline_findings

TEXT = (FOLDER / "warpgroup_tiles.ptx").read_text()
TEXT = TEXT[: TEXT.index("\t// .globl\twarpgroup_sparse_f16")]  # one kernel is enough, and faster
ORDERS = list(re.finditer(r"(?:wgmma\.(?:fence|commit|wait)|fence\.proxy|bar\.sync)[^;]*;", TEXT))
SAID = {"in-flight": {"C7514", "C7515", "C7517"}, "fence": {"C7519"}}


def warned(text: str, folder: Path) -> set[str]:
    """The numbers of ptxas's warnings about wgmma."""
    (folder / "module.ptx").write_text(text)
    command = [str(ptxas.program()), "-arch=sm_90a", "module.ptx", "-o", "module.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return set(re.findall(r"C75\d\d", done.stderr + done.stdout))


@pytest.mark.skipif(bool(ptxas.missing_first()), reason=ptxas.missing_first() or "ptxas is there")
@pytest.mark.parametrize(
    "place", [None, *ORDERS], ids=lambda one: "intact" if one is None else str(one.start())
)
def test_what_is_missing_is_what_ptxas_warns_of(place: re.Match[str] | None, tmp_path: Path) -> None:
    text = TEXT if place is None else TEXT[: place.start()] + TEXT[place.end() :]
    rules = {one.rule for one in pipeline_findings(load_text(text).module.program)}
    numbers = warned(text, tmp_path)
    assert all(SAID[rule] & numbers for rule in rules)
    assert all(any(one in SAID[rule] for rule in rules) for one in numbers)
