"""Registries as strangers, on the command line: nothing they send reaches the terminal, and little is asked of them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.engines import OBEYED
from tests.cli.projects import Project, in_registry
from tests.cli.test_catalog_verify import get, put
from tests.rig.answering import Reply, Server
from tests.rig.engines import Engine
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine
EVIL = "\x1bc\x1b]0;owned\x07\x1b[2J"
KIND = "application/vnd.docker.distribution.manifest.v2+json"


@pytest.fixture
def modern(engine_modern: Engine, tmp_path: Path) -> Project:
    return Project(engine_modern, tmp_path)


@pytest.fixture
def hostile() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def in_headers(path: str, _: str | None) -> Reply:
    return 200, {"Docker-Content-Digest": EVIL, "Content-Type": KIND}, b'{"config": {"digest": "x"}, "layers": []}'


def in_bodies(path: str, _: str | None) -> Reply:
    digest = f"sha256:{'a' * 64}"
    parts = [{"digest": EVIL, "platform": {"os": "linux", "architecture": EVIL}}, {"digest": digest, "platform": EVIL}]
    return 200, {"Content-Type": KIND}, json.dumps({"manifests": parts, "tags": [EVIL], "errors": [EVIL]}).encode()


def in_reasons(path: str, _: str | None) -> Reply:
    return 404, {"Content-Type": "application/json"}, json.dumps({"errors": [{"code": EVIL, "message": EVIL}]}).encode()


def in_challenges(path: str, _: str | None) -> Reply:
    return 401, {"WWW-Authenticate": f'{EVIL} realm="https://[{EVIL}"'}, b""


@pytest.mark.parametrize("answer", [in_headers, in_bodies, in_reasons, in_challenges])
def test_no_registry_writes_to_the_terminal(modern: Project, hostile: Server, answer: Any) -> None:
    hostile.answer = answer
    target = f"{hostile.address}/lab/torch:1"
    state = modern.folder / "state"
    modern.lock.write_text(f'[image."{target}"]\ndigest = "sha256:{"b" * 64}"\n')
    for arguments in (
        ("catalog", "verify", target),
        ("catalog", "verify", "--json", target),
        ("pin", f"{target}0"),
        ("pin", "--check"),
        ("pin", "--check", "--json"),
        ("pin", "--update"),
        ("pull", f"{target}0"),
        ("launch", f"{target}0", "--gpus", "none"),
    ):
        done = modern.run(*arguments, XDG_STATE_HOME=str(state))
        assert done.code in range(12), (arguments, done.talk)
        assert not OBEYED & set(done.text + done.talk), arguments
        assert "Traceback" not in done.talk
    assert hostile.asked
    for file in state.rglob("*.json"):
        assert "owned" not in file.read_text(), file
    assert "owned" not in modern.lock.read_text()


def asked(registry: Registry) -> list[tuple[str, str]]:
    """Method and reference of each manifest that gpuconsole itself asked for."""
    lines = [line for line in registry.log.read_text().splitlines() if "response completed" in line]
    own = [line for line in lines if "http.request.useragent=gpuconsole" in line and "/manifests/" in line]
    found = []
    for line in own:
        method = re.search(r"http.request.method=(\w+)", line)
        where = re.search(r"/manifests/([^\s\"]+)", line)
        assert method is not None
        assert where is not None
        found.append((method[1], where[1]))
    return found


def several(project: Project, registry: Registry, name: str) -> str:
    """An image for four platforms, each with a manifest of its own."""
    target = in_registry(project.engine, registry, f"{name}:one")
    base = f"http://{registry.address}/v2/{name}/manifests"
    plain = json.loads(get(f"{base}/one", KIND))
    listed = []
    for number, architecture in enumerate(("amd64", "arm64", "ppc64le", "s390x")):
        body = json.dumps({**plain, "annotations": {"number": str(number)}}).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        put(f"{base}/{digest}", body, KIND)
        platform = {"os": "linux", "architecture": architecture}
        listed.append({"mediaType": KIND, "size": len(body), "digest": digest, "platform": platform})
    kind = "application/vnd.docker.distribution.manifest.list.v2+json"
    put(f"{base}/1", json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": listed}).encode(), kind)
    return target.replace(":one", ":1")


def test_of_a_registry_no_more_is_asked_than_is_needed(modern: Project, registry: Registry) -> None:
    """Registries count manifests; Docker Hub gives out a hundred in six hours."""
    target = several(modern, registry, "org/manners")
    for arguments, manifests in ((("pull", target), 2), (("pin", target), 2), (("pin", "--check"), 0)):
        before = len(asked(registry))
        assert modern.run(*arguments).code == 0
        fresh = asked(registry)[before:]
        assert len([one for one in fresh if one[0] == "GET"]) == manifests, (arguments, fresh)
        assert len(fresh) == max(1, manifests)


def test_a_strangers_lock_file_above_is_named_and_not_gone_by(modern: Project, registry: Registry) -> None:
    target = in_registry(modern.engine, registry, "org/stranger:1")
    assert modern.run("pin", target).code == 0
    below = modern.folder / "below"
    below.mkdir()
    assert "pins" in modern.run("launch", target, "--gpus", "none", "--dry-run", folder=below).talk
    os.chown(modern.lock, 4711, 4711)
    for arguments in (("pin",), ("pull", target), ("launch", target, "--gpus", "none", "--dry-run")):
        done = modern.run(*arguments, folder=below)
        assert done.code == 0, done.talk
        assert f"{modern.lock} belongs to 4711 and does not count here" in done.talk
        assert "pins org" not in done.talk
    assert target in modern.run("pin").text
