"""What must be the same on two machines for bits to be the same: versions, and this package's source.

Knows nothing of how machines talk to each other.
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
    """The version of everything that bits could depend on, as this process has loaded it."""
    return {
        "warpsim": f"{__version__} (source {_source_digest()})",
        "numpy": np.__version__,
        "ml_dtypes": ml_dtypes.__version__,
    }


def _source_digest() -> str:
    """A digest of the package's source: two checkouts may well call themselves the same version."""
    root = Path(__file__).parent.parent
    digest = sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        digest.update("/".join(path.relative_to(root).parts).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
