"""A project folder in which gpuconsole is run, and images that only a registry has."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.engines import US, Done, environment
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
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


def moved(registry: Registry, target: str) -> str:
    """Let a tag of the registry lead to a new image, and give that one's digest. What engines have stays."""
    name = target.partition("/")[2]
    fresh_image(registry, name=name, megabytes=())
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
