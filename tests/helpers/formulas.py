"""Small kernels whose formula a test compares with a NumPy function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpsim.observe.algebra.equivalence import Equivalence
from warpsim.programs.launch.launching import LaunchableKernel, load_text
from warpsim.programs.launch.reference_runs import Run, equivalence_of
from warpsim.workbench.diagnosis.verdicts.repeated_launch import RepeatedLaunch

_TEXT = """
.version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)
{{
 .reg .pred %p, %q; .reg .u64 %x, %y, %o; .reg .u32 %n; .reg .{kind} %a, %b, %c, %d, %t;
 .reg .b32 %i; .reg .b16 %h, %g; .reg .f32 %f;
 mov.u32 %n, %tid.x; mul.wide.u32 %o, %n, 4; setp.lt.u32 %q, %n, 1024;
 ld.param.u64 %x, [pa]; add.u64 %x, %x, %o; ld.global.{kind} %a, [%x];
 ld.param.u64 %x, [pb]; add.u64 %x, %x, %o; ld.global.{kind} %b, [%x];
 ld.param.u64 %x, [pc]; add.u64 %x, %x, %o; ld.global.{kind} %c, [%x];
 {statements}
 ld.param.u64 %y, [pd]; add.u64 %y, %y, %o; st.global.{kind} [%y], %d;
 ret;
}}
"""


def kernel_of(statements: str, kind: str, target: str) -> LaunchableKernel:
    """Return a kernel d[i] = f(a[i], b[i], c[i]) of 64 threads, from registers %a, %b, %c to %d."""
    return load_text(_TEXT.format(target=target, kind=kind, statements=statements))["k"]


def repeatable(
    kernel: LaunchableKernel, arguments: Sequence[Any], sizes: Mapping[str, Any] | None = None
) -> RepeatedLaunch:
    """Return a launch of a kernel that can be executed again, of one CTA of 64 threads where none is said."""
    chosen = {"grid": 1, "block": 64} if sizes is None else sizes
    return RepeatedLaunch(kernel=kernel, sizes=chosen, args=arguments, options={}, before={})


def compared(
    kernel: LaunchableKernel, arrays: Sequence[Any], function: Callable[..., Any], **options: Any
) -> Equivalence:
    """Return whether a kernel computes a function of all its arrays but the last."""

    def reference(*given: Any) -> Any:
        return {len(given) - 1: function(*given[:-1])}

    run: Run = equivalence_of(repeatable(kernel, arrays), reference, **options)
    return run.equivalence


__all__ = ["compared", "kernel_of", "np", "repeatable"]
