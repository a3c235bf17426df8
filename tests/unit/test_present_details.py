"""Details as fields and rows: total for any value, exact in width, harmless, and honest about what is unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpuconsole.engine.model import Container, ContainerState, Image, Mount, Port
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus, Mig
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.images.facts import image_facts
from gpuconsole.services.containers import ContainerGpu, ContainerView
from gpuconsole.services.images import ImageView
from gpuconsole.services.logfollow import LogLine
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.services.tunnels import Server
from gpuconsole.tui.present import (
    containerdetails,
    details,
    gpudetails,
    gpunow,
    imagedetails,
    logs,
    processdetails,
    rundetails,
)
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.logs import Finder, LogBuffer
from gpuconsole.tui.theme import ASCII, UNICODE, Glyphs

NOW = 1_800_000_000.0


def text_of(fields: tuple[details.Field, ...], width: int = 80) -> str:
    return text_in(details.laid_out(fields, width))


def text_in(rows: Iterable[details.Line]) -> str:
    return "\n".join("".join(cell.text for cell in row) for row in rows)


def known(**changes: object) -> containerdetails.Known:
    return containerdetails.Known(now=NOW, glyphs=UNICODE, server=Server("ws-07", "ada"), **changes)  # type: ignore[arg-type]


def container(**changes: object) -> Container:
    given_ = {"id": "ab" * 32, "name": "train", "image": "pytorch:2", "image_id": "sha256:" + "1" * 64,
              "state": ContainerState.RUNNING, "started_at": NOW - 60} | changes  # fmt: skip
    return Container(**given_)  # type: ignore[arg-type]


@given(st.text(), st.integers(min_value=8, max_value=60))
def test_wrapping_keeps_every_word_and_no_row_is_too_wide(text: str, width: int) -> None:
    rows = details.wrapped(text, width)
    assert all(cell_len(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(details.one_line(text).split())


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=300))), st.integers(min_value=30, max_value=200))
def test_rows_of_fields_fit_their_width(pairs: list[tuple[str, str]], width: int) -> None:
    fields = [
        details.Field(title, ((Cell("ab "), Cell(text)), (Cell(title * 3), Cell("c" * 9), Cell(text))))
        for title, text in pairs
    ]
    for row in details.laid_out(fields, width):
        assert sum(cell_len(cell.text) for cell in row) <= width


def test_an_endless_value_is_cut_and_says_so() -> None:
    text = text_of((details.Field("environment", details.variables([("A", "x" * 5_000)])),))
    assert "3,002 more characters" in text


def test_a_container_in_full() -> None:
    view = ContainerView(
        container=container(
            environment=(
                ("HF_TOKEN", "hf_secret_secret_secret"),
                ("EPOCHS", "3"),
                ("EMPTY", None),
                ("TWO", "a\nFAKE=1"),
            ),
            ports=(
                Port(8888, host_ip="127.0.0.1", host_port=8888),
                Port(22, host_ip="0.0.0.0", host_port=2222),
                Port(9),
            ),
            mounts=(Mount("bind", "/data", "/mnt", read_only=True),),
            command=("train.py", "--api-key", "abc123secret"),
            labels={"b": "2", "a": "1"},
            memory_limit_bytes=8 * 2**30,
        ),
        gpus=(ContainerGpu(index=0, uuid="GPU-1", name="NVIDIA H200"),),
        gpu_memory_bytes=3 * 2**30,
        user="ada",
        unknown={"usage": "not asked for"},
    )
    text = text_of(containerdetails.fields(view, known()))
    assert "secret" not in text
    assert "HF_TOKEN=********" in text
    assert "\nFAKE" not in text
    assert "ssh -N -L 8888:127.0.0.1:8888 ada@ws-07" in text
    assert "open to the network" in text
    assert "9/tcp  not published" in text
    assert "/data → /mnt (read-only)" in text
    assert "3.0 GiB held by its own processes" in text
    assert "–  not asked for" in text
    assert text.index("a=1") < text.index("b=2")


def test_a_container_started_by_an_images_id_names_the_image_as_it_was_written() -> None:
    by_id = container(image="sha256:" + "1" * 64, labels={"gpuconsole.image": "lab/pytorch:2"})
    fields = containerdetails.fields(ContainerView(container=by_id), known())
    assert f"image lab/pytorch:2 id sha256:{'1' * 20}" in " ".join(text_of(fields).split())[:2000]
    without = ContainerView(container=container(image="sha256:" + "1" * 64))
    assert "image sha256:" in " ".join(text_of(containerdetails.fields(without, known())).split())


def test_a_container_of_which_nothing_is_known_says_why() -> None:
    view = ContainerView(container=container(), gpus=None, unknown={"gpus": "the engine is not on this machine"})
    assert "the engine is not on this machine" in text_of(containerdetails.fields(view, known()))


def test_a_container_that_ended_says_how() -> None:
    view = ContainerView(container(state=ContainerState.EXITED, exit_code=137, oom_killed=True, finished_at=NOW - 9))
    text = text_of(containerdetails.fields(view, known()))
    assert "needed more memory than its limit" in " ".join(text.split())


REPORT = {
    "environment": {"torch": "2.9.0", "torch_cuda": "12.8", "gpus": [{"position": 0, "name": "H200", "uuid": "GPU-1"}]},
    "checks": [
        {"id": "check.torch", "status": "ok", "why": "torch 2.9.0"},
        {"id": "check.shm", "status": "fail", "why": "64 MiB \x1b[2J", "fix": "Launch with --shm-size 8g."},
        {"id": "check.driver", "status": "strange", "why": None},
    ],
}


def check_run(document: str | None, state: RunState = RunState.FAILED) -> Run:
    return Run("r1", RunKind.CHECK, "train", "ab" * 32, NOW - 60, state, NOW - 50, "Not fit.", None, document)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_check_lists_every_check_with_why_and_remedy(glyphs: Glyphs) -> None:
    text = text_of(rundetails.fields(check_run(json.dumps(REPORT)), now=NOW, glyphs=glyphs))
    assert f"{glyphs.critical} fail" in text
    assert "64 MiB" in text
    assert "\x1b" not in text
    assert "→ Launch with --shm-size 8g." in text
    assert "torch 2.9.0 · CUDA 12.8" in text


@pytest.mark.parametrize(
    "document",
    [
        None,
        "",
        "[]",
        "{",
        '{"checks": 3}',
        '{"checks": [3, {}], "environment": []}',
        '{"checks": [{"id": 1, "why": {"a": 1}}], "environment": {"gpus": [1]}}',
    ],
)
def test_a_report_that_cannot_be_read_is_none(document: str | None) -> None:
    assert "Not fit." in text_of(rundetails.fields(check_run(document), now=NOW, glyphs=UNICODE))


def test_a_containers_last_check_is_told_with_what_failed() -> None:
    runs = (check_run(json.dumps(REPORT)),)
    text = text_of(containerdetails.fields(ContainerView(container()), known(runs=runs)))
    assert "Not fit." in text
    assert "shm: 64 MiB" in text
    assert "torch: " not in text


def test_an_image_in_full() -> None:
    image = Image("sha256:" + "2" * 64, tags=("pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",),
                  environment=(("PYTORCH_VERSION", "2.9.0"), ("API_KEY", "abc")))  # fmt: skip
    text = text_of(
        imagedetails.fields(ImageView(image, image_facts(image)), imagedetails.Known(now=NOW, glyphs=UNICODE))
    )
    assert "2.9.0" in text
    assert "API_KEY=********" in text
    assert "no container" in text


def test_a_process_of_which_nothing_is_known_says_why() -> None:
    why = {"command": "it has ended", "memory_bytes": "the driver does not tell it"}
    holder = Holder(77, gpu_index=0, gpu_uuid=None, memory_bytes=None, unknown=why)
    text = text_of(processdetails.fields(holder, now=NOW))
    assert "–  it has ended" in text
    assert "–  the driver does not tell it" in text


def test_a_gpu_of_which_nothing_is_known_gives_reasons_and_no_zero() -> None:
    gpu = Gpu(0, None, None, memory_total_bytes=None, processes=None,
              unknown={"power_w": "not supported", "ecc.enabled": "not supported by this GPU"})  # fmt: skip
    view = GpuView(gpu, unknown={"unattributed_bytes": "the processes cannot be listed"})
    for width in (40, 80, 200):
        now = text_in(gpunow.now_rows(view, width=width, glyphs=UNICODE))
        text = f"{now}\n{text_of(gpudetails.fields(view, GpuSnapshot(NOW)), width)}"
        assert "not supported by this GPU" in " ".join(text.split())
        assert "0 B" not in text


def test_a_lost_gpu_and_one_with_instances() -> None:
    lost = GpuView(Gpu(1, "GPU-1", "NVIDIA H200", status=GpuStatus.LOST, problem="GPU is lost."))
    assert "GPU is lost." in text_in(gpunow.now_rows(lost, width=80, glyphs=UNICODE))
    mig = Mig("MIG-1", "3g.20gb", 1, 0, 20 * 2**30, None)
    divided = GpuView(Gpu(0, "GPU-0", "A100", mig_enabled=True, migs=(mig,)))
    assert "3g.20gb  –/20.0 GiB" in text_of(gpudetails.fields(divided, GpuSnapshot(NOW)))
    now = text_in(gpunow.now_rows(divided, width=80, glyphs=UNICODE))
    assert "its instances are not watched over time" in now, "no forecast is no calm"


@pytest.mark.parametrize(
    ("changes", "holders", "why"),
    [
        ({}, (), "nobody holds it"),
        ({}, (Holder(7, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=1),), "not been watched for long enough"),
        ({"processes": None}, (), "not been watched for long enough"),
        ({"memory_used_bytes": None, "unknown": {"memory_used_bytes": "the driver keeps it"}}, (), "keeps it"),
        ({"unified_memory": True, "memory_used_bytes": None, "memory_total_bytes": None}, (), "watched as RAM"),
    ],
)
def test_without_a_forecast_it_is_said_why(changes: dict[str, object], holders: tuple[Holder, ...], why: str) -> None:
    given: dict[str, Any] = {"memory_used_bytes": 2**30, "memory_total_bytes": 2**31} | changes
    rows = gpunow.now_rows(GpuView(Gpu(0, "GPU-0", "H200", **given), holders), width=80, glyphs=UNICODE)
    row = next(row for row in text_in(rows).splitlines() if row.startswith(" forecast"))
    assert why in row
    assert ("–" in row) is (why != "nobody holds it")


def test_an_instance_of_which_little_is_known_says_why() -> None:
    mig = Mig(None, "3g.20gb", 1, 0, 20 * 2**30, None, processes=None,
              unknown={"uuid": "the driver does not know it", "processes": "this user may not read it"})  # fmt: skip
    text = text_of(gpudetails.fields(GpuView(Gpu(0, "GPU-0", "A100", mig_enabled=True, migs=(mig,))), GpuSnapshot(NOW)))
    assert "processes unknown (this user may not read it)" in text
    assert "UUID unknown (the driver does not know it)" in text
    unlisted = Gpu(0, "GPU-0", "A100", mig_enabled=True, unknown={"migs": "this user may not read it"})
    text = text_of(gpudetails.fields(GpuView(unlisted), GpuSnapshot(NOW)))
    assert "its instances are unknown  this user may not read it" in text


def test_the_gpu_of_a_container_is_shown_live() -> None:
    gpu = Gpu(0, "GPU-1", "NVIDIA H200", utilization_pct=98, memory_used_bytes=2**30, memory_total_bytes=2**31)
    host = HostView(GpuSnapshot(NOW), (GpuView(gpu),))
    view = ContainerView(container(), gpus=(ContainerGpu(0, "GPU-1", name="NVIDIA H200"),))
    assert "98 %  1.0/2.0 GiB" in text_of(containerdetails.fields(view, known(host=host)))


def log_lines(*texts: str) -> list[LogLine]:
    return [LogLine("stdout", "", text) for text in texts]


def test_a_buffer_lets_go_of_the_oldest_and_numbers_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_LINES", 10)
    buffer = LogBuffer()
    finder = Finder(buffer)
    finder.look_for("loss")
    for start in range(0, 100, 7):
        before = buffer.end
        buffer.add(log_lines(*(f"loss {number}" for number in range(start, start + 7))))
        finder.grow(before)
    assert buffer.end == 105
    assert buffer.first == 95
    assert buffer[95].text == "loss 95"
    assert finder.matches == list(range(95, 105))


def test_a_buffer_is_bounded_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_CHARACTERS", 1_000)
    buffer = LogBuffer()
    for _ in range(50):
        buffer.add(log_lines("x" * 300))
    assert sum(len(line.text) for line in buffer.lines_kept) <= 1_000
    buffer.add(log_lines("y" * 5_000))
    assert [line.text[0] for line in buffer.lines_kept] == ["y"], "the newest line stays, however long"


@given(st.text(alphabet=st.sampled_from("aß日本é🙂 -"), max_size=200), st.integers(2, 30))
def test_pieces_of_a_line_are_all_of_it_and_fit(text: str, width: int) -> None:
    pieces = logs.pieces(text, width)
    assert "".join(text[start:end] for start, end in pieces) == text
    assert all(cell_len(text[start:end]) <= width for start, end in pieces)
    assert logs.height(text, width) == len(pieces)


@given(st.text(alphabet=st.sampled_from("ab日🙂"), max_size=80), st.integers(0, 40), st.integers(1, 40))
def test_a_cut_fits(text: str, left: int, width: int) -> None:
    start, end = logs.cut(text, left, width)
    assert 0 <= start <= end <= len(text)
    assert cell_len(text[start:end]) <= width


def test_words_are_found_without_case_unless_a_capital_is_asked() -> None:
    buffer = LogBuffer()
    buffer.add(log_lines("Loss 1", "loss 2", "nothing"))
    assert buffer.matching("loss") == [0, 1]
    assert buffer.matching("Loss") == [0]
    assert logs.spans("a.b a.b axb", "a.b") == [(0, 3), (4, 7)]
