"""Engines' error texts: wrappers peeled off, and what the clause inside means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import (
    Conflict,
    ConsoleError,
    DriverMissing,
    EngineRefused,
    EngineUnavailable,
    GpuNotFound,
    NotFound,
    Refused,
    UsageError,
)
from gpuconsole.engine.docker.errors import clean_daemon_error
from gpuconsole.engine.docker.refusals import pull_refusal, refusal
from gpuconsole.engine.pullfailures import (
    DownloadBroken,
    ImageUnknown,
    LoginNeeded,
    PlatformMissing,
    RateLimited,
    RegistryUnreached,
)

NEW_HOOK = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: error running prestart hook #0: exit status 1, "
    "stdout: , stderr: Auto-detected mode as 'legacy'\n"
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer "
    "version, or use an earlier cuda container: unknown"
)
OLD_HOOK = (
    'OCI runtime create failed: container_linux.go:345: starting container process caused "process_linux.go:430: '
    'container init caused \\"process_linux.go:413: running prestart hook 1 caused \\\\\\"error running hook: exit '
    "status 1, stdout: , stderr: nvidia-container-cli: initialization error: driver error: failed to process request"
    '\\\\\\\\n\\\\\\"\\"": unknown.'
)
EXEC = 'exec: "nosuch": executable file not found in $PATH'


@pytest.mark.parametrize(
    ("raw", "clause"),
    [
        ("", ""),
        ("no such image: nope", "no such image: nope"),
        (
            NEW_HOOK,
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to "
            "a newer version, or use an earlier cuda container",
        ),
        (OLD_HOOK, "nvidia-container-cli: initialization error: driver error: failed to process request"),
        (
            "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create "
            f"failed: unable to start container process: {EXEC}: unknown",
            EXEC,
        ),
        (
            f"OCI runtime create failed: container_linux.go:380: starting container process caused: {EXEC}: unknown.",
            EXEC,
        ),
        (f"OCI runtime exec failed: exec failed: unable to start container process: {EXEC}: unknown\r\n", EXEC),
        (
            "docker: Error response from daemon: driver failed programming external connectivity on endpoint box "
            "(1d0c8d): Bind for 0.0.0.0:8888 failed: port is already allocated.\nSee 'docker run --help'.",
            "Bind for 0.0.0.0:8888 failed: port is already allocated",
        ),
        (
            "driver failed programming external connectivity on endpoint p (31f044): Error starting userland proxy: "
            "listen tcp4 127.0.0.1:59285: bind: address already in use",
            "listen tcp4 127.0.0.1:59285: bind: address already in use",
        ),
        (
            "failed to create task for container: failed to create shim task: OCI runtime create failed: could not "
            "apply required modification to OCI specification: error modifying OCI spec: failed to inject CDI devices: "
            "unresolvable CDI devices nvidia.com/gpu=7: unknown",
            "could not apply required modification to OCI specification: error modifying OCI spec: failed to inject "
            "CDI devices: unresolvable CDI devices nvidia.com/gpu=7",
        ),
        ("one\none\ntwo", "one; two"),
        ("\x1b[31mred\x1b[0m\ttext", "red text"),
    ],
)
def test_the_clause_that_counts(raw: str, clause: str) -> None:
    assert clean_daemon_error(raw) == clause


@given(st.text())
def test_cleaning_is_total_and_gives_one_harmless_line(raw: str) -> None:
    clause = clean_daemon_error(raw)
    assert "\n" not in clause
    assert "\x1b" not in clause


@given(st.integers(100, 599), st.text())
def test_any_refusal_has_a_message_and_a_hint(status: int, text: str) -> None:
    for error in (refusal(status, text), pull_refusal(status, text)):
        assert isinstance(error, ConsoleError)
        assert error.message.endswith((".", "!", "?"))
        assert "{" not in error.message or "{" in text


def wrapped(clause: str) -> str:
    return (
        f"failed to create task for container: failed to create shim task: OCI runtime create failed: {clause}: unknown"
    )


@pytest.mark.parametrize(
    ("status", "text", "kind", "words"),
    [
        # Engine without GPU support, in every wording met.
        (500, 'could not select device driver "" with capabilities: [[gpu]]', GpuNotFound, "wired in"),
        (500, 'could not select device driver "nvidia" with capabilities: [[gpu]]', GpuNotFound, "wired in"),
        (
            500,
            'no CDI device driver registered: could not select device driver "" with capabilities: [[gpu]]',
            GpuNotFound,
            "wired in",
        ),
        (500, 'could not select device driver "cdi" with capabilities: []', GpuNotFound, "by CDI"),
        (
            500,
            wrapped("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=7"),
            GpuNotFound,
            "no CDI device nvidia.com/gpu=7",
        ),
        (500, "setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", GpuNotFound, "nvidia.com/gpu=all"),
        (
            500,
            'failed to inject devices: failed to stat CDI host device "/dev/dri/renderD129": no such file or directory',
            GpuNotFound,
            "/dev/dri/renderD129",
        ),
        (400, "unknown or invalid runtime name: nvidia", GpuNotFound, "no runtime named nvidia"),
        (400, "Unknown runtime specified nvidia.", GpuNotFound, "no runtime named nvidia"),
        (500, wrapped("stderr: nvidia-container-cli: device error: unknown device id: 7"), GpuNotFound, "no GPU 7"),
        (
            500,
            wrapped("stderr: nvidia-container-cli: device error: GPU-1234: unknown device"),
            GpuNotFound,
            "no GPU GPU-1234",
        ),
        (500, NEW_HOOK, EngineRefused, "asks for cuda>=12.8"),
        (500, OLD_HOOK, DriverMissing, "driver error: failed to process request"),
        (
            500,
            wrapped(
                "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open "
                "shared object file: no such file or directory"
            ),
            DriverMissing,
            "no NVIDIA driver library",
        ),
        (
            500,
            wrapped("nvidia-container-cli: initialization error: nvml error: insufficient permissions"),
            Refused,
            "device nodes",
        ),
        (
            500,
            wrapped(
                "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device "
                "filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted"
            ),
            EngineRefused,
            "device rules",
        ),
        (
            500,
            'error gathering device information while adding custom device "/dev/nvidia9": no such file or directory',
            GpuNotFound,
            "/dev/nvidia9",
        ),
        # Names, ports, mounts.
        (
            409,
            'Conflict. The container name "/x" is already in use by container "0123456789abcdef0123". You have to '
            "remove (or rename) that container to be able to reuse that name.",
            Conflict,
            "name x is taken by container 0",
        ),
        (
            500,
            "driver failed programming external connectivity on endpoint b (12): Bind for 0.0.0.0:8888 failed: port is "
            "already allocated",
            Conflict,
            "Port 8888 on 0.0.0.0",
        ),
        (
            500,
            "Error starting userland proxy: listen tcp4 127.0.0.1:8888: bind: address already in use",
            Conflict,
            "Port 8888 on 127.0.0.1",
        ),
        (
            500,
            "failed to set up container networking: driver failed programming external connectivity on "
            "endpoint b (12): "
            "failed to bind host port for 127.0.0.1:8888:172.17.0.2:80/tcp: address already in use",
            Conflict,
            "Port 8888",
        ),
        (500, "failed to bind host port 0.0.0.0:8888/tcp: address already in use", Conflict, "Port 8888 on 0.0.0.0"),
        (
            500,
            "Error starting userland proxy: listen tcp6 [::]:8888: bind: address already in use",
            Conflict,
            "8888 on [::]",
        ),
        (500, "listen tcp4 0.0.0.0:80: bind: permission denied", Refused, "port 80"),
        (400, 'invalid mount config for type "bind": bind source path does not exist: /data/x', NotFound, "/data/x"),
        (
            500,
            "error while creating mount source path '/home/me/x': mkdir /home/me: permission denied",
            Refused,
            "/home/me/x",
        ),
        (
            500,
            wrapped(
                'error mounting "/a" to rootfs at "/b": mount /a:/b: not a directory: Are you trying to mount a '
                "directory onto a file (or vice-versa)? Check"
            ),
            EngineRefused,
            "mounted on a file",
        ),
        (500, "write /var/lib/docker/tmp/GetImageBlob1: no space left on device", EngineRefused, "disk is full"),
        # Things that are not there.
        (404, "No such container: abc", NotFound, "no container abc"),
        (404, "no such image: nope:1: No such image: nope:1", NotFound, "no local image nope:1."),
        (404, "No such image: nope:1", NotFound, "no local image nope:1."),
        (404, f"No such container: {'ab' * 32}", NotFound, "no container abababababab."),
        (404, "get data: no such volume", NotFound, "no volume data"),
        (404, "network lab not found", NotFound, "no network lab"),
        (404, "page not found", NotFound, "Page not found."),
        (500, wrapped("runc create failed: unable to start container process: " + EXEC), NotFound, "no program nosuch"),
        (400, wrapped('exec: "/x.sh": stat /x.sh: no such file or directory'), NotFound, "no program /x.sh"),
        (400, wrapped('exec: "/x.sh": permission denied'), Refused, "/x.sh"),
        (400, "unable to find user nobodyhere: no matching entries in passwd file", NotFound, "the user asked for"),
        (400, "Multiple IDs found with provided prefix: 12", NotFound, "More than one container's id begins with 12"),
        # States.
        (409, "Container 12 is not running", Conflict, "is not running"),
        (409, "Container 12 is paused, unpause the container before exec", Conflict, "is paused"),
        (409, "Container 12 is already paused", Conflict, "paused already"),
        (500, "Container 12 is not paused", Conflict, "not paused"),
        (
            409,
            "You cannot remove a running container 12. Stop the container before attempting removal or force remove",
            Conflict,
            "is running",
        ),
        (
            409,
            'cannot remove container "/a": container is running: stop the container before removing or force remove',
            Conflict,
            "is running",
        ),
        (409, "removal of container 12 is already in progress", Conflict, "being removed"),
        (409, "Container 12 is restarting, wait until the container is running", Conflict, "keeps restarting"),
        (400, "can't create 'AutoRemove' container with restart policy", UsageError, "restarted at its end"),
        (400, "Minimum memory limit allowed is 6MB", UsageError, "6MB"),
        (400, "invalid reference format", UsageError, "no name of an image"),
        (400, "Invalid container name (a b), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed", UsageError, "a b is no name"),
        (
            500,
            wrapped("container init was OOM-killed (memory limit too low?)"),
            EngineRefused,
            "memory limit is too low",
        ),
        # The way to the engine.
        (
            400,
            "client version 1.41 is too old. Minimum supported API version is 1.44, please upgrade your client to a "
            "newer version",
            EngineRefused,
            "version 1.41 of its interface; its limit is 1.44",
        ),
        (400, "client version 1.99 is too new. Maximum supported API version is 1.45", EngineRefused, "1.45"),
        (400, "Client sent an HTTP request to an HTTPS server.", EngineUnavailable, "with TLS"),
        # What no rule knows keeps its own words.
        (500, "something new broke", EngineRefused, "Something new broke."),
        (500, "", EngineRefused, "HTTP 500"),
        (403, "plugin says no", Refused, "Plugin says no."),
        (409, "busy", Conflict, "Busy."),
    ],
)
def test_refusals(status: int, text: str, kind: type[ConsoleError], words: str) -> None:
    error = refusal(status, text)
    assert type(error) is kind
    assert words in error.message
    assert error.hint or kind is NotFound
    assert "{" not in error.hint.replace('{"features": {"cdi": true}}', "")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (
            "manifest for nvidia/cuda:latest not found: manifest unknown: manifest unknown",
            ImageUnknown,
            "nvidia/cuda:latest",
        ),
        ("127.0.0.1:5000/x:gone: not found", ImageUnknown, "no such image 127.0.0.1:5000/x:gone"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", PlatformMissing, "linux/arm64/v8"),
        ("toomanyrequests: You have reached your pull rate limit.", RateLimited, "limit on pulls"),
        ("unauthorized: authentication required", LoginNeeded, "without a login"),
        (
            "pull access denied for x, repository does not exist or may require 'docker login': denied: "
            "requested access "
            "to the resource is denied",
            LoginNeeded,
            "without a login",
        ),
        ('Head "https://r/v2/x/manifests/1": no basic auth credentials', LoginNeeded, "without a login"),
        ("failed to register layer: write /x: no space left on device", EngineRefused, "disk is full"),
        ("filesystem layer verification failed for digest sha256:12", DownloadBroken, "its digest promises"),
        ("unexpected EOF", DownloadBroken, "broke off"),
        ("EOF", DownloadBroken, "broke off"),
        (
            'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host',
            RegistryUnreached,
            "cannot reach the registry: no such host",
        ),
        ("net/http: TLS handshake timeout", RegistryUnreached, "TLS handshake timeout"),
        ("invalid reference format", UsageError, "no name of an image"),
    ],
)
def test_refusals_of_pulls(text: str, kind: type[ConsoleError], words: str) -> None:
    error = pull_refusal(500, text)
    assert type(error) is kind
    assert words in error.message
    assert error.hint


def test_the_raw_text_is_kept_and_harmless() -> None:
    error = refusal(500, "\x1b[2J" + NEW_HOOK)
    assert error.detail == NEW_HOOK
    assert "\x1b" not in error.detail
