"""What people write into ``gpuconsole.toml``: the one model of a profile. It imports pydantic, so import it late."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gpuconsole.launch.profilefile import NAME_PATTERN

Text = Annotated[str, StringConstraints(min_length=1)]
Number = int | Text
Value = str | int | float | bool
Kind = Literal["shell", "jupyter", "tensorboard", "torchrun", "script"]


class Profile(BaseModel):
    """One launch by name. Every text may hold ``${NAME}`` or ``${NAME:-default}`` from the environment."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    description: str | None = None
    """What it is for, in a line."""
    extends: Text | list[Text] | None = None
    """The profile, or profiles, that it begins with; what it says itself comes on top."""
    image: Text | None = None
    """The image reference."""
    kind: Kind | None = None
    """The kind of work: it makes the command, and opens a port only for jupyter and tensorboard."""
    command: str | list[str] | None = None
    """The command and its arguments: a list of words, or a text that is split into words as a shell would."""
    entrypoint: str | None = None
    """In place of the image's; an empty text for none."""
    name: Text | None = None
    """The container's name."""
    gpus: int | Text | None = None
    """A number, device=0,2, device=GPU-…, all, auto or none."""
    gpu_path: Text | None = None
    """The way GPUs take into the container: auto, cdi, hook or runtime."""
    volumes: list[Text] = []
    """HOST:CONTAINER or HOST:CONTAINER:ro; relative paths from the folder of this file."""
    mounts: list[Text] = []
    """type=bind,source=HOST,target=CONTAINER,readonly, for paths with a colon."""
    tmpfs: list[Text] = []
    """CONTAINER or CONTAINER:size=16g: memory as a folder."""
    ports: list[int | Text] = []
    """8888, 8080:80 or ADDRESS:8080:80; on 127.0.0.1 unless an address is written."""
    env: dict[str, Value] | list[Text] = {}
    """Variables: a table, or a list of NAME=VALUE and of NAME for one of the caller's shell."""
    env_files: list[Text] = []
    """Files with a variable on each line."""
    secrets: dict[str, Text] = {}
    """Name and file: the file is at /run/secrets/NAME in the container."""
    labels: dict[str, str] = {}
    """Labels of the container."""
    workdir: Text | None = None
    """Where the command starts."""
    user: Number | None = None
    """me, image, UID or UID:GID."""
    group_add: list[Number] = []
    """Further groups of the user."""
    hostname: Text | None = None
    """What the container calls itself."""
    shm_size: Number | None = None
    """Size of /dev/shm, such as 16g."""
    ipc: Text | None = None
    """private, host, shareable, none or container:NAME."""
    network: Text | None = None
    """bridge, host, none or a network's name."""
    extra_hosts: dict[str, Text] = {}
    """Host name and address; host-gateway is the engine's machine."""
    memory: Number | None = None
    """Limit of the memory, such as 64g."""
    cpus: int | float | Text | None = None
    """Limit in cores."""
    ulimits: dict[str, Number] = {}
    """Resource and limit: SOFT, or SOFT:HARD."""
    devices: list[Text] = []
    """Devices that are no GPUs: /dev/X, /dev/X:/dev/Y:rwm."""
    restart: Text | None = None
    """no, on-failure:3, unless-stopped or always."""
    rm: bool | None = None
    """Remove the container when it ends."""
    init: bool | None = None
    """A small init that reaps processes; true unless written."""
    tty: bool | None = None
    """A terminal and open input; unless written, a shell gets them."""
    read_only: bool | None = None
    """The container's own file system cannot be written."""
    privileged: bool | None = None
    """Every device and every right of the machine; refused unless --force privileged is given."""
    pull: Literal["missing", "never", "always"] | None = None
    """When to pull the image."""
    logdir: Text | None = None
    """For tensorboard: the folder of the runs, in the container."""
    nproc_per_node: Number | None = None
    """For torchrun: processes; one for each GPU unless written."""
    nnodes: Number | None = None
    """For torchrun: machines that work together."""
    rdzv_endpoint: Text | None = None
    """For torchrun: HOST:PORT where they meet."""
    rdzv_id: Text | None = None
    """For torchrun: what they call their meeting."""


class ProfileFile(BaseModel):
    """``gpuconsole.toml``: launch profiles by name."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)

    profiles: dict[Annotated[str, StringConstraints(pattern=NAME_PATTERN)], Profile] = Field(default={})
    """Profile by name: [profiles.train]."""


def schema() -> dict[str, Any]:
    """The JSON Schema of the file, for editors."""
    made = ProfileFile.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "gpuconsole.profiles/1"} | made
