"""Runs the payload's archive in processes of its own and reads its records."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuconsole.probes import archive

RUN = "a-run"


@dataclass
class Payload:
    """The archive in a folder of its own, and what a run of it said."""

    root: Path
    extra: dict[str, str] = field(default_factory=dict)
    """Variables for the run."""
    folder: Path = field(init=False)
    stray: str = field(init=False, default="")
    code: int | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        # Short, as in a container: the addresses of local sockets have little room.
        self.folder = Path(tempfile.gettempdir()) / f"gpuconsole-check-{secrets.token_hex(4)}"
        self.modules = self.root / "modules"
        self.modules.mkdir(exist_ok=True)

    def remove(self) -> None:
        """Remove what a run that went wrong has left."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def module(self, name: str, text: str) -> None:
        """Write a module that the worker finds before all others."""
        path = self.modules / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *checks: str, **config: Any) -> subprocess.Popen[bytes]:
        """Start the supervisor with ``checks`` to run."""
        self.folder.mkdir()
        path = self.folder / "payload.pyz"
        path.write_bytes(archive.build().data)
        told = {
            "run": RUN,
            "checks": list(checks),
            "asked": [],
            "deadline_s": 120,
            "folder": str(self.folder),
            "archive": str(path),
            "workdir": str(self.root),
        } | config
        environment = dict(os.environ, PYTHONPATH=str(self.modules)) | self.extra
        return subprocess.Popen(
            [sys.executable, "-S", str(path), "supervise", json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=self.root,
        )

    def run(self, *checks: str, **config: Any) -> list[dict[str, Any]]:
        """Run ``checks`` to the end and return the records."""
        process = self.start(*checks, **config)
        assert process.stdout is not None
        output = process.stdout.read()
        self.code = process.wait()
        assert process.stdin is not None
        process.stdin.close()
        return self.read(output)

    def read(self, output: bytes) -> list[dict[str, Any]]:
        """The records in ``output``; the rest becomes ``stray``."""
        records = []
        for line in filter(None, output.decode("utf-8", "replace").split("\n")):
            if line.startswith("\x1e"):
                records.append(json.loads(line[1:]))
            else:
                self.stray += line + "\n"
        return records

    def check(self, slug: str, **config: Any) -> dict[str, Any]:
        """The result of one check that runs alone, after check.torch."""
        slugs = [slug] if slug == "check.torch" else ["check.torch", slug]
        return result(self.run(*slugs, **config), slug)


def result(records: list[dict[str, Any]], slug: str) -> dict[str, Any]:
    """The result of ``slug`` among ``records``."""
    found = [record for record in records if record["t"] == "check" and record["id"] == slug]
    assert len(found) == 1, records
    return found[0]


def of_type(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The records of one type."""
    return [record for record in records if record["t"] == kind]


class Listener:
    """Reads a running payload's records as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.records: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(b"\x1e"):
                with self._news:
                    self.records.append(json.loads(line[1:]))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def wait_for(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The first record of ``kind`` with ``fields``."""

        def find() -> dict[str, Any] | None:
            for record in self.records:
                if record["t"] == kind and all(record.get(key) == value for key, value in fields.items()):
                    return record
            return None

        with self._news:
            assert self._news.wait_for(lambda: find() is not None or self._ended, 60), self.records
            found = find()
        assert found is not None, self.records
        return found

    def end(self) -> int:
        """Wait for the end and return the exit code."""
        self._thread.join(60)
        return self.process.wait(60)
