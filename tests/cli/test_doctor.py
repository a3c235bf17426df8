"""``gpuconsole doctor`` as a process of its own: what is missing, what to mend first, and how."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from gpuconsole.core.errors import EngineUnavailable
from gpuconsole.engine.docker import unreachable
from gpuconsole.engine.endpoint import Endpoint
from tests.cli.engines import gpuconsole
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox


def doctor(*arguments: str, host: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"LC_ALL": "C.UTF-8"} | (env or {})
    return prepared.in_words(prepared.gpuconsole("--host", host, "doctor", *arguments, env=environ))


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("programs", "installed", "words"),
    [((), False, "neither Docker nor Podman"), (("docker",), False, "only Docker's client"),
     (("docker", "dockerd"), True, "systemctl start docker"), (("podman",), True, "systemctl start docker")],
)  # fmt: skip
def test_dockers_client_is_no_engine(
    programs: tuple[str, ...], installed: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unreachable, "_ENGINE_PROGRAMS", ("dockerd", "podman"))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in programs:
        program(tmp_path, name)
    assert unreachable.engine_installed() is installed
    missing = FileNotFoundError(2, "No such file or directory")
    error = unreachable.not_connected(Endpoint(f"unix://{tmp_path}/docker.sock", "default"), missing)
    assert isinstance(error, EngineUnavailable)
    assert words in f"{error.message} {error.hint}"
    assert ("installed here" in error.message) is not installed


def test_without_a_card_and_an_engine_the_engine_comes_first(tmp_path: Path) -> None:
    done = doctor(host=f"unix://{tmp_path}/none.sock")
    document = json.loads(doctor("--json", host=f"unix://{tmp_path}/none.sock").stdout)
    assert done.returncode == 1, done.stderr
    assert document["mend"][0] in ("doctor.engine", "doctor.driver")  # the latter where a card lies idle
    failing = [finding["id"] for finding in document["findings"] if finding["level"] == "fail"]
    assert sorted(document["mend"]) == sorted(failing)
    titles = {finding["id"]: finding["title"] for finding in document["findings"]}
    assert f"Mend first: {titles[document['mend'][0]]}" in done.stdout


@pytest.mark.engine
def test_with_an_engine_only_the_card_is_missing(engine_modern: Engine) -> None:
    done = gpuconsole(engine_modern, "doctor", "--json")
    assert "doctor.engine" not in done.document["mend"]


def test_a_driver_and_no_engine(nvml_box: NvmlBox, tmp_path: Path) -> None:
    document = json.loads(doctor("--json", host=f"unix://{tmp_path}/none.sock", env=nvml_box.env()).stdout)
    assert document["mend"] == ["doctor.engine"]
