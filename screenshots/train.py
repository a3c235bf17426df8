"""A training for the recording: a small decoder whose batches grow and shrink, so that its memory moves."""

import itertools
import time

import torch
from torch import nn

BATCHES = (16, 32, 48, 72, 40)
SECONDS_EACH = 7.0
LENGTH, WIDTH, LAYERS = 1024, 2048, 12

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if device.type == "cpu":
    LENGTH, WIDTH, LAYERS, BATCHES = 32, 64, 2, (2, 4)
print(f"torch {torch.__version__} on {torch.cuda.get_device_name(0) if device.type == 'cuda' else 'CPU'}", flush=True)
layer = nn.TransformerEncoderLayer(WIDTH, WIDTH // 64, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
model = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).to(device)
print(f"{sum(each.numel() for each in model.parameters()) / 1e6:.0f} M parameters", flush=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
step = 0
for batch in itertools.cycle(BATCHES):
    if device.type == "cuda":
        torch.cuda.empty_cache()
    print(f"batches of {batch} × {LENGTH} tokens", flush=True)
    until = time.monotonic() + SECONDS_EACH
    while time.monotonic() < until:
        began = time.monotonic()
        x = torch.randn(batch, LENGTH, WIDTH, device=device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        step += 1
        rate = batch * LENGTH / (time.monotonic() - began)
        if step % 5 == 0:
            print(f"step {step:>5}  loss {loss.item():.4f}  {rate:>9,.0f} tokens/s", flush=True)
