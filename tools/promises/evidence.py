"""What tests every promise: files of tests, tools, and names of the figures that tools printed.

By the name of a promise in warpsim/show/views/promises; the promises that tables make share a name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Files and folders of tests, commands, and names of figures of the record."""

    tests: tuple[str, ...]
    tools: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()


EVIDENCE = {
    "environment": Evidence(
        tests=(
            "tests/sums/arithmetic/test_environment.py",
            "tests/programs/launch/test_launch_environment.py",
        )
    ),
    "batches": Evidence(
        tests=(
            "tests/sums/products/test_gemm.py",
            "tests/sums/arithmetic/test_panels.py",
            "tests/sums/execution/test_execute.py",
        )
    ),
    "compiled or not": Evidence(
        tests=(
            "tests/sums/arithmetic/test_kernels.py",
            "tests/sums/products/test_gemm.py",
            "tests/sums/execution/test_compilation_budget.py",
            "tests/sums/arithmetic/test_cache.py",
        )
    ),
    "platforms": Evidence(
        tests=(
            "tests/sums/arithmetic/test_environment.py",
            "tests/machine/opcodes/test_transcendental.py",
        ),
        tools=(
            "python -m tools.digests --check",
            "python -m tools.versions",
        ),
    ),
    "two derivations": Evidence(
        tests=(
            "tests/sums/arithmetic/test_numerics.py",
            "tests/sums/arithmetic/test_reference.py",
        ),
        tools=(
            "python -m tools.soak",
            "python -m tools.fuzz --differential",
        ),
        figures=(
            "soak",
            "paths",
        ),
    ),
    "statements in basic blocks": Evidence(
        tests=("tests/machine/test_basic_blocks.py", "tests/machine/test_machine_code.py")
    ),
    "clusters of machines": Evidence(
        tests=(
            "tests/base/cluster/test_distribution.py",
            "tests/programs/launch/test_spread_launches.py",
        )
    ),
    "processes": Evidence(tests=("tests/programs/launch/test_helper_processes.py",)),
    "schedules": Evidence(
        tests=(
            "tests/machine/test_kernels_launch.py",
            "tests/tools/test_pipeline_changes.py",
        ),
        tools=("python -m tools.pipeline_changes --schedules N",),
        figures=("schedules",),
    ),
    "decoder": Evidence(
        tests=(
            "tests/ptx/test_ptxas.py",
            "tests/ptx/test_ptxas_types.py",
            "tests/ptx/test_decode.py",
        ),
        tools=("python -m tools.legality",),
        figures=(
            "legality",
            "legality under releases",
        ),
    ),
    "decoder of kernels": Evidence(
        tests=(
            "tests/machine/opcodes/test_opcode_space.py",
            "tests/machine/opcodes/test_opcode_spelling.py",
        ),
        tools=("python -m tools.legality.opcodes",),
        figures=("legality of opcodes",),
    ),
    "layouts": Evidence(
        tests=(
            "tests/isa/test_manual_layouts.py",
            "tests/isa/test_arrangements.py",
            "tests/isa/test_descriptor.py",
        )
    ),
    "corner vectors": Evidence(
        tests=(
            "tests/tools/test_mutants.py",
            "tests/workbench/generation",
        ),
        tools=(
            "python -m tools.mutants",
            "python -m tools.mutants.every_type",
        ),
        figures=(
            "faults",
            "faults on every pair of types",
        ),
    ),
    "mutants of the code": Evidence(
        tests=("tests/tools/test_code_mutants.py",),
        tools=("python -m tools.code_mutants",),
        figures=("mutants of the code",),
    ),
    "changed pipelines": Evidence(
        tests=(
            "tests/tools/test_pipeline_changes.py",
            "tests/observe/checks/test_copy_order.py",
            "tests/observe/checks/test_hazards.py",
            "tests/observe/checks/test_lane_races.py",
        ),
        tools=("python -m tools.pipeline_changes",),
        figures=("changed pipelines",),
    ),
    "mistakes": Evidence(
        tests=(
            "tests/workbench/diagnosis/test_user_mistakes.py",
            "tests/workbench/diagnosis/test_diff.py",
        ),
        tools=("python -m tools.mistakes --only users",),
        figures=("mistakes",),
    ),
    "any bytes": Evidence(
        tests=(
            "tests/tools/test_fuzz.py",
            "tests/show/cli/test_cli_hostile.py",
            "tests/sums/execution/test_hostile_arguments.py",
            "tests/workbench/vectors/test_vector_formats.py",
        ),
        tools=("python -m tools.fuzz",),
        figures=("fuzzing",),
    ),
    "statements that raise": Evidence(
        tests=(
            "tests/programs/interactive/test_snapshots.py",
            "tests/programs/launch/test_launch.py",
        )
    ),
    "replaced files": Evidence(tests=("tests/base/files/test_replacing.py",)),
    "tensor copies": Evidence(tests=("tests/machine/opcodes/test_tensors.py",)),
    "reductions of copies": Evidence(
        tests=(
            "tests/machine/opcodes/test_bulk.py",
            "tests/machine/opcodes/test_tensors.py",
        )
    ),
    "orders of additions": Evidence(
        tests=(
            "tests/programs/launch/test_addition_orders.py",
            "tests/machine/opcodes/test_atomics.py",
        )
    ),
    "crossed rows": Evidence(tests=("tests/isa/test_descriptor.py",)),
    "order of allocations": Evidence(tests=("tests/machine/test_tensor_contention.py",)),
    "textures": Evidence(tests=("tests/machine/test_declarations.py",)),
    "swizzle patterns": Evidence(
        tests=(
            "tests/isa/test_descriptor.py",
            "tests/machine/test_tensor_products.py",
        )
    ),
    "interleaved tensors": Evidence(
        tests=(
            "tests/isa/test_tensor_box.py",
            "tests/machine/opcodes/test_tensors.py",
        )
    ),
    "wmma types": Evidence(tests=("tests/programs/launch/test_not_modelled.py",)),
    "scale ids": Evidence(tests=("tests/programs/interactive/test_machine.py",)),
    "calls": Evidence(
        tests=("tests/programs/launch/test_not_modelled.py", "tests/machine/opcodes/test_call_checks.py")
    ),
    "wide registers": Evidence(
        tests=(
            "tests/machine/opcodes/test_wide.py",
            "tests/machine/opcodes/test_vector_registers.py",
        )
    ),
    "kernel statements in warps": Evidence(
        tests=(
            "tests/programs/interactive/test_warp_opcodes.py",
            "tests/programs/interactive/test_machine.py",
            "tests/programs/interactive/test_warpgroup.py",
        )
    ),
    "compiled signatures": Evidence(tests=("tests/programs/compilers/test_signatures.py",)),
    "metadata fields": Evidence(
        tests=(
            "tests/isa/test_fragments.py",
            "tests/sums/execution/test_execute.py",
        )
    ),
    "tensor coordinates": Evidence(
        tests=(
            "tests/isa/test_tensor_box.py",
            "tests/machine/opcodes/test_tensors.py",
        )
    ),
    "unwritten registers": Evidence(
        tests=(
            "tests/programs/interactive/test_machine.py",
            "tests/machine/opcodes/test_matrices.py",
            "tests/machine/opcodes/test_tiles.py",
        )
    ),
    "divergent collectives": Evidence(
        tests=(
            "tests/machine/opcodes/test_matrices.py",
            "tests/machine/opcodes/test_wgmma_launches.py",
            "tests/machine/opcodes/test_registers.py",
            "tests/programs/interactive/test_machine.py",
        )
    ),
    "tensor memory": Evidence(
        tests=(
            "tests/machine/test_tensor_memory.py",
            "tests/machine/test_tensor_products.py",
            "tests/isa/test_tcgen05_descriptors.py",
        )
    ),
    "open results in warps": Evidence(tests=("tests/programs/interactive/test_warpgroup.py",)),
    "misused barriers": Evidence(
        tests=(
            "tests/machine/opcodes/test_mbarriers.py",
            "tests/machine/opcodes/test_remote.py",
            "tests/machine/test_clusters.py",
        )
    ),
    "stack restores": Evidence(tests=("tests/machine/opcodes/test_stack.py",)),
    "results validated": Evidence(
        tests=("tests/sums/arithmetic/test_hardware.py", "tests/sums/arithmetic/test_numerics.py"),
    ),
    "results documented": Evidence(
        tests=("tests/sums/arithmetic/test_integers.py", "tests/sums/arithmetic/test_reference.py"),
    ),
    "results inferred": Evidence(
        tests=("tests/sums/arithmetic/test_numerics.py", "tests/sums/arithmetic/test_reference.py"),
        tools=("python -m tools.capture",),
    ),
    "statements exact": Evidence(tests=("tests/machine/opcodes", "tests/machine/test_c_programs.py")),
    "statements inferred": Evidence(tests=("tests/machine/opcodes", "tests/machine/test_unspecified.py")),
    "statements approximate": Evidence(tests=("tests/machine/opcodes/test_approximate_floats.py",)),
    "special registers": Evidence(tests=("tests/machine/test_special.py",)),
    "refused opcodes": Evidence(tests=("tests/machine/opcodes/test_refused.py",)),
    "single instructions": Evidence(tests=("tests/programs/launch/test_not_modelled.py",)),
    "opcodes of launches": Evidence(tests=("tests/programs/interactive/test_warp_opcodes.py",)),
    "unsorted metadata": Evidence(tests=("tests/sums/execution/test_execute.py",)),
}
