"""Positions come first, batch second, everything by einsum."""

import torch
from torch import einsum, nn


class Attend(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        unit = d // heads
        self.wq, self.wk, self.wv = (nn.Parameter(torch.randn(heads, d, unit) * d**-0.5) for _ in range(3))
        self.wo = nn.Parameter(torch.randn(heads, unit, d) * d**-0.5)

    def forward(self, x, y, hide):
        """x is (queries, batch, d), y is (keys, batch, d); hide broadcasts to (batch, heads, queries, keys)."""
        q, k, v = (einsum("tbd,hdu->bhtu", z, w) for z, w in ((x, self.wq), (y, self.wk), (y, self.wv)))
        q = q / q.shape[-1] ** 0.5
        s = einsum("bhqu,bhku->bhqk", q, k)
        s = torch.where(hide, torch.tensor(-1e30), s)
        a = torch.softmax(s, -1)
        return einsum("bhqk,bhku,hud->qbd", a, v, self.wo)


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a, self.b = nn.Linear(d, 3 * d), nn.Linear(3 * d, d)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Layer(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.own, self.net = Attend(d, heads), Net(d)
        self.other = Attend(d, heads) if cross else None
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3 if cross else 2))

    def forward(self, x, hide, memory=None, hide_memory=None):
        x = self.norms[0](x + self.own(x, x, hide))
        if self.other is not None:
            x = self.norms[2](x + self.other(x, memory, hide_memory))
        return self.norms[1](x + self.net(x))


def waves(length, d):
    rate = 10000 ** (-torch.arange(0, d, 2) / d)
    angle = torch.arange(length)[:, None] * rate
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)[:, None]


class TransformerModel(nn.Module):
    def __init__(self, n_src, n_tgt, d=32, heads=2, depth=2):
        super().__init__()
        self.d, self.pad = d, 0
        self.es, self.et = nn.Embedding(n_src, d), nn.Embedding(n_tgt, d)
        for table in (self.es, self.et):
            nn.init.normal_(table.weight, std=d**-0.5)
        self.enc = nn.ModuleList(Layer(d, heads, False) for _ in range(depth))
        self.dec = nn.ModuleList(Layer(d, heads, True) for _ in range(depth))
        self.out = nn.Linear(d, n_tgt)

    def embed(self, table, ids):
        return table(ids) * self.d**0.5 + waves(ids.shape[0], self.d)

    def forward(self, src, trg):
        hide_src = (src == self.pad).T[:, None, None, :]
        n = trg.shape[0]
        hide_later = torch.ones(n, n, dtype=torch.bool).triu(1)
        m = self.embed(self.es, src)
        for layer in self.enc:
            m = layer(m, hide_src)
        x = self.embed(self.et, trg)
        for layer in self.dec:
            x = layer(x, hide_later, m, hide_src)
        return self.out(x)


def build(n_src, n_tgt):
    return TransformerModel(n_src, n_tgt)


def greedy(model, src):
    ids = torch.tensor([[2]])
    while ids[-1].item() != 3 and len(ids) < 9:
        ids = torch.cat([ids, model(src, ids)[-1:].argmax(-1)])
    return ids[:, 0].tolist()
