"""In a server that stays: the runs that other processes ask for (remote.py has the documents).

Knows documents; does not know calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..messages import Channel, Gone, check_document
from ..settings import settings_of
from ..tally import Tally
from .remote import version
from .runs import Run
from .server import Server

_LONGEST_REQUEST = 1 << 20  # bytes


def visit(server: Server, channel: Channel, number: int) -> None:
    """Serve the runs that process ``number`` asks for. Raises Gone when it leaves."""
    sending = threading.Lock()

    def send(kind: str, content: Any) -> None:
        with sending:
            channel.send_document([kind, content])

    def shows(kind: str) -> Callable[[str], object]:
        return lambda text: send(kind, text)

    theirs = channel.receive_document(_LONGEST_REQUEST)
    while True:
        asked = channel.receive_document(_LONGEST_REQUEST)
        try:
            check_document(asked, {"settings": dict, "program": str})
            if theirs != version():
                raise ValueError("the server is of another version of warpsim: start it again")
            settings, program = settings_of(asked["settings"]), asked["program"]
        except ValueError as error:
            send("refused", str(error))
            raise Gone from None
        tally = Tally(program=program, notice=shows("notice"), progress=shows("progress"))
        run = Run(settings=settings, tally=tally, trace=shows("trace"))
        with server.serving(number, run):
            send("ready", None)
            _wait(server, channel, run)
        send("tally", tally.whole_document())


def _wait(server: Server, channel: Channel, run: Run) -> None:
    """Wait until the program has ended; its launches stop where the channel ends before. Raises Gone."""
    try:
        channel.receive_document(_LONGEST_REQUEST)
    except Gone:
        server.abandon(run)
        raise
