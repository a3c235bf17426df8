"""Files are written whole or not at all, and nothing but files is written over."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gpuconsole.core.files import write_whole


@pytest.mark.parametrize("content", ["grüß\n", b"\x00\xff"])
def test_what_is_there_gives_way_and_its_mode_stays(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="a pipe or a device"):
        write_whole(path, "x")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_folder_stays_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "a", "x")
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
