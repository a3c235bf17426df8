"""Engines' words about GPUs, and what they mean."""

from __future__ import annotations

from gpuconsole.core.errors import DriverMissing, EngineRefused, GpuNotFound, Refused
from gpuconsole.engine.docker.refusal_rules import rule

TOOLKIT_HINT = (
    "Install nvidia-container-toolkit, run 'sudo nvidia-ctk runtime configure --runtime=docker', "
    "then 'sudo systemctl restart docker' (it restarts running containers)."
)
CDI_HINT = (
    "Make the specification with 'sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'; "
    "'nvidia-ctk cdi list' shows the names in it."
)


GPU_RULES = (
    rule(
        r'could not select device driver "cdi"|CDI device injection failed: .*not enabled|cdi.* is not enabled',
        GpuNotFound,
        "This engine does not take GPUs by CDI.",
        'Docker 25 to 27 need {"features": {"cdi": true}} in /etc/docker/daemon.json; '
        "older ones need NVIDIA's toolkit instead: --gpu-path hook.",
    ),
    rule(
        r"could not select device driver \"[^\"]*\" with capabilities",
        GpuNotFound,
        "This engine has no support for NVIDIA GPUs wired in.",
        TOOLKIT_HINT,
    ),
    rule(r"unresolvable CDI devices ([^;]+)", GpuNotFound, "The engine knows no CDI device {1}.", CDI_HINT),
    rule(
        r"failed to stat CDI host device \"([^\"]+)\"|CDI.*host (?:device|path) \"?([^\s\"]+)\"?.*no such file",
        GpuNotFound,
        "The CDI specification names {1}, which is not there: it is older than the driver.",
        CDI_HINT,
    ),
    rule(
        r"unknown (?:or invalid )?runtime (?:name|specified):? \"?(nvidia\S*?)\"?\.?$",
        GpuNotFound,
        "The engine has no runtime named {1}.",
        TOOLKIT_HINT,
    ),
    rule(
        r"device error: (?:unknown device id: )?([^\s:]+)(?:: unknown device)?",
        GpuNotFound,
        "The driver knows no GPU {1}.",
        "Choose one that 'gpuconsole status' lists.",
    ),
    rule(
        r"unsatisfied condition: ([^,;]+)",
        EngineRefused,
        "The image needs a newer NVIDIA driver: it asks for {1}.",
        "Update the driver, or choose an image built for an older CUDA.",
    ),
    rule(
        r"load library failed: libnvidia-ml\.so\.1",
        DriverMissing,
        "The engine finds no NVIDIA driver library.",
        "Look whether nvidia-smi works here; Docker Desktop and Docker from snap cannot see the driver: "
        "use Docker Engine.",
    ),
    rule(
        r"insufficient permissions",
        Refused,
        "The GPU's device nodes may not be opened from a container.",
        "Look at the mode and group of /dev/nvidia*.",
    ),
    rule(
        r"bpf_prog_query|failed to add device rules|BPF_CGROUP_DEVICE",
        EngineRefused,
        "NVIDIA's toolkit may not set device rules, as under a rootless or nested engine.",
        "Use CDI (--gpu-path cdi), or set no-cgroups=true in /etc/nvidia-container-runtime/config.toml "
        "if no other engine runs here.",
    ),
    rule(
        r"invoking the NVIDIA Container Runtime Hook directly",
        EngineRefused,
        "NVIDIA's toolkit is in a mode in which --gpus does not work.",
        "Use --gpu-path runtime or cdi.",
    ),
    rule(
        r"(?:initialization|detection) error: (.+)",
        DriverMissing,
        "NVIDIA's toolkit cannot reach the driver: {1}.",
        "Make nvidia-smi work on this machine first; 'gpuconsole doctor' looks at the driver.",
    ),
    rule(
        r"gathering device information while adding custom device \"(/dev/nvidia[^\"]*)\"",
        GpuNotFound,
        "There is no device {1} on the engine's machine.",
        "Choose a GPU that 'gpuconsole status' lists.",
    ),
)
