"""The yardstick on a real GPU: at 80×24 in tmux, from a free GPU to a launched, checked and joined container.

    python3 tests/gpu/yardstick.py -o FILE [--verdict ok] [--verdict warn] [--offered pytorch]

Needs a free NVIDIA GPU, an engine (DOCKER_HOST or the usual one) without containers that has an image of CUDA PyTorch,
tmux, Python 3.11 with what gpuconsole needs. A private tmux server has a person's terminal of 80×24 attached, and every
key goes through it. FILE then holds each key and what was seen after it; UUIDs and the machine's name are replaced. The
container that was launched is removed at the end. Exit codes: 0 within ten keys and with such a verdict, 1 not.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.rig.terminal import Terminal  # noqa: E402
from tests.tui.in_tmux import wait  # noqa: E402
from tests.tui.person import MOST_KEYS, Person, from_a_free_gpu, inert  # noqa: E402


def main() -> int:
    """Sit down, type, and tell how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--verdict", action="append", choices=("ok", "warn", "failed"), help="how the check may end")
    parser.add_argument("--offered", default="pytorch", help="a word of the image that the form proposes")
    wanted = parser.parse_args()
    output = wanted.output.resolve()
    folder = Path(tempfile.mkdtemp(prefix="gpuconsole-yardstick-"))
    project = folder / "project"
    project.mkdir()
    path = os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONPATH": f"{ROOT}:{path}" if path else str(ROOT),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
        "PS1": "$ ",
        "ENV": "",
    }
    environment.pop("TMUX", None)
    tmux = [shutil.which("tmux") or "tmux", "-S", str(folder / "tmux"), "-f", "/dev/null", "-u"]

    def ask(*arguments: str) -> str:
        return subprocess.run([*tmux, *arguments], env=environment, capture_output=True, text=True, check=False).stdout

    def containers() -> list[str]:
        told = subprocess.run(["docker", "ps", "-aq"], capture_output=True, text=True, check=False)
        return told.stdout.split()

    before = set(containers())
    terminal = Terminal(
        [*tmux, "new-session", "-s", "person", "-c", str(project), "sh"],
        env=environment, folder=folder, columns=80, rows=24,
    )  # fmt: skip
    person = Person(lambda: inert(ask("capture-pane", "-p", "-t", "person:")), terminal.send)
    try:
        wait(lambda: "$" in ask("capture-pane", "-p", "-t", "person:"), what="a shell")
        ask("set-option", "-g", "status", "off")
        terminal.send(f"clear; {shlex.join([sys.executable, '-m', 'gpuconsole'])}\r")
        from_a_free_gpu(person, verdicts=wanted.verdict or ["ok", "warn"], offered=wanted.offered)
    except AssertionError as error:
        print(f"yardstick: {error}", file=sys.stderr)
        return 1
    finally:
        person.write(output)
        ask("kill-server")
        terminal.close()
        made = set(containers()) - before
        if made:
            subprocess.run(["docker", "rm", "-f", *made], stdout=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(person.keys)} keys of {MOST_KEYS}: {' '.join(person.keys)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
