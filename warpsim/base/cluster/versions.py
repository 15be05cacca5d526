"""Facts that must be equal on two machines for equal bits: versions, and this package's source.

Does not know how machines talk to each other.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

import ml_dtypes
import numpy as np

from ..files.version import __version__


@cache
def versions() -> dict[str, str]:
    """Return the version of every library that bits could depend on, as this process has loaded it."""
    return {
        "warpsim": f"{__version__} (source {_source_digest()})",
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
    }


def _source_digest() -> str:
    """Return a digest of the package's source: two checkouts may have the same version number."""
    root = Path(__file__).parents[2]
    digest = sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        digest.update("/".join(path.relative_to(root).parts).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
