"""Limits of a kernel that ptxas holds: bytes of parameters, and numbers of directives."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import warpsim
from tests.helpers import ptxas

KERNEL = """\
.version {version}
.target {target}
.address_size 64
.visible .entry k({parameters}) {directives}
{{
  ret;
}}
"""
ARRAY = ".param .align 4 .b8 a[{}]"
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120a")
# PTX version, parameters, directives; what is wrong with them, if anything is. As ptxas 13.0 judges.
CASES = [
    *(
        ("8.0", ARRAY.format(4352), "", ""),
        ("8.0", ARRAY.format(4353), "", "4353 bytes of parameters: at most 4352"),
    ),
    *(
        ("9.0", ARRAY.format(32764), "", ""),
        ("9.0", ARRAY.format(32765), "", "32765 bytes of parameters: at most 32764"),
    ),
    ("9.0", f"{ARRAY.format(32755)}, .param .u64 c", "", "32768 bytes of parameters: at most 32764"),
    ("9.0", f"{ARRAY.format(32752)}, .param .u64 c", "", ""),
    *(
        ("9.0", "", directive, "")
        for directive in (".reqntid 1025", ".maxnreg 256", ".maxntid 128 .minnctapersm 33")
    ),
    *(
        ("9.0", "", f".{name} {numbers}", f".{name} {numbers}: each number is at least 1")
        for name, numbers in (("reqntid", "8,0"), ("maxntid", "0"), ("maxnreg", "0"), ("minnctapersm", "0"))
    ),
]


def cases() -> list[tuple[str, str, str, str, str]]:
    """Every case on every target that the PTX version knows."""
    early = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_90a")
    return [(target, *case) for target in TARGETS for case in CASES if case[0] == "9.0" or target in early]


@pytest.mark.parametrize(("target", "version", "parameters", "directives", "wrong"), cases())
def test_what_a_kernel_may_have(
    target: str, version: str, parameters: str, directives: str, wrong: str
) -> None:
    text = KERNEL.format(version=version, target=target, parameters=parameters, directives=directives)
    problems = warpsim.load(text).problems
    assert len(problems) == bool(wrong)
    for problem in problems:
        assert wrong in problem.message
        assert "parameters" not in wrong or f"on {target} with PTX {version}" in problem.message


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize(("target", "version", "parameters", "directives", "wrong"), cases())
def test_ptxas_says_so(
    target: str, version: str, parameters: str, directives: str, wrong: str, tmp_path: Path
) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        KERNEL.format(version=version, target=target, parameters=parameters, directives=directives)
    )
    command = [ptxas.program(), f"-arch={target}", "-o", str(tmp_path / "k.cubin"), str(path)]
    assert bool(subprocess.run(command, capture_output=True, check=False).returncode) == bool(wrong)
