"""The report: a table per class, the targets, and the two simple rules beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from tests.forecast.judge import Alarm, Verdict, verdict
from tests.forecast.truth import CALM, GROWTH, UNFORESEEN, Recording

SAMPLINGS = (0.5, 1.0, 2.0, 5.0)
GATED = (0.5, 1.0, 2.0)
"""Seconds between samples for which the targets are set; 5 s is shown."""


@dataclass(frozen=True)
class Gate:
    """One target."""

    what: str
    found: str
    met: bool


def report(runs: Sequence[Recording], half: str, *, each: bool = False) -> tuple[str, list[Gate]]:
    """The text for one half, and its targets."""
    if not runs:
        return f"No recordings in the {half} half.", []
    found = {sampling: [verdict(run, sampling) for run in runs] for sampling in SAMPLINGS}
    parts = [f"## {half}: {len(runs)} recordings", classes(found)]
    gates = targets(found)
    parts.append(
        _rows(("target", "found", ""), [(gate.what, gate.found, "met" if gate.met else "MISSED") for gate in gates])
    )
    parts.append(rules(runs, found[0.5]))
    if each:
        parts.append(lines(found))
    return "\n\n".join(parts) + "\n", gates


def _rows(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _percent(values: Sequence[float], how: Callable[[Sequence[float]], float]) -> str:
    return f"{100 * how(values):.0f} %" if values else "–"


def classes(found: dict[float, list[Verdict]]) -> str:
    """A row a class and sampling."""
    rows = []
    for kind in sorted({each.recording.kind for each in found[SAMPLINGS[0]]}):
        for sampling, verdicts in found.items():
            mine = [each for each in verdicts if each.recording.kind == kind]
            ooms = [each for each in mine if each.recording.oom_t is not None]
            leads = [each.lead for each in mine if each.lead is not None]
            ratios = [each.eta_ratio for each in mine if each.eta_ratio is not None]
            rows.append((
                kind if sampling == SAMPLINGS[0] else "", f"{sampling:g} s", str(len(mine)),
                f"{sum(each.hit is not None for each in ooms)}/{len(ooms)}" if ooms else "–",
                _percent(leads, median), _percent(leads, min), f"{median(ratios):.2f}" if ratios else "–",
                str(sum(each.count("withdrawn") for each in mine)), str(sum(each.count("wrong") for each in mine)),
            ))  # fmt: skip
    titles = (
        "class",
        "every",
        "runs",
        "OOMs warned",
        "lead, median",
        "lead, worst",
        "ETA / truth",
        "withdrawn",
        "wrong",
    )
    return _rows(titles, rows)


def _is_growth(each: Verdict) -> bool:
    return each.recording.kind in GROWTH and each.recording.oom_t is not None


def _counts(each: Verdict) -> bool:
    """Growth of three steps and more, as seen at this sampling."""
    return _is_growth(each) and each.recording.shows_growth(each.sampling_s)


def _named(before: str, names: Sequence[str]) -> str:
    return before + ", ".join(names) if names else ""


def targets(found: dict[float, list[Verdict]]) -> list[Gate]:
    """What a forecaster must reach, on these verdicts."""
    gates: list[Gate] = []
    leads: list[float] = []
    ratios: list[float] = []
    for sampling in GATED:
        growing = [each for each in found[sampling] if _counts(each)]
        missed = [each.recording.name for each in growing if each.hit is None]
        unseen = [each.recording.name for each in found[sampling] if _is_growth(each) and not _counts(each)]
        gates.append(Gate(
            f"growth, every {sampling:g} s: at most one OOM missed",
            f"{len(missed)} of {len(growing)}{_named(': ', missed)}{_named('; not to be seen so seldom: ', unseen)}",
            len(missed) <= 1,
        ))  # fmt: skip
        mine = [each.lead for each in growing if each.lead is not None]
        leads += mine
        ratios += [each.eta_ratio for each in growing if each.eta_ratio is not None]
    gates.append(
        Gate("lead, median ≥ 35 % of the growth time", _percent(leads, median), bool(leads) and median(leads) >= 0.35)
    )
    gates.append(Gate("lead, worst ≥ 20 %", _percent(leads, min), bool(leads) and min(leads) >= 0.20))
    near = sum(0.7 <= each <= 1.4 for each in ratios) / max(len(ratios), 1)
    gates.append(Gate("ETA at the first RISK within 0.7–1.4 of the truth for 90 %", f"{100 * near:.0f} %", near >= 0.9))
    gated = [each for sampling in GATED for each in found[sampling]]
    calm = [each for each in gated if each.recording.kind in CALM]
    wrong = sum(each.count("wrong") for each in calm)
    runs = len({each.recording.name for each in calm})
    bound = f"{wrong} in {runs} runs" + (
        f": below {100 * min(1.0, 3 / runs):.0f} % with 95 % confidence" if runs and not wrong else ""
    )
    gates.append(Gate("flat, packed, loading, cycles: no wrong alarm", bound, wrong == 0))
    elsewhere = [each for each in gated if each.recording.kind not in CALM]
    stray = sum(each.count("wrong") for each in elsewhere)
    gates.append(Gate("all other runs: no wrong alarm", f"{stray} in {len(elsewhere)} replays", stray == 0))
    most = max((each.count("withdrawn") for each in gated), default=0)
    gates.append(Gate("at most one withdrawn alarm a run", f"{most} at most", most <= 1))
    mix = [each for each in gated if each.recording.kind not in UNFORESEEN]
    alarms = sum(len(each.alarms) for each in mix)
    hits = sum(each.count("hit") for each in mix)
    strict = hits / alarms if alarms else 1.0
    gates.append(
        Gate(
            "strict precision ≥ 0.75 (hits over all alarms, all foreseeable classes)",
            f"{strict:.2f} ({hits}/{alarms})",
            strict >= 0.75,
        )
    )
    return gates


def rules(runs: Sequence[Recording], ours: Sequence[Verdict]) -> str:
    """Ours beside the simple rules, at the finest sampling."""
    rows = []
    tried = {"this forecast": list(ours)}
    tried |= {
        name: [verdict(run, SAMPLINGS[0], rule) for run in runs]
        for name, rule in (("90 % in use", "level"), ("line through a minute", "line"))
    }
    for name, verdicts in tried.items():
        growing = [each for each in verdicts if _is_growth(each)]
        leads = [each.lead for each in growing if each.lead is not None]
        alarms = sum(len(each.alarms) for each in verdicts)
        hits = sum(each.count("hit") for each in verdicts)
        rows.append((
            name, f"{sum(each.hit is not None for each in growing)}/{len(growing)}", _percent(leads, median),
            _percent(leads, min), str(sum(each.count("withdrawn") for each in verdicts)),
            str(sum(each.count("wrong") for each in verdicts)), f"{hits / alarms:.2f}" if alarms else "–",
        ))  # fmt: skip
    return _rows(
        ("rule, every 0.5 s", "growth OOMs warned", "lead, median", "lead, worst", "withdrawn", "wrong", "precision"),
        rows,
    )


def lines(found: dict[float, list[Verdict]]) -> str:
    """A line for each recording, and what was said of it."""
    told = []
    for each in (each for verdicts in zip(*found.values(), strict=True) for each in verdicts):
        run = each.recording
        end = f"OOM {run.oom_t:.1f}" if run.oom_t is not None else "well"
        alarms = "  ".join(_alarm(alarm) for alarm in each.alarms)
        lead = f" lead {100 * each.lead:.0f} % ratio {each.eta_ratio or 0:.2f}" if each.lead is not None else ""
        told.append(f"{run.name:<18}{run.kind:<18}{each.sampling_s:>4g} s  {end:<10} {alarms}{lead}")
    return "\n".join(told)


def _alarm(alarm: Alarm) -> str:
    fell = "" if alarm.fell_t is None else f"{alarm.fell_t:.1f}"
    eta = "" if alarm.eta_s is None else f" eta {alarm.eta_s:.1f}"
    return f"{alarm.outcome}@{alarm.rose_t:.1f}–{fell}{eta}"
