"""What a path of this machine is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuconsole.host.folders import filesystem_of, look, mount_table, selinux_enforced

_MOUNTINFO = """\
21 28 0:20 / /proc rw,nosuid shared:12 - proc proc rw
28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
90 28 0:50 / /home rw,relatime shared:40 - nfs4 server:/export/home rw,vers=4.2
91 90 0:51 / /home/me/with\\040space rw shared:41 master:2 - fuse.sshfs box:/ rw
92 28 0:52 / /data rw - xfs /dev/sdb rw
93 28 0:53 / /data rw - tmpfs tmpfs rw
nonsense
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(_MOUNTINFO)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"), ("/srv/x", "ext4"), ("/home", "nfs4"), ("/home/me", "nfs4"), ("/homeless", "ext4"),
        ("/home/me/with space/a", "fuse.sshfs"), ("/home/me/../../srv", "ext4"), ("/data/a", "tmpfs"),
    ],
)  # fmt: skip
def test_file_system_is_that_of_the_nearest_mount(root: Path, path: str, kind: str) -> None:
    assert filesystem_of(path, mount_table(root)) == kind


def test_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    assert mount_table(tmp_path) == ()
    assert filesystem_of("/home", ()) is None
    assert not selinux_enforced(tmp_path)


def test_this_machine_tells_its_own_root() -> None:
    assert filesystem_of("/", mount_table())


@pytest.mark.parametrize(("text", "enforced"), [("1", True), ("1\n", True), ("0", False), ("", False)])
def test_selinux(tmp_path: Path, text: str, enforced: bool) -> None:
    (tmp_path / "sys/fs/selinux").mkdir(parents=True)
    (tmp_path / "sys/fs/selinux/enforce").write_text(text)
    assert selinux_enforced(tmp_path) is enforced


def test_paths_there_and_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    there = look(str(tmp_path / "file"))
    assert (there.exists, there.readable, there.owner_uid) == (True, True, os.getuid())
    assert look(str(tmp_path)).readable is True
    assert look(str(tmp_path / "nowhere")).exists is False
    assert look(str(tmp_path / "file" / "below")).exists is None
    assert look("/a\0b").exists is None
    (tmp_path / "link").symlink_to("file")
    assert (look(str(tmp_path / "link")).real, there.real) == (os.path.realpath(tmp_path / "file"),) * 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_folder_that_keeps_others_out(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0o700)
    tmp_path.chmod(0o755)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # it tells by the pipe
        os.setuid(65534)
        found = [look(str(closed)), look(str(closed / "inner"))]
        os.write(write, repr([(each.exists, each.readable) for each in found]).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    told = os.read(read, 1000).decode()
    os.close(read)
    # Folders above the test's own may keep it out as well; then even the first cannot be told to be there.
    assert told in ("[(True, False), (None, False)]", "[(None, False), (None, False)]")
