"""The manifest of a vector set: everything but its arrays, as one JSON document.

Keys: ``schema`` (1), ``mnemonic``, ``target``, ``cases``, ``immediates`` (those equal in all cases),
``provenance``, ``seed``, ``title``, ``labels`` (if any) and ``arrays``: for each array its dtype, its shape
and the SHA-256 of its elements, little-endian and row by row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.errors import OperandError, TraceError, WarpsimError
from ....isa.families.tcgen05 import numerics_of
from ....isa.instruction import Instruction
from ....ptx.decode import decode
from ..parted import SetInParts
from ..sets import DESCRIPTORS, MASKS, Spec, VectorSet, check_specs

Array = npt.NDArray[Any]

SCHEMA = 1
LARGEST_SET = 1 << 28  # bytes of the arrays of a set that is read at once

_KEYS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "schema": (int, "an integer"),
    "mnemonic": (str, "a string"),
    "target": (str, "a string"),
    "cases": (int, "an integer"),
    "immediates": (dict, "an object"),
    "provenance": (dict, "an object"),
    "seed": ((int, type(None)), "an integer or null"),
    "title": (str, "a string"),
    "labels": (list, "an array"),
    "idesc": (int, "an integer"),
    "numerics": (str, "a string"),
    "arrays": (dict, "an object"),
}
_OPTIONAL = {"labels", "idesc", "numerics"}
_DTYPES = ("uint8", "int8", "uint32", "uint64")
_KINDS = ("model", "hardware")


@dataclass(frozen=True, kw_only=True)
class ArrayEntry:
    """The entry of an array in the manifest."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    sha256: str

    @property
    def spec(self) -> Spec:
        """Dtype and shape."""
        return self.dtype, self.shape

    @property
    def nbytes(self) -> int:
        """Number of bytes of the array."""
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A parsed manifest: it is consistent, and its arrays fit its instruction."""

    instruction: Instruction
    cases: int
    immediates: Mapping[str, int]
    provenance: Mapping[str, Any]
    seed: int | None
    title: str
    labels: tuple[str, ...]
    arrays: Mapping[str, ArrayEntry]

    def assemble(self, arrays: Mapping[str, Array], start: int = 0) -> VectorSet:
        """Return the set of these arrays, or its cases from ``start`` on; raises TraceError."""
        registers = {name: array for name, array in arrays.items() if name in self.instruction.registers}
        d = registers.pop("d")
        varying = arrays.keys() - registers.keys() - {*DESCRIPTORS, *MASKS, "shared", "d"}
        try:
            return VectorSet(
                instruction=self.instruction,
                registers=registers,
                d=d,
                immediates={**self.immediates, **{name: arrays[name] for name in sorted(varying)}},
                descriptors={name: arrays[name] for name in DESCRIPTORS if name in arrays},
                shared=arrays.get("shared"),
                provenance=self.provenance,
                seed=self.seed,
                title=self.title,
                labels=self.labels[start : start + len(d)],
                masks={name: arrays[name] for name in MASKS if name in arrays},
            )
        except OperandError as error:
            raise TraceError(error.message) from None

    def check_hash(self, name: str, digest: str) -> None:
        """Raise TraceError unless this is the SHA-256 that the manifest gives for an array."""
        if digest != self.arrays[name].sha256:
            raise TraceError(
                f"array {name!r} has SHA-256 {digest}, but the manifest says {self.arrays[name].sha256}: "
                f"its data was changed"
            )

    def check_size(self) -> None:
        """Raise TraceError for a set that is too large to be read at once."""
        size = sum(entry.nbytes for entry in self.arrays.values())
        if size > LARGEST_SET:
            raise TraceError(
                f"the arrays have {size:,} bytes, but at most {LARGEST_SET:,} are read at once: make several "
                f"sets, each with a seed of its own (warpsim verify, lint, view, convert, explain, and diff "
                f"without the results of a unit, take .npz sets of any size)"
            )


# --- writing ---------------------------------------------------------------------------------------


def manifest_of(vectors: SetInParts) -> dict[str, Any]:
    """Return the manifest of a set as JSON-ready data."""
    document = {
        "schema": SCHEMA,
        "mnemonic": vectors.instruction.mnemonic,
        **_stated(vectors.instruction),
        "target": vectors.instruction.target,
        "cases": len(vectors),
        "immediates": vectors.constants(),
        "provenance": dict(vectors.provenance),
        "seed": vectors.seed,
        "title": vectors.title,
        "arrays": {name: _entry(spec, vectors.blocks(name)) for name, spec in vectors.specs().items()},
    }
    return document | ({"labels": list(vectors.labels)} if vectors.labels else {})


def _stated(instruction: Instruction) -> dict[str, Any]:
    """Return what a manifest says of an instruction whose product a descriptor states."""
    if instruction.descriptor is None:
        return {}
    numerics = numerics_of(instruction)
    return {"idesc": instruction.descriptor} | ({"numerics": numerics} if numerics else {})


def manifest_lines(vectors: SetInParts) -> list[str]:
    """Return the manifest as readable JSON text: a line for each key, each array and each label."""
    lines = []
    for key, value in manifest_of(vectors).items():
        name = json.dumps(key)
        if isinstance(value, list):
            lines.append(f"{name}: [\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n ]")
        elif key == "arrays":
            entries = (f"  {json.dumps(item)}: {json.dumps(entry)}" for item, entry in value.items())
            lines.append(f"{name}: {{\n" + ",\n".join(entries) + "\n }")
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return ["{", *",\n".join(f" {line}" for line in lines).split("\n"), "}"]


def entry_of(array: Array) -> dict[str, Any]:
    """Return the entry of an array."""
    return _entry((array.dtype, array.shape), [array])


def _entry(spec: Spec, blocks: Iterable[Array]) -> dict[str, Any]:
    return {"dtype": spec[0].name, "shape": list(spec[1]), "sha256": digest_of(blocks)}


def digest_of(blocks: Iterable[Array]) -> str:
    """Return the SHA-256 of the elements of an array in pieces, little-endian and row by row."""
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(np.ascontiguousarray(block, block.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


# --- reading ---------------------------------------------------------------------------------------


def manifest_from(text: str) -> Manifest:
    """Return the manifest of a JSON text, checked. Raises TraceError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"the manifest is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise TraceError("the manifest is not a JSON object")
    _check_keys(document)
    if document["provenance"].get("kind") not in _KINDS:
        raise TraceError(f"manifest: the kind of provenance is one of {', '.join(_KINDS)}")
    if not all(isinstance(label, str) for label in document.get("labels", ())):
        raise TraceError("manifest: labels are strings")
    manifest = Manifest(
        instruction=_instruction(document),
        cases=document["cases"],
        immediates=_immediates(document["immediates"]),
        provenance=document["provenance"],
        seed=document["seed"],
        title=document["title"],
        labels=tuple(document.get("labels", ())),
        arrays={name: array_entry(name, entry) for name, entry in document["arrays"].items()},
    )
    _check_whole(manifest)
    return manifest


def _check_keys(document: dict[str, Any]) -> None:
    for name in document:
        if name not in _KEYS:
            raise TraceError(f"manifest: unknown key {name!r}; the keys are {', '.join(_KEYS)}")
    for name, (kinds, what) in _KEYS.items():
        if name not in document:
            if name not in _OPTIONAL:
                raise TraceError(f"manifest: {name} is missing")
        elif not isinstance(document[name], kinds) or isinstance(document[name], bool):
            raise TraceError(f"manifest: {name} is {what}, not {json.dumps(document[name])[:40]}")
    if document["schema"] != SCHEMA:
        raise TraceError(f"manifest: schema {document['schema']}, but this version reads schema {SCHEMA}")


def _instruction(document: dict[str, Any]) -> Instruction:
    mnemonic, (idesc, numerics) = document["mnemonic"], (document.get(key) for key in ("idesc", "numerics"))
    try:
        instruction = decode(mnemonic, target=document["target"], idesc=idesc, numerics=numerics)
    except WarpsimError as error:
        raise TraceError(f"manifest: {error.message}") from None
    if instruction.mnemonic != mnemonic:
        raise TraceError(f"manifest: {mnemonic!r} is spelled {instruction.mnemonic}")
    return instruction


def _immediates(given: dict[str, Any]) -> dict[str, int]:
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 127:
            raise TraceError(f"manifest: immediate {name} is a small integer, not {json.dumps(value)[:40]}")
    return given


def array_entry(name: str, given: Any) -> ArrayEntry:
    """Return the entry of an array, checked; raises TraceError."""
    if not isinstance(given, dict) or given.keys() != {"dtype", "shape", "sha256"}:
        raise TraceError(f"manifest: array {name!r} is an object of dtype, shape and sha256")
    dtype, shape, sha256 = given["dtype"], given["shape"], given["sha256"]
    if dtype not in _DTYPES:
        raise TraceError(f"manifest: the dtype of array {name!r} is one of {', '.join(_DTYPES)}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise TraceError(f"manifest: the shape of array {name!r} is an array of sizes")
    if not isinstance(sha256, str):
        raise TraceError(f"manifest: the sha256 of array {name!r} is a string")
    return ArrayEntry(dtype=np.dtype(dtype), shape=tuple(shape), sha256=sha256)


def _check_whole(manifest: Manifest) -> None:
    """Check that the arrays are those of the instruction, and that there are as many labels as cases."""
    specs = {name: entry.spec for name, entry in manifest.arrays.items()}
    try:
        check_specs(manifest.instruction, specs, manifest.immediates, manifest.cases)
    except OperandError as error:
        raise TraceError(f"manifest: {error.message}") from None
    for text in (manifest.title, *manifest.labels):
        if not text.isprintable():
            raise TraceError(f"manifest: {text[:40]!r}: title and labels are printable text on one line")
    if manifest.labels and len(manifest.labels) != manifest.cases:
        raise TraceError(f"manifest: {len(manifest.labels)} labels for {manifest.cases} cases")
