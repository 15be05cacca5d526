"""Opcodes of asynchronous copies, tensor maps and mbarriers."""
