"""A recording of a world in which every name and secret is marked: none of the marks is in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuconsole.engine.model import Container, ContainerState, EngineInfo, Image, Mount
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.images.facts import ImageFacts
from gpuconsole.services import anonymous
from gpuconsole.services.anonymous import StandIns
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.desk import Desk
from gpuconsole.services.images import ImageView
from gpuconsole.services.recorder import Recorder
from gpuconsole.services.replayfile import load
from gpuconsole.services.runs import Run, RunKind, Runs
from gpuconsole.services.session import Session

ME, HOST, HOME = "zqjim", "zqbox", "/home/zqjim"
SECRET = "zqsecret"
REGISTRY = "registry.zqcorp.example"
LINES = st.sampled_from(
    [
        f"{HOME}/project/train.py", "/mnt/zqdata/run", f"saved by {ME} on {HOST}", f"HF_TOKEN={SECRET}1",
        f"http://{ME}:{SECRET}2@example.org/", f"--api-key {SECRET}3", f"--password={SECRET}4", f"{HOST}.zqlab.example",
        f"Authorization: Bearer {SECRET}{SECRET}5", "/home/zqann/x", f"WANDB_API_KEY: {SECRET}6", f"ssh {ME}@{HOST}",
    ]
)  # fmt: skip
NAMES = st.sampled_from(["TEAM", "HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "MY_SETTING", "NCCL_TOKEN"])
VALUES = st.sampled_from([f"{SECRET}7", f"{HOME}/cache", f"{ME}@{HOST}"])


def world(data: st.DataObject) -> tuple[HostView, ContainerView, ImageView, EngineInfo, Run, list[str]]:
    """A machine, with names and secrets wherever people have them."""
    draw = data.draw
    command = draw(st.lists(LINES, max_size=3))
    variables = tuple((name, draw(VALUES)) for name in draw(st.lists(NAMES, max_size=3, unique=True)))
    gpu = Gpu(index=0, uuid="GPU-1", name="NVIDIA H200", memory_total_bytes=10, memory_used_bytes=5,
              processes=(GpuProcess(7, 5),))  # fmt: skip
    holder = Holder(pid=7, gpu_index=0, gpu_uuid="GPU-1", memory_bytes=5, user=ME, command=" ".join(command))
    host = HostView(GpuSnapshot(1.0, (gpu,)), (GpuView(gpu, (holder,)),))
    image = f"{REGISTRY}/zqteam/torch:2.9"
    container = Container(
        id="ab" * 32, name=f"{ME}-train", image=image, image_id="sha256:1", state=ContainerState.RUNNING,
        command=tuple(command), environment=variables, hostname=HOST, user=draw(st.sampled_from([ME, "", "1000"])),
        labels={"gpuconsole.user": ME, "com.zqcorp.owner": ME}, working_dir=f"{HOME}/project",
        mounts=(Mount(kind="bind", source=f"{HOME}/data", target="/zqdata"),),
    )  # fmt: skip
    document = json.dumps({"said": draw(LINES), "user": ME, "environment": [["TEAM", f"{SECRET}8"]]})
    run = Run("1", RunKind.CHECK, f"{ME}-train", "id", 2.0, headline=draw(LINES), document=document)
    info = EngineInfo(endpoint=f"unix://{HOME}/docker.sock", version="28", root_dir=f"{HOME}/docker")
    images = ImageView(Image("sha256:1", tags=(image,), labels={"maintainer": ME}, environment=variables), ImageFacts())
    return host, ContainerView(container, user=ME), images, info, run, draw(st.lists(LINES, max_size=4))


def recorded(path: Path, data: st.DataObject, *, names: bool = False) -> str:
    host, container, image, info, run, output = world(data)
    desk = Desk(Session(host=f"unix://{path}.none.sock"), runs=Runs(kept=False))
    recorder = Recorder(desk, path, interval_s=1.0, names=names)
    if not names:
        recorder._names = StandIns(me=ME, host=f"{HOST}.zqlab.example", home=HOME)
    recorder._followers["ab" * 32] = None  # type: ignore[assignment]  # its output is told below
    recorder.host_looked(host)
    recorder.containers_listed((container,))
    recorder.images_listed((image,))
    recorder._news("engine", {"info": info})
    recorder.runs_changed((run,))
    for text in output:
        recorder._news("log", {"id": "ab" * 32, "channel": "stdout", "stamp": "", "text": text}, of=None)
    recorder._followers.clear()
    recorder.close()
    assert recorder.failure is None
    load(path)
    return path.read_text()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_name_and_no_secret_is_in_a_recording(tmp_path: Path, data: st.DataObject) -> None:
    text = recorded(tmp_path / "a.jsonl", data)
    assert "zq" not in text, text[max(0, text.find("zq") - 200) : text.find("zq") + 80]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_with_names_no_secret_is_in_it(tmp_path: Path, data: st.DataObject) -> None:
    text = recorded(tmp_path / "a.jsonl", data, names=True)
    assert SECRET not in text, text[max(0, text.find(SECRET) - 200) : text.find(SECRET) + 80]
    assert f"{ME}-train" in text
    assert REGISTRY in text
    assert f"{HOME}/data" in text


def test_what_is_masked_with_names_is_a_kind_of_what_is_hidden_without() -> None:
    assert issubclass(anonymous.Masked, StandIns)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_place_that_is_full_is_told_once_and_what_was_written_can_be_played(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    desk = Desk(Session(host=f"unix://{tmp_path}/none.sock"), runs=Runs(kept=False))
    recorder = Recorder(desk, path, interval_s=1.0)

    def look(at: float) -> None:
        gpu = Gpu(index=0, uuid="GPU-1", name="H200", memory_total_bytes=10, memory_used_bytes=int(at) % 10)
        recorder.host_looked(HostView(GpuSnapshot(at, (gpu,)), (GpuView(gpu),)))

    for at in range(200):
        look(1.0 + at)
    limited(recorder._writer)
    for at in range(200, 2000):
        look(1.0 + at)
    assert recorder.failure is not None
    assert "No space left" in recorder.failure.message
    assert recorder.failure.hint
    recorder.close()
    if not name.endswith(".gz"):
        assert load(path).length_s >= 199


def limited(writer: Any) -> None:
    """From now on its device is full."""
    import os

    file = writer._file
    raw = file.buffer.fileobj if hasattr(file.buffer, "fileobj") else file.buffer
    file.flush()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, raw.fileno())
    os.close(full)
