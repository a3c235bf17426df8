"""The front door of the command line: failures as sentences and exit codes, pipes, interrupts, completion."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from gpuconsole import __version__
from gpuconsole.cli import front
from gpuconsole.cli.commands import COMMANDS, cli
from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.lazy import LazyGroup
from gpuconsole.cli.output import confirm
from gpuconsole.cli.tables import Column, table, width_of
from gpuconsole.core import errors
from gpuconsole.core.errors import ConsoleError, ExitCode, Refused

README = Path(__file__).parents[2] / "README.md"


def gpuconsole(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuconsole", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )


def all_errors() -> list[type[ConsoleError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ConsoleError)]


@pytest.mark.parametrize("kind", all_errors(), ids=lambda kind: kind.__name__)
def test_a_failure_is_a_sentence_a_remedy_and_its_exit_code(
    kind: type[ConsoleError], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise kind("It broke.", hint="Mend it.", detail="raw text")

    monkeypatch.setattr(cli, "main", fail)
    assert front.main(["doctor"]) == kind.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "gpuconsole: It broke.\n  → Mend it.\n"


def test_debug_shows_the_traceback_and_the_raw_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise ConsoleError("It broke.", detail="raw text")

    monkeypatch.setattr(cli, "main", fail)
    assert front.main(["--debug", "status"]) == ExitCode.FAILED
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "  | raw text" in err


def test_debug_after_the_command_belongs_to_the_command() -> None:
    assert "No such option" in gpuconsole("doctor", "--debug").stderr


def test_a_fault_of_our_own_is_owned_up_to_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        error = KeyError("boom")
        error.add_note("The container x is left behind.")
        raise error

    monkeypatch.setattr(cli, "main", fail)
    assert front.main(["doctor"]) == ExitCode.INTERNAL
    err = capsys.readouterr().err
    assert "The container x is left behind." in err
    assert "inside gpuconsole itself" in err
    assert "Traceback" not in err


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    assert front.main(["doctor"]) == ExitCode.INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error() -> None:
    answer = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} -m gpuconsole --help | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0
    assert answer.stderr == ""


def test_a_reader_that_goes_away_while_much_is_written_is_no_error(tmp_path: Path) -> None:
    script = tmp_path / "much.py"
    script.write_text(
        "import click\nfrom gpuconsole.cli import commands, main\n"
        "@click.command()\ndef much():\n    for n in range(100000): click.echo(f'line {n}')\n"
        "commands.cli.add_command(much)\nmain.run(['much'])\n"
    )
    answer = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {sys.executable} {script} | head -n 1"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "line 0\n", "")


def test_a_wrong_word_names_the_nearest_command() -> None:
    answer = gpuconsole("stauts")
    assert answer.returncode == ExitCode.USAGE
    assert "Did you mean 'status'?" in answer.stderr
    assert answer.stdout == ""


def test_version_and_help_go_to_stdout() -> None:
    assert __version__ in gpuconsole("--version").stdout
    assert "Commands:" in gpuconsole("--help").stdout


def test_readonly_refuses_what_changes_something(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(readonly=True)
    with pytest.raises(Refused, match="does not stop a container"):
        settings.may_change("stop a container")
    Settings().may_change("stop a container")


def test_a_question_nobody_can_answer_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", "from gpuconsole.cli.output import confirm\nconfirm('Remove x?', assume_yes=False)"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Not done without an answer to: Remove x?" in answer.stderr
    confirm("Remove x?", assume_yes=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell: str) -> None:
    assert "_GPUCONSOLE_COMPLETE" in gpuconsole("completion", shell).stdout


def test_bash_completes_command_names() -> None:
    answer = gpuconsole(_GPUCONSOLE_COMPLETE="bash_complete", COMP_WORDS="gpuconsole sta", COMP_CWORD="1")
    assert {line.partition(",")[2] for line in answer.stdout.split()} == {"status", "start"}


def test_a_table_fits_the_width_it_is_given_and_cuts_only_what_may_be_cut() -> None:
    columns = [Column("NAME", flexible=True), Column("MEM", align="right"), Column("IMAGE", flexible=True)]
    rows = [["a" * 40, "1.0", "b" * 60], ["短い", "12.5", "c"]]
    text = table(columns, rows, width=60)
    assert max(width_of(line) for line in text.splitlines()) <= 60
    assert "12.5" in text
    assert "…" in text
    assert "a" * 40 in table(columns, rows)


def test_one_very_long_name_moves_its_own_row_only() -> None:
    columns = (Column("NAME", flexible=True), Column("STATE"))
    title, first, second = table(columns, [["n" * 5000, "up"], ["short", "up"]]).splitlines()
    assert first == "n" * 5000 + "  up", "scripts get whole names"
    assert len(title) < 200
    assert len(second) < 200
    assert title.index("STATE") == second.index("up")


def test_exit_codes_in_the_readme_are_those_of_the_code() -> None:
    text = README.read_text()
    for code in ExitCode:
        assert f"| {code.value} |" in text, f"exit code {code.value} ({code.name}) is missing in the README"


def test_commands_in_the_readme_are_those_of_the_code() -> None:
    text = README.read_text()
    for name in COMMANDS:
        assert re.search(rf"`(gpuconsole )?{name}\b", text), f"command {name} is missing in the README's table"


def test_an_interrupt_while_a_command_runs_ends_it_with_130(tmp_path: Path) -> None:
    """A real SIGINT to a real process that waits."""
    script = tmp_path / "wait.py"
    script.write_text(
        "import time, click\nfrom gpuconsole.cli import commands, main\n"
        "@click.command()\ndef wait():\n    print('waiting', flush=True); time.sleep(30)\n"
        "commands.cli.add_command(wait)\nmain.run(['wait'])\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted" in err
    assert "Traceback" not in err


def test_commands_get_the_options_before_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    group = LazyGroup(name="gpuconsole", commands_at={})

    @click.command()
    @pass_settings
    def show(settings: Settings) -> None:
        click.echo(f"{settings.host} {settings.readonly}")

    group.add_command(show)
    group.main(["show"], obj=Settings(host="unix:///x", readonly=True), standalone_mode=False)
    assert capsys.readouterr().out == "unix:///x True\n"
