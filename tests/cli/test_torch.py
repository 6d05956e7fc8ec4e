"""Operations, losses and layers against PyTorch: results, gradients of all inputs and of all parameters, and the
gradients of these. What PyTorch gives is in torch_values.json, which `python3 tests/cli/test_torch.py --write` writes
where PyTorch is installed; with --compare it shows the differences from PyTorch itself."""
import json
import math
import subprocess
import sys
import unittest
from pathlib import Path

from tl import run_code

VALUES = Path(__file__).with_name("torch_values.json")
PYTHON = "/usr/bin/python3"
TOLERANCE = 1e-5

# name, shapes of a, b, c; the same in tl and in PyTorch. Numbers are float64 and lie in -1.2..1.2.
OPERATIONS = [
    ("add, broadcast", [[2, 3], [3]], "a + b * a", "a + b * a"),
    ("divide, power", [[2, 3], [2, 1]], "a / (b * b + 1.0) + (a * a + 0.5) ** b", "a / (b * b + 1) + (a * a + 0.5) ** b"),
    ("exp, log", [[5]], "exp(a) + log(a * a + 0.5) + log1p(a * a) + expm1(a) + log2(a * a + 1.0)",
     "exp(a) + log(a * a + 0.5) + log1p(a * a) + expm1(a) + log2(a * a + 1)"),
    ("roots", [[5]], "sqrt(a * a + 0.1) + rsqrt(a * a + 0.2) + abs(a) + square(a)",
     "sqrt(a * a + 0.1) + rsqrt(a * a + 0.2) + abs(a) + square(a)"),
    ("circular", [[5]], "sin(a) * cos(a) + tan(a * 0.5) + atan(a) + asin(a * 0.5) + acos(a * 0.5)",
     "sin(a) * cos(a) + tan(a * 0.5) + atan(a) + asin(a * 0.5) + acos(a * 0.5)"),
    ("hyperbolic, erf, atan2", [[5], [5]], "sinh(a) + cosh(b) + tanh(a * b) + erf(a) + atan2(a, b + 2.0)",
     "sinh(a) + cosh(b) + tanh(a * b) + erf(a) + atan2(a, b + 2)"),
    ("activations", [[7]], "relu(a) + leaky_relu(a, 0.1) + elu(a) + sigmoid(a) + silu(a) + softplus(a) + mish(a) + hardswish(a)",
     "F.relu(a) + F.leaky_relu(a, 0.1) + F.elu(a) + sigmoid(a) + F.silu(a) + F.softplus(a) + F.mish(a) + F.hardswish(a)"),
    ("gelu", [[7]], "gelu(a) + gelu(a * 2.0, exact: true)", "F.gelu(a, approximate='tanh') + F.gelu(a * 2)"),
    ("choices", [[6], [6]], "maximum(a, b) + minimum(a, b * 2.0) + where(a > 0.1, a * b, b) + clamp(a, -0.5, 0.7)",
     "maximum(a, b) + minimum(a, b * 2) + where(a > 0.1, a * b, b) + clamp(a, -0.5, 0.7)"),
    ("sums", [[3, 4]], "sum(a, 0) * mean(a, 0) + prod(a, 0)", "a.sum(0) * a.mean(0) + a.prod(0)"),
    ("spread", [[3, 4]], "var(a, 1, correction: 1) + std(a, 1) + norm(a, 2.0, dim: 1) + logsumexp(a, 1)",
     "a.var(1) + a.std(1, unbiased=False) + a.norm(2, 1) + logsumexp(a, 1)"),
    ("largest", [[3, 4]], "max(a, 1) * min(a, 1) + topk(a, 2, 1).0[:, 1] + sort(a, 1)[:, 2] + median(a, 1)",
     "a.max(1)[0] * a.min(1)[0] + topk(a, 2, 1)[0][:, 1] + a.sort(1)[0][:, 2] + (a.sort(1)[0][:, 1] + a.sort(1)[0][:, 2]) / 2"),
    ("scans", [[3, 4]], "cumsum(a, 1) * cumprod(a, 0)", "cumsum(a, 1) * cumprod(a, 0)"),
    ("products", [[2, 3, 4], [4, 2]], "a @ b", "a @ b"),
    ("linear", [[2, 3], [4, 3], [4]], "linear(a, b, c)", "F.linear(a, b, c)"),
    ("einsum", [[2, 3], [3, 4], [4]], "einsum(\"ij,jk,k->ik\", a, b, c)", "einsum('ij,jk,k->ik', a, b, c)"),
    ("solve", [[3, 3], [3, 2]], "solve(a + 4.0 * eye(3, dtype: float64), b) + inv(a + 3.0 * eye(3, dtype: float64)) @ b",
     "linalg.solve(a + 4 * eye(3).double(), b) + inverse(a + 3 * eye(3).double()) @ b"),
    # The numbers of a matrix have rank 2: what is not shifted has no inverse.
    ("det", [[3, 3]], "det(a + 2.0 * eye(3, dtype: float64)) + trace(a @ a)", "det(a + 2 * eye(3).double()) + trace(a @ a)"),
    ("cholesky", [[3, 3]], "cholesky(a @ a.T + eye(3, dtype: float64))", "linalg.cholesky(a @ a.T + eye(3).double())"),
    ("views", [[2, 3, 4]], "permute(a, [2, 0, 1])[1:3] * reshape(flip(a[:, :, ::2], [1]), [2, 2, 3])",
     "a.permute(2, 0, 1)[1:3] * a[:, :, ::2].flip(1).reshape(2, 2, 3)"),
    ("joins", [[2, 3], [2, 3]], "concat(a, b * a, dim: 1)[:, 1:5] + roll(repeat(a, 2, dim: 1), 1, dims: 1)[:, :4] * pad(b, [0, 0, 0, 1])",
     "cat([a, b * a], 1)[:, 1:5] + a.repeat_interleave(2, 1).roll(1, 1)[:, :4] * F.pad(b, (0, 1))"),
    ("indexes", [[4, 3]], "index_select(a, 0, [2, 0, 2]) * gather(a, 0, [[1, 1, 0], [0, 2, 3], [3, 3, 3]]) + a[[0, 1, 1]]",
     "a.index_select(0, tensor([2, 0, 2])) * a.gather(0, tensor([[1, 1, 0], [0, 2, 3], [3, 3, 3]])) + a[[0, 1, 1]]"),
    ("scatter", [[4, 3], [2, 3]], "scatter_add(a, 0, [[1, 1, 0], [1, 2, 3]], b ** 2) * scatter(a, 0, [[1, 1, 0], [0, 2, 3]], b)",
     "a.scatter_add(0, tensor([[1, 1, 0], [1, 2, 3]]), b ** 2) * a.scatter(0, tensor([[1, 1, 0], [0, 2, 3]]), b)"),
    ("triangles", [[3, 3]], "tril(a) @ triu(a, 1) + outer(diag(a), diag(a))", "a.tril() @ a.triu(1) + outer(a.diag(), a.diag())"),
    ("softmax", [[3, 4]], "softmax(a, 1) + log_softmax(a, 0)", "softmax(a, 1) + log_softmax(a, 0)"),
    ("layer norm", [[3, 4], [4], [4]], "layer_norm(a, weight: b, bias: c)", "F.layer_norm(a, (4,), b, c)"),
    ("group norm", [[2, 4, 3], [4], [4]], "group_norm(a, 2, b, c)", "F.group_norm(a, 2, b, c)"),
    ("rms norm", [[3, 4], [4]], "rms_norm(a, b, eps: 1e-6)", "a * rsqrt((a * a).mean(-1, keepdim=True) + 1e-6) * b"),
    ("batch norm", [[5, 4], [4], [4]], "batch_norm(a, b, c)", "F.batch_norm(a, None, None, b, c, training=True)"),
    ("convolution", [[2, 4, 5, 5], [6, 2, 3, 2], [6]], "conv2d(a, b, c, stride: [2, 1], padding: [1, 0], dilation: [1, 2], groups: 2)",
     "F.conv2d(a, b, c, (2, 1), (1, 0), (1, 2), 2)"),
    ("convolution of lines", [[2, 3, 7], [4, 3, 3], [4]], "conv1d(a, b, c, stride: 2, padding: 1)", "F.conv1d(a, b, c, 2, 1)"),
    ("pooling", [[2, 2, 6, 6]], "max_pool2d(a, 2) * avg_pool2d(a, 2, 2) + max_pool2d(a, 3, 2, 1)",
     "F.max_pool2d(a, 2) * F.avg_pool2d(a, 2, 2) + F.max_pool2d(a, 3, 2, 1)"),
    ("padded pooling", [[2, 2, 5, 6]],
     "avg_pool2d(a, 3, 2, 1) * sin(avg_pool2d(a, list(2, 3), 2, list(1, 1), count_padding: false))"
     " + windows.AvgPool2d::new(3, stride: 2, padding: 1).forward(a)",
     "F.avg_pool2d(a, 3, 2, 1) * sin(F.avg_pool2d(a, (2, 3), 2, (1, 1), count_include_pad=False)) + F.avg_pool2d(a, 3, 2, 1)"),
    ("attention", [[2, 3, 2, 4], [2, 5, 2, 4]], "attention(a, b, b * 0.5, causal: true)",
     "(softmax((a.transpose(1, 2) @ b.permute(0, 2, 3, 1) / 2).masked_fill(ones(3, 5).tril(2) == 0, -1e30), -1)"
     " @ (b * 0.5).transpose(1, 2)).transpose(1, 2)"),
    ("embedding", [[5, 3]], "embedding(a, [[1, 4], [1, 0]])", "F.embedding(tensor([[1, 4], [1, 0]]), a)"),
    ("lstm cell", [[2, 8], [2, 2]], "let (h, c) = lstm_cell(a, b); concat(h, c, dim: 1)", "lstm_cell(a, b)"),
    ("gru cell", [[2, 6], [2, 6], [2, 2]], "gru_cell(a, b, c)", "gru_cell(a, b, c)"),
    ("mse, mae, huber", [[3, 4], [3, 4]], "mse_loss(a, b) + mae_loss(a, b) + huber_loss(a, b, delta: 0.4)",
     "F.mse_loss(a, b) + F.l1_loss(a, b) + F.huber_loss(a, b, delta=0.4)"),
    ("cross entropy", [[4, 3]],
     "cross_entropy(a, [2, 0, 1, 2], weight: [0.5, 2.0, 1.5], ignore_index: 1, label_smoothing: 0.1) + cross_entropy(a, [2, 0, 1, 2])",
     "F.cross_entropy(a, tensor([2, 0, 1, 2]), tensor([0.5, 2.0, 1.5]).double(), ignore_index=1, label_smoothing=0.1)"
     " + F.cross_entropy(a, tensor([2, 0, 1, 2]))"),
    ("likely classes", [[4, 3], [4, 3]], "cross_entropy(a, softmax(b, 1)) + nll_loss(log_softmax(a, 1), [0, 1, 2, 0])",
     "F.cross_entropy(a, softmax(b, 1)) + F.nll_loss(log_softmax(a, 1), tensor([0, 1, 2, 0]))"),
    ("binary", [[4, 3]], "binary_cross_entropy(a, sigmoid(a * 0.5), pos_weight: [0.5, 2.0, 1.5], reduction: \"sum\")",
     "F.binary_cross_entropy_with_logits(a, sigmoid(a * 0.5), pos_weight=tensor([0.5, 2.0, 1.5]).double(), reduction='sum')"),
    ("binary, one weight", [[4, 3]],
     "binary_cross_entropy(a, sigmoid(a * 0.5), pos_weight: [0.7]) + bce_with_logits(a, a * 0.0, pos_weight: 3.0)",
     "F.binary_cross_entropy_with_logits(a, sigmoid(a * 0.5), pos_weight=tensor([0.7]).double())"
     " + F.binary_cross_entropy_with_logits(a, a * 0, pos_weight=tensor(3.0).double())"),
    ("kl", [[3, 4], [3, 4]], "kl_div(log_softmax(a, 1), softmax(b, 1))", "F.kl_div(log_softmax(a, 1), softmax(b, 1), reduction='batchmean')"),
    ("margins", [[5], [5]], "margin_ranking_loss(a, b, 0.3)", "F.margin_ranking_loss(a, b, ones(5).double(), margin=0.3)"),
    ("likeness", [[3, 4], [3, 4]], "losses.cosine_similarity(a, b) + losses.cosine_loss(a, b, [1, -1, 1])",
     "F.cosine_similarity(a, b, -1) + F.cosine_embedding_loss(a, b, tensor([1, -1, 1]))"),
    ("triplet", [[3, 4], [3, 4], [3, 4]], "losses.triplet_loss(a, b, c)", "F.triplet_margin_loss(a, b, c)"),
    ("focal", [[4, 3], [4, 3]], "losses.focal_loss(a, sigmoid(b), gamma: 1.5, alpha: 0.4)", "focal(a, sigmoid(b), 1.5, 0.4)"),
    ("ctc", [[4, 2, 3]],
     "losses.ctc_loss(log_softmax(a, 2), [[1, 2], [2, 2]], [4, 4], [2, 2])"
     " + losses.ctc_loss(log_softmax(a, 2), [[1], [2]], [3, 4], [1, 1], reduction: \"sum\")",
     "ctc(a, [[1, 2], [2, 2]], [4, 4], 'mean') + ctc(a, [[1], [2]], [3, 4], 'sum')"),
    ("reductions of losses", [[3, 4], [3, 4]],
     "mse_loss(a, b, reduction: \"none\") + mae_loss(a, b, reduction: \"sum\") + huber_loss(a, b, delta: 0.4, reduction: \"none\")",
     "F.mse_loss(a, b, reduction='none') + F.l1_loss(a, b, reduction='sum') + F.huber_loss(a, b, delta=0.4, reduction='none')"),
    ("transposed convolution", [[2, 4, 3, 3], [4, 3, 3, 2], [6]],
     "windows.conv_transpose2d(a, b, c, stride: list(2, 3), padding: list(1, 0), output_padding: list(1, 2), dilation: list(1, 2), groups: 2)",
     "F.conv_transpose2d(a, b, c, (2, 3), (1, 0), (1, 2), 2, (1, 2))"),
    ("layers without parameters", [[2, 2, 5, 4]],
     "networks.eval(layers.Dropout::new(0.5)).forward(windows.MaxPool2d::new(3, stride: 2, padding: 1).forward(a))"
     " * windows.AdaptiveAvgPool2d::new(list(3, 2)).forward(a) * windows.AdaptiveMaxPool2d::new(list(3, 2)).forward(a)"
     " + sum(windows.AvgPool2d::new(2).forward(a))",
     "F.dropout(F.max_pool2d(a, 3, 2, 1), 0.5, False) * F.adaptive_avg_pool2d(a, (3, 2)) * F.adaptive_max_pool2d(a, (3, 2)) + F.avg_pool2d(a, 2).sum()"),
    ("adaptive pooling", [[2, 2, 5, 4]], "windows.adaptive_avg_pool2d(a, list(3, 2)) * windows.adaptive_max_pool2d(a, list(3, 2))",
     "F.adaptive_avg_pool2d(a, (3, 2)) * F.adaptive_max_pool2d(a, (3, 2))"),
]
# name, the shape of x, the layer in tl, what of it, the same of x and the parameters in order in PyTorch. float32.
LAYERS = [
    ("Linear", [3, 4], "layers.Linear::new(4, 2)", "net.forward(x)", "F.linear(x, *p)"),
    ("LayerNorm", [3, 4], "layers.LayerNorm::new(4)", "net.forward(x)", "F.layer_norm(x, (4,), *p)"),
    ("GroupNorm", [2, 4, 3], "layers.GroupNorm::new(2, 4)", "net.forward(x)", "F.group_norm(x, 2, *p)"),
    ("BatchNorm", [2, 3, 2, 2], "networks.train(layers.BatchNorm::new(3))", "net.forward(x)",
     "F.batch_norm(x, None, None, *p, training=True)"),
    ("BatchNorm, evaluated", [2, 3, 2, 2], "networks.eval(layers.BatchNorm::new(3))", "net.forward(x)",
     "F.batch_norm(x, torch.zeros(3), torch.ones(3), *p)"),
    ("RmsNorm", [3, 4], "layers.RmsNorm::new(4)", "net.forward(x)", "x * rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * p[0]"),
    ("Embedding", [2, 3, 4], "layers.Embedding::new(5, 4)", "net.forward([[1, 4, 1], [0, 2, 2]]) * x",
     "F.embedding(tensor([[1, 4, 1], [0, 2, 2]]), p[0]) * x"),
    ("Sequential", [3, 4], "layers.Sequential::new(list(layers.Linear::new(4, 3), tanh, layers.Linear::new(3, 2, bias: false)))",
     "net.forward(x)", "F.linear(tanh(F.linear(x, p[0], p[1])), p[2])"),
    ("Conv1d", [2, 3, 6], "windows.Conv1d::new(3, 2, 3, padding: 1)", "net.forward(x)", "F.conv1d(x, *p, padding=1)"),
    ("Conv2d", [2, 2, 4, 4], "windows.Conv2d::new(2, 4, 3, stride: 2, padding: 1, groups: 2)", "net.forward(x)",
     "F.conv2d(x, *p, 2, 1, 1, 2)"),
    ("ConvTranspose2d", [2, 2, 3, 3], "windows.ConvTranspose2d::new(2, 3, 2, stride: 2)", "net.forward(x)",
     "F.conv_transpose2d(x, *p, 2)"),
    ("Mlp", [3, 4], "layers.Mlp::new([4, 5, 2], tanh)", "net.forward(x)", "F.linear(tanh(F.linear(x, p[0], p[1])), p[2], p[3])"),
    ("Lstm", [2, 3, 4], "recurrent.Lstm::new(4, 2)", "net.forward(x)[0]", "lstm(x, p)"),
    ("Gru", [2, 3, 4], "recurrent.Gru::new(4, 2)", "net.forward(x)[0]", "gru(x, p)"),
    ("MultiHeadAttention", [2, 3, 4], "attention_.MultiHeadAttention::new(4, 2, causal: true)", "net.forward(x)", "heads(x, p)"),
    ("MultiHeadAttention of others", [2, 3, 4], "attention_.MultiHeadAttention::new(4, 2)", "net.forward(x, x[:, 1:] * 0.5)",
     "heads(x, p, x[:, 1:] * 0.5)"),
    ("TransformerBlock", [2, 3, 4], "attention_.TransformerBlock::new(4, 2, causal: true)", "net.forward(x)", "block(x, p)"),
]

HEAD = """
import "std/layers.tl" as layers
import "std/windows.tl" as windows
import "std/recurrent.tl" as recurrent
import "std/attention.tl" as attention_
import "std/networks.tl" as networks
import "std/losses.tl" as losses
fn numbers(k, shape) { reshape(sin(arange(prod(shape) as int) as float64 * 1.7 + 0.3 + k), shape) * 1.2 }
fn digest(x) { sum(flatten(x) as float64 * cos(arange(x.numel()) as float64 * 0.7 + 0.2)) as float }
fn show(parts) { print(join([str(digest(x)) for x in parts], " ")) }
"""
OPERATION = """{
    fn f(NAMES) { EXPRESSION }
    fn loss(NAMES) { sum(sin(f(NAMES))) }
    fn slope(NAMES) { sum(stack([sum(sin(g)) for g in grad(loss, NAMES, wrt: list(WHICH))], 0)) }
    let (NAMES, _) = (INPUTS, 0)
    show(list(f(NAMES)) + grad(loss, NAMES, wrt: list(WHICH)) + grad(slope, NAMES, wrt: list(WHICH)))
}
"""
LAYER = """{
    let net = LAYER
    let all = values(parameters(net))
    for i, p in all { set_values(p, numbers(i + 1, p.shape) * 0.5 as float32) }
    let x = numbers(0, SHAPE) as float32
    fn f(x) { CALL }
    fn loss(x) { sum(sin(f(x))) }
    backward(loss(x))
    let first = [grad(p) for p in all]
    zero_grad()
    backward(sum(sin(grad(loss, x))))
    let second = [if grad(p) == none { zeros(p.shape) } else { grad(p) } for p in all]
    zero_grad()
    show(list(f(x), grad(loss, x)) + first + list(grad(fn(x) { sum(sin(grad(loss, x))) }, x)) + second)
}
"""
# What PyTorch's side has next to its own functions.
PEER = """
import builtins, itertools, json, sys, torch
import torch.nn.functional as F
from torch import *
linalg, nn = torch.linalg, torch.nn

def numbers(k, shape):
    n = 1
    for size in shape: n *= size
    return (torch.sin(torch.arange(n).double() * 1.7 + 0.3 + k) * 1.2).reshape(shape)

def digest(x):
    x = x.detach().double().flatten()
    return (x * torch.cos(torch.arange(len(x)).double() * 0.7 + 0.2)).sum().item()

def lstm_cell(gates, c):
    i, f, g, o = gates.chunk(4, -1)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    return cat([sigmoid(o) * tanh(c), c], 1)

def gru_cell(x, hidden, h):
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), hidden.chunk(3, -1)
    n = tanh(xn + sigmoid(xr + hr) * hn)
    return (1 - sigmoid(xz + hz)) * n + sigmoid(xz + hz) * h

start = torch.zeros(1, 2, 2)
def lstm(x, p): return torch._VF.lstm(x, (start, start), p, True, 1, 0.0, True, False, True)[0]
def gru(x, p): return torch._VF.gru(x, start, p, True, 1, 0.0, True, False, True)[0]

def heads(x, p, memory=None):
    read = x if memory is None else memory
    q, k, v = (F.linear(t, p[2 * i], p[2 * i + 1]).reshape(2, -1, 2, 2).transpose(1, 2) for i, t in enumerate((x, read, read)))
    scores = q @ k.transpose(-1, -2) / 2 ** 0.5
    if memory is None: scores = scores.masked_fill(torch.ones(3, 3).tril() == 0, float("-inf"))
    return F.linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 3, 4), p[6], p[7])

def focal(a, t, gamma, alpha):
    p, each = sigmoid(a), F.binary_cross_entropy_with_logits(a, t, reduction="none")
    return ((alpha * t + (1 - alpha) * (1 - t)) * (p * (1 - t) + (1 - p) * t) ** gamma * each).mean()

# PyTorch's has no second derivative: every way through the classes has one, and must give what PyTorch gives.
def ctc(scores, targets, times, reduction):
    logs, rows = log_softmax(scores, 2), []
    for i, (target, n) in enumerate(zip(targets, times)):
        ways = [way for way in itertools.product(builtins.range(logs.shape[2]), repeat=n)
                if [c for c, _ in itertools.groupby(way) if c] == target]
        rows.append(-logsumexp(stack([sum(stack([logs[t, i, c] for t, c in enumerate(way)])) for way in ways]), 0))
    lengths = [len(target) for target in targets]
    value = mean(stack([r / n for r, n in zip(rows, lengths)])) if reduction == "mean" else sum(stack(rows))
    known = F.ctc_loss(logs, tensor(targets), tensor(times), tensor(lengths), reduction=reduction)
    grads = [torch.autograd.grad(x, scores, retain_graph=True)[0] for x in (value, known)]
    assert allclose(value, known) and allclose(*grads), (value, known, grads)
    return value

def block(x, p):
    x = x + heads(F.layer_norm(x, (4,), p[0], p[1]), p[2:10])
    inner = F.gelu(F.linear(F.layer_norm(x, (4,), p[10], p[11]), p[12], p[13]), approximate="tanh")
    return x + F.linear(inner, p[14], p[15])

def gradients(y, inputs):
    given = torch.autograd.grad(y, inputs, create_graph=True, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(given, inputs)]

def operation(shapes, expression):
    inputs = [numbers(k, shape).requires_grad_() for k, shape in enumerate(shapes)]
    y = eval(expression, {**globals(), **dict(zip("abc", inputs))})
    first = gradients(torch.sin(y).sum(), inputs)
    slope = torch.stack([torch.sin(g).sum() for g in first]).sum() + 0 * torch.stack([x.sum() for x in inputs]).sum()
    second = gradients(slope, inputs)
    return [digest(x) for x in [y, *first, *second]]

def layer(shape, shapes, expression):
    x = numbers(0, shape).float().requires_grad_()
    p = [(numbers(k + 1, s) * 0.5).float().requires_grad_() for k, s in enumerate(shapes)]
    y = eval(expression, {**globals(), "x": x, "p": p})
    first = gradients(torch.sin(y).sum(), [x, *p])
    second = gradients(torch.sin(first[0]).sum(), [x, *p])
    return [digest(t) for t in [y, *first, *second]]

with torch.backends.mkldnn.flags(enabled=False):
    work = json.load(sys.stdin)
    print(json.dumps([globals()[kind](*arguments) for kind, *arguments in work]))
"""


def program():
    code = HEAD
    for name, shapes, expression, _ in OPERATIONS:
        names = "abc"[:len(shapes)]
        text = OPERATION.replace("let (NAMES, _) = (INPUTS, 0)", "\n    ".join(
            f"let {n} = numbers({k}, {s})" for k, (n, s) in enumerate(zip(names, shapes))))
        code += text.replace("EXPRESSION", expression).replace("NAMES", ", ".join(names)) \
            .replace("WHICH", ", ".join(map(str, range(len(names)))))
    for name, shape, net, call, _ in LAYERS:
        code += LAYER.replace("LAYER", net).replace("SHAPE", str(shape)).replace("CALL", call)
    return code


def ours():
    """Digests of every case, by name."""
    result = run_code(program(), env={"TL_MEMORY_CHECK": "strict"})
    names = [case[0] for case in OPERATIONS + LAYERS]
    lines = [[float(word) for word in line.split()] for line in result.out.splitlines()]
    if result.status != 0 or len(lines) != len(names):
        raise AssertionError(f"{len(lines)} of {len(names)} cases: {result.err[-2000:]}")
    return dict(zip(names, lines))


def shapes_of_layers():
    code = HEAD + "".join(f"print([p.shape for _, p in parameters({net})])\n" for _, _, net, _, _ in LAYERS)
    return [json.loads(line) for line in run_code(code).out.splitlines()]


def theirs():
    work = [("operation", shapes, expression) for _, shapes, _, expression in OPERATIONS]
    work += [("layer", case[1], shapes, case[4]) for case, shapes in zip(LAYERS, shapes_of_layers())]
    result = subprocess.run([PYTHON, "-W", "ignore", "-c", PEER], input=json.dumps(work), capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(result.stderr[-3000:])
    return dict(zip([case[0] for case in OPERATIONS + LAYERS], json.loads(result.stdout)))


def distance(mine, reference):
    return max(abs(x - y) / max(1.0, abs(y)) for x, y in zip(mine, reference, strict=True))


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


class Torch(unittest.TestCase):
    every_device = True

    def test_values(self):
        reference = json.loads(VALUES.read_text())
        found = ours()
        self.assertEqual(list(found), list(reference))
        for name, mine in found.items():
            with self.subTest(name):
                self.assertTrue(all(map(math.isfinite, mine)), mine)
                self.assertLessEqual(distance(mine, reference[name]), TOLERANCE, f"\n{mine}\n{reference[name]}")

    def test_the_reference_is_pytorch(self):
        if not has_torch():
            self.skipTest("PyTorch is not installed")
        reference = json.loads(VALUES.read_text())
        for name, values in theirs().items():
            self.assertLessEqual(distance(values, reference[name]), 1e-6, name)


if __name__ == "__main__":
    if "--write" in sys.argv or "--compare" in sys.argv:
        if not has_torch():
            raise SystemExit("PyTorch is not installed (Debian: apt install python3-torch)")
        given = theirs()
        if "--write" in sys.argv:
            rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in given.items())
            VALUES.write_text("{\n" + rows + "\n}\n")
        worst = {name: distance(mine, given[name]) for name, mine in ours().items()}
        for name, value in sorted(worst.items(), key=lambda item: -item[1]):
            print(f"{value:9.1e}  {name}")
        raise SystemExit(int(max(worst.values()) > TOLERANCE))
    unittest.main()
