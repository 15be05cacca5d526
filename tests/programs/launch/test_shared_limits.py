"""Shared memory that a chip has: declared, asked for, and left."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import warpsim
from tests.helpers import ptxas

KERNEL = """\
.version 9.0
.target {target}
.address_size 64
.extern .shared .align 16 .b8 stages[];
.visible .entry k(.param .u64 out)
{{
  .shared .b8 tile[{size}];
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  mov.u32 %r0, tile; st.shared.u32 [%r0], %r0;
  ret;
}}
"""
STATIC = [  # target, the most bytes that ptxas 13.5 lets a kernel declare
    *((target, 49152) for target in ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_100f", "sm_120")),
    *((target, 232448) for target in ("sm_90a", "sm_100a", "sm_103a", "sm_110a")),
    *((target, 101376) for target in ("sm_120a", "sm_121a")),
]


@pytest.mark.parametrize(("target", "most"), STATIC)
def test_what_a_kernel_may_declare(target: str, most: int) -> None:
    assert not warpsim.load(KERNEL.format(target=target, size=most)).problems
    module = warpsim.load(KERNEL.format(target=target, size=most + 1))
    with pytest.raises(warpsim.IllegalInstruction) as caught:
        module["k"](1, 1, [np.zeros(1, np.uint32)])
    assert f"bytes of shared memory: at most {most} on {target}; declare it .extern" in caught.value.message
    assert [problem.message for problem in module.problems] == [caught.value.message]


@pytest.mark.parametrize("size", [49168, 4 << 20])
def test_too_much_is_downgraded_as_other_findings_are(size: int) -> None:
    """Also what no chip has; but not what is asked for at the launch."""
    kernel = warpsim.load(KERNEL.format(target="sm_80", size=size))["k"]
    arguments = [np.zeros(1, np.uint32)]
    (finding,) = kernel(1, 1, arguments, checks="warn").hazards
    assert (finding.kind, finding.severity) == ("shared memory", "error")
    assert finding.message == (
        f"k declares {size} bytes of shared memory: at most 49152 on sm_80; declare it .extern, with its "
        "size given at the launch, for more"
    )
    assert kernel(1, 1, arguments, checks="off").hazards == ()
    with pytest.raises(warpsim.OperandError, match=r"a CTA on sm_80 has at most 166912"):
        kernel(1, 1, arguments, checks="warn", shared_bytes=166912)


@pytest.mark.skipif(bool(ptxas.missing()), reason=ptxas.missing() or "ptxas is there")
@pytest.mark.parametrize(("target", "most"), STATIC)
def test_ptxas_says_the_same(target: str, most: int, tmp_path: Path) -> None:
    for size, taken in ((most, True), (most + 1, False)):
        path = tmp_path / "k.ptx"
        path.write_text(KERNEL.format(target=target, size=size))
        command = [ptxas.program(), f"-arch={target}", "-o", str(tmp_path / "k.cubin"), str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert (done.returncode == 0) == taken


@pytest.mark.parametrize(
    ("target", "most"), [("sm_75", 65536), ("sm_80", 166912), ("sm_86", 101376), ("sm_90a", 232448)]
)
def test_what_a_launch_may_ask_for(target: str, most: int) -> None:
    kernel = warpsim.load(KERNEL.format(target=target, size=1024))["k"]
    arguments = [np.zeros(1, np.uint32)]
    kernel(1, 1, arguments, shared_bytes=most - 1024)
    with pytest.raises(warpsim.OperandError) as caught:
        kernel(1, 1, arguments, shared_bytes=most - 1023)
    parts = f"1024 static, {most - 1023} dynamic"
    limit = f"a CTA on {target} has at most {most}"
    assert caught.value.message == f"{most + 1} bytes of shared memory ({parts}): {limit}"


def test_dynamic_shared_memory_that_is_not_given() -> None:
    text = KERNEL.format(target="sm_80", size=16).replace("mov.u32 %r0, tile", "mov.u32 %r0, stages")
    with pytest.raises(warpsim.Fault) as caught:
        warpsim.load(text)["k"](1, 1, [np.zeros(1, np.uint32)])
    assert caught.value.message == (
        "st.shared.u32: address 0x10 leaves shared memory of 16 bytes; the kernel declares dynamic "
        "shared memory (stages), and this launch gives none: pass its size as shared_bytes, or --shared "
        "[CTA (0, 0, 0), warp 0, lane 0]"
    )
    warpsim.load(text)["k"](1, 1, [np.zeros(1, np.uint32)], shared_bytes=4)
