"""The kinds of engine the rig has, and the Debian packages each is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.rig.debian import Toolset

_LIBRARIES = ("libseccomp2", "libdevmapper1.02.1", "libsystemd0", "libcap2", "libgcrypt20", "libgpg-error0", "libudev1")
_PROGRAMS = ("usr/sbin/dockerd", "usr/bin/docker", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2")
COMMON = Toolset(
    name="common",
    suite="bookworm",
    packages=("runc", "tini", "busybox-static", "procps"),
    programs=("usr/sbin/runc", "usr/bin/docker-init", "bin/ps"),
    libraries=("libseccomp2", "libproc2-0", "libncursesw6", "libtinfo6"),
    links=(("usr/bin/docker-init", "tini-static"),),
)
_DOCKER_20 = Toolset(
    name="docker-20.10",
    suite="bookworm",
    packages=("docker.io", "containerd"),
    programs=_PROGRAMS,
    libraries=_LIBRARIES,
)
# No libraries from trixie: they would ask for a newer C library than the machine may have.
_DOCKER_26 = Toolset(
    name="docker-26.1",
    suite="trixie",
    packages=("docker.io", "docker-cli", "containerd", "docker-compose"),
    programs=_PROGRAMS,
)


@dataclass(frozen=True, slots=True)
class EngineKind:
    """What distinguishes one engine from another."""

    name: str
    tools: Toolset
    has_cdi: bool
    features: Mapping[str, Any]


KINDS = {
    kind.name: kind
    for kind in (
        EngineKind(name="20.10", tools=_DOCKER_20, has_cdi=False, features={}),
        EngineKind(name="26.1", tools=_DOCKER_26, has_cdi=True, features={"cdi": True}),
        EngineKind(
            name="26.1-containerd",
            tools=_DOCKER_26,
            has_cdi=True,
            features={"cdi": True, "containerd-snapshotter": True},
        ),
    )
}
RUNTIMES = ("20.10", "26.1")
"""One engine of each version, for tests of containers: `pytest.mark.engine(*RUNTIMES)`.

The two image stores of 26.1 differ in images, in what they are called and in what stays of them. How containers are
made, run, followed and ended is one and the same program with both, and the engines' contract holds it on all three.
"""
NEWEST = ("26.1",)
"""For tests of what stands above the adapter, which makes the engines one: the contract proves that it does."""
