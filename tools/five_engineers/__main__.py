"""``python -m tools.five_engineers [--only TEXT] [--show]``: what ``warpsim diff`` says, and how fast."""

from __future__ import annotations

import argparse
from collections import Counter

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


def main() -> None:
    """Print a line for each case, and the sums of each group."""
    from .listing import judged

    parser = argparse.ArgumentParser(description="What warpsim diff says of mistakes of five engineers.")
    parser.add_argument("--only", default="", help="cases with this in their name or group")
    parser.add_argument("--show", action="store_true", help="print what diff prints")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    for group, listed in GROUPS.items():
        for case in listed:
            if options.only not in f"{group}: {case.name}":
                continue
            found, seconds, text = judged(case)
            counts.setdefault(group, Counter())[found] += 1
            print(f"{found:<8} {seconds:5.1f}  {group}: {case.name}", flush=True)
            if options.show:
                print(text)
    for group, found in counts.items():
        print(f"{group}: {sum(found.values())} cases: {dict(found)}")


if __name__ == "__main__":
    main()
