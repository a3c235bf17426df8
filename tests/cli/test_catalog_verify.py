"""``catalog verify`` on the rig's registry: what is there, what is gone, who wants a login, who does not answer."""

from __future__ import annotations

import hashlib
import json
import os
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import ExitCode
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.registry import Registry

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class Told:
    """What a run said."""

    code: int
    out: str
    talk: str

    @property
    def images(self) -> dict[str, Any]:
        return {image["reference"]: image for image in json.loads(self.out)["images"]}


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a catalog of their own and folders of their own."""

    folder: Path

    def catalog(self, *references: str) -> None:
        rows = [f'[[image]]\nreference = "{reference}"\ntorch = "2.9.1"\ncuda = "12.8"\n' for reference in references]
        (self.folder / "team.toml").write_text("\n".join(rows))

    def __call__(self, *arguments: str, env: Mapping[str, str] | None = None) -> Told:
        own = {
            "GPUCONSOLE_CATALOG": str(self.folder / "team.toml"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "LC_ALL": "C.UTF-8",
        }
        done = prepared.gpuconsole(*arguments, env={**os.environ, **own, **(env or {})})
        return Told(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def as_seen(user: User, *references: str) -> dict[str, Any]:
    told = user("catalog", "--all", "--json", "--driver", "580.95.05", "--cc", "9.0", "--arch", "amd64")
    assert told.code == 0, told.talk
    return {reference: told.images[reference] for reference in references}


def test_what_the_registry_has_stands_in_the_catalog_from_then_on(
    engine_modern: Engine, registry: Registry, user: User
) -> None:
    there = registry.push(engine_modern, engine_modern.load("small"))
    gone, dead = there.replace("small:1", "small:2"), "127.0.0.1:1/lab/torch:1"
    user.catalog(there, gone, dead)
    before = as_seen(user, there)[there]
    assert (before["verdict"], before["digest"], before["platforms"]) == ("unknown", None, None)
    told = user("catalog", "verify", there, gone, dead, "--json")
    assert told.code == ExitCode.FAILED
    digest = registry.digest("gpuconsole-test/small", "1")
    found = told.images
    assert (found[there]["state"], found[there]["digest"]) == ("there", digest)
    assert list(found[there]["sizes_bytes"]) == ["linux/amd64"]
    assert found[there]["sizes_bytes"]["linux/amd64"] > 100_000
    assert (found[gone]["state"], found[dead]["state"]) == ("gone", "unreached")
    assert "cannot be reached" in found[dead]["text"]
    after = as_seen(user, there, gone, dead)
    assert after[there]["verdict"] == "runs"
    assert (after[there]["digest"], after[there]["evidence"]) == (digest, "registry")
    assert after[there]["platforms"] == ["linux/amd64"]
    assert after[gone]["gone"] is True
    assert (after[dead]["evidence"], after[dead]["asked_at"]) == ("own", None)


def test_people_get_a_line_for_each_and_what_is_wrong(engine_modern: Engine, registry: Registry, user: User) -> None:
    there = registry.push(engine_modern, engine_modern.load("small"))
    gone = there.replace("small:1", "nothing:1")
    user.catalog(there)
    told = user("catalog", "verify", there, gone)
    lines = told.out.splitlines()
    assert lines[0].startswith("✓ there")
    assert lines[1].strip().startswith("linux/amd64: ")
    assert lines[2].startswith("✗ gone")
    assert "no such image" in lines[3]
    assert "catalog-findings.json" in told.talk


def test_readonly_keeps_nothing(engine_modern: Engine, registry: Registry, user: User) -> None:
    there = registry.push(engine_modern, engine_modern.load("small"))
    user.catalog(there)
    told = user("--readonly", "catalog", "verify", there)
    assert told.code == 0, told.talk
    assert not (user.folder / "state/gpuconsole/catalog-findings.json").exists()


def test_a_registry_with_a_password(
    engine_modern: Engine, registry_with_password: Registry, user: User, tmp_path: Path
) -> None:
    there = registry_with_password.push(engine_modern, engine_modern.load("small"))
    user.catalog(there)
    nobody = {"DOCKER_CONFIG": str(tmp_path / "nobody")}
    told = user("catalog", "verify", there, "--json", env=nobody)
    assert told.images[there]["state"] == "refused"
    assert "docker login" in told.images[there]["text"]
    registry_with_password.login(engine_modern)
    known = user("catalog", "verify", there, "--json", env={"DOCKER_CONFIG": engine_modern.env()["DOCKER_CONFIG"]})
    assert known.code == 0, known.out
    assert known.images[there]["state"] == "there"


def test_a_registry_that_died_leaves_what_was_known(engine_modern: Engine, registry: Registry, user: User) -> None:
    there = registry.push(engine_modern, engine_modern.load("small"))
    user.catalog(there)
    assert user("catalog", "verify", there).code == 0
    registry.kill()
    told = user("catalog", "verify", there, "--json")
    assert told.code == ExitCode.FAILED
    assert told.images[there]["state"] == "unreached"
    assert as_seen(user, there)[there]["evidence"] == "registry"


def put(url: str, body: bytes, kind: str) -> None:
    asked = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": kind})
    with urllib.request.urlopen(asked, timeout=30):
        pass


def get(url: str, accept: str) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=30) as answer:
        return bytes(answer.read())


def test_an_image_for_several_platforms_and_a_tag_that_moved(
    engine_modern: Engine, registry: Registry, user: User
) -> None:
    there = registry.push(engine_modern, engine_modern.load("small"))
    kind = "application/vnd.docker.distribution.manifest.v2+json"
    base = f"http://{registry.address}/v2/gpuconsole-test/small/manifests"
    manifest = get(f"{base}/1", kind)
    described = {
        "mediaType": kind,
        "size": len(manifest),
        "digest": f"sha256:{hashlib.sha256(manifest).hexdigest()}",
    }
    platforms = ({"os": "linux", "architecture": "amd64"}, {"os": "linux", "architecture": "arm64"})
    unknown = {"os": "unknown", "architecture": "unknown"}
    index = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
        "manifests": [{**described, "platform": platform} for platform in (*platforms, unknown)],
    }
    several = there.replace("small:1", "small:several")
    put(f"{base}/several", json.dumps(index).encode(), str(index["mediaType"]))
    told = user("catalog", "verify", several, "--json", env={"GPUCONSOLE_CATALOG": ""})
    assert list(told.images[several]["sizes_bytes"]) == ["linux/amd64", "linux/arm64"]
    user.catalog(several)
    put(f"{base}/several", manifest, kind)
    assert "the tag was moved" in user("catalog", "verify", several).out


def test_what_is_no_reference_is_wrong_usage(user: User) -> None:
    told = user("catalog", "verify", "Not A Reference", env={"GPUCONSOLE_CATALOG": ""})
    assert told.code == ExitCode.USAGE
    assert "lower case" in told.talk
