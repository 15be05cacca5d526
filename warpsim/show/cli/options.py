"""Options that several verbs share."""

from __future__ import annotations

import click

from ...isa.numerals import integer_in

engine_option = click.option(
    "--engine",
    type=click.Choice(["kernel", "reference"]),
    default="kernel",
    show_default=True,
    help="The compiled kernels, or plain Python integers.",
)
undefined_option = click.option(
    "--allow-undefined",
    is_flag=True,
    help="Execute metadata that PTX leaves undefined or that is not modelled, reading each field literally.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
mangled_option = click.option("--mangled", is_flag=True, help="Names as the PTX has them, not C++ names.")


def idesc_of(text: str | None) -> int | None:
    """Return the word of ``--idesc``, None where it is not given; raises UsageError."""
    word = None if text is None else integer_in(text)
    if text is not None and (word is None or word < 0):
        raise click.UsageError(f"--idesc {text!r}: expected a word such as 0x08100010")
    return word
