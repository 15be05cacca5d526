"""Types of a kernel's parameters: by annotations of a reference, or by the kernel's C++ or Python signature.

Knows texts and annotations; does not know launches.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ....isa.formats import FORMATS

Kind = np.dtype[Any]
_NUMBERS = {
    "float": "f4", "double": "f8", "bool": "?", "char": "i1", "signed char": "i1", "unsigned char": "u1",
    "short": "i2", "unsigned short": "u2", "int": "i4", "unsigned int": "u4", "long": "i8",
    "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8",
}  # fmt: skip
_CALLED = {"half": "f16", "bfloat16": "bf16", "float": "f32", "double": "f64"}
_FLOATS = {name: FORMATS[called].dtype for name, called in _CALLED.items()} | {
    name: element.dtype for name, element in FORMATS.items() if element.is_float and element.bits == 8
}
_VECTOR = re.compile(rf"_*(?:nv_)?(?:fp8_)?(?:float_)?({'|'.join(_FLOATS)})(?:_t)?[x1-4]*")


def type_named(text: str) -> Kind | None:
    """Return the dtype of a C++ type, that of its elements for vectors of floats; None for others."""
    plain = text.replace("const", "").replace("volatile", "").strip().rpartition("::")[2]
    if plain in _NUMBERS:
        return np.dtype(_NUMBERS[plain])
    found = _VECTOR.fullmatch(plain)
    return np.dtype(_FLOATS[found[1]]) if found else None


def parameter_types(signature: str) -> list[str]:
    """Return the types between the last brackets of a C++ signature; none where it has no brackets."""
    start, depth, found = signature.rfind("("), 0, [""]
    for sign in signature[start + 1 : signature.rfind(")")] if start >= 0 else "":
        depth += (sign in "<([") - (sign in ">)]")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [each.strip() for each in found if each.strip()]


def annotations_of(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the parameters of a reference with their annotations."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError, TypeError, AttributeError):
        signature = inspect.signature(function)
    return [(each.name, each.annotation) for each in signature.parameters.values()]


def annotated_type(annotation: Any) -> Kind | None:
    """Return the dtype that an annotation names, None for none."""
    if isinstance(annotation, type) and issubclass(annotation, ctypes._SimpleCData | np.generic):
        return np.dtype(annotation)
    if isinstance(annotation, str | np.dtype):
        try:
            return np.dtype(annotation)
        except TypeError:
            return None
    return None
