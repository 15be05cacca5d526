"""Somebody at an address, who says to each that comes what a file holds, and then nothing more."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Thread

from .case import Case

NAME = "PEER"  # stands for the number of the port in a command line
FILE = "peer"


@contextmanager
def peers(case: Case) -> Iterator[Case]:
    """Yield the case with the port of somebody who answers, where it asks for one."""
    if not any(NAME in word for word in case.command):
        yield case
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        Thread(target=_answer, args=(server, case.files.get(FILE, b"")), daemon=True).start()
        port = str(server.getsockname()[1])
        try:
            yield replace(case, command=tuple(word.replace(NAME, port) for word in case.command))
        finally:
            server.shutdown(socket.SHUT_RDWR)  # or accept would wait for ever


def _answer(server: socket.socket, content: bytes) -> None:
    kept = []
    with suppress(OSError):
        while True:
            kept.append(server.accept()[0])
            kept[-1].sendall(content)
