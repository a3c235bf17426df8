"""What mends a finding: one option becomes another, and nothing else does."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from gpuconsole.engine.model import Mount
from gpuconsole.engine.request import PortRequest
from gpuconsole.launch.changes import Change, changed, changed_items
from gpuconsole.launch.fields import Surroundings, parse_port
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.preflight import Facts, Finding, Folder, examine
from gpuconsole.launch.preflight_work import republished
from gpuconsole.launch.spec import SpecInvalid, Variable
from tests.unit.test_preflight import CALM, CASES, given, gpu, image, request

AROUND = Surroundings("/home/me/project", "/home/me", {}, 1000, 1000)
FULL = LaunchOptions(
    image="a/b:latest", command=("python", "train.py"), entrypoint="x", name="train", gpus="2", gpu_path="cdi",
    volumes=(".:/data",), ports=("8888:8888",), environment=("A=1",), env_files=("e",), labels=("l=1",), user="root",
    shm_size="64m", ipc="none", memory="1g", ulimits=("memlock=1",), restart="always", auto_remove=True,
    privileged=True, kind="script", force=("disk-space",),
)  # fmt: skip


def found(facts: Facts, slug: str) -> Finding:
    (one,) = [finding for finding in examine(facts) if finding.slug == slug]
    return one


def written(facts: Facts, **options: object) -> Facts:
    """The same facts, as they were typed."""
    typed = replace(LaunchOptions(image=facts.spec.image), **options)  # type: ignore[arg-type]
    return replace(facts, spec=replace(facts.spec, written=typed))


@pytest.mark.parametrize(
    ("change", "items"),
    [
        (Change("x", "c", add=True), ("a", "b", "c")),
        (Change("x", "b", add=True), ("a", "b")),
        (Change("x", "c", instead="a"), ("c", "b")),
        (Change("x", None, instead="a"), ("b",)),
        (Change("x", "c", instead="gone"), ("a", "b")),
        (Change("x", None), ()),
        (Change("x", "c"), ("c",)),
    ],
)
def test_a_list_keeps_its_other_items(change: Change, items: tuple[str, ...]) -> None:
    assert changed_items(("a", "b"), change) == items


def test_every_change_of_every_rule_changes_its_option_and_no_other() -> None:
    seen = set()
    for slug, (fires, _) in CASES.items():
        for finding in (each for facts in fires for each in examine(facts) if each.slug == slug and each.change):
            assert finding.change is not None
            after = changed(FULL, finding.change)
            differ = {field.name for field in fields(FULL) if getattr(FULL, field.name) != getattr(after, field.name)}
            assert differ == {finding.change.option}, finding
            assert type(getattr(after, finding.change.option)) in (
                type(getattr(FULL, finding.change.option)),
                type(None),
            )
            seen.add(slug)
    assert len(seen) >= 15, seen


@pytest.mark.parametrize(
    ("typed", "address", "number", "expected"),
    [
        ("8888:8888", None, 8890, "8890:8888"),
        ("8888:8888", None, 0, "8888"),
        ("0.0.0.0:53:53/udp", "127.0.0.1", None, "53:53/udp"),
        ("0.0.0.0::80", "127.0.0.1", None, "80"),
        ("192.168.1.5:80:80", None, 81, "192.168.1.5:81:80"),
        ("[::]:80:80", None, 0, "[::]::80"),
    ],
)
def test_a_port_elsewhere_is_that_port_and_keeps_the_rest(
    typed: str, address: str | None, number: int | None, expected: str
) -> None:
    spec = read_options(LaunchOptions("a", ports=("1:1", typed)), AROUND)
    change = republished(spec, spec.ports[1], host_ip=address, host_port=number)
    assert change == Change("ports", expected, instead=typed)
    before, after = spec.ports[1], parse_port(expected)
    assert after == replace(
        before,
        host_ip=before.host_ip if address is None else address,
        host_port=before.host_port if number is None else number,
    )
    assert republished(spec, PortRequest(9, 9)) is None, "one that nobody wrote, as a kind of work's own"


def test_a_variable_that_hides_gpus_goes_and_that_of_an_image_is_overridden() -> None:
    name = "CUDA_VISIBLE_DEVICES"
    two = given(gpu(0), gpu(1))
    mine = replace(two, spec=replace(two.spec, variables=(Variable(name, "1"),)))
    assert found(written(mine, environment=("A=1", f"{name}=1")), "gpu-variable").change == Change(
        "environment", None, instead=f"{name}=1"
    )
    assert found(written(mine, environment=(name,)), "gpu-variable").change == Change("environment", None, instead=name)
    assert found(written(mine, env_files=("its",)), "gpu-variable").change is None, "it is in a file"
    assert found(written(mine, environment=(f"{name}=0", f"{name}=1")), "gpu-variable").change is None
    theirs = replace(two, image=image(environment=((name, "1"),)).image)
    assert found(theirs, "gpu-variable").change == Change("environment", f"{name}=0,1", add=True)


def test_the_home_is_mounted_to_be_read_and_only_it() -> None:
    mounts = (Mount("bind", "/home/me", "/home/me"), Mount("bind", "/data", "/data"))
    facts = replace(
        CALM, spec=replace(CALM.spec, mounts=mounts), folders={"/home/me": Folder(True, True, 1000, "ext4")}
    )
    for typed in ("~:/home/me", "/home/me:/home/me/", "..:/home/me:rw"):
        change = found(written(facts, volumes=("/data:/data", typed)), "home-mount").change
        assert change is not None
        assert (change.instead, change.value) == (typed, f"{typed.removesuffix(':rw')}:ro")
    assert found(written(facts, mounts=("type=bind,source=/home/me,target=/home/me",)), "home-mount").change is None
    assert found(facts, "home-mount").change is None


@pytest.mark.parametrize(
    ("folder", "mounts", "expected"),
    [
        ("/home/me/project", (), ".:/workspace"),
        ("/home/me/project", (Mount("bind", "/d", "/workspace", True),), ".:/results"),
        ("/home/me", (), None),
        ("/home", (), None),
        ("/", (), None),
        ("/etc", (), None),
    ],
)
def test_results_go_to_no_folder_that_would_be_warned_of(
    folder: str, mounts: tuple[Mount, ...], expected: str | None
) -> None:
    facts = replace(CALM, spec=replace(CALM.spec, mounts=mounts, folder=folder))
    one = found(facts, "nothing-mounted")
    assert one.change == (Change("volumes", expected, add=True) if expected else None)
    assert (expected or "FOLDER") in one.fix


def test_a_limit_of_locked_memory_is_lifted_where_it_was_written() -> None:
    limited = given(gpu(0), gpu(1))
    facts = request(limited, ulimits=read_options(LaunchOptions("a", ulimits=("memlock=64",)), AROUND).ulimits)
    assert found(written(facts, ulimits=("stack=9", "memlock=64")), "memlock").change == Change(
        "ulimits", "memlock=-1", instead="memlock=64"
    )
    assert found(facts, "memlock").change is None, "it is not known where"


def test_a_freer_gpu_comes_in_the_place_of_the_busy_one() -> None:
    busy = gpu(1, used=60 * 2**30, pids=(611,))
    change = found(given(gpu(0), busy, rest=(gpu(2),)), "gpu-busy").change
    assert change == Change("gpus", "device=0,2")


@pytest.mark.parametrize(
    "options",
    [
        LaunchOptions("a", auto_remove=True, restart="always"),
        LaunchOptions("a", shm_size="2g", ipc="host"),
        LaunchOptions("a", shm_size="2g", memory="1g"),
        LaunchOptions("a", hostname="x", network="container:y"),
        LaunchOptions("a", ports=("80", "81"), network="host"),
    ],
)
def test_what_is_wrong_beside_another_option_is_mended_by_its_change(options: LaunchOptions, tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid) as caught:
        read_options(options, AROUND)
    (problem,) = caught.value.problems
    assert problem.change is not None
    read_options(changed(options, problem.change), AROUND)
