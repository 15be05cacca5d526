"""``python -m warpsim``, and the ``warpsim`` command."""

import gc

gc.set_threshold(1_000_000)  # importing makes many objects and no garbage: a tenth of the start-up

from .cli import main  # noqa: E402

if __name__ == "__main__":
    main()
