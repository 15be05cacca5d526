"""How much a recording has, and the SHA-256 of its manifest: no part of a file passes for the whole.

Knows counts and a digest; does not know what the other keys of the manifest mean. The arrays have their own
SHA-256 in the manifest, so that its digest stands for them, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ....base.errors import TraceError
from ....observe.recording.recorder import LaunchEvent

COUNTS = ("events", "words")
DIGEST = "sha256"
KEYS = (*COUNTS, DIGEST)


def sealed(document: Mapping[str, Any], events: Sequence[LaunchEvent]) -> dict[str, Any]:
    """Return the manifest with the counts of what it describes, and its digest."""
    counted = {**document, **_counts(events)}
    return {**counted, DIGEST: _digest(counted)}


def check_seal(document: Mapping[str, Any], events: Sequence[LaunchEvent]) -> None:
    """Raise TraceError unless a manifest has the counts of these events, and its own digest."""
    for name, count in _counts(events).items():
        if document[name] != count:
            raise TraceError(
                f"the manifest says {document[name]!r} {name}, but the file has {count:,}: "
                "it is not the whole recording"
            )
    without = {name: value for name, value in document.items() if name != DIGEST}
    if document[DIGEST] != _digest(without):
        raise TraceError(
            f"the manifest has SHA-256 {_digest(without)}, but says {document[DIGEST]!r}: it was changed"
        )


def _counts(events: Sequence[LaunchEvent]) -> dict[str, int]:
    """Return the number of executions, and of words of D."""
    return dict(zip(COUNTS, (len(events), sum(event.d.size for event in events)), strict=True))


def _digest(document: Mapping[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
