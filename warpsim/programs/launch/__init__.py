"""Launches as users hold them: modules, kernels and reports, with all checks of a launch."""
