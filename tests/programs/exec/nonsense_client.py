# ruff: noqa: T201
"""Processes that send the server nonsense, or die, beside a program that is served as always."""

import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

MESSAGE, ORDER = struct.Struct("<II6Q4d12QQ"), struct.Struct("<II7Q")
HELLO, ASKS, MAPPING = 0xFFFF_FFFF, 0xFFFF_FFFD, 6
HARMLESS = (0, 5, (1 << 64) - 12)


def message(number: int, *integers: int) -> bytes:
    """Return a call, or another message."""
    return MESSAGE.pack(number, 0, *(*integers, *[0] * 6)[:6], *[0.0] * 4, *[0] * 13)


def greeting() -> bytes:
    """Return the first message of a process."""
    return message(HELLO, random.getrandbits(64), 4096, os.getpid())


def answered(server: socket.socket) -> None:
    """Answer orders with nonsense until a call returns."""
    while len(order := server.recv(ORDER.size, socket.MSG_WAITALL)) == ORDER.size:
        verb, size, _, wanted, *_ = ORDER.unpack(order)
        server.recv(size, socket.MSG_WAITALL)
        if verb == 0:
            return
        asked = os.urandom(min(wanted, 4096)) if verb == 2 else struct.pack("<Q", random.choice(HARMLESS))
        server.sendall(asked)


def calls(server: socket.socket) -> None:
    """Call functions of any number with words that mean nothing."""
    server.sendall(greeting())
    answered(server)
    for _ in range(20):
        function = random.choice((random.getrandbits(32), random.randrange(3) << 16 | random.randrange(400)))
        server.sendall(message(function, *(random.choice((0, 1, 4096, (1 << 64) - 1)) for _ in range(6))))
        answered(server)


def leaves(server: socket.socket) -> None:
    """Leave in the middle of a message, before the memory is mapped."""
    server.sendall(greeting() + message(1)[: random.randrange(200)])
    server.shutdown(socket.SHUT_RDWR)


def dies(server: socket.socket) -> None:
    """Die at a moment by chance."""
    server.sendall(greeting())
    time.sleep(random.random() / 50)
    os.kill(os.getpid(), signal.SIGKILL)


def noise(server: socket.socket) -> None:
    """Send bytes by chance."""
    server.sendall(greeting() * random.randrange(2) + os.urandom(random.randrange(4000)))


def document(server: socket.socket) -> None:
    """Ask for a run with a document that is longer than any."""
    server.sendall(message(ASKS) + struct.pack("<Q", 1 << 40) + b"{")


def begun(number: int) -> int:
    """Begin a process that does one of these."""
    process = os.fork()
    if process == 0:
        random.seed(number)
        server = socket.socket(socket.AF_UNIX)
        server.settimeout(5)
        try:
            server.connect(os.environ["WARPSIM_EXEC_SOCKET"])
            (calls, leaves, dies, noise, document)[number % 5](server)
        except OSError:
            pass
        os._exit(0)
    return process


def main() -> None:
    """Begin some, kill programs meanwhile, and print what a program prints that is let be."""
    program = sys.argv[1]
    for turn in range(2):
        right = subprocess.Popen([program, "threads"], stdout=subprocess.PIPE)
        killed = [
            subprocess.Popen([program, mode], stdout=subprocess.DEVNULL) for mode in ("vectors", "graphs")
        ]
        others = [begun(20 * turn + number) for number in range(20)]
        for each in killed:
            time.sleep(0.1)
            each.kill()
            each.wait()
        for process in others:
            os.waitpid(process, 0)
        print(right.communicate()[0].decode(), end="", flush=True)


main()
