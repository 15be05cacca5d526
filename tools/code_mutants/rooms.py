"""Which modules of warpsim each class of mutants is taken from.

The kernels are left out: faults of the arithmetic are those of tools.mutants.
"""

from __future__ import annotations

from .mutant import ROOT

_PATTERNS: dict[str, tuple[str, ...]] = {
    "layout": (
        "isa/layouts/*.py", "isa/families/mma.py", "isa/families/wgmma.py", "isa/fragments.py",
        "machine/opcodes/matrix/mma.py", "machine/opcodes/matrix/tiles.py", "machine/opcodes/matrix/wmma.py",
        "machine/opcodes/integer/prmt.py", "isa/operand_places/places.py", "show/views/layouts/*.py",
    ),
    "metadata": (
        "isa/sparsity.py", "isa/metadata/*.py", "isa/families/mma_sp.py", "isa/fragments.py",
        "workbench/diagnosis/origins/words/metadata_checks.py",
        "workbench/diagnosis/origins/packing_checks.py",
    ),
    "descriptor": (
        "isa/descriptors/*.py", "isa/tensor_maps/*.py", "isa/layouts/swizzle.py",
        "workbench/diagnosis/descriptors/*.py",
        "machine/opcodes/asynchronous/tensor_boxes.py", "machine/opcodes/matrix/*.py",
        "show/views/layouts/descriptors.py",
    ),
    "encoding": (
        "isa/formats.py", "isa/codes.py", "isa/numerals.py", "isa/registers.py", "isa/arrays.py",
        "sums/arithmetic/planes.py", "sums/arithmetic/integers.py", "sums/arithmetic/numerics.py",
        "machine/opcodes/conversion/codes.py",
        "machine/opcodes/conversion/cvt.py", "machine/opcodes/floating/rounding.py",
        "machine/opcodes/conversion/cvt_packed.py",
        "machine/opcodes/floating/rounded.py", "machine/opcodes/conversion/elements.py",
    ),
    "rule": (
        "isa/architectures.py", "isa/comparisons.py", "isa/rules.py", "isa/instruction.py",
        "isa/families/*.py",
        "isa/tensor_maps/tensor_map_rules.py",
        "workbench/diagnosis/linting/*.py", "workbench/explanation/rule_steps.py",
        "sums/rule_programs/*.py",
        "sums/arithmetic/panels.py", "sums/arithmetic/chains.py", "programs/launch/fidelity.py",
        "programs/launch/value_flow.py",
    ),
    "parser": ("ptx/source.py", "ptx/statements.py", "ptx/parser.py", "ptx/qualifiers.py", "ptx/constants.py",
               "ptx/decode.py", "machine/load/directives.py", "machine/bind/tuning.py",
               "workbench/traces/reading.py"),
    "binding": ("ptx/binding.py", "ptx/operands.py", "ptx/operand_types.py",
                "machine/opcodes/matrix/mma.py", "machine/host/arguments.py", "machine/load/program.py",
                "machine/opcodes/statement_binder.py", "machine/load/variable_spaces.py",
                "machine/opcodes/operation.py", "machine/opcodes/effect.py",
                "programs/compilers/signatures.py"),
    "execution": ("sums/execution/*.py", "sums/products/*.py", "programs/interactive/*.py",
                  "machine/run/wave.py",
                  "machine/run/execute.py", "machine/run/scheduler.py",
                  "machine/state/lanes.py", "machine/run/convergence.py",
                  "machine/grid.py",
                  "programs/launch/launching.py", "programs/launch/launch_execution.py"),
    "opcode": ("machine/opcodes/*.py", "machine/bind/value_types.py", "machine/opcodes/*/*.py",),
    "memory": ("isa/memory.py", "machine/state/spaces.py", "programs/interactive/shared_memory.py",
               "programs/interactive/register_file.py",
               "machine/bind/register_arrays.py", "machine/run/clusters.py",
               "machine/state/device.py", "machine/load/initial.py",
               "machine/opcodes/asynchronous/tensor_moves.py",
               "observe/checks/memory_checks.py"),
    "hazard": ("observe/checks/wgmma/hazard.py", "observe/checks/wgmma/warpgroup_order.py",
               "machine/run/barriers/mbarrier.py",
               "programs/interactive/warpgroup_hazards.py",
               "machine/run/livelock.py", "machine/run/asynchronous.py",
               "machine/opcodes/matrix/wgmma_groups.py",
               "machine/run/barriers/cluster_barrier.py", "observe/checks/wgmma/*.py", "observe/checks/*.py",
               "observe/recording/*.py", "workbench/diagnosis/linting/pipelines.py"),
    "diagnosis": ("workbench/diagnosis/**/*.py",),
    "file": ("base/files/*.py", "workbench/inputs/*.py", "workbench/traces/*.py",
             "workbench/vectors/formats/*.py", "workbench/vectors/register_traces/*.py",
             "workbench/vectors/sets.py", "workbench/vectors/verification.py",
             "workbench/vectors/recordings.py"),
}  # fmt: skip


def modules(kind: str) -> list[str]:
    """Return paths from the root of the modules of a class."""
    found = (path for pattern in _PATTERNS[kind] for path in sorted((ROOT / "warpsim").glob(pattern)))
    return list(dict.fromkeys(path.relative_to(ROOT).as_posix() for path in found))
