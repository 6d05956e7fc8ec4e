#!/usr/bin/env python3
"""Compares 50 steps of training in tl with PyTorch's, loss by loss: a net of two layers, a convolutional net and
a transformer block, from the weights stored in curves/*.safetensors. `--write` draws new weights and data and
stores PyTorch's losses next to them; tests/cli/test_curves.py holds tl against those where PyTorch is missing."""
import argparse
import json
import struct
import subprocess
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent.parent
CURVES = BENCH / "curves"
STEPS = 50
TYPES = {torch.float32: "F32", torch.int64: "I64"}


def write_tensors(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def read_tensors(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        dtype = {text: dtype for dtype, text in TYPES.items()}[entry["dtype"]]
        first, last = (8 + size + at for at in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[first:last]), dtype=dtype).reshape(entry["shape"])
    return tensors


def mlp_start():
    return {"x": torch.randn(32, 8), "y": torch.randn(32, 3),
            "w1": torch.randn(8, 16) * 0.4, "b1": torch.zeros(16), "w2": torch.randn(16, 3) * 0.3, "b2": torch.zeros(3)}


def mlp_loss(t):
    return ((torch.tanh(t["x"] @ t["w1"] + t["b1"]) @ t["w2"] + t["b2"] - t["y"]) ** 2).mean()


def cnn_start():
    return {"x": torch.randn(12, 2, 9, 9), "y": torch.randint(0, 5, (12,)),
            "c1": torch.randn(6, 2, 3, 3) * 0.3, "b1": torch.zeros(6), "c2": torch.randn(8, 3, 3, 3) * 0.2,
            "b2": torch.zeros(8), "w": torch.randn(5, 32) * 0.2, "b": torch.zeros(5)}


def cnn_loss(t):
    first = F.max_pool2d(F.relu(F.conv2d(t["x"], t["c1"], t["b1"], padding=1)), 2)
    second = F.avg_pool2d(F.gelu(F.conv2d(first, t["c2"], t["b2"], padding=1, groups=2)), 2)
    return F.cross_entropy(F.linear(second.flatten(1), t["w"], t["b"]), t["y"])


def block_start():
    width = 16
    tensors = {"ids": torch.randint(0, 11, (4, 12)), "target": torch.randint(0, 11, (4, 12)),
               "table": torch.randn(11, width) * 0.5, "place": torch.randn(12, width) * 0.1}
    for name, shape in (("qkv", (3 * width, width)), ("out", (width, width)), ("up", (4 * width, width)),
                        ("down", (width, 4 * width)), ("head", (11, width))):
        tensors[name] = torch.randn(*shape) * 0.2
    for name in ("n1", "n2"):
        tensors[name + "w"], tensors[name + "b"] = torch.ones(width), torch.zeros(width)
    return tensors


def block_loss(t):
    width, heads, length = 16, 4, 12
    x = F.embedding(t["ids"], t["table"]) + t["place"]
    parts = F.linear(F.layer_norm(x, (width,), t["n1w"], t["n1b"]), t["qkv"])
    q, k, v = (p.reshape(4, length, heads, -1).transpose(1, 2) for p in parts.chunk(3, -1))
    hidden = ~torch.ones(length, length, dtype=torch.bool).tril()
    scores = (q @ k.transpose(-2, -1) * (width // heads) ** -0.5).masked_fill(hidden, float("-inf"))
    seen = (scores.softmax(-1) @ v).transpose(1, 2).reshape(4, length, width)
    x = x + F.linear(seen, t["out"])
    x = x + F.linear(F.silu(F.linear(F.layer_norm(x, (width,), t["n2w"], t["n2b"]), t["up"])), t["down"])
    return F.cross_entropy(F.linear(x, t["head"]).reshape(-1, 11), t["target"].reshape(-1))


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, 0.001)


NETS = {  # first values, loss, data that are not trained, optimizer, scheduler, limit of the gradient's norm
    "mlp": (mlp_start, mlp_loss, ("x", "y"),
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3), None, None),
    "cnn": (cnn_start, cnn_loss, ("x", "y"), lambda p: torch.optim.Adam(p, lr=0.01), None, None),
    "block": (block_start, block_loss, ("ids", "target"), lambda p: torch.optim.AdamW(p, lr=0.01), cosine, 0.5),
}


def torch_losses(name, tensors):
    _, loss_of, data, make_optimizer, make_scheduler, limit = NETS[name]
    values = {key: tensor.clone().requires_grad_(key not in data)
              for key, tensor in tensors.items() if key != "losses"}
    parameters = [tensor for key, tensor in values.items() if key not in data]
    optimizer = make_optimizer(parameters)
    scheduler = make_scheduler(optimizer) if make_scheduler else None
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(values)
        loss.backward()
        if limit:
            torch.nn.utils.clip_grad_norm_(parameters, limit)
        optimizer.step()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses


def tl_losses(tl, name):
    text = subprocess.run([tl, "run", "--quiet", CURVES / f"{name}.tl", CURVES / f"{name}.safetensors"],
                          check=True, capture_output=True, text=True).stdout
    return [float(line) for line in text.split()]


def distance(mine, theirs):
    if len(mine) != len(theirs):
        return float("inf")
    return max(abs(a - b) / abs(b) for a, b in zip(mine, theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tl", default=ROOT / "build" / "release" / "tl")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    worst = 0.0
    for name, (start, *_) in NETS.items():
        path = CURVES / f"{name}.safetensors"
        if options.write:
            tensors = start()
            tensors["losses"] = torch.tensor(torch_losses(name, tensors))
            write_tensors(path, tensors)
        tensors = read_tensors(path)
        theirs = torch_losses(name, tensors)
        mine = tl_losses(options.tl, name)
        far, kept = distance(mine, theirs), distance(tensors["losses"].tolist(), theirs)
        worst = max(worst, far)
        print(f"{name:<6} loss {theirs[0]:.6f} -> {theirs[-1]:.6f}: tl {far:.1e} away at most, "
              f"the stored curve {kept:.1e}")
    return worst > 1e-4


if __name__ == "__main__":
    sys.exit(main())
