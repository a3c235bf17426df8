"""The options of a launch, read; every wrong one named at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import ExitCode
from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import PortRequest, Ulimit
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.spec import Caller, FieldProblem, Force, LaunchSpec, PullPolicy, SpecInvalid, VariableSource

IMAGE = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    (tmp_path / "project/data set").mkdir(parents=True)
    (tmp_path / "home/runs").mkdir(parents=True)
    return Surroundings(
        cwd=str(tmp_path / "project"),
        home=str(tmp_path / "home"),
        environment={"HF_TOKEN": "hf_secret", "EMPTY": ""},
        uid=1234,
        gid=100,
    )


def spec_of(around: Surroundings, **options: object) -> LaunchSpec:
    return read_options(replace(LaunchOptions(IMAGE), **options), around)  # type: ignore[arg-type]


def problem_of(around: Surroundings, **options: object) -> str:
    with pytest.raises(SpecInvalid) as caught:
        spec_of(around, **options)
    (problem,) = caught.value.problems
    assert caught.value.message == f"{problem.field}: {problem.message}."
    return caught.value.message


def test_nothing_but_an_image() -> None:
    assert read_options(LaunchOptions(IMAGE), Surroundings.current()) == LaunchSpec(IMAGE)


def test_every_wrong_field_is_named_at_once(around: Surroundings) -> None:
    with pytest.raises(SpecInvalid) as caught:
        spec_of(
            around,
            image="Not An Image",
            gpus="two",
            volumes=("x", "./gone:/x", "./data set:/ok"),
            ports=("99999", "8888"),
            memory="1k",
            environment=("UNSET_HERE",),
            force=("everything",),
        )
    assert [problem.field for problem in caught.value.problems] == [
        "IMAGE", "--gpus", "--volume", "--volume", "--publish", "--env", "--memory", "--force",
    ]  # fmt: skip
    assert caught.value.message.startswith("8 options cannot be used:\n  IMAGE: ")
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_folder_that_is_not_there_is_not_found(around: Surroundings, tmp_path: Path) -> None:
    with pytest.raises(SpecInvalid) as caught:
        spec_of(around, volumes=("./gone:/data",))
    assert caught.value.exit_code is ExitCode.NOT_FOUND
    assert caught.value.message == f"--volume: {tmp_path}/project/gone is not there."


def test_volumes(around: Surroundings, tmp_path: Path) -> None:
    def mount(text: str) -> Mount:
        return spec_of(around, volumes=(text,)).mounts[0]

    project, home = f"{tmp_path}/project", f"{tmp_path}/home"
    assert mount(".:/workspace") == Mount("bind", project, "/workspace")
    assert mount("./data set:/data:ro") == Mount("bind", f"{project}/data set", "/data", read_only=True)
    assert mount("~/runs:/runs/") == Mount("bind", f"{home}/runs", "/runs")
    assert mount("~:/home") == Mount("bind", home, "/home")
    assert mount("../home/runs:/r:rw") == Mount("bind", f"{home}/runs", "/r")
    assert mount("/:/host:ro") == Mount("bind", "/", "/host", read_only=True)
    assert mount("runs:/runs") == Mount("volume", "runs", "/runs")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/data", "only one side"),
        (".:data", "no absolute path"),
        (".:/", "nothing can be mounted on /"),
        (":/data", "names nothing to mount"),
        (".:/a:z", "'z' is no mount option"),
        (".:/a:b:c", "too many ':'"),
        ("my data:/x", "./my data"),
        ("a\0b:/x", "NUL byte"),
        ("a:/x", "'a' can be no volume's name; use 2 characters at least, or write ./a"),
    ],
)
def test_volumes_that_are_refused(around: Surroundings, text: str, told: str) -> None:
    assert told in problem_of(around, volumes=(text,))


def test_paths_of_an_engine_elsewhere_are_its_own(around: Surroundings) -> None:
    away = replace(around, engine_is_local=False)
    assert spec_of(away, volumes=("/not/here:/x",)).mounts == (Mount("bind", "/not/here", "/x"),)
    assert "not on this machine" in problem_of(away, volumes=("./here:/x",))


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("8888", PortRequest(8888)),
        ("8888:80", PortRequest(80, 8888)),
        (":80", PortRequest(80, 0)),
        ("0.0.0.0:8888:80", PortRequest(80, 8888, "0.0.0.0")),
        ("192.168.1.5::80", PortRequest(80, 0, "192.168.1.5")),
        ("[::1]:8888:80/udp", PortRequest(80, 8888, "::1", "udp")),
        ("6006/tcp", PortRequest(6006)),
    ],
)
def test_ports_are_on_loopback_unless_an_address_is_written(around: Surroundings, text: str, port: PortRequest) -> None:
    assert spec_of(around, ports=(text,)).ports == (port,)


@pytest.mark.parametrize(
    "text", ["", "x", "80:", "0:80", "1:2:3:4", "300.0.0.1:1:2", "70000:80", "80/quic", "8000-8010", "٣"]
)
def test_ports_that_are_refused(around: Surroundings, text: str) -> None:
    assert problem_of(around, ports=(text,)).startswith("--publish: ")


def test_variables_from_files_the_shell_and_the_line(around: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "project/train.env").write_bytes(
        b"\xef\xbb\xbf# notes\nA=1\n  B= two 'x' # no comment\r\nHF_TOKEN\nGONE\n\n"
    )
    spec = spec_of(around, env_files=("train.env",), environment=("A=over", "HF_TOKEN", "C=", "D=x=y", "EMPTY"))
    assert [(v.name, v.value, v.source) for v in spec.variables] == [
        ("A", "over", VariableSource.WRITTEN),
        ("B", " two 'x' # no comment", VariableSource.FILE),
        ("HF_TOKEN", "hf_secret", VariableSource.SHELL),
        ("C", "", VariableSource.WRITTEN),
        ("D", "x=y", VariableSource.WRITTEN),
        ("EMPTY", "", VariableSource.SHELL),
    ]
    assert spec.env_files == (f"{tmp_path}/project/train.env",)
    assert "hf_secret" not in repr(spec)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"A B=1\n", "line 1: 'A B' is no variable's name: it has white space in it"),
        (b"ok=1\n=x\n", "line 2: a variable's name is missing"),
        (b"ok=1\n\nA=x\0y\n", "line 3: it has a NUL byte"),
        (b"A\0=1\n", "line 1: it has a NUL byte"),
        (b"\xff\xfe", "not UTF-8"),
        (b"A=" + b"x" * 5_000_000, "above 4 MiB"),
    ],
)
def test_environment_files_that_are_refused_are_bad_files(
    around: Surroundings, tmp_path: Path, content: bytes, told: str
) -> None:
    (tmp_path / "project/bad.env").write_bytes(content)
    with pytest.raises(SpecInvalid) as caught:
        spec_of(around, env_files=("bad.env",))
    assert f"--env-file: {tmp_path}/project/bad.env" in caught.value.message
    assert told in caught.value.message
    assert caught.value.exit_code is ExitCode.BAD_FILE


def test_environment_files_that_cannot_be_read(around: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "project/folder.env").mkdir()
    for path, told, code in (
        ("folder.env", "cannot be read (Is a directory)", ExitCode.BAD_FILE),
        ("gone.env", "is not there", ExitCode.NOT_FOUND),
    ):
        with pytest.raises(SpecInvalid) as caught:
            spec_of(around, env_files=(path,))
        assert told in caught.value.message
        assert caught.value.exit_code is code


def test_of_several_problems_the_one_of_the_line_itself_decides(around: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "project/bad.env").write_bytes(b"=\n")
    wrong: list[tuple[dict[str, object], ExitCode]] = [
        ({"env_files": ("bad.env", "gone.env")}, ExitCode.NOT_FOUND),
        ({"env_files": ("bad.env",), "cpus": "x"}, ExitCode.USAGE),
        ({"volumes": ("./gone:/x",), "cpus": "x"}, ExitCode.USAGE),
    ]
    for options, code in wrong:
        with pytest.raises(SpecInvalid) as caught:
            spec_of(around, **options)
        assert caught.value.exit_code is code


def test_a_variable_of_the_shell_that_is_no_text_is_refused(around: Surroundings, tmp_path: Path) -> None:
    odd = replace(around, environment={"ODD": "a\udcff"})
    (tmp_path / "project/odd.env").write_text("ODD\n")
    assert "--env: ODD of this shell has bytes that are no UTF-8" in problem_of(odd, environment=("ODD",))
    assert "--env-file: ODD, which" in problem_of(odd, env_files=("odd.env",))


def test_the_choice_of_gpus_is_not_overridden_by_a_variable(around: Surroundings) -> None:
    assert "use --gpus" in problem_of(around, environment=("NVIDIA_VISIBLE_DEVICES=0",))
    assert spec_of(around, gpus="none", environment=("NVIDIA_VISIBLE_DEVICES=0",)).variables


def test_the_rest(around: Surroundings) -> None:
    spec = spec_of(
        around,
        command=("python", "-c", "print('x')"),
        entrypoint="",
        name="t1",
        gpu_path="hook",
        labels=("team=vision", "flag"),
        working_dir="/workspace",
        user="me",
        hostname="node-1",
        shm_size="16g",
        ipc="private",
        network="bridge",
        memory="64 GiB",
        cpus="1.5",
        ulimits=("memlock=-1", "nofile=1024:4096", "stack=67108864", "core=unlimited"),
        restart="on-failure:3",
        init=False,
        interactive=True,
        pull="always",
        force=("engine-not-local",),
    )
    assert spec == LaunchSpec(
        IMAGE,
        command=("python", "-c", "print('x')"),
        entrypoint=("",),
        name="t1",
        gpu_path=GpuPath.HOOK,
        labels=(("team", "vision"), ("flag", "")),
        working_dir="/workspace",
        caller=Caller(1234, 100, "user"),
        hostname="node-1",
        shm_bytes=16 * 2**30,
        ipc_mode="private",
        network="bridge",
        memory_bytes=64 * 2**30,
        cpus=1.5,
        ulimits=(
            Ulimit("memlock", -1, -1),
            Ulimit("nofile", 1024, 4096),
            Ulimit("stack", 67108864, 67108864),
            Ulimit("core", -1, -1),
        ),
        restart_policy="on-failure:3",
        init=False,
        interactive=True,
        pull=PullPolicy.ALWAYS,
        force=frozenset((Force.ENGINE_NOT_LOCAL,)),
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "a"}, "'a' cannot be a name; use 2 characters at least"),
        ({"name": ""}, "begin with a letter or digit"),
        ({"name": "_"}, "begin with a letter or digit"),
        ({"entrypoint": ""}, "give a command after --"),
        ({"name": "-x"}, "cannot be a name"),
        ({"name": "a b"}, "cannot be a name"),
        ({"image": ""}, "name an image"),
        ({"image": "a:b:c"}, "IMAGE"),
        ({"gpu_path": "usb"}, "known: auto, cdi, hook, runtime"),
        ({"gpu_path": "none"}, "--gpus none"),
        ({"user": "a b"}, "no user"),
        ({"ipc": "public"}, "no ipc mode"),
        ({"working_dir": "src"}, "no absolute path"),
        ({"memory": "much"}, "not a size"),
        ({"shm_size": "-1"}, "not a size"),
        ({"cpus": "nan"}, "no number of cores"),
        ({"cpus": "0"}, "no number of cores"),
        ({"ulimits": ("files=3",)}, "no resource"),
        ({"ulimits": ("nofile=10:5",)}, "soft limit above"),
        ({"ulimits": ("nofile",)}, "no limit"),
        ({"ulimits": ("nofile=-2",)}, "no limit"),
        ({"restart": "sometimes"}, "no policy"),
        ({"restart": "always:3"}, "no policy"),
        ({"restart": "on-failure:x"}, "no policy"),
        ({"labels": ("=x",)}, "no key"),
        ({"labels": ("gpuconsole.user=root",)}, "gpuconsole's own"),
        ({"network": ""}, "no network"),
        ({"network": "container:"}, "no network"),
        ({"network": "container:x", "hostname": "y"}, "no effect with --network container:x"),
        ({"hostname": "-x"}, "no host name"),
        ({"pull": "maybe"}, "known: missing, never, always"),
        ({"environment": ("=x",)}, "name is missing"),
        ({"environment": (" =x",)}, "name is missing"),
        ({"environment": ("",)}, "name is missing"),
        ({"environment": ("A B=c",)}, "'A B' is no variable's name: it has white space in it"),
        ({"environment": ("X\x1b=1",)}, r"'X\x1b' is no variable's name: it has characters in it that no screen shows"),
        ({"environment": ("X\u202e=1",)}, r"'X\u202e' is no variable's name"),
        ({"name": "a" * 129}, "a name of 129 characters is too long; use 128 at most"),
        ({"environment": ("A=x\0y",)}, "NUL byte"),
        ({"environment": ("NOT_SET",)}, "not set in this shell"),
        ({"command": ("x", "\udcff")}, "no UTF-8"),
        ({"shm_size": "8g", "ipc": "host"}, "no effect with --ipc host"),
        ({"shm_size": "8g", "memory": "4g"}, "larger than --memory"),
        ({"auto_remove": True, "restart": "always"}, "--rm removes the container when it ends"),
        ({"ports": ("8888",), "network": "host"}, "no effect with --network host"),
        ({"volumes": ("aa:/x", "bb:/x")}, "/x is mounted twice"),
        ({"ports": ("80:80", "80:81")}, "127.0.0.1:80/tcp is given twice"),
    ],
)
def test_options_that_are_refused(around: Surroundings, options: dict[str, object], told: str) -> None:
    assert told in problem_of(around, **options)


@pytest.mark.parametrize("mark", ["\x1b[2J", "\u202e", "\x07", "\n", "\x9b1m"])
def test_what_was_typed_is_harmless_where_it_is_quoted(around: Surroundings, tmp_path: Path, mark: str) -> None:
    (tmp_path / "project/odd.env").write_text(f"ok=1\nA{mark.strip()} B=1\n")
    with pytest.raises(SpecInvalid) as caught:
        spec_of(
            around,
            image=f"a{mark}b",
            name=f"{mark}x",
            gpus=f"{mark}x",
            volumes=(f"{mark}x:/x", f"./{mark}x:/x"),
            environment=(f"A{mark}B",),
            env_files=("odd.env", f"gone{mark}.env"),
            user=f"{mark}x",
            memory=f"{mark}x",
            working_dir=f"{mark}x",
            force=(f"{mark}x",),
        )
    for problem in caught.value.problems:
        assert mark not in problem.message


INT64 = 2**63 - 1
HUGE = ("9223372036854775808", "9" * 30, "9" * 400, "9" * 5000)
"""Numbers that an engine, a float, or Python's own reading of digits cannot hold."""


@pytest.mark.parametrize(
    ("field", "form", "most"),
    [
        ("shm_size", "{}", "9223372036854775807 bytes"),
        ("memory", "{}", "9223372036854775807 bytes"),
        ("memory", "{}t", "just below 8388608t"),
        ("cpus", "{}", "9223372036"),
        ("cpus", "1e{}", "9223372036"),
        ("cpus", "inf{}", None),
        ("ulimits", "nofile={}", str(INT64)),
        ("ulimits", "nofile=1:{}", str(INT64)),
        ("restart", "on-failure:{}", str(INT64)),
        ("user", "{}", "2147483647"),
        ("user", "1000:{}", "2147483647"),
        ("user", "root:{}", "2147483647"),
        ("ports", "{}", "65535"),
        ("ports", "{}:80", "65535"),
        ("gpus", "{}", None),
        ("gpus", "device={}", None),
    ],
)
def test_numbers_beyond_what_can_be_are_refused_with_the_limit(
    around: Surroundings, field: str, form: str, most: str | None
) -> None:
    option = {"working_dir": "--workdir", "ports": "--publish", "ulimits": "--ulimit"}.get(
        field, f"--{field.replace('_', '-')}"
    )
    for number in HUGE:
        text = form.format(number)
        told = problem_of(around, **{field: (text,) if field in ("ulimits", "ports") else text})
        assert told.startswith(f"{option}: ")
        assert "sys." not in told
        assert len(told) < 300
        if most is not None:
            assert most in told


def test_the_largest_numbers_that_can_be(around: Surroundings) -> None:
    spec = spec_of(
        around,
        ulimits=(f"nofile={INT64}",),
        restart=f"on-failure:{INT64}",
        user="2147483647:2147483647",
        memory="8388607t",
        ports=("65535:65535",),
    )
    assert spec.ulimits == (Ulimit("nofile", INT64, INT64),)
    assert spec.restart_policy == f"on-failure:{INT64}"
    assert spec.user == "2147483647:2147483647"
    assert spec.memory_bytes == 8388607 * 2**40


def test_what_is_no_policy_and_the_images_user_are_left_to_the_engine(around: Surroundings) -> None:
    spec = spec_of(around, restart="no", user="image", auto_remove=True)
    assert spec.restart_policy is None
    assert spec.user is None
    assert spec.caller is None


TEXTS = st.one_of(st.none(), st.text(max_size=20))
LISTS = st.lists(st.text(max_size=20), max_size=3).map(tuple)


@given(
    st.builds(
        LaunchOptions,
        image=st.text(max_size=20),
        command=LISTS,
        entrypoint=TEXTS,
        name=TEXTS,
        gpus=TEXTS,
        gpu_path=TEXTS,
        volumes=LISTS,
        ports=LISTS,
        environment=LISTS,
        labels=LISTS,
        working_dir=TEXTS,
        user=st.text(max_size=20),
        shm_size=TEXTS,
        ipc=TEXTS,
        memory=TEXTS,
        cpus=TEXTS,
        ulimits=LISTS,
        restart=TEXTS,
        pull=st.text(max_size=10),
        force=LISTS,
    )
)
def test_any_options_are_read_or_refused_in_words(options: LaunchOptions) -> None:
    away = Surroundings(cwd="/", home="/", environment={}, uid=0, gid=0, engine_is_local=False)
    problems: tuple[FieldProblem, ...] = ()
    try:
        read_options(options, away)
    except SpecInvalid as error:
        problems = error.problems
    assert all(problem.message and not problem.message.endswith(".") for problem in problems)
