"""The recording in a bug report: no names and no secrets, its newest part, and the same figures as before."""

from __future__ import annotations

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.diagnose.finding import Finding, Level
from gpuconsole.diagnose.host_rules import HostFacts
from gpuconsole.gpu.forecast import changes
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.machine import Machine
from gpuconsole.host.recorded import memory_samples
from gpuconsole.services import replayfile
from gpuconsole.services.recordings import shipped
from gpuconsole.services.replayfile import load
from gpuconsole.services.reportcontents import contents
from gpuconsole.services.reportnames import ReportNames
from gpuconsole.services.reportrecording import Carried, Source
from gpuconsole.services.reports import make_report, read_report, write_report
from tests.unit.test_recorder_secrets import HOME, HOST, ME, SECRET, recorded

FINDINGS = (Finding("doctor.disk", Level.WARN, "Disk", f"{HOME}/docker of {ME} on {HOST} is full", "Prune."),)
ID = "ab" * 32


def names() -> ReportNames:
    return ReportNames(me=ME, host=f"{HOST}.zqlab.example", home=HOME)


def reported(folder: Path, recording: Path | None, *, findings: tuple[Finding, ...] = FINDINGS) -> Path:
    facts = HostFacts(
        machine=Machine("Debian", "debian", "6.1"), gpus=GpuSnapshot(1.0, ()), endpoint=f"unix://{HOME}/d"
    )
    path = folder / "report.jsonl"
    write_report(make_report(lambda: (facts, findings), recording, names=names()), path)
    return path


def carried(path: Path, *, limit: int = 2**24, by: ReportNames | None = None) -> Carried:
    by = by or names()
    source = Source(path, limit=limit)
    source.teach(by)
    return source.carried(by)


def lines_of(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw).decode()
    return [json.loads(line) for line in text.splitlines()]


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return path


HEAD = {"type": "header", "format": "gpuconsole-recording", "version": 1, "began_at": 1e9, "host": HOST, "user": ME}


def host_line(t: float, *, holder: str = ME, command: str = "python", container: str = "zqllama-ft") -> dict[str, Any]:
    gpu = {"index": 0, "uuid": "GPU-1", "name": "H200", "memory_total_bytes": 100, "memory_used_bytes": int(t)}
    one = {"pid": 7, "gpu_index": 0, "gpu_uuid": "GPU-1", "memory_bytes": 5, "user": holder, "command": command,
           "container_name": container}  # fmt: skip
    return {"type": "host", "t": t, "view": {"snapshot": {"taken_at": 1e9 + t, "gpus": [gpu]},
                                             "gpus": [{"gpu": gpu, "holders": [one]}]}}  # fmt: skip


def container_line(t: float, name: str = "zqllama-ft", **more: Any) -> dict[str, Any]:
    body = {"id": ID, "name": name, "image": "zqcorp/zqtorch:2", "image_id": "sha256:1", "state": "running"}
    return {"type": "container", "t": t, "container": body | more}


def list_line(t: float, ident: str = ID) -> dict[str, Any]:
    return {"type": "containers", "t": t, "views": [{"id": ident, "user": ME}]}


def log_line(t: float, text: str) -> dict[str, Any]:
    return {"type": "log", "t": t, "id": ID, "channel": "stdout", "stamp": "", "text": text}


# --- names and secrets ---


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), with_names=st.booleans())
def test_no_name_and_no_secret_is_in_a_report(tmp_path: Path, data: st.DataObject, with_names: bool) -> None:
    recorded(tmp_path / "a.jsonl", data, names=with_names)
    text = reported(tmp_path, tmp_path / "a.jsonl").read_text()
    assert "zq" not in text, text[max(0, text.find("zq") - 200) : text.find("zq") + 80]
    assert SECRET not in text
    assert socket.gethostname() not in text.split("\n")[0]
    load(tmp_path / "report.jsonl")


def test_what_is_one_in_the_recording_and_in_what_the_doctor_found_has_one_name(tmp_path: Path) -> None:
    lines = [HEAD, log_line(0.0, "zqann wrote to /mnt/zqstore/x"), host_line(1.0, holder="zqann")]
    found = Finding("doctor.x", Level.WARN, "X", "/mnt/zqstore/x belongs to zqann: /home/zqann", "")
    doctor, log, host = lines_of(reported(tmp_path, written(tmp_path / "a", lines), findings=(found,)))[1:]
    assert log["text"] == "u1 wrote to /mnt/path1/path2"
    assert host["view"]["gpus"][0]["holders"][0]["user"] == "u1"
    assert doctor["document"]["findings"][0]["what"] == "/mnt/path1/path2 belongs to u1: /home/u1"


def test_a_name_is_found_before_the_line_that_tells_whose_it_is(tmp_path: Path) -> None:
    lines = [HEAD, log_line(0.0, "zqann zqllama-ft zqvol zqnet zqtorch"), host_line(0.5, holder="zqann")]
    lines += [container_line(
        1.0, mounts=[{"kind": "volume", "source": "zqvol", "target": "/data"}], networks=["zqnet", "bridge"],
        hostname="zqinside",
    ), list_line(1.0), log_line(1.5, "zqinside"), {"type": "images", "t": 2.0, "views": []}]  # fmt: skip
    log, *rest = carried(written(tmp_path / "a", lines)).lines
    assert log["text"] == "u1 container-1 volume-1 network-1 path2"
    assert "zq" not in json.dumps(rest)
    assert rest[1]["container"]["networks"] == ["network-1", "bridge"]


@pytest.mark.parametrize("kind", ["pull", "build", "launch", "check", "bench"])
def test_what_a_run_was_about_has_no_name_either(tmp_path: Path, kind: str) -> None:
    subject = "zqcorp/zqtorch:2" if kind in ("pull", "build") else "zqgone-7"
    run = {
        "id": "1",
        "kind": kind,
        "subject": subject,
        "subject_id": "",
        "started_at": 1.0,
        "headline": f"{subject}: ok",
    }
    lines = [HEAD, host_line(0.0), log_line(0.0, subject), {"type": "runs", "t": 0.0, "runs": [run]}]
    found = carried(written(tmp_path / "a", lines)).lines
    assert "zq" not in json.dumps(found)
    assert found[-1]["runs"][0]["headline"] == f"{found[-1]['runs'][0]['subject']}: ok"


def test_an_engine_elsewhere_has_no_name(tmp_path: Path) -> None:
    link = {
        "type": "link",
        "t": 0.0,
        "link": {"connected": False, "endpoint": "ssh://zqann@zqserver", "message": "zqserver is away"},
    }
    text = reported(tmp_path, written(tmp_path / "a", [HEAD, host_line(0.0), link])).read_text()
    assert "zq" not in text
    assert "ssh://u1@engine-box" in text


def test_stand_ins_that_a_recording_brings_along_stay_and_are_nobody_elses(tmp_path: Path) -> None:
    before = HEAD | {"host": "gpu-box", "user": "me"}
    text = (
        "u1 /data/path1/path2.ckpt 192.0.2.3:80 [2001:db8::4]:80 GPU-00000002-0000-4000-8000-000000000000 container-1"
    )
    new = "/mnt/zqnew of zqann at 10.1.2.3:80, GPU-b7a1c9d4-1f3e-4a5b-8c2d-9e0f1a2b3c4d"
    lines = [before, log_line(0.0, f"{new} {text}"), host_line(1.0, holder="zqann"), host_line(2.0, holder="u1")]
    log, first, second = carried(written(tmp_path / "a", lines)).lines
    assert log["text"].endswith(text)
    assert log["text"].startswith("/mnt/path3 of u2 at 192.0.2.6:80, GPU-00000003-0000")
    assert [line["view"]["gpus"][0]["holders"][0]["user"] for line in (first, second)] == ["u2", "u1"]


def test_a_login_that_looks_like_a_stand_in_goes_where_names_were_kept(tmp_path: Path) -> None:
    lines = [HEAD, log_line(0.0, "u1234 /home/u1234/x"), host_line(1.0, holder="u1234")]
    assert "u1234" not in json.dumps(carried(written(tmp_path / "a", lines)).lines)


def test_secrets_are_masked_also_where_whoever_wrote_the_recording_did_not(tmp_path: Path) -> None:
    command = f"python train.py --api-key {SECRET} --url https://me:{SECRET}@example.org HF_TOKEN={SECRET}"
    document = json.dumps({"settings": {"WANDB_API_KEY": SECRET, "max_tokens": 5}})
    run = {"id": "1", "kind": "check", "subject": "x", "subject_id": "", "started_at": 1.0, "document": document}
    lines = [
        HEAD, host_line(0.0, command=command), container_line(0.0, command=["run", "--password", SECRET],
        environment=[["HF_TOKEN", SECRET], ["TEAM", SECRET]], labels={"zqlabel": SECRET}), log_line(0.0, command),
        {"type": "runs", "t": 0.0, "runs": [run]},
    ]  # fmt: skip
    found = carried(written(tmp_path / "a", lines)).lines
    assert SECRET not in json.dumps(found)
    assert json.loads(found[-1]["runs"][0]["document"])["settings"]["max_tokens"] == 5


@pytest.mark.parametrize("word", ["running", "check", "sample", "host", "gpuconsole", "ok", "compute", "stdout", "log",
                                  "gpu", "box", "me", "path1", "u1", "container", "claim", "process"])  # fmt: skip
def test_names_that_are_words_of_ours_leave_a_recording_that_plays(tmp_path: Path, word: str) -> None:
    lines = [
        HEAD | {"user": word, "host": word}, container_line(0.0, name=word, image=f"{word}/{word}:1"),
        host_line(0.0, holder=word, container=word), list_line(0.0), log_line(0.0, word),
        {"type": "runs", "t": 0.0, "runs": [{"id": "1", "kind": "check", "subject": word, "subject_id": ID,
                                              "started_at": 1e9, "state": "ok"}]},
    ]  # fmt: skip
    path = reported(tmp_path, written(tmp_path / "a", lines))
    kinds = [line["type"] for line in lines_of(path)]
    assert kinds == ["header", "doctor", "container", "host", "containers", "log", "runs"]
    assert [event.kind for event in load(path).events] == ["container", "host", "containers", "log", "runs"]
    read_report(path)


HOSTILE = [
    "\x1b]0;owned\x07x",
    "a\u202eb",
    "--help",
    "x\ny",
    "\ud800",
    "[red]x[/]",
    "$(reboot)",
    "é" * 300,
    "' or 1=1",
    "\\",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names(tmp_path: Path, name: str) -> None:
    lines = [
        HEAD | {"host": name}, container_line(0.0, name=name, image=name, command=[name]),
        host_line(0.0, holder=name, command=name, container=name), list_line(0.0), log_line(0.0, name),
    ]  # fmt: skip
    source = tmp_path / "a"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = reported(tmp_path, source)
    assert len(load(path).events) == 4
    for named in contents(carried(source)).values():
        assert all(isinstance(each, str) for each in named)


# --- how much of it ---


def test_the_figures_are_the_same(tmp_path: Path) -> None:
    path = reported(tmp_path, shipped())
    before, after = load(shipped()), load(path)
    assert after.length_s == before.length_s
    assert [(one.at, one.kind) for one in after.events] == [(one.at, one.kind) for one in before.events]
    for one, other in zip(before.events, after.events, strict=True):
        if one.kind in ("sample", "host"):
            assert other == one
    assert list(changes(memory_samples(path))) == list(changes(memory_samples(shipped())))


@pytest.mark.parametrize("name", ["two-tenants-leak.jsonl.gz", "leak-100.jsonl.gz", "ram-001.jsonl.gz"])
def test_the_forecast_reads_the_same_of_memory_alone(tmp_path: Path, name: str) -> None:
    recording = Path(__file__).parents[1] / "forecast" / "recordings" / name
    if not recording.exists():
        pytest.skip("this recording is not here")
    path = reported(tmp_path, recording)
    assert list(changes(memory_samples(path))) == list(changes(memory_samples(recording)))


@pytest.mark.parametrize("limit", [60_000, 150_000, 400_000])
@pytest.mark.parametrize("long", [False, True], ids=["read whole", "read as it is played"])
def test_a_long_one_gives_its_newest_part_with_all_that_is_needed_to_show_it(
    tmp_path: Path, limit: int, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayfile, "LONG", 0 if long else 2**40)
    part = carried(shipped(), limit=limit)
    assert part.before_s > 0
    path = written(tmp_path / "part", [part.header, *part.lines])
    assert path.stat().st_size < limit * 1.2  # with the header, and blanks that the report has not
    whole, found = load(shipped()), load(path)
    assert found.began_at == pytest.approx(whole.began_at + part.before_s)
    assert found.length_s == pytest.approx(whole.length_s - part.before_s, abs=0.01)
    looks = [event.body for event in found.events if event.kind == "host"]
    assert looks == [event.body for event in whole.events if event.kind == "host"][-len(looks) :]
    at = found.first_look_s + 0.01
    known = {event.kind for event in found.events if event.at <= at}
    assert {"engine", "link", "images", "facts", "containers", "container", "host"} <= known
    last = [event.body for event in whole.events if event.kind == "containers" and event.at <= part.before_s][-1]
    first = next(event.body for event in found.events if event.kind == "containers")
    assert [view.container.state for view in first] == [view.container.state for view in last]
    assert [view.gpu_memory_bytes for view in first] == [view.gpu_memory_bytes for view in last]


def test_what_was_saved_beside_an_alarm_is_carried(tmp_path: Path) -> None:
    alarm = {"type": "alarm", "t": 1.0, "judged": "wrong", "subject": "container", "container": ID, "state": "risk"}
    sample = {"type": "sample", "t": 0.0, "gpus": [], "containers": [{"id": ID, "memory_used_bytes": 5}]}
    assert [*carried(written(tmp_path / "a", [HEAD, sample, alarm])).lines] == [sample, alarm]


def test_containers_that_were_gone_before_take_no_room(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [HEAD]
    for number in range(300):
        ident = f"{number:064x}"
        lines += [container_line(number, id=ident), list_line(number, ident), host_line(number)]
    part = carried(written(tmp_path / "a", lines), limit=20_000)
    first = [line["container"]["id"] for line in part.lines if line["type"] == "container"]
    listed = {view["id"] for line in part.lines if line["type"] == "containers" for view in line["views"]}
    assert set(first) == listed
    assert len(first) < 40


def test_what_must_be_known_alone_is_too_much(tmp_path: Path) -> None:
    lines = [HEAD, container_line(0.0, command=["x" * 5000]), list_line(0.0), host_line(0.0), host_line(1.0)]
    with pytest.raises(BadFile, match="that fits into") as told:
        carried(written(tmp_path / "a", lines), limit=4000)
    assert told.value.hint


def test_what_this_gpuconsole_does_not_know_is_left_out_and_said(tmp_path: Path) -> None:
    lines = [
        HEAD | {"secret": "zq"},
        host_line(0.0),
        {"type": "novel", "t": 0.0, "zq": "zq"},
        {"type": "event", "t": 1},
    ]
    part = carried(written(tmp_path / "a", lines))
    assert (part.unknown, part.unknown_lines) == (("novel", "event"), 2)
    assert "zq" not in json.dumps([part.header, *part.lines])


def test_one_that_was_cut_off_is_carried_until_there_and_that_is_said(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(json.dumps(line).encode() + b"\n" for line in [HEAD, *map(host_line, range(400))]))
    (tmp_path / "a.gz").write_bytes(packed[: len(packed) // 2])
    part = carried(tmp_path / "a.gz")
    assert part.cut
    assert 0 < part.length_s < 399
    (tmp_path / "b").write_text(json.dumps(HEAD) + "\n" + json.dumps(host_line(1.0)) + '\n{"type":"ho')
    assert carried(tmp_path / "b").cut
    assert not carried(written(tmp_path / "c", [HEAD, host_line(1.0)])).cut


def test_a_report_can_be_carried_by_a_report(tmp_path: Path) -> None:
    first = reported(tmp_path, shipped()).rename(tmp_path / "first")
    again = reported(tmp_path, first)
    assert [line["type"] for line in lines_of(again)].count("doctor") == 1
    assert lines_of(again)[2:] == lines_of(first)[2:]


# --- what is none ---

BAD: dict[str, list[Any]] = {
    "a line of another kind of thing": [{"type": "host", "t": 0.0, "view": 5}],
    "a list of what was not described": [list_line(0.0)],
    "containers that are no list": [host_line(0.0), {"type": "containers", "t": 0.0, "views": {"a": 1}}],
    "a container that is none": [host_line(0.0), {"type": "container", "t": 0.0, "container": "x"}],
    "a variable that is none": [host_line(0.0), container_line(0.0, environment=[5])],
    "a time that is none": [host_line(0.0) | {"t": "now"}],
    "a time before the beginning": [host_line(0.0) | {"t": -5}],
    "no time": [{"type": "log", "text": "x"}],
    "a sample without a time": [{"type": "sample", "gpus": []}],
    "nothing": [],
    "no look": [log_line(0.0, "x")],
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_played_is_not_carried(tmp_path: Path, what: str) -> None:
    with pytest.raises(ConsoleError) as told:
        carried(written(tmp_path / "a", [HEAD, *BAD[what]]))
    assert told.value.message
    assert told.value.hint
    assert told.value.exit_code == BadFile.exit_code


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_in_the_part_that_is_left_out_stops_nothing_unless_it_must_be_known(
    tmp_path: Path, what: str
) -> None:
    lines = [HEAD, *BAD[what], *(host_line(t) for t in range(20))]
    if "list" in what:  # that must be known later on
        with pytest.raises(BadFile):
            carried(written(tmp_path / "a", lines), limit=2000)
    else:
        part = carried(written(tmp_path / "a", lines), limit=2000)
        load(written(tmp_path / "b", [part.header, *part.lines]))


def test_without_a_recording_it_says_what_the_doctor_found(tmp_path: Path) -> None:
    path = reported(tmp_path, None)
    found = read_report(path)
    assert found.length_s is None
    assert found.findings[0].what == "/home/me/path2 of me on gpu-box is full"
    with pytest.raises(BadFile, match="nothing the console could show"):
        load(path)


def doctor_line(document: Any, **more: Any) -> dict[str, Any]:
    line = {"type": "doctor", "t": 0.0, "made_at": 1, "gpuconsole": "1", "recording": None, "document": document}
    return line | more


SYSTEM = {"os_name": "Debian", "kernel": "6.1"}


@pytest.mark.parametrize(
    "line",
    [
        doctor_line(5), doctor_line({}), doctor_line({"system": {}, "findings": [3]}), {"type": "doctor"},
        doctor_line({"system": SYSTEM, "findings": []}, made_at=1e300), doctor_line({"system": SYSTEM, "findings": 1}),
        doctor_line({"system": SYSTEM, "findings": []}, recording=5), doctor_line({"system": [], "findings": []}),
        doctor_line({"system": SYSTEM, "findings": []}, recording={"length_s": 1e300}),
        doctor_line({"system": SYSTEM, "findings": [{"id": "a", "level": "novel", "title": "", "what": ""}]}),
    ],
)  # fmt: skip
def test_a_doctors_line_that_is_none(tmp_path: Path, line: dict[str, Any]) -> None:
    with pytest.raises(BadFile) as told:
        read_report(written(tmp_path / "a", [HEAD, line]))
    assert told.value.hint


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strangers_report_is_harmless_when_it_is_read(tmp_path: Path, name: str) -> None:
    finding = {"id": "a", "level": "ok", "title": name, "what": name, name: name}
    document = {"system": {"os_name": name, "kernel": name}, "findings": [finding], name: name}
    path = tmp_path / "a"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEAD, doctor_line(document, gpuconsole=name))))
    found = read_report(path)
    shown = (found.system, found.version, found.findings[0].what, found.findings[0].title, *found.document.split("\n"))
    assert all(each.isprintable() for each in shown)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_report_is_harmless_also_where_it_is_printed(tmp_path: Path, name: str) -> None:
    line = log_line(0.0, name) | {f"{name} of a newer kind": name}
    source = tmp_path / "a"
    source.write_text("".join(json.dumps(each) + "\n" for each in (HEAD, line, host_line(0.0))))
    text = reported(tmp_path, source).read_text()
    assert all(each.isprintable() for each in text.split("\n"))
    assert json.loads(text.split("\n")[2])["channel"] == "stdout"


def test_a_recording_is_no_report() -> None:
    with pytest.raises(BadFile, match="is a recording, and no report") as told:
        read_report(shipped())
    assert "--replay" in told.value.hint
