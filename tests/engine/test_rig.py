"""The rig keeps its promises: real engines, GPUs that are handed out, and nothing left afterwards."""

from __future__ import annotations

import pytest

from tests.rig.engines import Engine

pytestmark = pytest.mark.engine


def test_an_engine_answers_and_runs_a_container(engine: Engine, small_image: str) -> None:
    assert engine.name.startswith(engine.version.rpartition(".")[0])
    done = engine.docker("run", "--rm", small_image, "echo", "hello")
    assert (done.stdout, done.stderr) == ("hello\n", "")
