"""Bad days of a real engine: frozen, stopped, restarted, killed; and texts that strangers put into it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, TimedOut
from gpuconsole.core.text import plain
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.request import CreateRequest
from tests.engine.contract import until
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.rig.kinds import KINDS, RUNTIMES

# What fails on a thread beside a test fails the test.
UNSEEN = "error::pytest.PytestUnhandledThreadExceptionWarning"
pytestmark = [pytest.mark.engine(*RUNTIMES), pytest.mark.filterwarnings(UNSEEN)]


def connect(engine: EngineClient, *, timeout_s: float = 10) -> DockerEngine:
    return DockerEngine.connect(Endpoint(engine.host, "--host"), timeout_s=timeout_s)


@pytest.fixture(params=["20.10", "26.1"])
def real(request: pytest.FixtureRequest, engine_old: Engine, engine_modern: Engine) -> Iterator[Engine]:
    chosen = engine_old if request.param == "20.10" else engine_modern
    yield chosen
    chosen.thaw()
    if not chosen.running:
        chosen.start()


def running(engine: DockerEngine, image: str, *command: str) -> str:
    identity = engine.create(CreateRequest(image=image, command=command or ("sleep", "1000")))
    engine.start(identity)
    return identity


def test_a_frozen_engine_is_told_in_time(real: Engine) -> None:
    engine = connect(real, timeout_s=1)
    real.freeze()
    for attempt in (engine.ping, engine.info, engine.containers, engine.images):
        with pytest.raises(TimedOut, match="did not answer within 1 s") as caught:
            attempt()
        assert caught.value.hint
    with pytest.raises(TimedOut):
        connect(real, timeout_s=1)
    real.thaw()
    engine.ping()
    engine.close()


def test_every_stream_of_a_frozen_engine_can_be_closed(real: Engine) -> None:
    engine = connect(real)
    identity = running(engine, real.load("small"))
    process = engine.execute(identity, ["cat"])
    streams: list[Any] = [
        engine.events(),
        engine.logs(identity, follow=True),
        process.output,
        engine.pull("127.0.0.1:1/x:1"),
    ]
    real.freeze()
    threads = [threading.Thread(target=_drain, args=(stream,), daemon=True) for stream in streams]
    waiting = threading.Thread(target=_wait, args=(engine, identity), daemon=True)
    for thread in (*threads, waiting):
        thread.start()
    time.sleep(0.3)
    assert all(thread.is_alive() for thread in (*threads, waiting))
    process.write(b"x" * 5_000_000)
    for stream in streams:
        stream.close()
    process.close()
    engine.close()
    for thread in (*threads, waiting):
        thread.join(10)
        assert not thread.is_alive()


def _drain(stream: Iterable[object]) -> None:
    for _ in stream:
        pass


def _wait(engine: DockerEngine, identity: str) -> None:
    with pytest.raises(EngineUnavailable, match="closed"):
        engine.wait(identity)


def test_a_stopped_engine_is_told_and_found_again(real: Engine) -> None:
    engine = connect(real)
    identity = running(engine, real.load("small"))
    events, logs = engine.events(), engine.logs(identity, follow=True)
    real.stop()
    for stream in (events, logs):
        try:
            _drain(stream)
        except EngineUnavailable as error:
            assert "broke off" in error.message  # noqa: PT017 (an orderly end is as good)
    for attempt in (engine.ping, engine.containers, engine.events):
        with pytest.raises(EngineUnavailable) as caught:
            attempt()
        assert "systemctl start docker" in caught.value.hint
    with pytest.raises(EngineUnavailable):
        connect(real)
    real.start()
    assert not engine.container(identity).running
    engine.start(identity)
    assert engine.container(identity).running
    engine.close()


def test_an_engine_killed_in_a_stream(real: Engine) -> None:
    engine = connect(real)
    events = engine.events()
    real.kill()
    with pytest.raises(EngineUnavailable, match="broke off"):
        _drain(events)
    real.start()
    engine.ping()
    engine.close()


def test_containers_that_come_and_go_while_they_are_listed(engine: EngineClient, small_image: str) -> None:
    ours = connect(engine)
    stop = threading.Event()

    def churn() -> int:
        """How many containers came and went."""
        rounds, other = 0, connect(engine)
        while not stop.is_set():
            other.remove(other.create(CreateRequest(image=small_image)), force=True)
            rounds += 1
        other.close()
        return rounds

    with ThreadPoolExecutor(max_workers=1) as beside:
        rounds = beside.submit(churn)
        try:
            for _ in range(60):
                ours.containers()
        finally:
            stop.set()
        assert rounds.result(timeout=60) > 0
    ours.close()


def test_many_containers_are_listed_quickly_enough_to_be_watched(engine_modern: Engine) -> None:
    image, ours = engine_modern.load("small"), connect(engine_modern)
    made = {ours.create(CreateRequest(image=image, name=f"many-{number}")) for number in range(60)}
    assert made <= {one.id for one in ours.containers()}
    ours.close()


@pytest.mark.engine(*KINDS)  # images are what the stores differ in
def test_hostile_images_and_containers_are_harmless(engine: EngineClient) -> None:
    image = engine.load("hostile")
    options = ("--label", "a=\x1b[2J[red]\nx", "--env", "B=\x1b]0;t\x07y", "--env", "NO_EQUALS")
    engine.docker("create", "--name", "hostile", *options, image, "sh", "-c", "\x1b[31mred\u202e")
    ours = connect(engine)
    for text in (
        repr(ours.image(image)),
        repr(ours.images()),
        repr(ours.container("hostile")),
        repr(ours.containers()),
    ):
        for mark in ("\\x1b", "\\x07", "\\u202e", "\\x9b", "\x1b", "\u202e"):
            assert mark not in text
    found = ours.container("hostile")
    assert found.labels["a"] == "[red]\nx"
    assert dict(found.environment)["B"] == "y"
    assert found.command[-1] == "red"
    ours.close()


def test_a_flood_of_output_is_read_without_growing(engine_modern: Engine) -> None:
    ours = connect(engine_modern)
    identity = running(ours, engine_modern.load("small"), "yes", "x" * 100)
    size = 0
    stream = ours.logs(identity, follow=True)
    for _, data in stream:
        assert len(data) <= 1 << 20
        size += len(data)
        if size > 20_000_000:
            break
    stream.close()
    ours.remove(identity, force=True)
    ours.close()


def test_an_orderly_end_of_a_followed_container(engine: EngineClient, small_image: str) -> None:
    ours = connect(engine)
    identity = running(ours, small_image, "sh", "-c", "echo one; sleep 1000")
    seen: list[bytes] = []
    thread = threading.Thread(target=lambda: seen.extend(data for _, data in ours.logs(identity, follow=True)))
    thread.start()
    until(lambda: bool(seen), what="the first line")
    ours.remove(identity, force=True)
    thread.join(30)
    assert not thread.is_alive()
    assert plain(b"".join(seen)) == "one\n"
    with pytest.raises(NotFound):
        ours.logs(identity)
    ours.close()


@pytest.mark.parametrize("phase", ["before", "after"])
def test_an_interrupt_while_a_container_is_made_leaves_none(
    phase: str, engine_modern: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, ours = engine_modern.load("small"), connect(engine_modern)
    tell: Callable[..., object] = ours.connection.tell

    def interrupted(order: Callable[..., object], **options: object) -> object:
        monkeypatch.setattr(ours.connection, "tell", tell)
        if phase == "after":
            tell(order, **options)
        raise KeyboardInterrupt

    def first_ask(question: Callable[..., object]) -> object:
        # The look whether the name is free goes through; what follows it is the order to make the container.
        monkeypatch.setattr(ours.connection, "ask", ask)
        try:
            return ask(question)
        finally:
            monkeypatch.setattr(ours.connection, "tell", interrupted)

    ask: Callable[..., object] = ours.connection.ask
    monkeypatch.setattr(ours.connection, "ask", first_ask)
    labels = {"plain": "x", "hostile": "\x1b[2J[red]\u202e\ra\nb ", "": "", "  blank ": "é"}
    with pytest.raises(KeyboardInterrupt):
        ours.create(CreateRequest(image=image, name="interrupted", labels=labels))
    with pytest.raises(NotFound):
        ours.container("interrupted")
    ours.close()


def test_every_failure_has_a_sentence_and_a_remedy(engine: EngineClient, small_image: str) -> None:
    ours = connect(engine)
    attempts: list[Callable[[], object]] = [
        lambda: ours.container("nothing"),
        lambda: ours.image("nothing:1"),
        lambda: ours.create(CreateRequest(image="nothing:1")),
        lambda: ours.start(ours.create(CreateRequest(image=small_image, network="nothing"))),
        lambda: ours.create(CreateRequest(image=small_image, memory_bytes=1)),
        lambda: ours.create(CreateRequest(image=small_image, auto_remove=True, restart_policy="always")),
        lambda: ours.create(CreateRequest(image=small_image, cpus=100_000)),
        lambda: ours.remove("nothing"),
    ]
    for attempt in attempts:
        with pytest.raises(ConsoleError) as caught:
            attempt()
        assert caught.value.message.endswith(".")
        assert caught.value.hint.endswith(".")
    ours.close()
