"""Private Docker engines of three kinds, as root, that touch nothing of the machine's own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.rig import images, unixhttp
from tests.rig.debian import library_path, search_path, unpacked
from tests.rig.gpus import TWO_GPUS, RigGpu, write_cdi
from tests.rig.kinds import COMMON, KINDS, EngineKind
from tests.rig.network import create_bridge
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import RigError, tail
from tests.rig.sweep import bridge_prefix, cgroup_name
from tests.rig.toolkit import HookCall, Toolkit


class Engine:
    """One private dockerd with its own containerd, bridge, data and CLI."""

    def __init__(
        self, rig: Rig, kind: EngineKind, *, toolkit: bool, gpus: Iterable[RigGpu], settings: Mapping[str, Any]
    ) -> None:
        """Lay out the engine's folder; `start` starts it."""
        rig.need_root("a private engine")
        self.kind = kind
        self.name = kind.name
        self.has_cdi = kind.has_cdi
        self.rig = rig
        self.folder = rig.subfolder("e")
        self.socket = self.folder / "docker.sock"
        self.host = f"unix://{self.socket}"
        self.log = self.folder / "dockerd.log"
        self.cdi_folder = self.folder / "cdi"
        self.toolkit = Toolkit(self.folder / "toolkit") if toolkit else None
        self.gpus: tuple[RigGpu, ...] = ()
        self.loaded: set[str] = set()
        """Ids of the images that came from the rig."""
        self._roots = (unpacked(kind.tools), unpacked(COMMON))
        self._daemon: Daemon | None = None
        self._config = self.folder / "daemon.json"
        (self.folder / "cli").mkdir()
        bridge = f"{bridge_prefix(rig.folder)}{self.folder.name}"
        network = create_bridge(rig.folder, bridge)
        self._config.write_text(json.dumps({**self._settings(bridge, network), **settings}, indent=1))
        self.set_gpus(gpus)

    @property
    def has_toolkit(self) -> bool:
        """Tell whether `--gpus` finds the toolkit's hook."""
        return self.toolkit is not None

    def _settings(self, bridge: str, network: IPv4Network) -> dict[str, Any]:
        """Give dockerd's configuration; every path and name is the rig's own."""
        upper_half = list(network.subnets())[1]
        settings: dict[str, Any] = {
            "data-root": str(self.folder / "d"),
            "exec-root": str(self.folder / "x"),
            "pidfile": str(self.folder / "dockerd.pid"),
            "hosts": [self.host],
            "bridge": bridge,
            "iptables": False,
            "ip6tables": False,
            "ip-forward": False,
            "ip-masq": False,
            "default-address-pools": [{"base": str(upper_half), "size": 24}],
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "cgroup-parent": f"/{cgroup_name(self.rig.folder)}/docker",
            "shutdown-timeout": 2,
        }
        if self.kind.name == "20.10":
            settings["deprecated-key-path"] = str(self.folder / "key.json")
        if self.has_cdi:
            settings["cdi-spec-dirs"] = [str(self.cdi_folder)]
        if self.kind.features:
            settings["features"] = dict(self.kind.features)
        if self.toolkit:
            settings["runtimes"] = {"nvidia": {"path": str(self.toolkit.runtime)}}
        return settings

    def _path(self) -> str:
        tools = [str(self.toolkit.programs)] if self.toolkit else []
        return ":".join([*tools, search_path(*self._roots)])

    def start(self) -> None:
        """Start the engine and wait until it answers."""
        environment = {
            "PATH": self._path(),
            "HOME": str(self.folder),
            "container": "gpuconsole-rig",  # keeps dockerd from loading an AppArmor profile into the kernel
            **library_path(*self._roots),
        }
        argv = ["dockerd", "--config-file", str(self._config)]
        (self.folder / "dockerd.pid").unlink(missing_ok=True)
        self._daemon = self.rig.start(["env", *argv], env=environment, log=self.log)
        try:
            wait_until(lambda: unixhttp.answers(self.socket), what=f"engine {self.name}", daemon=self._daemon)
        except RigError as error:
            raise RigError(f"{error}\n{tail(self.log)}") from error

    @property
    def running(self) -> bool:
        """Tell whether the daemon's process lives."""
        return self._daemon is not None and self._daemon.alive

    def stop(self) -> None:
        """Stop the daemon as an administrator would; containers end with it."""
        if self._daemon:
            self._daemon.stop()

    def kill(self) -> None:
        """Let the daemon crash; its containers go on until it is started again."""
        if self._daemon:
            self._daemon.kill()

    def freeze(self) -> None:
        """Let the daemon hang: it accepts connections and never answers."""
        if self._daemon:
            self._daemon.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """End a freeze."""
        if self._daemon:
            self._daemon.send(signal.SIGCONT)

    @property
    def version(self) -> str:
        """Give the version the engine reports, without Debian's suffix."""
        return str(self.get("/version")["Version"]).partition("+")[0]

    def get(self, target: str) -> Any:
        """Ask the engine's API directly."""
        return unixhttp.request(self.socket, "GET", target)

    def env(self) -> dict[str, str]:
        """Give what a program's environment needs to use this engine and the CLI of its version."""
        cli = self._roots[0] / "usr/bin"
        return {
            "DOCKER_HOST": self.host,
            "DOCKER_CONFIG": str(self.folder / "cli"),
            "PATH": f"{cli}:{os.environ.get('PATH', os.defpath)}",
        }

    def docker(
        self, *arguments: str, check: bool = True, stdin: str | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run this version's docker CLI on the engine.

        Raises:
            RigError: it failed and `check` is set.
        """
        environment = {**os.environ, **self.env()}
        environment.pop("DOCKER_CONTEXT", None)
        done = subprocess.run(
            ["docker", *arguments],
            env=environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
        if check and done.returncode:
            raise RigError(f"docker {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def set_gpus(self, gpus: Iterable[RigGpu]) -> None:
        """Say which GPUs the engine can hand out from now on, by CDI and through the toolkit."""
        self.gpus = tuple(gpus)
        if self.has_cdi:
            write_cdi(self.cdi_folder, self.gpus)
        if self.toolkit:
            self.toolkit.set_gpus(self.gpus)

    def hook_calls(self) -> tuple[HookCall, ...]:
        """Give what the engine asked of the toolkit's hook so far."""
        return self.toolkit.calls() if self.toolkit else ()

    def load(self, image: str) -> str:
        """Have one of the rig's images in the engine and give its reference."""
        reference = images.RECIPES[image].reference
        if reference not in self.images():
            self.load_archive(images.archive(image, unpacked(COMMON)))
        self.loaded.add(self.images()[reference])
        return reference

    def load_archive(self, path: Path) -> None:
        """Load what `docker save` or the rig wrote."""
        with path.open("rb") as file:
            said = str(unixhttp.request(self.socket, "POST", "/images/load?quiet=1", body=file, timeout_s=600))
        if re.search(r'"error"', said):
            raise RigError(f"load {path.name}: {said}")

    def images(self) -> dict[str, str]:
        """Give the engine's tagged images: reference → id."""
        return {tag: image["Id"] for image in self.get("/images/json") for tag in image["RepoTags"] or ()}

    def delete(self, target: str) -> None:
        """Delete something through the API; what is gone already is no error."""
        try:
            unixhttp.request(self.socket, "DELETE", target)
        except RigError as error:
            if " 404 " not in str(error):
                raise

    def reset(self, *, keep_images: Iterable[str]) -> None:
        """Bring the engine back to rest: thawed, started, its containers, volumes and other images removed."""
        self.thaw()
        if not self.running:
            self.start()
        for container in self.get("/containers/json?all=1"):
            self.delete(f"/containers/{container['Id']}?force=1&v=1")
        for volume in self.get("/volumes")["Volumes"] or ():
            self.delete(f"/volumes/{quote(volume['Name'], safe='')}?force=1")
        for network in self.get("/networks"):
            if network["Name"] not in ("bridge", "host", "none"):
                self.delete(f"/networks/{network['Id']}")
        kept = set(keep_images)
        for image in self.get("/images/json?all=1"):
            if image["Id"] not in kept:
                self.delete(f"/images/{quote(image['Id'], safe='')}?force=1")
        if self.gpus != TWO_GPUS:
            self.set_gpus(TWO_GPUS)
        if self.toolkit:
            self.toolkit.fail_with(None)


def start_engine(
    rig: Rig,
    name: str,
    *,
    toolkit: bool | None = None,
    gpus: Iterable[RigGpu] = TWO_GPUS,
    settings: Mapping[str, Any] | None = None,
) -> Engine:
    """Start an engine: `20.10`, `26.1` or `26.1-containerd`.

    Without a word about the toolkit, it is there where there is no CDI. `settings` goes over dockerd's configuration.
    """
    kind = KINDS[name]
    has_toolkit = not kind.has_cdi if toolkit is None else toolkit
    engine = Engine(rig, kind, toolkit=has_toolkit, gpus=gpus, settings=settings or {})
    engine.start()
    return engine
