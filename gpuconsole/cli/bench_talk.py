"""What ``bench`` says: progress on stderr while it runs, the results and what limits the box on stdout."""

from __future__ import annotations

import sys
import time

import click

from gpuconsole.cli.bench_table import report_lines
from gpuconsole.cli.glyphs import glyphs_of_stdout, writes_utf8
from gpuconsole.cli.launch_talk import LaunchTalk
from gpuconsole.cli.output import data, failure, json_data, paragraph, talk, terminal_width
from gpuconsole.core.text import duration, shorten
from gpuconsole.probes.benchrecords import BenchRun
from gpuconsole.probes.benchresults import Measured
from gpuconsole.probes.records import Progress, Record, Started, Waiting
from gpuconsole.services.benching import Benched
from gpuconsole.services.benchruns import sentence
from gpuconsole.services.benchstore import document_of
from gpuconsole.services.launching import LaunchStep

_BAR = 12
_PLAIN_BAR = ("#", ".")
_BAR_GLYPHS = ("█", "░")


class BenchTalk:
    """Tells how benchmarks go on, and how they came out.

    Args:
        longest_s: When all is over at the latest.
    """

    def __init__(self, *, longest_s: float) -> None:
        self._longest_s = longest_s
        self._launch = LaunchTalk(as_json=False)
        self._live = sys.stderr.isatty()
        self._shown = False
        self._planned = 0
        self._done = 0
        self._began: float | None = None

    def step(self, step: LaunchStep) -> None:
        """Tell of a step of the launch before the benchmarks."""
        self._launch.step(step)

    def record(self, record: Record) -> None:
        """Show where the run is, on one line of the terminal that is written again and again."""
        if isinstance(record, Waiting):
            talk(f"{record.text[:1].upper()}{record.text[1:]}.")
        elif isinstance(record, Started):
            self._planned, self._began = len(record.plan), time.monotonic()
        elif isinstance(record, Measured):
            self._done += 1
        elif self._live and isinstance(record, Progress):
            self._show(f"{record.id.removeprefix('bench.')}: {record.text}")

    def _show(self, words: str) -> None:
        full, empty = _BAR_GLYPHS if writes_utf8() else _PLAIN_BAR
        filled = round(_BAR * self._done / self._planned) if self._planned else 0
        spent = 0.0 if self._began is None else time.monotonic() - self._began
        where = f"{full * filled}{empty * (_BAR - filled)} {min(self._done + 1, self._planned)}/{self._planned}"
        text = f"{where}  {duration(spent)} of {duration(self._longest_s)} at most  {words}"
        click.echo(f"\r\x1b[K{shorten(text, terminal_width(80) - 1)}", nl=False, err=True)
        self._shown = True

    def finish(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False

    def interrupted(self) -> None:
        """Tell that a signal was seen."""
        self.finish()
        talk("Interrupted: ending the benchmark where it runs. Again to leave at once.")

    def result(self, benched: Benched, *, as_json: bool) -> None:
        """Print the run."""
        run = benched.run
        if as_json:
            json_data(document_of(run))
        else:
            glyphs = glyphs_of_stdout()
            for line in report_lines(run, glyphs, width=terminal_width(100)):
                data(line)
            data("")
            paragraph(glyphs.text(sentence(run)))
            if run.obstacle is not None and run.obstacle.fix:
                paragraph(glyphs.text(f"→ {run.obstacle.fix}"))
        if benched.not_kept is not None:
            failure(benched.not_kept)

    def no_gpu_given(self, run: BenchRun) -> None:
        """Say how the image is measured on a GPU, if its torch could use one."""
        if run.environment.torch_cuda is not None and not run.environment.gpus:
            talk("The image was given no GPU: --gpus 1 measures it on one.")
