"""Changed messages to what serves others: the debug adapter, and the server of host programs.

A session of the adapter ends with its stream open; its answers blame the message, and never warpsim. A server
answers the next visitor as before, and prints no traceback.
"""

from __future__ import annotations

import io
import json
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.show.debugger.small_kernel import session
from tools.dap_client import framed
from warpsim.programs.exec.messages import Channel, Gone
from warpsim.programs.exec.serving.remote import version
from warpsim.programs.exec.serving.server import Server
from warpsim.programs.exec.serving.visits import visit
from warpsim.programs.exec.settings import Settings
from warpsim.show.debugger.dap.adapter import Adapter

from .mutations import _json

_PATIENCE = 60.0  # seconds that an end may take
_REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("initialize", {"adapterID": "x", "linesStartAt1": True}),
    ("launch", {"stopOnEntry": True, "noDebug": False}),
    ("setBreakpoints", {"source": {"path": "k.ptx"}, "breakpoints": [{"line": 17, "condition": "%r1 == 1"}]}),
    ("setFunctionBreakpoints", {"breakpoints": [{"name": "twice", "hitCondition": "2"}]}),
    ("configurationDone", {}),
    ("threads", {}),
    ("stackTrace", {"threadId": 1, "startFrame": 0, "levels": 2}),
    ("scopes", {"frameId": 1}),
    ("variables", {"variablesReference": 1, "start": 0, "count": 3}),
    ("evaluate", {"expression": "%r1", "frameId": 1, "context": "watch"}),
    ("readMemory", {"memoryReference": "0x0", "offset": 0, "count": 16}),
    ("disassemble", {"memoryReference": "0x0", "instructionOffset": -1, "instructionCount": 4}),
    ("next", {"threadId": 1, "granularity": "instruction"}),
    ("stepBack", {"threadId": 1}),
    ("continue", {"threadId": 1}),
    ("pause", {"threadId": 1}),
    ("disconnect", {"restart": False}),
)


def try_messages(seed: str, seconds: float, most: int | None = None) -> int:
    """Try for a while; return 1 if anything was found."""
    stop, number, sent, finds = time.monotonic() + seconds, 0, 0, 0
    subjects: tuple[Callable[[Random], tuple[int, str]], ...] = (_adapter, _server)
    while time.monotonic() < stop and number != most:
        rng = Random(f"messages {seed} {number}")
        count, problem = subjects[number % 2](rng)
        sent += count
        if problem:
            finds += 1
            print(f"--- seed {seed}, case {number}: {problem[:1000]} ... {problem[-1000:]}", flush=True)
        number += 1
    print(f"{number} cases of {sent} messages, {finds} finds")
    return int(finds > 0)


def _changed(document: Any, rng: Random) -> bytes:
    content = json.dumps(document).encode()
    return _json(content, rng) if rng.random() < 0.5 else content


def _adapter(rng: Random) -> tuple[int, str]:
    """Return how many requests a session got, and what is wrong with its answers."""
    chosen = [*_REQUESTS[:2], *(rng.choice(_REQUESTS[2:-1]) for _ in range(rng.randint(0, 8))), _REQUESTS[-1]]
    requests = [
        {"seq": number, "type": "request", "command": command, "arguments": arguments}
        for number, (command, arguments) in enumerate(chosen, 1)
    ]
    messages = [framed(_changed(request, rng)) for request in requests]
    (there, here), sink = os.pipe(), io.BytesIO()
    with os.fdopen(there, "rb") as source, os.fdopen(here, "wb") as client:
        thread = threading.Thread(target=Adapter(source, sink, lambda given: session()).serve, daemon=True)
        thread.start()
        client.write(b"".join([*messages, framed(requests[-1])]))
        client.flush()
        thread.join(_PATIENCE)
        if thread.is_alive():
            return len(messages), f"the session does not end: {messages!r}"[:4000]
    said = sink.getvalue()
    blamed = b"a mistake of warpsim" in said or b"Traceback" in said
    return len(messages), f"{messages!r}: {said[-800:]!r}" if blamed else ""


def _server(rng: Random) -> tuple[int, str]:
    """Return how many documents a server got, and what is wrong with it after them."""
    raised = list[str]()
    before, threading.excepthook = threading.excepthook, lambda failed: raised.append(repr(failed.exc_value))
    asked = {"settings": Settings().document(), "program": "p"}
    documents = [_changed(each, rng) for each in (version(), asked, "ended", asked)]
    try:
        with TemporaryDirectory(dir="/tmp") as name, Server(print, visitor=visit, folder=Path(name)):
            _visit(Path(name), documents)
            whole = [json.dumps(each).encode() for each in (version(), asked)]
            if _visit(Path(name), whole) != "ready":
                return len(documents), f"the next visitor is not served after {documents!r}"
    finally:
        threading.excepthook = before
    return len(documents), f"{documents!r}: {raised}" if raised else ""


def _visit(folder: Path, documents: list[bytes]) -> str:
    """Send documents; return the kind of the first answer."""
    kind = ""
    with socket.socket(socket.AF_UNIX) as connection, suppress(Gone, OSError):
        connection.settimeout(_PATIENCE)
        connection.connect(str(folder / "socket"))
        channel = Channel(connection)
        channel.ask()
        for content in documents:
            connection.sendall(struct.pack("<Q", len(content)) + content)
        kind = channel.receive_item()[0]
    return kind
