"""Fetch Debian packages with apt and unpack them into the cache, beside the system and never into it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.rig.places import CACHE, RigError, RigUnavailable, locked

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
MIRROR_VARIABLE = "GPUCONSOLE_RIG_DEBIAN_MIRROR"


@dataclass(frozen=True, slots=True)
class Toolset:
    """Packages of one Debian suite that are unpacked together."""

    name: str
    suite: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    """What must be there and find its libraries, as paths below the unpacked root."""
    libraries: tuple[str, ...] = ()
    """Packages with libraries that a bare machine lacks; only the missing ones are used."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links to add, as (path below the root, target)."""


def _run(argv: Sequence[str], *, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RigError(f"{' '.join(argv[:6])} … failed: {done.stderr.strip()[-600:]}")
    return done.stdout


@cache
def mirror() -> str:
    """Give the Debian mirror this machine's own apt uses, or the one a variable names."""
    chosen = os.environ.get(MIRROR_VARIABLE)
    if chosen:
        return chosen
    if not shutil.which("apt-get") or not shutil.which("dpkg"):
        raise RigUnavailable("the rig fetches its engines with apt, and this machine has none")
    targets = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
    for uri in targets.split():
        if re.search(r"/debian/?$", uri):
            return uri
    raise RigUnavailable(f"apt here knows no Debian mirror: name one in {MIRROR_VARIABLE}")


def _apt_options(work: Path, suite: str) -> list[str]:
    """Give options that let apt work in a folder of ours, with sources of ours."""
    if not KEYRING.exists():
        raise RigUnavailable(f"{KEYRING} is missing: install debian-archive-keyring")
    for folder in ("lists/partial", "archives/partial", "debs"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    sources = work / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
    return [
        "-qq",
        f"-oDir::Etc::sourcelist={sources}",
        "-oDir::Etc::sourceparts=/dev/null",
        "-oDir::Etc::preferences=/dev/null",
        "-oDir::Etc::preferencesparts=/dev/null",
        f"-oDir::State::Lists={work}/lists",
        "-oDir::State::status=/dev/null",  # newer versions that are installed must not be the candidates
        f"-oDir::Cache={work}",
        "-oAPT::Sandbox::User=root",
        "-oAcquire::Retries=3",
    ]


def _missing_libraries(root: Path, programs: Sequence[str]) -> set[str]:
    """Give the shared libraries that the programs do not find; a program that is not there is an error."""
    environment = dict(os.environ, LD_LIBRARY_PATH=str(root / "lib-extra"))
    missing: set[str] = set()
    for program in programs:
        path = root / program
        if not path.exists():
            raise RigError(f"{path.name} is not in the packages that were fetched")
        listed = subprocess.run(["ldd", path], env=environment, capture_output=True, text=True, check=False).stdout
        missing.update(re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE))
        broken = re.search(r"version `(\S+)' not found", listed)
        if broken:
            raise RigUnavailable(f"{path.name} of the rig needs {broken[1]}, newer than this machine's C library")
    return missing


def _link_missing(root: Path, programs: Sequence[str]) -> None:
    """Offer the programs those fetched libraries that the machine itself lacks, and no others."""
    extra = root / "lib-extra"
    extra.mkdir()
    for _ in range(5):  # a library that was found may need another
        missing = _missing_libraries(root, programs)
        if not missing:
            return
        for name in missing:
            found = next((p for p in sorted(root.rglob(name)) if p.parent != extra), None)
            if found is None:
                raise RigError(f"no package of the rig has {name}")
            (extra / name).symlink_to(Path(os.path.relpath(found, extra)))
    raise RigError(f"libraries still missing: {sorted(missing)}")


def unpacked(tools: Toolset) -> Path:
    """Give the folder with the unpacked packages, fetching them the first time (safe between processes)."""
    architecture = _run(["dpkg", "--print-architecture"]).strip() if shutil.which("dpkg") else "any"
    wanted = "\n".join((tools.suite, *tools.packages, *tools.libraries, *tools.programs, str(tools.links)))
    final = CACHE / f"{tools.name}-{architecture}"
    stamp = final / "packages"
    if stamp.is_file() and stamp.read_text() == wanted:
        return final
    with locked(CACHE / f"{tools.name}.lock"):
        if stamp.is_file() and stamp.read_text() == wanted:
            return final
        work = Path(tempfile.mkdtemp(dir=CACHE, prefix="fetch-"))
        try:
            options = _apt_options(work, tools.suite)
            _run(["apt-get", *options, "update"])
            _run(["apt-get", *options, "download", *tools.packages, *tools.libraries], cwd=work / "debs")
            root = work / "root"
            for package in sorted((work / "debs").glob("*.deb")):
                _run(["dpkg", "-x", str(package), str(root)])
            shutil.rmtree(root / "usr/share", ignore_errors=True)
            for name, target in tools.links:
                (root / name).symlink_to(target)
            _link_missing(root, tools.programs)
            (root / "packages").write_text(wanted)
            shutil.rmtree(final, ignore_errors=True)
            root.rename(final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return final


def search_path(*roots: Path) -> str:
    """Give a PATH on which the unpacked programs stand before the machine's own."""
    folders = [str(root / part) for root in roots for part in ("usr/sbin", "usr/bin", "bin", "sbin")]
    return ":".join([*folders, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])


def library_path(*roots: Path) -> dict[str, str]:
    """Give the environment that lets the unpacked programs find what the machine lacks; often empty."""
    folders = [str(root / "lib-extra") for root in roots if any((root / "lib-extra").iterdir())]
    return {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
