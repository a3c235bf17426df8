"""The configuration file: what it says, and every mistake in it named at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.core.config import Config, Mistake, config_path, nearest, read_config
from gpuconsole.core.errors import BadFile, ExitCode


@pytest.fixture
def file() -> Path:
    path = config_path()
    path.parent.mkdir(parents=True)
    return path


def mistakes_of(file: Path, text: str) -> str:
    file.write_text(text)
    with pytest.raises(BadFile) as caught:
        read_config()
    assert str(file) in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_code is ExitCode.BAD_FILE
    return caught.value.message


def test_without_a_file_all_is_as_usual_and_nothing_heavy_is_loaded() -> None:
    assert read_config() == Config()
    code = "import sys; from gpuconsole.core.config import read_config; read_config(); print('pydantic' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert answer.stdout.strip() == "False"


def test_everything_that_can_be_said(file: Path) -> None:
    file.write_text(
        'theme = "light"\nrefresh = 2\nascii = true\nbell = false\n'
        '[keys]\ncontainer.stop = "X"\n"app.quit" = ["Q", "f10"]\n[keys.list]\nsort = "s"\n'
        '[alarms]\nfrom = "risk"\nbell = true\ncommand = ["notify-send", "gpu console"]\n'
    )
    assert read_config() == Config(
        keys={"container.stop": ("X",), "app.quit": ("Q", "f10"), "list.sort": ("s",)},
        theme="light",
        refresh_s=2.0,
        ascii=True,
        bell=False,
        alarms_from="risk",
        alarms_bell=True,
        alarm_command=("notify-send", "gpu console"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'from = "critcal"',
            "line 2, alarms.from: must be \"critical\" or \"risk\", and is 'critcal'; did you mean 'critical'?",
        ),
        ("from = 3", 'line 2, alarms.from: must be "critical" or "risk", and is 3'),
        ("bell = 1", "line 2, alarms.bell: must be true or false, and is 1"),
        ("from = true", 'line 2, alarms.from: must be "critical" or "risk", and is true'),
        ('form = "risk"', "line 2, alarms.form: there is no such setting; did you mean 'from'?"),
        ('least = "risk"', "line 2, alarms.least: there is no such setting"),
        ('command = "curl -H token"', "line 2, alarms.command: must be a list of a program and its arguments"),
        ('command = ["a", 3]', "line 2, alarms.command: must be a list"),
        ('command = ["a", ""]', "line 2, alarms.command: must be a list"),
        ('command = ["a", "b\\u0000"]', "line 2, alarms.command: must be a list"),
    ],
)
def test_what_is_wrong_about_alarms(file: Path, text: str, said: str) -> None:
    words = mistakes_of(file, f"[alarms]\n{text}\n")
    assert said in words
    assert "token" not in words


def test_alarms_are_a_table_and_its_good_half_is_checked_beside_the_bad(file: Path) -> None:
    assert "line 1, alarms: must be a table" in mistakes_of(file, "alarms = 3\n")
    words = mistakes_of(file, '[alarms]\nfrom = "x"\ncommand = 3\n[keys]\n')
    assert "line 2, alarms.from" in words
    assert "line 3, alarms.command" in words


def test_every_mistake_is_named_with_its_line(file: Path) -> None:
    text = 'refrsh = 3\nrefresh = 20\nbell = "yes"\ntheme = 7\n[keys]\ncontainer.stop = 3\n"app.quit" = ["q", 1]\n'
    lines = mistakes_of(file, text).splitlines()
    assert lines[0].endswith("has 6 mistakes:")
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "line 1, refrsh", "line 2, refresh", "line 3, bell", "line 4, theme", "line 6, keys.container.stop",
        "line 7, keys.app.quit",
    ]  # fmt: skip
    assert "did you mean 'refresh'?" in lines[1]
    assert "from 0.5 to 10, and is 20" in lines[2]


@pytest.mark.parametrize("value", ["0.4", "10.1", "nan", "inf", "-1", "true", '"1"', "[1]"])
def test_refresh_is_seconds_from_a_half_to_ten(file: Path, value: str) -> None:
    assert "line 1, refresh: must be seconds, from 0.5 to 10" in mistakes_of(file, f"refresh = {value}\n")


@pytest.mark.parametrize("value", ["0.5", "1", "10"])
def test_its_ends_are_in(file: Path, value: str) -> None:
    file.write_text(f"refresh = {value}\n")
    assert read_config().refresh_s == float(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("theme = light\n", "is not TOML"),
        ("[keys\n", "line 1"),
        ("keys = 3\n", "keys: must be a table"),
        ("a = " + "[" * 5000, "is not TOML"),
        ('"th\\u001b[31meme" = 1\n', "there is no such setting"),
        ("[display]\ntheme = 1\n", "line 1, display: there is no such setting"),
        ("[[keys]]\na = 1\n", "keys: must be a table"),
    ],
)
def test_what_is_no_configuration_at_all(file: Path, text: str, said: str) -> None:
    words = mistakes_of(file, text)
    assert said in words
    assert "\x1b" not in words


def test_a_file_that_cannot_be_read(file: Path) -> None:
    file.write_bytes(b"theme = \xff\n")
    with pytest.raises(BadFile, match="not text in UTF-8"):
        read_config()
    file.unlink()
    file.mkdir()
    with pytest.raises(BadFile, match="cannot be read"):
        read_config()
    file.rmdir()
    os.mkfifo(file)  # nobody writes into it
    with pytest.raises(BadFile, match="cannot be read: it is a pipe"):
        read_config()


def test_a_question_ends_in_its_own_mark(file: Path) -> None:
    assert "did you mean" in (words := mistakes_of(file, "refrehs = 2\n"))
    assert "?." not in words


def test_what_the_caller_finds_wrong_is_told_beside_the_rest(file: Path) -> None:
    file.write_text('bell = 1\ntheme = "drak"\n')
    with pytest.raises(BadFile) as caught:
        read_config(check=lambda config: [Mistake("theme", f"there is no {config.theme}")])
    assert "line 1, bell" in caught.value.message
    assert "line 2, theme: there is no drak" in caught.value.message


def test_what_could_have_been_meant_is_named_where_there_is_anything() -> None:
    assert nearest("ligth", ("light", "dark")) == "; did you mean 'light'?"
    assert nearest("xyz", ("light", "dark")) == "; there is light, dark"
    assert nearest("xyz", ()) == ""
    assert nearest("xyz", [f"name{number}" for number in range(9)]) == ""
