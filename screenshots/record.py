"""Record what the console would show on this machine, without names of the machine and its people.

    python3 screenshots/record.py -o console.jsonl.gz --seconds 60 --check train

Needs what the console needs: a GPU, an engine, gpuconsole importable. What is recorded is played by
``gpuconsole --replay FILE``, and drawn by ``screenshots/make.py``. Exit codes are those of gpuconsole.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services import recordings
from gpuconsole.services.session import Session


def record(path: Path, *, seconds: float, check: str | None, check_at_s: float, host: str | None) -> None:
    """Write the recording.

    Args:
        path: The file.
        seconds: How long.
        check: A container that is checked meanwhile.
        check_at_s: Second at which that check begins.
        host: The engine, as ``gpuconsole --host`` has it.
    """
    recordings.record(Session(host=host), path, seconds=seconds, check=check, check_at_s=check_at_s, replace=True)


def main() -> int:
    """Record; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file; NAME.jsonl.gz is compressed")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--check", metavar="NAME", help="check this container meanwhile")
    parser.add_argument("--check-at", type=float, default=20.0, metavar="SECONDS", help="when that check begins")
    parser.add_argument("--host", metavar="URL", help="engine to talk to, as gpuconsole has it")
    chosen = parser.parse_args()
    try:
        record(
            chosen.output, seconds=chosen.seconds, check=chosen.check, check_at_s=chosen.check_at, host=chosen.host
        )
    except ConsoleError as error:
        print(f"record: {error.message}\n  → {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    print(f"Recorded {chosen.seconds:.0f} s in {chosen.output}, {chosen.output.stat().st_size / 1024:.0f} KiB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
