"""The nets of the scripts next to this file in PyTorch: peer.py NET ROUNDS STEPS THREADS prints the best
microseconds a step."""
import sys
import time

import torch
import torch.nn.functional as F


def parameter(*shape, scale=0.02):
    return torch.nn.Parameter(torch.randn(*shape) * scale)


def mlp():
    x, y = torch.randn(128, 64), torch.randint(0, 10, (128,))
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    return list(net.parameters()), lambda: F.cross_entropy(net(x), y)


def digits_mlp():
    x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))
    net = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(),
                              torch.nn.Linear(128, 10))
    return list(net.parameters()), lambda: F.cross_entropy(net(x), y)


def digits_cnn():
    x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Flatten(), torch.nn.Linear(1568, 10))
    return list(net.parameters()), lambda: F.cross_entropy(net(x), y)


def convolution():
    x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Conv2d(32, 64, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Flatten(), torch.nn.Linear(4096, 10))
    return list(net.parameters()), lambda: F.cross_entropy(net(x), y)


def lstm():
    x, target = torch.randn(32, 64, 128), torch.randn(32, 128)
    net = torch.nn.LSTM(128, 128, batch_first=True)
    return list(net.parameters()), lambda: F.mse_loss(net(x)[1][0][0], target)


def attention(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    length = q.shape[-2]
    seen = torch.ones(length, length, dtype=torch.bool).tril()
    scores = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).masked_fill(~seen, float("-inf"))
    return scores.softmax(-1) @ v


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = (torch.nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv, self.out = parameter(3 * width, width), parameter(width, width)
        self.up, self.down = parameter(4 * width, width), parameter(width, 4 * width)

    def norm(self, x, weight):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

    def forward(self, x):
        batch, length, width = x.shape
        parts = F.linear(self.norm(x, self.n1), self.qkv)
        q, k, v = (p.reshape(batch, length, self.heads, -1).transpose(1, 2) for p in parts.chunk(3, -1))
        seen = attention(q, k, v)
        y = x + F.linear(seen.transpose(1, 2).reshape(batch, length, width), self.out)
        return y + F.linear(F.gelu(F.linear(self.norm(y, self.n2), self.up), approximate="tanh"), self.down)


def transformer():
    width, length, vocabulary = 384, 128, 256
    tokens = torch.randint(0, vocabulary, (8, length + 1))
    table, place = parameter(vocabulary, width), parameter(length, width)
    last = torch.nn.Parameter(torch.ones(width))
    blocks = torch.nn.ModuleList(Block(width, 6) for _ in range(6))

    def loss():
        x = F.embedding(tokens[:, :-1], table) + place
        for block in blocks:
            x = block(x)
        logits = F.linear(blocks[0].norm(x, last), table)
        return F.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
    return [table, place, last, *blocks.parameters()], loss


def block():
    x, target = torch.randn(16, 64, 128), torch.randn(16, 64, 128)
    net = Block(128, 4)
    return list(net.parameters()), lambda: F.mse_loss(net(x), target)


NETS = {net.__name__: net for net in (mlp, digits_mlp, lstm, convolution, digits_cnn, block, transformer)}


def main():
    net, rounds, steps, threads = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(threads)
    parameters, loss = NETS[net]()
    rate = 0.0003 if net == "transformer" else 0.001
    optimizer = torch.optim.Adam(parameters, lr=rate)

    def train(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    train(1 if net != "mlp" else steps)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        train(steps)
        best = min(best, (time.perf_counter() - start) / steps * 1e6)
    print(best)


if __name__ == "__main__":
    main()
