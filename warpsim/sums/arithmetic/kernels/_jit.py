"""The options with which all kernels are compiled, and the cache on disk, made safe.

A broken cache never breaks a result. A file that was truncated or changed is found by its digest, and a disk
may be full or read-only: kernels are then compiled again, and a single warning reports it. Numba itself
raises whatever unpickling raises, and executes what it finds: the cache is in NUMBA_CACHE_DIR, beside the
source or in the user's cache, and where other users could write there, in a private folder of the process.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast
from zlib import crc32

import numba
import numpy.typing as npt
from numba.core.caching import IndexDataCacheFile

from ....base.folders import made, private_cache, user_cache, why_untrusted

Array = npt.NDArray[Any]
Planes = tuple[Array, Array, Array]  # significand int64, exponent int32, special int8
Output = tuple[int, int, int, int, bool]  # precision, fraction bits, emin, emax, nearest
Operands = tuple[Planes, Planes, Planes, Array]  # a, b, c, columns

Function = TypeVar("Function", bound=Callable[..., Any])
_DIGEST = 32  # bytes at the end, where pickle does not look
_PART = "numba"  # of the user's cache
_warned: set[str] = set()


def fingerprint(*modules: ModuleType) -> int:
    """Return a checksum of the sources of modules, which may lie in a zip archive."""
    loaders = [cast(Any, module.__spec__).loader for module in modules]
    files = [loader.get_data(module.__file__) for loader, module in zip(loaders, modules, strict=True)]
    return crc32(b"".join(files))


def interpreted() -> bool:
    """Return whether Numba compiles nothing (NUMBA_DISABLE_JIT)."""
    return bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]


def kernel(function: Function) -> Function:
    """Compile lazily, cache on disk, release the GIL; never fastmath, which would change bits."""
    try:
        with _trusted_cache(os.path.dirname(function.__code__.co_filename)):
            return cast(Function, forgiving(numba.njit(cache=True, nogil=True)(function)))
    except (RuntimeError, OSError):  # no writable folder for the cache: compile in every process
        return cast(Function, numba.njit(nogil=True)(function))


def variant_kernel(*numbers: int) -> Callable[[Function], Function]:
    """Compile a closure that is specialised by these numbers, and captures nothing but numbers and types.

    The numbers become part of its name, by which Numba finds it in the cache and binds calls to it: variants
    of one name that several processes compile at once could otherwise replace each other.
    """

    def decorate(function: Function) -> Function:
        function.__qualname__ += "".join(f"_{number:x}" for number in numbers)
        return kernel(function)

    return decorate


# --- the cache on disk --------------------------------------------------------------------------------


@contextmanager
def _trusted_cache(source: str) -> Iterator[None]:
    """Let Numba find a cache, in a block of code, that no other user can write. Raises OSError for none."""
    config: Any = numba.config
    given = config.CACHE_DIR
    config.CACHE_DIR = _cache_folder(given, source)
    try:
        yield
    finally:
        config.CACHE_DIR = given


@cache
def _cache_folder(given: str, source: str) -> str:
    """Return the folder for functions of the folder ``source``, "" for that beside them. Raises OSError."""
    if given:
        reason = why_untrusted(made(Path(given)))
        return str(private_cache(reason, _PART)) if reason else given
    beside = os.path.join(source, "__pycache__")
    if not os.access(beside if os.path.isdir(beside) else source, os.W_OK):
        return str(user_cache(_PART))
    reason = why_untrusted(beside, source) if os.path.lexists(beside) else ""
    return str(private_cache(reason, _PART)) if reason else ""


def forgiving(dispatcher: Any) -> Any:
    """Return a compiled function whose cache, if there is a cache, is checked and may fail."""
    cache = getattr(dispatcher, "_cache", None)
    files = getattr(cache, "_cache_file", None)
    if type(files) is IndexDataCacheFile:
        files.__class__ = _CheckedFiles
        # Separate names: files without a digest that an older version has left are not broken.
        files._index_path = files._index_path.removesuffix(".nbi") + ".checked.nbi"
        files._data_name_pattern = files._data_name_pattern.replace(".{number", ".checked.{number")
        dispatcher._cache = _Forgiving(cache)
    return dispatcher


class _CheckedFiles(IndexDataCacheFile):
    """Files of the cache that end in the digest of what is before it."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)  # type: ignore[no-untyped-call]
        return data + sha256(data).digest()

    def _load_index(self) -> Any:
        try:
            with open(self._index_path, "rb") as file:
                if pickle.load(file) == self._version:
                    _check(file.read())
        except FileNotFoundError:
            return {}
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError):  # whole, but of sources that had other types
            return {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)  # type: ignore[no-untyped-call]
        with open(path, "rb") as file:
            _check(file.read())
        try:
            return super()._load_data(name)  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError) as error:  # whole, but of modules that have moved
            raise FileNotFoundError(path) from error


def _check(content: bytes) -> None:
    data, digest = content[:-_DIGEST], content[-_DIGEST:]
    if sha256(data).digest() != digest:
        raise ValueError("it was cut off or changed")


class _Forgiving:
    """A cache that is empty where it cannot be read, and keeps nothing where it cannot be written."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function, or None."""
        try:
            return self._cache.load_overload(sig, target_context)
        except Exception as error:
            _warn(
                "read",
                f"a file in {self._cache.cache_path} cannot be read, so kernels are compiled again",
                error,
            )
        try:
            self._cache.flush()
        except Exception as error:
            _warn(
                "write", f"{self._cache.cache_path} cannot be written: kernels will be compiled again", error
            )
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if that is possible."""
        try:
            self._cache.save_overload(sig, data)
        except Exception as error:
            _warn(
                "write", f"{self._cache.cache_path} cannot be written: kernels will be compiled again", error
            )


def _warn(what: str, message: str, error: Exception) -> None:
    """Warn once about each kind of error of the cache."""
    if what not in _warned:
        _warned.add(what)
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        warnings.warn(f"the cache of compiled kernels: {message} ({reason})", RuntimeWarning, stacklevel=2)
