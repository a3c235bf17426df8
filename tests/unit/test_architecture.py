"""The shape of the code, where a tool does not hold it already: sizes, documentation, and what really loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpuconsole
from gpuconsole.cli.commands import COMMANDS
from tests.rig import prepared

PACKAGE = Path(gpuconsole.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"docker", "pydantic", "textual", "rich", "torch", "pynvml", "requests"}
ALLOWED_LINES = 300


def loaded_after(code: str) -> set[str]:
    """The heavy modules that are loaded once ``code`` ran in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(' '.join(m for m in sys.modules if m in {HEAVY!r}))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_short_and_says_what_it_holds(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= ALLOWED_LINES
    assert ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    answer = prepared.in_words(prepared.gpuconsole(name, "--help"))
    assert answer.returncode == 0, answer.stderr
    assert "Usage: gpuconsole" in answer.stdout
    assert "Examples:" in answer.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_no_heavy_library(name: str) -> None:
    code = "from gpuconsole.cli.main import main\nimport contextlib, io\n"
    code += f"with contextlib.redirect_stdout(io.StringIO()): main([{name!r}, '--help'])"
    assert loaded_after(code) == set()


def test_the_front_door_loads_no_heavy_library() -> None:
    assert loaded_after("import gpuconsole.cli.front, gpuconsole.services.session") == set()


def test_nobody_but_the_cleaner_drops_escape_sequences_by_a_pattern() -> None:
    """That what engines send passes through it is seen in test_engine_text.py."""
    # A paste is no text from outside that is shown: there they are taken out so that no key is read out of them.
    allowed = ("escapes.py", "pasting.py")
    offenders = [
        str(module.relative_to(PACKAGE))
        for module in MODULES
        if module.name not in allowed and re.search(r"re\.\w+\([^)]*\\x1b", module.read_text())
    ]
    assert offenders == []


def test_no_worker_or_thread_is_started_at_import() -> None:
    script = "import threading, importlib, pkgutil, gpuconsole\n"
    script += (
        "for m in pkgutil.walk_packages(gpuconsole.__path__, 'gpuconsole.'):\n"
        "    if m.name != 'gpuconsole.__main__' and '.payload' not in m.name: importlib.import_module(m.name)\n"
        "print(threading.active_count())"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "1"


def test_every_package_stands_under_the_import_contracts() -> None:
    """A package that is new is in the layers, and each library's home is guarded for all of the program."""
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    contracts = {one["name"]: one for one in settings["tool"]["importlinter"]["contracts"]}
    packages = {f"gpuconsole.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    (layers,) = (one["layers"] for one in contracts.values() if one["type"] == "layers")
    assert {name.strip() for layer in layers for name in layer.split("|")} == packages
    at_home = [one for name, one in contracts.items() if "is at home" in name]
    assert {library for one in at_home for library in one["forbidden_modules"]} >= HEAVY - {"pydantic"}
    assert all(one["source_modules"] == ["gpuconsole"] for one in at_home)
