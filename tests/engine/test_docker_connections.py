"""The ways to an engine: TCP, TLS and ssh do what the socket does, and say what is wrong when they cannot."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuconsole.core.errors import BadFile, ConsoleError, EngineUnavailable
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.docker.ssh import ssh_command, ssh_failed
from gpuconsole.engine.endpoint import Endpoint, resolve
from gpuconsole.engine.request import CreateRequest
from tests.engine.contract import outcome
from tests.rig.engines import Engine
from tests.rig.ssh import SshServer

pytestmark = pytest.mark.engine


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def listen_on_tcp(engine: Engine, **settings: object) -> str:
    """Start the engine anew so that it listens on TCP as well."""
    config = engine.folder / "daemon.json"
    address = f"tcp://127.0.0.1:{free_port()}"
    content = json.loads(config.read_text())
    config.write_text(json.dumps(content | {"hosts": [engine.host, address]} | settings))
    engine.stop()
    engine.start()
    return address


def proves_itself(engine: DockerEngine, image: str) -> None:
    """Everything that goes over a connection in its own way: calls, two-way streams, half closes, closing."""
    identity = engine.create(CreateRequest(image=image, name="way", command=("sh", "-c", "echo begun; sleep 1000")))
    engine.start(identity)
    data = os.urandom(1 << 20) * 5
    process = engine.execute(identity, ["cat"])
    process.write(data)
    process.close_input()
    assert outcome(process) == (data, b"", 0)
    late = engine.execute(identity, ["sh", "-c", "cat >/dev/null; sleep 0.2; echo late; exit 3"])
    late.close_input()
    assert outcome(late) == (b"late\n", b"", 3)
    follow, seen = engine.logs(identity, follow=True), threading.Event()

    def read() -> None:
        for _ in follow:
            seen.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    assert seen.wait(30)
    follow.close()
    thread.join(30)
    assert not thread.is_alive()
    engine.remove(identity, force=True)
    engine.close()


def test_tcp(start_own_engine: Callable[..., Engine]) -> None:
    real = start_own_engine("26.1")
    image = real.load("small")
    address = listen_on_tcp(real, tls=False)
    engine = DockerEngine.connect(Endpoint(address, "DOCKER_HOST"))
    assert engine.info().local, "it answers from this very machine"
    proves_itself(engine, image)
    real.stop()
    with pytest.raises(EngineUnavailable, match="Nothing listens"):
        DockerEngine.connect(Endpoint(address, "DOCKER_HOST"))


@dataclass(frozen=True, slots=True)
class Certificates:
    folder: Path

    def make(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def authority(self, name: str) -> None:
        self.make("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", f"/CN={name}", "-keyout", f"{name}-key.pem", "-out", f"{name}.pem")  # fmt: skip

    def signed(self, name: str, by: str) -> None:
        self.make("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                  "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")  # fmt: skip
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.make("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}-key.pem", "-days", "2",
                  "-CAcreateserial", "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")


def test_tls(start_own_engine: Callable[..., Engine], tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    for name in ("ca", "other"):
        made.authority(name)
    for name in ("server", "client"):
        made.signed(name, "ca")
    made.signed("stranger", "other")
    real = start_own_engine("26.1")
    image = real.load("small")
    address = listen_on_tcp(real, tlsverify=True, tlscacert=made.path("ca"), tlscert=made.path("server"),
                            tlskey=made.path("server-key"))  # fmt: skip

    def connect(ca: str, name: str = "", *, verify: bool = True, tls: bool = True) -> DockerEngine:
        files = (made.path(ca) if ca else "", *((made.path(name), made.path(f"{name}-key")) if name else ("", "")))
        return DockerEngine.connect(
            Endpoint(address, "DOCKER_HOST", tls=(files[0], files[1], files[2]) if tls else None, verify=verify)
        )

    proves_itself(connect("ca", "client"), image)
    proves_itself(connect("other", "client", verify=False), image)
    with pytest.raises(EngineUnavailable, match="not trusted"):
        connect("other", "client")
    for refused in ("", "stranger"):
        with pytest.raises(ConsoleError) as caught:
            connect("ca", refused)
        assert caught.value.hint
    with pytest.raises(EngineUnavailable, match="listens with TLS") as plain:
        connect("", tls=False)
    assert "DOCKER_TLS_VERIFY" in plain.value.hint
    (tmp_path / "client.pem").write_text("no certificate")
    with pytest.raises(BadFile, match="TLS files"):
        connect("ca", "client")


def test_tls_to_something_that_does_not_speak_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(
            target=lambda: server.accept()[0].sendall(b"hello, I am something else\r\n"), daemon=True
        ).start()
        with pytest.raises(EngineUnavailable, match="does not speak TLS"):
            DockerEngine.connect(
                Endpoint(f"tcp://127.0.0.1:{server.getsockname()[1]}", "--host", tls=("", "", ""), verify=False)
            )


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(EngineUnavailable, match="cannot be resolved") as caught:
        DockerEngine.connect(Endpoint("tcp://no-such-host.invalid:2375", "context box"))
    assert "context box" in caught.value.hint


@pytest.fixture
def ssh_program(sshd: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's ssh as their configuration would make it: the rig's key and its known hosts."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    real = [part for part in sshd.command(terminal=False) if part != "root@127.0.0.1"]
    quoted = " ".join(f"'{part}'" for part in real)
    program.write_text(f'#!/bin/sh\necho $$ >>"{tmp_path}/pids"\nexec {quoted} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def test_ssh(engine_modern: Engine, sshd: SshServer, ssh_program: Path, tmp_path: Path) -> None:
    image = engine_modern.load("small")
    command = engine_modern.env()["PATH"].split(":")[0]
    (sshd.home / ".bashrc").write_text(f"PATH={command}:$PATH\n")
    (sshd.home / ".profile").write_text(f"PATH={command}:$PATH\n")
    url = f"ssh://root@127.0.0.1:{sshd.port}{engine_modern.socket}"
    engine = DockerEngine.connect(Endpoint(url, "--host"))
    assert engine.info().version.startswith("26.1")
    assert not engine.info().local
    proves_itself(engine, image)
    for pid in (tmp_path / "pids").read_text().split():
        _wait_for_the_end_of(int(pid))


def _wait_for_the_end_of(pid: int) -> None:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return
        if state == "Z":
            return
        threading.Event().wait(0.05)
    raise AssertionError(f"ssh {pid} goes on")


def test_ssh_that_does_not_get_in(sshd: SshServer, ssh_program: Path) -> None:
    ssh_program.write_text(ssh_program.read_text().replace("client_key", "no_such_key"))
    with pytest.raises(EngineUnavailable, match="Permission denied") as caught:
        DockerEngine.connect(Endpoint(f"ssh://root@127.0.0.1:{sshd.port}", "--host"))
    assert "without a password" in caught.value.hint


def test_ssh_to_a_machine_without_the_docker_command(sshd: SshServer, ssh_program: Path) -> None:
    (sshd.home / ".bashrc").write_text("PATH=/nowhere\n")
    (sshd.home / ".profile").write_text("PATH=/nowhere\n")
    with pytest.raises(EngineUnavailable, match="not found") as caught:
        DockerEngine.connect(Endpoint(f"ssh://root@127.0.0.1:{sshd.port}", "--host"))
    assert "docker command" in caught.value.hint


def test_ssh_to_a_machine_whose_engine_is_down(engine_modern: Engine, sshd: SshServer, ssh_program: Path) -> None:
    command = engine_modern.env()["PATH"].split(":")[0]
    (sshd.home / ".bashrc").write_text(f"PATH={command}:$PATH\n")
    (sshd.home / ".profile").write_text(f"PATH={command}:$PATH\n")
    with pytest.raises(EngineUnavailable) as caught:
        DockerEngine.connect(Endpoint(f"ssh://root@127.0.0.1:{sshd.port}/nowhere/docker.sock", "--host"))
    assert "/nowhere/docker.sock" in caught.value.detail


def test_ssh_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConsoleError, match="no ssh program"):
        DockerEngine.connect(Endpoint("ssh://box", "--host"))


def test_the_ssh_command_is_the_docker_commands() -> None:
    command = ssh_command("ssh://me@box:2222/run/user/7/docker.sock")
    assert command[0] == "ssh"
    assert command[-6:-1] == ["me", "-p", "2222", "--", "box"]
    assert command[-1] == "docker --host unix:///run/user/7/docker.sock system dial-stdio"
    assert "BatchMode=yes" in command


@pytest.mark.parametrize(
    ("url", "host", "by_hand"),
    [
        ("ssh://MyBox", "MyBox", "'ssh MyBox docker version'"),
        ("ssh://Me@GPU-Box.Lab:22", "GPU-Box.Lab", "'ssh -p 22 Me@GPU-Box.Lab docker version'"),
        ("ssh://Me@[FE80::AB]:22/x.sock", "FE80::AB", "-p 22"),
        ("ssh://[::1]", "::1", "ssh ::1"),
        ("ssh://box/Run/Docker.sock", "box", "'ssh box docker version'"),
    ],
)
def test_a_host_of_ssh_is_named_as_it_was_written(url: str, host: str, by_hand: str) -> None:
    """Aliases in ssh's configuration are told apart by upper and lower case."""
    located = resolve(url, environ={})
    command = ssh_command(located.url)
    assert command[command.index("--") + 1] == host
    assert by_hand in ssh_failed(located, "it ended").hint


ASK = """
import os, sys
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.core.errors import ConsoleError
import gpuconsole.engine.docker.unreachable as unreachable
groups, path = [int(word) for word in sys.argv[2].split(",") if word], sys.argv[1]
os.setgroups(groups); os.setgid(65534); os.setuid(65534)
if len(sys.argv) > 3:
    unreachable.is_member = lambda user, gid: True
try:
    DockerEngine.connect(Endpoint(f"unix://{path}", "default")).info()
except ConsoleError as error:
    print(type(error).__name__, int(error.exit_code), error.message, "|", error.hint)
else:
    print("let in")
"""


def ask_as_nobody(path: Path, groups: str = "", *words: str, **environ: str) -> str:
    """What a user without rights is told; root may everything, so it takes another process."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(path), groups, *words],
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_socket_that_does_not_let_the_user_in(start_own_engine: Callable[..., Engine]) -> None:
    if os.getuid():
        pytest.skip("only root can ask as somebody else")
    real = start_own_engine("26.1")
    for folder in (real.folder, *real.folder.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    os.chown(real.socket, 0, 27)
    real.socket.chmod(0o660)
    assert ask_as_nobody(real.socket, "27") == "let in\n"
    told = ask_as_nobody(real.socket)
    assert told.startswith("Refused 7 You are not allowed")
    assert "sudo usermod -aG sudo nobody" in told
    assert "tmux" not in told
    assert "tmux kill-server" in ask_as_nobody(real.socket, TMUX="/tmp/tmux-0/default,1,0")
    late = ask_as_nobody(real.socket, "", "member", TMUX="/tmp/tmux-0/default,1,0")
    assert "You are in its group sudo, but this session began before that" in late
    assert "tmux kill-server" in late
    os.chown(real.socket, 0, 0)
    assert "belongs to root alone" in ask_as_nobody(real.socket)
    assert "chmod" not in told + late
