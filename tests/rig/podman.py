"""Podman's Docker-compatible service in namespaces of its own: the same API, other names and other cgroups."""

from __future__ import annotations

import resource
from pathlib import Path
from urllib.parse import quote

from tests.rig import images, unixhttp
from tests.rig.client import EngineClient
from tests.rig.debian import Toolset, library_path, search_path, unpacked
from tests.rig.kinds import COMMON, KINDS
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import RigError, tail

_TOOLS = Toolset(
    name="podman",
    suite="bookworm",
    packages=("podman", "conmon", "netavark", "iptables"),
    programs=("usr/bin/podman", "usr/bin/conmon", "usr/lib/podman/netavark", "usr/sbin/xtables-nft-multi"),
    libraries=(
        "libgpgme11",
        "libassuan0",
        "libsubid4",
        "libdevmapper1.02.1",
        "libseccomp2",
        "libglib2.0-0",
        "libip4tc2",
        "libip6tc2",
        "libxtables12",
        "libnftnl11",
        "libmnl0",
        "libnetfilter-conntrack3",
        "libnfnetlink0",
    ),
    links=(("usr/sbin/iptables", "xtables-nft-multi"), ("usr/sbin/ip6tables", "xtables-nft-multi")),
)
_CONTAINERS = """\
[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
[network]
network_config_dir = "{folder}/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = ["{folder}/conmon"]
helper_binaries_dir = ["{tools}/usr/lib/podman"]
runtime = "runc"
[engine.runtimes]
runc = ["{runc}"]
"""
_STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/running"\n'
_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'
# Podman keeps a cache under /var/lib and rules in the network's firewall, whatever it is told: both are its own here.
_START = 'mount --bind "$1/var-lib" /var/lib && shift && exec "$@"'


def _limit(kind: int, wanted: int) -> int:
    """Give a limit that this user may set: Podman's own default needs more rights than a container's root may have."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)


class Podman(EngineClient):
    """Podman 4.3. Its ports are published in a network of its own, where the machine does not reach them."""

    name = "podman"
    has_cdi = False
    has_toolkit = False

    def __init__(self, rig: Rig) -> None:
        """Start the service."""
        rig.need_root("a private podman")
        self.rig = rig
        self.folder = rig.subfolder("p")
        self._tools = unpacked(_TOOLS)
        cli = unpacked(KINDS["26.1"].tools) / "usr/bin"
        super().__init__(self.folder / "podman.sock", cli_folder=cli, cli_config=self.folder / "cli")
        self.log = self.folder / "podman.log"
        for name in ("cli", "var-lib", "networks", ".config/containers"):
            (self.folder / name).mkdir(parents=True)
        self._configure()
        self._daemon: Daemon | None = None
        self.start()

    def _configure(self) -> None:
        text = _CONTAINERS.format(
            folder=self.folder,
            tools=self._tools,
            runc=unpacked(COMMON) / "usr/sbin/runc",
            files=_limit(resource.RLIMIT_NOFILE, 1048576),
            processes=_limit(resource.RLIMIT_NPROC, 4096),
        )
        (self.folder / "containers.conf").write_text(text)
        found = [f"{name}={value}" for name, value in library_path(self._tools).items()]  # Podman does not pass it on
        conmon = self.folder / "conmon"
        conmon.write_text(f'#!/bin/sh\nexec env {" ".join(found)} {self._tools}/usr/bin/conmon "$@"\n')
        conmon.chmod(0o755)
        (self.folder / "storage.conf").write_text(_STORAGE.format(folder=self.folder))
        (self.folder / "registries.conf").write_text('unqualified-search-registries = ["docker.io"]\n')
        (self.folder / ".config/containers/policy.json").write_text(_POLICY)

    def start(self) -> None:
        """Start the service and wait until it answers."""
        roots = (self._tools, unpacked(COMMON))
        plugins: list[Path] = sorted((self._tools / "usr/lib").glob("*/xtables"))
        environment = {
            "PATH": search_path(*roots),
            "HOME": str(self.folder),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            "XTABLES_LIBDIR": str(plugins[0]),
            **library_path(*roots),
        }
        service = ["podman", "--tmpdir", str(self.folder / "tmp"), "system", "service", "--time=0", self.host]
        argv = ["unshare", "--mount", "--net", "sh", "-c", _START, "sh", str(self.folder), *service]
        self._daemon = self.rig.start(argv, env=environment, log=self.log)
        try:
            wait_until(lambda: unixhttp.answers(self.socket), what="podman", daemon=self._daemon)
        except RigError as error:
            raise RigError(f"{error}\n{tail(self.log)}") from error

    def stop(self) -> None:
        """Stop the service; its containers go on, as Podman's do."""
        if self._daemon:
            self._daemon.stop()

    def load(self, image: str) -> str:
        """Have one of the rig's images; Podman puts `localhost/` before its name."""
        reference = f"localhost/{images.RECIPES[image].reference}"
        if reference not in self.images():
            self.load_archive(images.archive(image, unpacked(COMMON)))
        return reference

    def reset(self) -> None:
        """Start it, remove its containers and volumes."""
        if self._daemon is None or not self._daemon.alive:
            self.start()
        self._remove_containers(self.get("/containers/json?all=1"))
        for volume in self.get("/volumes")["Volumes"] or ():
            self.delete(f"/volumes/{quote(volume['Name'], safe='')}?force=1")
