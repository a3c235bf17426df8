"""The two networks that are trained: a decoder as language models have it, and a bottleneck ResNet.

Both are written here, with torch alone, so that every image trains the same network: what a library changes in its
own models must not look like a slower machine.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 32000
_STD = 0.02


class Size:
    """How large a decoder is, and on how much it is trained at once.

    Args:
        name: What it is called in records.
        width: Features of a token.
        layers: Blocks.
        heads: Heads of attention.
        sequence: Tokens of a text.
        batch: Texts a step.
        vocabulary: Different tokens.
    """

    def __init__(
        self, name: str, *, width: int, layers: int, heads: int, sequence: int, batch: int, vocabulary: int = VOCABULARY
    ) -> None:
        self.name = name
        self.width = width
        self.layers = layers
        self.heads = heads
        self.sequence = sequence
        self.batch = batch
        self.vocabulary = vocabulary

    @property
    def tokens(self) -> int:
        """Tokens a step."""
        return self.batch * self.sequence

    @property
    def parameters(self) -> int:
        """Parameters, those of the embedding once: it is the output layer too."""
        block = 12 * self.width * self.width + 4 * self.width
        return self.layers * block + (self.vocabulary + self.sequence + 2) * self.width

    @property
    def flop_per_token(self) -> int:
        """Forward and backward: ``6N + 12·L·d·s``, where attention counts as if nothing were masked."""
        return 6 * self.parameters + 12 * self.layers * self.width * self.sequence

    @property
    def needs_bytes(self) -> int:
        """GPU memory that a step takes, estimated high.

        Sixteen bytes a parameter (weight, gradient, two moments), two more for the copies that autocast makes; some
        forty bytes a feature of every token in every block, more in float32; and the logits with their gradients.
        """
        activations = 60 * self.tokens * self.width * self.layers
        return 18 * self.parameters + activations + 16 * self.tokens * self.vocabulary

    def params(self) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "size": self.name,
            "width": self.width,
            "layers": self.layers,
            "heads": self.heads,
            "sequence": self.sequence,
            "batch": self.batch,
            "vocabulary": self.vocabulary,
        }


TINY = Size("T", width=64, layers=2, heads=2, sequence=64, batch=2, vocabulary=512)
SMALLEST = Size("XS", width=512, layers=8, heads=8, sequence=512, batch=2)
SMALL = Size("S", width=1024, layers=12, heads=16, sequence=1024, batch=2)
MEDIUM = Size("M", width=1024, layers=12, heads=16, sequence=1024, batch=8)
LARGE = Size("L", width=2048, layers=24, heads=16, sequence=1024, batch=8)
SIZES = (SMALLEST, SMALL, MEDIUM, LARGE)
"""For GPUs, from small to large. ``TINY`` is for CPUs."""


def largest(allowed_bytes: int, sizes: tuple[Size, ...] = SIZES) -> Size | None:
    """The largest of ``sizes`` that needs no more than ``allowed_bytes``; None when none fits."""
    fitting = [size for size in sizes if size.needs_bytes <= allowed_bytes]
    return max(fitting, key=lambda size: size.needs_bytes) if fitting else None


class Block(nn.Module):
    """One block of a decoder: attention and a layer of neurons, each after a norm and around a short cut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.norm_neurons = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, features: Any) -> Any:
        """Features of every token → the same after the block."""
        batch, sequence, width = features.shape
        query, key, value = self.projection(self.norm_attention(features)).chunk(3, dim=-1)
        shape = (batch, sequence, self.heads, width // self.heads)
        query, key, value = (part.view(shape).transpose(1, 2) for part in (query, key, value))
        attended = attention(query, key, value).transpose(1, 2).reshape(batch, sequence, width)
        features = features + self.output(attended)
        return features + self.down(functional.gelu(self.up(self.norm_neurons(features))))


def attention(query: Any, key: Any, value: Any) -> Any:
    """Causal attention by what torch holds best; by its definition where torch has none (before 2.0)."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    length = query.shape[-2]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    hidden = torch.ones((length, length), dtype=torch.bool, device=query.device).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(dim=-1) @ value


class Decoder(nn.Module):
    """A decoder-only transformer; called with tokens and targets it gives the loss."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.sequence, size.width)
        self.blocks = nn.ModuleList(Block(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=_STD)

    def forward(self, tokens: Any, targets: Any) -> Any:
        """Mean cross entropy of ``targets`` after ``tokens``."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        features = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            features = block(features)
        logits = functional.linear(self.norm(features), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def make_decoder(size: Size, device: Any, seed: int = 0) -> Decoder:
    """A decoder on ``device``, made there: the same for the same seed and kind of device."""
    torch.manual_seed(seed)
    with_device = getattr(torch, "device", None)
    if hasattr(with_device, "__enter__"):  # since torch 2.0 a device is a context in which modules are made
        with torch.device(device):
            return Decoder(size)
    return Decoder(size).to(device)


def batch_of(size: Size, device: Any, seed: int = 1) -> tuple[Any, Any]:
    """Random tokens and what comes after each, on ``device``."""
    generator = torch.Generator().manual_seed(seed)
    texts = torch.randint(size.vocabulary, (size.batch, size.sequence + 1), generator=generator)
    return texts[:, :-1].contiguous().to(device), texts[:, 1:].contiguous().to(device)


def adamw(module: Any, rate: float = 3e-4) -> tuple[Any, bool]:
    """AdamW for ``module``, and whether it is the fused one, which old versions and some devices lack."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    try:
        return torch.optim.AdamW(parameters, lr=rate, fused=True), True
    except (TypeError, RuntimeError, ValueError):
        return torch.optim.AdamW(parameters, lr=rate), False


class Bottleneck(nn.Module):
    """Three convolutions around a short cut, the middle one at a quarter of the width."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        inner = channels // 4
        self.layers = nn.Sequential(
            nn.Conv2d(channels_in, inner, 1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(inner),
            nn.ReLU(inplace=True),
            nn.Conv2d(inner, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )
        self.short_cut: Any = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.short_cut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, images: Any) -> Any:
        """Features of images → the same after the block."""
        return functional.relu(self.layers(images) + self.short_cut(images))


class ResNet(nn.Module):
    """A ResNet of bottlenecks; with the usual depth it is ResNet-50, of 25.6 million parameters.

    Args:
        depth: Bottlenecks in each of the four stages.
        width: Channels of the first stage before it is widened by four.
        classes: What it tells apart.
    """

    def __init__(self, depth: tuple[int, ...] = (3, 4, 6, 3), width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        layers: list[Any] = [
            nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        channels_in = width
        for stage, count in enumerate(depth):
            channels = width * 4 << stage
            for number in range(count):
                layers.append(Bottleneck(channels_in, channels, 2 if stage and not number else 1))
                channels_in = channels
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(channels_in, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Any, labels: Any) -> Any:
        """Mean cross entropy of ``labels`` for ``images``."""
        features = self.features(images).mean(dim=(2, 3))
        return functional.cross_entropy(self.head(features).float(), labels)
