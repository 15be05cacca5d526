"""Traces: PTX text of one warp or warpgroup, with the data that it reads and must compute."""
