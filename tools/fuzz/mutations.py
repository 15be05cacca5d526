"""Changes of bytes, lines, words and archives: small ones, that leave most of a valid input as it is.

The same generator gives the same changes.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from random import Random
from tokenize import TokenError

import numpy as np

from .case import Case

TOKENS = (
    *(
        "0",
        "1",
        "-1",
        "010",
        "0x",
        "1e400",
        "nan",
        "-inf",
        "1" * 5000,
        "0x" + "f" * 40,
        "18446744073709551616",
    ),
    *(
        "4294967296",
        "2147483648",
        "é",
        "\0",
        "\udcff",
        "\n" * 3000,
        " " * 3000,
        " - " * 1000,
        "a" + "1" * 3000,
    ),
    *(
        "{",
        "}",
        "(" * 200,
        "[",
        "]",
        "{}" * 500,
        ";",
        ":",
        ",",
        "=",
        "%",
        "@",
        "@!",
        "//!",
        "/*",
        "*/",
        '"',
        "<",
        ">",
    ),
    *(
        "%r<1048576>",
        ".reg .b32 %x<1048576>;",
        ".shared .b8 v[18446744073709551615];",
        ".global .b8 g[99999999999];",
    ),
    *(
        "..",
        "::",
        "-",
        "--",
        "--json",
        "/dev/null",
        "/dev/full",
        ".",
        "/",
        "nope",
        "a.npz:x",
        "n" * 300,
        "sm_90a",
    ),
    *(
        "zeros:f32:",
        "random:f16:4x4:9",
        "hex:f32:0xff",
        "bytes:/dev/zero",
        "null",
        "i32:x",
        "f16:1e9",
        "1,2,3,4",
    ),
    *(
        "cta=0,0 warp=1",
        "loop: bra loop;",
        "mma.sync",
        "trap;",
        "//! expect %d<4> = 0x0",
        "//! shared 0 = 0x1",
    ),
)
_LONGEST_WORD = 100_000  # characters, of which Linux allows 131,071
_LARGEST = 80 << 20  # bytes of a file: more than warpsim reads
_PIECE = re.compile(rb"\w+|\s+|[^\w\s]")
_DTYPES = (
    "u1",
    "u2",
    "u4",
    "u8",
    "i4",
    "i8",
    "f2",
    "f4",
    "f8",
    "?",
    "c8",
    "U3",
    "S2",
    "V2",
    "M8[s]",
    "f2,f2",
    ">u4",
)
_SHAPES = ((), (0,), (1,), (4,), (32,), (0, 0), (16, 0), (16, 16), (32, 4), (2, 32, 4), (1, 1, 1, 1), (7, 3))


def mutated(case: Case, other: Case, rng: Random) -> Case:
    """Return a case with one to four changes; ``other`` lends pieces."""
    for _ in range(rng.randint(1, 4)):
        names = list(case.files)
        if case.stdin and rng.random() < 0.7:
            case = Case(command=case.command, files=case.files, stdin=_content("", case.stdin, other, rng))
        elif names and rng.random() < 0.75:
            name = rng.choice(names)
            changed = _content(name, case.files[name], other, rng)
            case = Case(command=case.command, files={**case.files, name: changed}, stdin=case.stdin)
        else:
            case = Case(command=_words(case.command, other.command, rng), files=case.files, stdin=case.stdin)
    files = {name: content[:_LARGEST] for name, content in case.files.items()}
    return Case(command=case.command, files=files, stdin=case.stdin[:_LARGEST])


def _words(words: tuple[str, ...], others: tuple[str, ...], rng: Random) -> tuple[str, ...]:
    """Return a command line with one word changed; the verb mostly stays."""
    found = list(words)
    least = min(rng.random() < 0.95, len(found))  # of no words there is no other
    place = rng.randrange(least, len(found) + 1)
    choice = rng.randrange(5)
    if choice == 0 and place < len(found):
        del found[place]
    elif choice == 1:
        found.insert(place, rng.choice((*others, *TOKENS)))
    elif choice == 2 and place < len(found):
        found[place] = rng.choice((*others, *TOKENS))
    elif place < len(found):
        content = _text(found[place].encode("utf-8", "surrogateescape"), b"0", rng)
        found[place] = content.decode("utf-8", "surrogateescape")
    # What no process can be given, and what would read from or write to this machine's own folders.
    return tuple(_harmless(word)[:_LONGEST_WORD] for word in found)


def _harmless(word: str) -> str:
    word = word.replace("\0", "")
    at_root = word.startswith("/") and not word.startswith("/dev/")
    return word.lstrip("/") if at_root or "://" in word else word.replace("..", ".")


def _content(name: str, content: bytes, other: Case, rng: Random) -> bytes:
    lent = rng.choice([*other.files.values(), other.stdin, b"0"])
    if name.endswith(".npz") and rng.random() < 0.8:
        return _archive(content, rng)
    if name.endswith(".npy") and rng.random() < 0.6:
        return _array(rng)
    if name.endswith(".safetensors") and rng.random() < 0.8:
        header = 8 + int.from_bytes(content[:8], "little")
        text = _json(content[8:header], rng)
        return len(text).to_bytes(8, "little") + text + content[header:]
    if name.endswith(("json", "jsonl")) and rng.random() < 0.5:
        return _json(content, rng)
    change = rng.choice((_bytes, _text, _text, _text, _lines, _lines, _spliced))
    return change(content, lent, rng)


def _bytes(content: bytes, _: bytes, rng: Random) -> bytes:
    """Return some bytes flipped, cut, or put in."""
    found = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        place = rng.randrange(len(found) + 1)
        if rng.random() < 0.6 and place < len(found):
            found[place] = rng.randrange(256)
        elif rng.random() < 0.5:
            del found[place : place + rng.randint(1, 100)]
        else:
            found[place:place] = rng.randbytes(rng.randint(1, 8))
    return bytes(found)


def _text(content: bytes, _: bytes, rng: Random) -> bytes:
    """Return pieces replaced, removed, repeated or put in."""
    pieces = _PIECE.findall(content) or [b""]
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(pieces))
        token = rng.choice(TOKENS).encode("utf-8", "surrogateescape")
        pieces[place] = rng.choice((token, b"", pieces[place] * rng.choice((2, 300)), pieces[place] + token))
        if rng.random() < 0.3:
            pieces[place] = rng.choice(pieces)
    return b"".join(pieces)


def _lines(content: bytes, _: bytes, rng: Random) -> bytes:
    """Return lines removed, repeated, or exchanged."""
    lines = content.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    choice = rng.randrange(4)
    if choice == 0:
        del lines[first : first + rng.randint(1, 20)]
    elif choice == 1:
        lines[first:first] = lines[second : second + rng.randint(1, 20)] * rng.choice((1, 2, 50))
    elif choice == 2:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines = lines[: first + 1]
    return b"\n".join(lines)


def _spliced(content: bytes, lent: bytes, rng: Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)] + lent[rng.randrange(len(lent) + 1) :]


def _array(rng: Random) -> bytes:
    stream = io.BytesIO()
    dtype, shape = rng.choice(_DTYPES), rng.choice(_SHAPES)
    np.save(stream, np.zeros(shape, dtype))
    content = stream.getvalue()
    return _bytes(content, b"", rng) if rng.random() < 0.3 else content


def _archive(content: bytes, rng: Random) -> bytes:
    """Return an archive with a member removed, renamed, changed, or of another dtype and shape."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return _bytes(content, b"", rng)
    if not members:
        return content
    name = rng.choice(list(members))
    choices: Sequence[Callable[[], object]] = (
        lambda: members.pop(name),
        lambda: members.update({rng.choice(("x.npy", "selector.npy", "../a.npy", "x")): members[name]}),
        lambda: members.update({name: _array(rng)}),
        lambda: members.update({name: _bytes(members[name], b"", rng)}),
        lambda: members.update({name: _numbers(members[name], rng)}),
        lambda: members.update({name: _manifest(members[name], rng)}),
    )
    rng.choice(choices)()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for member, data in members.items():
            archive.writestr(zipfile.ZipInfo(member), data)
    return stream.getvalue()


_VALUE = re.compile(rb'"[^"]*"|-?\d+(?:\.\d+)?|true|false|null|\[[^\[\]]*\]')
_VALUES = (
    *(b"Infinity", b"NaN", b"-1", b"1e999", b"1.5", b"true", b"null", b"[]", b"{}", b'""', b"0", b"[[1]]"),
    *(
        b"9" * 30,
        b"1" * 5000,
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'"\\ud800"',
        b'"' + b"n" * 300 + b'"',
        b"[1,2,3]",
    ),
)


def _json(content: bytes, rng: Random) -> bytes:
    """Return values of JSON text, or lists of them, replaced; keys, too."""
    for _ in range(rng.randint(1, 2)):
        places = [found.span() for found in _VALUE.finditer(content)]
        if not places:
            return content
        first, last = rng.choice(places)
        content = content[:first] + rng.choice((*_VALUES, content[first:last] * 2)) + content[last:]
    return content


def _manifest(content: bytes, rng: Random) -> bytes:
    """Return a member that holds text, changed as JSON; others as bytes."""
    try:
        text = np.load(io.BytesIO(content), allow_pickle=False)
        changed = _json(str(text[()]).encode(), rng).decode("utf-8", "replace")
    except (ValueError, EOFError, OSError, SyntaxError, TokenError):
        return _bytes(content, b"", rng)
    stream = io.BytesIO()
    np.save(stream, np.array(changed) if text.dtype.kind == "U" else text)
    return stream.getvalue()


def _numbers(content: bytes, rng: Random) -> bytes:
    """Return digits of a member (a manifest, a header) changed; four bytes each where it is text of NumPy."""
    found = bytearray(content)
    places = [place for place, byte in enumerate(found) if 0x30 <= byte <= 0x39]
    for place in rng.sample(places, min(len(places), rng.randint(1, 4))):
        found[place] = rng.choice(b"0123456789-")
    return bytes(found)
