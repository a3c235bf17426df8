"""``gpuconsole catalog``: official images, and which of them run on this machine or on one that is described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.catalog_verify import verify
from gpuconsole.cli.context import Settings, pass_settings

if TYPE_CHECKING:
    from gpuconsole.services.catalog import CatalogView
    from gpuconsole.services.fitting import Description, Machine


@click.group(
    invoke_without_command=True,
    epilog="\b\nExamples:\n  gpuconsole catalog\n"
    "  gpuconsole catalog --all --json | jq '.images[] | select(.verdict==\"runs\").reference'\n"
    '  gpuconsole catalog --driver 535.104.05 --gpu "NVIDIA GeForce RTX 4090"\n'
    "  gpuconsole catalog --all --driver 580.95.05 --cc 9.0 --cc 7.0 --arch amd64 --gpu-path cdi",
)
@click.option("-a", "--all", "everything", is_flag=True, help="Every image, not only the recommended ones.")
@click.option("--driver", metavar="V", help="Judge for this driver version, as 580.95.05.")
@click.option("--cc", "capabilities", metavar="X.Y", multiple=True, help="... for a GPU of this compute capability.")
@click.option("--gpu", "names", metavar="NAME", multiple=True, help="... for this GPU, as nvidia-smi names it.")
@click.option("--arch", metavar="A", help="... for this processor: amd64 or arm64.")
@click.option("--gpu-path", metavar="hook|cdi", help="... with GPUs given by NVIDIA's hook (--gpus) or by CDI.")
@click.option("--json", "as_json", is_flag=True, help="A JSON document.")
@click.pass_context
@pass_settings
def catalog(
    settings: Settings,
    ctx: click.Context,
    everything: bool,
    driver: str | None,
    capabilities: tuple[str, ...],
    names: tuple[str, ...],
    arch: str | None,
    gpu_path: str | None,
    as_json: bool,
) -> None:
    """List official PyTorch-CUDA images, and say of each whether it runs here, and why.

    Nothing is pulled, and no registry is asked. What the options leave open is this machine's, as its driver and
    engine tell. --gpu and --cc can be repeated, in pairs, for machines with several GPUs: the worst verdict counts.

    Your own images: [[image]] tables in catalog.toml in gpuconsole's configuration folder, and in the files that
    GPUCONSOLE_CATALOG names; with recommended = true they stand in the short list too.
    """
    if ctx.invoked_subcommand is not None:
        if everything or as_json or driver or capabilities or names or arch or gpu_path:
            raise click.UsageError(f"Give the options of {ctx.invoked_subcommand} after its name.", ctx)
        return
    from gpuconsole.services.catalog import load_catalog, view_catalog
    from gpuconsole.services.fitting import machine
    from gpuconsole.services.seenimages import seen_in_catalog

    description = _description(driver, capabilities, names, arch, gpu_path)
    known = load_catalog()
    here = machine(settings.session(), description)
    _warn(here)
    seen = {} if here.described else seen_in_catalog(settings.session())
    views = [view for view in view_catalog(known, here.traits, seen=seen) if everything or view.recommended]
    if as_json:
        from gpuconsole.cli.output import json_document

        json_document("catalog", host=machine_document(here), images=[image_document(view) for view in views])
        return
    from gpuconsole.cli.catalog_table import write_catalog

    write_catalog(here, views, everything=everything)


catalog.add_command(verify)


def _description(
    driver: str | None,
    capabilities: tuple[str, ...],
    names: tuple[str, ...],
    arch: str | None,
    gpu_path: str | None,
) -> Description:
    """What the options say of a machine.

    Raises:
        click.BadParameter: One of them cannot be.
    """
    from gpuconsole.engine.model import GpuPath
    from gpuconsole.images.versions import is_driver
    from gpuconsole.services.fitting import ARCHITECTURES, Description

    if driver is not None and not is_driver(driver):
        raise click.BadParameter(
            f"{driver!r} is no version of NVIDIA's driver; it looks like 580.95.05.", param_hint="--driver"
        )
    if any(not name.strip() for name in names):
        raise click.BadParameter("A GPU has a name, as nvidia-smi -L shows it.", param_hint="--gpu")
    if arch is not None and arch.lower() not in ARCHITECTURES:
        raise click.BadParameter(f"{arch!r} is not amd64 or arm64.", param_hint="--arch")
    if gpu_path not in (None, GpuPath.HOOK.value, GpuPath.CDI.value):
        raise click.BadParameter(f"{gpu_path!r} is not hook or cdi.", param_hint="--gpu-path")
    return Description(
        driver=driver,
        capabilities=tuple(_capability(text) for text in capabilities),
        names=names,
        architecture=ARCHITECTURES[arch.lower()] if arch else None,
        gpu_path=GpuPath(gpu_path) if gpu_path else None,
    )


def _capability(text: str) -> tuple[int, int]:
    from gpuconsole.images.versions import capability

    try:
        value = capability(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--cc") from error
    if not 1 <= value[0] <= _LAST_MAJOR:
        raise click.BadParameter(f"There is no GPU of compute capability {text}.", param_hint="--cc")
    return value


_LAST_MAJOR = 29


def _warn(here: Machine) -> None:
    from gpuconsole.cli.output import talk
    from gpuconsole.services.fitting import contradiction

    for gpu in here.traits.gpus:
        if sentence := contradiction(gpu):
            talk(sentence)


def machine_document(here: Machine) -> dict[str, Any]:
    """The machine as JSON says it."""
    traits = here.traits
    return {
        "described": here.described,
        "driver": traits.driver,
        "cuda": traits.cuda,
        "architecture": traits.architecture,
        "gpu_path": here.gpu_path,
        "gpus": [
            {
                "label": gpu.label,
                "name": gpu.name,
                "compute_capability": None if gpu.capability is None else ".".join(map(str, gpu.capability)),
                "segment": gpu.segment,
                "unified_memory": gpu.unified_memory,
                "mig_instances": gpu.mig_instances,
            }
            for gpu in traits.gpus
        ],
        "unknown": here.unknown,
    }


def image_document(view: CatalogView) -> dict[str, Any]:
    """One entry as JSON lists it."""
    image, verdict = view.image, view.verdict
    return {
        "reference": image.reference,
        "verdict": verdict.word,
        "reasons": [{"id": reason.id, "text": reason.text} for reason in verdict.reasons],
        "needs": view.needs,
        "gpus": [
            {
                "gpu": each.gpu,
                "verdict": each.word,
                "reasons": [{"id": reason.id, "text": reason.text} for reason in each.reasons],
                "needs": each.needs,
            }
            for each in verdict.gpus
        ],
        "recommended": view.recommended,
        "torch": image.torch,
        "cuda": image.cuda,
        "variant": image.variant,
        "python": image.python,
        "os": image.os,
        "cudnn": image.cudnn,
        "nccl": image.nccl,
        "platforms": image.platforms,
        "evidence": image.evidence,
        "digest": image.digest,
        "sizes_bytes": image.sizes,
        "asked_at": image.asked_at,
        "seen_at": view.seen_at,
        "gone": image.gone,
        "unsure": image.unsure,
        "note": image.note,
        "source": image.source,
    }
