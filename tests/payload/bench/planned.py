"""A plan of benchmarks that tests write themselves, run by the payload's archive with a torch that is only a name."""

from __future__ import annotations

from typing import Any

from tests.payload.driving import Payload, of_type

TORCH = """
__version__ = "2.13.0"
class version:
    cuda = None
    git_version = "0"
class cuda:
    @staticmethod
    def is_available():
        return False
class cudnn:
    @staticmethod
    def version():
        return None
class backends:
    cudnn = cudnn
"""
FINDER = """
import importlib.util, sys
SOURCES = {sources!r}
class Planned:
    def find_spec(self, name, path=None, target=None):
        source = SOURCES.get(name)
        return None if source is None else importlib.util.spec_from_loader(name, Loader(source))
class Loader:
    def __init__(self, source):
        self.source = source
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(self.source, module.__dict__)
sys.meta_path.insert(0, Planned())
"""
HEAD = "import os, signal, subprocess, sys, time\nfrom gpuconsole.probes.payload.bench.measurement import Measurement\n"
GOOD = HEAD + "def run(context):\n    yield Measurement({'a': 1}, unit='GB/s', score=2.0, headline=True)\n"


def plan(payload: Payload, **sources: str) -> None:
    """Have these benchmarks (``mm="yield …"``: the body of their function) in place of those of their names."""
    texts = {
        f"gpuconsole.probes.payload.bench.{name}": GOOD if not body else HEAD + "def run(context):\n    " + body + "\n"
        for name, body in sources.items()
    }
    payload.module("sitecustomize", FINDER.format(sources=texts))
    payload.module("torch", TORCH)


def told(records: list[dict[str, Any]], slug: str) -> list[dict[str, Any]]:
    """The results of one benchmark."""
    return [record for record in of_type(records, "bench") if record["id"] == slug]


def config(**more: Any) -> dict[str, Any]:
    """What the supervisor is told of a run of benchmarks, beside their names."""
    return {"kind": "bench", "mode": "quick", "deadline_s": 60, **more}
