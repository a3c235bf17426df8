"""The lock file: what is read, what is refused, what is kept when it is written; and where it is found."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuconsole.core.errors import BadFile
from gpuconsole.images.pins import Pin, pin_of, read_pins, write_pins
from gpuconsole.services.lockfile import LockFile, all_pins, lock_file

A, B, C = (f"sha256:{digit * 64}" for digit in "abc")
TORCH = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
NGC = "nvcr.io/nvidia/pytorch:25.10-py3"


def entry(name: str = TORCH, *lines: str) -> str:
    return "\n".join((f'[image."{name}"]', *(lines or (f'digest = "{A}"',)), ""))


def read(text: str) -> dict[str, Pin]:
    return read_pins(text, where="gpuconsole.lock")


def written(text: str, *pins: Pin) -> str:
    return write_pins(text, {pin.reference: pin for pin in pins}, where="gpuconsole.lock")


def test_an_entry_holds_a_name_to_a_digest() -> None:
    text = entry(TORCH, f'digest = "{A}"', 'platform = "linux/amd64"', "size_bytes = 5", "pinned = 2026-11-30")
    (pin,) = read(text).values()
    assert pin == Pin(TORCH, digest=A, platform="linux/amd64", size_bytes=5, pinned=date(2026, 11, 30))
    assert pin.image == f"pytorch/pytorch@{A}"
    assert pin_of(f"docker.io/{TORCH}", read(text)) == pin
    assert pin_of("pytorch/pytorch", read(text)) is None
    assert pin_of(A, read(text)) is None
    assert pin_of("NO NAME", read(text)) is None


def test_names_are_read_as_docker_reads_them() -> None:
    assert list(read(entry("docker.io/library/ubuntu:22.04") + entry("team/x"))) == ["team/x:latest", "ubuntu:22.04"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x = ", "not TOML"),
        (entry(TORCH, 'digest = "sha256:abc"'), "64 hexadecimal"),
        (entry(TORCH, f'digest = "{A}"', f'id = "{B}"'), "either a digest or an id"),
        (entry(TORCH, 'platform = "linux/amd64"'), "either a digest or an id"),
        (entry(TORCH, f'digst = "{A}"'), "did you mean 'digest'"),
        (entry(TORCH, f'digest = "{A}"', 'platform = "windows"'), "linux/amd64"),
        (entry(TORCH, f'digest = "{A}"', "size_bytes = -1"), "number of bytes"),
        (entry(TORCH, f'digest = "{A}"', "size_bytes = true"), "number of bytes"),
        (entry(TORCH, f'digest = "{A}"', 'pinned = "today"'), "2026-11-30"),
        (entry(TORCH, f'digest = "{A}"', "pinned = 2026-11-30T10:00:00"), "2026-11-30"),
        (entry("UPPER:1"), "lower case"),
        (entry(A.removeprefix("sha256:")), "id, not its name"),
        (entry(TORCH) + entry(f"docker.io/{TORCH}"), "twice"),
        (entry(f"pytorch/pytorch@{B}", f'digest = "{A}"'), "another one than its name says"),
        ("[imge.x]", "did you mean 'image'"),
        ("image = 3", "each image"),
        (f'[image]\n"{TORCH}" = 3', "with its digest below"),
        ("version = 2", "version 2"),
    ],
)
def test_mistakes_are_named(text: str, word: str) -> None:
    with pytest.raises(BadFile, match=r"gpuconsole\.lock") as caught:
        read(text)
    assert word in caught.value.message
    assert caught.value.hint
    assert caught.value.message.isprintable()


def test_all_mistakes_are_named_at_once_and_harmlessly() -> None:
    text = entry("UPPER:1") + entry(TORCH, f'digest = "{A}"', r'platform = "\u001b[2Jx"') + "[images]\n"
    with pytest.raises(BadFile) as caught:
        read(text)
    assert all(word in caught.value.message for word in ("UPPER", "platform", "did you mean 'image'"))
    assert "\x1b" not in caught.value.message


def test_a_merge_that_was_not_finished_is_said_to_be_one() -> None:
    text = entry(TORCH, "<<<<<<< ours", f'digest = "{A}"', "=======", f'digest = "{B}"', ">>>>>>> theirs")
    with pytest.raises(BadFile, match="merge") as caught:
        read(text)
    assert "line 2" in caught.value.message


def test_two_additions_are_merged_by_lines() -> None:
    """Entries stand apart and sorted, so that what two people add shows as two separate insertions."""
    base = written("", Pin("m/m:1", digest=B))
    ours, theirs = written(base, Pin("a/a:1", digest=A), *read(base).values()), base + "\n" + entry("z/z:1")
    assert ours.endswith(base.partition("\n\n")[2])
    assert list(read(theirs)) == ["m/m:1", "z/z:1"]
    assert written(theirs, *read(theirs).values()).startswith(base)


def test_comments_and_unchanged_lines_stay() -> None:
    text = (
        "# ours, since spring\nversion = 1\n\n# what the paper used\n"
        f"[image.'{TORCH}']  # do not touch\ndigest='{A}' # measured\n# inside\nplatform = \"linux/amd64\"\n"
    )
    pin = read(text)[TORCH]
    assert written(text, pin) == text
    changed = written(text, replace(pin, digest=B), Pin(NGC, image_id=C))
    for comment in (
        "# ours, since spring",
        "# what the paper used\n[image.",
        "# do not touch",
        "# measured",
        "# inside",
    ):
        assert comment in changed
    assert read(changed) == {NGC: Pin(NGC, image_id=C), TORCH: replace(pin, digest=B)}
    assert "# what the paper used" not in written(changed, Pin(NGC, image_id=C))


@pytest.mark.parametrize("text", [f'[image]\n"{TORCH}" = {{digest = "{A}"}}\n', f'image."{TORCH}".digest = "{A}"\n'])
def test_what_cannot_be_edited_is_said_and_not_lost(text: str) -> None:
    assert read(text)[TORCH].digest == A
    with pytest.raises(BadFile, match="cannot edit") as caught:
        written(text, Pin(TORCH, digest=B))
    assert "part of its own" in caught.value.hint


_NAMES = st.from_regex(r"[a-z]{1,6}/[a-z]{1,6}:[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}", fullmatch=True)
_DIGESTS = st.sampled_from([A, B, C])
_PINS = st.builds(
    Pin,
    _NAMES,
    digest=_DIGESTS,
    platform=st.none() | st.sampled_from(["linux/amd64", "linux/arm64/v8"]),
    size_bytes=st.none() | st.integers(0, 2**50),
    download_bytes=st.none() | st.integers(0, 2**50),
    pinned=st.none() | st.dates(min_value=date(2020, 1, 1)),
)
_TABLES = st.lists(_PINS, max_size=5).map(lambda pins: {pin.reference: pin for pin in pins})


@settings(max_examples=40, deadline=None)
@given(_TABLES, _TABLES)
def test_what_is_written_is_read_back_whatever_stood_there(before: dict[str, Pin], after: dict[str, Pin]) -> None:
    text = write_pins("", before, where="x")
    again = write_pins(text, after, where="x")
    assert read(again) == after
    assert list(read(again)) == sorted(after)
    assert write_pins(again, after, where="x") == again
    assert write_pins(again, before, where="x") == text


# --- the file ---


def add(pin: Pin) -> Callable[..., dict[str, Pin]]:
    return lambda pins: {**pins, pin.reference: pin}


def test_the_nearest_lock_file_upward_counts(tmp_path: Path) -> None:
    deep = tmp_path / "project/src/pkg"
    deep.mkdir(parents=True)
    assert lock_file(deep) == LockFile(deep / "gpuconsole.lock")
    (tmp_path / "project/gpuconsole.lock").write_text("")
    assert lock_file(deep).path == tmp_path / "project/gpuconsole.lock"
    (tmp_path / "project/src/gpuconsole.lock").mkdir()
    assert lock_file(deep).path == tmp_path / "project/gpuconsole.lock"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder below one that others may write to."""
    folder = tmp_path / "shared/project"
    folder.mkdir(parents=True)
    return folder


def stranger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file, or a link, be somebody else's."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    if os.geteuid() == 0:
        os.chown(path, 4711, 4711, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)


@pytest.mark.parametrize("linked", [False, True], ids=["file", "link"])
def test_a_strangers_file_above_does_not_count_and_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    above, real = project.parent / "gpuconsole.lock", project.parent / "real"
    (real if linked else above).write_text(entry())
    if linked:
        above.symlink_to(real)
    assert lock_file(project) == LockFile(above)
    stranger(above, monkeypatch)
    found = lock_file(project)
    assert found == LockFile(project / "gpuconsole.lock")
    assert found.pins() == {}
    assert found.note is not None
    assert str(above) in found.note
    assert lock_file(above.parent) == LockFile(above), "in its own folder it is the one that is meant"
    assert lock_file(above.parent).note is None


def test_behind_sudo_the_callers_files_count(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above = project.parent / "gpuconsole.lock"
    above.write_text(entry())
    owner = 4711 if os.geteuid() == 0 else os.geteuid()
    if os.geteuid() == 0:
        os.chown(above, owner, owner)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert lock_file(project) == LockFile(above)
    for other in (str(owner + 1), "", "-1", "x", "²"):
        monkeypatch.setenv("SUDO_UID", other)
        assert lock_file(project).passed_over == above


def test_further_up_is_looked_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, strange = project.parent.parent / "gpuconsole.lock", project.parent / "gpuconsole.lock"
    own.write_text(entry())
    strange.write_text(entry(NGC))
    stranger(strange, monkeypatch)
    found = lock_file(project)
    assert found.passed_over == strange
    if os.geteuid() == 0:  # elsewhere all files here are of one owner
        assert list(found.pins()) == [TORCH]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def socket_file(path: Path) -> None:
    path.symlink_to("s")
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as one:
        one.bind("s")


@pytest.mark.parametrize("make", [pipe, loop, device, socket_file, Path.mkdir])
def test_what_is_no_plain_file_holds_nobody_up(project: Path, make: Callable[[Path], None]) -> None:
    """Read, changed, found from the folder below, and remembered from earlier."""
    path = project / "gpuconsole.lock"
    LockFile(path).change(add(Pin(TORCH, digest=A)))
    path.unlink()
    make(path)
    for do in (LockFile(path).pins, lambda: LockFile(path).change(add(Pin(NGC, digest=A))), lock_file(project).pins):
        with pytest.raises(BadFile, match=r"gpuconsole\.lock cannot be (read|written)") as caught:
            do()
        assert caught.value.hint
    below = project / "below"
    below.mkdir()
    assert lock_file(below).path == below / "gpuconsole.lock"
    for folder in (project, below):
        known = all_pins(folder)
        assert known.pins == ()
        assert known.unread, "that it cannot be read is said"


@pytest.mark.parametrize("target", ["../other", "/etc/nothing-here", "deep/er", "../project2/gpuconsole.lock"])
def test_a_link_out_of_its_folder_is_not_followed_by_a_change(project: Path, target: str) -> None:
    for folder in ("deep", "../project2"):
        (project / folder).mkdir()
    link = project / "gpuconsole.lock"
    link.symlink_to(target)
    place = project / target
    for there in (False, True):
        if there and target.startswith("/"):
            break
        if there:
            place.write_text(entry(NGC))
        with pytest.raises(BadFile, match="not in its folder") as caught:
            LockFile(link).change(add(Pin(TORCH, digest=A)))
        assert "plain file" in caught.value.hint
        assert place.exists() == there
    if place.exists():
        assert place.read_text() == entry(NGC)
        assert list(LockFile(link).pins()) == [NGC], "it is read all the same"


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(BadFile, match="gone"):
        lock_file()


def test_a_change_keeps_the_mode_and_follows_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.lock", tmp_path / "gpuconsole.lock"
    real.write_text("")
    real.chmod(0o640)
    link.symlink_to(real)
    LockFile(link).change(add(Pin(TORCH, digest=A)))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert LockFile(real).pins() == {TORCH: Pin(TORCH, digest=A)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gpuconsole.lock", "real.lock"]


def test_a_new_file_is_as_others_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        LockFile(tmp_path / "gpuconsole.lock").change(add(Pin(TORCH, digest=A)))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "gpuconsole.lock").stat().st_mode) == 0o644


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "gpuconsole.lock")
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            lock.change(add(Pin(f"team/image:{number}", digest=A)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(lock.pins()) == 12


def test_a_change_that_fails_leaves_the_file(tmp_path: Path) -> None:
    lock = LockFile(tmp_path / "gpuconsole.lock")
    lock.path.write_text(entry())

    def fail(_: object) -> dict[str, Pin]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        lock.change(fail)
    assert lock.path.read_text() == entry()
    lock.path.write_text("x = ")
    with pytest.raises(BadFile):
        lock.change(add(Pin(NGC, digest=A)))
    assert lock.path.read_text() == "x = "


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * (5 * 2**20)], ids=["bytes", "huge"])
def test_what_is_no_lock_file_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "gpuconsole.lock"
    path.write_bytes(content)
    with pytest.raises(BadFile) as caught:
        LockFile(path).pins()
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_folder_in_its_place_or_none_at_all_is_said(tmp_path: Path) -> None:
    (tmp_path / "gpuconsole.lock").mkdir()
    with pytest.raises(BadFile, match="cannot be read"):
        LockFile(tmp_path / "gpuconsole.lock").pins()
    with pytest.raises(BadFile, match="cannot be written"):
        LockFile(tmp_path / "nowhere/gpuconsole.lock").change(add(Pin(TORCH, digest=A)))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_question_of_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    lock = LockFile(tmp_path / "gpuconsole.lock")
    lock.change(add(Pin(TORCH, digest=A)))
    before = lock.path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadFile) as caught:
        lock.change(add(Pin(NGC, digest=B)))
    assert "room" in caught.value.hint
    assert "writable" not in caught.value.hint
    assert lock.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["gpuconsole.lock"]


def test_pins_of_other_projects_are_known(tmp_path: Path) -> None:
    for name, pin in (("one", Pin(TORCH, digest=A)), ("two", Pin(NGC, digest=B))):
        (tmp_path / name).mkdir()
        LockFile(tmp_path / name / "gpuconsole.lock").change(add(pin))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert {pin.reference for _, pin in all_pins(elsewhere).pins} == {TORCH, NGC}
    (tmp_path / "one/gpuconsole.lock").unlink()
    (tmp_path / "two/gpuconsole.lock").write_text("x = ")
    known = all_pins(elsewhere)
    assert known.pins == ()
    assert len(known.unread) == 1
