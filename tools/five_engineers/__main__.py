"""``python -m tools.five_engineers [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

from tools.judging import measured

from . import (
    attention_author,
    bench_engineer,
    cuda_beginner,
    held_back,
    kernel_author,
    log_keeper,
    numerics_person,
    printf_author,
    quantizer,
    register_reader,
    right_kernels,
    triton_user,
)

GROUPS = {
    "kernel author": kernel_author.LIST,
    "quantizer": quantizer.LIST,
    "attention author": attention_author.LIST,
    "register reader": register_reader.LIST,
    "log keeper": log_keeper.LIST,
    "held back": held_back.LIST,
    "printf author": printf_author.LIST,
    "bench engineer": bench_engineer.LIST,
    "numerics person": numerics_person.LIST,
    "Triton user": triton_user.LIST,
    "CUDA beginner": cuda_beginner.LIST,
    "right": right_kernels.LIST,
}

if __name__ == "__main__":
    measured(GROUPS, "What warpsim diff says of mistakes of five engineers.")
