"""The step of tests/bench/ranks.tl with PyTorch's DistributedDataParallel over gloo, a thread a process:
   ranks_torch.py BATCH [PROCESSES]"""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, LENGTH, WORDS, STEPS = 256, 64, 512, 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        layer = lambda: nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, dropout=0.0, activation="gelu",
                                                   batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList([layer() for _ in range(6)])
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        h = self.table(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        for block in self.blocks:
            h = block(h, src_mask=mask)
        return self.head(h)


def work(rank, count, batch):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=count)
    torch.manual_seed(1)
    net = DistributedDataParallel(Net())
    ids = torch.randint(0, WORDS, (batch // count, LENGTH + 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.0003)

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(ids[:, :-1]).reshape(-1, WORDS), ids[:, 1:].reshape(-1)).backward()
            optimizer.step()

    train(2)
    best = 1e9
    for _ in range(3):
        dist.barrier()
        begun = time.perf_counter()
        train(STEPS)
        dist.barrier()
        best = min(best, (time.perf_counter() - begun) / STEPS)
    if rank == 0:
        print(f"torch {torch.__version__}, {count} processes, batch {batch}: {best * 1000:.1f} ms a step")
    dist.destroy_process_group()


if __name__ == "__main__":
    batch, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    mp.spawn(work, args=(count, batch), nprocs=count)
