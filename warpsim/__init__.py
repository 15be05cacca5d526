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

from .files.version import __version__ as __version__

TYPE_CHECKING = False  # as typing has it, whose import takes a while, in which a command can be interrupted

if TYPE_CHECKING:
    from .diagnosis import diagnose
    from .diagnosis.linting.lint import lint
    from .diagnosis.origins.element_origins import Origins, find_origins
    from .diagnosis.verdicts import Verdict, why
    from .errors import (
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
    from .execution.interface import (
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
    from .explanation.inspection import (
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
    from .explanation.walk import walk_product
    from .generation.generate import corner_vectors, coverage, generate_vectors
    from .generation.separation import separate
    from .host.compilers.numba_kernels import compile_numba, launch_numba
    from .host.compilers.triton_kernels import compile_triton, launch_triton
    from .host.device import Device
    from .host.interactive.machines import Warp, Warpgroup
    from .host.loading import load
    from .host.structures import structure
    from .host.tensor_maps import tensor_map, tensor_map_im2col
    from .isa.instruction import Instruction
    from .products.gemm import gemm, gemm_sparse
    from .products.warming import warmup
    from .report import Report, view
    from .report.explorer import Explorer, explore
    from .vectors.formats import read_vectors, write_vectors
    from .vectors.outcomes import Outcome, verify
    from .vectors.register_traces import RegisterTrace, read_register_trace
    from .vectors.sets import VectorSet, make_vectors
    from .views.timelines.timeline_svg import draw_timeline

if TYPE_CHECKING:  # types in the signatures of those
    from .diagnosis.dumps.dump_comparison import DumpComparison as DumpComparison
    from .diagnosis.linting.subject import Finding as Finding
    from .diagnosis.origins.element_origins import OperandOrigins as OperandOrigins
    from .diagnosis.origins.packing_checks import PackingFinding as PackingFinding
    from .diagnosis.origins.tagged_runs import Dependence as Dependence
    from .diagnosis.origins.tagged_runs import Movement as Movement
    from .diagnosis.origins.tagged_runs import TaggedBuffer as TaggedBuffer
    from .diagnosis.search.diagnose import Diagnosis as Diagnosis
    from .diagnosis.verdicts.launch_causes import Cause as Cause
    from .diagnosis.verdicts.output_errors import OutputError as OutputError
    from .errors import Location as Location
    from .errors import SourceLine as SourceLine
    from .explanation.accumulators import Walk as Walk
    from .explanation.records import Explanation as Explanation
    from .explanation.records import TargetComparison as TargetComparison
    from .files.decimals import Printed as Printed
    from .generation.coverage.vector_coverage import Coverage as Coverage
    from .generation.separation import Separation as Separation
    from .host.array_agreement import Agreement as Agreement
    from .host.compilers.triton_kernels import TritonKernel as TritonKernel
    from .host.device import Symbol as Symbol
    from .host.launch_execution import LaunchReport as LaunchReport
    from .host.launching import LaunchableKernel as LaunchableKernel
    from .host.launching import LoadedModule as LoadedModule
    from .host.structures import Structure as Structure
    from .host.tensor_maps import ArrayMap as ArrayMap
    from .host.tensor_maps import BufferMap as BufferMap
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
    from .machine.state.device import Buffer as Buffer
    from .machine.state.device import BufferPlace as BufferPlace
    from .recording.strips import Timeline as Timeline
    from .report.document import ReportData as ReportData
    from .report.set_cases import Cases as Cases
    from .traces.running import Run as Run
    from .vectors.recordings import Recording as Recording
    from .vectors.sets import Part as Part
    from .vectors.verification import Item as Item
    from .vectors.verification import Tally as Tally
    from .views.drawings.figure_files import Drawing as Drawing

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ClusterError",
    "Device",
    "Explorer",
    "Fault",
    "IllegalInstruction",
    "Instruction",
    "NotModelled",
    "OperandError",
    "Origins",
    "Outcome",
    "PtxError",
    "RegisterTrace",
    "Report",
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
    "host.compilers.numba_kernels": "compile_numba launch_numba",
    "host.compilers.triton_kernels": "compile_triton launch_triton",
    "diagnosis": "diagnose",
    "diagnosis.origins.element_origins": "Origins find_origins",
    "diagnosis.verdicts": "Verdict why",
    "errors": (
        "ClusterError Fault IllegalInstruction NotModelled OperandError PtxError TraceError "
        "UndefinedBehavior WarpsimError"
    ),
    "execution.interface": (
        "compress decode decompress evidence execute fragment instructions matmul metadata_map pack "
        "pack_metadata prune unpack unpack_metadata"
    ),
    "explanation.inspection": (
        "compare_registers compare_targets convert_metadata detect_metadata draw_layout explain "
        "find_element find_lane find_sources"
    ),
    "explanation.walk": "walk_product",
    "generation.generate": "corner_vectors coverage generate_vectors",
    "generation.separation": "separate",
    "isa.instruction": "Instruction",
    "diagnosis.linting.lint": "lint",
    "host.device": "Device",
    "host.loading": "load",
    "host.interactive.machines": "Warp Warpgroup",
    "host.structures": "structure",
    "host.tensor_maps": "tensor_map tensor_map_im2col",
    "products.gemm": "gemm gemm_sparse",
    "products.warming": "warmup",
    "report": "Report view",
    "report.explorer": "Explorer explore",
    "vectors.formats": "read_vectors write_vectors",
    "vectors.outcomes": "Outcome verify",
    "vectors.register_traces": "RegisterTrace read_register_trace",
    "vectors.sets": "VectorSet make_vectors",
    "views.timelines.timeline_svg": "draw_timeline",
}
_TYPES = {  # types in signatures of those: public, but not among the names that are listed
    "diagnosis.dumps.dump_comparison": "DumpComparison",
    "diagnosis.linting.subject": "Finding",
    "diagnosis.origins.element_origins": "OperandOrigins",
    "diagnosis.origins.packing_checks": "PackingFinding",
    "diagnosis.origins.tagged_runs": "Dependence Movement TaggedBuffer",
    "diagnosis.search.diagnose": "Diagnosis",
    "diagnosis.verdicts.launch_causes": "Cause",
    "diagnosis.verdicts.output_errors": "OutputError",
    "errors": "Location SourceLine",
    "explanation.accumulators": "Walk",
    "explanation.records": "Explanation TargetComparison",
    "files.decimals": "Printed",
    "generation.coverage.vector_coverage": "Coverage",
    "generation.separation": "Separation",
    "host.array_agreement": "Agreement",
    "host.compilers.triton_kernels": "TritonKernel",
    "host.device": "Symbol",
    "host.launch_execution": "LaunchReport",
    "host.launching": "LaunchableKernel LoadedModule",
    "host.structures": "Structure",
    "host.tensor_maps": "ArrayMap BufferMap",
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
    "recording.strips": "Timeline",
    "report.document": "ReportData",
    "report.set_cases": "Cases",
    "traces.running": "Run",
    "vectors.recordings": "Recording",
    "vectors.sets": "Part",
    "vectors.verification": "Item Tally",
    "views.drawings.figure_files": "Drawing",
}
_HOMES = {name: home for table in (_NAMES, _TYPES) for home, names in table.items() for name in names.split()}


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse any other

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'warpsim' has no attribute {name!r}")
        from .environment import default_environment

        with default_environment():  # the modules that hold the numbers
            home = import_module(f".{_HOMES[name]}", __name__)
        value = getattr(home, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
