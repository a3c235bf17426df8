"""Stand-ins for NVIDIA's container toolkit: the hook dockerd looks for, and the `nvidia` runtime.

dockerd offers `--gpus` when it finds `nvidia-container-runtime-hook` on its PATH at start; runc then runs it before a
container's program. Ours notes what it was asked, and gives the container the nodes of the GPUs that were asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.rig.gpus import RigGpu, names_of, write_atomically

_HOOK = '''\
#!{python} -IS
"""Stand-in of nvidia-container-runtime-hook: notes what it is asked and makes the device nodes."""
import json, os, subprocess, sys
FOLDER = {folder!r}

def refuse(text):
    sys.stderr.write("Auto-detected mode as 'legacy'\\nnvidia-container-cli: " + text + "\\n")
    sys.exit(1)

state = json.load(sys.stdin)
with open(os.path.join(state["bundle"], "config.json")) as file:
    config = json.load(file)
env = dict(item.split("=", 1) for item in config["process"]["env"] if "=" in item)
asked = env.get("NVIDIA_VISIBLE_DEVICES")
call = {{"state": state, "args": sys.argv[1:], "visible_devices": asked, "environment": env,
        "capabilities": env.get("NVIDIA_DRIVER_CAPABILITIES")}}
with open(os.path.join(FOLDER, "calls.jsonl"), "a") as log:
    log.write(json.dumps(call) + "\\n")
if os.path.exists(os.path.join(FOLDER, "failure")):
    with open(os.path.join(FOLDER, "failure")) as file:
        refuse(file.read())
if asked in (None, "", "void", "none"):
    sys.exit(0)
with open(os.path.join(FOLDER, "gpus.json")) as file:
    gpus = json.load(file)
chosen = []
for name in [g["uuid"] for g in gpus] if asked == "all" else asked.split(","):
    match = [g for g in gpus if name in g["names"]]
    if not match:
        refuse("device error: %s: unknown device: unknown" % name)
    chosen += match
root = config["root"]["path"]
root = root if os.path.isabs(root) else os.path.join(state["bundle"], root)
for node in ["nvidiactl", "nvidia-uvm"] + ["nvidia%d" % g["minor"] for g in chosen]:
    enter = ["nsenter", "--target", str(state["pid"]), "--mount"]
    subprocess.run(enter + ["mknod", "-m", "666", os.path.join(root, "dev", node), "c", "1", "3"], check=True)
'''

_RUNTIME = '''\
#!{python} -IS
"""Stand-in of nvidia-container-runtime: runc, with the hook added to what is created."""
import json, os, sys
arguments = sys.argv[1:]
if "create" in arguments and "--bundle" in arguments:
    path = os.path.join(arguments[arguments.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    hook = {{"path": {hook!r}, "args": ["nvidia-container-runtime-hook", "prestart"]}}
    hook["env"] = ["PATH=" + os.environ["PATH"]]
    prestart = config.setdefault("hooks", {{}}).setdefault("prestart", [])
    if not any(entry["path"] == hook["path"] for entry in prestart):
        prestart.append(hook)
    with open(path, "w") as file:
        json.dump(config, file)
os.execvp("runc", ["runc"] + arguments)
'''


@dataclass(frozen=True, slots=True)
class HookCall:
    """One time the hook was run."""

    container_id: str
    visible_devices: str | None
    """`NVIDIA_VISIBLE_DEVICES` as the container has it: UUIDs or indices with commas, `all`, or nothing."""
    capabilities: str | None
    environment: dict[str, str]
    state: dict[str, Any]


class Toolkit:
    """The stand-ins of one engine, in a folder of theirs."""

    def __init__(self, folder: Path) -> None:
        """Install them."""
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        self.hook = self.programs / "nvidia-container-runtime-hook"
        self.runtime = self.programs / "nvidia-container-runtime"
        self._install(self.hook, _HOOK.format(python=sys.executable, folder=str(folder)))
        self._install(self.runtime, _RUNTIME.format(python=sys.executable, hook=str(self.hook)))

    @staticmethod
    def _install(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def set_gpus(self, gpus: Iterable[RigGpu]) -> None:
        """Say which GPUs the hook knows."""
        write_atomically(self.folder / "gpus.json", [{**asdict(gpu), "names": names_of(gpu)} for gpu in gpus])

    def fail_with(self, text: str | None) -> None:
        """Let the hook fail from now on with what nvidia-container-cli would say; None ends that."""
        path = self.folder / "failure"
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text)

    def calls(self) -> tuple[HookCall, ...]:
        """Give every call so far, oldest first."""
        path = self.folder / "calls.jsonl"
        if not path.exists():
            return ()
        noted = [json.loads(line) for line in path.read_text().splitlines()]
        return tuple(
            HookCall(
                container_id=call["state"]["id"],
                visible_devices=call["visible_devices"],
                capabilities=call["capabilities"],
                environment=call["environment"],
                state=call["state"],
            )
            for call in noted
        )
