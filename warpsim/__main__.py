"""``python -m warpsim``, and the ``warpsim`` command."""

import gc
import os
import signal

_INTERRUPTED = 130


def main() -> None:
    """Run the command; until it has been imported, an interrupt ends the process without a word."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    gc.set_threshold(1_000_000)  # importing makes many objects and no garbage: a tenth of the start-up
    from .show.cli import main as run

    run()


if __name__ == "__main__":
    main()
