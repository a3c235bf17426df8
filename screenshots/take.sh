#!/usr/bin/env bash
# Put what screenshots/on_gpu.sh brought into its places, and draw the pictures from it: screenshots/take.sh FOLDER
set -euo pipefail
folder=$(cd "${1:?name the folder on_gpu.sh wrote to}" && pwd)
cd "$(dirname "$0")/.."
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python
install -m 644 "$folder/console-h200.jsonl.gz" tests/fixtures/console-h200.jsonl.gz
mkdir -p screenshots/tmux
install -m 644 "$folder"/tmux/*.ansi "$folder"/tmux/*.txt screenshots/tmux/
"$python" screenshots/make.py
"$python" screenshots/make.py --check
du -sh tests/fixtures/console-h200.jsonl.gz screenshots
"$python" - <<'PY'
"""The README shows some of them, once they are there."""
from pathlib import Path

section = """## The console in pictures

A machine with one NVIDIA H200 while a container trains, at 120×36; it works from 40×10 on, and every screen fits 80×24.

![The main screen: the GPU with its use, memory, state and power above; below, three containers with GPU memory, CPU, RAM, state and user](screenshots/main-120x36.png)

![One GPU: charts of its use and memory over the last two minutes, the two processes on it, clocks, PCIe and ECC](screenshots/gpu-120x36.png)

![The launch form at 80×24: image, GPUs with free memory, volumes, ports and command, and the docker run line it amounts to](screenshots/launch-80x24.png)

![The result of a check inside the container: every check with its verdict](screenshots/check-120x36.png)

More are in [`screenshots/`](screenshots/README.md), drawn by one command from a recording of that machine; 
`gpuconsole --replay tests/fixtures/console-h200.jsonl.gz` plays it.

"""
readme = Path("README.md")
text = readme.read_text()
if "## The console in pictures" not in text:
    readme.write_text(text.replace("## What it does\n", section.replace("machine; \n", "machine;\n") + "## What it does\n", 1))
PY
