"""Processes that work together, one a GPU: started from the archive, joined by a file on this machine, ended as one.

They are children of the worker and stay in its process group: whoever ends that group ends them too. They talk to each
other by NCCL on GPUs and by gloo on CPUs, over loopback, and to the worker by a pipe each.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from typing import Any, Iterator

from gpuconsole.probes.payload.bench.world import World
from gpuconsole.probes.payload.checks.shm import DOCKER_DEFAULT_BYTES, SHM
from gpuconsole.probes.payload.child import died_of
from gpuconsole.probes.payload.environment import cpus, shm_total
from gpuconsole.probes.payload.outcome import first_line, size
from gpuconsole.probes.payload.stream import SEPARATOR, Emitter
from gpuconsole.probes.payload.worker import die_with_parent

_HOME = "gpuconsole.probes.payload.bench."
_GRACE_S = 1.0
"""When one fails the others fail for the lack of it: so long their words are awaited, to tell cause from effect."""
_PARTING_S = 5.0
"""How long one that is done may take to end by itself."""
_EFFECTS = ("connection", "peer", "socket", "timed out", "timeout", "nccl", "store", "broken pipe", "aborted")


class RanksFailed(RuntimeError):
    """One of the processes failed; the text says why, and the others were ended."""


class RanksLate(RuntimeError):
    """They did not end in time and were ended; the text says what they were at."""


def run_ranks(
    where: str,
    told: dict[str, Any],
    *,
    archive: str,
    folder: str,
    count: int,
    device: str,
    timeout_s: float,
    group: bool = True,
    environment: dict[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Run ``module:function`` under ``bench`` in ``count`` processes and give what they tell, as it comes.

    Args:
        where: The function; it is called with its :class:`World` and with ``told``.
        told: What all of them are told, in what JSON can say.
        archive: The payload's archive.
        folder: Where the file that joins them is made.
        count: How many; number ``k`` has GPU ``k``.
        device: ``cuda`` or ``cpu``.
        timeout_s: After so many seconds they are ended.
        group: They form a process group of torch.distributed.
        environment: Variables to add for them.

    Raises:
        RanksFailed: One raised, died, or could not be started.
        RanksLate: They took too long.
    """
    with tempfile.TemporaryDirectory(prefix="ranks-", dir=folder) as place:
        common = {"where": where, "told": told, "count": count, "device": device, "group": group}
        common.update(store=os.path.join(place, "store"), timeout_s=timeout_s)
        crew = _Crew(time.monotonic() + timeout_s, timeout_s)
        try:
            for rank in range(count):
                crew.start(dict(common, rank=rank), archive, environment or {}, device)
            yield from crew.follow()
        finally:
            crew.end()


class _Rank:
    """One of the processes, as the worker sees it."""

    def __init__(self, told: dict[str, Any], archive: str, environment: dict[str, str]) -> None:
        self.number: int = told["rank"]
        self.done = False
        self.error = ""
        self._buffer = b""
        self.fd, write_fd = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, archive, "rank", json.dumps(dict(told, fd=write_fd))],
                stdin=subprocess.DEVNULL,
                env=dict(os.environ, **environment),
                pass_fds=(write_fd,),
            )
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(write_fd)

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """The records that have come, and whether it was the end."""
        data = os.read(self.fd, 65536)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        records = []
        for line in lines:
            record = json.loads(line.decode("ascii").lstrip(SEPARATOR))
            if record["t"] == "done":
                self.done = True
            elif record["t"] == "error":
                self.error = record["why"]
            else:
                record["rank"] = self.number
                records.append(record)
        return records, not data

    def end(self, until: float) -> None:
        """End it by force, unless it ends by itself until this moment of the monotonic clock."""
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            try:
                self.process.wait(_PARTING_S)
            except subprocess.TimeoutExpired:
                pass  # in a call of the driver that cannot be interrupted
        os.close(self.fd)


class _Crew:
    """All of them."""

    def __init__(self, ends_at: float, timeout_s: float) -> None:
        self._ends_at = ends_at
        self._timeout_s = timeout_s
        self._ranks: list[_Rank] = []
        self._at = "start"

    def start(self, told: dict[str, Any], archive: str, environment: dict[str, str], device: str) -> None:
        added = dict(environment)
        if device == "cpu":
            # gloo asks for the address of the host's name, which in a container may lead nowhere.
            added["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
        try:
            self._ranks.append(_Rank(told, archive, added))
        except OSError as error:
            raise RanksFailed("no process can be started: {}".format(error.strerror or error)) from error

    def follow(self) -> Iterator[dict[str, Any]]:
        """Give the records of all until they have ended."""
        with selectors.DefaultSelector() as selector:
            for rank in self._ranks:
                selector.register(rank.fd, selectors.EVENT_READ, rank)
            give_up_at = 0.0
            # One that is done may hang in taking its leave: its end is not waited for here.
            while not all(rank.done for rank in self._ranks) and selector.get_map():
                limit = (give_up_at or self._ends_at) - time.monotonic()
                if limit <= 0:
                    break
                for key, _ in selector.select(limit):
                    rank: _Rank = key.data
                    records, ended = rank.read()
                    for record in records:
                        if record["t"] == "at":
                            self._at = record["text"]
                        yield record
                    if ended:
                        selector.unregister(key.fd)
                        self._look_at_end(rank)
                    if rank.error and not give_up_at:
                        give_up_at = time.monotonic() + _GRACE_S
        self._judge()

    def _look_at_end(self, rank: _Rank) -> None:
        if rank.done or rank.error:
            return
        try:
            rank.error = died_of(rank.process.wait(_PARTING_S))[0]
        except subprocess.TimeoutExpired:
            rank.error = "told nothing more"

    def _judge(self) -> None:
        errors = {rank.number: rank.error for rank in self._ranks if rank.error}
        if errors:
            root = root_of(errors, len(self._ranks))
            raise RanksFailed(root + hint_for(root, shm_total()))
        if not all(rank.done for rank in self._ranks):
            waiting = [str(rank.number) for rank in self._ranks if not rank.done]
            text = "rank {} of {} did not end within {:g} s, at {}"
            raise RanksLate(text.format(", ".join(waiting), len(self._ranks), self._timeout_s, self._at))

    def end(self) -> None:
        """End those that are left; those that are done may take their leave of each other."""
        for rank in self._ranks:
            if not rank.done:
                rank.process.kill()
        until = time.monotonic() + _PARTING_S
        for rank in self._ranks:
            rank.end(until)


def root_of(errors: dict[int, str], count: int) -> str:
    """The error that most likely brought the others about, with the rank that told it."""

    def effect(rank: int) -> tuple[bool, int]:
        return any(word in errors[rank].lower() for word in _EFFECTS), rank

    rank = min(errors, key=effect)
    return errors[rank] if count == 1 else "rank {} of {}: {}".format(rank, count, errors[rank])


def hint_for(error: str, shm_bytes: int | None) -> str:
    """What NCCL's least telling error most often means, to be added to it; empty when it means something else."""
    if "unhandled system error" in error and shm_bytes is not None and shm_bytes <= DOCKER_DEFAULT_BYTES:
        return "; {} is {}, too small for NCCL: --shm-size 8g gives it more".format(SHM, size(shm_bytes))
    return ""


def serve(config: dict[str, Any]) -> int:
    """Be one of the processes: do what ``config`` says and tell how it went."""
    die_with_parent()
    fd = int(config["fd"])
    os.set_inheritable(fd, False)
    out = Emitter(fd, "")
    try:
        import torch

        world = World(torch, config, out)
        if world.on_gpu:
            torch.cuda.set_device(world.rank)
        else:
            torch.set_num_threads(max(1, (cpus() or 1) // world.count))
        if config["group"]:
            world.emit("at", text="joining")
            world.join(config["store"], config["timeout_s"])
        module, _, function = config["where"].partition(":")
        getattr(import_module(_HOME + module), function)(world, config["told"])
        world.synchronize()
        out.emit("done")
    except Exception as error:
        name, text = type(error).__name__, first_line(error)
        out.emit("error", why=text if text == name else "{}: {}".format(name, text))
        return 1
    world.leave()
    return 0
