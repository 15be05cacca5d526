"""``warpsim warmup``: compile all kernels ahead of their use."""

from __future__ import annotations

import click

from .options import json_option
from .output import CONTEXT, EXPECTED, check_target, print_json, say
from .progress import watching


@click.command(context_settings=CONTEXT)
@click.option("--target", metavar="SM", callback=check_target, help="Only what this chip needs.")
@json_option
def warmup(target: str | None, as_json: bool) -> int:
    """Compile every kernel and leave it in the cache, so that nothing later waits for it.

    The cache is where NUMBA_CACHE_DIR says, beside the installed package or, where that cannot be written, in
    the user's cache.
    """
    from ...sums.products.warming import warmup as compile_all

    with watching("compiling") as progress:
        count = compile_all(target, progress)
    if as_json:
        print_json({"target": target, "kernels": count})
    else:
        say(f"{count} kernels are compiled" if count else "there is no JIT: nothing to compile")
    return EXPECTED
