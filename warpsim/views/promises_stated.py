"""What is promised in words, one row a promise: what no table of the package says by itself.

Knows tests and tools by their paths in a checkout, and modules by theirs in the package; tests hold that all
of them are there, and that no module refuses anything which no row names. Does not know figures.
"""

from __future__ import annotations

from .promise import Promise

BITS = "The same bits"
RESULTS = "Matrix instructions"
STATEMENTS = "Statements of launched kernels"
FORMS = "Forms, layouts and findings"
ERRORS = "Errors and files"
LIMITS = "What is refused"

Names = tuple[str, ...]


def _guaranteed(
    section: str, what: str, *tests: str, modules: Names, tools: Names = (), figures: Names = ()
) -> Promise:
    return Promise(
        section=section,
        label="guaranteed",
        what=what,
        tests=tests,
        tools=tools,
        figures=figures,
        modules=modules,
    )


def _measured(what: str, *tests: str, tools: Names, figures: Names, modules: Names) -> Promise:
    return Promise(
        section=FORMS, label="measured", what=what, tests=tests, tools=tools, figures=figures, modules=modules
    )


def _inferred(what: str, *tests: str, modules: Names) -> Promise:
    return Promise(section=STATEMENTS, label="inferred", what=what, tests=tests, modules=modules)


def _refused(what: str, *tests: str, modules: Names) -> Promise:
    return Promise(section=LIMITS, label="not modelled", what=what, tests=tests, modules=modules)


def _undefined(what: str, *tests: str, modules: Names) -> Promise:
    return Promise(section=LIMITS, label="undefined by PTX", what=what, tests=tests, modules=modules)


GUARANTEED = (
    _guaranteed(
        BITS,
        "in any process: rounding modes and flush-to-zero that other libraries have set are set aside while "
        "something is computed, in every thread, and found again afterwards",
        *("tests/arithmetic/test_environment.py", "tests/host/test_launch_environment.py"),
        modules=("environment.py",),
    ),
    _guaranteed(
        BITS,
        "for any number of threads, tiles and batches",
        *(
            "tests/products/test_gemm.py",
            "tests/arithmetic/test_panels.py",
            "tests/execution/test_execute.py",
        ),
        modules=("arithmetic/panels.py", "products/accumulation.py", "execution/batches.py"),
    ),
    _guaranteed(
        BITS,
        "with and without the just-in-time compiler, for any CPU it compiles for, and with a broken cache",
        *(
            "tests/arithmetic/test_kernels.py",
            "tests/products/test_gemm.py",
            "tests/execution/test_first_work.py",
            "tests/arithmetic/test_cache.py",
        ),
        modules=("arithmetic/kernels/_jit.py",),
    ),
    _guaranteed(
        BITS,
        "on x86-64 and 64-bit ARM, with every version of Python and of the dependencies that pyproject.toml "
        "allows: digests of all results are committed, and compared",
        *("tests/arithmetic/test_environment.py", "tests/machine/opcodes/test_transcendental.py"),
        tools=("python -m tools.digests --check", "python -m tools.versions"),
        modules=("machine/opcodes/floating/transcendental.py",),
    ),
    _guaranteed(
        BITS,
        "by compiled kernels and by plain integers, which share no arithmetic",
        *("tests/arithmetic/test_numerics.py", "tests/arithmetic/test_reference.py"),
        tools=("python -m tools.soak", "python -m tools.fuzz --differential"),
        figures=("soak", "paths"),
        modules=("arithmetic/numerics.py", "arithmetic/reference.py"),
    ),
    _guaranteed(
        BITS,
        "on a cluster of machines, some of which may die",
        *("tests/cluster/test_distribution.py", "tests/cluster/test_spread_launches.py"),
        modules=("cluster/distribution.py", "host/spreading.py"),
    ),
    _guaranteed(
        BITS,
        "under every schedule of asynchronous copies and wgmma, for kernels without findings",
        *("tests/machine/test_kernels_launch.py", "tests/tools/test_pipeline_changes.py"),
        tools=("python -m tools.pipeline_changes --schedules N",),
        figures=("schedules",),
        modules=("machine/run/asynchronous.py",),
    ),
    _guaranteed(
        FORMS,
        "the decoder takes the forms, operands and register types that ptxas takes, and no others, but for "
        "listed, reasoned differences",
        *("tests/ptx/test_ptxas.py", "tests/ptx/test_ptxas_types.py", "tests/ptx/test_decode.py"),
        tools=("python -m tools.legality",),
        figures=("legality", "legality under releases"),
        modules=("ptx/decode.py", "ptx/qualifiers.py"),
    ),
    _guaranteed(
        FORMS,
        "so do launched kernels with the statements of every opcode",
        *("tests/machine/opcodes/test_opcode_space.py", "tests/machine/opcodes/test_opcode_spelling.py"),
        tools=("python -m tools.legality.opcodes",),
        figures=("legality of opcodes",),
        modules=("machine/opcodes/__init__.py",),
    ),
    _guaranteed(
        FORMS,
        "every layout of registers, metadata and shared memory is the manual's, transcribed a second time",
        *(
            "tests/isa/test_manual_layouts.py",
            "tests/isa/test_arrangements.py",
            "tests/isa/test_descriptor.py",
        ),
        modules=("isa/fragments.py", "isa/metadata/orders.py", "isa/descriptors/tile_addresses.py"),
    ),
    _measured(
        "corner vectors catch faults in an arithmetic",
        *("tests/tools/test_mutants.py", "tests/generation"),
        tools=("python -m tools.mutants", "python -m tools.mutants.every_type"),
        figures=("faults", "faults on every pair of types"),
        modules=("generation/cases/corners.py",),
    ),
    _measured(
        "tests notice one-line changes of the code: layouts, metadata, rules, hazards, opcodes for some",
        "tests/tools/test_code_mutants.py",
        tools=("python -m tools.code_mutants",),
        figures=("mutants of the code",),
        modules=("isa/fragments.py", "isa/descriptors/tile_addresses.py", "checks/hazards.py"),
    ),
    _measured(
        "a launch reports a synchronising statement that is missing or changed, where that does harm",
        *("tests/tools/test_pipeline_changes.py", "tests/checks/test_copy_order.py"),
        *("tests/checks/test_hazards.py", "tests/checks/test_lane_races.py"),
        tools=("python -m tools.pipeline_changes",),
        figures=("changed pipelines",),
        modules=("checks/copy_order.py",),
    ),
    _measured(
        "diff names the mistake behind wrong bits",
        *("tests/diagnosis/test_user_mistakes.py", "tests/diagnosis/test_diff.py"),
        tools=("python -m tools.user_mistakes",),
        figures=("mistakes",),
        modules=("diagnosis/search/mistake_search.py",),
    ),
    _guaranteed(
        ERRORS,
        "any bytes give a result or a WarpsimError that names the place: exit codes 0 to 4, within 20 s "
        "and 1 GiB",
        *("tests/tools/test_fuzz.py", "tests/cli/test_cli_hostile.py"),
        *("tests/execution/test_hostile_arguments.py", "tests/vectors/test_vector_formats.py"),
        tools=("python -m tools.fuzz",),
        figures=("fuzzing",),
        modules=("errors.py",),
    ),
    _guaranteed(
        ERRORS,
        "a statement that raises leaves registers and memories as they were",
        *("tests/host/test_snapshots.py", "tests/host/test_launch.py"),
        modules=("machine/opcodes/effect.py",),
    ),
    _guaranteed(
        ERRORS,
        "a file is replaced when its successor is finished and not before; no input is written over",
        "tests/files/test_replacing.py",
        modules=("files/replacing.py", "files/inputs.py"),
    ),
)

INFERRED = (
    _inferred(
        "tensor copies round f32 to tf32 to nearest even, and fill with 0x7ff7 as OOB NaN",
        "tests/machine/opcodes/test_tensors.py",
        modules=("machine/opcodes/asynchronous/tensor_moves.py", "machine/opcodes/asynchronous/tensors.py"),
    ),
    _inferred(
        "reductions of bulk and tensor copies flush subnormal f32 in global memory, as red does",
        *("tests/machine/opcodes/test_bulk.py", "tests/machine/opcodes/test_tensors.py"),
        modules=("machine/opcodes/asynchronous/bulk.py", "machine/opcodes/memory/updates.py"),
    ),
)

NOT_MODELLED = (
    _refused(
        "base offsets of matrix descriptors, and tiles that go on behind the end of a swizzled row",
        *("tests/isa/test_descriptor.py", "tests/host/test_warpgroup.py"),
        modules=("isa/descriptors/tile_addresses.py",),
    ),
    _refused(
        "interleaved tensors, the im2col::w modes, and copies by pairs of CTAs (cta_group::2)",
        *("tests/isa/test_tensor_box.py", "tests/machine/opcodes/test_tensors.py"),
        modules=("isa/tensor_maps/tensor_box.py", "machine/opcodes/asynchronous/tensors.py"),
    ),
    _refused(
        "wmma that adds C of f32 into D of f16, and wmma of types that the target has no mma of",
        "tests/host/test_not_modelled.py",
        modules=("machine/opcodes/matrix/wmma.py",),
    ),
    _refused(
        "registers as scale ids that differ between lanes",
        "tests/host/test_machine.py",
        modules=("host/matrix_operands.py", "machine/opcodes/matrix/mma.py"),
    ),
    _refused(
        "calls of functions without a body, but printf, malloc, free and assertions; arguments of calls that "
        "are no .param variables of the caller",
        "tests/host/test_not_modelled.py",
        modules=("machine/opcodes/control/flow.py",),
    ),
    _refused(
        "initial values that are expressions",
        "tests/host/test_not_modelled.py",
        modules=("machine/load/initial.py",),
    ),
    _refused(
        "registers of more than 64 bits outside of .b128; constants and addresses as .b128, vectors "
        "of constants",
        *("tests/machine/opcodes/test_wide.py", "tests/machine/opcodes/test_vector_registers.py"),
        modules=(
            "machine/bind/statement_binder.py",
            "machine/bind/wide.py",
            "machine/bind/register_arrays.py",
            "machine/opcodes/memory/mov.py",
        ),
    ),
    _refused(
        "special registers of grids, clocks and clusters, .global and .const, and whole kernels, in a Warp "
        "or Warpgroup; a fence of the async proxy that some lanes execute",
        *("tests/host/test_warp_opcodes.py", "tests/host/test_machine.py"),
        "tests/host/test_warpgroup.py",
        modules=(
            *(
                "host/step_site.py",
                "host/register_file.py",
                "host/variables.py",
                "host/machine.py",
            ),
            "host/warpgroup_watch.py",
        ),
    ),
    _refused(
        "Triton kernels of clusters or with parameters that nobody knows, and Numba arguments of other types",
        "tests/compilers/test_signatures.py",
        modules=("compilers/triton_kernels.py", "compilers/numba_kernels.py"),
    ),
)

UNDEFINED = (
    _undefined(
        "metadata with equal indices, descending ones under .ordered_metadata, 1:2 fields that are neither "
        "0b0100 nor 0b1110; selectors out of range (undefined='fallback' reads each field literally)",
        *("tests/isa/test_fragments.py", "tests/execution/test_execute.py"),
        modules=("isa/fragments.py",),
    ),
    _undefined(
        "matrix descriptors that do not start in the first row of their swizzle pattern",
        *("tests/isa/test_descriptor.py", "tests/host/test_warpgroup.py"),
        modules=("isa/descriptors/tile_addresses.py",),
    ),
    _undefined(
        "coordinates and offsets of tensor copies out of range",
        *("tests/isa/test_tensor_box.py", "tests/machine/opcodes/test_tensors.py"),
        modules=("isa/tensor_maps/tensor_box.py",),
    ),
    _undefined(
        "registers that nothing has written, a source '_', one register written twice by a statement",
        *("tests/host/test_machine.py", "tests/machine/opcodes/test_matrices.py"),
        "tests/machine/opcodes/test_tiles.py",
        modules=(
            *("host/register_file.py", "host/step_site.py", "host/machine.py"),
            *("machine/opcodes/matrix/mma.py", "machine/opcodes/matrix/tiles.py"),
        ),
    ),
    _undefined(
        "statements that lanes, warps or warpgroups must execute together and do not",
        *("tests/machine/opcodes/test_matrices.py", "tests/machine/opcodes/test_wgmma_launches.py"),
        *("tests/machine/opcodes/test_registers.py", "tests/host/test_machine.py"),
        modules=("machine/run/convergence.py", "host/machine.py", "machine/opcodes/control/setmaxnreg.py"),
    ),
    _undefined(
        "in a Warp or Warpgroup: different values stored at one address, results that PTX leaves open, "
        "waiting for what never comes",
        "tests/host/test_warpgroup.py",
        modules=("host/step_wave.py",),
    ),
    _undefined(
        "misuse of mbarriers, and of the barrier of a cluster",
        *("tests/machine/opcodes/test_mbarriers.py", "tests/machine/opcodes/test_remote.py"),
        "tests/machine/test_clusters.py",
        modules=(
            *("machine/run/mbarrier.py", "machine/run/cluster_barrier.py"),
            *("machine/opcodes/asynchronous/mbarriers.py", "machine/opcodes/asynchronous/remote.py"),
        ),
    ),
    _undefined(
        "a stackrestore of what no stacksave gave",
        "tests/machine/opcodes/test_stack.py",
        modules=("machine/opcodes/control/stack.py",),
    ),
)

STATED = (*GUARANTEED, *INFERRED, *NOT_MODELLED, *UNDEFINED)
