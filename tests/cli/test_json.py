"""What ``--json`` prints is whole wherever it is written to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cli.engines import gpuconsole, start
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, NvmlState, h200

ENCODINGS = ["ascii", "latin-1", "cp1252", "iso8859-15", "utf-8", "UTF8", "utf_8"]
NAME = "NVIDIA Größe 日本 “€” 😀"


def written(encoding: str) -> dict[str, str]:
    return {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "words",
    [NAME, "é", "caf\udce9", "\udcff 日本", "plain"],
    ids=["all kinds", "latin", "no text", "no text beside text", "plain"],
)
def test_any_text_comes_back_as_it_was(words: str, encoding: str) -> None:
    script = "import json; from gpuconsole.cli import front, output; front._open_streams()\n"
    script += f"output.json_document('x', words=json.loads({json.dumps(words)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, env=os.environ | written(encoding)
    )
    assert json.loads(done.stdout) == {"schema": "gpuconsole.x/1", "words": words}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_status_and_its_watch(nvml_box: NvmlBox, encoding: str) -> None:
    nvml_box.write(NvmlState(gpus=(h200(0, name=NAME),)))
    command, env = [sys.executable, "-m", "gpuconsole", "status", "--json"], nvml_box.env() | written(encoding)
    done = subprocess.run(command, capture_output=True, check=True, env=env)
    assert json.loads(done.stdout)["gpus"][0]["name"] == NAME
    with subprocess.Popen([*command, "--watch", "0.5"], stdout=subprocess.PIPE, env=env) as watch:
        assert watch.stdout is not None
        assert json.loads(watch.stdout.readline()) == {"schema": "gpuconsole.status/1"}
        assert json.loads(watch.stdout.readline())["gpus"][0]["name"] == NAME
        watch.kill()


@pytest.mark.engine
@pytest.mark.parametrize("arguments", [["ps"], ["inspect", "box"], ["images"]])
def test_what_an_engine_tells(engine_modern: Engine, arguments: list[str]) -> None:
    start(engine_modern, "box", "--label", f"text={NAME}", "-e", f"TEXT={NAME}")
    documents = [
        gpuconsole(engine_modern, *arguments, "--json", base={**os.environ, **written(encoding)}).document
        for encoding in ("ascii", "utf-8")
    ]
    for document in documents:
        for volatile in [*document.get("containers", []), document.get("container", {})]:
            for name in ("cpu_pct", "memory_bytes", "status"):
                volatile.pop(name, None)
    assert documents[0] == documents[1]
    if arguments[0] == "inspect":
        assert documents[0]["container"]["labels"]["text"] == NAME
