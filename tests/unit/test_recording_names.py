"""What is given away names no machine, no person and no folder, and is still worth looking at."""

from __future__ import annotations

import dataclasses
import json
import os
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from gpuconsole.core.document import jsonable
from gpuconsole.core.revive import revive
from gpuconsole.engine.model import Container, ContainerState, EngineInfo, Image
from gpuconsole.gpu.forecast_model import Assessment, MemorySample
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.model import HostView
from gpuconsole.host.recording import FORMAT
from gpuconsole.services.anonymous import StandIns
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.images import ImageView
from gpuconsole.services.replayfile import Output
from gpuconsole.services.runs import Run

UUID = "b7a1c9d4-1f3e-4a5b-8c2d-9e0f1a2b3c4d"
OTHER = "c8a1c9d4-1f3e-4a5b-8c2d-9e0f1a2b3c4d"


LOCAL = {"Assessment": Assessment, "MemorySample": MemorySample, "Mapping": Mapping}
"""What modules of types import for type checkers only."""


@pytest.fixture
def names() -> StandIns:
    return StandIns(me="jim", host="ws-07.lab.example.org", home="/home/jim")


FREE: dict[str, tuple[str, str]] = {
    "host": ("on ws-07: ready", "on gpu-box: ready"),
    "whole host name": ("http://ws-07.lab.example.org:8888/", "http://gpu-box:8888/"),
    "host inside another word": ("rows-07 stays", "rows-07 stays"),
    "user": ("hello jim!", "hello me!"),
    "user in a name": ("jim-llama_jim", "me-llama_me"),
    "user inside another word": ("jimmy stays", "jimmy stays"),
    "home": ("/home/jim/project/train.py --data /data", "/home/me/project/train.py --data /data"),
    "home with more of it": ("/home/jim", "/home/me"),
    "another home": ("/home/ann/models", "/home/u1/models"),
    "folders": ("/mnt/acme-secret/run7/x.ckpt", "/mnt/path1/path2/path3.ckpt"),
    "the system's": ("/usr/bin/python3 /opt/conda/bin/x", "/usr/bin/python3 /opt/conda/bin/x"),
    "a socket": ("unix:///home/jim/docker.sock", "unix:///home/me/path1.sock"),
    "the usual socket": ("unix:///var/run/docker.sock", "unix:///var/run/docker.sock"),
    "UUIDs": (f"GPU-{UUID} {UUID} MIG-{OTHER}", "GPU-{0} {0} MIG-{1}"),
    "addresses": ("http://10.1.2.3:8888 at 127.0.0.1:80", "http://192.0.2.2:8888 at 127.0.0.1:80"),
    "newer addresses": ("http://[fd12:3456:789a::17]:80 fe80::1%eth0 ::1", "http://[2001:db8::1]:80 2001:db8::2 ::1"),
    "an older one in a newer one": ("at ::ffff:10.1.2.3", "at 2001:db8::1"),
    "what only has colons": ("12:34:56 std::vector 00000000:01:00.0 a", "12:34:56 std::vector 00000000:01:00.0 a"),
    "versions": ("cudnn 9.8.0.87, 580.159.04, 10.4/140.4 GiB", "cudnn 9.8.0.87, 580.159.04, 10.4/140.4 GiB"),
    "secrets": ("HF_TOKEN=hf_abcdefghijklmnopqrstu", "HF_TOKEN=********"),
    "kernel": (f"Linux {os.uname().release} x", f"Linux {'.'.join(os.uname().release.split('.')[:2])} x"),
}  # fmt: skip


@pytest.mark.parametrize("what", FREE)
def test_free_text(names: StandIns, what: str) -> None:
    given, wanted = FREE[what]
    places = ("00000001-0000-4000-8000-000000000000", "00000002-0000-4000-8000-000000000000")
    assert names.clean(given) == wanted.format(*places)


def container() -> dict[str, Any]:
    return {
        "name": "jim-train",
        "image": "registry.corp.example.com:5000/team/torch:1",
        "environment": [
            ["PATH", "/usr/bin"], ["WANDB_API_KEY", "abc"], ["TEAM", "acme"], ["CUDA_VERSION", "12.8"], ["X", None],
        ],
        "labels": {
            "gpuconsole.user": "jim", "gpuconsole.image": "registry.corp.example.com:5000/team/torch:1",
            "com.docker.compose.project.working_dir": "/home/jim/acme", "owner": "jim@corp",
            "com.nvidia.cuda.version": "12.8",
        },
        "mounts": [{"kind": "bind", "source": "/home/jim/acme/data", "target": "/data"}],
        "command": ["python", "train.py", "--password", "hunter2"],
        "user": "1000:1000",
        "hostname": "ws-07",
    }  # fmt: skip


def test_a_container(names: StandIns) -> None:
    cleaned = names.clean({"container": container(), "user": "jim", "uid": os.getuid()})
    text = json.dumps(cleaned)
    for secret in ("jim", "ws-07", "corp", "acme", "hunter2", "abc"):
        assert secret not in text, text
    found = cleaned["container"]
    assert found["name"] == "me-train"
    assert found["image"] == "registry.example:5000/path1/torch:1"
    assert dict(found["environment"]) == {
        "PATH": "/usr/bin", "WANDB_API_KEY": "…", "TEAM": "…", "CUDA_VERSION": "12.8", "X": None,
    }  # fmt: skip
    assert found["labels"]["gpuconsole.user"] == cleaned["user"] == "me"
    assert found["user"] == "1000:1000"
    assert cleaned["uid"] == 1000


def test_a_document_inside_a_string_stays_a_document(names: StandIns) -> None:
    document = json.dumps({"where": "container jim-train", "environment": {"host": "ws-07"}, "uuid": UUID})
    cleaned = json.loads(names.clean({"document": document})["document"])
    assert cleaned["where"] == "container me-train"
    assert cleaned["environment"] == {"host": "gpu-box"}
    assert names.clean({"document": "jim: no JSON"}) == {"document": "me: no JSON"}


def test_users_are_told_apart_and_stay_who_they_are(names: StandIns) -> None:
    assert [names.clean({"user": user})["user"] for user in ("ann", "jim", "bob", "ann", "root", "me", "")] == [
        "u1", "me", "u2", "u1", "root", "me", "",
    ]  # fmt: skip
    assert names.clean("ann and bob") == "u1 and u2"


def test_whoever_records_as_root_is_me_and_the_word_root_stays() -> None:
    names = StandIns(me="root", host="x1", home="/root")
    assert names.clean({"user": "root", "text": "root of /root/project on x1"}) == {
        "user": "me", "text": "root of /home/me/project on gpu-box",
    }  # fmt: skip


def test_a_name_that_begins_another_one_leaves_that_whole() -> None:
    for order in (("ann", "ann-lee"), ("ann-lee", "ann")):
        names = StandIns(me="jim", host="a.b.c", home="/home/jim")
        stand_ins = {user: names.clean({"user": user})["user"] for user in order}
        assert names.clean("ann-lee, ann") == f"{stand_ins['ann-lee']}, {stand_ins['ann']}"
        assert names.clean("on a.b.c or a") == "on gpu-box or gpu-box"


@pytest.mark.parametrize(
    "image",
    [
        "registry.corp.example:5000/skunk/llama-x:2.1", "registry.corp.example/skunk/deep/llama-x@sha256:" + "a" * 64,
        "ghcr.io/acme/llama-x:2.1", "acme/llama-x:2.1", "docker.io/acme/skunk", "llama-x", "llama-x:dev",
        "localhost:5000/skunk/llama-x", "127.0.0.1:5000/llama-x:1", "10.9.8.7:5000/acme/llama-x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["image", "tags", "digests", "gpuconsole.image"])
def test_a_private_image_has_no_name_anywhere(names: StandIns, image: str, key: str) -> None:
    cleaned = names.clean(
        {key: [image] if key.endswith("s") else image, "text": f"started {image}, of llama-x by acme"}
    )
    text = json.dumps(cleaned)
    for part in ("acme", "skunk", "llama-x", "10.9.8.7"):
        if part in image:
            assert part not in text, text
    for tag in (":2.1", ":dev", "@sha256:"):
        assert text.count(tag) == (2 if tag in image else 0)


def test_public_registries_stay(names: StandIns) -> None:
    for image in (
        "nvcr.io/nvidia/pytorch:25.10-py3",
        "pytorch/pytorch:2.9.0",
        "localhost:5000/a",
        "docker.io/library/x",
    ):
        assert names.clean({"image": image}) == {"image": image}


@pytest.mark.parametrize(
    ("address", "wanted"),
    [("ssh://ann@skunk.corp.example", "ssh://u1@engine-box"), ("tcp://skunk7:2376", "tcp://engine-box:2376"),
     ("ssh://jim@ws-07", "ssh://me@gpu-box"), ("tcp://localhost:2375", "tcp://localhost:2375"), ("tcp://docker:2375", "tcp://docker:2375"),
     ("tcp://10.1.2.3:2376", "tcp://192.0.2.2:2376"), ("unix:///var/run/docker.sock", "unix:///var/run/docker.sock"),
     ("unix:///home/ann/docker.sock", "unix:///home/u1/path1.sock"), ("", ""), ("ssh://ann@skunk:22", "ssh://u1@engine-box:22")],
)  # fmt: skip
def test_an_engine_elsewhere_has_no_name_anywhere(names: StandIns, address: str, wanted: str) -> None:
    cleaned = names.clean({"endpoint": address, "message": f"no answer from {address}"})
    assert cleaned == {"endpoint": wanted, "message": f"no answer from {wanted}"}


def chosen(kind: Any, field: str = "", seen: set[Any] | None = None) -> Iterator[tuple[str, str]]:
    """Field → each of the words that it can be, of all that is recorded of a ``kind``."""
    seen = set() if seen is None else seen
    if hasattr(kind, "__members__"):
        yield from ((field, each.value) for each in kind)
    elif dataclasses.is_dataclass(kind):
        if kind in seen:
            return
        seen.add(kind)
        hints = typing.get_type_hints(kind, localns=LOCAL)
        for each in dataclasses.fields(kind):
            if not each.metadata.get("derived"):
                yield from chosen(hints[each.name], each.name, seen)
    else:
        for part in typing.get_args(kind):
            yield from chosen(part, field, seen)


RECORDED = (HostView, Container, ContainerView, Image, ImageView, EngineInfo, EngineLink, Run, LaunchFacts, Output)


def test_words_of_ours_stay_whoever_is_called_so() -> None:
    """A user ``check``, an image ``running``: what gpuconsole chooses from is no name, or it could not be read."""
    found = {pair for kind in RECORDED for pair in chosen(kind)}
    assert ("state", "running") in found
    for field, word in found:
        names = StandIns(me=word, host=word, home="/home/x")
        names.clean({"image": f"{word}/{word}:1", "user": word})
        assert names.clean({field: word}) == {field: word}
    names = StandIns(me="gpuconsole", host="sample", home="/home/x")
    line = {"type": "sample", "format": FORMAT, "schema": "gpuconsole.check/1"}
    assert names.clean(line) == line


@pytest.mark.parametrize("word", ["running", "device-request", "exited", "ok"])
def test_a_container_of_somebody_who_is_called_like_a_word_of_ours_can_be_read_again(word: str) -> None:
    names = StandIns(me=word, host=word, home=f"/home/{word}")
    one = Container(id="1", name=word, image=f"{word}/torch:1", image_id="sha256:1", state=ContainerState.RUNNING)
    again = revive(Container, names.clean(jsonable(one)))
    assert again.state is ContainerState.RUNNING
    assert again.name != word


def test_what_stands_in_for_one_name_is_never_taken_for_another() -> None:
    names = StandIns(me="jim", host="ws-07", home="/home/jim")
    for user in ("gpu", "box", "u1", "u2", "me"):
        names.clean({"user": user})
    assert names.clean("ws-07: jim, gpu, box, u1, u2") == "gpu-box: me, u1, u2, u3, u4"
