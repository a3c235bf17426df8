"""``gpuconsole forecast`` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from gpuconsole.gpu.state import MemoryState
from tests.forecast.truth import FOLDER

HEADER = {
    "type": "header", "format": "gpuconsole-recording", "version": 1, "interval_s": 1.0, "driver": None,
    "gpus": [{"index": 0, "uuid": None, "name": "NVIDIA H200", "memory_total_bytes": 150 * 10**9}],
}  # fmt: skip


def written(folder: Path, *lines: object) -> str:
    file = folder / "run.jsonl"
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return str(file)


def sample(t: float, used: object, **more: object) -> dict[str, object]:
    free = 150 * 10**9 - used if isinstance(used, int) else None
    gpu = {"index": 0, "memory_used_bytes": used, "memory_free_bytes": free, "gpu_util_pct": 95, "processes": []}
    return {"type": "sample", "t": t, "gpus": [gpu | more], "host": {}}


def test_json_is_the_schema_and_then_a_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", "--json", str(FOLDER / "two-tenants-leak.jsonl.gz")]) == ExitCode.OK
    schema, *lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert schema == {"schema": "gpuconsole.forecast/1"}
    known: dict[tuple[str, str], str] = {}
    for line in lines:
        assert list(line) == ["t", "subject", "id", "gpu", "pid", "state", "eta_s", "why"]
        assert line["subject"] in ("process", "gpu", "container", "host", "shm")
        assert MemoryState(line["state"])
        assert line["why"]
        assert (line["pid"] is not None) == (line["subject"] == "process")
        assert (line["gpu"] is not None) == (line["subject"] in ("process", "gpu"))
        assert known.get((line["subject"], line["id"])) != line["state"]
        known[line["subject"], line["id"]] = line["state"]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    raised = [line for line in lines if line["state"] == "risk"]
    assert {line["pid"] for line in raised} == {None, 1001}
    assert all(line["eta_s"] > 0 for line in raised)
    assert [line["state"] for line in lines if line["pid"] == 1001][-1] == "failed"


def test_for_people_it_is_a_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", str(FOLDER / "leak-100.jsonl.gz")]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert any("process 680 GPU 0" in line and " risk " in line and "full in about" in line for line in lines)
    assert any("GPU 0" in line and " critical " in line for line in lines)


def test_containers_and_shm_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", str(FOLDER / "ram-001.jsonl.gz")]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "container c1" in printed
    assert "--memory" in printed


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([], ExitCode.BAD_FILE),
        (["{"], ExitCode.BAD_FILE),
        ([HEADER | {"version": 2}], ExitCode.BAD_FILE),
        ([HEADER, sample(0, "much")], ExitCode.BAD_FILE),
        ([HEADER, sample(0, True)], ExitCode.BAD_FILE),
        ([HEADER, {"type": "sample", "t": None, "gpus": []}], ExitCode.BAD_FILE),
        ([HEADER, {"type": "sample", "gpus": []}], ExitCode.BAD_FILE),
        ([HEADER, sample(0, 5, processes=[{"memory_bytes": 3}])], ExitCode.BAD_FILE),
        ([HEADER, sample(0, 5, processes=7)], ExitCode.BAD_FILE),
        ([HEADER, '{"type":"sample","t":1e999,"gpus":[]}'], ExitCode.BAD_FILE),
        ([HEADER, '{"type":"sample","t":1,"gpus":[{"index":0,"memory_used_bytes":1e999}]}'], ExitCode.BAD_FILE),
        ([HEADER | {"gpus": [{}]}, sample(0, 5)], ExitCode.BAD_FILE),
        ([HEADER], ExitCode.OK),
        ([HEADER, {"type": "novelty", "t": 1}, sample(0, 10**9), {"type": "event", "t": 9, "event": 3}], ExitCode.OK),
        ([HEADER, sample(5, 10**9), sample(4, 10**9), sample(4, 10**9)], ExitCode.OK),
        ([HEADER, sample(0, None), sample(1, None, processes=None)], ExitCode.OK),
        ([HEADER, sample(0, 10**30), sample(1, 0)], ExitCode.OK),
        ([HEADER, sample(0, -5)], ExitCode.OK),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_file_is_read_or_refused_in_one_sentence(
    lines: list[object], code: ExitCode, as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, *lines)
    assert main(["forecast", *(["--json"] if as_json else []), file]) == code
    talk = capsys.readouterr().err
    assert "Traceback" not in talk
    if code != ExitCode.OK:
        assert talk.startswith("gpuconsole: ")
        assert len(talk.splitlines()) == 2


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", str(tmp_path / "none.jsonl")]) == ExitCode.NOT_FOUND
    assert "none.jsonl" in capsys.readouterr().err


def test_names_in_a_recording_do_not_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"id": "c\x1b[2J1", "name": "a\x1b]0;x\x07b", "memory_used_bytes": 5, "memory_limit_bytes": 50}
    lines = [{"type": "sample", "t": t, "gpus": [], "containers": [bad]} for t in range(3)]
    assert main(["forecast", written(tmp_path, HEADER, *lines)]) == ExitCode.OK
    assert "\x1b" not in capsys.readouterr().out


def test_containers_are_read_from_the_lines_the_console_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[object] = [HEADER, {"type": "container", "t": 0, "container": {"id": "c1", "name": "train"}}]
    for t in range(80):
        used = min(t, 3) * 10**9 // 3 + max(t - 15, 0) * 4 * 10**7  # it loads, rests and leaks
        usage = {"memory_bytes": used, "memory_limit_bytes": 4 * 10**9}
        lines += [
            {"type": "containers", "t": t, "views": [{"id": "c1", "usage": usage}, {"id": "c2", "usage": None}]},
            {"type": "sample", "t": t, "gpus": []},
        ]
    assert main(["forecast", "--json", written(tmp_path, *lines)]) == ExitCode.OK
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert {line["id"] for line in told} == {"c1"}
    raised = [line for line in told if line["state"] == "risk"]
    assert raised
    assert raised[0]["why"].startswith("train grew")


def test_a_shm_whose_size_is_not_recorded_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", "--json", str(FOLDER / "steady-60.jsonl.gz")]) == ExitCode.OK
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(line["state"], line["why"]) for line in told if line["subject"] == "shm"] == [
        ("unknown", "its size is not known")
    ]
