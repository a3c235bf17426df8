"""The package as it is installed: complete, and working away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gpuconsole.probes.archive import build

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked as pip would."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            str(folder),
            str(PROJECT),
        ],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("gpuconsole-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, code: str) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=installed.parent,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


def test_the_style_sheets_and_the_licence_are_in_the_wheel(installed: Path) -> None:
    sheets = {path.name for path in (PROJECT / "styles").glob("*.tcss")}
    assert sheets
    assert {path.name for path in (installed / "gpuconsole/styles").glob("*.tcss")} == sheets
    assert list(installed.glob("gpuconsole-*.dist-info/licenses/LICENSE"))
    found = run(installed, "from gpuconsole.core.paths import styles_dir; print(styles_dir())")
    assert Path(found) == installed / "gpuconsole/styles"


def test_an_editable_install_finds_the_style_sheets_at_the_top(installed: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", "from gpuconsole.core.paths import styles_dir; print(styles_dir())"],
        cwd="/",
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(answer.stdout.strip()) == PROJECT / "styles"


def test_the_installed_program_runs_and_ships_the_checks_payload(installed: Path) -> None:
    assert "Commands:" in run(installed, "from gpuconsole.cli.main import main; main(['--help'])")
    digest = run(installed, "from gpuconsole.probes.archive import build; print(build().sha256)")
    assert digest == build().sha256


def test_the_catalog_and_its_facts_are_in_the_wheel(installed: Path) -> None:
    for folder in ("gpuconsole/images", "gpuconsole/probes"):
        tables = {path.name for path in (PROJECT / folder).glob("*.toml")}
        assert {path.name for path in (installed / folder).glob("*.toml")} == tables
    count = "from gpuconsole.images.catalog import shipped_catalog as c; print(len(c().images))"
    assert int(run(installed, count)) > 150


def test_nothing_of_the_tests_is_in_the_wheel(installed: Path) -> None:
    assert {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")} == {"gpuconsole"}
