"""``gpuconsole bench`` as people run it: what it prints where, its exit codes, signals, and the records it keeps."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.bench_table import report_lines
from gpuconsole.cli.bench_talk import BenchTalk
from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.main import main
from gpuconsole.cli.tables import width_of
from gpuconsole.core.errors import ExitCode
from gpuconsole.probes.benchclaims import claims_of
from gpuconsole.probes.benchgrades import Peers, grade_run
from gpuconsole.probes.benchlimits import limit_of
from gpuconsole.probes.benchrecords import BenchRun, Origin
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.records import CheckResult, CheckStatus, RunEnd
from gpuconsole.services.benching import Benched
from gpuconsole.services.benchstore import BenchStore, document_of
from gpuconsole.services.runs import RunKind, Runs, RunState
from tests.rig.engines import Engine
from tests.unit.benchmade import MM, NOW, SKIPPED, gpu, held, record, run

COMMAND = [sys.executable, "-m", "gpuconsole"]
TRAP = """
import sys
class Trap:
    def find_spec(self, name, path=None, target=None):
        if name == "gpuconsole.probes.payload.bench.attn":
            import time; time.sleep(600)
sys.meta_path.insert(0, Trap())
"""
FIELDS = {
    "id", "code", "rev", "status", "params", "gpu", "device", "unit", "score", "better", "stat", "values", "headline",
    "noisy", "contended", "contended_by", "cold_s", "peak_reserved_bytes", "began", "ended", "why", "fix", "dev",
    "share", "verdict",
}  # fmt: skip


def graded(*records: Any, **fields: Any) -> BenchRun:
    whole = grade_run(run(*records, **fields), lambda _: Peers())
    return replace(whole, headline=limit_of(whole), claims=claims_of(whole))


@pytest.fixture
def store() -> Any:
    opened = BenchStore()
    yield opened
    opened.close()


def keep(store: BenchStore, name: str, day: int, score: float, **fields: Any) -> None:
    at = NOW + day * 86400
    store.keep(graded(record(score=score, began=at + 1, ended=at + 2), run=name, taken_at=at, **fields))


def in_a_terminal(*arguments: str, until: bytes = b"", env: dict[str, str] | None = None) -> tuple[int, str, bytes]:
    """Run with stderr a terminal, and interrupt once that shows ``until``: exit code, stdout, what the terminal saw."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=follower, text=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"} | (env or {}),
    )  # fmt: skip
    os.close(follower)
    shown = b""
    waiting = bool(until)
    try:
        while piece := os.read(leader, 65536):
            shown += piece
            if waiting and until in shown:
                process.send_signal(signal.SIGINT)
                waiting = False
    except OSError:
        pass  # the other end was closed
    stdout, _ = process.communicate(timeout=60)
    os.close(leader)
    return process.returncode, stdout, shown


def test_this_machine_is_measured_shown_and_remembered(store: BenchStore, capsys: pytest.CaptureFixture[str]) -> None:
    code, stdout, shown = in_a_terminal("bench", "--local", "--only", "B04")
    assert code == ExitCode.OK, stdout
    assert b"launch: " in shown
    assert b"1/1" in shown
    assert shown.endswith(b"\r\x1b[K")
    lines = stdout.splitlines()
    assert lines[0].startswith("this machine · ")
    assert any("B04 launch" in line and "(CPU)" in line and " µs" in line for line in lines)
    assert lines[-1].startswith("All of it ran on the CPU: ")
    (kept,) = store.all()
    assert kept.run in lines[0]
    assert (kept.subject, kept.mode, kept.only, kept.end) == ("this machine", "quick", ("B04",), RunEnd.COMPLETE)
    assert kept.machine.cpu
    runs = Runs()
    (listed,) = runs.all()
    runs.close()
    assert (listed.kind, listed.subject) == (RunKind.BENCH, "this machine")
    assert listed.state in (RunState.OK, RunState.WARN)  # repeats spread where the machine is busy
    assert json.loads(listed.document or "")["run"] == kept.run
    document = document_of(kept)
    assert document["schema"] == "gpuconsole.bench/1"
    assert {"environment", "machine", "benchmarks", "headline", "claims"} <= document.keys()
    assert all(each.keys() == FIELDS for each in document["benchmarks"])
    assert main(["bench", "history"]) == ExitCode.OK
    assert kept.run in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_measured(store: BenchStore, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TRAP)
    code, stdout, shown = in_a_terminal(
        "bench", "--local", "--only", "launch,attn", "--json", until=b"attn: ",
        env={"PYTHONPATH": f"{tmp_path}:{os.getcwd()}"},
    )  # fmt: skip
    assert code == ExitCode.INTERRUPTED, stdout
    assert b"Interrupted: ending the benchmark where it runs." in shown
    document = json.loads(stdout)
    assert (document["end"], document["partial"]) == ("cancelled", True)
    assert {each["id"]: each["status"] for each in document["benchmarks"]}["bench.launch"] == "ok"
    assert store.find("last").run == document["run"]


@pytest.mark.engine
def test_a_container_and_an_image(engine_modern: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine_modern.docker("run", "-d", "--name", "bare", engine_modern.load("small"), "sleep", "1000")
    host = ["--host", engine_modern.host]
    assert main([*host, "bench", "bare"]) == ExitCode.FAILED
    told = capsys.readouterr()
    assert "Nothing was measured: there is no Python in the container." in told.out
    assert "→ Take an image with PyTorch" in told.out
    label = ("--label", "gpuconsole.user=mei")
    engine_modern.docker("run", "-d", "--name", "theirs", *label, engine_modern.load("small"), "sleep", "1000")
    assert main([*host, "bench", "theirs", "--yes"]) == ExitCode.REFUSED
    assert "belongs to mei" in capsys.readouterr().err
    image = engine_modern.load("pytorch")
    assert main([*host, "bench", "--image", image, "--gpus", "none", "--only", "launch", "--json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["environment"]["where"] == f"image {image}"
    assert document["subject"] == image
    assert document["subject_id"].startswith("sha256:")
    (launch,) = [each for each in document["benchmarks"] if each["headline"]]
    assert (launch["id"], launch["device"], launch["status"]) == ("bench.launch", "cpu", "ok")
    assert engine_modern.docker("ps", "-aq", "--filter", "name=gpuconsole-").stdout == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Give the name of a container"),
        (["train", "--local"], "Give the name of a container"),
        (["train", "--gpus", "1"], "--gpus goes with --image"),
        (["--local", "--quick", "--full"], "exclude each other"),
        (["--local", "--only", "B77"], "There is no benchmark b77"),
        (["--local", "--only", ","], "--only takes names"),
        (["--local", "--timeout", "nan"], "--timeout"),
        (["history", "B77"], "There is no benchmark b77"),
        (["history", "--gpu", "h200"], "No benchmark of a GPU 'h200' is remembered."),
        (["export"], "--output"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == ExitCode.USAGE
    assert told in capsys.readouterr().err


def test_a_readonly_console_measures_in_no_container(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--readonly", "bench", "train"]) == ExitCode.REFUSED
    assert "--readonly was given" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["run"], ["history"], ["compare"], ["export"], ["import"]])
def test_each_command_has_help_and_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *command, "--help"]) == ExitCode.OK
    told = capsys.readouterr().out
    assert "Examples:" in told
    if not command:
        assert "--full" in told
        assert "history" in told


def test_nothing_remembered_yet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "history"]) == ExitCode.OK
    assert "Nothing of the kind is remembered yet" in capsys.readouterr().err
    assert main(["bench", "compare"]) == ExitCode.NOT_FOUND
    assert main(["bench", "export", "-o", "-"]) == ExitCode.NOT_FOUND


def test_records_that_were_damaged_are_said_to_be_set_aside(capsys: pytest.CaptureFixture[str]) -> None:
    opened = BenchStore()
    opened.keep(graded(record()))
    path = opened._store.path
    opened.close()
    path.write_bytes(os.urandom(8192))
    assert main(["bench", "history"]) == ExitCode.OK
    told = capsys.readouterr().err
    assert "Nothing of the kind is remembered yet" in told
    assert "were damaged and are set aside" in told
    assert "gpuconsole.db.damaged" in told


def test_a_run_that_is_not_kept_has_no_id_to_ask_for() -> None:
    plain = Glyphs(unicode=True)
    assert "0000aaaa" in "\n".join(report_lines(graded(record()), plain, width=100))
    nothing = graded(record(**(SKIPPED | {"status": BenchStatus.ERROR, "why": "torch is a CPU build"})))
    assert "0000aaaa" not in "\n".join(report_lines(nothing, plain, width=100))


def test_where_all_runs_are_imported_the_last_one_is_not_said_to_be_missing_altogether(
    store: BenchStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.keep(replace(graded(record()), run="aaaa0001", origin=Origin.IMPORTED))
    assert main(["bench", "export", "-o", "-"]) == ExitCode.NOT_FOUND
    told = capsys.readouterr().err
    assert "all that are remembered were imported" in told
    assert "No benchmark run is remembered yet" not in told


def test_runs_beside_each_other(store: BenchStore, capsys: pytest.CaptureFixture[str]) -> None:
    keep(store, "aaaa0001", 1, 790.0)
    keep(store, "aaaa0002", 2, 700.0)
    assert main(["bench", "compare"]) == ExitCode.FAILED, "slower by more than a twentieth"
    told = capsys.readouterr().out
    assert "-11.4 %" in told
    assert "Of 1 results 1 are slower." in told
    assert main(["bench", "compare", "aaaa0002", "aaaa0001", "--json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "gpuconsole.bench-compare/1"
    (row,) = document["rows"]
    assert (row["change"], row["likeness"], row["ratio"]) == ("faster", "strict", 1.1286)
    keep(store, "aaaa0003", 3, 100.0, gpus=(gpu(power_limit_w=300.0),))
    assert main(["bench", "compare"]) == ExitCode.OK, "what is not alike is not judged"
    told = capsys.readouterr().out
    assert "not the same hardware" in told
    assert "power limit" in told


def test_the_past(store: BenchStore, capsys: pytest.CaptureFixture[str]) -> None:
    keep(store, "aaaa0001", 1, 790.0)
    keep(store, "aaaa0002", 2, 700.0, end=RunEnd.CANCELLED)
    assert main(["bench", "history", "mm", "--gpu", "H200"]) == ExitCode.OK
    rows = capsys.readouterr().out.splitlines()
    assert ["aaaa0002" in rows[1], "-11.4 %" in rows[1], "run cut short" in rows[1]] == [True, True, True]
    assert main(["bench", "history", "--json"]) == ExitCode.OK
    results = json.loads(capsys.readouterr().out)["results"]
    assert [(each["run"], each["change"]) for each in results] == [("aaaa0002", -0.1139), ("aaaa0001", None)]


def test_given_away_and_taken_in(store: BenchStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep(store, "aaaa0001", 1, 790.0)
    file = tmp_path / "mine.json"
    assert main(["bench", "export", "-o", str(file)]) == ExitCode.REFUSED, "nobody is there to say yes"
    told = capsys.readouterr()
    assert not file.exists()
    assert '"torch": "2.9.0+cu128"' in told.err
    assert "llama-ft" not in told.err
    assert "With it go 1 results of 1 benchmarks." in told.err
    assert main(["bench", "export", "aaaa", "-o", str(file), "--yes"]) == ExitCode.OK
    assert main(["bench", "import", str(file)]) == ExitCode.CONFLICT, "it is this machine's own"
    there = json.loads(file.read_text()) | {"run": "bbbb0001"}
    file.write_text(json.dumps(there))
    capsys.readouterr()
    assert main(["bench", "compare", str(file), "last", "--json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["first"]["origin"] == "imported"
    assert main(["bench", "import", str(file)]) == ExitCode.OK
    assert main(["bench", "import", str(file)]) == ExitCode.OK
    assert "It is here already" in capsys.readouterr().err
    assert main(["bench", "history"]) == ExitCode.OK
    assert "imported" in capsys.readouterr().out
    assert store.find("last").run == "aaaa0001", "the last is the last made here"
    assert main(["bench", "import", str(tmp_path / "none.json")]) == ExitCode.NOT_FOUND
    assert main(["bench", "export", "-o", str(tmp_path / "no/such/folder.json"), "-y"]) == ExitCode.BAD_FILE


WHOLE = graded(
    record(dev=(held(1755, reasons=("sw-power-cap",), reasons_share={"sw-power-cap": 1.0}),)),
    record(score=600.0, params=MM | {"dtype": "fp16"}, headline=False),
    record("bench.mem", 4310.0, unit="GB/s", params={"operation": "copy", "data": "randn", "bytes": 1 << 30}),
    record("bench.train", 278000.0, unit="tokens/s", params={"size": "M", "precision": "bf16"}),
    record("bench.train", 142000.0, unit="tokens/s", params={"size": "M", "precision": "fp32"}, headline=False),
    record("bench.compile", **(SKIPPED | {"why": "the image has no compiler"})),
    record("bench.loader", 1.0, unit="GB/s", noisy=True, stat={"median_ms": 1.4, "riqr": 0.25, "n": 20}),
    record("bench.attn", **(SKIPPED | {"status": BenchStatus.ERROR, "why": "RuntimeError: " + "long " * 40})),
)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_table_fits_its_terminal(width: int, unicode: bool) -> None:
    lines = list(report_lines(WHOLE, Glyphs(unicode=unicode), width=width))
    assert max(width_of(line) for line in lines) <= width
    text = " ".join(" ".join(lines).split())
    assert unicode or text.isascii()
    for words in ("reference", "80 %", "sw-power-cap", "1.96", "no-reference", "noisy"):
        assert words in text, words


def test_the_rule_and_the_reason_stand_below_the_table() -> None:
    assert max(width_of(line) for line in report_lines(WHOLE, Glyphs(), width=80)) <= 80
    text = " ".join(" ".join(report_lines(WHOLE, Glyphs(), width=120)).split())
    assert "mm bf16 8192³: 117 % of the reference 664–678 TFLOP/s (OWN) (low below 90 %, bad below 75 %)" in text
    assert "loader: not judged: its repeats spread by 25 %" in text
    assert "mixed precision, training a decoder 1.5–2× 1.96× bf16 beside fp32" in text


def test_an_image_without_a_gpu_is_told_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    BenchTalk(longest_s=60).no_gpu_given(run(gpus=()))
    assert "--gpus 1" in capsys.readouterr().err
    BenchTalk(longest_s=60).no_gpu_given(run())
    assert capsys.readouterr().err == ""


def test_what_kept_all_from_starting_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    obstacle = CheckResult("check.python", "", CheckStatus.FAIL, "there is no Python in the container", "Take another.")
    BenchTalk(longest_s=60).result(Benched(run(obstacle=obstacle)), as_json=False)
    assert capsys.readouterr().out.endswith(
        "Nothing was measured: there is no Python in the container.\n→ Take another.\n"
    )
