"""``gpuconsole shell`` and ``attach``: a person talks to a container."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import container_argument
from gpuconsole.cli.others import ask_for_others, others_option, tell_owner, yes_option
from gpuconsole.cli.output import failure, talk
from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, TimedOut, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.services import detachkeys, shells, tmux
from gpuconsole.services.conversation import Conversation, Outcome, terminal_size, write_through
from gpuconsole.services.endings import describe_exit
from gpuconsole.services.naming import find, need_running

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.engine.protocol import InteractiveProcess

_NO_PROGRAM = (126, 127)
_SIGHUP_EXIT, _SIGTERM_EXIT = 129, 143

_here = click.option("--here", is_flag=True, help="Inside tmux: stay in this pane instead of opening a window.")
_hold = click.option("--hold", is_flag=True, hidden=True)
_keys = click.option(
    "--detach-keys", default=detachkeys.DEFAULT, show_default=True, metavar="KEYS",
    help="Keys that leave it running.",
)  # fmt: skip


@click.command(
    epilog="\b\nExamples:\n  gpuconsole shell train\n  gpuconsole shell --user 1000 --workdir /data train\n"
    "  echo nvidia-smi | gpuconsole shell train"
)
@container_argument
@click.option("-u", "--user", metavar="NAME|UID[:GID]", help="As this user; else as the container's own.")
@click.option("-w", "--workdir", metavar="FOLDER", help="In this folder; else in the container's own.")
@_here
@_keys
@_hold
@pass_settings
def shell(
    settings: Settings, name: str, user: str | None, workdir: str | None, here: bool, detach_keys: str, hold: bool
) -> int:
    """Open a shell in a running container: bash where the image has it, else sh.

    Inside tmux it opens in a window of its own, named after the container; asked for again, that window is shown.
    The exit code is the shell's. Without a terminal, standard input is given to the shell as a script. Whose container
    it is, is said when it is someone else's.
    """
    keys = detachkeys.key_bytes(detach_keys)
    _refuse_wrong(user, workdir)
    settings.may_change("open a shell in a container")
    container = find(settings.session().engine, name)
    need_running(container, "a shell")
    options = [*(("--user", user) if user else ()), *(("--workdir", workdir) if workdir else ())]
    if not here and _opened_window(settings, container, "shell", [*options, "--detach-keys", detach_keys]):
        return 0
    terminal = _is_terminal()
    with _Held(enabled=hold) as held:
        tell_owner(settings, container)
        process = _started(settings, container, user=user, workdir=workdir, keys=detach_keys, terminal=terminal)
        if terminal:
            talk(f"Shell in {container.name}; {detachkeys.described(detach_keys)} leaves it running.")
        outcome, code, refusal = _talk_to_shell(process, keys=keys if terminal else b"", terminal=terminal)
        if refusal:
            raise _no_shell(container, refusal, user=user, workdir=workdir)
        if outcome is not Outcome.ENDED or code is None:
            code = _left(outcome, f"the shell in {container.name}")
        held.release()
        return code


def _refuse_wrong(user: str | None, workdir: str | None) -> None:
    """Refuse what no container can take, before the engine tells it in words of its own.

    Raises:
        UsageError: The user's number is larger than any, or the folder is not absolute.
    """
    from gpuconsole.launch.fields import not_text, parse_working_dir
    from gpuconsole.launch.limits import refuse_large_ids

    checks: tuple[tuple[str, str | None, Callable[[str], object]], ...] = (
        ("--user", user, refuse_large_ids),
        ("--workdir", workdir, parse_working_dir),
    )
    for option, text, check in checks:
        try:
            if text and (reason := not_text(text)):
                raise ValueError(f"it has {reason}, which the engine does not take")
            if text:
                check(text)
        except ValueError as error:
            raise UsageError(f"{option}: {error}.", hint="'gpuconsole shell --help' shows what it takes.") from error


def _started(
    settings: Settings, container: Container, *, user: str | None, workdir: str | None, keys: str, terminal: bool
) -> InteractiveProcess:
    environment = shells.terminal_environment(os.environ.get("TERM"), os.environ.get("COLORTERM"))
    try:
        return settings.session().engine.execute_interactive(
            container.id,
            shells.COMMAND if terminal else shells.PIPED,
            size=terminal_size() if terminal else None,
            detach_keys=keys,
            user=user,
            working_dir=workdir,
            environment=environment if terminal else None,
        )
    except NotFound as error:
        raise _no_shell(container, error.detail or error.message, user=user, workdir=workdir) from error


def _no_shell(container: Container, words: str, *, user: str | None, workdir: str | None) -> ConsoleError:
    """Why there is no shell, from the engine's ``words``."""
    detail = plain_line(words)
    if user is not None and ("unable to find" in words or "s found" in words):
        return NotFound(
            f"Container {container.name} knows no user {user!r}.",
            hint="A number always works: --user 1000.",
            detail=detail,
        )
    if "chdir" in words or "cwd" in words:
        folder = workdir or container.working_dir
        return NotFound(
            f"Container {container.name} has no folder {folder!r}.",
            hint="Pass another one: --workdir /.",
            detail=detail,
        )
    return NotFound(
        f"Container {container.name} has no shell: there is no sh in its image.",
        hint=f"'gpuconsole logs {container.name}' and 'gpuconsole inspect {container.name}' work without.",
        detail=detail,
    )


def _talk_to_shell(process: InteractiveProcess, *, keys: bytes, terminal: bool) -> tuple[Outcome, int | None, str]:
    """How it ended, its exit code, and the engine's words when it could not be started."""
    conversation = Conversation(process, keys=keys, terminal=terminal)
    outcome = conversation.run()
    code = _exit_code(process, outcome)
    if code in _NO_PROGRAM and conversation.refusal:
        return outcome, code, conversation.refusal.decode(errors="replace")
    write_through("stdout", conversation.refusal)
    return outcome, code, ""


def _exit_code(process: InteractiveProcess, outcome: Outcome) -> int | None:
    """Its exit code; None when it goes on, or nobody answers any more."""
    try:
        return process.exit_code() if outcome is Outcome.ENDED else None
    except (EngineUnavailable, TimedOut, NotFound):
        return None


def _left(outcome: Outcome, what: str) -> int:
    """Say what became of ``what``, which did not end while we were there; the exit code for it."""
    if outcome is Outcome.ENDED:
        raise EngineUnavailable(
            f"The connection to {what} was lost; it may go on.", hint="Try again; 'gpuconsole ps' shows its state."
        )
    if outcome is Outcome.HUNG_UP:
        return _SIGHUP_EXIT
    talk(f"Left {what}; it goes on.")
    return _SIGTERM_EXIT if outcome is Outcome.TERMINATED else 0


@click.command(epilog="\b\nExamples:\n  gpuconsole attach train\n  gpuconsole attach --here jupyter")
@container_argument
@_here
@_keys
@_hold
@yes_option
@others_option
@pass_settings
def attach(settings: Settings, name: str, here: bool, detach_keys: str, hold: bool, yes: bool, others: bool) -> int:
    """Join the main process of a running container: what it writes from now on, and its terminal.

    In a container with a terminal, keys go to the program inside, ctrl+c too; the detach keys leave it. In one
    without, ctrl+c only leaves: the container goes on either way. The exit code is the container's when it ends.
    Where what is typed goes to someone else's program, it asks for the container's name first.
    """
    keys = detachkeys.key_bytes(detach_keys)
    settings.may_change("join a container's terminal")
    container = find(settings.session().engine, name)
    need_running(container, "joining it")
    options = ["--detach-keys", detach_keys, *(("--yes", "--others") if yes and others else ())]
    if not here and _opened_window(settings, container, "attach", options):
        return 0
    with _Held(enabled=hold) as held:
        if container.tty or container.open_stdin:
            ask_for_others(settings, container, "join", yes=yes, others=others)
        else:
            tell_owner(settings, container)
        outcome, code = _attached(settings, container, keys=keys, written=detach_keys)
        if outcome is not Outcome.ENDED:
            held.release()
    return code


def _attached(settings: Settings, container: Container, *, keys: bytes, written: str) -> tuple[Outcome, int]:
    from gpuconsole.cli.logs import cleaning_sink

    terminal = container.tty and _is_terminal()
    if terminal:
        leave = f"{detachkeys.described(written)} leaves it running; ctrl+c goes to the program inside."
    else:
        leave = "ctrl+c leaves it running."
    talk(f"Attached to {container.name}; {leave}")
    size = terminal_size() if terminal else None
    process = settings.session().engine.attach(container.id, size=size, detach_keys=written)
    sink, finish = (write_through, lambda: None) if terminal else cleaning_sink()
    try:
        outcome = Conversation(process, keys=keys if terminal else b"", terminal=terminal, sink=sink).run()
    finally:
        finish()
    code = _exit_code(process, outcome)
    if code is None:
        return outcome, _left(outcome, f"container {container.name}")
    talk(f"Container {container.name} ended: {describe_exit(code)}.")
    return outcome, code


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _opened_window(settings: Settings, container: Container, verb: str, options: list[str]) -> bool:
    """Show it in a tmux window, where that can be; say whether it is."""
    if not (_is_terminal() and tmux.inside()):
        return False
    before = [*(("--host", settings.host) if settings.host else ()), *(("--debug",) if settings.debug else ())]
    command = tmux.our_command([*before, verb, container.id, "--here", "--hold", *options])
    try:
        new = tmux.show_window(container.name, command, mark=f"{verb}:{container.id}")
    except ConsoleError as error:
        talk(f"{error.message} Staying in this terminal.")
        return False
    talk(f"{'Opened' if new else 'Showing'} the tmux window {container.name}.")
    return True


class _Held:
    """A tmux window vanishes with its command; this keeps its last words readable until a key is pressed.

    Args:
        enabled: We are alone in a window.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled and sys.stdin.isatty()

    def release(self) -> None:
        """Let the window go: what is on it has been seen."""
        self._enabled = False

    def __enter__(self) -> _Held:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._enabled:
            return
        if isinstance(error, ConsoleError):
            failure(error)
        talk("Press a key to close this window.")
        click.getchar()
