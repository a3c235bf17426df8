"""The launch form's fields and what they mean: everything that can be launched, to the letter, a profile's as well."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from gpuconsole.cli.launch import launch
from gpuconsole.cli.launch_options import typed_fields
from gpuconsole.cli.launch_profile import launch_spec
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profilemodel import Profile
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.launch.work import Kind
from gpuconsole.services.profilefilling import fill_from, profiles_to_choose
from gpuconsole.services.session import Session
from gpuconsole.tui.present import launchform
from gpuconsole.tui.present.launchform import Shape
from gpuconsole.tui.present.launchtyped import Texts, Ticks, clean, options_of, texts_of

BY_A_TICK = {"auto_remove": "remove at end", "interactive": "terminal"}
"""Fields of the options that no field of the form writes, and the tick that does."""
NOT_IN_THE_FORM = {
    "image": "PROFILE|IMAGE, which is a field each",
    "word": "PROFILE|IMAGE, which is a field each",
    "detach": "it is always so in the console",
    "wait": "the console shows the output",
    "when_free": "a tick",
    "dry_run": "the docker line is always shown",
    "form": "F3 saves as a profile; compose files are printed by the command line",
    "as_json": "of the command line alone",
    "write_files": "of what --dry-run prints",
    "auto_remove": "a tick",
    "interactive": "a tick",
    "tty": "a tick",
}
"""Options of ``gpuconsole launch`` that no field writes, and why."""
EVERYTHING = LaunchOptions(
    image="pytorch:1", command=("python", "-c", "print(1)\nprint('two words')"), entrypoint="", name="train",
    gpus="device=0", gpu_path="cdi", volumes=("/a b:/a", "type=bind,source=/x:y,target=/x"), ports=("8888", "1:2/udp"),
    environment=("A=1", "B=two words", "HF_TOKEN=hf_0123456789abcdefghij", "LINES=a\nb\tc", "HOME"),
    env_files=("/etc/os-release",), labels=("team=vision", "note=a\nb"), working_dir="/w", user="1000:1000",
    hostname="box", shm_size="16g", ipc="private", network="bridge", memory="32g", cpus="4", ulimits=("memlock=-1",),
    restart="no", auto_remove=True, init=False, interactive=True, mounts=("type=volume,source=v,target=/v",),
    tmpfs=("/t:size=8g",), secrets=("netrc=/etc/os-release",), devices=("/dev/fuse",), group_add=("44",),
    extra_hosts=("up=host-gateway",), read_only=True, privileged=True, kind="script", processes="2", nodes="2",
    rendezvous="a:1", rendezvous_id="x", logdir="/l", pull="never", force=("privileged",),
)  # fmt: skip


def from_form(texts: Texts, **written: str) -> LaunchOptions:
    """What the form launches when it was filled with a profile, and some fields were written over."""
    typed = {**texts.typed, **written}
    ticks = Ticks(remove=texts.options.auto_remove, terminal=texts.options.interactive)
    options, problems = options_of(typed, ticks, uuids={"0": "GPU-zero"}, filled=texts)
    assert problems == ()
    return options


def test_everything_that_can_be_launched_is_reached_from_the_form() -> None:
    written = {field.writes for field in launchform.FIELDS if field.key != "profile"}
    assert written | BY_A_TICK.keys() == {field.name for field in fields(LaunchOptions)}
    assert not written & BY_A_TICK.keys()


def test_every_option_of_the_command_line_is_reached_from_the_form() -> None:
    given = {parameter.name: ("x",) for parameter in launch.params if parameter.name not in NOT_IN_THE_FORM}
    written = {field.writes for field in launchform.FIELDS}
    names = {name for name in typed_fields({**given, "interactive": False, "tty": False}, command=("x",)) if name}
    assert names <= written, names - written
    assert {parameter.name for parameter in launch.params} >= NOT_IN_THE_FORM.keys(), "the list names what is there"


def test_what_a_person_types_is_what_is_launched() -> None:
    for field in fields(LaunchOptions):
        assert getattr(EVERYTHING, field.name) not in (field.default, None), f"{field.name} is not in this test"
    typed = {
        "image": " pytorch:1 ", "command": "python -c 'print(1)'", "entrypoint": "''", "name": "train", "gpus": "2",
        "gpu_path": "cdi", "volumes": "/a b:/a\n./c:/c:ro\n", "ports": "8888 6006:6006",
        "environment": "A=1 'B=two words'", "env_files": "a.env 'b c.env'", "labels": "x=1", "workdir": "/w",
        "user": "me", "hostname": "box", "shm": "16g", "ipc": "host", "network": "host", "memory": "32g", "cpus": "4",
        "ulimits": "memlock=-1", "restart": "always", "init": "no", "mounts": "'type=bind,source=/a b,target=/d'",
        "tmpfs": "/t:size=8g /u", "secrets": "netrc=~/.netrc", "devices": "/dev/fuse", "group_add": "44 video",
        "extra_hosts": "up:host-gateway", "read_only": "yes", "privileged": "on", "kind": "torchrun",
        "processes": "2", "nodes": "2", "rendezvous": "a:1", "rendezvous_id": "x", "logdir": "/l", "pull": "never",
        "force": "privileged dangerous-mount",
    }  # fmt: skip
    assert set(typed) == {field.key for field in launchform.FIELDS} - {"profile"}
    options, problems = options_of(typed, Ticks(remove=True, terminal=True), uuids={})
    assert problems == ()
    assert options == LaunchOptions(
        image="pytorch:1", command=("python", "-c", "print(1)"), entrypoint="", name="train", gpus="2", gpu_path="cdi",
        volumes=("/a b:/a", "./c:/c:ro"), ports=("8888", "6006:6006"), environment=("A=1", "B=two words"),
        env_files=("a.env", "b c.env"), labels=("x=1",), working_dir="/w", user="me", hostname="box", shm_size="16g",
        ipc="host", network="host", memory="32g", cpus="4", ulimits=("memlock=-1",), restart="always",
        auto_remove=True, init=False, interactive=True, mounts=("type=bind,source=/a b,target=/d",),
        tmpfs=("/t:size=8g", "/u"), secrets=("netrc=~/.netrc",), devices=("/dev/fuse",), group_add=("44", "video"),
        extra_hosts=("up:host-gateway",), read_only=True, privileged=True, kind="torchrun", processes="2", nodes="2",
        rendezvous="a:1", rendezvous_id="x", logdir="/l", pull="never", force=("privileged", "dangerous-mount"),
    )  # fmt: skip


def test_an_empty_form_asks_for_what_the_command_line_does_without_options() -> None:
    assert options_of({"image": "a"}, Ticks(), uuids={}) == (LaunchOptions(image="a"), ())


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [("command", "echo 'a", "quote"), ("ports", '"1', "quote"), ("init", "perhaps", "neither yes nor no"),
     ("read_only", "maybe", "neither yes nor no"), ("environment", "HF_TOKEN=********", "not known any more")],
)  # fmt: skip
def test_what_cannot_be_read_is_named_beside_its_field(key: str, text: str, says: str) -> None:
    _, problems = options_of({"image": "a", key: text}, Ticks(), uuids={})
    (problem,) = problems
    assert says in problem.message
    field = launchform.field_of(problem)
    assert field is not None
    assert field.key == key


# --- a profile in the fields ---


def test_what_fills_the_fields_is_a_line_of_harmless_text_without_secrets() -> None:
    texts = texts_of(replace(EVERYTHING, environment=(*EVERYTHING.environment, "X=\x1b[2J\u202e")))
    for field in launchform.FIELDS:
        text = texts.typed.get(field.key, "")
        for line in text.split("\n") if field.shape is Shape.LINES else [text]:
            assert clean(line) == line, field.key
        assert "hf_0123456789abcdefghij" not in text
    assert "HF_TOKEN=********" in texts.typed["environment"]


def test_a_profile_that_nobody_touched_means_exactly_itself() -> None:
    assert from_form(texts_of(EVERYTHING)) == EVERYTHING
    assert from_form(texts_of(LaunchOptions(image=""))) == LaunchOptions(image="")


@pytest.mark.parametrize("name", [field.name for field in fields(LaunchOptions) if field.name not in BY_A_TICK])
def test_what_is_written_over_a_field_changes_nothing_else(name: str) -> None:
    field = next(each for each in launchform.FIELDS if each.writes == name)
    text = "no" if field.shape is Shape.SWITCH else "changed"
    changed = from_form(texts_of(EVERYTHING), **{field.key: text})
    assert replace(changed, **{name: getattr(EVERYTHING, name)}) == EVERYTHING
    assert getattr(changed, name) in ("changed", ("changed",), False)


def test_items_that_stay_mean_what_they_meant_when_another_is_added() -> None:
    texts = texts_of(EVERYTHING)
    more = from_form(
        texts,
        environment=f"{texts.typed['environment']} MORE=1",
        command=f"{texts.typed['command']} --fast",
        labels=f"x=1 {texts.typed['labels']}",
    )
    assert more.environment == (*EVERYTHING.environment, "MORE=1")
    assert more.command == (*EVERYTHING.command, "--fast")
    assert more.labels == ("x=1", *EVERYTHING.labels)


def test_two_that_are_shown_alike_are_never_taken_one_for_the_other() -> None:
    texts = texts_of(LaunchOptions("a", command=("a\nb", "a\tb", "a b")))
    assert from_form(texts).command == ("a\nb", "a\tb", "a b")
    _, problems = options_of({**texts.typed, "command": "'a b'"}, Ticks(), uuids={}, filled=texts)
    assert "stands for two values" in problems[0].message


def test_a_gpu_that_a_profile_names_stays_as_it_names_it_and_a_ticked_one_is_the_one_that_was_seen() -> None:
    texts = texts_of(EVERYTHING)
    assert from_form(texts).gpus == "device=0"
    assert from_form(texts, gpus="device=0,1").gpus == "device=GPU-zero,1"


PROFILES = """
[profiles.base]
volumes = [".:/workspace", "./runs:/out"]
workdir = "/workspace"
env = { MODE = "fast", KEY_OF = "${SECRET_KEY:-none}" }
tty = false

[profiles.plain]
image = "pytorch:1"

[profiles.shell]
extends = "base"
image = "pytorch:1"
kind = "shell"
tty = true
rm = true

[profiles.jupyter]
extends = "base"
image = "pytorch:1"
kind = "jupyter"
ports = [8888]
gpus = "none"

[profiles.tensorboard]
extends = "base"
image = "pytorch:1"
kind = "tensorboard"
logdir = "/out"

[profiles.torchrun]
extends = "base"
image = "pytorch:1"
kind = "torchrun"
gpus = 2
nproc_per_node = 2
nnodes = 2
rdzv_endpoint = "node-1:29500"
rdzv_id = "run7"
network = "host"
command = ["train.py", "--lr", "${LR:-0.1}", "two words"]

[profiles.script]
extends = ["base", "shell"]
kind = "script"
command = '''prepare.py --text "a b"'''
env = { TEXT = "several\\nlines\\t." }

[profiles.every]
image = "pytorch:1"
name = "every"
entrypoint = ""
command = "sleep 10"
gpus = "device=0"
gpu_path = "cdi"
mounts = ["type=bind,source=.,target=/p,readonly"]
tmpfs = ["/t:size=1g"]
ports = ["0.0.0.0:80:80"]
env = ["A=1", "HOME"]
env_files = ["vars.env"]
secrets = { note = "note.txt" }
labels = { team = "vision" }
user = "1000:1000"
group_add = [44]
hostname = "box"
shm_size = "1g"
ipc = "shareable"
extra_hosts = { up = "host-gateway" }
memory = "8g"
cpus = 2
ulimits = { memlock = -1 }
devices = ["/dev/fuse"]
rm = false
init = false
read_only = true
privileged = true
restart = "no"
pull = "never"
"""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """In a folder of a project with profiles of every kind."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "vars.env").write_text("FROM=file\n")
    (tmp_path / "note.txt").write_text("x")
    (tmp_path / "gpuconsole.toml").write_text(PROFILES)
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SECRET_KEY", "hf_0123456789abcdefghij")
    return Session(host=f"unix://{tmp_path}/none.sock")


def test_the_profiles_of_this_test_are_of_every_kind_and_have_every_field(session: Session) -> None:
    import tomllib

    written = tomllib.loads(PROFILES)["profiles"]
    assert {each.get("kind") for each in written.values()} == {None, *map(str, Kind)}
    left = Profile.model_fields.keys() - {name for each in written.values() for name in each}
    assert left == {"description"}
    assert {name for name, _ in profiles_to_choose(session)} == written.keys()


@pytest.mark.parametrize("name", ["plain", "shell", "jupyter", "tensorboard", "torchrun", "script", "every"])
def test_a_profile_gives_the_same_launch_as_on_the_command_line(session: Session, name: str) -> None:
    filling = fill_from(session, name)
    options = from_form(texts_of(filling.options))
    spec: LaunchSpec = read_options(options, Surroundings.current())
    asked = launch_spec(session, name, None, {"force": ("outside-project",)}, ask=False).spec
    assert replace(asked, force=frozenset()) == spec
    assert asked.written == replace(options, force=("outside-project",))
    assert asked.profile == name
    assert asked.folder == spec.folder


def test_of_a_profile_without_an_image_the_rest_is_filled(session: Session) -> None:
    texts = texts_of(fill_from(session, "base").options)
    assert "image" not in texts.typed
    assert from_form(texts, image="pytorch:2") == replace(texts.options, image="pytorch:2")
