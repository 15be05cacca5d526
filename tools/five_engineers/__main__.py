"""``python -m tools.five_engineers [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

from tools.judging import measured

from . import (
    attention_author,
    held_back,
    kernel_author,
    log_keeper,
    quantizer,
    register_reader,
    right_kernels,
)

GROUPS = {
    "kernel author": kernel_author.LIST,
    "quantizer": quantizer.LIST,
    "attention author": attention_author.LIST,
    "register reader": register_reader.LIST,
    "log keeper": log_keeper.LIST,
    "held back": held_back.LIST,
    "right": right_kernels.LIST,
}

if __name__ == "__main__":
    measured(GROUPS, "What warpsim diff says of mistakes of five engineers.")
