"""What a catalog file of users may say. Loaded only when there is such a file, since pydantic is slow to load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gpuconsole.core.text import plain_line
from gpuconsole.images.reference import parse
from gpuconsole.images.versions import capability, is_driver, version


def _reference(text: str) -> str:
    if parse(text).tag is None and "@" not in text:
        raise ValueError(f"{text!r} names no tag")
    return text


def _capability(text: str) -> str:
    capability(text)
    return text


def _driver(text: str) -> str:
    if not is_driver(text):
        raise ValueError(f"{text!r} is no driver version; it looks like 580.65.06")
    return text


def _branch(text: str) -> str:
    return _driver(text if "." in text else f"{text}.0")


def _version(text: str) -> str:
    if len(version(text)) < 2:
        raise ValueError(f"{text!r} is no version; it looks like 12.8")
    return plain_line(text)


def _digest(text: str) -> str:
    if not text.startswith("sha256:") or len(text) != 71:
        raise ValueError(f"{text!r} is no digest; it is sha256: and 64 hexadecimal digits")
    return text


Reference = Annotated[str, AfterValidator(_reference)]
Capability = Annotated[str, AfterValidator(_capability)]
Driver = Annotated[str, AfterValidator(_driver)]
Branch = Annotated[str, AfterValidator(_branch)]
Version = Annotated[str, AfterValidator(_version)]
Digest = Annotated[str, AfterValidator(_digest)]
Text = Annotated[str, AfterValidator(plain_line)]
Platform = Literal["linux/amd64", "linux/arm64"]


class ImageRow(BaseModel):
    """One ``[[image]]``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reference: Reference
    torch: Version | None = None
    cuda: Version | None = None
    variant: Literal["runtime", "devel"] | None = None
    platforms: list[Platform] | None = Field(default=None, min_length=1)
    python: Version | None = None
    os: Text | None = None
    cudnn: Version | None = None
    nccl: Version | None = None
    sm: list[Capability] | None = None
    sm_arm64: list[Capability] | None = None
    ptx: Capability | None = None
    min_cc: Capability | None = None
    sure_cc: Capability | None = None
    driver: Driver | None = None
    floor: Driver | None = None
    require: Text | None = None
    cuda_compat: bool | None = None
    forward: list[Branch] | None = None
    evidence: Literal["measured", "digest", "seen", "inferred", "own"] = "own"
    digest: Digest | None = None
    unsure: list[Text] | None = None
    note: Text | None = None
    recommended: bool = False


class CatalogFile(BaseModel):
    """A whole file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    image: list[ImageRow] = Field(default_factory=list)
