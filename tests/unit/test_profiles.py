"""Launch profiles: read with every mistake and its line, extended, filled from the environment, laid under options."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import BadFile, ConsoleError, ExitCode, Refused
from gpuconsole.launch import profilefile
from gpuconsole.launch.expansion import expand
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.layering import overlay
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profilefile import BadProfile, ProfileSource, is_profile_name, read_profiles
from gpuconsole.launch.profilemodel import schema
from gpuconsole.launch.profiles import ResolvedProfile, resolve
from gpuconsole.launch.profiletext import profile_table
from gpuconsole.launch.spec import SpecInvalid, VariableSource
from gpuconsole.launch.tomltext import line_of, table_text, with_table, written
from gpuconsole.services import profiles as service
from gpuconsole.services.profilereach import reaches
from gpuconsole.services.profiles import allow, explained, list_profiles, options_with, profile_sources, to_be_allowed

ENVIRONMENT = {"LR": "0.3", "HF_TOKEN": "hf_secret", "EMPTY": "", "TWO": "a b", "DB": "postgres://me:hush@db/x"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder one stands in, with data beside it and a home elsewhere."""
    for name in ("project/data", "outside", "home/.ssh", "home/work"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "project"


@pytest.fixture
def around(project: Path) -> Surroundings:
    return Surroundings(cwd=str(project), home=str(project.parent / "home"), environment=ENVIRONMENT, uid=1234, gid=100)


def source(text: str, folder: Path = Path("/p"), *, of_project: bool = True) -> ProfileSource:
    return read_profiles(folder / "gpuconsole.toml", text, shown="./gpuconsole.toml", of_project=of_project)


def profile(text: str, name: str = "train", folder: Path = Path("/p"), *, own: str = "") -> ResolvedProfile:
    mine = (source(own, Path("/home/me/.config"), of_project=False),) if own else ()
    return resolve(name, (source(text, folder), *mine), ENVIRONMENT)


def mistakes(text: str, name: str = "train") -> list[str]:
    with pytest.raises(BadProfile) as caught:
        profile(text, name)
    assert caught.value.exit_code is ExitCode.BAD_FILE
    return [str(each) for each in caught.value.mistakes]


# What is wrong in a file


def test_every_mistake_is_named_at_once_with_its_line_and_the_nearest_word() -> None:
    text = """
[profiles.train]
image = "a"
volmes = ["x"]
gpus = [1]
kind = "torchrn"
rm = "yes"
ports = [""]
name = ""
[profiles.train.env]
A = [1]
[profiles.'b c']
image = "x"
[profiles.good]
image = "x"
[profile.other]
image = "x"
"""
    found = source(text)
    assert [str(each) for each in sorted(found.mistakes, key=lambda each: each.line or 0)] == [
        "line 4, train.volmes: there is no such field; did you mean 'volumes'?",
        "line 5, train.gpus: must be a whole number or a text in quotes",
        "line 6, train.kind: must be one of shell, jupyter, tensorboard, torchrun, script, and is 'torchrn'; "
        "did you mean 'torchrun'?",
        "line 7, train.rm: must be true or false, and is 'yes'",
        "line 8, train.ports: a text in it is empty",
        "line 9, train.name: is empty; leave it out instead",
        "line 10, train.env: must be a table or a list of texts",
        "line 12, b c: cannot be a profile's name; use letters, digits, _ - and begin with a letter or digit",
        "line 16, profile: there is no such table; did you mean 'profiles'?",
    ]
    assert list(found.profiles) == ["good"], "what is right is there nevertheless"
    assert "has 7 mistakes" in BadProfile(found, found.mistakes_of("train")[:7]).message


@pytest.mark.parametrize("text", ["[profiles.train", "a = \x00", "x" * 10, "[profiles]\n[profiles]"])
def test_what_is_no_toml_is_a_bad_file(text: str) -> None:
    with pytest.raises(BadFile, match="is not TOML"):
        source(text)


@pytest.mark.parametrize("text", ["profiles = 3", "[profiles]\ntrain = 3", "[profiles]\ntrain = []"])
def test_what_is_no_table_is_told(text: str) -> None:
    assert "must be a table" in str(source(text).mistakes[0])


def test_what_is_hostile_in_a_file_is_harmless_where_it_is_told() -> None:
    found = source('[profiles.train]\n"a\\u001b[2J\\u202eb" = 1\nkind = "\\u001b[31mx"\n')
    assert len(found.mistakes) == 2
    assert all(str(each).isprintable() for each in found.mistakes)


# Extending, variables, paths


def test_what_extends_comes_on_top_item_by_item() -> None:
    found = profile("""
[profiles.base]
image = "base:1"
description = "not handed down"
volumes = ["./data:/data:ro", "runs:/runs"]
ports = [8888, "127.0.0.1:9999:6006"]
env = { A = 1, B = true, C = "x" }
command = ["python", "a.py"]
[profiles.more]
shm_size = "16g"
tmpfs = ["/scratch:size=1g"]
[profiles.train]
extends = ["base", "more"]
volumes = ["./other:/data", "/scratch2:/scratch"]
ports = ["7000:8888"]
env = ["A=2", "HF_TOKEN"]
command = "python 'b c.py' --lr ${LR}"
gpus = 2
rm = true
""")
    assert found.fields == {
        "image": "base:1",
        "volumes": ("runs:/runs", "/p/other:/data", "/scratch2:/scratch"),
        "ports": ("127.0.0.1:9999:6006", "7000:8888"),
        "environment": ("B=true", "C=x", "A=2", "HF_TOKEN"),
        "command": ("python", "b c.py", "--lr", "0.3"),
        "shm_size": "16g",
        "tmpfs": (),
        "gpus": "2",
        "auto_remove": True,
    }
    assert found.description is None


def test_circles_and_unknown_ones_are_named() -> None:
    text = '[profiles.a]\nextends = "b"\n[profiles.b]\nextends = ["a", "trian"]\n[profiles.train]\n'
    assert mistakes(text, "a") == [
        "line 4, b.extends: it goes in a circle: a → b → a",
        "line 4, b.extends: there is no profile 'trian'; did you mean 'train'?",
    ]
    assert mistakes('[profiles.train]\nextends = "train"\n') == [
        "line 2, train.extends: it goes in a circle: train → train"
    ]


def test_profiles_that_fork_and_meet_again_end_soon() -> None:
    fork = '[profiles.p{0}]\nextends = ["p{1}", "q{1}"]\n[profiles.q{0}]\nextends = "p{1}"\n'
    text = "".join(fork.format(number, number + 1) for number in range(60))
    (told,) = (each for each in mistakes(f"{text}[profiles.p60]\n[profiles.q60]\n", "p0") if "more than" in each)
    assert told.endswith("it comes to more than 100 profiles")


def test_a_project_may_build_on_ones_own_profiles_but_not_the_other_way_round() -> None:
    own = '[profiles.mine]\nimage = "mine:1"\nvolumes = ["./d:/d"]\n[profiles.up]\nextends = "base"\n'
    found = profile('[profiles.base]\nimage = "evil:1"\n[profiles.train]\nextends = "mine"\n', own=own)
    assert found.fields == {"image": "mine:1", "volumes": ("/home/me/.config/d:/d",)}
    with pytest.raises(BadProfile, match="no profile 'base'"):
        profile('[profiles.base]\nimage = "evil:1"\n', "up", own=own)


def test_variables_that_are_missing_are_named_and_those_that_are_replaced_need_not_be_set() -> None:
    base = '[profiles.base]\nname = "${GONE}"\nvolumes = ["${GONE2}/x:/x"]\n'
    above = '[profiles.train]\nextends = "base"\nname = "t"\nenv = { A = "${GONE3}", B = "${1}" }\n'
    assert mistakes(base + above) == [
        "line 3, base.volumes: GONE2 is not set in this shell; export it, or write ${GONE2:-DEFAULT}",
        "line 7, train.env: GONE3 is not set in this shell; export it, or write ${GONE3:-DEFAULT}",
    ]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${LR}", "0.3"), ("a${LR}b${LR}", "a0.3b0.3"), ("${GONE:-x y}", "x y"), ("${GONE-}", ""), ("${EMPTY:-x}", "x"),
        ("${EMPTY-x}", ""), ("$${LR}", "${LR}"), ("$LR $$ $(id) `id`", "$LR $$ $(id) `id`"), ("${TWO}", "a b"),
    ],
)  # fmt: skip
def test_variables_are_put_in_and_nothing_is_run(text: str, expanded: str) -> None:
    assert expand(text, ENVIRONMENT, set()) == expanded


@pytest.mark.parametrize("text", ["${GONE}", "${", "${}", "${1A}", "${LR", "${LR:?x}", "${A B}", "${LR/x/y}"])
def test_variables_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\$\{"):
        expand(text, ENVIRONMENT, set())


def test_paths_are_from_the_file_and_one_with_a_colon_can_be_mounted(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    (folder / "data").mkdir(parents=True)
    (folder / "x.env").write_text("X=1\n")
    (folder / "key").write_text("secret")
    found = profile(
        '[profiles.train]\nimage = "a"\nvolumes = ["data/:/data:ro", "~/x:/y", "named:/n"]\nenv_files = ["x.env"]\n'
        'secrets = { key = "key" }\nmounts = ["type=bind,source=data,target=/m"]\n',
        folder=folder,
    )
    (tmp_path / "x").mkdir()
    elsewhere = Surroundings(cwd="/", home=str(tmp_path), environment={}, uid=0, gid=0)
    spec = read_options(options_with(found, {}), elsewhere)
    assert {(m.source, m.target, m.read_only) for m in spec.mounts} == {
        (f"{folder}/data", "/data", True), (f"{tmp_path}/x", "/y", False), ("named", "/n", False),
        (f"{folder}/data", "/m", False),
    }  # fmt: skip
    assert spec.env_files == (f"{folder}/x.env",)
    assert spec.secrets[0].path == f"{folder}/key"


def test_a_variable_passed_on_by_its_own_name_stays_out_of_the_line(around: Surroundings) -> None:
    found = profile('[profiles.train]\nimage = "a"\nenv = { HF_TOKEN = "${HF_TOKEN}", OTHER = "${HF_TOKEN}" }\n')
    spec = read_options(options_with(found, {}), around)
    assert [(v.name, v.source) for v in spec.variables] == [
        ("HF_TOKEN", VariableSource.SHELL), ("OTHER", VariableSource.WRITTEN),
    ]  # fmt: skip


# The command line on top


def test_what_is_typed_comes_on_top() -> None:
    found = profile(
        '[profiles.train]\nimage = "a"\ncommand = ["x"]\nvolumes = ["/a:/data", "/b:/b"]\nrm = true\ngpus = 2\n'
        "ulimits = { memlock = -1 }\n"
    )
    typed = {"volumes": ("/c:/data:ro",), "gpus": "4", "auto_remove": False, "command": ("y", "z")}
    assert options_with(found, typed) == LaunchOptions(
        image="a", command=("y", "z"), volumes=("/b:/b", "/c:/data:ro"), gpus="4", ulimits=("memlock=-1",)
    )
    assert overlay({"ports": ("53:53/udp", "53:53")}, {"ports": ("54:53",)}) == {"ports": ("53:53/udp", "54:53")}
    assert overlay({"mounts": ("type=bind,src=/a,dst=/x",)}, {"tmpfs": ("/x/:size=1g",)}) == {
        "mounts": (), "tmpfs": ("/x/:size=1g",),
    }  # fmt: skip


def test_what_cannot_be_used_says_where_it_is_written(around: Surroundings) -> None:
    found = profile('[profiles.train]\nmemory = "1k"\n[profiles.train.env]\n"A B" = "x"\n')
    with pytest.raises(SpecInvalid) as caught:
        read_options(options_with(found, {"cpus": "x"}), around)
    told = [f"{each.field}: {each.message}" for each in explained(caught.value, found).problems]
    assert told[0].startswith("IMAGE: the profile train names none; write image")
    assert told[1].endswith("(./gpuconsole.toml, line 3)")
    assert told[2].endswith("the least an engine accepts (./gpuconsole.toml, line 2)")
    assert "toml" not in told[3]


@pytest.mark.parametrize(
    ("word", "can_be"),
    [("train", True), ("a-b_C9", True), ("a/b", False), ("a:1", False), ("a.b", False), ("a@b", False), ("-a", False)],
)
def test_a_word_that_looks_like_an_image_is_never_a_profile(word: str, can_be: bool) -> None:
    assert is_profile_name(word) is can_be


# Which files count


def test_the_projects_file_comes_before_the_users_and_hides_it(project: Path, around: Surroundings) -> None:
    own = service.user_file()
    own.parent.mkdir(parents=True)
    own.write_text('[profiles.train]\nimage = "own:1"\n[profiles.mine]\nimage = "own:2"\n')
    (project / "gpuconsole.toml").write_text('[profiles.train]\nimage = "project:1"\n[profiles.base]\n')
    (project / "src").mkdir()
    for folder in (project, project / "src"):
        listed = list_profiles(profile_sources(folder), around)
        assert [(each.name, each.source.of_project, each.hidden, each.abstract) for each in listed] == [
            ("train", True, False, False), ("base", True, False, True),
            ("train", False, True, False), ("mine", False, False, False),
        ]  # fmt: skip
    (project / "gpuconsole.toml").unlink()
    assert [each.name for each in list_profiles(profile_sources(project), around)] == ["train", "mine"]


@pytest.mark.parametrize(
    ("kind", "told"), [("folder", "is a folder"), ("pipe", "is a pipe"), ("link", "leads nowhere")]
)
def test_what_is_called_so_and_is_no_file_is_said_to_be_that(project: Path, kind: str, told: str) -> None:
    for path in (project / "gpuconsole.toml", service.user_file()):
        path.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "folder":
                path.mkdir()
            case "pipe":
                os.mkfifo(path)
            case _:
                path.symlink_to(path.parent / "nowhere")
        with pytest.raises(BadFile, match=rf"gpuconsole\.toml .*{told}"):
            profile_sources(project)
        path.rmdir() if kind == "folder" else path.unlink()
    assert profile_sources(project) == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("publish", "ports"),
        ("working-dir", "workdir"),
        ("environment", "env"),
        ("Volumes", "volumes"),
        ("workdri", "workdir"),
    ],
)
def test_a_field_called_as_docker_calls_it_names_ours(written: str, meant: str) -> None:
    (told,) = mistakes(f"[profiles.train]\nimage = 'a'\n{written} = 1\n")
    assert told.endswith(f"there is no such field; did you mean {meant!r}?")


def test_dockers_words_lead_to_fields_there_are() -> None:
    fields = schema()["$defs"]["Profile"]["properties"]
    assert set(profilefile._OTHERS_WORDS.values()) <= set(fields)
    assert not set(profilefile._OTHERS_WORDS) & set(fields)


# What a project's profile reaches


def reach(text: str, project: Path, around: Surroundings) -> dict[str, bool]:
    found = profile(f'[profiles.train]\nimage = "a"\n{text}', folder=project)
    return {each.words: each.dangerous for each in reaches(found, around)}


def test_within_its_folder_a_project_may_do_as_it_likes(project: Path, around: Surroundings) -> None:
    (project / "x.env").write_text("A=1\n")
    assert not reach(
        'volumes = [".:/w", "./data:/data"]\nenv_files = ["x.env"]\nports = [8888]\nenv = { LR = "${LR}" }\n'
        'tmpfs = ["/t"]\ngpus = "all"\n',
        project,
        around,
    )


def test_what_is_beyond_its_folder_is_named_and_what_hands_over_the_machine_is_dangerous(
    project: Path, around: Surroundings
) -> None:
    top = project.parent
    (project / "link").symlink_to(top / "home/.ssh")
    (project / "out").symlink_to(top / "outside")
    (project / "names.env").write_text("LR\nGONE_TOKEN\nHF_TOKEN\nOWN_TOKEN=x\n")
    for text, words, dangerous in (
        ('volumes = ["../outside:/o:ro"]', f"mounts {top}/outside, to be read", False),
        ('volumes = ["./out:/o"]', f"mounts {top}/outside, to be written", False),
        ('volumes = ["~/work:/o"]', f"mounts {top}/home/work, to be written", False),
        ('volumes = ["cache:/o"]', "mounts the volume cache, to be written", False),
        ('volumes = ["./link:/o:ro"]', f"mounts {top}/home/.ssh, to be read", True),
        ('volumes = ["~:/o"]', f"mounts {top}/home, to be written", True),
        ('volumes = ["../..:/o"]', f"mounts {top.parent}, to be written", True),
        ('mounts = ["type=bind,source=/,target=/host,readonly"]', "mounts /, to be read", True),
        ('volumes = ["/etc:/o"]', "mounts /etc, to be written", True),
        ('volumes = ["/proc/self:/o"]', "", True),
        ('devices = ["/dev/fuse"]', "gives the device /dev/fuse", True),
        ("privileged = true", "has every device and every right of this machine (privileged)", True),
        ('network = "host"', "uses the network of this machine", False),
        ('ipc = "container:x"', "uses the shared memory of x", False),
        ('ports = ["0.0.0.0:80:80"]', "opens 0.0.0.0:80:80 to the network", False),
        ('env = ["HF_TOKEN"]', "passes HF_TOKEN of this shell", False),
        ('env_files = ["names.env"]', "passes HF_TOKEN of this shell", False),
        ('env = { A = "${DB}" }', "passes DB of this shell", False),
        ('command = ["x", "${HF_TOKEN}"]', "passes HF_TOKEN of this shell", False),
        ('env_files = ["/etc/hostname"]', "reads /etc/hostname", False),
        ('secrets = { a = "~/work" }', f"reads {top}/home/work", False),
    ):
        found = reach(text, project, around)
        assert len(found) == 1, text
        assert not words or found == {words: dangerous}, text
        assert list(found.values()) == [dangerous], text


def test_a_socket_is_dangerous_wherever_it_is(project: Path, around: Surroundings) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("engine.sock")
        assert list(reach('volumes = ["./engine.sock:/s"]', project, around).values()) == [True]


def test_ones_own_profiles_are_not_asked_about(project: Path, around: Surroundings) -> None:
    mine = source('[profiles.train]\nimage = "a"\nvolumes = ["/:/host"]\n', project, of_project=False)
    assert not to_be_allowed(resolve("train", (mine,), ENVIRONMENT), around, force=())


def test_what_a_project_takes_from_ones_own_profile_is_asked_about(project: Path, around: Surroundings) -> None:
    own = '[profiles.mine]\nimage = "mine:1"\nvolumes = ["~/work:/w"]\nenv = ["HF_TOKEN"]\n'
    found = profile('[profiles.train]\nextends = "mine"\nimage = "theirs:1"\n', folder=project, own=own)
    assert [each.words for each in reaches(found, around)] == [
        f"mounts {project.parent}/home/work, to be written", "passes HF_TOKEN of this shell",
    ]  # fmt: skip


def test_what_was_allowed_holds_until_it_reaches_further(project: Path, around: Surroundings) -> None:
    text = '[profiles.train]\nimage = "a"\nvolumes = ["../outside:/o:ro"]\n'
    first = profile(text, folder=project)
    asked = to_be_allowed(first, around, force=())
    assert asked
    allow(first, asked)
    assert not to_be_allowed(profile(text + "gpus = 2\n", folder=project), around, force=())
    wider = profile(text.replace(":ro", ""), folder=project)
    assert to_be_allowed(wider, around, force=())
    assert not to_be_allowed(wider, around, force=("outside-project",))
    with pytest.raises(Refused, match="hands this machine"):
        to_be_allowed(profile(text.replace("../outside", "/"), folder=project), around, force=())


# Written


def test_a_table_is_put_into_a_file_and_the_rest_stays() -> None:
    text = '# mine\n[profiles.a] # first\nimage = "a"\n\n[profiles.a.env]\nX = """\n[profiles.b]\n"""\n\n'
    text += '# about b\n[profiles.b]\nimage = "b"\n'
    changed = with_table(text, "profiles.a", '[profiles.a]\nimage = "new"\n')
    assert changed == '# mine\n[profiles.a]\nimage = "new"\n\n# about b\n[profiles.b]\nimage = "b"\n'
    added = with_table(text, "profiles.c", '[profiles.c]\nimage = "c"\n')
    assert added == f'{text}\n[profiles.c]\nimage = "c"\n'
    assert with_table("", "profiles.c", "[profiles.c]\n") == "[profiles.c]\n"
    assert with_table("x = 1", "profiles.c", "[profiles.c]\n") == "x = 1\n\n[profiles.c]\n"
    assert line_of(text, "profiles.b.image") == 12
    assert line_of(text, "profiles.b.gone") == 11
    assert line_of(text, "other") is None


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(
    st.dictionaries(WORD, st.one_of(WORD, st.booleans(), st.integers(-9, 9), st.lists(WORD, max_size=9)), max_size=5)
)
def test_what_is_written_is_read_back(fields: dict[str, str | bool | int | list[str]]) -> None:
    assert tomllib.loads(table_text("a", fields)) == {"a": fields}
    assert all(char.isprintable() or char == "\n" for char in written("\x1b\u202e\x9b"))


def test_options_written_as_a_profile_give_the_same_options() -> None:
    options = LaunchOptions(
        image="a:1", command=("sh", "-c", "echo ${X} $$"), entrypoint="", name="n", gpus="2", gpu_path="cdi",
        volumes=("/a:/b:ro",), ports=("8888", "0.0.0.0:1:2/udp"), environment=("A=${B}", "LR"), env_files=("/x.env",),
        labels=("a=b=c", "flag="),
        working_dir="/w", user="me", hostname="h", shm_size="16g", ipc="host", network="n", memory="1g", cpus="1.5",
        ulimits=("memlock=-1",), restart="no", auto_remove=True, init=False, interactive=True,
        mounts=("type=bind,source=/a:b,target=/c",), tmpfs=("/t:size=1g",), secrets=("k=/f",), devices=("/dev/fuse",),
        group_add=("44",), extra_hosts=("a=1.2.3.4",), read_only=True, privileged=True, kind="torchrun", processes="2",
        nodes="2", rendezvous="h:1", rendezvous_id="r", logdir="/l", pull="never",
    )  # fmt: skip
    text = table_text("profiles.train", profile_table(options))
    found = profile(text)
    assert options_with(found, {}) == options
    assert profile_table(LaunchOptions("a")) == {"image": "a"}
    assert replace(options, force=("x",)) != options
    assert "force" not in profile_table(replace(options, force=("x",)))


def test_the_schema_that_is_shipped_is_the_models() -> None:
    shipped = Path(profilefile.__file__).with_name("profile.schema.json")
    assert json.loads(shipped.read_text()) == schema(), f"gpuconsole profiles schema > {shipped.name}"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    told: ConsoleError | None = None
    try:
        found = source(f"[profiles.a]\n{text}")
        resolve("a", (found,), {})
    except ConsoleError as error:
        told = error
    assert told is None or (told.message and told.hint)
