"""The contract of engines: containers made, started, stopped and removed."""

from __future__ import annotations

import pytest

from gpuconsole.core.errors import Conflict, NotFound, Refused, TimedOut, UsageError
from gpuconsole.engine.model import ContainerState, Mount
from gpuconsole.engine.request import CreateRequest, PortRequest
from tests.engine.contract import PATIENCE_S, Ground, clause, logged, until


@clause
def a_taken_name_is_a_conflict_and_harms_nothing(ground: Ground) -> None:
    identity = ground.create("taken")
    with pytest.raises(Conflict) as caught:
        ground.create("taken")
    assert ground.name("taken") in caught.value.message
    assert ground.engine.container(ground.name("taken")).id == identity


@clause
def a_missing_image_is_not_found_and_nothing_is_left(ground: Ground) -> None:
    with pytest.raises(NotFound, match="no-such-image:1"):
        ground.engine.create(CreateRequest(image="no-such-image:1", name=ground.name("left")))
    with pytest.raises(NotFound):
        ground.engine.container(ground.name("left"))


@clause
def a_missing_folder_is_named_and_nothing_is_left(ground: Ground) -> None:
    with pytest.raises(NotFound, match="/no/such/folder"):
        ground.create("left", mounts=(Mount("bind", "/no/such/folder", "/data"),))
    with pytest.raises(NotFound):
        ground.engine.container(ground.name("left"))


@clause
def a_bad_name_is_refused(ground: Ground) -> None:
    with pytest.raises(UsageError, match="no name for a container"):
        ground.create("a b/c")


@clause
def without_a_name_it_gets_one(ground: Ground) -> None:
    identity = ground.engine.create(CreateRequest(image=ground.image, command=("true",)))
    ground.made.append(identity)
    assert ground.engine.container(identity).name


@clause
def a_port_is_published_where_it_was_asked_for(ground: Ground) -> None:
    identity = ground.run("port", ports=(PortRequest(8888),))
    port = ground.engine.container(identity).ports[0]
    assert (port.container_port, port.protocol, port.host_ip) == (8888, "tcp", "127.0.0.1")
    assert port.host_port
    second = ground.create("second", ports=(PortRequest(8888, host_port=port.host_port),))
    with pytest.raises(Conflict) as caught:
        ground.engine.start(second)
    assert str(port.host_port) in caught.value.message
    assert caught.value.hint


@clause
def a_missing_program_is_named(ground: Ground) -> None:
    identity = ground.create("program", "no-such-program")
    with pytest.raises(NotFound, match="no-such-program"):
        ground.engine.start(identity)
    found = ground.engine.container(identity)
    assert found.exit_code == 127
    assert found.error is not None
    assert "no-such-program" in found.error


@clause
def a_file_that_is_no_program_is_refused(ground: Ground) -> None:
    identity = ground.create("mode", "/etc/passwd")
    with pytest.raises(Refused, match="/etc/passwd"):
        ground.engine.start(identity)


@clause
def an_unknown_user_is_not_found(ground: Ground) -> None:
    identity = ground.create("stranger", user="no-such-user")
    with pytest.raises(NotFound, match="user"):
        ground.engine.start(identity)


@clause
def an_entrypoint_can_be_replaced(ground: Ground) -> None:
    identity = ground.finished("entry", "b", "c", entrypoint=("echo", "a"))
    assert logged(ground, identity)["stdout"] == b"a b c\n"
    assert ground.engine.container(identity).entrypoint == ("echo", "a")


@clause
def starting_and_stopping_are_calm_about_repetition(ground: Ground) -> None:
    identity = ground.run("calm", "sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done")
    ground.engine.start(identity)
    ground.engine.stop(identity, grace_s=20)
    ground.engine.stop(identity)
    found = ground.engine.container(identity)
    assert found.state is ContainerState.EXITED
    assert found.exit_code == 3
    assert found.finished_at is not None
    assert found.status.startswith("Exited (3)")
    ground.engine.start(identity)
    assert ground.engine.container(identity).running


@clause
def one_that_does_not_hear_is_killed_after_the_grace(ground: Ground) -> None:
    identity = ground.run("deaf", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    ground.engine.stop(identity, grace_s=1)
    assert ground.engine.container(identity).exit_code == 137


@clause
def a_restart_is_a_new_process(ground: Ground) -> None:
    identity = ground.run("again")
    before = ground.engine.container(identity)
    ground.engine.restart(identity, grace_s=0)
    after = ground.engine.container(identity)
    assert after.running
    assert after.started_at is not None
    assert before.started_at is not None
    assert after.started_at > before.started_at


@clause
def pausing_and_going_on(ground: Ground) -> None:
    identity = ground.run("pause")
    ground.engine.pause(identity)
    found = ground.engine.container(identity)
    assert found.state is ContainerState.PAUSED
    assert found.running
    assert found.pid is not None
    with pytest.raises(Conflict, match="paused"):
        ground.engine.pause(identity)
    with pytest.raises(Conflict, match="paused"):
        ground.engine.execute(identity, ["true"])
    ground.engine.unpause(identity)
    assert ground.engine.container(identity).state is ContainerState.RUNNING
    with pytest.raises(Conflict, match="not paused"):
        ground.engine.unpause(identity)


@clause
def one_that_ended_takes_no_orders_for_the_living(ground: Ground) -> None:
    identity = ground.finished("ended", "true")
    with pytest.raises(Conflict, match="not running"):
        ground.engine.pause(identity)
    with pytest.raises(Conflict, match="not running"):
        ground.engine.execute(identity, ["true"])


@clause
def removing_a_running_one_needs_force(ground: Ground) -> None:
    identity = ground.run("remove")
    with pytest.raises(Conflict, match="running") as caught:
        ground.engine.remove(identity)
    assert "--force" in caught.value.hint
    ground.engine.remove(identity, force=True)
    with pytest.raises(NotFound):
        ground.engine.container(identity)


@clause
def exit_codes_arrive(ground: Ground) -> None:
    for code in (0, 1, 42, 255):
        identity = ground.run(f"code{code}", "sh", "-c", f"exit {code}")
        assert ground.engine.wait(identity, timeout_s=PATIENCE_S) == code
        found = ground.engine.container(identity)
        assert (found.state, found.exit_code) == (ContainerState.EXITED, code)


@clause
def waiting_has_an_end(ground: Ground) -> None:
    identity = ground.run("long")
    with pytest.raises(TimedOut, match="had not ended"):
        ground.engine.wait(identity, timeout_s=0.5)
    assert ground.engine.container(identity).running


@clause
def one_that_outgrows_its_memory_is_marked(ground: Ground) -> None:
    identity = ground.finished("oom", "sh", "-c", "x=x; while :; do x=$x$x; done", memory_bytes=24 << 20)
    found = ground.engine.container(identity)
    assert found.oom_killed
    assert found.exit_code in (2, 137)


@clause
def one_made_to_be_removed_is(ground: Ground) -> None:
    identity = ground.run("gone", "true", auto_remove=True)
    until(lambda: identity not in {one.id for one in ground.engine.containers()}, what="its removal")
