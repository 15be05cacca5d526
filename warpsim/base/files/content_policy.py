"""The Content-Security-Policy of pages of HTML: they run their own script, load nothing and send nothing.

Source: W3C, Content Security Policy Level 3, sections 3.3 (the meta element) and 6.7 (hashes of scripts).
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256


def content_policy(script: str) -> str:
    """Return the policy of a page whose one script element has exactly this text.

    Styles may stand in the page, for figures set colours of elements. Nothing else is allowed: no address, no
    frame, no form, no script that a text of the user brings in.
    """
    digest = b64encode(sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )
