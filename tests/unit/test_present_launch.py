"""The launch form's texts: what was typed, what it means, what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuconsole.core.errors import EngineRefused
from gpuconsole.engine.model import Image, PullProgress
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus, Mig
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.images.facts import image_facts
from gpuconsole.launch.claims import Claimant
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.images import ImageView
from gpuconsole.services.launchruns import LaunchNews
from gpuconsole.services.pulling import PullState
from gpuconsole.tui.present import launchform, launchgpus, launchtext, launchtyped
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import ASCII, UNICODE

GIB = 2**30
AROUND = Surroundings(cwd="/", home="/root", environment={}, uid=0, gid=0)


def text_of(lines: Sequence[tuple[Cell, ...]]) -> str:
    return "\n".join("".join(cell.text for cell in line) for line in lines)


def gpu(index: int, *, used: int = 0, status: GpuStatus = GpuStatus.OK, name: str = "NVIDIA H200") -> Gpu:
    return Gpu(index=index, uuid=f"GPU-{index}", name=name, status=status, memory_total_bytes=140 * GIB,
               memory_used_bytes=used, processes=())  # fmt: skip


def host(*gpus: Gpu, holders: tuple[Holder, ...] = ()) -> HostView:
    views = tuple(GpuView(each, tuple(one for one in holders if one.gpu_index == each.index)) for each in gpus)
    return HostView(GpuSnapshot(taken_at=0.0, gpus=gpus), views)


def test_whatever_the_command_line_refuses_has_a_field_to_stand_beside() -> None:
    wrong = LaunchOptions(
        image="", gpus="0", name="-", volumes=("x",), ports=("x",), environment=("=",), shm_size="x", user="a b",
        working_dir="w", memory="x", cpus="x", hostname="-", ipc="x", network=" ", restart="x", pull="x", gpu_path="x",
        ulimits=("x",), env_files=("/nowhere",), labels=("=",), force=("x",), command=("\ud800",), entrypoint="\ud800",
        kind="x", processes="x", nodes="x", rendezvous="x", rendezvous_id="a b", logdir="-", mounts=("x",),
        tmpfs=("x",), secrets=("x",), devices=("x",), group_add=("a b",), extra_hosts=("x",),
    )  # fmt: skip
    with pytest.raises(SpecInvalid) as caught:
        read_options(wrong, AROUND)
    assert len(caught.value.problems) >= 32
    for problem in caught.value.problems:
        assert launchform.field_of(problem) is not None, problem


@pytest.mark.parametrize(
    ("wish", "meant"),
    [("device=1,0:1", "device=GPU-b,MIG-c"), ("device=7", "device=7"), ("2", "2"), ("auto", "auto"), ("?", "?"),
     ("device=GPU-zz", "device=GPU-zz"), (None, None)],
)  # fmt: skip
def test_the_gpu_that_was_seen_is_the_one_that_is_meant(wish: str | None, meant: str | None) -> None:
    assert launchtyped.by_uuid(wish, {"1": "GPU-b", "0:1": "MIG-c"}) == meant


def test_gpus_show_what_is_free_who_holds_them_and_what_a_wish_would_get() -> None:
    holder = Holder(pid=1, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=GIB, container_name="[red]llama")
    view = host(gpu(0, used=100 * GIB), gpu(1), gpu(2, status=GpuStatus.LOST), holders=(holder,))
    rows = launchgpus.gpu_rows(view, "auto", UNICODE)
    assert [(row.index, row.picked) for row in rows] == [("0", False), ("1", True), ("", False)]
    texts = ["".join(cell.text for cell in row.cells) for row in rows]
    assert "40.0 of 140.0 GiB free" in texts[0]
    assert "[red]llama" in texts[0]
    assert texts[1].startswith("[X]")
    assert "cannot be given" in texts[2]
    assert launchgpus.picked(view, "all") == {"0", "1"}
    assert launchgpus.picked(view, "device=0") == {"0"}
    assert launchgpus.picked(view, "3") == frozenset()
    assert launchgpus.picked(view, "'") == frozenset()
    assert launchgpus.gpu_rows(None, "auto", UNICODE) == ()
    assert "unknown" in "".join(
        cell.text for cell in launchgpus.gpu_rows(host(replace(gpu(0), memory_used_bytes=None)), "", ASCII)[0].cells
    )


def test_an_idle_container_that_was_given_a_gpu_stands_beside_it() -> None:
    working = Holder(pid=1, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=GIB, container_name="llama")
    view = host(gpu(0, used=100 * GIB), gpu(1), gpu(2), holders=(working,))
    claims = {"GPU-0": (Claimant("llama"), Claimant("[b]x", "anna")), "GPU-1": (Claimant("notebook"),)}
    rows = launchgpus.gpu_rows(view, "auto", UNICODE, claims)
    assert [row.cells[-1].text for row in rows] == ["llama, [b]x of anna (idle)", "notebook (idle)", ""]
    assert [row.picked for row in rows] == [False, False, True]


def test_what_cannot_be_given_is_shown_with_the_reason_and_cannot_be_ticked() -> None:
    nameless = Mig(None, "1g.10gb", 7, 0, 10 * GIB, 0)
    divided = replace(gpu(1), mig_enabled=True, migs=(nameless, replace(nameless, uuid="MIG-2")))
    view = host(replace(gpu(0), uuid=None), divided, gpu(2, status=GpuStatus.LOST))
    rows = launchgpus.gpu_rows(view, "all", ASCII)
    assert [row.index for row in rows] == ["1:1", "", "", ""]
    assert [row.cells[-1].text for row in rows[1:]] == ["no UUID", "no UUID", "lost"]
    assert launchgpus.uuids(view) == {"1:1": "MIG-2"}


def test_ticking_gpus_writes_exactly_them() -> None:
    assert launchgpus.toggled({"0"}, "10") == "device=0,10"
    assert launchgpus.toggled({"10", "2"}, "0:1") == "device=0:1,2,10"
    assert launchgpus.toggled({"0"}, "0") == "none"


def image(tag: str, created_at: float, **labels: str) -> ImageView:
    told = {f"gpuconsole.{key}": value for key, value in labels.items()}
    one = Image(id=f"sha256:{tag}", tags=(tag,), created_at=created_at, labels=told)
    return ImageView(one, image_facts(one))


def test_the_newest_image_with_torch_and_cuda_is_proposed() -> None:
    plain, cpu = image("redis:7", 9.0), image("mine:cpu", 8.0, torch="2.13.0+cpu")
    old, new = image("mine:old", 1.0, torch="2.8.0", cuda="12.8"), image("mine:new", 2.0, torch="2.9.0", cuda="13.0")
    assert launchform.proposed_image([plain, cpu, old, new]) == "mine:new"
    assert launchform.proposed_image([plain, cpu]) == "mine:cpu"
    assert launchform.proposed_image([plain]) == ""
    found = list(launchtext.image_choices([plain, old, new], "mine", now=86400.0))
    assert [tag for tag, _ in found] == ["mine:new", "mine:old"]
    assert "torch 2.9.0, CUDA 13.0" in found[0][1]


@pytest.mark.parametrize("folder", [None, "/", "/a:b", "/a\x1b[2J", "/a\u202eb"])
def test_a_folder_that_cannot_be_mounted_is_not_proposed(folder: str | None) -> None:
    assert "volumes" not in launchform.proposed(folder, engine_is_local=True)


def test_a_folder_is_proposed_as_the_workspace_of_an_engine_on_this_machine() -> None:
    assert launchform.proposed("/data/my code", engine_is_local=True)["volumes"] == "/data/my code:/workspace"
    assert launchform.proposed("/data", engine_is_local=False) == {"gpus": "auto"}


def test_a_pull_shows_its_whole_and_its_layers_in_the_room_there_is() -> None:
    layers = tuple(
        PullProgress(status, f"{number:012d}", current, total)
        for number, (status, current, total) in enumerate(
            [("Pull complete", None, None), ("Waiting", None, None), ("Downloading", GIB, 4 * GIB),
             ("Extracting", 1, 2), *[("Pulling fs layer", None, None)] * 20]
        )
    )  # fmt: skip
    state = PullState("a:1", layers=24, layers_done=1, current_bytes=GIB, total_bytes=4 * GIB, each=layers)
    news = LaunchNews("pulling", 0.25, state)
    for glyphs in (UNICODE, ASCII):
        lines = launchtext.progress_lines(news, glyphs, width=80, rows=8)
        text = text_of(lines)
        assert len(lines) == 8
        assert all(len(line) <= 80 for line in text.splitlines())
        assert "25%" in text.splitlines()[0]
        assert "1 GiB of 4 GiB" in text.splitlines()[2], "what is at work stands first"
        assert "more layers" in text.splitlines()[-1]
        assert glyphs is UNICODE or text.isascii()


def test_a_failure_is_told_without_anything_a_terminal_obeys() -> None:
    text = text_of(launchtext.failure_lines(EngineRefused("no \x1b[2J such\nthing.", hint="Do \x07that."), 40))
    assert text == " no such thing.\n Do that."


def test_no_gpu_is_asked_for_where_there_is_none() -> None:
    assert launchform.proposed("/data", engine_is_local=True)["gpus"] == "auto"
    assert "gpus" not in launchform.proposed("/data", engine_is_local=True, without_gpus=True)
