"""Captures golden vectors on a GPU: ``python -m tools.capture --help``.

Exit codes: 0 done, 1 a bit differs from the model (with --verify) or a set failed, 2 usage, 3 a file that
cannot be read, 4 no GPU, or a package is missing.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

_NEEDED = ("numpy", "ml_dtypes")


def main() -> int:
    """Report what is missing before anything needs it."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing and "-h" not in sys.argv and "--help" not in sys.argv:
        print(
            f"cannot capture: Python package {', '.join(missing)} is missing here. Either install it, or "
            f"write a bundle on a computer that has it (--emit DIR --target sm_90a --everything) and run "
            f"that here: it needs NumPy only",
            file=sys.stderr,
        )
        return 4
    from .command import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
