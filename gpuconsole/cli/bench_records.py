"""``gpuconsole bench history | compare | export | import``: what was measured before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.output import confirm, json_data, json_document, talk
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.store import damaged_file

if TYPE_CHECKING:
    from gpuconsole.probes.benchrecords import BenchRun
    from gpuconsole.services.benchstore import BenchStore

_STDIO = "-"
_SLOWER_BY = 0.05
"""From here on ``compare`` ends with 1: a twentieth, as the grades have it."""

_json = click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")


@contextmanager
def _store() -> Iterator[BenchStore]:
    from gpuconsole.services.benchstore import BenchStore

    store = BenchStore()
    try:
        yield store
    finally:
        store.close()


def complete_run(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the id of a run that is remembered."""
    from gpuconsole.cli.bench_past import when

    try:
        with _store() as store:
            kept = store.runs(limit=100)
    except ConsoleError:
        return []
    found = [CompletionItem(each.run, help=f"{when(each.taken_at)} {each.subject}") for each in kept]
    return [item for item in [CompletionItem("last"), *found] if item.value.startswith(incomplete)]


def complete_bench(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the name of a benchmark."""
    from gpuconsole.probes.catalog import in_order

    found = [CompletionItem(one.id.removeprefix("bench."), help=f"{one.code} {one.title}") for one in in_order()]
    return [item for item in found if item.value.startswith(incomplete.lower())]


@click.command(
    epilog="\b\nExamples:\n  gpuconsole bench history\n  gpuconsole bench history mm --gpu h200 --all\n"
    "  gpuconsole bench history B06 --json | jq '.results[].score'\n"
    "\b\nExit codes: 0 always, also when nothing is remembered yet; 2 no such benchmark or GPU."
)
@click.argument("bench", metavar="[BENCH]", required=False, shell_complete=complete_bench)
@click.option("--gpu", metavar="GPU", help="Only of GPUs whose name has this in it, or whose UUID begins so.")
@click.option("--all", "everything", is_flag=True, help="All results, not only those a benchmark is known by.")
@click.option("-n", "--runs", "count", metavar="N", type=click.IntRange(1, 100000), default=50, show_default=True,
              help="Of so many of the newest runs.")  # fmt: skip
@_json
@pass_settings
def history(
    settings: Settings, bench: str | None, gpu: str | None, everything: bool, count: int, as_json: bool
) -> int:  # fmt: skip
    """What was measured before, newest first; each with its change since the comparable result before it."""
    from gpuconsole.cli.bench_past import print_history
    from gpuconsole.services.benchhistory import history as past
    from gpuconsole.services.benchhistory import refuse_unknown_gpu

    with _store() as store:
        runs = store.all(limit=count)
    if gpu is not None:
        refuse_unknown_gpu(runs, gpu)
    found = past(runs, bench=bench, gpu=gpu, headlines=not everything)
    if as_json:
        json_document("bench-history", results=found)
    elif found:
        print_history(found)
    else:
        talk("Nothing of the kind is remembered yet: 'gpuconsole bench NAME' or 'gpuconsole bench --local' measures.")
        if (damaged := damaged_file()).exists():
            talk(f"Earlier records were damaged and are set aside: {damaged}")
    return ExitCode.OK


@click.command(
    epilog="\b\nExamples:\n  gpuconsole bench compare\n  gpuconsole bench compare 1a2b3c4d\n"
    "  gpuconsole bench compare last~2 last\n  gpuconsole bench compare friend.json last --json\n"
    "\b\nA run is the beginning of its id, 'last', 'last~1' for the one before, or a file.\n"
    "\b\nExit codes: 0 nothing that can be compared is slower by 5 % or more; 1 something is."
)
@click.argument("first", metavar="[A]", required=False, shell_complete=complete_run)
@click.argument("second", metavar="[B]", required=False, shell_complete=complete_run)
@_json
@pass_settings
def compare(settings: Settings, first: str | None, second: str | None, as_json: bool) -> int:
    """Run B beside run A: the last two when none is named, the last one beside A when only A is.

    Results are compared where the method, its parameters and the hardware are the same; others are shown without a
    word on their difference.
    """
    from gpuconsole.cli.bench_past import print_comparison
    from gpuconsole.probes.benchcompare import compare as beside

    with _store() as store:
        one = _run(store, first or "last~1")
        other = _run(store, second or "last")
    found = beside(one, other)
    if as_json:
        json_document("bench-compare", first=_named(one), second=_named(other), differences=found.differences,
                      rows=found.rows)  # fmt: skip
    else:
        print_comparison(found, one, other)
    worse = any(row.ratio is not None and row.ratio <= 1 - _SLOWER_BY for row in found.slower)
    return ExitCode.FAILED if worse else ExitCode.OK


def _named(run: BenchRun) -> dict[str, object]:
    return {"run": run.run, "taken_at": run.taken_at, "mode": run.mode, "subject": run.subject, "origin": run.origin,
            "end": run.end}  # fmt: skip


def _run(store: BenchStore, name: str) -> BenchRun:
    """The run of this id, else in the file of this name."""
    from gpuconsole.core.errors import NotFound
    from gpuconsole.services.benchsharing import read_run

    if name == _STDIO:
        return read_run(None)
    if "/" in name or name.endswith(".json"):
        return read_run(Path(name))
    try:
        return store.find(name)
    except NotFound:
        if Path(name).is_file():
            return read_run(Path(name))
        raise


@click.command(
    epilog="\b\nExamples:\n  gpuconsole bench export -o h200.json\n"
    "  gpuconsole bench export 1a2b3c4d -o - | jq .machine\n"
    "\b\nThe names of host, users, containers and private images, paths, addresses and what the\n"
    "container wrote are left out; UUIDs of GPUs become hashes that only tell siblings apart."
)
@click.argument("run", metavar="[RUN]", default="last", shell_complete=complete_run)
@click.option("-o", "--output", metavar="FILE", required=True, help="Where it goes; - is standard output.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@pass_settings
def export(settings: Settings, run: str, output: str, yes: bool) -> int:
    """Write RUN (the last one) to a file that can be given away. What will be in it is shown before."""
    from gpuconsole.cli.bench_past import print_shared
    from gpuconsole.core.document import text_of
    from gpuconsole.services.benchsharing import shared_document

    with _store() as store:
        body = shared_document(store.find(run))
    if output == _STDIO:
        json_data(body)
        return ExitCode.OK
    path = Path(output)
    print_shared(body)
    there = " in the place of what is there" if path.exists() else ""
    confirm(f"Write this to {output}{there}?", assume_yes=yes)
    _write(path, text_of(body) + "\n")
    talk(f"Written: {output}")
    return ExitCode.OK


def _write(path: Path, text: str) -> None:
    from gpuconsole.core.errors import BadFile
    from gpuconsole.core.files import write_whole

    try:
        write_whole(path, text)
    except OSError as error:
        raise BadFile(f"{path} cannot be written: {error.strerror}.", hint="Choose another place with -o.") from error


@click.command(
    "import",
    epilog="\b\nExamples:\n  gpuconsole bench import friend.json\n  ssh box gpuconsole bench export -o - | "
    "gpuconsole bench import -\n"
    "\b\nIt is marked as imported, can be compared with, and judges no result of this machine.",
)
@click.argument("file", metavar="FILE")
@pass_settings
def import_(settings: Settings, file: str) -> int:
    """Take in a run that another machine exported; - reads standard input."""
    from gpuconsole.cli.bench_past import when
    from gpuconsole.services.benchsharing import read_run, take_in

    if file == _STDIO and sys.stdin.isatty():
        talk("Reading a run from the terminal; ctrl+d ends it.")
    run = read_run(None if file == _STDIO else Path(file))
    with _store() as store:
        fresh = take_in(store, run)
    names = ", ".join(dict.fromkeys(gpu.name or "GPU" for gpu in run.machine.gpus)) or run.machine.cpu or "CPU"
    told = f"run {run.run} of {when(run.taken_at)}, {names}, {len(run.benchmarks)} results"
    talk(f"Taken in: {told}." if fresh else f"It is here already: {told}.")
    return ExitCode.OK
