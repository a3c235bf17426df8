"""Replay the recordings and print how good the forecast is: ``python -m tests.forecast``; 1 when a target is missed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.forecast.table import report
from tests.forecast.truth import FOLDER, HALVES, recordings

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> int:
    """Print the report of the chosen half, or of all, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.forecast", description=(__doc__ or "").strip())
    parser.add_argument("--half", choices=(*HALVES, "all"), default="all")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--runs", action="store_true", help="also a line for each recording")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md, below its first words")
    chosen = parser.parse_args()
    runs = recordings(chosen.folder)
    missed = 0
    texts: list[str] = []
    for half in HALVES if chosen.half == "all" else (chosen.half,):
        text, gates = report([run for run in runs if run.half == half], half, each=chosen.runs)
        print(text)
        texts.append(text)
        missed += sum(not gate.met for gate in gates) if half in ("judge", chosen.half) else 0
    if chosen.write:
        before = RESULTS.read_text(encoding="utf-8").partition("\n## ")[0]
        RESULTS.write_text("\n".join([before, *texts]), encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
