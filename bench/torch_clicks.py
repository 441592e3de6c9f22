"""The DLRM of models/zoo/dlrm.h in PyTorch: what bench/torch_step.py times beside bench_step. Gradients of tables are
sparse. `--tables` says where the tables lie:

  separate  an EmbeddingBag for each field, on every rank; DDP reduces the sparse gradients (gloo alone can)
  joined    one EmbeddingBag with the rows of all fields, on every rank
  split     an EmbeddingBag for each field, on one of the ranks, as in PyTorch's program for DLRM: rows go to the samples, and
            their gradients back, by all_to_all; DDP has the perceptrons alone. Ids of all samples are there before the step."""
import torch
import torch.distributed as dist
from torch import nn

DENSE, FIELDS, ROWS, DIM, BOTTOM, TOP = 13, 26, 100000, 16, (64, 32), (128, 64)
TABLES = ("separate", "joined", "split")


def mlp(sizes, last_relu):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


def bag(rows):
    table = nn.EmbeddingBag(rows, DIM, mode="sum", sparse=True)
    nn.init.uniform_(table.weight, -ROWS**-0.5, ROWS**-0.5)
    return table


class Exchange(torch.autograd.Function):
    """(ranks, samples, own tables, DIM) -> (samples, all tables, DIM): each rank gets the rows of its samples. Gradients of the
    rows become those of the mean over all ranks."""

    @staticmethod
    def forward(ctx, rows, counts):
        ranks, samples, own, dim = rows.shape
        ctx.counts, ctx.shape = counts, rows.shape
        out = rows.new_empty(samples * sum(counts) * dim)
        dist.all_to_all_single(out, rows.reshape(-1), [samples * c * dim for c in counts], [samples * own * dim] * ranks)
        return torch.cat([part.view(samples, -1, dim) for part in out.split([samples * c * dim for c in counts])], 1)

    @staticmethod
    def backward(ctx, gradient):
        ranks, samples, own, dim = ctx.shape
        send = torch.cat([part.reshape(-1) for part in gradient.split(ctx.counts, 1)])
        out = send.new_empty(ranks * samples * own * dim)
        dist.all_to_all_single(out, send, [samples * own * dim] * ranks, [samples * c * dim for c in ctx.counts])
        return out.view(ctx.shape) / ranks, None


class Dense(nn.Module):
    """All but the tables."""

    def __init__(self):
        super().__init__()
        vectors = FIELDS + 1
        self.bottom = mlp((DENSE, *BOTTOM, DIM), True)
        self.top = mlp((vectors * (vectors - 1) // 2 + DIM, *TOP, 1), False)
        self.i, self.j = torch.tril_indices(vectors, vectors, offset=-1)

    def forward(self, dense, rows):
        vector = self.bottom(dense)
        vectors = torch.cat([vector[:, None], rows], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.i, self.j]
        return self.top(torch.cat([vector, products], 1))[:, 0]


class Dlrm(nn.Module):
    """With all tables on this rank: logits of dense (samples, DENSE) and ids (samples, FIELDS)."""

    def __init__(self, joined):
        super().__init__()
        self.net = Dense()
        self.tables = nn.ModuleList([bag(FIELDS * ROWS)] if joined else [bag(ROWS) for _ in range(FIELDS)])
        self.first = torch.arange(FIELDS) * ROWS if joined else None

    def forward(self, dense, ids):
        if self.first is None:
            rows = torch.stack([table(ids[:, f : f + 1]) for f, table in enumerate(self.tables)], 1)
        else:
            rows = self.tables[0]((ids + self.first).view(-1, 1)).view(*ids.shape, DIM)
        return self.net(dense, rows)


class SplitDlrm(nn.Module):
    """With a part of the tables on this rank: ids (samples of all ranks, FIELDS)."""

    def __init__(self, ranks, rank):
        super().__init__()
        places = [range(FIELDS * r // ranks, FIELDS * (r + 1) // ranks) for r in range(ranks)]
        self.ranks, self.mine, self.counts = ranks, places[rank], [len(p) for p in places]
        self.net = nn.parallel.DistributedDataParallel(Dense())
        self.tables = nn.ModuleList(bag(ROWS) for _ in self.mine)

    def forward(self, dense, ids):
        rows = torch.stack([table(ids[:, f : f + 1]) for f, table in zip(self.mine, self.tables)], 1)
        return self.net(dense, Exchange.apply(rows.view(self.ranks, -1, *rows.shape[1:]), self.counts))


def subject(batch, tables, ranks, rank):
    """A model that is ready for steps on `ranks` ranks, its inputs, and the labels."""
    split = tables == "split" and ranks > 1
    ids = torch.randint(0, ROWS, (batch * ranks, FIELDS), generator=torch.Generator().manual_seed(1))
    inputs = (torch.randn(batch, DENSE), ids if split else ids[rank * batch : (rank + 1) * batch])
    if split:
        model = SplitDlrm(ranks, rank)
    else:
        model = Dlrm(tables == "joined")
        if ranks > 1:
            model = nn.parallel.DistributedDataParallel(model)
    return model, inputs, torch.randint(0, 2, (batch,)).float()
