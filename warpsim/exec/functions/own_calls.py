"""Functions of our own library, by which clients in Python say what CUDA has no function for."""

from __future__ import annotations

from ..calls import Call, Pointer, row


@row("warpsimComputedOnCpu")
def computed_on_cpu(call: Call, name: Pointer) -> None:
    """Count an operator of PyTorch that the CPU has computed (client_torch.py)."""
    call.process.tally.on_cpu[call.text(name)] += 1
