"""The networks that are trained: of the size they say, the same each time, with a loss that starts where it must."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from gpuconsole.probes.payload.bench import model

GIB = 1 << 30


def test_parameters_are_counted_as_torch_counts_them() -> None:
    for size in (model.TINY, model.Size("t", width=96, layers=3, heads=4, sequence=32, batch=1, vocabulary=100)):
        decoder = model.make_decoder(size, "cpu")
        assert size.parameters == sum(parameter.numel() for parameter in decoder.parameters())


def test_the_sizes_are_those_of_the_suite() -> None:
    assert round(model.MEDIUM.parameters / 1e6) == 185
    assert round(model.LARGE.parameters / 1e9, 1) == 1.3
    assert model.MEDIUM.tokens == 8192
    assert model.MEDIUM.flop_per_token == 6 * model.MEDIUM.parameters + 12 * 12 * 1024 * 1024


@pytest.mark.parametrize(
    ("allowed", "name"), [(56 * GIB, "L"), (32 * GIB, "M"), (9 * GIB, "S"), (1.5 * GIB, "XS"), (1 * GIB, None)]
)
def test_the_largest_that_fits_is_taken(allowed: float, name: str | None) -> None:
    size = model.largest(int(allowed))
    assert (size.name if size else None) == name


def test_the_loss_starts_at_the_logarithm_of_the_vocabulary_the_same_each_time() -> None:
    tokens, targets = model.batch_of(model.TINY, "cpu")
    assert torch.equal(tokens[:, 1:], targets[:, :-1])
    losses = [model.make_decoder(model.TINY, "cpu")(tokens, targets).item() for _ in range(2)]
    assert losses[0] == losses[1] == pytest.approx(math.log(model.TINY.vocabulary), rel=0.02)


def test_attention_without_torchs_own_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value = (torch.randn(2, 3, 7, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    wanted = model.attention(query, key, value)
    monkeypatch.delattr(functional, "scaled_dot_product_attention")
    torch.testing.assert_close(model.attention(query, key, value), wanted)


def test_a_decoder_cannot_look_ahead() -> None:
    decoder = model.make_decoder(model.TINY, "cpu")
    tokens, targets = model.batch_of(model.TINY, "cpu")
    other = tokens.clone()
    other[:, -1] = (other[:, -1] + 1) % model.TINY.vocabulary
    ignored = targets.clone()
    ignored[:, -1] = -100  # cross entropy leaves it out
    assert decoder(tokens, ignored).item() == pytest.approx(decoder(other, ignored).item(), rel=1e-6)


def test_without_a_fused_optimizer_the_plain_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = torch.optim.AdamW

    def old(parameters: object, **options: object) -> object:
        if "fused" in options:
            raise TypeError("unexpected keyword argument 'fused'")
        return whole(parameters, **options)

    decoder = model.make_decoder(model.TINY, "cpu")
    assert model.adamw(decoder)[1]
    monkeypatch.setattr(torch.optim, "AdamW", old)
    assert not model.adamw(decoder)[1]


def test_the_resnet_is_a_resnet_50() -> None:
    assert sum(parameter.numel() for parameter in model.ResNet().parameters()) == 25_557_032
    small = model.ResNet((1, 1, 1, 1), width=8, classes=10)
    assert small(torch.randn(4, 3, 32, 32), torch.arange(4)).item() > 0
