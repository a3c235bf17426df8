"""``launch --dry-run``: what would be launched, as a docker run line, a compose file, or a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.cli.launch_talk import gpus_document, tell_plan
from gpuconsole.cli.output import data, json_document, talk
from gpuconsole.core.errors import ExitCode
from gpuconsole.launch.preflight import standing
from gpuconsole.services.access import write_line_files
from gpuconsole.services.planning import LaunchPlan, plan_launch
from gpuconsole.services.shownsecrets import left_to_shell, references_of

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.launch.references import References
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
    as_json: bool,
    write_files: bool = False,
) -> int:
    """Print what would be launched. Nothing is made by it, unless ``write_files`` asks for that.

    Args:
        session: Whose GPUs and engine.
        spec: What is to be launched.
        options: The same, as it was written.
        form: ``docker``, ``compose`` or ``toml``.
        profile: The name of the profile that is printed.
        foreground: Follow it and return its exit code, as ``--wait`` does.
        as_json: A JSON document with the line.
        write_files: Make the small files of ours that the printed form names.
    """
    plan = plan_launch(session, spec)
    tell_plan(plan)
    for finding in standing(plan.findings, spec.force):
        talk(f"It would be refused: {finding.sentence} {finding.remedy}".rstrip())
    if plan.image.unresolved:
        talk(plan.image.unresolved)
    references = references_of(spec, session.surroundings().environment)
    if form == "toml":
        return _profile(options, profile, references)
    _tell_files(session, plan, make=write_files)
    _tell_secrets(left_to_shell(spec, references, files_too=form == "compose"))
    if form == "compose":
        return _compose(plan, references)
    run = plan.docker_run(foreground=foreground, references=references)
    if run.client:
        talk(f"The line needs a docker client {run.client} or newer, which knows CDI devices.")
    if run.needs_bash:
        talk("The line needs bash, zsh, ksh or busybox, which read the line breaks in it as $'…'; sh may not.")
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


def _tell_files(session: Session, plan: LaunchPlan, *, make: bool) -> None:
    """Name the small files that the printed form needs, and make them where that was asked for."""
    files = plan.own_files
    if not files:
        return
    if not make:
        talk(f"A launch makes {', '.join(files)}; to run what is printed by hand, have them made by --write-files.")
        return
    write_line_files(session.engine, plan)
    talk(f"Made for it: {', '.join(files)}.")


def _tell_secrets(names: tuple[str, ...]) -> None:
    """Say which variables the shell must have, since their values are not printed."""
    if names:
        talk(
            f"Not printed, since it looks like a secret: {', '.join(names)}. What is printed takes it from the shell: "
            f"export {names[0]}=… first."
        )


def _compose(plan: LaunchPlan, references: References) -> int:
    from gpuconsole.launch.compose import COMPOSE, compose_notes, compose_text

    for note in compose_notes(plan.request, plan.spec):
        talk(note)
    talk(f"Docker Compose {COMPOSE} or newer: save it as compose.yaml, then 'docker compose up --detach'.")
    data(compose_text(plan.request, plan.spec, references).rstrip())
    return ExitCode.OK


def _profile(options: LaunchOptions, name: str, references: References) -> int:
    from gpuconsole.launch.profiletext import profile_table
    from gpuconsole.launch.tomltext import table_text

    plain, shown = profile_table(options), profile_table(options, references)
    if shown != plain:
        talk("Values that look like secrets are not written: they are taken from the shell that launches.")
    talk("Save it in gpuconsole.toml of the project's folder, or in your own.")
    data(table_text(f"profiles.{name}", shown).rstrip())
    return ExitCode.OK
