"""Who a container runs as: ids, names, homes and groups, for every kind of engine."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core import users
from gpuconsole.core.paths import state_dir
from gpuconsole.engine.model import EngineInfo, Image, Mount
from gpuconsole.engine.request import Tmpfs
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.identity import Identity, group_for, identity_of, passwd_for
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.request import build_request
from gpuconsole.launch.spec import Caller, LaunchSpec, Variable
from gpuconsole.services import launchfiles
from gpuconsole.services.identities import named
from gpuconsole.services.launchfiles import launch_dir

ANNA = Caller(1234, 100, "anna", (44,))
INFO = EngineInfo(endpoint="unix:///x")
PASSWD = "root:x:0:0:root:/root:/bin/bash\nubuntu:x:1000:1000::/home/ubuntu:/bin/bash\nanna:x:7:7::/home/anna:/bin/sh\n"
GROUP = "root:x:0:\nusers:x:100:ubuntu\n"


def of(spec: LaunchSpec, info: EngineInfo = INFO, **environment: str) -> Identity:
    found = identity_of(spec, info, image_environment=environment)
    assert found is not None
    return found


def test_the_caller_gets_ids_a_name_a_home_and_caches() -> None:
    found = of(LaunchSpec("a", caller=ANNA))
    assert (found.user, found.group_add, found.tmpfs, found.needs_files) == ("1234:100", ("44",), (), True)
    assert dict(found.environment) == {
        "HOME": "/tmp", "USER": "anna", "LOGNAME": "anna", "XDG_CACHE_HOME": "/tmp/.cache",
        "TORCH_HOME": "/tmp/.cache/torch", "HF_HOME": "/tmp/.cache/huggingface",
        "TRITON_CACHE_DIR": "/tmp/.cache/triton", "TORCHINDUCTOR_CACHE_DIR": "/tmp/.cache/torchinductor",
    }  # fmt: skip
    assert identity_of(LaunchSpec("a", user="1:1"), INFO, image_environment={}) is None


def test_what_the_image_or_the_person_set_stays_unless_it_is_closed_to_others() -> None:
    found = of(LaunchSpec("a", caller=ANNA), HF_HOME="/models", TORCH_HOME="/root/.cache/torch", HOME="/root")
    assert "HF_HOME" not in dict(found.environment)
    assert dict(found.environment)["TORCH_HOME"] == "/tmp/.cache/torch"
    assert dict(found.environment)["HOME"] == "/tmp"
    spec = LaunchSpec("a", caller=ANNA, variables=(Variable("HOME", "/mine"),))
    made = build_request(spec, name="n", info=INFO, identity=of(spec))
    assert dict(made.environment)["HOME"] == "/mine"
    assert [name for name, _ in made.environment].count("HOME") == 1


def test_the_home_is_never_a_folder_of_the_host() -> None:
    mounted = LaunchSpec("a", caller=ANNA, mounts=(Mount("bind", "/tmp", "/tmp"),))
    assert of(mounted).home == "/var/tmp"


def test_an_image_that_starts_in_roots_folder_starts_elsewhere() -> None:
    mounted = LaunchSpec("a", caller=ANNA, mounts=(Mount("volume", "v", "/v"), Mount("bind", "/x", "/w")))
    for spec, folder, started in (
        (mounted, "/root", "/w"),
        (mounted, "/root/x", "/w"),
        (mounted, "/rooted", None),
        (mounted, "", None),
        (replace(mounted, working_dir="/v"), "/root", None),
        (LaunchSpec("a", caller=ANNA), "/root", "/tmp"),
    ):
        found = identity_of(spec, INFO, image_environment={}, image_folder=folder)
        assert found is not None
        assert found.working_dir == started
    made = build_request(mounted, name="n", info=INFO, identity=replace(of(mounted), working_dir="/w"))
    assert made.working_dir == "/w"


def test_a_file_system_that_cannot_be_written_gets_a_home_in_memory() -> None:
    assert of(LaunchSpec("a", caller=ANNA, read_only=True)).tmpfs == (Tmpfs("/tmp", ("exec", "mode=1777")),)
    own = LaunchSpec("a", caller=ANNA, read_only=True, tmpfs=(Tmpfs("/tmp", ("size=1g",)),))
    assert of(own).tmpfs == ()


def test_without_root_the_engines_root_is_the_caller() -> None:
    found = of(LaunchSpec("a", caller=ANNA), replace(INFO, rootless=True))
    assert (found.user, found.environment, found.needs_files, found.group_add) == ("0:0", (), False, ())
    assert "runs without root" in found.notes[0]
    assert of(LaunchSpec("a", caller=Caller(0, 0, "root"))).user == "0:0"


def test_engines_that_cannot_give_the_callers_ids_are_told() -> None:
    shifted = of(LaunchSpec("a", caller=ANNA), replace(INFO, security_options=("name=userns",)))
    assert "userns-remap" in shifted.notes[0]
    away = of(LaunchSpec("a", caller=ANNA), replace(INFO, local=False))
    assert not away.needs_files
    assert "another user" in away.notes[0]


@pytest.mark.parametrize(
    ("user", "volumes", "local", "runs_as_caller"),
    [
        (None, (".:/w",), True, True),
        (None, ("named:/w",), True, False),
        (None, (), True, False),
        (None, ("/x:/w",), False, False),
        ("me", (), True, True),
        ("image", (".:/w",), True, False),
        ("5:5", (".:/w",), True, False),
    ],
)
def test_the_caller_runs_it_where_a_folder_of_the_host_is_mounted(
    tmp_path: Path, user: str | None, volumes: tuple[str, ...], local: bool, runs_as_caller: bool
) -> None:
    around = Surroundings(str(tmp_path), str(tmp_path), {}, 1234, 100, "anna", engine_is_local=local)
    spec = read_options(LaunchOptions("a", user=user, volumes=volumes), around)
    assert (spec.caller == Caller(1234, 100, "anna")) is runs_as_caller
    assert spec.user == ("5:5" if user == "5:5" else None)


def test_a_group_of_the_caller_that_owns_a_mounted_folder_comes_along(tmp_path: Path) -> None:
    own = tmp_path.stat().st_gid
    around = Surroundings(str(tmp_path), str(tmp_path), {}, 1234, own + 1, "anna", (own, own + 1, 27))
    spec = read_options(LaunchOptions("a", volumes=(".:/w",)), around)
    assert spec.caller is not None
    assert spec.caller.groups == ((own,) if own else ()), "root's group comes along never"
    stranger = replace(around, groups=(27,))
    assert read_options(LaunchOptions("a", volumes=(".:/w",)), stranger).caller == Caller(1234, own + 1, "anna")


def test_the_images_own_names_stay_and_the_callers_is_added() -> None:
    assert passwd_for(ANNA, "/tmp", PASSWD).splitlines() == [
        "root:x:0:0:root:/root:/bin/bash",
        "ubuntu:x:1000:1000::/home/ubuntu:/bin/bash",
        "anna:x:1234:100:anna:/tmp:/bin/bash",
    ]
    assert "ubuntu" not in passwd_for(replace(ANNA, uid=1000), "/tmp", PASSWD)
    assert group_for(ANNA, GROUP) == f"{GROUP}group44:x:44:\n"
    assert group_for(replace(ANNA, gid=55), GROUP) == f"{GROUP}anna:x:55:\ngroup44:x:44:\n"
    assert "anna:x:1234:100:anna:/tmp:/bin/sh" in passwd_for(ANNA, "/tmp", None)
    assert "root:x:0:" in group_for(ANNA, None)
    not_root = passwd_for(replace(ANNA, name="root"), "/tmp", PASSWD)
    assert not_root.startswith("root:x:0:0:")
    assert "user1234:x:1234:" in not_root


@given(st.text(max_size=40), st.text(max_size=200))
def test_whatever_a_name_and_a_file_hold_the_entry_is_one_line_of_seven_fields(name: str, own: str) -> None:
    caller = Caller(1234, 100, name)
    last = passwd_for(caller, "/tmp", own).split("\n")[-2].split(":")
    assert (last[1:4], last[5], len(last)) == (["x", "1234", "100"], "/tmp", 7)
    assert last[0]
    assert any(line.split(":")[2:3] == ["100"] for line in group_for(caller, own).splitlines())


def test_the_files_are_known_by_image_and_caller_before_they_are_made(tmp_path: Path) -> None:
    spec = LaunchSpec("a", caller=ANNA)
    first, other = named(spec, INFO, Image(id="sha256:1")), named(spec, INFO, Image(id="sha256:2"))
    assert first is not None
    assert other is not None
    assert first.folder != other.folder
    assert [(m.kind, m.target, m.read_only) for m in first.mounts] == [
        ("bind", "/etc/passwd", True), ("bind", "/etc/group", True),
    ]  # fmt: skip
    assert first.folder is not None
    assert not first.folder.exists()
    theirs = replace(spec, mounts=(Mount("bind", str(tmp_path), "/etc/passwd"),))
    own = named(theirs, INFO, None)
    assert own is not None
    assert own.mounts == ()


def test_behind_sudo_the_caller_is_who_called_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "100")
    assert users.caller_ids() == (1234, 100)
    monkeypatch.setattr("os.geteuid", lambda: 5)
    monkeypatch.setattr("os.getuid", lambda: 5)
    monkeypatch.setattr("os.getgid", lambda: 6)
    assert users.caller_ids() == (5, 6)


def test_the_files_are_on_this_machine_even_where_the_home_is_not() -> None:
    home = str(state_dir())
    assert launch_dir(mounts=(("/", "ext4"), (home, "xfs"))) == state_dir()
    for kind in ("nfs4", "cifs", "fuse.sshfs", "lustre"):
        assert launch_dir(mounts=(("/", "ext4"), (home, kind))) == Path(f"/var/tmp/gpuconsole-{os.getuid()}")


def test_a_folder_that_is_somebody_elses_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launchfiles, "launch_dir", lambda: tmp_path / "taken")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "taken").symlink_to(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="somebody else's"):
        launchfiles.make_private(tmp_path / "taken/users/x")
    (tmp_path / "taken").unlink()
    launchfiles.make_private(tmp_path / "taken/users/x")
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "taken", tmp_path / "taken/users/x")} == {
        0o700
    }
