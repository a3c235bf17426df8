"""What ``bench`` says: progress on stderr while it runs, the results and what limits the box on stdout."""

from __future__ import annotations

import time

from gpuconsole.cli.bench_table import report_lines
from gpuconsole.cli.glyphs import glyphs_of_stdout, writes_utf8
from gpuconsole.cli.output import data, failure, json_data, paragraph, talk, terminal_width
from gpuconsole.cli.probe_talk import ProbeTalk
from gpuconsole.core.text import duration
from gpuconsole.probes.benchrecords import BenchRun
from gpuconsole.probes.benchresults import Measured
from gpuconsole.probes.records import Progress, Record, Started
from gpuconsole.services.benching import Benched
from gpuconsole.services.benchruns import sentence
from gpuconsole.services.benchstore import document_of

_BAR = 12
_PLAIN_BAR = ("#", ".")
_BAR_GLYPHS = ("█", "░")


class BenchTalk(ProbeTalk):
    """Tells how benchmarks go on, and how they came out.

    Args:
        longest_s: When all is over at the latest.
    """

    WHAT = "the benchmark"

    def __init__(self, *, longest_s: float) -> None:
        super().__init__()
        self._longest_s = longest_s
        self._planned = 0
        self._done = 0
        self._began: float | None = None

    def _where(self, record: Record) -> str:
        if isinstance(record, Started):
            self._planned, self._began = len(record.plan), time.monotonic()
        elif isinstance(record, Measured):
            self._done += 1
        elif isinstance(record, Progress):
            return self._line(f"{record.id.removeprefix('bench.')}: {record.text}")
        return ""

    def _line(self, words: str) -> str:
        full, empty = _BAR_GLYPHS if writes_utf8() else _PLAIN_BAR
        filled = round(_BAR * self._done / self._planned) if self._planned else 0
        spent = 0.0 if self._began is None else time.monotonic() - self._began
        where = f"{full * filled}{empty * (_BAR - filled)} {min(self._done + 1, self._planned)}/{self._planned}"
        return f"{where}  {duration(spent)} of {duration(self._longest_s)} at most  {words}"

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
