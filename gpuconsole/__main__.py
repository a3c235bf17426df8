"""``python -m gpuconsole``."""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036  # a clone is started with whatever is there
    sys.exit("gpuconsole: it needs Python 3.11 or newer.\n  → Start it with one: python3.11 -m gpuconsole.")

from gpuconsole.cli.main import run

if __name__ == "__main__":
    run()
