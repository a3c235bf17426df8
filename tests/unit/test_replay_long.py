"""Recordings of hours: opened without reading them whole, and all that is seen of them is as if they had been."""

from __future__ import annotations

import gzip
import json
import random
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import BadFile
from gpuconsole.host.longfile import LongFile
from gpuconsole.services import replayfile
from gpuconsole.services.replay import Clock, Player
from gpuconsole.services.replayevents import moments_of
from gpuconsole.services.replayfile import Recording, load
from gpuconsole.services.replaylong import LongEvents
from tests.unit.test_recording_format import BAD, HEADER, written
from tests.unit.test_replay import RECORDINGS, Going, Listener, all_of, played_to

RAM = Path(__file__).parents[1] / "forecast/recordings/ram-003.jsonl.gz"


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recording is a long one."""
    monkeypatch.setattr(replayfile, "LONG", 0)
    monkeypatch.setattr(replayfile, "LONG_PACKED", 0)


def unpacked(path: Path, folder: Path) -> Path:
    copy = folder / path.name.removesuffix(".gz")
    copy.write_bytes(gzip.decompress(path.read_bytes()))
    return copy


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_its_events_are_those_of_the_same_recording_read_whole(
    path: Path, packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = path if packed else unpacked(path, tmp_path)
    whole = load(path)
    monkeypatch.setattr(replayfile, "LONG", 0)
    monkeypatch.setattr(replayfile, "LONG_PACKED", 0)
    long = load(path)
    assert isinstance(long.events, LongEvents)
    assert [*long.events] == [*whole.events]
    assert [*reversed(long.events)] == [*reversed(whole.events)]
    assert (long.began_at, long.host, long.user, long.length_s, long.first_look_s, [*long.times]) == (
        whole.began_at, whole.host, whole.user, whole.length_s, whole.first_look_s, [*whole.times],
    )  # fmt: skip
    assert moments_of(long) == moments_of(whole)
    at = whole.length_s / 2
    assert all_of(long, played_to(long, at), at) == all_of(whole, played_to(whole, at), at)


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_recording_is_said_at_once_or_where_it_is_met(tmp_path: Path, kind: str) -> None:
    path = BAD[kind](tmp_path / "some file.jsonl")
    with pytest.raises(BadFile, match=r"some file\.jsonl") as caught:
        [*load(path).events]
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("packed", [True, False])
def test_one_that_was_cut_off_is_read_up_to_the_cut(tmp_path: Path, packed: bool) -> None:
    whole = gzip.decompress(RECORDINGS[0].read_bytes())
    for cut in (40, 4000, len(whole) // 2):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(gzip.compress(whole)[:-cut] if packed and cut < 10_000 else whole[:-cut])
        assert 0 < len([*load(path).events]) < whole.count(b"\n")


@pytest.mark.usefixtures("long")
def test_a_line_that_cannot_be_understood_stops_the_playing_there_and_is_told(tmp_path: Path) -> None:
    lines = gzip.decompress(RECORDINGS[0].read_bytes()).decode().splitlines()
    place = next(n for n, text in enumerate(lines) if n > 200 and text.startswith('{"type":"host"'))
    lines[place] = '{"type":"host","t":50.0,"view":{"snapshot":7}}'
    recording = load(written(tmp_path / "a.jsonl", *lines))
    told: list[Exception] = []
    heard = threading.Event()

    class Hearing(Listener):
        def broke(self, error: Exception) -> None:
            told.append(error)
            heard.set()

    clock = Clock(recording, speed=0.0)
    player = Player(recording, clock)
    player.start(Hearing(player))
    player.seek(recording.length_s)
    assert heard.wait(20)
    assert isinstance(told[0], BadFile)
    assert f"line {place + 1} " in told[0].message
    assert clock.paused
    assert player.wanted_s is None
    player.close()


def a_day(path: Path, hours: float) -> Path:
    """The shipped recording over and over, until it lasts so long."""
    text = gzip.decompress(RECORDINGS[0].read_bytes()).decode().splitlines()
    parts = [(json.loads(line), line) for line in text[1:]]
    length = max(data["t"] for data, _ in parts) + 1
    heads = [f'{{"type":"{data["type"]}","t":{data["t"]},' for data, _ in parts]
    assert all(line.startswith(head) for head, (_, line) in zip(heads, parts, strict=True))
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(text[0] + "\n")
        for turn in range(int(hours * 3600 / length)):
            for head, (data, line) in zip(heads, parts, strict=True):
                file.write(f'{{"type":"{data["type"]}","t":{data["t"] + turn * length:.3f},{line[len(head) :]}\n')
    return path


@pytest.mark.usefixtures("long")
def test_hours_are_held_in_little_memory_and_gone_to_and_fro_in(tmp_path: Path) -> None:
    path = a_day(tmp_path / "long.jsonl.gz", 0.15)
    text = len(gzip.decompress(path.read_bytes()))
    tracemalloc.start()
    recording = load(path)
    held, _ = tracemalloc.get_traced_memory()
    assert isinstance(recording.events, LongEvents)
    assert held < text / 8
    going = Going(recording)
    for at in (recording.length_s, 60.0, recording.length_s / 2):
        before = going.listener.sights
        going.player.seek(at)
        while going.listener.sights == before:
            threading.Event().wait(0.02)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    going.player.close()
    assert held < 16 * 2**20, "a block of the file, copies, and what a console remembers"


@pytest.mark.parametrize("packed", [True, False])
def test_any_part_of_a_long_file_is_read_as_it_stands_there(tmp_path: Path, packed: bool) -> None:
    drawn = random.Random(5)
    data = b"".join(b"%d %s\n" % (n, bytes([97 + drawn.randrange(26)]) * drawn.randrange(300)) for n in range(60_000))
    path = tmp_path / "x"
    half = len(data) // 2
    path.write_bytes(gzip.compress(data[:half], 1) + gzip.compress(data[half:], 9) if packed else data)
    file = LongFile(path.open("rb"))
    assert b"".join(file.pieces()) == data
    for _ in range(60):
        offset = drawn.randrange(len(data))
        length = drawn.choice((1, 200, 100_000))
        assert file.read(offset, length) == data[offset : offset + length]
    file.close()


@pytest.mark.usefixtures("long")
def test_samples_that_lack_containers_take_them_from_the_lines_before(tmp_path: Path) -> None:
    lines: list[Any] = [json.loads(text) for text in gzip.decompress(RECORDINGS[0].read_bytes()).decode().splitlines()]
    old = [{key: value for key, value in each.items() if key != "containers"} for each in lines]
    path = written(tmp_path / "old.jsonl", HEADER | lines[0], *old[1:])
    long: Recording = load(path)
    whole = replayfile._whole(path)
    assert [*long.events] == [*whole.events]
