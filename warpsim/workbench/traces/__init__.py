"""Traces: PTX text of one warp or warpgroup, with its input data and expected results."""
