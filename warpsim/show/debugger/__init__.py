"""The debugger as people use it: ``Session``, the commands and their answers, and a Debug Adapter."""

from .session import Session

__all__ = ["Session"]
