"""``gpuconsole profiles``: launches by name: listed and judged, shown, saved from a running container."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import complete_container, complete_profile
from gpuconsole.cli.output import data, json_data, json_document, talk
from gpuconsole.core.errors import ExitCode

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.services.profiles import Listed

_EXAMPLE = """\b
Examples:
  gpuconsole profiles
  gpuconsole profiles show train
  gpuconsole profiles save train CONTAINER
  gpuconsole profiles schema > gpuconsole.schema.json
\b
gpuconsole.toml, in the project's folder; your own is in gpuconsole's configuration folder:
\b
  [profiles.base]
  image = "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"
  volumes = [".:/workspace", "${DATA:-~/data}:/data:ro"]
  workdir = "/workspace"
\b
  [profiles.train]
  extends = "base"
  kind = "torchrun"
  gpus = 2
  command = ["train.py", "--lr", "${LR:-0.1}"]
  env = { WANDB_API_KEY = "${WANDB_API_KEY}" }
\b
Nothing in it runs on this machine. What a project's profile takes from outside of the
project's folder is told, and asked for once."""


@click.group(invoke_without_command=True, epilog=_EXAMPLE)
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@click.pass_context
@pass_settings
def profiles(settings: Settings, ctx: click.Context, as_json: bool) -> int | None:
    """List the launch profiles of this project and your own, and what is wrong with each.

    Of two with the same name the project's is meant. What "asks" is launched after a question, what is "refused" only
    by --force. The exit code is 8 when something is wrong.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError(f"Give the options of {ctx.invoked_subcommand} after its name.", ctx)
        return None
    from gpuconsole.services.profiles import file_mistakes, list_profiles, profile_sources, user_file

    sources = profile_sources()
    listed = list_profiles(sources, settings.session().surroundings())
    loose = [f"{source.shown}, {mistake}" for source, mistake in file_mistakes(sources)]
    if as_json:
        files = [{"path": str(source.path), "of_project": source.of_project} for source in sources]
        json_document("profiles", files=files, profiles=[_document(each) for each in listed], problems=loose)
    elif not sources:
        talk(f"There is no gpuconsole.toml here, and no {user_file()}.")
        talk("  → 'gpuconsole profiles save NAME CONTAINER' makes one; 'gpuconsole profiles --help' shows its form.")
    else:
        _write(listed, loose)
    return ExitCode.BAD_FILE if loose or any(each.problems for each in listed) else ExitCode.OK


def _write(listed: tuple[Listed, ...], loose: list[str]) -> None:
    from gpuconsole.cli.tables import Column, table
    from gpuconsole.launch.spec import Force

    rows = [
        (each.name, _image(each), _gpus(each), _state(each), each.source.shown, each.description or "")
        for each in listed
    ]
    titles = (Column("NAME"), Column("IMAGE", flexible=True), Column("GPUS"), Column("STATE"), Column("FILE"))
    data(table((*titles, Column("WHAT FOR", flexible=True)), rows))
    for each in listed:
        for problem in each.problems:
            talk(f"{each.name}: {problem}")
        if each.refused:
            talk(f"{each.name}: launch refuses it, since it {each.refused}; --force {Force.OUTSIDE_PROJECT} lifts that")
    for words in loose:
        talk(words)


def _image(each: Listed) -> str:
    return (each.options.image if each.options else "") or "–"


def _gpus(each: Listed) -> str:
    return (each.options.gpus if each.options else None) or "–"


def _state(each: Listed) -> str:
    if each.problems:
        count = len(each.problems)
        return f"{count} mistake{'s' if count > 1 else ''}"
    if each.hidden:
        return "hidden"
    if each.abstract:
        return "to extend"
    return "refused" if each.refused else "asks" if each.reach else "ok"


def _document(each: Listed) -> dict[str, Any]:
    return {
        "name": each.name,
        "file": str(each.source.path),
        "of_project": each.source.of_project,
        "description": each.description,
        "hidden": each.hidden,
        "abstract": each.abstract,
        "problems": each.problems,
        "reaches": [reach.words for reach in each.reach],
        "refused": each.refused or None,
        "fields": _fields(each.options, each.taken) if each.options is not None else None,
    }


def _fields(options: LaunchOptions, taken: frozenset[str]) -> dict[str, Any]:
    """What a profile amounts to; secrets stay the names of their variables."""
    from gpuconsole.launch.profiletext import profile_table
    from gpuconsole.launch.references import References
    from gpuconsole.services.profilesaving import harmless
    from gpuconsole.services.shownsecrets import secrets_of_shell

    return dict(profile_table(harmless(options), References.of(secrets_of_shell(os.environ, taken))))


@profiles.command(epilog="\b\nExample:\n  gpuconsole profiles show train")
@click.argument("name", metavar="NAME", shell_complete=complete_profile)
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@pass_settings
def show(settings: Settings, name: str, as_json: bool) -> int:
    """Show the profile NAME with all that it extends and its variables put in; secrets stay names."""
    from gpuconsole.launch.tomltext import table_text
    from gpuconsole.services.profiles import one_profile

    each = one_profile(name, settings.session().surroundings())
    if as_json:
        json_document("profile", profile=_document(each))
    elif each.options is not None:
        data(table_text(f"profiles.{name}", _fields(each.options, each.taken)).rstrip())
        talk(f"From {each.source.shown}.")
        for reach in each.reach:
            talk(f"  It {reach.words}{', which is refused' if reach.dangerous else ''}.")
    for problem in each.problems:
        talk(f"{name}: {problem}")
    return ExitCode.BAD_FILE if each.problems else ExitCode.OK


@profiles.command(
    epilog="\b\nExamples:\n  gpuconsole profiles save train llama-ft\n"
    "  gpuconsole profiles save notebook jupyter-k3wq --user --replace"
)
@click.argument("name", metavar="NAME")
@click.argument("container", metavar="CONTAINER", shell_complete=complete_container)
@click.option("--user", "to_user", is_flag=True, help="Into your own file, not the project's.")
@click.option("--replace", is_flag=True, help="In the place of a profile of that name.")
@pass_settings
def save(settings: Settings, name: str, container: str, to_user: bool, replace: bool) -> None:
    """Write the profile NAME, from which CONTAINER could be launched again; the rest of the file stays as it is.

    Values that look like secrets are not written: the variable's name is, and its value is taken from the shell.
    """
    from gpuconsole.services.profilesaving import save_profile

    settings.may_change("write a profile")
    saved = save_profile(settings.session(), name, container, to_user=to_user, replace=replace)
    for note in saved.notes:
        talk(f"Note: {note}")
    talk(f"Saved as {name} in {saved.shown}; 'gpuconsole launch {name}' launches it.")
    data(saved.text.rstrip())


@profiles.command()
def schema() -> None:
    """Print the JSON Schema of gpuconsole.toml, for editors that complete and check it."""
    from gpuconsole.launch.profilemodel import schema as made

    json_data(made())
