"""``warpsim warmup``: compile all kernels ahead of their use."""

from __future__ import annotations

from typing import Annotated

from .options import Target
from .output import deliver
from .progress import watching
from .verbs import verb


@verb
def warmup(*, target: Annotated[Target, "Only what this chip needs."]) -> int:
    """Compile every kernel and leave it in the cache, so that nothing later waits for it.

    The cache is where NUMBA_CACHE_DIR says, beside the installed package or, where that cannot be written, in
    the user's cache.
    """
    from ...sums.products.warming import warmup as compile_all

    with watching("compiling") as progress:
        count = compile_all(target, progress)
    line = f"{count} kernels are compiled" if count else "there is no JIT: nothing to compile"
    return deliver({"target": target, "kernels": count}, line)
