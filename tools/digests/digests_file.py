"""The committed digests: a line each, the digest and the name of the result.

Does not know how they are computed, nor what they are digests of.
"""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).with_name("digests.txt")
Digests = dict[str, str]


def committed(path: Path = PATH) -> Digests:
    """Return digests by name, as the file has them."""
    lines = (line.partition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, _, name in lines}


def write(digests: Digests, path: Path = PATH) -> None:
    """Replace the file."""
    lines = [f"{digest} {name}\n" for name, digest in digests.items()]
    path.write_text("".join(lines), encoding="utf-8")


def differences(found: Digests, expected: Digests) -> list[str]:
    """Return a line for each name that has another digest here, or none there."""
    return [
        f"{name}: {digest}, expected {expected.get(name, 'nothing of this name')}"
        for name, digest in found.items()
        if expected.get(name) != digest
    ]
