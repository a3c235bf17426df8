"""``python -m gpuconsole``."""

from __future__ import annotations

from gpuconsole.cli.main import run

if __name__ == "__main__":
    run()
