"""C++ names of PTX symbols: demangled for people, and found again from what people type.

The demangler is that of the C++ runtime library, by cxxfilt (Itanium C++ ABI, section 5.1 "External Names");
without it, names stay as they are. Knows names; does not know modules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

_LONGEST = 1 << 16  # characters of a name that is demangled
_MANGLED = re.compile(r"_{1,3}Z\w")
_ANONYMOUS = "(anonymous namespace)"
_OPENING, _CLOSING = "<([{", ">)]}"
_PARAMETER = re.compile(r"(?P<kernel>\w+)(?P<number>_param_\d+)")  # as NVIDIA's compilers name parameters
_ABI_TAG = re.compile(r"\[abi:[^]]*\]")  # which Numba puts behind names
_LOCAL = re.compile(r"\)(?: const)?(?: \[[^]]*\])?::(\w+)$")  # a variable of a function
_MANGLED_WANTED: ContextVar[bool] = ContextVar("names as the PTX has them", default=False)


@contextmanager
def names_shown(*, mangled: bool) -> Iterator[None]:
    """Let messages of the block have names as the PTX has them, or C++ names, as they do by default."""
    token = _MANGLED_WANTED.set(mangled)
    try:
        yield
    finally:
        _MANGLED_WANTED.reset(token)


def shown(symbol: str) -> str:
    """Return a symbol as messages name it: its C++ name, unless names of the PTX are wanted."""
    return symbol if _MANGLED_WANTED.get() else demangled(symbol)


def shown_variable(symbol: str) -> str:
    """Return a variable or parameter as messages name it: one of a function without the function."""
    if _MANGLED_WANTED.get():
        return symbol
    parameter = _PARAMETER.fullmatch(symbol)
    if parameter:
        return short_name(parameter["kernel"]) + parameter["number"]
    local = _LOCAL.search(signature := demangled(symbol))
    return local[1] if local else signature


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """Return the C++ name of a symbol, as ``sgemm(float const*, int)``; the symbol itself where it has
    none.
    """
    if not _MANGLED.match(name) or len(name) > _LONGEST:
        return name
    try:
        from cxxfilt import Error, demangle
    except (ImportError, OSError, AttributeError):  # no C++ runtime library is found
        return name
    try:
        return str(demangle(name))
    except (Error, UnicodeError):
        return name


def qualified_name(signature: str) -> str:
    """Return the name in a signature, with scopes and template arguments: no result, no parameters."""
    text, depth, start = signature.replace(_ANONYMOUS, "{anonymous}"), 0, 0
    end = len(text)
    for place, sign in enumerate(text):
        if sign == "(" and not depth and place > start:
            end = place
            break
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if sign == " " and not depth:
            start = place + 1
    return text[start:end].replace("{anonymous}", _ANONYMOUS)


def short_name(symbol: str) -> str:
    """Return the last part of a symbol's C++ name, without template arguments: ``full`` of
    ``body<1>()::full``.
    """
    signature = demangled(symbol)
    if signature == symbol:
        return symbol
    local = _LOCAL.search(signature)
    return local[1] if local else _last(_without_arguments(qualified_name(signature)))


def matching(wanted: str, symbols: Iterable[str]) -> list[str]:
    """Find the symbols that a text may mean: by signature, by name, then by less and less of the name.

    Scopes, template arguments and parameters may be left out; blanks do not matter. The first of these
    steps that finds any symbol decides.
    """
    known = list(symbols)
    if wanted in known:
        return [wanted]
    text, spellings = _plain(wanted), [_spellings(symbol) for symbol in known]
    for step in range(_STEPS):
        found = [
            symbol for symbol, each in zip(known, spellings, strict=True) if text in map(_plain, each[step])
        ]
        if found:
            return found
    return []


_STEPS = 4


def _spellings(symbol: str) -> tuple[list[str], ...]:
    """Return texts for a symbol, in steps: signature, name, name without template arguments, without
    scopes.
    """
    signature = _ABI_TAG.sub("", demangled(symbol))
    name = qualified_name(signature)
    parameters = signature[signature.find(name) + len(name) :]
    bare = _without_arguments(name)
    steps = ([name], [bare], [*_tails(name), *_tails(bare)])
    return ([signature, *(text + parameters for step in steps for text in step)], *steps)


def _tails(name: str) -> list[str]:
    """Return a name without its outermost scopes, one by one."""
    places, depth = list[int](), 0
    for place, sign in enumerate(name):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if not depth and name.startswith("::", place):
            places.append(place + 2)
    return [name[place:] for place in places]


def _last(name: str) -> str:
    return (_tails(name) or [name])[-1]


def _without_arguments(name: str) -> str:
    """Return a name without the template arguments of its last part."""
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] in _CLOSING) - (name[place] in _OPENING)
        if not depth:
            return name[:place] if name[place] == "<" else name
    return name


def _plain(text: str) -> str:
    """Return a text without blanks, and with C++'s words for constants of type bool."""
    return re.sub(r"\s+", "", text).replace("(bool)1", "true").replace("(bool)0", "false")
