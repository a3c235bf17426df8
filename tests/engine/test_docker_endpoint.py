"""Where the engine is, and where the docker command thinks it is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import resolve
from tests.rig.engines import Engine

pytestmark = pytest.mark.engine
DEAD = "unix:///nowhere/docker.sock"


def docker_says(environ: dict[str, str], *options: str) -> str:
    """The address that the docker command talks to: found in what it prints, or in its complaint."""
    done = subprocess.run(
        ["docker", *options, "version", "--format", "{{.Server.Version}}"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode == 0:
        return "answers"
    match = re.search(r"(?:daemon at|Get \"?)\s*(?:\"?https?://)?(\S+?)\. ", done.stderr)
    return match[1] if match else done.stderr.strip()


def we_say(environ: dict[str, str], host: str | None = None) -> str:
    endpoint = resolve(host, environ=environ)
    try:
        engine = DockerEngine.connect(endpoint)
    except ConsoleError:
        return endpoint.url
    engine.close()
    return "answers"


@pytest.fixture
def environ(engine_modern: Engine, tmp_path: Path) -> dict[str, str]:
    """A user's environment: the docker command of the engine, and no configuration."""
    return {"PATH": engine_modern.env()["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}


CASES = {
    "nothing said": {},
    "DOCKER_HOST answers": {"DOCKER_HOST": "LIVE"},
    "DOCKER_HOST is dead": {"DOCKER_HOST": DEAD},
    "DOCKER_HOST is empty": {"DOCKER_HOST": "", "DOCKER_CONTEXT": ""},
    "DOCKER_HOST without a scheme": {"DOCKER_HOST": "127.0.0.1:1"},
    "DOCKER_HOST without a port": {"DOCKER_HOST": "tcp://127.0.0.1"},
    "DOCKER_HOST with blanks": {"DOCKER_HOST": f"  {DEAD} "},
    "DOCKER_CONTEXT answers": {"DOCKER_CONTEXT": "live"},
    "DOCKER_CONTEXT is dead": {"DOCKER_CONTEXT": "dead"},
    "DOCKER_CONTEXT is the default one": {"DOCKER_CONTEXT": "default"},
    "DOCKER_HOST before DOCKER_CONTEXT": {"DOCKER_HOST": DEAD, "DOCKER_CONTEXT": "live"},
    "a broken context beside DOCKER_HOST": {"DOCKER_HOST": "LIVE", "DOCKER_CONTEXT": "no such context"},
}


@pytest.mark.parametrize("current", ["", "live", "dead"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_engine_as_the_docker_command(
    case: str, current: str, environ: dict[str, str], engine_modern: Engine
) -> None:
    if os.path.exists("/var/run/docker.sock"):
        pytest.skip("this machine has an engine of its own, which tests leave alone")
    for name, host in (("live", engine_modern.host), ("dead", DEAD)):
        subprocess.run(["docker", "context", "create", name, "--docker", f"host={host}"], env=environ, check=True,
                       capture_output=True)  # fmt: skip
    if current:
        subprocess.run(["docker", "context", "use", current], env=environ, check=True, capture_output=True)
    settings = {key: engine_modern.host if value == "LIVE" else value for key, value in CASES[case].items()}
    environ |= settings
    assert we_say(environ) == docker_says(environ)
    assert we_say(environ, engine_modern.host) == docker_says(environ, "--host", engine_modern.host) == "answers"


def test_what_the_docker_command_refuses_is_refused(environ: dict[str, str]) -> None:
    for settings in (
        {"DOCKER_CONTEXT": "gone"},
        {"DOCKER_HOST": "http://127.0.0.1:1"},
        {"DOCKER_HOST": "foo://bar"},
        {"DOCKER_HOST": "tcp://127.0.0.1:1", "DOCKER_TLS_VERIFY": "1"},
    ):
        here = environ | settings
        assert subprocess.run(["docker", "ps"], env=here, capture_output=True, check=False).returncode != 0
        with pytest.raises(ConsoleError):
            resolve(None, environ=here)
