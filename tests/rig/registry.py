"""A private registry on loopback: pushes and pulls as they are, with or without a password, over a line tests cut."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

from tests.rig.client import EngineClient
from tests.rig.debian import Toolset, search_path, unpacked
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import RigError, tail
from tests.rig.proxy import BadLine

_TOOLS = Toolset(
    name="registry", suite="bookworm", packages=("docker-registry",), programs=("usr/bin/docker-registry",)
)
USER, PASSWORD = "rig", "rig-password"
# bcrypt of PASSWORD, made by htpasswd: the registry takes no other kind.
_HTPASSWD = f"{USER}:$2y$04$diYZrwxnrolQTa4OiaC9KuD26XeVG8zsmgRItUadVazkO.cxTKaRq\n"
_CONFIG = """\
version: 0.1
log: {{level: info}}
storage:
  cache: {{blobdescriptor: inmemory}}
  delete: {{enabled: true}}
  filesystem: {{rootdirectory: {folder}/data}}
http:
  addr: 127.0.0.1:{port}
  relativeurls: true
  secret: rig
"""
_AUTH = "auth:\n  htpasswd: {{realm: rig, path: {folder}/htpasswd}}\n"


class Registry:
    """A docker-registry of our own; engines trust it, since loopback is an insecure registry by default."""

    def __init__(self, rig: Rig, *, password: bool = False) -> None:
        """Start it on a free port.

        Args:
            rig: whose supervisor runs it.
            password: ask for USER and PASSWORD.
        """
        self.rig = rig
        self.needs_password = password
        self.folder = rig.subfolder("r")
        self.log = self.folder / "registry.log"
        self._root = unpacked(_TOOLS)
        (self.folder / "htpasswd").write_text(_HTPASSWD)
        self.port = 0
        self._daemon: Daemon | None = None
        self.start()
        self.line = BadLine(self.port)
        """A second way in, through a line that can be slowed down and cut."""

    @property
    def address(self) -> str:
        """Give `127.0.0.1:port`, as it stands before an image's name."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, the second time on the port it had."""
        text = _CONFIG.format(folder=self.folder, port=self.port)
        if self.needs_password:
            text += _AUTH.format(folder=self.folder)
        config = self.folder / "config.yml"
        config.write_text(text)
        self.log.write_text("")
        environment = {"PATH": search_path(self._root), "HOME": str(self.folder), "OTEL_TRACES_EXPORTER": "none"}
        program = str(self._root / "usr/bin/docker-registry")
        self._daemon = self.rig.start([program, "serve", str(config)], env=environment, log=self.log)
        try:
            wait_until(self._listening, what="registry", daemon=self._daemon)
        except RigError as error:
            raise RigError(f"{error}\n{tail(self.log)}") from error

    def _listening(self) -> bool:
        match = re.search(r"listening on 127\.0\.0\.1:(\d+)", self.log.read_text(errors="replace"))
        if match:
            self.port = int(match[1])
        return match is not None

    def stop(self) -> None:
        """Stop it in order."""
        if self._daemon:
            self._daemon.stop()

    def kill(self) -> None:
        """Kill it, in the middle of whatever it does."""
        if self._daemon:
            self._daemon.kill()

    @property
    def running(self) -> bool:
        """Tell whether its process lives."""
        return self._daemon is not None and self._daemon.alive

    def reset(self) -> None:
        """Bring it back to rest: running, its line good; what was pushed stays."""
        self.line.restore()
        if not self.running:
            self.start()

    def close(self) -> None:
        """Stop it for good."""
        self.line.close()
        self.kill()

    def login(self, engine: EngineClient, *, address: str | None = None) -> None:
        """Log the engine's CLI in."""
        where = address or self.address
        engine.docker("login", "--username", USER, "--password-stdin", where, stdin=PASSWORD)

    def push(self, engine: EngineClient, reference: str, *, name: str | None = None) -> str:
        """Push an image the engine has and give its reference here.

        Args:
            engine: who has it.
            reference: what it is called there.
            name: what it is called here; the same by default.
        """
        target = f"{self.address}/{name or reference}"
        if self.needs_password:
            self.login(engine)
        engine.docker("tag", reference, target)
        engine.docker("push", target)
        engine.docker("rmi", target)
        return target

    def over_the_line(self, reference: str) -> str:
        """Give the reference that reaches the same image over the line that can be cut."""
        return reference.replace(self.address, self.line.address, 1)

    def digest(self, name: str, tag: str) -> str:
        """Give the digest the registry has for a tag (of a registry without password)."""
        kinds = "application/vnd.docker.distribution.manifest.v2+json,application/vnd.oci.image.manifest.v1+json"
        url = f"http://{self.address}/v2/{name}/manifests/{tag}"
        asked = urllib.request.Request(url, method="HEAD", headers={"Accept": kinds})
        try:
            with urllib.request.urlopen(asked, timeout=10) as answer:
                return str(answer.headers["Docker-Content-Digest"])
        except urllib.error.URLError as error:
            raise RigError(f"{name}:{tag}: {error}") from error
