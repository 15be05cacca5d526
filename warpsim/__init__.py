"""Bit-exact simulation of NVIDIA tensor-core instructions and kernels, without a GPU.

What users begin with:

    decode      an instruction from its PTX text, for a chip: its fragments, metadata, numerics
    execute     the registers of D from the registers of A, B and C, for a warp or a warpgroup
    matmul      the same from matrices; gemm is a product of any size, in tiles of an instruction
    pack        matrices as registers of lanes; unpack is the way back
    explain     why an element of D has the bits that it has
    load        a kernel from PTX or CUDA C++; its launch runs it on arrays and reports findings
    why         why a launch is wrong; diagnose is for outputs and dumps from elsewhere
    view        a page that shows an execution; explore makes a page of all layouts
    make_vectors, verify   golden vectors of an instruction, and whether an implementation agrees

Each has its own help. The commands of ``warpsim --help`` do the same on files. The types in their signatures
are names of warpsim, too: ``from warpsim import LaunchReport``.

Names are imported at their first use, so that ``import warpsim`` and the command line start fast.
"""

from __future__ import annotations

from importlib import import_module

from .base.files.version import __version__ as __version__

TYPE_CHECKING = False  # as typing has it, whose import takes a while, in which a command can be interrupted

if TYPE_CHECKING:
    from .base.errors import (
        ClusterError,
        Fault,
        IllegalInstruction,
        NotModelled,
        OperandError,
        PtxError,
        TraceError,
        UndefinedBehavior,
        WarpsimError,
    )
    from .isa.instruction import Instruction
    from .machine.host.device import Device
    from .machine.host.structures import structure
    from .machine.host.tensor_maps import tensor_map, tensor_map_im2col
    from .observe.algebra.equivalence import Equivalence as Equivalence
    from .observe.algebra.equivalence import Output as Output
    from .observe.algebra.locating.located_record import Located as Located
    from .programs.compilers.numba_kernels import compile_numba, launch_numba
    from .programs.compilers.triton_kernels import compile_triton, launch_triton
    from .programs.interactive.machines import Warp, Warpgroup
    from .programs.launch.loading import load
    from .show.debugger import Session
    from .show.report import Report, view
    from .show.report.explorer import Explorer, explore
    from .show.testing import KernelFailure
    from .show.views.inspection import (
        compare_registers,
        compare_targets,
        convert_metadata,
        detect_metadata,
        draw_layout,
        explain,
        find_element,
        find_lane,
        find_sources,
    )
    from .show.views.rule_table import rules
    from .show.views.timelines.timeline_svg import draw_timeline
    from .sums.execution.interface import (
        compress,
        decode,
        decompress,
        evidence,
        execute,
        fragment,
        instructions,
        matmul,
        metadata_map,
        pack,
        pack_metadata,
        prune,
        unpack,
        unpack_metadata,
    )
    from .sums.products.gemm import gemm, gemm_sparse
    from .sums.products.warming import warmup
    from .workbench.diagnosis import diagnose
    from .workbench.diagnosis.linting.lint import lint
    from .workbench.diagnosis.origins.element_origins import Origins, find_origins
    from .workbench.diagnosis.verdicts import Verdict, why
    from .workbench.explanation.walk import walk_product
    from .workbench.generation.generate import corner_vectors, coverage, generate_vectors
    from .workbench.generation.separation import separate
    from .workbench.vectors.formats import read_vectors, write_vectors
    from .workbench.vectors.outcomes import Outcome, verify
    from .workbench.vectors.register_traces import RegisterTrace, read_register_trace
    from .workbench.vectors.sets import VectorSet, make_vectors

if TYPE_CHECKING:  # types in the signatures of those
    from .base.errors import Location as Location
    from .base.errors import SourceLine as SourceLine
    from .isa.comparisons import Evidence as Evidence
    from .isa.formats import Format as Format
    from .isa.instruction import Family as Family
    from .isa.metadata.detection import Detection as Detection
    from .isa.operand_places.placements import BehindDescriptor as BehindDescriptor
    from .isa.operand_places.placements import Inputs as Inputs
    from .isa.operand_places.placements import InRegisters as InRegisters
    from .isa.operand_places.placements import MetadataRegisters as MetadataRegisters
    from .isa.operand_places.placements import Placement as Placement
    from .isa.operand_places.placements import Registers as Registers
    from .isa.operand_places.placements import ScaleRegisters as ScaleRegisters
    from .isa.operand_places.placements import SharedTile as SharedTile
    from .isa.operand_places.places import Feeds as Feeds
    from .isa.operand_places.places import Place as Place
    from .isa.products import Product as Product
    from .isa.products import Storage as Storage
    from .machine.host.device import Symbol as Symbol
    from .machine.host.structures import Structure as Structure
    from .machine.host.tensor_maps import ArrayMap as ArrayMap
    from .machine.host.tensor_maps import BufferMap as BufferMap
    from .machine.state.device import Buffer as Buffer
    from .machine.state.device import BufferPlace as BufferPlace
    from .observe.recording.strips import Timeline as Timeline
    from .programs.compilers.triton_kernels import TritonKernel as TritonKernel
    from .programs.launch.array_agreement import Agreement as Agreement
    from .programs.launch.launch_execution import LaunchReport as LaunchReport
    from .programs.launch.launching import LaunchableKernel as LaunchableKernel
    from .programs.launch.launching import LoadedModule as LoadedModule
    from .show.report.document import ReportData as ReportData
    from .show.report.set_cases import Cases as Cases
    from .show.views.drawings.figure_files import Drawing as Drawing
    from .show.views.rule_table import RuleRow as RuleRow
    from .workbench.diagnosis.dumps.dump_comparison import DumpComparison as DumpComparison
    from .workbench.diagnosis.linting.subject import Finding as Finding
    from .workbench.diagnosis.origins.element_origins import OperandOrigins as OperandOrigins
    from .workbench.diagnosis.origins.packing_checks import PackingFinding as PackingFinding
    from .workbench.diagnosis.origins.traced_launch import Dependence as Dependence
    from .workbench.diagnosis.origins.traced_launch import Movement as Movement
    from .workbench.diagnosis.origins.traced_launch import TracedBuffer as TracedBuffer
    from .workbench.diagnosis.search.diagnose import Diagnosis as Diagnosis
    from .workbench.diagnosis.verdicts.launch_causes import Cause as Cause
    from .workbench.diagnosis.verdicts.output_errors import OutputError as OutputError
    from .workbench.explanation.accumulators import Walk as Walk
    from .workbench.explanation.records import Explanation as Explanation
    from .workbench.explanation.records import TargetComparison as TargetComparison
    from .workbench.generation.coverage.vector_coverage import Coverage as Coverage
    from .workbench.generation.separation import Separation as Separation
    from .workbench.inputs.decimals import Printed as Printed
    from .workbench.traces.running import Run as Run
    from .workbench.vectors.recordings import Recording as Recording
    from .workbench.vectors.sets import Part as Part
    from .workbench.vectors.verification import Item as Item
    from .workbench.vectors.verification import Tally as Tally

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ClusterError",
    "Device",
    "Explorer",
    "Fault",
    "IllegalInstruction",
    "Instruction",
    "KernelFailure",
    "NotModelled",
    "OperandError",
    "Origins",
    "Outcome",
    "PtxError",
    "RegisterTrace",
    "Report",
    "Session",
    "TraceError",
    "UndefinedBehavior",
    "VectorSet",
    "Verdict",
    "Warp",
    "Warpgroup",
    "WarpsimError",
    "compare_registers",
    "compare_targets",
    "compile_numba",
    "compile_triton",
    "compress",
    "convert_metadata",
    "corner_vectors",
    "coverage",
    "decode",
    "decompress",
    "detect_metadata",
    "diagnose",
    "draw_layout",
    "draw_timeline",
    "evidence",
    "execute",
    "explain",
    "explore",
    "find_element",
    "find_lane",
    "find_origins",
    "find_sources",
    "fragment",
    "gemm",
    "gemm_sparse",
    "generate_vectors",
    "instructions",
    "launch_numba",
    "launch_triton",
    "lint",
    "load",
    "make_vectors",
    "matmul",
    "metadata_map",
    "pack",
    "pack_metadata",
    "prune",
    "read_register_trace",
    "read_vectors",
    "rules",
    "separate",
    "structure",
    "tensor_map",
    "tensor_map_im2col",
    "unpack",
    "unpack_metadata",
    "verify",
    "view",
    "walk_product",
    "warmup",
    "why",
    "write_vectors",
]

_NAMES = {  # public names of each module, in the order of the imports above
    "programs.compilers.numba_kernels": "compile_numba launch_numba",
    "programs.compilers.triton_kernels": "compile_triton launch_triton",
    "workbench.diagnosis": "diagnose",
    "workbench.diagnosis.origins.element_origins": "Origins find_origins",
    "workbench.diagnosis.verdicts": "Verdict why",
    "base.errors": (
        "ClusterError Fault IllegalInstruction NotModelled OperandError PtxError TraceError "
        "UndefinedBehavior WarpsimError"
    ),
    "sums.execution.interface": (
        "compress decode decompress evidence execute fragment instructions matmul metadata_map pack "
        "pack_metadata prune unpack unpack_metadata"
    ),
    "show.testing": "KernelFailure",
    "show.views.inspection": (
        "compare_registers compare_targets convert_metadata detect_metadata draw_layout explain "
        "find_element find_lane find_sources"
    ),
    "show.views.rule_table": "rules",
    "workbench.explanation.walk": "walk_product",
    "workbench.generation.generate": "corner_vectors coverage generate_vectors",
    "workbench.generation.separation": "separate",
    "isa.instruction": "Instruction",
    "workbench.diagnosis.linting.lint": "lint",
    "machine.host.device": "Device",
    "programs.launch.loading": "load",
    "programs.interactive.machines": "Warp Warpgroup",
    "machine.host.structures": "structure",
    "machine.host.tensor_maps": "tensor_map tensor_map_im2col",
    "sums.products.gemm": "gemm gemm_sparse",
    "sums.products.warming": "warmup",
    "show.debugger": "Session",
    "show.report": "Report view",
    "show.report.explorer": "Explorer explore",
    "workbench.vectors.formats": "read_vectors write_vectors",
    "workbench.vectors.outcomes": "Outcome verify",
    "workbench.vectors.register_traces": "RegisterTrace read_register_trace",
    "workbench.vectors.sets": "VectorSet make_vectors",
    "show.views.timelines.timeline_svg": "draw_timeline",
}
_TYPES = {  # types in signatures of those: public, but not among the names that are listed
    "workbench.diagnosis.dumps.dump_comparison": "DumpComparison",
    "workbench.diagnosis.linting.subject": "Finding",
    "workbench.diagnosis.origins.element_origins": "OperandOrigins",
    "workbench.diagnosis.origins.packing_checks": "PackingFinding",
    "workbench.diagnosis.origins.traced_launch": "Dependence Movement TracedBuffer",
    "workbench.diagnosis.search.diagnose": "Diagnosis",
    "workbench.diagnosis.verdicts.launch_causes": "Cause",
    "workbench.diagnosis.verdicts.output_errors": "OutputError",
    "base.errors": "Location SourceLine",
    "observe.algebra.equivalence": "Equivalence Output",
    "observe.algebra.locating.located_record": "Located",
    "workbench.explanation.accumulators": "Walk",
    "workbench.explanation.records": "Explanation TargetComparison",
    "workbench.inputs.decimals": "Printed",
    "workbench.generation.coverage.vector_coverage": "Coverage",
    "workbench.generation.separation": "Separation",
    "programs.launch.array_agreement": "Agreement",
    "programs.compilers.triton_kernels": "TritonKernel",
    "machine.host.device": "Symbol",
    "programs.launch.launch_execution": "LaunchReport",
    "programs.launch.launching": "LaunchableKernel LoadedModule",
    "machine.host.structures": "Structure",
    "machine.host.tensor_maps": "ArrayMap BufferMap",
    "isa.comparisons": "Evidence",
    "isa.formats": "Format",
    "isa.instruction": "Family",
    "isa.metadata.detection": "Detection",
    "isa.operand_places.placements": (
        "BehindDescriptor InRegisters Inputs MetadataRegisters Placement Registers ScaleRegisters SharedTile"
    ),
    "isa.operand_places.places": "Feeds Place",
    "isa.products": "Product Storage",
    "machine.state.device": "Buffer BufferPlace",
    "observe.recording.strips": "Timeline",
    "show.report.document": "ReportData",
    "show.report.set_cases": "Cases",
    "workbench.traces.running": "Run",
    "workbench.vectors.recordings": "Recording",
    "workbench.vectors.sets": "Part",
    "workbench.vectors.verification": "Item Tally",
    "show.views.drawings.figure_files": "Drawing",
    "show.views.rule_table": "RuleRow",
}
_HOMES = {name: home for table in (_NAMES, _TYPES) for home, names in table.items() for name in names.split()}


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse any other

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'warpsim' has no attribute {name!r}")
        from .base.environment import default_environment

        with default_environment():  # the modules that hold the numbers
            home = import_module(f".{_HOMES[name]}", __name__)
        value = getattr(home, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
