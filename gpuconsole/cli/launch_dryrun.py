"""``launch --dry-run``: what would be launched, as a docker run line, a compose file, or a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.cli.launch_talk import gpus_document, tell_plan
from gpuconsole.cli.output import data, json_document, talk
from gpuconsole.core.errors import ExitCode
from gpuconsole.launch.preflight import standing
from gpuconsole.services.access import write_line_files
from gpuconsole.services.planning import LaunchPlan, plan_launch

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.session import Session


def dry_run(
    session: Session,
    spec: LaunchSpec,
    options: LaunchOptions,
    *,
    form: str,
    profile: str,
    foreground: bool,
    readonly: bool,
    as_json: bool,
) -> int:
    """Print what would be launched.

    Args:
        session: Whose GPUs and engine.
        spec: What is to be launched.
        options: The same, as it was written.
        form: ``docker``, ``compose`` or ``toml``.
        profile: The name of the profile that is printed.
        foreground: Follow it and return its exit code, as ``--wait`` does.
        readonly: Make no file that the printed form needs.
        as_json: A JSON document with the line.
    """
    plan = plan_launch(session, spec)
    tell_plan(plan)
    for finding in standing(plan.findings, spec.force):
        talk(f"It would be refused: {finding.sentence} {finding.remedy}".rstrip())
    if plan.image.unresolved:
        talk(plan.image.unresolved)
    if form == "toml":
        return _profile(options, profile)
    _tell_files(session, plan, readonly=readonly)
    if form == "compose":
        return _compose(plan)
    run = plan.docker_run(foreground=foreground)
    if run.client:
        talk(f"The line needs a docker client {run.client} or newer, which knows CDI devices.")
    talk("Nothing was launched. gpuconsole's own labels, which say who launched a container, are not in the line.")
    if as_json:
        json_document(
            "launch",
            container=None,
            command=str(run),
            gpus=gpus_document(plan),
            notes=plan.notes,
            findings=plan.findings,
        )
    else:
        data(str(run))
    return ExitCode.OK


def _tell_files(session: Session, plan: LaunchPlan, *, readonly: bool) -> None:
    """Make the small files that the printed form names, so that it works, and say so."""
    files = plan.own_files
    if not files:
        return
    if readonly:
        talk(f"{', '.join(files)}: made by a launch, not with --readonly.")
        return
    write_line_files(session.engine, plan)
    talk(f"Made for it: {', '.join(files)}.")


def _compose(plan: LaunchPlan) -> int:
    from gpuconsole.launch.compose import COMPOSE, compose_notes, compose_text

    for note in compose_notes(plan.request, plan.spec):
        talk(note)
    talk(f"Docker Compose {COMPOSE} or newer: save it as compose.yaml, then 'docker compose up --detach'.")
    data(compose_text(plan.request, plan.spec).rstrip())
    return ExitCode.OK


def _profile(options: LaunchOptions, name: str) -> int:
    from gpuconsole.launch.profiletext import profile_table
    from gpuconsole.launch.tomltext import table_text
    from gpuconsole.services.profilesaving import without_secret_values

    shown = without_secret_values(options)
    if shown != options:
        talk("Values that look like secrets are not written: they are taken from the shell that launches.")
    talk("Save it in gpuconsole.toml of the project's folder, or in your own.")
    data(table_text(f"profiles.{name}", profile_table(shown)).rstrip())
    return ExitCode.OK
