"""A project folder in which gpuconsole is run, and images that only a registry has."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.engines import US, Done, environment
from tests.rig import prepared
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.rig.registry import Registry


@dataclass(frozen=True, slots=True)
class Project:
    """A folder, and the engine its user works with."""

    engine: Engine
    folder: Path

    @property
    def lock(self) -> Path:
        return self.folder / "gpuconsole.lock"

    def run(
        self, *arguments: str, folder: Path | None = None, env: Mapping[str, str] | None = None, **more: str
    ) -> Done:
        environ = {**environment(self.engine), **(env or {}), **more}
        done = prepared.gpuconsole(*arguments, env=environ, folder=folder or self.folder, timeout_s=300)
        return Done(done.returncode, done.stdout, done.stderr)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Run it beside the test."""
        return subprocess.Popen(
            [*US, *arguments],
            env={**environment(self.engine), "PYTHONUNBUFFERED": "1"},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def has(self, reference: str) -> bool:
        return self.engine.docker("image", "inspect", reference, check=False).returncode == 0


def records(text: str) -> list[dict[str, Any]]:
    """JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


@contextmanager
def only_in_registry(maker: EngineClient, registry: Registry, *, layers: int = 3, mb: int = 2) -> Iterator[str]:
    """An image of random layers that no other engine has ever had: stores keep the content of removed images."""
    name = f"gpuconsole-test/fresh-{uuid.uuid4().hex[:8]}"
    image = maker.load("small")
    made: list[str] = []
    for number in range(layers):
        box = f"fresh-{uuid.uuid4().hex[:8]}"
        grow = f"head -c {(number + 1) * mb * 1_000_000} /dev/urandom > /data{number}"
        maker.docker("run", "--name", box, image, "sh", "-c", grow)
        image = f"{name}:{number}"
        maker.docker("commit", box, image)
        maker.docker("rm", "--force", box)
        made.append(image)
    target = registry.push(maker, image, name=f"{name}:1.0")
    for each in reversed(made):
        maker.docker("rmi", each)
    yield target


def moved(engine: Engine, registry: Registry, target: str) -> str:
    """Let a tag of the registry lead to a new image, and give that one's digest. The engine's own images stay."""
    box, image = f"moved-{uuid.uuid4().hex[:8]}", f"gpuconsole-test/moved-{uuid.uuid4().hex[:8]}:1"
    engine.docker("run", "--name", box, engine.load("small"), "sh", "-c", f"echo {uuid.uuid4().hex} > /moved")
    engine.docker("commit", box, image)
    engine.docker("rm", "--force", box)
    name = target.partition("/")[2]
    had = engine.docker("image", "inspect", target, check=False).returncode == 0
    old = engine.docker("image", "inspect", "-f", "{{.Id}}", target, check=False).stdout.strip()
    registry.push(engine, image, name=name)
    engine.docker("rmi", image)
    if had and old:
        engine.docker("tag", old, target)
    repository, _, tag = name.rpartition(":")
    return registry.digest(repository, tag)


def in_registry(engine: Engine, registry: Registry, name: str, *, image: str = "small") -> str:
    """One of the rig's images under ``name`` in the registry; the engine has it under its own name only."""
    return registry.push(engine, engine.load(image), name=name)


def docker_config(folder: Path, **content: object) -> str:
    """A folder for DOCKER_CONFIG."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(content))
    return os.fspath(folder)
