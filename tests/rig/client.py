"""What tests do with an engine, whoever runs it: its CLI, its images, its environment."""

from __future__ import annotations

import os
import re
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.rig import images, unixhttp
from tests.rig.debian import unpacked
from tests.rig.gpus import RigGpu
from tests.rig.kinds import COMMON
from tests.rig.places import RigError, RigUnavailable
from tests.rig.toolkit import HookCall

_GOING_S = 20.0
"""How long the engine may take to remove what it is removing already."""


def _tags(image: dict[str, Any]) -> list[str]:
    return [tag for tag in image["RepoTags"] or () if tag != "<none>:<none>"]  # so 20.10 calls having none


class EngineClient(ABC):
    """An engine behind a Unix socket."""

    name: str
    has_cdi: bool
    has_toolkit: bool

    def __init__(self, socket: Path, *, cli_folder: Path, cli_config: Path) -> None:
        """Remember where it is, and the folder and configuration of the CLI that fits it."""
        self.socket = socket
        self.host = f"unix://{socket}"
        self._cli_folder = cli_folder
        self._cli_config = cli_config
        self.loaded: dict[str, str] = {}
        """The images that came from the rig: reference → id."""

    @property
    def version(self) -> str:
        """Give the version the engine reports, without Debian's suffix."""
        return str(self.get("/version")["Version"]).partition("+")[0]

    def get(self, target: str) -> Any:
        """Ask the engine's API directly."""
        return unixhttp.request(self.socket, "GET", target)

    def env(self) -> dict[str, str]:
        """Give what a program's environment needs to use this engine and the CLI of its version."""
        return {
            "DOCKER_HOST": self.host,
            "DOCKER_CONFIG": str(self._cli_config),
            "PATH": f"{self._cli_folder}:{os.environ.get('PATH', os.defpath)}",
        }

    def docker(
        self, *arguments: str, check: bool = True, stdin: str | None = None, timeout_s: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run the docker CLI on the engine.

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

    def images(self) -> dict[str, str]:
        """Give the engine's tagged images: reference → id."""
        return {tag: image["Id"] for image in self.get("/images/json") for tag in _tags(image)}

    def load(self, image: str) -> str:
        """Have one of the rig's images in the engine and give its reference."""
        reference = images.RECIPES[image].reference
        if reference not in self.images():
            self.load_archive(images.archive(image, unpacked(COMMON)))
        self.loaded[reference] = self.images()[reference]
        return reference

    def load_archive(self, path: Path) -> None:
        """Load what `docker save` or the rig wrote."""
        with path.open("rb") as file:
            said = str(unixhttp.request(self.socket, "POST", "/images/load?quiet=1", body=file, timeout_s=600))
        if re.search(r'"error"', said):
            raise RigError(f"load {path.name}: {said}")

    def delete(self, target: str) -> None:
        """Delete something through the API; what is gone already is no error, what is just going is waited for."""
        end = time.monotonic() + _GOING_S
        while True:
            try:
                unixhttp.request(self.socket, "DELETE", target)
            except RigError as error:
                if " 404 " in str(error):
                    return
                if "already in progress" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.1)
            else:
                return

    def hook_calls(self) -> tuple[HookCall, ...]:
        """Give what the engine asked of the toolkit's hook so far."""
        return ()

    def _remove_containers(self, chosen: Iterable[dict[str, Any]]) -> None:
        for container in chosen:
            self.delete(f"/containers/{container['Id']}?force=1&v=1")

    def _remove_image(self, name: str) -> None:
        self.delete(f"/images/{quote(name, safe='')}?force=1")

    def _remove_nameless(self) -> None:
        for image in self.get("/images/json"):  # those below them go with them
            if not _tags(image):
                self._remove_image(image["Id"])

    @abstractmethod
    def reset(self) -> None:
        """Bring the engine back to rest after a test."""

    def _only_private(self) -> None:
        raise RigUnavailable(f"needs an engine of the rig's own, and {self.name} is not one to be stopped or changed")

    def start(self) -> None:
        """Start the engine and wait until it answers."""
        self._only_private()

    def stop(self) -> None:
        """Stop the daemon as an administrator would; containers end with it."""
        self._only_private()

    def kill(self) -> None:
        """Let the daemon crash; its containers go on until it is started again."""
        self._only_private()

    def freeze(self) -> None:
        """Let the daemon hang: it accepts connections and never answers."""
        self._only_private()

    def thaw(self) -> None:
        """End a freeze."""
        self._only_private()

    @property
    def running(self) -> bool:
        """Tell whether the engine lives."""
        return unixhttp.answers(self.socket)

    def set_gpus(self, gpus: Iterable[RigGpu]) -> None:
        """Say which GPUs the engine can hand out from now on, by CDI and through the toolkit."""
        self._only_private()

    def only(self, *images_wanted: str) -> None:
        """Have these of the rig's images in the engine and no others; another test loads again what it needs.

        For tests that look at the list of images, or at what is proposed from it.
        """
        self._only_private()


class InstalledEngine(EngineClient):
    """The engine somebody asked the tests to use; of it only what the rig's images made is ever removed."""

    name = "installed"

    def __init__(self, url: str, *, folder: Path) -> None:
        """Use the engine at a unix:// address."""
        if not url.startswith("unix://"):
            raise RigUnavailable(f"GPUCONSOLE_TEST_ENGINE is {url}; the rig can use unix:// addresses only")
        super().__init__(Path(url.removeprefix("unix://")), cli_folder=Path("/usr/bin"), cli_config=folder)
        if not unixhttp.answers(self.socket):
            raise RigUnavailable(f"no engine answers at GPUCONSOLE_TEST_ENGINE, {url}")
        info = self.get("/info")
        self.has_cdi = bool(info.get("CDISpecDirs"))
        self.has_toolkit = "nvidia" in info.get("Runtimes", {})

    def reset(self) -> None:
        """Remove the containers of the rig's images and leave all else."""
        mine = [one for one in self.get("/containers/json?all=1") if one["Image"].startswith("gpuconsole-test/")]
        self._remove_containers(mine)

    def give_back(self) -> None:
        """Remove the rig's images too, and what tests named or built from them."""
        self.reset()
        layers = {reference: self._first_layer(reference) for reference in self.images()}
        own = {layer for reference, layer in layers.items() if reference.startswith("gpuconsole-test/")}
        for reference, layer in layers.items():
            if layer in own:
                self._remove_image(reference)

    def _first_layer(self, reference: str) -> str | None:
        layers: list[str] = self.get(f"/images/{reference}/json")["RootFS"].get("Layers") or []
        return layers[0] if layers else None
