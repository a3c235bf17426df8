"""A run in full: of a check every check with its reason and remedy."""

from __future__ import annotations

from gpuconsole.core.text import duration, plain_line
from gpuconsole.services.buildmeter import BuildState
from gpuconsole.services.probelive import Live
from gpuconsole.services.pulling import PullState
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.benchbrief import fields as bench_fields
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.checkdetails import check_fields, report_of, text_in
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.present.layers import layer_line, layer_order
from gpuconsole.tui.present.run import word
from gpuconsole.tui.theme import Glyphs

_BAR = 20
_LOG = 60
_TONES: dict[RunState, Tone] = {
    RunState.RUNNING: "info",
    RunState.OK: "ok",
    RunState.WARN: "watch",
    RunState.FAILED: "critical",
    RunState.CANCELLED: "dim",
}


def fields(
    run: Run,
    *,
    now: float,
    glyphs: Glyphs,
    keys: Keymap = USUAL,
    pull: PullState | None = None,
    build: BuildState | None = None,
    live: Live | None = None,
    width: int = 80,
) -> tuple[Field, ...]:
    """Everything known of a run.

    Args:
        run: The run.
        now: Seconds since the epoch.
        glyphs: The signs to draw with.
        keys: What the keys are.
        pull: Of a pull of this console, how far it is or was.
        build: Of a build of this console that is under way, how far it is.
        live: Of a check of this console that is under way, how far it is.
        width: Cells there are for all of it.
    """
    took_s = run.took_s(now)
    took = "unknown, since nobody saw its end" if took_s is None else duration(took_s)
    state: Line = (Cell(word(run), _TONES[run.state]),)
    if run.progress is not None:
        state = (*state, Cell(f"  {bar(run.progress, _BAR, glyphs)} {run.progress:.0%}", "info"))
    return (
        Field("state", (state,)),
        *_told(run),
        field("of", run.subject),
        field("", Cell(run.subject_id, "dim")),
        field("began", f"{duration(now - run.started_at)} ago, {'took' if run.ended and not run.up else 'for'} {took}"),
        *(check_fields(run, glyphs, keys, live) if run.kind is RunKind.CHECK else ()),
        *(bench_fields(run, glyphs, keys) if run.kind is RunKind.BENCH else ()),
        *(_pull_fields(run, pull, glyphs, keys, width) if run.kind is RunKind.PULL else ()),
        *(_build_fields(run, build, glyphs, keys, width) if run.kind is RunKind.BUILD else ()),
    )


def _told(run: Run) -> tuple[Field, ...]:
    """How it went; what to do about it stands below, where the report tells them apart."""
    report = report_of(run)
    if run.state is RunState.FAILED and text_in(report, "message"):
        return (field("", text_in(report, "message")), field("what to do", Cell(text_in(report, "hint"), "accent")))
    return (field("", run.headline),)


def _pull_fields(run: Run, pull: PullState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    report = report_of(run)
    digest = field("digest", text_in(report, "digest"))
    if run.ended:
        again = f"{keys.name('image.pull')} pulls it again; layers that were complete are kept"
        return (digest,) if run.state is RunState.OK else (field("again", Cell(again, "dim")),)
    return _layers(pull, glyphs, keys, width)


def _layers(pull: PullState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    if pull is None or not pull.each:
        return (field("layers", Cell(f"none told yet; {keys.name('run.cancel')} cancels it", "dim")),)
    lines = [layer_line(layer, glyphs, width - 14) for layer in sorted(pull.each, key=layer_order)]
    return (Field("layers", tuple(lines)), field("", Cell(f"{keys.name('run.cancel')} cancels it", "dim")))


def _build_fields(run: Run, build: BuildState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    report = report_of(run)
    log = report.get("log")
    written = [plain_line(str(line)) for line in log][-_LOG:] if isinstance(log, list) else []
    versions = " · ".join(f"{name} {text_in(report, name)}" for name in ("torch", "cuda") if text_in(report, name))
    told = (field("inside", versions), field("base", text_in(report, "base")))
    if run.ended:
        return (*told, field("log", *(Cell(line, "dim") for line in written)))
    if build is not None and build.pull is not None:
        return (field("base", "it is being pulled"), *_layers(build.pull, glyphs, keys, width))
    doing = f"{build.step}/{build.steps}  {build.words}" if build is not None and build.step else "it begins"
    said = (build.line, build.download) if build is not None else ()
    lines = [*(plain_line(line) for line in said if line), f"{keys.name('run.cancel')} cancels it"]
    return (field("step", doing), field("", *(Cell(line, "dim") for line in lines)))
