"""Private Docker engines of three kinds, as root, that touch nothing of the machine's own."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.rig import images, unixhttp, warm
from tests.rig.client import EngineClient
from tests.rig.debian import library_path, search_path, unpacked
from tests.rig.gpus import TWO_GPUS, RigGpu, write_cdi
from tests.rig.kinds import COMMON, KINDS, EngineKind
from tests.rig.network import create_bridge
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import RigError, tail
from tests.rig.sweep import bridge_prefix, cgroup_name
from tests.rig.toolkit import HookCall, Toolkit


class Engine(EngineClient):
    """One private dockerd with its own containerd, bridge, data and CLI."""

    def __init__(
        self, rig: Rig, kind: EngineKind, *, toolkit: bool, gpus: Iterable[RigGpu], settings: Mapping[str, Any]
    ) -> None:
        """Lay out the engine's folder; `start` starts it."""
        rig.need_root("a private engine")
        self._roots = (unpacked(kind.tools), unpacked(COMMON))
        self.folder = rig.subfolder("e")
        super().__init__(
            self.folder / "docker.sock", cli_folder=self._roots[0] / "usr/bin", cli_config=self.folder / "cli"
        )
        self.kind = kind
        self.name = kind.name
        self.has_cdi = kind.has_cdi
        self.has_toolkit = toolkit
        self.rig = rig
        self.log = self.folder / "dockerd.log"
        self.cdi_folder = self.folder / "cdi"
        self.toolkit = Toolkit(self.folder / "toolkit") if toolkit else None
        self._first_gpus = tuple(gpus)
        self._daemon: Daemon | None = None
        self._config = self.folder / "daemon.json"
        (self.folder / "cli").mkdir()
        plugins = self._roots[0] / "usr/libexec/docker/cli-plugins"
        if plugins.exists():
            (self.folder / "cli/cli-plugins").symlink_to(plugins)
        bridge = f"{bridge_prefix(rig.folder)}{self.folder.name}"
        network = create_bridge(rig.folder, bridge)
        self._config.write_text(json.dumps({**self._settings(bridge, network), **settings}, indent=1))
        self.set_gpus(self._first_gpus)

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
            "dns-opts": ["timeout:1", "attempts:1"],  # where no name server answers, that is no ten seconds
            "max-download-attempts": 2,  # 5 by default, which is two minutes on a line that is down
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
            self._daemon.freeze()

    def thaw(self) -> None:
        """End a freeze."""
        if self._daemon:
            self._daemon.send(signal.SIGCONT)

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
        """Have one of the rig's images in the engine; a big one is laid into a resting engine while it is stopped."""
        reference = images.RECIPES[image].reference
        if image in images.BIG and reference not in self.images() and warm.possible() and self._resting():
            self._lay(image)
        return super().load(image)

    def only(self, *images_wanted: str) -> None:
        """Have these of the rig's images in the engine and no others."""
        wanted = {images.RECIPES[name].reference for name in images_wanted}
        for reference in self.images():
            if reference not in wanted:
                self._remove_image(reference)
        self._remove_nameless()
        for name in images_wanted:
            self.load(name)

    def _resting(self) -> bool:
        """Tell whether nothing but the rig's images would be lost with the engine's data."""
        own = {recipe.reference for recipe in images.RECIPES.values()}
        return not (
            self.get("/containers/json?all=1")
            or self.get("/volumes")["Volumes"]
            or len(self.get("/networks")) > 3
            or any(not own.issuperset(image["RepoTags"] or ("",)) for image in self.get("/images/json?all=1"))
        )

    def _lay(self, image: str) -> None:
        others = [name for name, recipe in images.RECIPES.items() if recipe.reference in self.images()]
        store = bool(self.kind.features.get("containerd-snapshotter"))
        archive = images.archive(image, unpacked(COMMON))
        template = warm.Template(self.name, f"{image}-{archive.stem}", containerd_store=store)
        with template.locked():
            if not template.exists:
                self._make(template, archive)
        self.stop()
        template.lay(self.folder / "d")
        self.start()
        for other in others:
            super().load(other)

    def _make(self, template: warm.Template, archive: Path) -> None:
        """Make a template with an engine that does nothing else."""
        other = Engine(self.rig, self.kind, toolkit=False, gpus=(), settings={})
        other.start()
        other.load_archive(archive)
        other.stop()
        template.keep(other.folder / "d")
        shutil.rmtree(other.folder)

    def reset(self) -> None:
        """Thaw and start it, remove its containers, volumes, networks and the images that are not the rig's."""
        self.thaw()
        if not self.running:
            self.start()
        self._remove_containers(self.get("/containers/json?all=1"))
        for volume in self.get("/volumes")["Volumes"] or ():
            self.delete(f"/volumes/{quote(volume['Name'], safe='')}?force=1")
        for network in self.get("/networks"):
            if network["Name"] not in ("bridge", "host", "none"):
                self.delete(f"/networks/{network['Id']}")
        self._restore_tags()
        self._remove_nameless()
        if self.gpus != self._first_gpus:
            self.set_gpus(self._first_gpus)
        if self.toolkit:
            self.toolkit.fail_with(None)

    def _restore_tags(self) -> None:
        """Remove the names that tests gave, and those of the rig's that they gave to other images."""
        for reference, image in self.images().items():
            if self.loaded.get(reference) != image:
                self._remove_image(reference)


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
