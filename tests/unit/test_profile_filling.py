"""A profile that begins a launch and is then changed, and what was typed saved as one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpuconsole.core.errors import BadFile, Conflict, NotFound, Refused, UsageError
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profilefile import BadProfile
from gpuconsole.launch.spec import LaunchSpec, SpecInvalid
from gpuconsole.services.drafts import Drafts, harmless
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.profilefilling import allowed, fill_from, profiles_to_choose, to_be_asked
from gpuconsole.services.profiles import user_file
from gpuconsole.services.profilesaving import Saved, save_options
from gpuconsole.services.session import Session
from gpuconsole.services.shownsecrets import references_of
from gpuconsole.services.weighing import weigh
from gpuconsole.tui.present.launchtyped import Ticks, options_of, texts_of

SECRET = "hf_0123456789abcdefghij"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder below a project's, with nothing in it yet."""
    folder = tmp_path / "project" / "below"
    folder.mkdir(parents=True)
    for name in ("data", "outside"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return folder


@pytest.fixture
def session(project: Path) -> Session:
    return Session(host=f"unix://{project}/none.sock")


def profiles(project: Path, text: str) -> Path:
    path = project.parent / "gpuconsole.toml"
    path.write_text(text)
    return path


# --- what is chosen from ---


def test_every_profile_can_be_chosen_and_what_is_wrong_with_one_is_said(project: Path, session: Session) -> None:
    assert profiles_to_choose(session) == ()
    profiles(project, '[profiles.a]\ndescription = "For [b]all\\u001b[2J"\nimage = "x:1"\n[profiles.b]\nimage = 3\n')
    found = dict(profiles_to_choose(session))
    assert found["a"].startswith("For [b]all, x:1, ")
    assert "\x1b" not in found["a"]
    assert found["b"].startswith("1 mistake: line 5")
    with pytest.raises(BadProfile):
        fill_from(session, "b")
    with pytest.raises(NotFound, match="There is no profile c"):
        fill_from(session, "c")
    with pytest.raises(NotFound):
        fill_from(session, "x:1")
    profiles(project, "no toml")
    for look in (lambda: profiles_to_choose(session), lambda: fill_from(session, "a")):
        with pytest.raises(BadFile, match="is not TOML"):
            look()


# --- what must be allowed ---


def words(session: Session, options: LaunchOptions) -> list[str]:
    return [reach.words for reach in to_be_asked(session, fill_from(session, "train"), options)]


def test_what_was_taken_out_need_not_be_allowed(project: Path, session: Session) -> None:
    top = project.parent.parent
    profiles(
        project,
        '[profiles.low]\nimage = "x:1"\nvolumes = ["../outside:/o", "../data:/replaced"]\n'
        '[profiles.train]\nextends = "low"\nvolumes = ["../data:/d", ".:/replaced"]\nnetwork = "host"\n'
        'ports = ["0.0.0.0:80:80"]\n',
    )
    options = fill_from(session, "train").options
    outside = f"mounts {top}/outside, to be written"
    data = f"mounts {top}/data, to be written"
    everything = {outside, data, "uses the network of this machine", "opens 0.0.0.0:80:80 to the network"}
    assert set(words(session, options)) == everything
    less = replace(options, volumes=tuple(text for text in options.volumes if "outside" not in text), network=None)
    assert set(words(session, less)) == everything - {outside, "uses the network of this machine"}
    assert words(session, replace(options, force=("outside-project",))) == []
    added = replace(less, volumes=(*less.volumes, "/srv:/s"))
    assert set(words(session, added)) == set(words(session, less)), "what a person writes themselves is not asked about"


def test_what_was_allowed_is_remembered_only_where_it_was_all(project: Path, session: Session) -> None:
    profiles(project, '[profiles.train]\nimage = "x:1"\nvolumes = ["../outside:/o", "../data:/d"]\n')
    filling = fill_from(session, "train")
    whole = filling.options
    part = replace(whole, volumes=whole.volumes[:1])
    allowed(session, filling, to_be_asked(session, filling, part))
    assert words(session, whole), "a part of it is not all of it"
    allowed(session, filling, to_be_asked(session, filling, whole))
    assert words(session, whole) == []


def test_what_would_hand_over_the_machine_is_refused_unless_it_was_taken_out(project: Path, session: Session) -> None:
    profiles(project, '[profiles.train]\nimage = "x:1"\nvolumes = ["/etc:/o"]\nprivileged = true\n')
    options = fill_from(session, "train").options
    with pytest.raises(Refused, match="mounts /etc"):
        words(session, options)
    with pytest.raises(Refused, match="privileged"):
        words(session, replace(options, volumes=()))
    assert words(session, replace(options, volumes=(), privileged=False)) == []


# --- what was typed is saved ---


def saved(
    session: Session, options: LaunchOptions, name: str = "kept", *, to_user: bool = False, replace: bool = False
) -> Saved:
    return save_options(session, name, options, to_user=to_user, replace=replace)


EVERYTHING = LaunchOptions(
    image="x:1", command=("python", "-c", "print('${A} $B')\n"), entrypoint="/bin/sh", name="train", gpus="device=0",
    gpu_path="cdi", volumes=("named:/n",), ports=("8888", "0.0.0.0:53:53/udp"),
    environment=("A=1", "B=two ${words}\n"), labels=("team=vision",), working_dir="/w", user="1000:1000",
    hostname="box", shm_size="1g", ipc="private", network="host", memory="32g", cpus="1.5", ulimits=("memlock=-1",),
    restart="no", init=False, interactive=False, mounts=("type=volume,source=vol,target=/v",), tmpfs=("/t:size=8g",),
    devices=("/dev/fuse",), group_add=("44", "video"), extra_hosts=("up=host-gateway",), read_only=True,
    privileged=True, kind="torchrun", processes="2", nodes="2", rendezvous="a:1", rendezvous_id="x", pull="never",
)  # fmt: skip


@pytest.mark.parametrize("to_user", [False, True])
def test_what_was_saved_launches_the_same_again(project: Path, session: Session, to_user: bool) -> None:
    (project / "vars.env").write_text("V=1\n")
    (project / "note").write_text("x")
    (project / "data").mkdir()
    (project / "c:d").mkdir()
    outside = project.parent.parent / "a b"
    outside.mkdir()
    (project.parent / "gpuconsole.toml").write_text("# mine\n")
    ports = {"ports": ()}  # a network of the host's has none
    relative = {
        "volumes": (*EVERYTHING.volumes, f"{outside}:/a", "./data:/data:ro", ".:/here", "../below:/below"),
        "mounts": (*EVERYTHING.mounts, f"type=bind,source={project}/c:d,target=/cd"),
        "env_files": ("vars.env",),
        "secrets": ("note=./note",),
    }
    options = replace(EVERYTHING, **ports, **relative)  # type: ignore[arg-type]
    before = read_options(options, Surroundings.current())
    done = saved(session, options, to_user=to_user)
    assert done.notes == ()
    assert done.path == (user_file() if to_user else project.parent / "gpuconsole.toml")
    after = read_options(fill_from(session, "kept").options, Surroundings.current())
    assert after == before
    if not to_user:
        assert done.path.read_text().startswith("# mine\n")
        assert '"./below/data:/data:ro"' in done.text, "others who have the project have it elsewhere"


@pytest.mark.parametrize(
    ("options", "gone", "note"),
    [
        (LaunchOptions("x:1", environment=(f"HF_TOKEN={SECRET}", "A=1")), {}, "taken from the shell"),
        (LaunchOptions("x:1", environment=(f"URL=https://me:{SECRET}@host/",)), {}, "taken from the shell"),
        (LaunchOptions("x:1", labels=(f"token={SECRET}", "a=b")), {"labels": {"a": "b"}}, "A label"),
        (LaunchOptions("x:1", command=("train", "--token", SECRET)), {"command": None}, "The command"),
        (LaunchOptions("x:1", entrypoint=f"/run?token={SECRET}"), {"entrypoint": None}, "The entrypoint"),
        (LaunchOptions("x:1", force=("privileged",), privileged=True), {"force": None}, "--force privileged"),
    ],
)  # fmt: skip
def test_no_secret_is_written_and_what_is_left_open_is_said(
    project: Path, session: Session, options: LaunchOptions, gone: dict[str, object], note: str
) -> None:
    done = saved(session, options)
    assert note in " ".join(done.notes)
    text = done.path.read_text()
    assert SECRET not in text + " ".join(done.notes)
    table = tomllib.loads(text)["profiles"]["kept"]
    for name, value in gone.items():
        assert table.get(name) == value


def test_a_name_that_is_there_is_not_replaced_unasked_and_a_wrong_one_is_refused(
    project: Path, session: Session
) -> None:
    path = profiles(project, '[profiles.kept]\nimage = "old:1"  # mine\n')
    with pytest.raises(Conflict, match="has a profile kept already"):
        saved(session, LaunchOptions("x:1"))
    assert path.read_text() == '[profiles.kept]\nimage = "old:1"  # mine\n'
    saved(session, LaunchOptions("x:1"), replace=True)
    assert fill_from(session, "kept").options.image == "x:1"
    with pytest.raises(UsageError):
        saved(session, LaunchOptions("x:1"), "no:name")
    with pytest.raises(SpecInvalid):
        saved(session, LaunchOptions("x:1", ports=("x",)), "other")
    path.write_text("no toml")
    with pytest.raises(BadFile):
        saved(session, LaunchOptions("x:1"), "other")
    assert path.read_text() == "no toml"


# --- secrets of the shell that look like none ---

HIDDEN = {"WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567", "DB_PASSWORD": "hunter"}
WITH_SECRETS = """
[profiles.train]
image = "a/b:1"
command = ["./train.sh", "${WANDB_API_KEY}", "--db=me/${DB_PASSWORD}"]
workdir = "/w/${DB_PASSWORD}"
labels = { note = "x-${DB_PASSWORD}" }
env = { URL = "db/${DB_PASSWORD}" }
"""


def test_what_a_profile_took_from_the_shell_is_neither_shown_nor_kept_nor_saved(
    project: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in HIDDEN.items():
        monkeypatch.setenv(name, value)
    profiles(project, WITH_SECRETS)
    filling = fill_from(session, "train")
    assert filling.taken == set(HIDDEN)
    texts = texts_of(filling.options, filling.hidden)
    drafts = Drafts(path=project / "drafts.db")
    drafts.remember("/typed", harmless(texts.typed, filling.hidden))
    drafts.remember("/pasted", harmless(texts_of(filling.options).typed, filling.hidden))
    done = save_options(session, "kept", filling.options, to_user=False, replace=False, taken=filling.taken)
    everything = f"{texts.typed} {drafts.last('/typed')} {drafts.last('/pasted')} {done.path.read_text()} {done.notes}"
    assert drafts.last("/typed")["image"] == "a/b:1"
    drafts.close()
    assert not [value for value in HIDDEN.values() if value in everything]
    # What is hidden is meant all the same, and what was saved launches the same.
    untouched, problems = options_of(texts.typed, Ticks(), uuids={}, filled=texts)
    assert (untouched, problems) == (filling.options, ())
    assert fill_from(session, "kept").options == filling.options
    assert "taken from the shell" in " ".join(done.notes)
    # Written over, what hides a value stands for nothing.
    _, problems = options_of({**texts.typed, "workdir": "/v/********"}, Ticks(), uuids={}, filled=texts)
    assert [problem.field for problem in problems] == ["--workdir"]


def test_the_line_of_a_form_that_a_profile_filled_hides_what_the_profile_took(
    project: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", HIDDEN["DB_PASSWORD"])
    spec = replace(read_options(LaunchOptions("a", command=("x", "hunter")), session.surroundings()), taken=frozenset())
    assert references_of(spec, session.surroundings().environment).holds("hunter") is False
    seen: list[LaunchSpec] = []

    def planned(session: Session, spec: LaunchSpec, **more: object) -> LaunchPlan:
        seen.append(spec)
        raise NotFound("no further")

    monkeypatch.setattr("gpuconsole.services.weighing.plan_launch", planned)
    monkeypatch.setattr("gpuconsole.services.weighing.local_image", lambda *_: None)
    monkeypatch.setattr(Session, "engine", SimpleNamespace(info=lambda: None))
    weigh(session, LaunchOptions("a", command=("x", "hunter")), taken=("DB_PASSWORD",))
    assert [references_of(each, session.surroundings().environment).holds("hunter") for each in seen] == [True]
