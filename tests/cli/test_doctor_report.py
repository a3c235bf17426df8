"""``gpuconsole doctor --report``: shown, asked for, written; with a recording that whoever gets it can play."""

from __future__ import annotations

import gzip
import json
import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuconsole.cli import front
from gpuconsole.core.errors import BadFile, ExitCode
from gpuconsole.services.recordings import shipped
from gpuconsole.services.replayfile import load
from gpuconsole.services.reportrecording import LIMIT_BYTES, Source
from tests.cli.engines import US, Done, environment, start
from tests.cli.test_replay import opened
from tests.rig import prepared
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox

HEAD = {"type": "header", "format": "gpuconsole-recording", "version": 1}
SECRET = "hunter2secret"
Doctor = Callable[..., Done]


@pytest.fixture
def doctor(nvml_box: NvmlBox, tmp_path: Path) -> Doctor:
    def run(*arguments: str, **more: str) -> Done:
        env = {**os.environ, "LC_ALL": "C.UTF-8", **nvml_box.env(), **more}
        done = prepared.gpuconsole("--host", f"unix://{tmp_path}/none.sock", "doctor", *arguments, env=env)
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.mark.engine
def test_what_was_recorded_with_names_is_carried_without_and_plays(
    engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path
) -> None:
    start(engine_modern, "acme-llama", "-e", f"WANDB_API_KEY={SECRET}", "-v", "acme-data:/data",
          command=("sh", "-c", "while :; do echo acme-llama steps; sleep 0.2; done", "--password", SECRET))  # fmt: skip
    recording, report = tmp_path / "run.jsonl.gz", tmp_path / "bug.jsonl.gz"
    env = environment(engine_modern, None, **nvml_box.env())
    for command in (
        ("record", "-o", str(recording), "--seconds", "5", "--every", "0.5", "--with-names"),
        ("doctor", "--report", str(report), "--recording", str(recording), "--yes"),
    ):
        done = subprocess.run((*US, *command), env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
    assert "acme-llama" in gzip.decompress(recording.read_bytes()).decode()
    text = gzip.decompress(report.read_bytes()).decode()
    for name in (SECRET, "acme", f'"{socket.gethostname()}"', str(tmp_path)):
        assert name not in text
        assert name not in done.stderr.partition("With it goes")[2].partition("Written:")[0]
    before, after = load(recording), load(report)
    assert after.host == "gpu-box"
    for kind in ("sample", "host"):
        gpus, same = ([event.body for event in each.events if event.kind == kind] for each in (before, after))
        assert [[(gpu.index, gpu.used_bytes) for gpu in body.gpus] for body in gpus if kind == "sample"] == [
            [(gpu.index, gpu.used_bytes) for gpu in body.gpus] for body in same if kind == "sample"
        ]
        assert len(gpus) == len(same) > 0
    views = next(event.body for event in after.events if event.kind == "containers" and event.body)
    assert views[0].container.name.startswith("container-")
    assert any(event.body.text == f"{views[0].container.name} steps" for event in after.events if event.kind == "log")


def test_whoever_gets_it_plays_it_forecasts_it_and_reads_what_the_doctor_said(doctor: Doctor, tmp_path: Path) -> None:
    report = tmp_path / "bug.jsonl.gz"
    done = doctor("--report", str(report), "--recording", str(shipped()), "--yes")
    assert done.code == 0, done.talk
    assert done.out == b""
    said = doctor("--read", str(report))
    assert said.code == ExitCode.FAILED  # no engine there
    assert "Container engine" in said.text
    assert "carries a recording of 75 s" in said.text
    assert doctor("--read", str(report), "--json").document["schema"] == "gpuconsole.doctor/1"
    forecasts = [prepared.gpuconsole("forecast", str(path), env=dict(os.environ)) for path in (report, shipped())]
    assert forecasts[0].returncode == 0
    assert forecasts[0].stdout == forecasts[1].stdout != b""
    terminal = opened(tmp_path, "--replay", str(report))
    try:
        terminal.wait_for("gpu-box")
        terminal.wait_for("train")
        terminal.send("q")
        assert terminal.wait() == 0
    finally:
        terminal.close()


def test_it_is_shown_before_and_written_only_when_that_is_agreed_to(doctor: Doctor, tmp_path: Path) -> None:
    report = tmp_path / "bug.jsonl"
    done = doctor("--report", str(report), "--recording", str(shipped()))
    assert done.code == ExitCode.REFUSED
    assert "--yes" in done.talk
    assert not report.exists()
    shown = done.talk.partition("gpuconsole: ")[0]
    for words in ('"os_name"', "Container engine", "console-h200.jsonl.gz: 75 s", "train, prep, eval", "Lines that"):
        assert words in shown
    report.write_text("mine")
    assert "in the place of what is there" in doctor("--report", str(report)).talk
    assert report.read_text() == "mine"
    assert doctor("--report", str(report), "--yes").code == 0
    assert [json.loads(line)["type"] for line in report.read_text().splitlines()] == ["header", "doctor"]


def test_a_long_one_is_cut_and_that_is_said_with_the_bound(doctor: Doctor, tmp_path: Path) -> None:
    whole = [json.loads(line) for line in gzip.decompress(shipped().read_bytes()).decode().splitlines()]
    recording, report = tmp_path / "long.jsonl", tmp_path / "bug.jsonl"
    noise = "x" * 100_000
    with recording.open("w") as file:
        for line in whole[:12]:
            file.write(json.dumps(line) + "\n")
        for number in range(200):
            looks = [line for line in whole[-60:] if line["type"] in ("sample", "host")][-2:]
            logs = [{"type": "log", "t": 5.0 + number, "id": "1", "channel": "stdout", "stamp": "", "text": noise}]
            for line in (*looks, *logs):
                file.write(json.dumps(line | {"t": 5.0 + number}) + "\n")
    assert recording.stat().st_size > LIMIT_BYTES
    done = doctor("--report", str(report), "--recording", str(recording), "--yes")
    assert done.code == 0, done.talk
    assert "its newest" in done.talk
    assert "16 MiB of a recording at most" in done.talk
    assert LIMIT_BYTES / 2 < report.stat().st_size < LIMIT_BYTES + 64 * 1024
    carried = json.loads(report.read_text().splitlines()[1])["recording"]
    assert carried["limit_bytes"] == LIMIT_BYTES
    assert carried["left_out_before_s"] > 20
    assert "16 MiB" in doctor("--help").text.replace("\n", " ")
    assert load(report).length_s == pytest.approx(carried["length_s"])


def test_standard_output_has_all_of_it_in_any_locale(doctor: Doctor, tmp_path: Path) -> None:
    recording = tmp_path / "a"
    text = {"type": "log", "t": 0.0, "id": "1", "channel": "stdout", "stamp": "", "text": "grüße"}
    recording.write_text("\n".join(json.dumps(each) for each in (HEAD, text, {"type": "sample", "t": 0.0, "gpus": []})))
    for locale in ("C.UTF-8", "C"):
        done = doctor("--report", "-", "--recording", str(recording), LC_ALL=locale, PYTHONUTF8="0",
                      PYTHONCOERCECLOCALE="0")  # fmt: skip
        assert done.code == 0
        assert [json.loads(line) for line in done.text.splitlines()][2]["text"] == "grüße"


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


PACKED = gzip.compress(json.dumps(HEAD).encode() + b"\n" + os.urandom(400).hex().encode())
BAD: dict[str, tuple[Callable[[Path], object] | str, ExitCode, str]] = {
    "no file": (lambda path: None, ExitCode.NOT_FOUND, "There is no file"),
    "standard input": ("-", ExitCode.USAGE, "not read from standard input"),
    "a folder": (lambda path: path.mkdir(), ExitCode.BAD_FILE, "Is a directory"),
    "a pipe": (make_pipe, ExitCode.BAD_FILE, "is a pipe"),
    "a device": ("/dev/zero", ExitCode.BAD_FILE, "a pipe or a device"),
    "a link to itself": (lambda path: path.symlink_to(path), ExitCode.BAD_FILE, "symbolic links"),
    "below a file": ("/etc/passwd/x", ExitCode.BAD_FILE, "Not a directory"),
    "empty": (make(b""), ExitCode.BAD_FILE, "it is empty"),
    "text": (make(b"hello\nworld\n"), ExitCode.BAD_FILE, "it is no JSON"),
    "bytes": (make(bytes(range(256)) * 9), ExitCode.BAD_FILE, "is no recording"),
    "other JSON": (make(b'{"type": "header", "format": "x"}\n'), ExitCode.BAD_FILE, "its format is not"),
    "another version": (make(json.dumps(HEAD | {"version": 2}).encode()), ExitCode.BAD_FILE, "version 2"),
    "nothing but the header": (make(json.dumps(HEAD).encode()), ExitCode.BAD_FILE, "no look at the machine"),
    "compressed and cut at once": (make(PACKED[:12]), ExitCode.BAD_FILE, "it is empty"),
    "compressed and cut": (make(PACKED[:-200]), ExitCode.BAD_FILE, "→"),
    "compressed and damaged": (make(PACKED[:60] + b"\xff\xff" + PACKED[62:]), ExitCode.BAD_FILE, "→"),
    "compressed otherwise": (make(b"\x28\xb5\x2f\xfdxxxx"), ExitCode.BAD_FILE, "zstd"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_carried(what: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    make_it, code, words = BAD[what]
    path = make_it if isinstance(make_it, str) else str(tmp_path / "recording")
    if not isinstance(make_it, str):
        make_it(Path(path))
    report = tmp_path / "bug.jsonl"
    assert front.main(["doctor", "--report", str(report), "--recording", path, "--yes"]) == code
    told = capfd.readouterr()
    assert words in told.err
    assert "→" in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert not report.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_recording_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(json.dumps(HEAD))
    path.chmod(0)
    os.seteuid(65534)
    try:
        with pytest.raises(BadFile, match="Permission denied") as told:
            Source(path)
    finally:
        os.seteuid(0)
    assert told.value.hint


def test_where_a_report_cannot_be(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pipe, recording = tmp_path / "pipe", tmp_path / "run.jsonl.gz"
    os.mkfifo(pipe)
    recording.write_bytes(shipped().read_bytes())
    (tmp_path / "link").symlink_to(recording)
    for place, code in (
        (str(tmp_path), ExitCode.BAD_FILE), (str(pipe), ExitCode.BAD_FILE), ("/dev/full", ExitCode.BAD_FILE),
        (str(tmp_path / "no" / "bug"), ExitCode.BAD_FILE), (str(recording), ExitCode.CONFLICT),
        (str(tmp_path / "link"), ExitCode.CONFLICT), ("/proc/bug", ExitCode.BAD_FILE),
    ):  # fmt: skip
        assert front.main(["doctor", "--report", place, "--recording", str(recording), "--yes"]) == code, place
        told = capfd.readouterr()
        assert "→" in told.err
        assert "Traceback" not in told.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    assert recording.read_bytes() == shipped().read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [("--recording", "a"), ("--report", "a", "--json"), ("--report", "a", "--read", "b"),
     ("--read", "b", "--recording", "a"), ("--yes",)],
)  # fmt: skip
def test_what_does_not_go_together(arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> None:
    assert front.main(["doctor", *arguments]) == ExitCode.USAGE
    assert "→" in capfd.readouterr().err


@pytest.mark.parametrize("name", [None, "a recording", "a pipe"])
def test_what_is_read_and_is_no_report(name: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x"
    if name == "a pipe":
        os.mkfifo(path)
    elif name is not None:
        path = shipped()
    assert front.main(["doctor", "--read", str(path)]) == (ExitCode.NOT_FOUND if name is None else ExitCode.BAD_FILE)
    told = capfd.readouterr()
    assert "→" in told.err
    assert told.out == ""
