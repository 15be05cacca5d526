"""The house keeps its limits: files per folder, long functions, parameters, circles of imports, names.

``python -m tools.house`` prints what stands behind every figure. A limit above its target is today's value:
lower it with the figure.
"""

from __future__ import annotations

from tools import house

FILES_PER_FOLDER = 20
CROWDED = {  # folder -> the most files that it may have
    "warpsim/show/cli": 40,  # a file is a verb
}
LONG_FUNCTIONS = 3
MANY_PARAMETERS = 37
CIRCLES = 0
REPEATED_BASENAMES = 29


def test_no_folder_is_crowded() -> None:
    limits = {folder: CROWDED.get(folder, FILES_PER_FOLDER) for folder in house.files_per_folder()}
    over = {folder: count for folder, count in house.files_per_folder().items() if count > limits[folder]}
    assert not over


def test_functions_are_short() -> None:
    assert len(house.long_functions()) <= LONG_FUNCTIONS, house.long_functions()


def test_functions_have_few_parameters() -> None:
    assert len(house.many_parameters()) <= MANY_PARAMETERS, house.many_parameters()


def test_imports_make_no_circle() -> None:
    assert len(house.circles()) <= CIRCLES, house.circles()


def test_basenames_do_not_repeat() -> None:
    repeated = house.repeated_basenames()
    assert len(repeated) <= REPEATED_BASENAMES, repeated
    assert not [name for name, modules in repeated.items() if len(modules) > 2]


def test_imports_of_every_kind_are_found() -> None:
    """Late imports are found, and those of modules and of names in them."""
    imports = house.imports()
    assert "sums.execution.interface" in imports["__init__"]
    assert "sums.arithmetic.kernels._jit" in imports["sums.arithmetic.kernels.scalar.compiled"]
    assert "show.views.launches" in imports["show.cli.launch"]
    assert "sums.products.warming" in imports["__init__"]
