"""Walk through the live console in tmux and keep what stands on each screen, with its colours.

    python3 screenshots/live.py -o FOLDER --container train

Needs tmux, a GPU, an engine with that container running, gpuconsole importable. For each size FOLDER then holds
``SCREEN-COLUMNSxROWS.ansi`` (``tmux capture-pane -e -p``) and ``.txt``. UUIDs are replaced. Exits 0 when every screen
came, 1 when one did not; what stood there instead is kept all the same. The machine's name is replaced too.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SIZES = ((80, 24), (120, 36), (200, 50))
_HOST = "gpu-box"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ESCAPES = re.compile(r"\x1b\[[0-9;:]*m")


class Terminal:
    """One tmux server with one pane.

    Args:
        size: Columns and rows.
        command: What runs in it.
    """

    def __init__(self, size: tuple[int, int], command: Sequence[str]) -> None:
        self._socket = Path(tempfile.mkdtemp(prefix="gpuconsole-live-")) / "tmux"
        width, height = size
        self._tmux(
            "-f", "/dev/null", "-u", "new-session", "-d", "-x", str(width), "-y", str(height), shlex.join(command),
            ";", "set", "-g", "status", "off", ";", "set", "-g", "default-terminal", "tmux-256color",
        )  # fmt: skip
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def _tmux(self, *arguments: str) -> str:
        answer = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments], capture_output=True, text=True, check=False
        )
        return answer.stdout

    def keys(self, *keys: str) -> None:
        """Press keys, as tmux names them."""
        for key in keys:
            self._tmux("send-keys", key)
            time.sleep(0.3)

    def screen(self) -> str:
        """What stands there, with colours."""
        text = self._tmux("capture-pane", "-e", "-p")
        name = socket.gethostname().partition(".")[0]
        if name != _HOST:  # of the same length, so that nothing is shifted
            text = text.replace(name, _HOST.ljust(len(name))[: len(name)])
        return _UUID.sub("00000000-0000-4000-8000-000000000000", text)

    def wait_for(self, words: str, *, seconds: float = 60.0) -> bool:
        """Wait until a pattern is there, and a moment more for the rest of the screen."""
        end = time.monotonic() + seconds
        while not re.search(words, _ESCAPES.sub("", self.screen())):
            if time.monotonic() > end:
                print(f"live: {words!r} did not come", file=sys.stderr)
                return False
            time.sleep(0.2)
        time.sleep(1.5)
        return True

    def close(self) -> None:
        """End it."""
        self._tmux("kill-server")


def walk(folder: Path, size: tuple[int, int], container: str, command: Sequence[str]) -> int:
    """Keep every screen at one size; how many did not come."""
    terminal = Terminal(size, command)
    failed = 0

    def keep(name: str, words: str, *, seconds: float = 60.0) -> None:
        nonlocal failed
        failed += not terminal.wait_for(words, seconds=seconds)
        text = terminal.screen()
        (folder / f"{name}-{size[0]}x{size[1]}.ansi").write_text(text)
        (folder / f"{name}-{size[0]}x{size[1]}.txt").write_text(_ESCAPES.sub("", text))

    try:
        failed += not terminal.wait_for(rf"{re.escape(container)}\b")
        terminal.keys("/", *container, "Enter")  # takes the cursor to it
        terminal.keys("c", "4", "Enter")
        keep("check", r"state +\S? ?(?:ok|warn|failed|cancelled)", seconds=150)
        terminal.keys("Escape", "1", "Enter")
        keep("container", r"inside +torch")
        terminal.keys("Escape", "l")
        keep("logs", r"step +\d+")
        terminal.keys("Escape", "Escape")  # out of the output, and every row again
        keep("main", r"Containers \d")
        terminal.keys("n")
        keep("launch", r"docker run")
        terminal.keys("Escape", "Tab", "Enter")
        keep("gpu", r"PCIe|clocks|processes|USER")
        terminal.keys("Escape", "q")
    finally:
        terminal.close()
    return failed


def main() -> int:
    """Walk at every size; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--container", default="train")
    parser.add_argument("--host", metavar="URL", help="engine to talk to, as gpuconsole has it")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    words = ["PYTHONPATH", "LD_LIBRARY_PATH", "PATH", "HOME", "DOCKER_HOST", "XDG_STATE_HOME", "GPUCONSOLE_NVML_STATE"]
    kept = [f"{name}={os.environ[name]}" for name in words if name in os.environ]
    options = ["--host", chosen.host] if chosen.host else []
    command = ["env", *kept, "LC_ALL=C.UTF-8", "COLORTERM=truecolor", sys.executable, "-m", "gpuconsole", *options]
    with ThreadPoolExecutor() as walkers:
        failed = sum(walkers.map(lambda size: walk(chosen.output, size, chosen.container, command), SIZES))
    print(f"{failed} screens did not come" if failed else f"Every screen is in {chosen.output}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
