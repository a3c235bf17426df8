"""Records of benchmarks: kept, found again, judged by, given away without names, taken in with care."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import BadFile, Conflict, ConsoleError, NotFound, UsageError
from gpuconsole.probes.benchgrades import Peers, grade_run
from gpuconsole.probes.benchlimits import limit_of
from gpuconsole.probes.benchrecords import BenchRecord, BenchRun, DeviceUse, Origin
from gpuconsole.probes.records import Note, RunEnd
from gpuconsole.services.anonymous import StandIns
from gpuconsole.services.benchhistory import history, refuse_unknown_gpu
from gpuconsole.services.benchsharing import LARGEST_BYTES, read_run, shared_document, take_in
from gpuconsole.services.benchstore import BenchStore, document_of, run_of
from tests.unit.benchmade import NOW, gpu, held, record, run, with_torch


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BenchStore]:
    opened = BenchStore(path=tmp_path / "records.db")
    yield opened
    opened.close()


def made(number: int, score: float, **fields: Any) -> BenchRun:
    """The run of day ``number``, with one result."""
    at = NOW + 86400 * number
    known: dict[str, Any] = {"run": f"{number:08x}", "taken_at": at}
    return run(record(score=score, began=at + 1, ended=at + 2), **(known | fields))


def test_a_run_comes_back_as_it_was(store: BenchStore) -> None:
    use = held(1755, reasons=("sw-power-cap",), reasons_share={"sw-power-cap": 1.0})
    notes = (Note("a warning", "stderr", "bench.mm"),)
    whole = grade_run(run(record(dev=(use,)), record("bench.mem", 1.0), notes=notes), lambda _: Peers(history=(780.0,)))
    whole = replace(whole, headline=limit_of(whole), end=RunEnd.CANCELLED)
    store.keep(whole)
    assert store.find(whole.run) == whole
    assert store.all() == (whole,)
    assert run_of(json.loads(json.dumps(document_of(whole)))) == whole
    (kept,) = store.runs()
    assert (kept.run, kept.end, kept.origin) == (whole.run, "cancelled", Origin.HERE)


def test_runs_are_found_by_the_beginning_of_their_id_and_by_how_long_ago(store: BenchStore) -> None:
    for number, name in enumerate(("aaaa1111", "aaaa2222", "bbbb3333")):
        store.keep(made(number, 100.0, run=name))
    assert [store.find(name).run for name in ("bbbb", "aaaa1", "last", "last~1", "last~2")] == [
        "bbbb3333", "aaaa1111", "bbbb3333", "aaaa2222", "aaaa1111",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="2 runs begin with 'aaaa'"):
        store.find("aaaa")
    for name in ("aaa", "cccc", "", "last~3", "last~x", "%", "_______", "\udcff", "a\0"):
        with pytest.raises(NotFound):
            store.find(name)


def test_no_run_yet_says_how_to_make_one(store: BenchStore) -> None:
    with pytest.raises(NotFound) as told:
        store.find("last")
    assert "No benchmark run is remembered yet" in told.value.message


def test_the_own_past_is_what_is_comparable_undisturbed_and_before(store: BenchStore) -> None:
    for number, score in enumerate((780.0, 781.0, 782.0)):
        store.keep(made(number, score))
    one = made(0, 1.0)
    disturbed = [
        made(3, 100.0, benchmarks=(record(score=100.0, contended=True),)),
        made(4, 100.0, benchmarks=(record(score=100.0, noisy=True),)),
        made(5, 100.0, benchmarks=(record(score=100.0, rev=2),)),
        made(6, 100.0, origin=Origin.IMPORTED),
        made(7, 100.0, machine=replace(one.machine, gpus=(gpu(power_limit_w=400.0),))),
        made(90, 100.0),
    ]
    for other in disturbed:
        store.keep(other)
    later = made(20, 700.0)
    peers = store.peers(later.benchmarks[0], later)
    assert peers == Peers(siblings=(), history=(782.0, 781.0, 780.0))


def test_the_past_of_other_software_counts_where_there_is_no_other_and_says_so(store: BenchStore) -> None:
    store.keep(with_torch(made(1, 600.0), "2.8.0+cu128"))
    now = made(5, 700.0)
    assert store.peers(now.benchmarks[0], now) == Peers(history=(600.0,), other_software=True)
    store.keep(made(2, 690.0))
    assert store.peers(now.benchmarks[0], now) == Peers(history=(690.0,))


def test_another_gpu_of_the_model_is_a_sibling_by_its_newest_result(store: BenchStore) -> None:
    other = gpu(uuid="GPU-ffffffff-1111-2222-3333-444444444444")
    for number, score in ((1, 700.0), (2, 790.0)):
        store.keep(made(number, score, machine=replace(made(0, 1.0).machine, gpus=(other,))))
    now = made(5, 700.0)
    assert store.peers(now.benchmarks[0], now) == Peers(siblings=(790.0,))


def test_a_result_whose_gpu_is_unknown_has_no_peers(store: BenchStore) -> None:
    store.keep(made(1, 700.0))
    unknown = made(2, 700.0, machine=replace(made(0, 1.0).machine, gpus=()))
    assert store.peers(unknown.benchmarks[0], unknown) == Peers()


def test_history_tells_the_change_since_the_comparable_one_before(store: BenchStore) -> None:
    runs = [made(0, 100.0), with_torch(made(1, 110.0), "2.10.0"), made(2, 55.0), made(3, 77.0, origin=Origin.IMPORTED)]
    runs[3] = replace(runs[3], machine=replace(runs[3].machine, gpus=(gpu(uuid="gpu-0123"),)))
    found = history(runs)
    assert [(past.score, past.change) for past in found] == [(77.0, None), (55.0, -0.5), (110.0, 0.1), (100.0, None)]
    assert len(history(runs, bench="B01", gpu="h200")) == 4
    assert len(history(runs, gpu="GPU-0aaa")) == 3
    assert history(runs, bench="mem") == ()
    with pytest.raises(UsageError):
        history(runs, bench="bench.of-the-park")
    with pytest.raises(UsageError) as told:
        refuse_unknown_gpu(runs, "mi300")
    assert "NVIDIA H200" in told.value.hint


def test_a_record_of_a_newer_program_is_left_out_and_says_so_when_asked_for(store: BenchStore, tmp_path: Path) -> None:
    store.keep(made(1, 1.0))
    with sqlite3.connect(tmp_path / "records.db") as connection:
        connection.execute("UPDATE bench_runs SET document = '{\"run\": 7}'")
    assert store.all() == ()
    with pytest.raises(BadFile, match="cannot be read"):
        store.find("last")


SECRETS = {
    "host": "gandalf", "user": "saruman", "container": "palantir-v2", "path": "/srv/isengard/orcs",
    "address": "10.3.7.9", "bus": "00000000:17:00.0", "uuid": "deadbeef-1111-2222-3333-444444444444",
    "image": "registry.mordor.example/ring/one:3",
}  # fmt: skip


def telling() -> BenchRun:
    """A run that names everything wherever text can stand."""
    text = " ".join(SECRETS.values())
    use = DeviceUse(0, unknown=text)
    results: tuple[BenchRecord, ...] = (
        record(contended=True, contended_by=(text,), why=text, fix=text, dev=(use,), values={"backends": [text]}),
        record("bench.mem", 3.0, why=text),
    )
    cards = (gpu(0, uuid=f"GPU-{SECRETS['uuid']}"), gpu(1))
    whole = run(*results, gpus=cards, notes=(Note(text),), subject=SECRETS["container"], subject_id="f" * 64)
    environment = replace(
        whole.environment, where=f"container {SECRETS['container']}", image=SECRETS["image"], container_id="f" * 64,
        python_path=f"{SECRETS['path']}/python", torch_path=SECRETS["path"], user="1000:1000", workdir=SECRETS["path"],
        variables={"NCCL_TOPO_FILE": f"{SECRETS['path']}/topo.xml", "CUDA_VISIBLE_DEVICES": f"GPU-{SECRETS['uuid']}"},
    )  # fmt: skip
    return grade_run(replace(whole, environment=environment), lambda _: Peers())


def test_what_is_given_away_names_nobody_and_nothing() -> None:
    body = shared_document(telling(), stand_ins=StandIns(me="saruman", host="gandalf", home="/home/saruman"))
    text = json.dumps(body)
    for what, name in SECRETS.items():
        for part in {name, *re.split(r"[/:.]", name)}:
            if len(part) > 4 and part not in ("00000000", "registry", "example"):
                assert part not in text, (what, part)
    assert "f" * 64 not in text
    assert body["notes"] == []
    assert body["environment"]["torch"] == "2.9.0+cu128"
    first, second = (each["uuid"] for each in body["machine"]["gpus"])
    assert first != second
    assert first.startswith("gpu-")
    assert body["environment"]["gpus"][0]["uuid"] == first
    again = shared_document(telling())["machine"]["gpus"][0]["uuid"]
    assert again != first, "two documents cannot be joined by it"


def test_what_is_given_away_can_be_taken_in(store: BenchStore, tmp_path: Path) -> None:
    file = tmp_path / "shared.json"
    file.write_text(json.dumps(shared_document(telling())))
    taken = read_run(file)
    assert taken.origin is Origin.IMPORTED
    assert taken.benchmarks[0].score == 787.0
    assert take_in(store, taken)
    assert not take_in(store, read_run(file)), "a second time changes nothing"
    with pytest.raises(Conflict):
        take_in(store, replace(taken, mode="full"))
    own = made(1, 1.0, run="cafe0001")
    store.keep(own)
    with pytest.raises(Conflict):
        take_in(store, replace(taken, run="cafe0001"))
    assert store.find("cafe0001") == own


def wrong(**changes: Any) -> bytes:
    body = document_of(run(record()))
    for place, value in changes.items():
        target: Any = body
        *way, last = place.split("__")
        for step in way:
            target = target[int(step)] if step.isdecimal() else target[step]
        target[last] = value
    return json.dumps(body).encode()


HOSTILE: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "it is no JSON"),
    "text": (b"hello", "it is no JSON"),
    "bytes": (b"\xff\xfe\x00", "no text in UTF-8"),
    "deep": (b"[" * 100_000, "it is nested too deep"),
    "a list": (b"[]", "it has no schema"),
    "a number": (b"7", "it has no schema"),
    "another schema": (wrong(schema="gpuconsole.check/1"), "its schema is 'gpuconsole.check/1'"),
    "a schema that is no text": (wrong(schema=["\x1b[2J"]), "its schema is"),
    "a missing part": (b'{"schema": "gpuconsole.bench/1"}', "BenchRun.run is missing"),
    "an id": (wrong(run="../../etc"), "run is no id"),
    "a mode": (wrong(mode="slow"), "mode is neither"),
    "a time": (wrong(taken_at=1e18), "taken_at is no time"),
    "a status": (wrong(benchmarks__0__status="great"), "which is not known here"),
    "a score": (wrong(benchmarks__0__score="fast"), "score"),
    "below zero": (wrong(benchmarks__0__score=-5), "score is below zero"),
    "not a number": (wrong().replace(b"787.0", b"NaN"), "NaN is no number"),
    "infinite": (wrong().replace(b"787.0", b"1e999"), "too large a number"),
    "huge": (wrong(benchmarks__0__values={"a": 10**400}), "too large a number"),
    "digits": (wrong().replace(b"787.0", b"9" * 10_000), "digits"),
    "a long text": (wrong(benchmarks__0__why="x" * 10_000), "is longer than"),
    "a long name": (wrong(benchmarks__0__values={"x" * 10_000: 1}), "is longer than"),
    "many": (wrong(notes=[{"text": "x"}] * 6000), "more than 5000 items"),
    "large": (b" " * (LARGEST_BYTES + 1), "it is larger than"),
    "nested values": (wrong(benchmarks__0__values=json.loads("[" * 50 + "]" * 50)), "nested too deep"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_is_no_run_is_told_in_words(kind: str, tmp_path: Path) -> None:
    data, why = HOSTILE[kind]
    file = tmp_path / "run.json"
    file.write_bytes(data)
    with pytest.raises(BadFile) as told:
        read_run(file)
    assert why in told.value.message
    assert "\x1b" not in told.value.message
    assert told.value.hint
    assert len(told.value.message) < 700


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "not-there", Path("a\0b")):
        with pytest.raises(ConsoleError):
            read_run(path)


def test_text_of_a_taken_in_run_is_harmless(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(wrong(subject="\x1b]0;owned\x07\u202e[bold]x", benchmarks__0__why="\x1b[2Jgone"))
    taken = read_run(file)
    assert (taken.subject, taken.benchmarks[0].why) == ("[bold]x", "gone")


def test_whose_work_disturbed_a_run_is_in_no_part_of_what_is_given_away() -> None:
    """The headline repeats the reason of a result that is not judged."""
    disturbed = record(contended=True, contended_by=("acme-trainer --customer zebra (10 GiB)",))
    whole = grade_run(run(disturbed), lambda _: Peers())
    whole = replace(whole, headline=limit_of(whole))
    assert whole.headline is not None
    assert "zebra" in whole.headline.because[0]
    given = shared_document(whole)
    assert "zebra" not in json.dumps(given)
    assert given["headline"]["because"] == ["mm: not judged: another process used the GPU"]
