"""Around a pull: how fast, how long, whether there is room, what was meant, and why it failed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.pull_progress import Lines, Picture, picture
from gpuconsole.cli.tables import width_of
from gpuconsole.core.errors import Conflict, ConsoleError, EngineRefused, ExitCode
from gpuconsole.engine.docker.refusals import pull_refusal
from gpuconsole.engine.model import EngineInfo, PullProgress
from gpuconsole.engine.pullfailures import (
    DownloadBroken,
    ImageUnknown,
    LoginNeeded,
    PlatformMissing,
    RateLimited,
    RegistryUnreached,
)
from gpuconsole.images.findings import Trouble
from gpuconsole.images.neartags import nearest_tags
from gpuconsole.images.reference import Reference, parse
from gpuconsole.images.registry import Manifest, Registries
from gpuconsole.images.registrycalls import RegistryError
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.completing import pinned_names, reference_names
from gpuconsole.services.pace import Pace, left_s
from gpuconsole.services.pulling import PullMeter, PullState
from gpuconsole.services.pullobstacles import (
    Room,
    ask_in_time,
    explained,
    refuse_full_disk,
    refuse_other_platform,
    room,
)
from gpuconsole.services.pullruns import Puller
from gpuconsole.services.pullspace import PullSpace
from gpuconsole.services.session import Session

MIB = 2**20
TORCH = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
INFO = EngineInfo("unix:///x", os="linux", architecture="x86_64", root_dir="/var/lib/docker")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def layer(name: str, status: str, current: int | None = None, total: int | None = None) -> PullProgress:
    return PullProgress(status=status, layer=name, current_bytes=current, total_bytes=total)


# --- how fast, how long ---


def test_a_rate_needs_some_time_and_forgets_what_is_long_ago() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert pace.reached(0) is None
    clock.now += 0.5
    assert pace.reached(50) is None
    clock.now += 0.5
    assert pace.reached(100) == pytest.approx(100)
    for _ in range(60):
        clock.now += 1
        pace.reached(100)
    assert pace.reached(100) == 0
    assert pace.reached(0) is None


def test_the_time_left_is_known_only_while_something_moves() -> None:
    assert left_s(100, 10) == 10
    assert left_s(100, 0) is None
    assert left_s(100, None) is None
    assert left_s(0, None) == 0


def test_sizes_the_registry_told_make_the_total_from_the_start() -> None:
    clock = Clock()
    sizes = {f"sha256:{digit * 64}": count * MIB for digit, count in (("a", 10), ("b", 20), ("c", 30))}
    meter = PullMeter("team/x:1", sizes, clock=clock)
    for digit in "abc":
        meter.add(layer(digit * 12, "Pulling fs layer"))
    assert meter.state.total_bytes == 60 * MIB
    meter.add(layer("a" * 12, "Already exists"))
    assert meter.state.total_bytes == 50 * MIB
    meter.add(layer("b" * 12, "Downloading", 0, 20 * MIB))
    clock.now += 2
    state = meter.add(layer("b" * 12, "Downloading", 10 * MIB, 20 * MIB))
    assert (state.rate, state.left_s) == (5 * MIB, 8)
    assert str(state) == "1 of 3 layers downloaded, 10 MiB of 50 MiB, 5 MiB/s, 8 s left"
    meter.add(layer("b" * 12, "Pull complete"))
    state = meter.add(layer("c" * 12, "Download complete"))
    assert (state.current_bytes, state.left_s) == (50 * MIB, 0)
    assert str(state).endswith("50 MiB of 50 MiB, unpacking")


def test_without_all_sizes_no_time_is_guessed() -> None:
    clock = Clock()
    meter = PullMeter("team/x:1", clock=clock)
    meter.add(layer("a", "Waiting"))
    meter.add(layer("b", "Downloading", 0, 20 * MIB))
    clock.now += 2
    state = meter.add(layer("b", "Downloading", 10 * MIB, 20 * MIB))
    assert (state.rate, state.left_s) == (5 * MIB, None)
    assert "left" not in str(state)
    assert meter.add(layer("a", "Downloading", 10 * MIB, 40 * MIB)).left_s is not None


@pytest.mark.parametrize("rows", [2, 5, 8, 23])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_picture_fits_the_screen(rows: int, unicode: bool) -> None:
    steps = tuple(layer(f"{n:012d}", "Downloading", n * MIB, 1024 * MIB) for n in range(12))
    state = PullState(TORCH, 12, 3, 5, 900 * MIB, 5000 * MIB, "", steps, 12.5 * MIB, 4000)
    lines = picture([state, state], Glyphs(unicode=unicode), rows)
    assert 0 < len(lines) <= rows
    assert all(width_of(line) < 80 for line in lines)
    assert lines[0] == TORCH
    assert rows < 4 or "5/12 layers · 900 MiB of 4.9 GiB · 12.5 MiB/s · 67 min left" in lines[1]
    assert picture([], Glyphs(), rows) == []


def screen(written: str) -> list[str]:
    """What a terminal shows after all this."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[\d*[A-Z]|[\r\n]|[^\x1b\r\n]+", written):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part.endswith("A") and part[0] == "\x1b":
            row -= int(part[2:-1])
        elif part == "\x1b[K":
            lines[row] = lines[row][:column]
        elif part == "\x1b[J":
            lines[row:] = [lines[row][:column]]
        else:
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line for line in lines if line]


def test_what_is_said_between_stays_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Pulls tell of themselves from threads of their own, also while somebody is told of an interrupt."""
    monkeypatch.setattr("gpuconsole.cli.pull_progress._DRAW_S", 0.0)
    drawn = Picture(Glyphs(unicode=False))
    names = [f"team/image:{number}" for number in range(4)]
    drawn.begin(names)

    def tell(name: str) -> None:
        for number in range(30):
            drawn.state(PullState(name, 3, 0, 1, number * MIB, 40 * MIB))
        drawn.end(name)

    threads = [threading.Thread(target=tell, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    said = [f"Interrupted for the {number}. time." for number in range(20)]
    for text in said:
        drawn.say(text)
    for thread in threads:
        thread.join()
    drawn.state(PullState(names[0], 3, 0, 1, MIB, 40 * MIB))
    drawn.close()
    assert screen(capsys.readouterr().err) == said


def test_a_pull_that_waited_for_its_turn_asks_nobody_once_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    class Silent:
        """An engine and registries that should not be asked."""

        def info(self) -> EngineInfo:
            return INFO

        def __getattr__(self, name: str) -> None:
            asked.append(name)
            raise AssertionError(name)

    monkeypatch.setattr("gpuconsole.services.pullruns.registries", Silent)
    session = SimpleNamespace(engine=Silent(), pull_space=PullSpace())
    cancel = Cancellation()
    cancel.request()
    for name in (TORCH, f"{TORCH}@sha256:{'0' * 64}"):
        with pytest.raises(Cancelled, match="was not pulled"):
            Puller(cast(Session, session)).pull(parse(name), cancel=cancel, on_state=lambda _: None)
    assert asked == []


def test_lines_stay_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Lines()
    pinned = f"{TORCH}@sha256:{'a' * 64}"
    lines.begin([pinned])
    state = PullState(pinned, 3, 0, 1, 10 * MIB, 40 * MIB, rate=5.0 * MIB, left_s=6)
    lines.state(state)
    lines.state(state)
    lines.state(replace(state, layers_downloaded=3))
    lines.state(replace(state, layers_downloaded=3))
    monkeypatch.setattr("gpuconsole.cli.pull_progress._LINE_S", 0.0)
    lines.state(state)
    lines.end(pinned)
    lines.close()
    out, err = capsys.readouterr()
    short = f"{TORCH}@{'a' * 12}"
    assert out == ""
    assert err.splitlines() == [
        f"Pulling {short} …",
        f"  {short}: 3 of 3 layers downloaded, 10 MiB of 40 MiB, unpacking",
        f"  {short}: 1 of 3 layers downloaded, 10 MiB of 40 MiB, 5 MiB/s, 6 s left",
    ]


def test_a_question_that_hangs_holds_up_nobody_who_leaves() -> None:
    cancel, hangs = Cancellation(), threading.Event()
    cancel.request()
    assert ask_in_time(lambda: hangs.wait(60), cancel) is None
    hangs.set()
    assert ask_in_time(lambda: 5) == 5

    def refuses() -> int:
        raise RegistryError(Trouble.LIMIT, "too often")

    def crashes() -> int:
        raise ZeroDivisionError

    assert ask_in_time(refuses) is None
    with pytest.raises(ZeroDivisionError):
        ask_in_time(crashes)


# --- room and platform ---


def test_a_full_disk_is_told_before_the_pull() -> None:
    refuse_full_disk("x", Room("/d", free_bytes=3 * 2**30, download_bytes=2**30))
    with pytest.raises(Conflict) as caught:
        refuse_full_disk(TORCH, Room("/var/lib/docker", free_bytes=2 * 2**30, download_bytes=2**30))
    assert "1 GiB to download and needs about 3 GiB" in caught.value.message
    assert "/var/lib/docker) has 2 GiB free" in caught.value.message
    assert "gpuconsole image prune" in caught.value.hint


@pytest.mark.parametrize("info", [EngineInfo("tcp://x", root_dir="/", local=False), EngineInfo("unix:///x")])
def test_a_disk_that_cannot_be_seen_is_not_judged(info: EngineInfo) -> None:
    assert room(info, 1) is None
    assert room(EngineInfo("unix:///x", root_dir="/"), 1) is not None


def test_an_image_for_another_processor_is_told_before_the_pull() -> None:
    arm = Manifest("sha256:x", ("linux/arm64",))
    with pytest.raises(PlatformMissing, match=r"linux/arm64, not for linux/amd64"):
        refuse_other_platform(parse(TORCH), arm, INFO)
    refuse_other_platform(parse(TORCH), Manifest("sha256:x", ("linux/arm64", "linux/amd64")), INFO)
    refuse_other_platform(parse(TORCH), Manifest("sha256:x", ()), INFO)
    with pytest.raises(PlatformMissing):
        refuse_other_platform(parse(TORCH), Manifest("sha256:x", ("linux/amd64p32",)), INFO)
    refuse_other_platform(parse(TORCH), arm, EngineInfo("unix:///x", architecture="strange"))


# --- tags ---


@pytest.mark.parametrize(
    ("wanted", "first"),
    [
        ("2.9-cuda12.8-cudnn9-runtime", "2.9.0-cuda12.8-cudnn9-runtime"),
        ("2.9.0-cuda12.8-cudnn9-runtme", "2.9.0-cuda12.8-cudnn9-runtime"),
        ("2.9.0-CUDA12.8-cudnn9-devel", "2.9.0-cuda12.8-cudnn9-devel"),
        ("2.10", "2.10.0-cuda13.0-cudnn9-runtime"),
        ("something-else-entirely", "latest"),
    ],
)
def test_the_nearest_tag_comes_first(wanted: str, first: str) -> None:
    tags = [
        "latest",
        "2.9.0-cuda12.8-cudnn9-runtime",
        "2.9.0-cuda12.8-cudnn9-devel",
        "2.10.0-cuda13.0-cudnn9-runtime",
        "1.0",
    ]
    found = nearest_tags(wanted, tags)
    assert found[0] == first or first == "latest"
    assert 0 < len(found) <= 3
    assert set(found) <= set(tags)
    assert nearest_tags(wanted, []) == ()


def test_without_a_near_tag_the_newest_are_named() -> None:
    assert nearest_tags("zzz", ["2.9.0", "2.10.0", "1.13.1"], at_most=2) == ("2.10.0", "2.9.0")


def test_names_are_completed_from_catalog_and_pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gpuconsole.lock").write_text(f'[image."nvcr.io/team/own:1"]\ndigest = "sha256:{"a" * 64}"\n')
    nobody = "unix:///nowhere/docker.sock"
    assert "nvcr.io/nvidia/pytorch:25.10-py3" in reference_names(nobody, "nvcr.io/")
    assert "nvcr.io/team/own:1" in pinned_names(nobody, "nvcr.io/team")
    assert reference_names(nobody, "no-such") == []
    (tmp_path / "gpuconsole.lock").write_text("x = ")
    assert pinned_names(nobody, "nvcr.io/team") == []


# --- failures ---


class Asked(Registries):
    """A registry that says what it is told to say."""

    def __init__(
        self, *, tags: Sequence[str] | Trouble = Trouble.UNREACHED, platforms: Sequence[str] = (), login: bool = False
    ) -> None:
        super().__init__(lambda _: ("me", "secret") if login else None)
        self._tags, self._platforms = tags, platforms

    def tags(self, reference: Reference) -> tuple[str, ...]:
        if isinstance(self._tags, Trouble):
            raise RegistryError(self._tags, "no")
        return tuple(self._tags)

    def describe(self, reference: Reference, platform: str | None = None) -> Manifest:
        return Manifest("sha256:x", tuple(self._platforms))


def told(error: ConsoleError, name: str = TORCH, ask: Registries | None = None) -> ConsoleError:
    better = explained(error, parse(name), INFO, ask or Asked())
    assert type(better) is type(error)
    assert better.detail == error.detail
    assert better.message.endswith(".")
    assert better.hint
    return better


def test_a_tag_that_is_not_there() -> None:
    unknown = ImageUnknown("No.", hint="Look.", detail="raw")
    typo = TORCH.replace("runtime", "runtme")
    assert TORCH.partition(":")[2] in told(unknown, typo, Asked(tags=["1.0", TORCH.partition(":")[2]])).hint
    offline = told(unknown, typo)
    assert "in the catalog" in offline.hint
    assert TORCH.partition(":")[2] in offline.hint
    assert "nothing of that name" in told(unknown, typo, Asked(tags=Trouble.GONE)).message
    assert "sha256:" in told(unknown, f"pytorch/pytorch@sha256:{'0' * 64}").message
    assert "2.8 has no CUDA 12.4 build" in told(unknown, "pytorch/pytorch:2.8.0-cuda12.4-cudnn9-devel").message


def test_a_login_is_named_with_its_registry() -> None:
    needed = LoginNeeded("No.", hint="Log in.")
    ngc = told(needed, "nvcr.io/nvidia/pytorch:25.10-py3").hint
    assert "docker login nvcr.io --username '$oauthtoken'" in ngc
    assert "API key" in ngc
    assert told(needed).hint.endswith("docker login.")
    assert told(needed, "ghcr.io/team/x:1").hint.endswith("docker login ghcr.io.")
    again = told(needed, "ghcr.io/team/x:1", Asked(login=True))
    assert "to the login that Docker has" in again.message
    assert "run out" in again.hint
    assert "secret" not in f"{again.message}{again.hint}"


def test_other_failures_name_what_they_concern() -> None:
    assert "Docker Hub's limit" in told(RateLimited("No.", hint="Wait.")).message
    assert "nvcr.io has been asked" in told(RateLimited("No.", hint="Wait."), "nvcr.io/nvidia/pytorch:1").message
    elsewhere = told(PlatformMissing("No.", hint="Choose."), ask=Asked(platforms=["linux/arm64"]))
    assert "linux/arm64, not for linux/amd64" in elsewhere.message
    unreached = told(RegistryUnreached("The engine cannot reach the registry: EOF.", hint="Look."), "nvcr.io/x/y:1")
    assert unreached.message == "The engine cannot reach nvcr.io: EOF."
    other = EngineRefused("The engine's disk is full.", hint="Make room.")
    assert explained(other, parse(TORCH), INFO, Asked()) is other


def answers() -> Iterator[tuple[str, type[ConsoleError], ExitCode]]:
    """Engines' words inside an answer of status 200."""
    yield "manifest for 127.0.0.1:5000/x:1 not found: manifest unknown", ImageUnknown, ExitCode.NOT_FOUND
    yield "no matching manifest for linux/amd64 in the manifest list entries", PlatformMissing, ExitCode.NOT_FOUND
    yield "toomanyrequests: You have reached your pull rate limit.", RateLimited, ExitCode.ENGINE_ERROR
    yield "unauthorized: authentication required", LoginNeeded, ExitCode.REFUSED
    yield (
        "pull access denied for x, repository does not exist or may require 'docker login'",
        LoginNeeded,
        ExitCode.REFUSED,
    )
    yield "filesystem layer verification failed for digest sha256:ab", DownloadBroken, ExitCode.ENGINE_ERROR
    yield (
        "unexpected commit digest sha256:ab, expected sha256:cd: failed precondition",
        DownloadBroken,
        ExitCode.ENGINE_ERROR,
    )
    yield "unexpected EOF", DownloadBroken, ExitCode.ENGINE_ERROR
    yield "dial tcp: lookup nvcr.io: no such host", RegistryUnreached, ExitCode.ENGINE_ERROR
    yield "write /var/lib/docker/tmp/x: no space left on device", EngineRefused, ExitCode.ENGINE_ERROR


@pytest.mark.parametrize(("text", "kind", "code"), answers())
def test_what_engines_say_has_its_kind(text: str, kind: type[ConsoleError], code: ExitCode) -> None:
    error = pull_refusal(500, text)
    assert isinstance(error, kind)
    assert error.exit_code is code
    assert error.hint
    assert error.detail == text
