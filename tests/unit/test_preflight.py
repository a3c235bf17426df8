"""Preflight: each rule fires where it should, is silent where it should, and what mends it really silences it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.engine.model import EngineInfo, GpuPath, Image, Mount
from gpuconsole.engine.request import CreateRequest, DeviceRequest, PortRequest, Ulimit
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuStatus, ProcessKind
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.launch.changes import Change
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.preflight import Facts, Finding, Folder, Said, Severity, examine, standing
from gpuconsole.launch.preflight_gpu import RULES as GPU
from gpuconsole.launch.preflight_room import RULES as ROOM
from gpuconsole.launch.preflight_storage import RULES as STORAGE
from gpuconsole.launch.preflight_work import RULES as WORK
from gpuconsole.launch.spec import Caller, GpuWish, GpuWishKind, LaunchSpec, Variable
from gpuconsole.launch.units import GpuUnit
from gpuconsole.launch.work import Kind, Work
from gpuconsole.services.planning import LaunchPlan

GIB = 2**30
IMAGE = Image(id="sha256:" + "a" * 64, tags=("pytorch/pytorch:2.9.0",), user="1000", entrypoint=())
SPEC = LaunchSpec(image="pytorch/pytorch:2.9.0", mounts=(Mount("bind", "/home/me/project", "/workspace"),))
REQUEST = CreateRequest(image=SPEC.image, name="train", mounts=SPEC.mounts, shm_bytes=8 * GIB)
INFO = EngineInfo(endpoint="unix:///var/run/docker.sock", name="docker", memory_bytes=64 * GIB, root_dir="/srv/docker")
CALM = Facts(SPEC, REQUEST, INFO, uid=1000, home="/home/me", image=IMAGE, memory_available_bytes=40 * GIB,
             folders={"/home/me/project": Folder(True, True, 1000, "ext4")})  # fmt: skip
"""A launch with nothing wrong in it."""

OTHER = Change("image", "other/one:2")


def gpu(index: int = 0, *, name: str = "NVIDIA H200", used: int = 0, pids: tuple[int, ...] = ()) -> Gpu:
    processes = tuple(GpuProcess(pid, used, ProcessKind.COMPUTE) for pid in pids)
    return Gpu(
        index=index, uuid=f"GPU-{index:08d}-0000-4000-8000-000000000000", name=name, status=GpuStatus.OK,
        memory_total_bytes=140 * GIB, memory_used_bytes=used, processes=processes,
    )  # fmt: skip


def given(*gpus: Gpu, rest: tuple[Gpu, ...] = (), facts: Facts = CALM) -> Facts:
    choice = GpuChoice(tuple(GpuUnit(each) for each in gpus), "as asked")
    wish = GpuWish(GpuWishKind.COUNT, len(gpus))
    request = replace(facts.request, gpu_path=GpuPath.CDI, gpu_uuids=choice.uuids, ulimits=(Ulimit("memlock", -1, -1),))
    return replace(
        facts, choice=choice, gpus=(*gpus, *rest), request=request, spec=replace(facts.spec, gpus=wish)
    )  # fmt: skip


def spec(facts: Facts = CALM, **fields: object) -> Facts:
    return replace(facts, spec=replace(facts.spec, **fields))  # type: ignore[arg-type]


def request(facts: Facts = CALM, **fields: object) -> Facts:
    return replace(facts, request=replace(facts.request, **fields))  # type: ignore[arg-type]


def mounted(source: str, folder: Folder | None = None, *, target: str = "/data", read_only: bool = False) -> Facts:
    mounts = (*SPEC.mounts, Mount("bind", source, target, read_only))
    return replace(spec(mounts=mounts), folders={**CALM.folders, source: folder or Folder(True, True, 1000, "ext4")})


def image(**fields: object) -> Facts:
    return replace(CALM, image=replace(IMAGE, **fields))  # type: ignore[arg-type]


MIXED = given(gpu(0), gpu(1, name="NVIDIA L40S"))
ROOT = replace(image(user="root"), uid=1000)
COMMANDED = spec(command=("python", "train.py"))
TEGRA = replace(given(gpu()), machine=LaunchFacts(tegra=True))
REMOTE = replace(given(gpu()), info=replace(INFO, local=False, endpoint="ssh://box"))

CASES: dict[str, tuple[list[Facts], list[Facts]]] = {
    "gpu-wiring": (
        [replace(given(gpu()), wiring=Said("No way.", "Install it.")), replace(CALM, wiring=Said("No way."))],
        [given(gpu())],
    ),
    "gpu-missing": ([replace(given(gpu()), shortage=Said("3 were asked for.", "Ask for 1."))], [given(gpu())]),
    "engine-not-local": ([REMOTE], [given(gpu()), spec(REMOTE, gpus=None),
                                    spec(REMOTE, gpus=GpuWish(GpuWishKind.NONE))]),
    "gpu-busy": (
        [given(gpu(used=60 * GIB, pids=(611,))), given(gpu(used=60 * GIB)), given(gpu(pids=(611,)))],
        [given(gpu()), given(gpu(used=GIB // 2))],
    ),
    "gpu-order": (
        [MIXED],
        [given(gpu(0), gpu(1)), given(gpu(0)), request(MIXED, environment=(("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),)),
         replace(MIXED, image=replace(IMAGE, environment=(("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),)))],
    ),
    "gpu-variable": (
        [spec(given(gpu()), variables=(Variable("CUDA_VISIBLE_DEVICES", "1"),)),
         replace(given(gpu()), image=replace(IMAGE, environment=(("CUDA_VISIBLE_DEVICES", "1"),))),
         spec(given(gpu()), variables=(Variable("CUDA_VISIBLE_DEVICES", ""),)),
         spec(given(gpu(0), gpu(1)), variables=(Variable("CUDA_VISIBLE_DEVICES", "1,0"),))],
        [given(gpu()), spec(given(gpu(0), gpu(1)), variables=(Variable("CUDA_VISIBLE_DEVICES", "0, 1"),)),
         replace(given(gpu()), image=replace(IMAGE, environment=(("CUDA_VISIBLE_DEVICES", "0"),))),
         spec(variables=(Variable("CUDA_VISIBLE_DEVICES", ""),)),
         replace(given(gpu()), image=replace(IMAGE, environment=(("NVIDIA_VISIBLE_DEVICES", "all"),)))],
    ),
    "tegra-runtime": ([TEGRA], [request(TEGRA, gpu_path=GpuPath.RUNTIME), given(gpu())]),
    "path-relative": ([mounted("data")], [mounted("/data")]),
    "path-missing": ([mounted("/nowhere", Folder(False))], [mounted("/data"), mounted("/unknown", Folder())]),
    "path-unreadable": ([mounted("/theirs", Folder(True, False, 0, "ext4"))], [mounted("/data"),
                                                                               mounted("/unknown", Folder())]),
    "path-colon": ([mounted("/data/a:b"), mounted("/data", target="/a:b")], [mounted("/data")]),
    "dangerous-mount": (
        [mounted(path) for path in ("/", "//", "/etc", "/etc/", "/var/run/docker.sock", "/run/user/1/podman.sock")]
        + [mounted("/etc", read_only=True), mounted("/var/run/docker.sock", read_only=True), mounted("/run")]
        + [mounted("/home/me/link", Folder(True, True, 0, "ext4", real)) for real in ("/etc", "/run/docker.sock", "/")],
        [mounted("/home/me/etc"), mounted("/etcetera"), mounted("/srv/data")],
    ),
    "home-mount": (
        [mounted("/home/me"), mounted("/home/me/"), mounted("/home"),
         mounted("/srv/all", Folder(True, True, 1000, "ext4", "/home/me"))],
        [mounted("/home/me", read_only=True), mounted("/home/me/data"), mounted("/home/m"), mounted("/home/mei"),
         mounted("/home/me/here", Folder(True, True, 1000, "ext4", "/srv/data"))],
    ),
    "nothing-mounted": (
        [spec(mounts=()), spec(mounts=(Mount("bind", "/data", "/data", True),)),
         spec(mounts=(Mount("tmpfs", "", "/scratch"),)), spec(mounts=(), work=Work(Kind.TORCHRUN))]
        + [spec(mounts=(), auto_remove=True, work=Work(kind)) for kind in (Kind.JUPYTER, Kind.TORCHRUN, Kind.SCRIPT)]
        + [spec(mounts=(), auto_remove=True, command=words) for words in
           (("python", "-u", "/app/train.py"), ("/opt/conda/bin/torchrun", "-m", "work"), ("sh", "run.sh"))],
        [CALM, spec(mounts=(Mount("volume", "runs", "/runs"),)), spec(mounts=(), work=Work(Kind.TENSORBOARD)),
         spec(mounts=(), auto_remove=True), spec(mounts=(), auto_remove=True, work=Work(Kind.SHELL))]
        + [spec(mounts=(), auto_remove=True, command=words) for words in
           (("nvidia-smi",), ("python", "-c", "import torch"), ("sh", "-c", "id"))],
    ),
    "logdir-not-mounted": (
        [spec(mounts=mounts, work=Work(Kind.TENSORBOARD, logdir="/runs/a")) for mounts in
         ((), SPEC.mounts, (Mount("bind", "/x", "/runs/a/b"),), (Mount("volume", "x", "/run"),))],
        [spec(mounts=(mount,), work=Work(Kind.TENSORBOARD, logdir="/runs/a/")) for mount in
         (Mount("bind", "/x", "/runs"), Mount("volume", "x", "/runs/a"), Mount("bind", "/x", "/"))]
        + [spec(mounts=(), work=Work(Kind.TENSORBOARD, logdir="s3://runs")), CALM],
    ),
    "root-owned": (
        [ROOT, replace(CALM, request=replace(REQUEST, user="0")), image(user="")],
        [CALM, replace(ROOT, uid=0), replace(ROOT, info=replace(INFO, rootless=True)), spec(ROOT, mounts=()),
         spec(ROOT, caller=Caller(1000, 1000, "me")), replace(ROOT, image=None)],
    ),
    "no-passwd": (
        [replace(spec(user=user), request=replace(REQUEST, user=user)) for user in ("1234", "1000:1000")],
        [CALM, replace(spec(user="root"), request=replace(REQUEST, user="root")),
         spec(user="1000:1000", caller=Caller(1000, 1000, "me")),
         replace(spec(user="jovyan"), request=replace(REQUEST, user="jovyan"))],
    ),
    "selinux": ([replace(CALM, selinux=True)], [CALM, replace(spec(mounts=()), selinux=True)]),
    "root-squash": (
        [replace(ROOT, folders={"/home/me/project": Folder(True, True, 1000, kind)}) for kind in ("nfs4", "cifs")]
        + [spec(replace(ROOT, uid=0, folders={"/home/me/project": Folder(True, True, 0, "nfs4")}),
                caller=Caller(0, 0, "root"))],
        [ROOT, replace(CALM, folders={"/home/me/project": Folder(True, True, 1000, "nfs4")}),
         spec(replace(ROOT, folders={"/home/me/project": Folder(True, True, 1000, "nfs4")}),
              caller=Caller(1000, 1000, "me"))],
    ),
    "disk-space": (
        [replace(CALM, needed_bytes=20 * GIB, disk_free_bytes=10 * GIB)],
        [replace(CALM, needed_bytes=20 * GIB, disk_free_bytes=30 * GIB), replace(CALM, disk_free_bytes=1),
         replace(CALM, needed_bytes=20 * GIB)],
    ),
    "disk-low": (
        [replace(CALM, disk_free_bytes=GIB), replace(CALM, disk_free_bytes=GIB, needed_bytes=GIB // 2)],
        [CALM, replace(CALM, disk_free_bytes=4 * GIB), replace(CALM, disk_free_bytes=GIB, needed_bytes=4 * GIB)],
    ),
    "privileged": ([spec(privileged=True), spec(given(gpu()), privileged=True)], [CALM, given(gpu())]),
    "shm-size": (
        [spec(request(shm_bytes=64 * 2**20), shm_bytes=64 * 2**20), request(shm_bytes=None), spec(ipc_mode="none")],
        [CALM, spec(request(shm_bytes=64 * 2**20), memory_bytes=100 * 2**20), request(shm_bytes=512 * 2**20),
         spec(ipc_mode="host"), request(shm_bytes=GIB), spec(request(shm_bytes=None), ipc_mode="host"),
         spec(ipc_mode="container:other")],
    ),
    "memlock": (
        [request(given(gpu(0), gpu(1)), ulimits=(Ulimit("memlock", 65536, 65536),)),
         request(given(gpu()), ulimits=(), devices=(DeviceRequest("/dev/infiniband/uverbs0", "/dev/x"),)),
         spec(request(given(gpu()), ulimits=()), work=Work(Kind.TORCHRUN, nodes=2))],
        [given(gpu(0), gpu(1)), request(given(gpu(0), gpu(1)), ulimits=()), request(given(gpu()), ulimits=()),
         request(ulimits=()), spec(given(gpu()), work=Work(Kind.TORCHRUN, nodes=2)),
         request(given(gpu()), ulimits=(), devices=(DeviceRequest("/dev/fuse", "/dev/fuse"),))],
    ),
    "memory-limit": (
        [spec(memory_bytes=100 * GIB), spec(request(shm_bytes=80 * GIB), shm_bytes=80 * GIB),
         spec(request(shm_bytes=8 * GIB), shm_bytes=8 * GIB, memory_bytes=4 * GIB)],
        [CALM, spec(memory_bytes=32 * GIB), spec(request(shm_bytes=8 * GIB), shm_bytes=8 * GIB),
         replace(spec(memory_bytes=100 * GIB), info=replace(INFO, memory_bytes=None))],
    ),
    "host-memory": (
        [replace(CALM, memory_available_bytes=GIB)],
        [CALM, replace(CALM, memory_available_bytes=None),
         replace(spec(memory_bytes=GIB // 2), memory_available_bytes=GIB)],
    ),
    "port-taken": ([replace(CALM, ports_taken=(Said("Port 8888 is taken by x."),))], [CALM]),
    "name-taken": ([replace(CALM, name_taken=Said("The name is taken."))], [CALM]),
    "port-public": (
        [request(ports=(PortRequest(8888, 8888, host_ip=address),)) for address in ("0.0.0.0", "::", "192.168.1.5")],
        [CALM, *(request(ports=(PortRequest(8888, 8888, host_ip=address),)) for address in ("127.0.0.1", "::1"))],
    ),
    "open-jupyter": (
        [request(command=("jupyter", "lab", word)) for word in
         ("--ServerApp.token=", "--NotebookApp.token=''", '--IdentityProvider.token=""')]
        + [request(command=("jupyter", "lab", word, "")) for word in ("--ServerApp.token", "--NotebookApp.password")]
        + [request(command=("bash", "-c", "pip list && jupyter lab --ServerApp.token='' --port 1"))],
        [request(command=("jupyter", "lab")), request(command=("jupyter", "lab", "--ServerApp.token=abc")),
         request(command=("python", "train.py", "--token=")), request(command=("jupyter", "lab", "--LabApp.dir", "")),
         CALM],
    ),
    "image-verdict": ([replace(CALM, unfit=Said("It will not run here.", change=OTHER))], [CALM]),
    "image-latest": ([replace(CALM, moving=Said("latest means another image.", change=OTHER))], [CALM]),
    "image-unresolved": ([replace(CALM, unresolved="It is not here.")], [CALM]),
    "entrypoint": (
        [replace(COMMANDED, image=replace(IMAGE, entrypoint=words)) for words in
         (("python",), ("/usr/bin/trainer", "--now"), ("sh", "-c", "serve"), ("/entrypoint.sh",), ("sh", "/run.sh"),
          ("tini", "--", "python"), ("dumb-init", "vllm", "serve"))],
        [COMMANDED, replace(CALM, image=replace(IMAGE, entrypoint=("python",))), replace(COMMANDED, image=None),
         spec(replace(COMMANDED, image=replace(IMAGE, entrypoint=("python",))), entrypoint=("",))]
        + [replace(COMMANDED, image=replace(IMAGE, entrypoint=words)) for words in
           (("tini", "--"), ("/opt/nvidia/nvidia_entrypoint.sh",), ("/usr/local/bin/docker-entrypoint.sh",), (),
            ("tini", "-g", "--", "start.sh"), ("/bin/bash", "/opt/nvidia/nvidia_entrypoint.sh"), ("/usr/bin/env",))],
    ),
    "secret-in-sight": (
        [replace(CALM, secrets_written={option: ("one", "two")}) for option in ("COMMAND", "--env", "--label")], [CALM],
    ),
}  # fmt: skip
"""Slug → facts with which it fires, and facts with which it is silent."""


def slugs(facts: Facts) -> list[str]:
    return [finding.slug for finding in examine(facts)]


def test_a_calm_launch_has_nothing_to_say() -> None:
    assert slugs(CALM) == []
    assert slugs(given(gpu(0), gpu(1))) == []


@pytest.mark.parametrize(
    ("slug", "number"), [(slug, n) for slug, (fires, _) in CASES.items() for n in range(len(fires))]
)
def test_fires(slug: str, number: int) -> None:
    found = [finding for finding in examine(CASES[slug][0][number]) if finding.slug == slug]
    assert found, slugs(CASES[slug][0][number])
    for finding in found:
        assert finding.sentence.endswith(".")
        assert "\n" not in finding.sentence + finding.fix
        assert finding.field == "IMAGE" or finding.field == "COMMAND" or finding.field.startswith("--")


@pytest.mark.parametrize(("slug", "number"), [(s, n) for s, (_, silent) in CASES.items() for n in range(len(silent))])
def test_is_silent(slug: str, number: int) -> None:
    assert slug not in slugs(CASES[slug][1][number])


def test_every_rule_has_both_kinds_of_cases() -> None:
    rules: tuple[Callable[[Facts], object], ...] = (*GPU, *STORAGE, *ROOM, *WORK)
    everything = [facts for fires, silent in CASES.values() for facts in (*fires, *silent)]
    for rule in rules:
        told = [list(rule(facts)) for facts in everything]  # type: ignore[call-overload]
        assert any(told), rule
        assert not all(told), rule
    assert all(fires and silent for fires, silent in CASES.values())


def test_refusals_come_first_and_only_what_can_be_lifted_is() -> None:
    facts = replace(mounted("/etc"), name_taken=Said("The name is taken."), moving=Said("It moves."), selinux=True)
    found = examine(facts)
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, key=list(Severity).index)
    assert set(severities) == set(Severity)
    assert {finding.slug for finding in standing(found, ())} == {"dangerous-mount", "name-taken"}
    assert {finding.slug for finding in standing(found, ("dangerous-mount",))} == {"name-taken"}
    assert {finding.slug for finding in standing(found, ("dangerous-mount", "name-taken"))} == {"name-taken"}


def test_a_link_says_where_it_leads() -> None:
    facts = mounted("/srv/x", Folder(True, True, 0, "ext4", "/etc"))
    (found,) = [finding for finding in examine(facts) if finding.slug == "dangerous-mount"]
    assert found.sentence.startswith("/srv/x (it leads to /etc) would let")
    (found,) = [finding for finding in examine(mounted("/etc/")) if finding.slug == "dangerous-mount"]
    assert "leads" not in found.sentence


def test_every_refusal_that_can_be_lifted_says_how_once() -> None:
    from gpuconsole.launch.spec import Force

    found = [finding for fires, _ in CASES.values() for facts in fires for finding in examine(facts)]
    liftable = {finding.slug for finding in found if finding.forceable}
    elsewhere = {Force.OUTSIDE_PROJECT, Force.DANGEROUS_DEVICE}  # asked before there is a launch; with the devices
    assert liftable == set(Force) - elsewhere
    for finding in found:
        lift = f"--force {finding.slug}"
        assert (finding.sentence + finding.remedy).count(lift) == finding.forceable, finding


def test_a_privileged_container_has_all_gpus_and_says_so_where_some_were_not_chosen() -> None:
    some = spec(given(gpu(0), rest=(gpu(1),)), privileged=True)
    assert "All GPUs can be used" in next(f.sentence for f in examine(some) if f.slug == "privileged")
    every = spec(given(gpu(0), gpu(1)), privileged=True)
    assert "All GPUs" not in next(f.sentence for f in examine(every) if f.slug == "privileged")


def test_what_is_refused_is_told_once_and_what_is_lifted_still_is() -> None:
    from gpuconsole.services.preflight import warnings

    found = examine(replace(mounted("/etc"), moving=Said("It moves.")))
    assert warnings(found) == ("It moves. 'gpuconsole pin' keeps this one.",)
    lifted = warnings(found, ("dangerous-mount",))
    assert len(lifted) == 2
    assert not any("--force" in note for note in lifted)


def test_a_busy_gpu_names_its_holders_and_the_one_that_is_free() -> None:
    facts = given(gpu(0, used=60 * GIB, pids=(611,)), rest=(gpu(1),))
    facts = replace(facts, holders={facts.choice.uuids[0]: ("train.py (pid 611) of mei",)})
    (found,) = [finding for finding in examine(facts) if finding.slug == "gpu-busy"]
    assert "held by train.py (pid 611) of mei; 80.0 of 140.0 GiB are free" in found.sentence
    assert found.change is not None
    assert found.change.value == "device=1"
    crowded = given(gpu(0, used=60 * GIB, pids=(611,)), rest=(gpu(1, used=60 * GIB, pids=(9,)),))
    assert all(finding.change is None for finding in examine(crowded) if finding.slug == "gpu-busy")


def test_hostile_paths_stay_in_their_sentence() -> None:
    (found,) = [f for f in examine(mounted("/a\n\x1b[31mb", Folder(False))) if f.slug == "path-missing"]
    assert "\x1b" not in found.sentence + found.fix
    assert "\n" not in found.sentence + found.fix


def _change(found: Finding) -> str:
    assert found.change is not None
    return found.change.option


def test_changes_name_options_that_exist() -> None:
    from dataclasses import fields

    from gpuconsole.launch.options import LaunchOptions

    known = {field.name for field in fields(LaunchOptions)}
    changes = {
        _change(finding)
        for fires, _ in CASES.values()
        for facts in fires
        for finding in examine(facts)
        if finding.change is not None
    }
    assert len(changes) >= 8
    assert changes <= known


def test_secrets_are_found_wherever_they_were_written_and_told_once_for_each_place() -> None:
    from gpuconsole.launch.spec import VariableSource
    from gpuconsole.services.preflight import _secrets

    token = "hf_abcdefghijklmnopqrstuvwxyz123456"
    wanted = LaunchSpec(
        "a", command=("train", "--token", token),
        variables=(Variable("A_TOKEN", token), Variable("URL", f"https://x:{token}@h/"), Variable("LR", "0.1"),
                   Variable("B_TOKEN", token, VariableSource.SHELL), Variable("C_TOKEN", token, VariableSource.FILE)),
        labels=(("who", token), ("team", "vision")),
    )  # fmt: skip
    found = _secrets(wanted)
    assert found == {"COMMAND": ("the command",), "--env": ("A_TOKEN", "URL"), "--label": ("label who",)}
    told = [each for each in examine(replace(CALM, secrets_written=found)) if each.slug == "secret-in-sight"]
    assert [each.field for each in told] == ["COMMAND", "--env", "--label"]
    assert told[0].sentence.startswith("The command holds a secret")
    assert told[1].sentence.startswith("A_TOKEN, URL hold a secret")
    assert not any(token in each.sentence for each in told)
    assert _secrets(LaunchSpec("a", command=("train",))) == {}


def test_the_disk_of_a_pull_is_known_without_asking_a_registry_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuconsole.images.catalog import shipped_catalog
    from gpuconsole.images.pins import Pin, write_pins
    from gpuconsole.launch.spec import PullPolicy
    from gpuconsole.services import catalog, preflight
    from gpuconsole.services.lockfile import LockFile
    from gpuconsole.services.startingimage import StartingImage

    known = shipped_catalog()
    first = replace(known.images[0], sizes={"linux/amd64": 3 * GIB})
    monkeypatch.setattr(catalog, "load_catalog", lambda: replace(known, images=(first, *known.images[1:])))
    name, digest = first.reference, "sha256:" + "d" * 64
    info = replace(INFO, root_dir=str(tmp_path), architecture="x86_64")
    pin = Pin(name, digest, platform="linux/amd64", download_bytes=5 * GIB)
    (tmp_path / "gpuconsole.lock").write_text(write_pins("", {name: pin}, where="x"))
    lock = LockFile(tmp_path / "gpuconsole.lock")

    def needed(image: StartingImage, *, policy: PullPolicy = PullPolicy.MISSING, on: EngineInfo = info) -> int | None:
        wanted = LaunchSpec(image=image.written, pull=policy)
        plan = LaunchPlan(wanted, REQUEST, on, GpuChoice(), GpuRoute(GpuPath.NONE, ""), image=image)
        return preflight._disk(plan)[0]

    absent = StartingImage(name, name, name)
    assert needed(absent) == 9 * GIB
    assert needed(replace(absent, lock=lock)) == 15 * GIB, "the lock file knows the very image"
    assert needed(absent, policy=PullPolicy.NEVER) is None
    assert needed(replace(absent, image=IMAGE)) is None
    assert needed(StartingImage("elsewhere/own:1", "elsewhere/own:1", "elsewhere/own:1")) is None
    assert needed(absent, on=replace(info, architecture="riscv64")) is None
    assert needed(absent, on=replace(info, local=False)) is None
