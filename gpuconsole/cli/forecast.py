"""``gpuconsole forecast``: what the forecaster says of a recording, change by change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.glyphs import glyphs_of_stdout, writes_utf8
from gpuconsole.cli.output import data, talk
from gpuconsole.core.document import SCHEMA_VERSION
from gpuconsole.core.errors import ExitCode

if TYPE_CHECKING:
    from gpuconsole.gpu.forecast_model import Assessment

_SCHEMA = f"gpuconsole.forecast/{SCHEMA_VERSION}"


@click.command(
    epilog="\b\nExamples:\n  gpuconsole forecast run.jsonl.gz            # how each memory fared, change by change\n"
    "  gpuconsole forecast run.jsonl.gz --json | jq 'select(.state == \"risk\")'\n\n"
    "\b\nStates: free idle loading steady packed watch risk critical failed unknown.\n\n"
    "\b\nExit codes: 0 the recording was read; 5 no such file; 8 it is no recording."
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: the schema, then a line for each change of state.")
def forecast(file: Path, as_json: bool) -> int:
    """Say where memory was going in a recording: who grew, how fast, and when it would be full.

    Only samples are read, never what the recording says of how the run ended. A time ahead is given only where growth
    is a trend, and holds if it goes on as seen.
    """
    from gpuconsole.gpu.forecast import changes
    from gpuconsole.host.recorded import memory_samples

    said = 0
    if as_json:
        data(json.dumps({"schema": _SCHEMA}))
    glyphs = glyphs_of_stdout()
    for t, assessment in changes(memory_samples(file)):
        said += 1
        data(_json_line(t, assessment) if as_json else glyphs.text(_text_line(t, assessment)))
    if not said and not as_json:
        talk("The recording holds no samples.")
    return ExitCode.OK


def _json_line(t: float, said: Assessment) -> str:
    body: dict[str, Any] = {
        "t": t,
        "subject": said.subject,
        "id": said.id,
        "gpu": said.gpu,
        "pid": said.pid,
        "state": said.state,
        "eta_s": None if said.eta_s is None else round(said.eta_s, 1),
        "why": said.why,
    }
    return json.dumps(body, ensure_ascii=not writes_utf8(), allow_nan=False)


def _text_line(t: float, said: Assessment) -> str:
    who = {
        "process": f"process {said.pid} GPU {said.gpu}",
        "gpu": f"GPU {said.gpu}",
        "container": f"container {said.id[:12]}",
        "host": "host",
        "shm": "/dev/shm" if said.id == "host" else f"/dev/shm {said.id[:12]}",  # noqa: S108  # a name
    }[said.subject]
    return f"{t:9.1f} s  {who:<22}  {said.state:<8}  {said.why}"
