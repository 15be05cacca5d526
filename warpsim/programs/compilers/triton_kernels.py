"""Kernels of Triton: compiled by Triton itself to PTX, and run here on arrays in main memory.

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    warpsim.launch_triton(add, (n // 256,), [x, y, out, n], {"BLOCK": 256})

Knows what Triton's launcher adds: threads, shared memory, scratch memory behind the last argument, and CTAs:
a program of ``num_ctas`` is a cluster. Triton is imported when a kernel is compiled; it finds ptxas in its
own package, and needs neither GPU nor driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...base.environment import in_default_environment
from ...base.errors import NotModelled, OperandError
from ...isa.warps import WARP
from ..launch.launching import LaunchableKernel, LaunchReport, load_text
from .signatures import Signature, signature_of

Grid = int | Sequence[int] | Callable[[dict[str, Any]], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class TritonKernel:
    """A compiled kernel: its text, threads (``block``), bytes of shared and of scratch memory, constants.

    ``cluster`` has the CTAs of a program along each dimension of the grid, or is None for a single CTA.
    ``arguments`` are those of the compiled call, without those that were compiled in.
    """

    name: str
    ptx: str
    target: str
    block: int
    shared_bytes: int
    scratch: tuple[int, ...]
    constants: Mapping[str, Any]
    arguments: Sequence[Any]
    cluster: tuple[int, int, int] | None = None

    def kernel(self) -> LaunchableKernel:
        """Return the kernel, ready to launch."""
        return _loaded(self.ptx, self.name)


@lru_cache(maxsize=64)
def _loaded(ptx: str, name: str) -> LaunchableKernel:
    return load_text(ptx, f"{name}.ptx")[name]  # for the target of the text: Triton turns 90 into sm_90a


@in_default_environment
def compile_triton(
    function: Any,
    args: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    *,
    target: str = "sm_80",
    num_warps: int = 4,
    specialise: bool = True,
    **options: Any,
) -> TritonKernel:
    """Return a ``@triton.jit`` function compiled for arguments of these types and, where Triton specialises,
    values.

    ``args`` are the arguments that are not ``tl.constexpr``, in order: arrays of NumPy or PyTorch (CPU),
    buffers, numbers, None. ``constants`` are the ``tl.constexpr`` arguments, by name. ``specialise`` compiles
    in the value 1 and multiples of 16, as Triton does. ``options`` are Triton's own: num_stages, maxnreg,
    enable_fp_fusion and so on. Raises OperandError for wrong arguments, and for an object that is not such a
    function.
    """
    jit = _function(function)
    signature = signature_of(jit.params, args, constants or {}, specialise=specialise)
    compiled = _compiled(
        jit, signature, target, {"num_warps": num_warps, "enable_fp_fusion": True, **options}
    )
    metadata = compiled.metadata
    return TritonKernel(
        name=metadata.name,
        ptx=compiled.asm["ptx"],
        target=target,
        block=WARP * int(metadata.num_warps),
        shared_bytes=int(metadata.shared),
        cluster=_cluster(metadata),
        scratch=tuple(int(getattr(metadata, f"{kind}_scratch_size", 0)) for kind in ("global", "profile")),
        constants=signature.constants,
        arguments=signature.arguments,
    )


def launch_triton(
    function: Any,
    grid: Grid,
    args: Sequence[Any],
    constants: Mapping[str, Any] | None = None,
    *,
    target: str = "sm_80",
    num_warps: int = 4,
    specialise: bool = True,
    launch: Mapping[str, Any] | None = None,
    **options: Any,
) -> LaunchReport:
    """Run a ``@triton.jit`` function on every program of a grid; arrays are written back in place.

    ``grid`` is one to three integers, or, as in Triton, a function of the constants. ``launch`` are keywords
    of a launch (checks, record, schedule, device and so on); the others are compile_triton's. Raises what
    compiling and launching raise.
    """
    compiled = compile_triton(
        function, args, constants, target=target, num_warps=num_warps, specialise=specialise, **options
    )
    size = grid(dict(compiled.constants)) if callable(grid) else grid
    kernel = compiled.kernel()
    if compiled.cluster is not None:
        size = _in_ctas(size, compiled.cluster)
    ctas = int(np.prod(np.atleast_1d(np.asarray(size))))
    given = [*compiled.arguments, *_scratch(compiled, len(kernel.parameters), ctas)]
    keywords = {"cluster": compiled.cluster, **(launch or {})}
    return kernel(size, compiled.block, given, compiled.shared_bytes, **keywords)


def _cluster(metadata: Any) -> tuple[int, int, int] | None:
    """Return the CTAs of a program; Triton up to 3.5 arranges them itself, later versions in a row."""
    count = int(getattr(metadata, "num_ctas", 1))
    if count == 1:
        return None
    x, y, z = (int(item) for item in getattr(metadata, "cluster_dims", (count, 1, 1)))
    return (x, y, z) if x * y * z == count else (count, 1, 1)


def _in_ctas(programs: int | Sequence[int], cluster: tuple[int, int, int]) -> tuple[int, ...]:
    """Return the grid of CTAs for a grid of programs; an invalid grid is returned as it is, for the launch to
    reject.
    """
    given = (programs,) if isinstance(programs, int | np.integer) else tuple(programs)
    sizes = (*given, 1, 1, 1)[: max(len(given), 3)]
    return tuple(size * by for size, by in zip(sizes, (*cluster, 1), strict=False))


def _function(function: Any) -> Any:
    """Return the JITFunction itself; raises OperandError for Triton's wrappers around it."""
    if hasattr(function, "params") and hasattr(function, "arg_names") and not hasattr(function, "configs"):
        return function
    if hasattr(function, "fn"):
        kind = type(function).__name__
        raise OperandError(f"{kind} chooses constants by measuring: give its .fn, and the constants yourself")
    raise OperandError(f"{function!r} is not a function under @triton.jit")


def _compiled(jit: Any, signature: Signature, target: str, options: dict[str, Any]) -> Any:
    """Return Triton's compiled kernel."""
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise OperandError(f"Triton is needed: pip install 'warpsim[triton]' ({error})") from None
    number = int("".join(filter(str.isdecimal, target)))
    source = ASTSource(jit, signature.types, signature.constants, signature.attributes)
    return triton.compile(source, target=GPUTarget("cuda", number, WARP), options=options)


def _scratch(compiled: TritonKernel, parameters: int, ctas: int) -> list[Any]:
    """Return arguments behind those of the function: scratch memory, then the
    profiler's; null where unused.
    """
    more = parameters - len(compiled.arguments)
    if not 0 <= more <= len(compiled.scratch):
        raise NotModelled(
            f"{compiled.name} has {more} parameters more than the function: their meaning is unknown"
        )
    return [np.zeros(size * ctas, np.uint8) if size else None for size in compiled.scratch[:more]]
