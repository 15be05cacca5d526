"""Launches as users hold them: devices, arguments, modules, kernels, warps and warpgroups."""
