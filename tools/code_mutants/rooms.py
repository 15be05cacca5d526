"""Which modules of warpsim each class of mutants is taken from.

The kernels are left out: faults of the arithmetic are those of tools.mutants.
"""

from __future__ import annotations

from .mutant import ROOT

_PATTERNS: dict[str, tuple[str, ...]] = {
    "layout": (
        "isa/layout.py", "isa/families/mma.py", "isa/families/wgmma.py", "isa/fragments.py", "isa/swizzle.py",
        "machine/opcodes/matrices.py", "machine/opcodes/tiles.py", "machine/opcodes/wmma.py",
        "machine/opcodes/permutations.py", "views/places.py", "views/layout.py", "views/formulas.py",
    ),
    "metadata": (
        "isa/sparsity.py", "isa/arrangements.py", "isa/families/mma_sp.py", "isa/fragments.py",
        "diagnosis/local_metadata.py", "diagnosis/metadata_checks.py", "diagnosis/packing_checks.py",
    ),
    "descriptor": (
        "isa/descriptor.py", "isa/tensor_box.py", "isa/tensor_map.py", "isa/tensor_map_bytes.py",
        "isa/tensor_map_rules.py", "isa/swizzle.py", "diagnosis/descriptor_mistakes.py",
        "machine/matrix_operands.py", "machine/tensor_boxes.py", "views/descriptors.py",
    ),
    "encoding": (
        "isa/formats.py", "isa/codes.py", "isa/numerals.py", "isa/registers.py", "isa/arrays.py",
        "arithmetic/planes.py", "arithmetic/integers.py", "arithmetic/numerics.py",
        "machine/opcodes/codes.py",
        "machine/opcodes/conversion.py", "machine/opcodes/rounding.py", "machine/opcodes/packing.py",
        "machine/opcodes/rounded.py", "machine/opcodes/elements.py",
    ),
    "rule": (
        "isa/architectures.py", "isa/instruction.py", "isa/families/*.py", "isa/tensor_map_rules.py",
        "linting/*.py", "explanation/rules.py", "arithmetic/panels.py", "arithmetic/chains.py",
        "machine/fidelity.py",
    ),
    "parser": ("ptx/source.py", "ptx/statements.py", "ptx/parser.py", "ptx/qualifiers.py", "ptx/constants.py",
               "ptx/decode.py", "machine/directives.py", "traces/reading.py"),
    "binding": ("ptx/binding.py", "ptx/operands.py", "ptx/operand_types.py", "ptx/warpgroup.py",
                "machine/matrix_operands.py", "machine/arguments.py", "machine/program.py", "machine/site.py",
                "machine/opcodes/operation.py", "machine/opcodes/effect.py", "compilers/signatures.py"),
    "execution": ("execution/*.py", "products/*.py", "machine/machine.py", "machine/wave.py",
                  "machine/warpgroup.py", "machine/lanes.py", "machine/together.py", "machine/grid.py",
                  "machine/step_*.py", "machine/launching.py"),
    "opcode": ("machine/opcodes/*.py",),
    "memory": ("isa/memory.py", "machine/spaces.py", "machine/shared_memory.py", "machine/register_file.py",
               "machine/variables.py", "machine/register_arrays.py", "machine/clusters.py",
               "machine/device.py", "machine/initial.py", "machine/tensor_moves.py",
               "machine/observers/memory_checks.py"),
    "hazard": ("machine/hazard.py", "machine/hazards.py", "machine/phases.py", "machine/races.py",
               "machine/spins.py", "machine/asynchrony.py", "machine/synchronization.py",
               "machine/cluster_barrier.py", "machine/register_order.py", "machine/observers/*.py",
               "linting/pipelines.py"),
    "diagnosis": ("diagnosis/*.py",),
    "file": ("files/*.py", "vectors/formats/*.py", "vectors/register_traces/*.py", "vectors/sets.py",
             "vectors/verification.py", "vectors/recordings.py", "traces/*.py"),
}  # fmt: skip


def modules(kind: str) -> list[str]:
    """Paths from the root of the modules of a class."""
    found = (path for pattern in _PATTERNS[kind] for path in sorted((ROOT / "warpsim").glob(pattern)))
    return list(dict.fromkeys(path.relative_to(ROOT).as_posix() for path in found))
