"""What ``launch`` says: its steps and reasons on stderr, the container on stdout."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from gpuconsole.cli.output import data, json_document, talk
from gpuconsole.core.errors import ExitCode
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Container
from gpuconsole.launch.render import DockerRun
from gpuconsole.services.access import Access
from gpuconsole.services.following import Ending
from gpuconsole.services.launching import Launched, LaunchStep, Phase
from gpuconsole.services.logtext import LineCleaner
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.pulling import PullState
from gpuconsole.services.shownsecrets import kept_words

_PULL_LINE_S = 5.0
"""Seconds between two lines about a pull."""

_AMOUNT = re.compile(r"\d[\d.,]* ?(?=[KMGT]i?B\b|%)")
"""An amount of memory or disk: with another one a sentence says nothing new."""


def tell_plan(plan: LaunchPlan) -> None:
    """Which GPUs it gets, by which way, and what may not be meant."""
    for reason in plan.reasons:
        talk(reason)
    for note in plan.notes:
        talk(f"Note: {note}")


class LaunchTalk:
    """Tells how a launch goes on."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._phase = Phase.PLAN
        self._plan: LaunchPlan | None = None
        self._pull_told_at: float | None = None
        self._waits_for = ""
        self._told: set[str] = set()
        """Reasons and notes, without the amounts in them."""

    def step(self, step: LaunchStep) -> None:
        """Tell of a step."""
        if step.phase is Phase.WAIT and step.plan is not None:
            self._tell_waiting(step.plan)
        elif step.plan is not None:
            self._tell_plan(step.plan)
        if step.pull is not None:
            self._tell_pull(step.pull)
        if step.phase is Phase.CREATE and self._pull_told_at is not None:
            talk("The image is here.")
        if step.access is not None:
            tell_access(step.access)
        self._phase = step.phase

    def _tell_plan(self, plan: LaunchPlan) -> None:
        """Tell of a plan; of one made anew, after a pull or a wait, only what was not said before."""
        changed = self._plan is not None and plan.choice.uuids != self._plan.choice.uuids
        if changed:
            talk("Meanwhile the GPUs changed:")
            self._told.discard(_known(plan.choice.reason))  # other GPUs may go by the same names
        if changed or self._plan is None:
            for reason in self._not_told(plan.reasons):
                talk(reason)
        for note in self._not_told(plan.notes):
            talk(f"Note: {note}")
        self._plan = plan

    def _not_told(self, sentences: Iterable[str]) -> Iterator[str]:
        """Those that were not said yet; what is said now is marked."""
        for sentence in sentences:
            if (known := _known(sentence)) not in self._told:
                self._told.add(known)
                yield sentence

    def _tell_waiting(self, plan: LaunchPlan) -> None:
        """Tell for what is waited, once for each state of it."""
        told = "; ".join(f"{unit.label}: {unit.state}" for unit in plan.choice.units)
        if told != self._waits_for:
            talk(f"Waiting for a free GPU ({told}); ctrl+c ends the waiting.")
            self._waits_for = told

    def _tell_pull(self, state: PullState) -> None:
        now = time.monotonic()
        if self._pull_told_at is None:
            talk(f"Pulling {state.reference} …")
        elif now - self._pull_told_at < _PULL_LINE_S:
            return
        else:
            talk(f"  {plain_line(str(state))}")
        self._pull_told_at = now

    def interrupted(self) -> None:
        """Tell that a signal was seen."""
        if self._phase is not Phase.FOLLOW:
            talk("Interrupted: taking back what was begun. Again to leave at once.")

    @property
    def what_is_left(self) -> str:
        """What may remain when the work is not waited for."""
        if self._phase in (Phase.PLAN, Phase.IMAGE, Phase.WAIT) or self._plan is None:
            return "nothing was launched"
        if self._phase is Phase.FOLLOW:
            return f"{self._plan.name} goes on"
        return f"the engine did not answer, and a container {self._plan.name} may be there"

    def result(self, launched: Launched, *, followed: bool) -> int:
        """Print the container, tell how to go on, and give the exit code."""
        if launched.not_kept:
            talk(f"Note: 'gpuconsole runs' will not know of it. {launched.not_kept}")
        if self._as_json:
            command = DockerRun(kept_words(launched.plan, foreground=followed))
            access = _access_document(launched.access, with_token=not followed)
            json_document("launch", container=_document(launched), command=str(command), access=access)
        elif not followed:
            data(launched.name)
        if followed:
            return _tell_end(launched)
        if launched.ending is not None:
            return _tell_ended_at_once(launched, launched.ending)
        _tell_running(launched, with_access=not self._as_json)
        return ExitCode.OK


def _known(sentence: str) -> str:
    """What of a sentence tells whether it was said before."""
    return _AMOUNT.sub("", sentence)


def tell_access(access: Access) -> None:
    """Where to point a browser, with the token: said once, since it is kept in a file only."""
    talk(f"{access.title}: {access.url}")
    if access.tunnel:
        talk(f"  From another machine: {access.tunnel}")
    if access.token_file:
        talk(f"  The token is not shown again; it is in {plain_line(access.token_file)}")


def _access_document(access: Access | None, *, with_token: bool) -> dict[str, Any] | None:
    """Where to point a browser; without the token when that was told already."""
    if access is None:
        return None
    url = access.url if with_token else access.url.partition("?")[0]
    return {"title": access.title, "url": url, "token_file": access.token_file, "tunnel": access.tunnel}


def _tell_running(launched: Launched, *, with_access: bool) -> None:
    name, access = launched.name, launched.access
    talk(f"{name} runs.")
    if access is not None and with_access:
        tell_access(access)
    own = launched.plan.spec.work.port
    for port in launched.container.ports if launched.container else ():
        if port.host_port and not (access is not None and port.container_port == own):
            host = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip
            talk(f"  {host}:{port.host_port} leads to its port {port.container_port}/{port.protocol}")
    join = "attach" if launched.plan.request.tty else "shell"
    talk(f"  gpuconsole {join} {name} · gpuconsole logs -f {name} · gpuconsole check {name} · gpuconsole stop {name}")


def _tell_ended_at_once(launched: Launched, ending: Ending) -> int:
    """A container that is over already: fine when it ended well, since a command may be short."""
    talk(f"{launched.name} {ending.words}.")
    if ending.last_lines:
        talk("Its last lines:")
        for line in ending.last_lines:
            talk(f"  | {line}")
    elif launched.plan.request.auto_remove:
        talk("  Its output went with it (--rm); --wait shows the output.")
    if ending.restarts is not None:
        talk(f"  → It goes on so: 'gpuconsole logs -f {launched.name}', 'gpuconsole stop {launched.name}'.")
    elif not launched.plan.request.command and ending.exit_code == 0:
        talk("  → Give it a command after --, or a terminal by -i: its own command had nothing to wait for.")
    elif ending.exit_code and not launched.plan.request.auto_remove:
        talk(f"  → It is kept: 'gpuconsole logs {launched.name}', 'gpuconsole rm {launched.name}'.")
    return ExitCode.OK if ending.exit_code == 0 else ExitCode.FAILED


def _tell_end(launched: Launched) -> int:
    """A container that was followed: its exit code is ours."""
    ending = launched.ending
    code = None if ending is None else ending.exit_code
    if ending is None or code is None:
        talk(f"{launched.name} has ended, and the engine no longer knows its exit code.")
        return ExitCode.FAILED
    if code != 0 or ending.restarts is not None:
        talk(f"{launched.name} {ending.words}.")
    if ending.restarts is not None:
        talk(f"  → End it by 'gpuconsole stop {launched.name}'.")
    return code


def _document(launched: Launched) -> dict[str, Any]:
    """The container as JSON; its environment is not in it, since that may hold secrets."""
    plan, container, ending = launched.plan, launched.container, launched.ending
    return {
        "id": launched.id,
        "name": launched.name,
        "image": plan.spec.image,
        "digest": plan.image.known,
        "image_id": container.image_id if container else None,
        "state": container.state.value if container else "removed",
        "exit_code": ending.exit_code if ending else None,
        "restarts": ending.restarts if ending else None,
        "gpus": gpus_document(plan),
        "gpu_path": plan.request.gpu_path.value,
        "ports": _ports(container),
        "shm_bytes": plan.request.shm_bytes,
        "last_lines": list(ending.last_lines) if ending else [],
        "notes": list(plan.notes),
    }


def gpus_document(plan: LaunchPlan) -> list[dict[str, Any]]:
    """The chosen GPUs as JSON, with the running containers that were given them before."""
    return [
        {
            "index": unit.index,
            "uuid": unit.uuid,
            "name": unit.mig.name if unit.mig else unit.gpu.name,
            "given_to": [{"container": one.name, "user": one.user} for one in unit.claimants],
        }
        for unit in plan.choice.units
    ]


def _ports(container: Container | None) -> list[dict[str, Any]]:
    return [
        {
            "container_port": port.container_port,
            "protocol": port.protocol,
            "host_ip": port.host_ip,
            "host_port": port.host_port,
        }
        for port in (container.ports if container else ())
        if port.host_port
    ]


class Passing:
    """Passes a container's output on, harmless: its stdout to ours, its stderr to ours."""

    def __init__(self, *, to_stderr: bool) -> None:
        self._streams = {"stdout": sys.stderr if to_stderr else sys.stdout, "stderr": sys.stderr}
        self._cleaners: dict[str, LineCleaner] = {}

    def __call__(self, channel: str, output: bytes) -> None:
        """Pass on what was written to ``channel``."""
        cleaner = self._cleaners.setdefault(channel, LineCleaner())
        self._write(channel, cleaner.feed(output))

    def finish(self) -> None:
        """Write the line that was not ended."""
        for channel, cleaner in self._cleaners.items():
            self._write(channel, cleaner.finish())

    def _write(self, channel: str, lines: list[str]) -> None:
        stream = self._streams.get(channel, sys.stdout)
        for line in lines:
            stream.write(line)
        stream.flush()
