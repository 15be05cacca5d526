"""What is promised in words, one row a promise: what no table of the package states.

Names the modules that decide a promise; what tests them is in tools/promises of a checkout.
"""

from __future__ import annotations

from .promise import Promise

BITS = "The same bits"
RESULTS = "Matrix instructions"
STATEMENTS = "Statements of launched kernels"
FORMS = "Forms, layouts and findings"
ERRORS = "Errors and files"
LIMITS = "What is refused"


def _guaranteed(name: str, section: str, what: str, *modules: str) -> Promise:
    return Promise(name=name, section=section, label="guaranteed", what=what, modules=modules)


def _measured(name: str, what: str, *modules: str) -> Promise:
    return Promise(name=name, section=FORMS, label="measured", what=what, modules=modules)


def _inferred(name: str, what: str, *modules: str) -> Promise:
    return Promise(name=name, section=STATEMENTS, label="inferred", what=what, modules=modules)


def _refused(name: str, what: str, *modules: str) -> Promise:
    return Promise(name=name, section=LIMITS, label="not modelled", what=what, modules=modules)


def _undefined(name: str, what: str, *modules: str) -> Promise:
    return Promise(name=name, section=LIMITS, label="undefined by PTX", what=what, modules=modules)


GUARANTEED = (
    _guaranteed(
        "environment",
        BITS,
        "in any process: rounding modes and flush-to-zero that other libraries have set are set aside "
        "during a computation, in every thread, and restored afterwards",
        "base/environment.py",
    ),
    _guaranteed(
        "batches",
        BITS,
        "for any number of threads, tiles and batches",
        "sums/arithmetic/panels.py",
        "sums/products/accumulation.py",
        "sums/execution/matrix_kernels.py",
    ),
    _guaranteed(
        "compiled or not",
        BITS,
        "with and without the just-in-time compiler, for any CPU it compiles for, and with a broken cache",
        "sums/arithmetic/kernels/_jit.py",
    ),
    _guaranteed(
        "statements in basic blocks",
        BITS,
        "and with the same findings, for launches whose statements are compiled to machine code "
        "in basic blocks, and for those whose statements are interpreted; another value of "
        "WARPSIM_STATEMENTS is refused",
        "machine/run/basic_blocks.py",
    ),
    _guaranteed(
        "platforms",
        BITS,
        "on x86-64 and 64-bit ARM, with every version of Python and of the dependencies that "
        "pyproject.toml allows: digests of all results are committed, and compared",
        "machine/opcodes/floating/transcendental.py",
    ),
    _guaranteed(
        "two derivations",
        BITS,
        "by compiled kernels and by plain integers, which share no arithmetic",
        "sums/arithmetic/numerics.py",
        "sums/arithmetic/reference.py",
    ),
    _guaranteed(
        "clusters of machines",
        BITS,
        "on a cluster of machines, some of which may die",
        "base/cluster/distribution.py",
        "programs/launch/spreading.py",
    ),
    _guaranteed(
        "processes",
        BITS,
        "of a launch over several processes of a machine, with the findings of a single process",
        "programs/launch/helper_processes.py",
        "machine/independence.py",
    ),
    _guaranteed(
        "schedules",
        BITS,
        "under every schedule of asynchronous copies and wgmma, for kernels without findings",
        "machine/run/asynchronous.py",
    ),
    _guaranteed(
        "decoder",
        FORMS,
        "the decoder takes the forms, operands and register types that ptxas takes, and no others, but "
        "for listed, reasoned differences",
        "ptx/decode.py",
        "ptx/qualifiers.py",
    ),
    _guaranteed(
        "decoder of kernels",
        FORMS,
        "so do launched kernels with the statements of every opcode",
        "machine/opcodes/__init__.py",
    ),
    _guaranteed(
        "layouts",
        FORMS,
        "every layout of registers, metadata and shared memory is the manual's, transcribed a second time, "
        "but for two that are inferred above: those of 8-bit ldmatrix and stmatrix, which are CUTLASS's, and "
        "accumulators of wmma",
        "isa/fragments.py",
        "isa/metadata/orders.py",
        "isa/descriptors/tile_addresses.py",
    ),
    _measured(
        "corner vectors",
        "corner vectors catch faults in an arithmetic",
        "workbench/generation/cases/corners.py",
    ),
    _measured(
        "mutants of the code",
        "tests notice one-line changes of the code: layouts, metadata, rules, hazards, opcodes for some",
        "isa/fragments.py",
        "isa/descriptors/tile_addresses.py",
        "observe/checks/wgmma/register_order.py",
    ),
    _measured(
        "changed pipelines",
        "a launch reports a synchronising statement that is missing or changed, where that does harm",
        "observe/checks/copy_order.py",
    ),
    _measured(
        "mistakes", "diff names the mistake behind wrong bits", "workbench/diagnosis/search/diagnose.py"
    ),
    _guaranteed(
        "any bytes",
        ERRORS,
        "any bytes give a result or a WarpsimError that names the place: exit codes 0 to 4, within 20 s "
        "and 1 GiB",
        "base/errors.py",
    ),
    _guaranteed(
        "statements that raise",
        ERRORS,
        "a statement that raises leaves registers and memories as they were",
        "machine/opcodes/effect.py",
    ),
    _guaranteed(
        "replaced files",
        ERRORS,
        "a file is replaced when its successor is finished and not before; no input is written over",
        "base/files/replacing.py",
        "base/files/read_files.py",
    ),
)

INFERRED = (
    _inferred(
        "tensor memory",
        "scale-input-d multiplies D before the sum; decompressing copies put 4-bit codes in bits 5 to 2 of "
        "bytes; metadata of selectors 2 and 3 lie in the next columns; zero-column masks have the runs of "
        "the manual's examples, and bit 39 enables them; a shift gives each row those of the next; of a K "
        "of 96, factors go on in the cell behind those of 128 rows, and rows at the address of the LBO; a "
        "generic address of 32 bits of a commit is in .shared::cluster",
        "machine/opcodes/tensor/cell_transfers.py",
        "machine/opcodes/tensor/commits.py",
        "machine/opcodes/tensor/multiply.py",
        "machine/opcodes/tensor/copies.py",
        "machine/opcodes/tensor/tensor_products.py",
    ),
    _inferred(
        "order of allocations",
        "which of the CTAs of a multiprocessor that wait for columns of tensor memory has them first",
        "machine/opcodes/tensor/allocation.py",
    ),
    _inferred(
        "swizzle patterns",
        "tiles that begin inside of a swizzle pattern or have a base offset count rows from where the base "
        "offset places the pattern; a launch warns of them",
        "isa/descriptors/matrix_descriptor.py",
        "machine/run/events.py",
    ),
    _inferred(
        "tensor copies",
        "tensor copies round f32 to tf32 to nearest even, and fill with 0x7ff7 as OOB NaN",
        "machine/opcodes/asynchronous/tensor_moves.py",
        "machine/opcodes/asynchronous/tensors.py",
    ),
    _inferred(
        "reductions of copies",
        "reductions of bulk and tensor copies flush subnormal f32 in global memory, as red does, and do with "
        "NaN and zeros what it does",
        "machine/opcodes/asynchronous/bulk.py",
        "machine/opcodes/memory/updates.py",
    ),
)

SCHEDULED = (
    Promise(
        name="orders of additions",
        section=STATEMENTS,
        label="schedule's order",
        what="sums of floats that several threads add to one address by atom, red or reducing copies, where "
        "their bits depend on the order, and old values of such additions and of other atomics, as of "
        "integers, that are used where several threads update a word and change it, and what exch, cas, inc "
        "or dec of other operands leave there: a launch finds these from values, and what they may reach; "
        "bounds are those of the schedules that a launch is repeated under, not of all orders",
        modules=(
            "machine/run/addition_orders.py",
            "programs/launch/fidelity.py",
            "programs/launch/repeated/other_schedules.py",
        ),
    ),
)

NOT_MODELLED = (
    _refused(
        "tensor memory",
        "a shift in masks of zero columns, .ashift of a sparse A, K of 96 with the scale factors of 64 rows, "
        "A in tensor memory of .ws with fewer than 128 rows, halves packed in 16x32bx2, scale-input-d that "
        "is not exact: figures alone say what they do, or the manual contradicts itself",
        "workbench/generation/probes.py",
        "isa/descriptors/tensor_descriptor.py",
        "isa/families/tcgen05_operands.py",
        "isa/layouts/zero_columns.py",
        "machine/opcodes/tensor/tensor_products.py",
        "machine/opcodes/tensor/cell_transfers.py",
        "machine/opcodes/tensor/multiply.py",
    ),
    _refused(
        "textures",
        "variables and parameters that are textures, samplers and surfaces",
        "machine/load/parameters.py",
        "machine/load/variable_spaces.py",
    ),
    _refused(
        "crossed rows",
        "tiles behind matrix descriptors that go on behind the end of a swizzled row",
        "isa/descriptors/tile_addresses.py",
    ),
    _refused(
        "interleaved tensors",
        "interleaved tensors and the im2col::w modes",
        "isa/tensor_maps/tensor_box.py",
        "machine/opcodes/asynchronous/tensors.py",
    ),
    _refused(
        "wmma types",
        "wmma that adds C of f32 into D of f16, and wmma of types that the target has no mma of",
        "machine/opcodes/matrix/wmma.py",
    ),
    _refused(
        "scale ids",
        "registers as scale ids that differ between lanes",
        "machine/opcodes/matrix/mma.py",
    ),
    _refused(
        "calls",
        "calls of functions without a body, but printf, malloc, free and assertions; arguments of calls "
        "that are no .param variables of the caller",
        "machine/opcodes/control/call_checks.py",
        "machine/opcodes/control/flow.py",
    ),
    _refused(
        "wide registers",
        "registers of more than 64 bits outside of .b128; constants and addresses as .b128, vectors of "
        "constants",
        "machine/opcodes/statement_binder.py",
        "machine/opcodes/wide.py",
        "machine/bind/register_arrays.py",
        "machine/opcodes/memory/mov.py",
    ),
    _refused(
        "kernel statements in warps",
        "special registers without a model, .global, .const and .param memory, registers of vectors and "
        "whole kernels, in a Warp or Warpgroup",
        "programs/interactive/interactive_binder.py",
        "programs/interactive/interactive_wave.py",
        "programs/interactive/shared_memory.py",
        "programs/interactive/machines.py",
    ),
    _refused(
        "compiled signatures",
        "Triton kernels of clusters or with unknown parameters, and Numba arguments of other types",
        "programs/compilers/triton_kernels.py",
        "programs/compilers/numba_kernels.py",
    ),
)

UNDEFINED = (
    _undefined(
        "tensor memory",
        "tcgen05.mma that reads cells which were never written, copies of operands that differ, D over "
        "another operand, descriptors with illegal fields",
        "isa/families/tcgen05_operands.py",
        "isa/operand_places/tensor_placements.py",
        "machine/opcodes/tensor/tensor_products.py",
    ),
    _undefined(
        "metadata fields",
        "metadata with equal indices, descending indices under .ordered_metadata, 1:2 fields that are "
        "neither 0b0100 nor 0b1110; selectors out of range (undefined='fallback' reads each field "
        "literally)",
        "isa/fragments.py",
    ),
    _undefined(
        "tensor coordinates",
        "coordinates and offsets of tensor copies out of range",
        "isa/tensor_maps/tensor_box.py",
    ),
    _undefined(
        "unwritten registers",
        "registers that nothing has written, a source '_', one register written twice by a statement",
        "programs/interactive/register_file.py",
        "programs/interactive/interactive_binder.py",
        "programs/interactive/machines.py",
        "machine/opcodes/matrix/mma.py",
        "machine/opcodes/matrix/tiles.py",
    ),
    _undefined(
        "divergent collectives",
        "statements that lanes, warps or warpgroups must execute together and do not",
        "machine/run/convergence.py",
        "programs/interactive/machines.py",
        "machine/opcodes/control/setmaxnreg.py",
    ),
    _undefined(
        "open results in warps",
        "in a Warp or Warpgroup: different values stored at one address, results that PTX leaves open, "
        "waiting for what never comes",
        "programs/interactive/interactive_wave.py",
    ),
    _undefined(
        "misused barriers",
        "misuse of mbarriers, of the barrier of a cluster, and of what clusterlaunchcontrol answers",
        "machine/opcodes/asynchronous/launch_control.py",
        "machine/run/barriers/mbarrier.py",
        "machine/run/barriers/cluster_barrier.py",
        "machine/opcodes/asynchronous/mbarriers.py",
        "machine/opcodes/asynchronous/remote.py",
    ),
    _undefined(
        "stack restores", "a stackrestore of what no stacksave gave", "machine/opcodes/control/stack.py"
    ),
)

STATED = (*GUARANTEED, *INFERRED, *SCHEDULED, *NOT_MODELLED, *UNDEFINED)
