"""An SSH server on loopback with a key of its own, and sessions in it that tests cut."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.rig.debian import Toolset, library_path, search_path, unpacked
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import MARK, RigError, tail
from tests.rig.terminal import Terminal

_LIBRARIES = (
    "libwrap0",
    "libnsl2",
    "libtirpc3",
    "libaudit1",
    "libcap-ng0",
    "libpam0g",
    "libcrypt1",
    "libselinux1",
    "libsystemd0",
    "libgssapi-krb5-2",
    "libkrb5-3",
    "libk5crypto3",
    "libkrb5support0",
    "libcom-err2",
    "libkeyutils1",
    "libssl3",
    "libedit2",
    "libfido2-1",
    "libcbor0.8",
    "libbsd0",
    "libmd0",
)
_SERVER = Toolset(
    name="sshd",
    suite="bookworm",
    packages=("openssh-server", "openssh-client"),
    programs=("usr/sbin/sshd", "usr/bin/ssh", "usr/bin/ssh-keygen"),
    libraries=_LIBRARIES,
)
_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
PrintLastLog no
AcceptEnv *
SetEnv {environment}
"""
# sshd wants its separation folder and user, and takes the home from passwd. All of it is laid over the machine's files
# in a mount namespace that only this server is in.
_START = """\
mkdir -p /run/sshd && mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/shadow" /etc/shadow || exit 1
exec "$2" -D -e -f "$1/sshd_config"
"""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class SshServer:
    """An sshd on loopback; whoever logs in is root with a private, empty home."""

    def __init__(self, rig: Rig, *, env: Mapping[str, str] | None = None) -> None:
        """Start it on a free port; `env` is added to every session's environment."""
        rig.need_root("a private sshd")
        self.rig = rig
        self.folder = rig.subfolder("s")
        self.home = self.folder / "home"
        self.home.mkdir(mode=0o700)
        self.log = self.folder / "log"
        self._root = unpacked(_SERVER)
        installed = shutil.which("ssh") and shutil.which("ssh-keygen")
        self._client = Path("/usr/bin") if installed else self._root / "usr/bin"
        self._environment = {"PATH": search_path(self._root), "HOME": str(self.folder), **library_path(self._root)}
        for name in ("host_key", "client_key"):
            self._make_key(name)
        self._write_accounts()
        self.port = 0
        self._daemon = self._start({**(env or {}), MARK: str(rig.folder)})

    def _make_key(self, name: str) -> None:
        argv = [str(self._client / "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "rig", "-f"]
        subprocess.run([*argv, str(self.folder / name)], env=self._environment, check=True, capture_output=True)

    def _write_accounts(self) -> None:
        others = [line for line in Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        accounts = [f"root:x:0:0:root:{self.home}:{shell}", *others]
        if not any(line.startswith("sshd:") for line in others):
            accounts.append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin")
        (self.folder / "passwd").write_text("\n".join(accounts) + "\n")
        (self.folder / "shadow").write_text("root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n")
        (self.folder / "shadow").chmod(0o600)

    def _start(self, env: Mapping[str, str]) -> Daemon:
        told = " ".join(f'"{key}={value}"' for key, value in env.items())
        for _ in range(5):  # somebody else may take the port between our look and sshd's
            self.port = _free_port()
            config = _CONFIG.format(port=self.port, folder=self.folder, environment=told)
            (self.folder / "sshd_config").write_text(config)
            self.log.write_text("")
            argv = ["unshare", "--mount", "--", "sh", "-c", _START, "sh", str(self.folder)]
            daemon = self.rig.start([*argv, str(self._root / "usr/sbin/sshd")], env=self._environment, log=self.log)
            try:
                wait_until(lambda: "Server listening" in self.log.read_text(), what="sshd", daemon=daemon)
            except RigError as error:
                if "in use" not in self.log.read_text():
                    raise RigError(f"{error}\n{tail(self.log)}") from error
                continue
            return daemon
        raise RigError(f"no free port for sshd\n{tail(self.log)}")

    def command(self, *remote: str, terminal: bool = True) -> list[str]:
        """Give the ssh command line that reaches the server."""
        options = [
            f"UserKnownHostsFile={self.folder}/known_hosts",
            "StrictHostKeyChecking=accept-new",
            "BatchMode=yes",
            "LogLevel=ERROR",
            "ServerAliveInterval=0",
        ]
        asked = [part for option in options for part in ("-o", option)]
        key = str(self.folder / "client_key")
        flag = "-tt" if terminal else "-T"
        found = [f"{key}={value}" for key, value in library_path(self._root).items()]
        argv = [
            *(["env", *found] if found else []),
            str(self._client / "ssh"),
            "-F",
            "none",
            flag,
            "-i",
            key,
            "-p",
            str(self.port),
            *asked,
        ]
        return [*argv, "root@127.0.0.1", *remote]

    def session(self, *remote: str, columns: int = 80, rows: int = 24, term: str = "xterm-256color") -> Terminal:
        """Open an interactive session in a terminal: `.cut()` ends it as a lost connection would."""
        environment = {**os.environ, "TERM": term}
        argv = self.command(*remote)
        return Terminal(argv, env=environment, folder=self.rig.folder, columns=columns, rows=rows)

    def run(self, *remote: str) -> subprocess.CompletedProcess[str]:
        """Run a command without a terminal."""
        argv = self.command(*remote, terminal=False)
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)

    def close(self) -> None:
        """Stop the server and its sessions."""
        self._daemon.stop(patience_s=5)
