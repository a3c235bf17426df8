"""Names that no container can have, given to every command that takes one."""

from __future__ import annotations

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from tests.rig.client import EngineClient
from tests.rig.kinds import NEWEST

pytestmark = pytest.mark.engine(*NEWEST)
COMMANDS = (
    *(("inspect",), ("logs",), ("shell", "--here"), ("attach", "--here"), ("check",), ("bench",)),
    *(("start",), ("stop",), ("restart",), ("pause",), ("pause", "--resume"), ("rm", "--yes", "--force")),
)
NAMES = ("", " ", ".", "..", "../x", "a/b", "/", "..%2f", "x?all=1", "x#y", "no such", "\udcff", "\x1b[2J", "é", "x\n")


def test_a_name_no_container_can_have_is_no_such_container(
    engine: EngineClient, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.docker("create", "--name", "bystander", engine.load("small"))
    for command in COMMANDS:
        for name in NAMES:
            code = main(["--host", engine.host, *command, "--", name])
            out, err = capsys.readouterr()
            assert code == ExitCode.NOT_FOUND, (command, name, err)
            assert out == ""
            assert f"There is no container {name!r}." in err
            assert err.count("→") == 1
    assert engine.docker("ps", "-aq", "--filter", "name=bystander").stdout.strip()


def test_one_such_name_among_others_does_not_keep_them_from_being_done(
    engine: EngineClient, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.docker("create", "--name", "well-named", engine.load("small"), "sleep", "1000")
    assert main(["--host", engine.host, "start", "--", "..", "well-named", "\udcff"]) == ExitCode.NOT_FOUND
    assert capsys.readouterr().out == "well-named\n"
    assert "well-named" in engine.docker("ps", "--format", "{{.Names}}").stdout
