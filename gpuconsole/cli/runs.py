"""``gpuconsole runs | rerun | diff``: what was launched, how it ended and why, and the same once more."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.output import confirm, data, json_document, paragraph, talk
from gpuconsole.cli.tables import Column, table
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.store import damaged_file
from gpuconsole.core.text import duration, plain_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuconsole.services.launchrecords import LaunchRecord, LaunchRecords
    from gpuconsole.services.rerunning import Difference
    from gpuconsole.services.session import Session

_SHOWN = 20
_COLUMNS = (
    Column("NO", "right"), Column("NAME"), Column("IMAGE", flexible=True), Column("GPU"), Column("BEGAN"),
    Column("TOOK", "right"), Column("HOW IT WENT", flexible=True),
)  # fmt: skip


@click.command(
    epilog="\b\nExamples:\n  gpuconsole runs\n  gpuconsole runs 12               # all about one: why it ended\n"
    "  gpuconsole runs --json | jq '.runs[] | {number, name, cause}'"
)
@click.argument("name", metavar="[NO|NAME]", required=False)
@click.option("-n", "count", type=click.IntRange(1, 1000), default=_SHOWN, metavar="N", help="So many; 20 by default.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@pass_settings
def runs(settings: Settings, name: str | None, count: int, as_json: bool) -> int:
    """List what was launched, by which image and on which GPUs, how it ended and why.

    GPU is the index that each has now; of one that is not here any more, the beginning of its UUID.

    Launches of this user on this machine are remembered, also those whose console was killed. A number shows one of
    them in full; a name, the newest of that name.
    """
    session = settings.session()
    records = _records()
    problem = _settle(session, records)
    if problem is not None:
        talk(f"How they ended since is not known: {problem.message}")
    if name is not None:
        record = records.one(name)
        if as_json:
            json_document("runs", runs=[document_of(record)])
        else:
            _show(record)
        return ExitCode.OK
    found = records.all(limit=count)
    if as_json:
        json_document("runs", runs=[document_of(record) for record in found])
    elif not found:
        talk("Nothing was launched yet.\n  → Launch something by 'gpuconsole launch', and it stands here.")
        if (damaged := damaged_file()).exists():
            talk(f"Earlier records were damaged and are set aside: {damaged}")
    else:
        indices = _indices(session) if any(record.gpus for record in found) else {}
        data(table(_COLUMNS, [_row(record, indices) for record in found]))
    return ExitCode.OK


@click.command(
    epilog="\b\nExamples:\n  gpuconsole rerun 12\n  gpuconsole rerun train --any-gpu\n  gpuconsole rerun 12 --dry-run"
)
@click.argument("name", metavar="NO|NAME")
@click.option("--any-gpu", is_flag=True, help="Choose GPUs anew, as the launch chose them.")
@click.option("--wait", is_flag=True, help="Follow its output and return its exit code.")
@click.option("--dry-run", is_flag=True, help="Print the docker run line and launch nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask when the GPUs are others.")
@pass_settings
def rerun(settings: Settings, name: str, any_gpu: bool, wait: bool, dry_run: bool, as_json: bool, yes: bool) -> int:
    """Launch once more what was launched before: the same digest, the same options, the same GPUs.

    It asks when a GPU it had is not there any more. Secrets are not kept: a variable that held one is taken from this
    shell.
    """
    from gpuconsole.cli import launch, launch_dryrun
    from gpuconsole.services.rerunning import again

    if not dry_run:
        settings.may_change("launch a container")
    session = settings.session()
    record = _records().one(name)
    once_more = again(session, record, any_gpu=any_gpu)
    for note in once_more.notes:
        talk(f"Note: {note}")
    if once_more.changed_gpus:
        talk(once_more.changed_gpus)
        if not dry_run:
            confirm(f"Launch {record.name} on other GPUs?", assume_yes=yes)
    if dry_run:
        return launch_dryrun.dry_run(
            session, once_more.spec, once_more.options, form="docker", profile="", foreground=wait,
            as_json=as_json,
        )  # fmt: skip
    return launch.bring_up(session, once_more.spec, wait=wait, as_json=as_json)


@click.command(epilog="\b\nExamples:\n  gpuconsole diff 11 12\n  gpuconsole diff 11 12 --json")
@click.argument("first", metavar="NO|NAME")
@click.argument("second", metavar="NO|NAME")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@pass_settings
def diff(settings: Settings, first: str, second: str, as_json: bool) -> int:
    """Show in what two launches differ: image, digest, options, GPUs, folder, and how they ended.

    Exits 0 whether they differ or not.
    """
    from gpuconsole.services.rerunning import differences

    records = _records()
    _settle(settings.session(), records)
    one, other = records.one(first), records.one(second)
    found = differences(one, other)
    if as_json:
        json_document("diff", first=one.number, second=other.number, differences=found)
    elif not found:
        talk(f"Launches {one.number} and {other.number} were asked for alike and went alike.")
    else:
        titles = ("", f"{one.number} {one.name}", f"{other.number} {other.name}")
        columns = [Column(titles[0]), Column(titles[1], flexible=True), Column(titles[2], flexible=True)]
        data(table(columns, [_difference(each) for each in found]))
    return ExitCode.OK


def _records() -> LaunchRecords:
    from gpuconsole.services.launchrecords import LaunchRecords

    return LaunchRecords()


def _settle(session: Session, records: LaunchRecords) -> ConsoleError | None:
    """Learn how they ended since; what kept us from it, without which the list is still of use."""
    from gpuconsole.services.launchends import settle

    try:
        settle(session.engine, records)
    except ConsoleError as error:
        return error
    return None


def document_of(record: LaunchRecord) -> dict[str, Any]:
    """A launch in JSON's own types."""
    from gpuconsole.core.document import jsonable

    body: dict[str, Any] = jsonable(record)
    return {"id": record.word, **{key: value for key, value in body.items() if key != "word"}}


def _indices(session: Session) -> Mapping[str, int]:
    """UUID → index of the GPUs that are here now."""
    return {gpu.uuid: gpu.index for gpu in session.gpus.snapshot().gpus if gpu.uuid is not None}


def _row(record: LaunchRecord, indices: Mapping[str, int]) -> tuple[str, ...]:
    from gpuconsole.cli.containers import gpu_cell
    from gpuconsole.services.containers import ContainerGpu

    now = time.time()
    took = duration((record.ended_at or now) - record.started_at)
    gpus = gpu_cell(tuple(ContainerGpu(indices.get(uuid), plain_line(uuid)) for uuid in record.gpus))
    return (
        str(record.number), plain_line(record.name), plain_line(record.image), gpus,
        f"{duration(now - record.started_at)} ago", took, plain_line(record.reason or "runs"),
    )  # fmt: skip


def _show(record: LaunchRecord) -> None:
    now = time.time()
    data(f"{record.number} {plain_line(record.name)}")
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.started_at))
    lines = [
        ("image", record.image), ("digest", record.digest or "none: it is known by no registry"),
        ("gpus", ", ".join(record.gpus) or "none"), ("folder", record.folder),
        *([("profile", record.profile)] if record.profile else []),
        ("began", f"{began}, {duration(now - record.started_at)} ago"),
        ("took", duration((record.ended_at or now) - record.started_at)),
    ]  # fmt: skip
    for title, text in lines:
        data(f"  {title:<8} {plain_line(str(text))}")
    data(f"  {'command':<8} {record.command}")
    paragraph(plain_line(record.reason or "It runs."))
    for advice in record.advice:
        paragraph(f"→ {plain_line(advice)}")
    if record.last_lines:
        data("Its last lines:")
        for line in record.last_lines:
            data(f"  | {plain_line(line)}")


def _difference(found: Difference) -> tuple[str, str, str]:
    return found.what, _text(found.first), _text(found.second)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list | tuple):
        return plain_line(shlex.join(str(each) for each in value)) or "–"
    return plain_line(str(value))
