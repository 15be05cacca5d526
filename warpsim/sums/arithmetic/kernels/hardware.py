"""Features of the CPU alone: its fused multiply-add, its rounding mode, and the rounding of single
instructions.

Where the CPU does not have the instruction, or the kernel is not compiled, ``has_*`` functions return False;
binary64 then computes the same bits in integers. Other roundings are set for a thread and restored; the
thread computes nothing else in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from ._jit import interpreted, kernel
from .llvm.vectors import I1, I32, cgutils, intrinsic, ir, types
from .scalar.binary64 import DOWN, NEAREST, TOWARD_ZERO, UP

_LLVM_ROUNDINGS = {TOWARD_ZERO: 0, NEAREST: 1, UP: 2, DOWN: 3}  # as llvm.set.rounding numbers them


def _has_instruction(context: Any) -> bool:
    """Return whether features name a fused multiply-add: every 64-bit ARM has it; on
    x86, a feature names it.
    """
    triple, _, features = context.codegen().magic_tuple()
    return triple.startswith(("aarch64", "arm64")) or "+fma" in features.split(",")


@intrinsic
def _compiled_with_fused(typing: Any) -> tuple[Any, Callable[..., Any]]:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return ir.Constant(I1, int(_has_instruction(context)))

    return types.boolean(), emit


def rounds_by_instruction(context: Any) -> bool:
    """Return whether the CPU's instructions can have a rounding of their own (AVX-512)."""
    return "+avx512f" in context.codegen().magic_tuple()[2].split(",")


@intrinsic
def _compiled_with_roundings(typing: Any) -> tuple[Any, Callable[..., Any]]:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return ir.Constant(I1, int(rounds_by_instruction(context)))

    return types.boolean(), emit


@intrinsic
def _llvm_set_rounding(typing: Any, mode: Any) -> tuple[Any, Callable[..., Any]]:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.set.rounding")
        builder.call(function, [builder.trunc(values[0], I32)])
        return context.get_dummy_value()

    return types.none(types.int64), emit


@kernel
def _asks_for_fused() -> bool:
    return bool(_compiled_with_fused())


@kernel
def _asks_for_roundings() -> bool:
    return bool(_compiled_with_roundings())


@kernel
def _set_rounding(mode: int) -> None:
    _llvm_set_rounding(mode)


@cache
def has_fused() -> bool:
    """Return whether the CPU that kernels are compiled for has a fused multiply-add."""
    return not interpreted() and bool(_asks_for_fused())


@cache
def has_roundings() -> bool:
    """Return whether the CPU that kernels are compiled for has instructions with a rounding of their own."""
    return not interpreted() and bool(_asks_for_roundings())


@contextmanager
def rounding(mode: int) -> Iterator[None]:
    """Round float operations of the block in a mode of binary64; afterwards to nearest again.

    Only for the call of a kernel, in the default environment.
    """
    if mode == NEAREST:
        yield
        return
    _set_rounding(_LLVM_ROUNDINGS[mode])
    try:
        yield
    finally:
        _set_rounding(_LLVM_ROUNDINGS[NEAREST])
