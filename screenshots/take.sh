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
