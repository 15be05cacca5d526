"""A debugger of kernels that goes forwards and backwards in time: ``Session``, and a Debug Adapter."""

from .session import Session

__all__ = ["Session"]
