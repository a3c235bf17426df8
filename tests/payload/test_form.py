"""The payload's source: old enough grammar, nothing imported that a container may lack, the archive always the same."""

from __future__ import annotations

import ast
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import gpuconsole.probes.payload
from gpuconsole.probes import archive

HOME = Path(gpuconsole.probes.payload.__file__).parent
SOURCES = sorted(HOME.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(HOME)))
def test_python_3_8_can_read_it(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(HOME)))
def test_it_imports_nothing_but_the_standard_library_torch_and_itself(path: Path) -> None:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    strange = {
        name
        for name in names
        if name.split(".")[0] not in {*sys.stdlib_module_names, "torch", "__future__"}
        and not name.startswith("gpuconsole.probes.payload")
    }
    assert not strange


def test_annotations_are_never_evaluated() -> None:
    """Python 3.8 has no ``list[str]``, so each module with annotations must postpone them."""
    for path in SOURCES:
        text = path.read_text()
        if path.name != "boot.py":
            assert "from __future__ import annotations" in text, path


def test_the_boot_text_runs_on_any_python() -> None:
    """It has no annotations, no f-strings, no keyword-only arguments: Python 2 must get as far as saying no."""
    for node in ast.walk(ast.parse((HOME / "boot.py").read_text())):
        assert not isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.AsyncFunctionDef | ast.NamedExpr)
        if isinstance(node, ast.FunctionDef):
            assert node.returns is None
            assert not node.args.kwonlyargs
            assert all(argument.annotation is None for argument in node.args.args)


def test_the_archive_is_the_same_every_time_and_holds_the_payload_alone() -> None:
    first, second = archive.build(), archive.build()
    assert first == second
    assert first.sha256 == hashlib.sha256(first.data).hexdigest()
    with zipfile.ZipFile(io.BytesIO(first.data)) as file:
        names = set(file.namelist())
        assert file.read("gpuconsole/__init__.py") == b""
        assert file.read("gpuconsole/probes/__init__.py") == b""
        assert all(info.compress_type == zipfile.ZIP_STORED for info in file.infolist())
    modules = {f"gpuconsole/probes/payload/{path.relative_to(HOME)}" for path in SOURCES}
    assert names == modules | {"__main__.py", "gpuconsole/__init__.py", "gpuconsole/probes/__init__.py"}


def test_the_archive_can_be_built_from_an_installed_wheel_even_a_zipped_one(tmp_path: Path) -> None:
    wheel = tmp_path / "gpuconsole.zip"
    root = HOME.parent.parent.parent
    with zipfile.ZipFile(wheel, "w") as file:
        for path in (root / "gpuconsole").rglob("*.py"):
            file.write(path, path.relative_to(root))
    script = "from gpuconsole.probes import archive; print(archive.__file__); print(archive.build().sha256)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(wheel), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    origin, sha256 = done.stdout.split()
    assert origin.startswith(str(wheel))
    assert sha256 == archive.build().sha256


def test_it_says_what_it_is_when_started_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "payload.pyz"
    path.write_bytes(archive.build().data)
    done = subprocess.run([sys.executable, "-S", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "gpuconsole" in done.stderr
