"""Who a container runs as: the caller, with a name and a home that torch accepts, or the image's own user."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.services.session import Session
from tests.engine.launching import launched, names
from tests.rig.engines import Engine
from tests.rig.podman import Podman

pytestmark = pytest.mark.engine
UID, GID, DATA_GID = 12345, 12300, 12301
PROVE = """
import getpass, json, os, pwd, grp, tempfile, torch
from torch._inductor.runtime.cache_dir_utils import cache_dir
torch.save(torch.ones(3), "/out/model.pt")
os.makedirs(torch.hub.get_dir(), exist_ok=True)
os.makedirs(os.environ.get("TRITON_CACHE_DIR", "/tmp/triton"), exist_ok=True)
entry = pwd.getpwuid(os.getuid())
print(json.dumps({
    "ids": [os.getuid(), os.getgid()], "groups": sorted(os.getgroups()), "user": getpass.getuser(),
    "name": entry.pw_name, "home": os.path.expanduser("~"), "entry_home": entry.pw_dir, "shell": entry.pw_shell,
    "group": grp.getgrgid(os.getgid()).gr_name, "root": pwd.getpwuid(0).pw_name, "inductor": cache_dir(),
    "hub": torch.hub.get_dir(), "writable": os.access(os.path.expanduser("~"), os.W_OK),
}))
"""


def prove(engine: Engine, folder: Path, **options: object) -> dict[str, object]:
    """What a container with torch in it says of its user, after it wrote into a folder of the host."""
    around = replace(Surroundings.current(), uid=UID, gid=GID, user="anna", groups=(GID, DATA_GID))
    wanted = LaunchOptions(
        engine.load("pytorch"), command=("python", "-c", PROVE), gpus="none", volumes=(f"{folder}:/out",),
        auto_remove=True,
    )  # fmt: skip
    session = Session(host=engine.host)
    try:
        result, said = launched(session, read_options(replace(wanted, **options), around), follow=True)  # type: ignore[arg-type]
    finally:
        session.close()
    assert result.ending is not None
    assert result.ending.exit_code == 0, said
    answer: dict[str, object] = json.loads(said.splitlines()[-1])
    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the caller's, in a group of theirs."""
    path = tmp_path / "results"
    path.mkdir()
    os.chown(path, UID, DATA_GID)
    return path


def test_the_caller_has_a_name_a_home_and_caches_and_owns_what_torch_writes(
    engine_modern: Engine, folder: Path, tmp_path: Path
) -> None:
    said = prove(engine_modern, folder)
    assert said == {
        "ids": [UID, GID], "groups": [GID, DATA_GID], "user": "anna", "name": "anna", "group": "anna", "root": "root",
        "home": "/tmp", "entry_home": "/tmp", "shell": "/bin/bash", "inductor": "/tmp/.cache/torchinductor",
        "hub": "/tmp/.cache/torch/hub", "writable": True,
    }  # fmt: skip
    made = (folder / "model.pt").stat()
    assert (made.st_uid, made.st_gid) == (UID, GID)
    assert names(engine_modern) == [], "nothing is left of looking into the image"


def test_a_file_system_that_cannot_be_written_has_a_home_all_the_same(engine_modern: Engine, folder: Path) -> None:
    around = replace(Surroundings.current(), uid=UID, gid=GID, user="anna", groups=(GID, DATA_GID))
    command = ("sh", "-c", "id -un; touch ~/x /out/x && ! touch /x 2>/dev/null && echo kept")
    image, volumes = engine_modern.load("small"), (f"{folder}:/out",)
    wanted = LaunchOptions(image, command=command, gpus="none", volumes=volumes, read_only=True, auto_remove=True)
    session = Session(host=engine_modern.host)
    _, said = launched(session, read_options(wanted, around), follow=True)
    session.close()
    assert said.splitlines() == ["anna", "kept"]


def test_the_images_user_stays_what_the_image_says(engine_modern: Engine, folder: Path) -> None:
    said = prove(engine_modern, folder, user="image")
    assert (said["ids"], said["name"], said["home"]) == ([0, 0], "root", "/root")
    assert (folder / "model.pt").stat().st_uid == 0


def test_podman_takes_the_callers_name_as_well(podman: Podman, folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    around = replace(Surroundings.current(), uid=UID, gid=GID, user="anna", groups=(GID,))
    command = ("sh", "-c", "id; echo $HOME; touch ~/x /out/x")
    wanted = LaunchOptions(podman.load("small"), command=command, gpus="none", volumes=(f"{folder}:/out",), init=False)
    session = Session(host=podman.host)
    _, said = launched(session, read_options(wanted, around), follow=True)
    session.close()
    assert said.splitlines() == [f"uid={UID}(anna) gid={GID}(anna) groups={GID}(anna)", "/tmp"]
    assert (folder / "x").stat().st_uid == UID
