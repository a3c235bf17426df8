"""The questions a verdict asks, each on its own: platform, torch's code, the image's demands, the driver, the board."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuconsole.images.boards import Segment
from gpuconsole.images.compatibility import Compatibility, Kernels, Toolkit
from gpuconsole.images.requirements import Malformed, Offer, meets
from gpuconsole.images.traits import ImageTraits
from gpuconsole.images.verdict import Effect, GpuTraits, HostTraits, Reason
from gpuconsole.images.versions import at_least, capability_text, major, minor

_OLDEST_OF_CUDA_13 = (7, 5)
_FIRST_WITHOUT_LIST = 10
"""From this major on, an image whose list is unknown may well be too old for the GPU."""
_BF16 = (8, 0)
_FP8 = (8, 9)


@dataclass(frozen=True, slots=True)
class Case:
    """One image and one GPU of a machine."""

    image: ImageTraits
    host: HostTraits
    gpu: GpuTraits
    compatibility: Compatibility
    offered: tuple[str | None, bool] = (None, True)
    """The CUDA the driver offers, and whether it is exactly that one."""

    @property
    def platform(self) -> str | None:
        """``linux/amd64`` of the machine."""
        return f"linux/{self.host.architecture}" if self.host.architecture else None

    @property
    def toolkit(self) -> Toolkit | None:
        """The CUDA inside, with the drivers it asks for; None when they are unknown."""
        image = self.image
        known = self.compatibility.toolkit(image.cuda) if image.cuda else None
        if image.driver is None and image.floor is None:
            return known
        driver = image.driver or (known.driver if known else "")
        floor = image.floor or (known.floor if known else "")
        return Toolkit(cuda=minor(image.cuda) if image.cuda else "", driver=driver, floor=floor)

    @property
    def driver_is_native(self) -> bool | None:
        """Whether the driver is as new as the CUDA inside; None when unknown."""
        toolkit, host = self.toolkit, self.host
        if host.driver and toolkit and toolkit.driver:
            return at_least(host.driver, toolkit.driver)
        if host.cuda and self.image.cuda:
            return at_least(host.cuda, minor(self.image.cuda))
        return None

    @property
    def kernels(self) -> Kernels | None:
        """What the image's torch has code for on this platform; None when unknown."""
        return self.image.kernels.get(self.platform or "")


def _missing(fact: str, text: str) -> Reason:
    return Reason(f"missing-{fact.replace(' ', '-')}", text, Effect.UNKNOWN, {"facts": (fact,)})


def platform(case: Case) -> Iterator[Reason]:
    """The image must be built for this kind of processor."""
    offered, wanted = case.image.platforms, case.platform
    if offered is None:
        yield _missing("image platform", "for which processors the image is built is not known")
    elif wanted is None:
        yield _missing("architecture", "which kind of processor this machine has is not known")
    elif wanted not in offered:
        text = f"built for {_and(offered)} only, this machine is {wanted}"
        yield Reason("wrong-architecture", text, Effect.PREVENTS, {"platform": offered})


def code(case: Case) -> Iterator[Reason]:
    """Its torch must have code for the GPU: machine code of the same generation, or code the driver may compile."""
    if case.image.cpu_only:
        yield Reason("cpu-build", "its torch is a CPU build: it starts, but uses no GPU", Effect.PREVENTS)
        return
    gpu = case.gpu.capability
    if gpu is None:
        yield _missing("compute capability", "the GPU's compute capability is not known")
        return
    kernels = case.kernels
    if kernels is None:
        yield from _without_list(case, gpu)
    elif kernels.serves(gpu):
        return
    elif kernels.compiles_for(gpu):
        yield _compiled(case, kernels)
    else:
        text = f"its torch has no code for compute capability {capability_text(gpu)}, only for {_list(kernels)}"
        yield Reason("no-kernel-image", text, Effect.PREVENTS, _code_for(gpu))


def _compiled(case: Case, kernels: Kernels) -> Reason:
    """Code for a newer GPU: the driver must be as new as the CUDA that made it."""
    own = case.toolkit.driver if case.toolkit else ""
    if case.driver_is_native is None:
        return _missing("driver", "torch's code would be compiled by the driver, whose version is not known")
    if case.driver_is_native:
        text = "torch has no machine code for this GPU: the driver compiles it when a program first starts (minutes)"
        return Reason("ptx-jit", text, Effect.LIMITS)
    text = f"torch has only code for the driver to compile, but driver {case.host.driver} is older than {own}"
    return Reason("no-kernel-image", text, Effect.PREVENTS, {"driver": own})


def _without_list(case: Case, gpu: tuple[int, int]) -> Iterator[Reason]:
    """What can be said of an image whose list of capabilities is not known."""
    oldest = case.image.min_capability
    if oldest is None and case.image.cuda and (major(case.image.cuda) or 0) >= 13:
        oldest = _OLDEST_OF_CUDA_13
    if oldest is not None and gpu < oldest:
        text = f"needs compute capability {capability_text(oldest)} or newer, the GPU has {capability_text(gpu)}"
        yield Reason("no-kernel-image", text, Effect.PREVENTS, _code_for(gpu))
    elif case.image.min_capability is None or gpu[0] >= _FIRST_WITHOUT_LIST or gpu < _sure(case):
        text = f"which GPUs its torch has code for is not known; the GPU is of capability {capability_text(gpu)}"
        yield Reason("unknown-arch", text, Effect.UNKNOWN, {"facts": ("capabilities torch was built for",)})


def _sure(case: Case) -> tuple[int, int]:
    return case.image.sure_capability or (0, 0)


def demanded(case: Case) -> Iterator[Reason]:
    """NVIDIA's hook refuses a container whose ``NVIDIA_REQUIRE_*`` do not hold; CDI never looks at them."""
    if case.host.driver is None or case.image.demands == ((),) or case.image.demands == ():
        return  # the question of the driver says that it is missing
    answer = _met(case)
    if answer is True:
        return
    own = case.toolkit.driver if case.toolkit else ""
    asks = f"CUDA {minor(case.image.cuda)}" if case.image.cuda else "another driver or GPU"
    if case.host.checks_demands is False:
        if answer is False:
            text = f"its NVIDIA_REQUIRE_CUDA asks for a driver with {asks}, which nothing checks on the CDI path"
            yield Reason("require-not-checked", text, Effect.NOTE)
        return
    needs = {"driver": own, "gpu_path": "cdi"} if own else {"gpu_path": "cdi"}
    if answer is None:
        yield _missing(*_what_decides(case))
    elif case.host.checks_demands is None:
        text = "its NVIDIA_REQUIRE_CUDA does not hold here, and whether NVIDIA's runtime checks it is not known"
        yield _missing("gpu path", text)
    else:
        text = f"NVIDIA's hook refuses it: it demands a driver with {asks}{f' ({own})' if own else ''}; CDI would not"
        yield Reason("blocked-require-cuda", text, Effect.PREVENTS, needs)


def _met(case: Case) -> bool | None:
    """Whether the demands hold, for each brand the GPU may have and each value the image may have."""
    if case.image.demands is None:
        return True if case.driver_is_native else None
    answers = {_holds(case, brand, texts) for brand, texts in itertools.product(_brands(case), case.image.demands)}
    return answers.pop() if len(answers) == 1 else None


def _holds(case: Case, brand: str, texts: tuple[str, ...]) -> bool | None:
    offer = Offer(case.host.driver, *case.offered, case.gpu.capability, brand)
    try:
        each = [meets(text, offer) for text in texts]
    except Malformed:
        return False
    return False if False in each else None if None in each else True


def _brands(case: Case) -> tuple[str, ...]:
    return case.gpu.brands or _ANY_BRAND


_ANY_BRAND = ("geforce", "geforcertx", "nvidia", "tesla", "nvidiartx", "quadro", "titan")


def _what_decides(case: Case) -> tuple[str, str]:
    """The fact that is missing to tell whether the demands hold, and a sentence."""
    texts = case.image.demands
    if texts is None or any(len({_holds(case, brand, each) for each in texts}) > 1 for brand in _brands(case)):
        return (
            "NVIDIA_REQUIRE_CUDA",
            "NVIDIA's hook may refuse it: what its NVIDIA_REQUIRE_CUDA says is not known",
        )
    if not case.gpu.brands:
        return "GPU name", "NVIDIA's hook may refuse it: that depends on the GPU's name, which is not known"
    if len({_holds(case, brand, each) for brand in case.gpu.brands for each in texts}) > 1:
        return "GPU brand", "NVIDIA's hook may refuse it: that depends on which brand NVML gives for the GPU"
    return "CUDA of the driver", "NVIDIA's hook may refuse it: which CUDA the driver offers is not known"


def driver(case: Case) -> Iterator[Reason]:
    """The driver must be as new as the CUDA inside, or within its minor-version or forward compatibility."""
    if case.image.cpu_only:
        return
    toolkit, have = case.toolkit, case.host.driver
    if case.image.cuda is None and toolkit is None:
        yield _missing("CUDA version", "which CUDA is inside is not known")
    elif have is None:
        yield _missing("driver", "the driver's version is not known")
    elif case.driver_is_native:
        own = f" ({toolkit.driver})" if toolkit and toolkit.driver else ""
        yield Reason("ok-native", f"driver {have} is as new as CUDA {_cuda(case)}{own}", Effect.RUNS)
    elif toolkit is None or not toolkit.floor:
        yield _missing("driver floor", f"which driver CUDA {_cuda(case)} needs at least is not known")
    elif case.gpu.segment is Segment.JETSON:
        yield _missing("JetPack support", "which JetPack, and so which driver, supports it is not recorded")
    elif at_least(have, toolkit.floor):
        yield _minor(case, toolkit, have)
    else:
        yield from _forward(case, toolkit, have)


def _minor(case: Case, toolkit: Toolkit, have: str) -> Reason:
    generation = f"CUDA {major(toolkit.cuda)}.x" if toolkit.cuda else "its CUDA"
    own = f" ({toolkit.driver})" if toolkit.driver else ""
    text = (
        f"driver {have} is older than CUDA {_cuda(case)}{own}: {generation} runs from {toolkit.floor} on, with limits"
    )
    return Reason("ok-minor-compat", text, Effect.LIMITS)


def _forward(case: Case, toolkit: Toolkit, have: str) -> Iterator[Reason]:
    """Below the floor only a newer libcuda from the image helps, on data-centre GPUs and some driver branches."""
    too_old = f"driver {have} is too old for CUDA {_cuda(case)}, which needs {toolkit.floor} or newer"
    needs = {"driver": toolkit.floor}
    listed = major(have) in case.compatibility.forward_branches(case.image.cuda or "")
    named = any(major(each) == major(have) and at_least(have, each) for each in case.image.forward)
    segment = case.gpu.segment
    if case.image.libcuda is False or not (listed or named):
        yield Reason("driver-too-old", too_old, Effect.PREVENTS, needs)
    elif segment in (Segment.GEFORCE, Segment.WORKSTATION, Segment.SOC):
        only = "the newer libcuda inside works on data-centre GPUs only"
        yield Reason("driver-too-old", f"{too_old}; {only}", Effect.PREVENTS, needs)
    elif segment is None:
        yield _missing("GPU name", f"{too_old} unless this is a data-centre GPU, which is not known")
    elif case.image.libcuda is None:
        yield _missing("cuda-compat", f"{too_old} unless the image brings a newer libcuda, which is not known")
    else:
        text = f"{too_old}; on this data-centre GPU the newer libcuda inside (cuda-compat) may do instead"
        yield Reason("forward-compat-maybe", text, Effect.LIMITS)


def board(case: Case) -> Iterator[Reason]:
    """What kind of GPU it is: divided, sharing the machine's memory, without a number format."""
    gpu = case.gpu
    if gpu.mig_instances == 0:
        text = "the GPU is in MIG mode without an instance, so no container can be given any of it"
        yield Reason("mig-no-instance", text, Effect.PREVENTS, {"mig": "an instance"})
    elif gpu.mig_instances is not None:
        text = "the GPU is divided by MIG: a program gets one instance, and instances do not reach each other"
        yield Reason("mig", text, Effect.NOTE)
    if gpu.segment is Segment.JETSON and case.driver_is_native:
        yield _missing("JetPack support", "which JetPack supports it is not recorded")
    elif gpu.unified_memory:
        text = "GPU and CPU share one memory: what the container's programs take, the GPU lacks"
        yield Reason("unified-memory", text, Effect.NOTE)
    if case.image.cpu_only or gpu.capability is None:
        return
    if gpu.capability < _BF16:
        yield Reason("no-native-bf16", "the GPU computes bf16 slowly, by emulation: use fp16", Effect.NOTE)
    elif gpu.capability < _FP8:
        yield Reason("no-native-fp8", "the GPU has no fp8", Effect.NOTE)


def certainty(case: Case) -> Iterator[Reason]:
    """What of the image was concluded, not read; and what was seen by looking inside."""
    if case.image.seen is not None:
        yield Reason("seen-in-check", f"what is inside was seen in {case.image.seen}", Effect.NOTE)
    if case.image.unsure:
        text = f"no source states for this very image: {', '.join(case.image.unsure)}"
        yield Reason("facts-unsure", text, Effect.NOTE)


CRITERIA: tuple[Callable[[Case], Iterator[Reason]], ...] = (platform, code, demanded, driver, board, certainty)
"""In the order their reasons are told when several are equally grave."""


def _code_for(gpu: tuple[int, int]) -> dict[str, str]:
    return {"capability": capability_text(gpu)}


def _cuda(case: Case) -> str:
    return minor(case.image.cuda) if case.image.cuda else "(of the image)"


def _list(kernels: Kernels) -> str:
    written = " ".join(capability_text(each) for each in sorted(kernels.cubins))
    return f"{written} +PTX" if kernels.ptx else written


def _and(words: tuple[str, ...]) -> str:
    return " and ".join(words)
