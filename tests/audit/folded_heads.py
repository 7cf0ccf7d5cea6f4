"""Heads are folded into the batch, and lengths say what is real."""

import torch
from torch import nn


def soften(scores, lengths):
    """Softmax over keys below each row's length; `lengths` is (rows,) or (rows, queries)."""
    if lengths is None:
        return scores.softmax(dim=-1)
    if lengths.dim() == 1:
        lengths = lengths[:, None].expand(-1, scores.shape[1])
    behind = torch.arange(scores.shape[2])[None, None, :] >= lengths[:, :, None]
    scores = scores.masked_fill(behind, -1e6)
    return scores.softmax(dim=-1)


class Product(nn.Module):
    def forward(self, q, k, v, lengths):
        scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
        weights = soften(scores, lengths)
        return torch.bmm(weights, v)


class Heads(nn.Module):
    def __init__(self, size, count):
        super().__init__()
        self.count, self.core = count, Product()
        self.q, self.k, self.v, self.out = (nn.Linear(size, size, bias=False) for _ in range(4))

    def fold(self, x):
        x = x.reshape(x.shape[0], x.shape[1], self.count, -1).permute(0, 2, 1, 3)
        return x.reshape(-1, x.shape[2], x.shape[3])

    def forward(self, q, k, v, lengths):
        if lengths is not None:
            lengths = lengths.repeat_interleave(self.count, dim=0)
        x = self.core(self.fold(self.q(q)), self.fold(self.k(k)), self.fold(self.v(v)), lengths)
        x = x.reshape(-1, self.count, x.shape[1], x.shape[2]).permute(0, 2, 1, 3)
        return self.out(x.reshape(x.shape[0], x.shape[1], -1))


class AddNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(size), nn.Dropout(0.1)

    def forward(self, x, y):
        return self.norm(x + self.drop(y))


class Places(nn.Module):
    def __init__(self, size, longest=100):
        super().__init__()
        self.table = torch.zeros(1, longest, size)
        angle = torch.arange(longest).reshape(-1, 1) / torch.pow(10000, torch.arange(0, size, 2) / size)
        self.table[:, :, 0::2] = torch.sin(angle)
        self.table[:, :, 1::2] = torch.cos(angle)

    def forward(self, x):
        return x + self.table[:, : x.shape[1], :]


class Reading(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.attend, self.first = Heads(size, heads), AddNorm(size)
        self.net = nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size))
        self.second = AddNorm(size)

    def forward(self, x, lengths):
        y = self.first(x, self.attend(x, x, x, lengths))
        return self.second(y, self.net(y))


class Writing(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.own, self.cross = Heads(size, heads), Heads(size, heads)
        self.net = nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size))
        self.first, self.second, self.third = AddNorm(size), AddNorm(size), AddNorm(size)

    def forward(self, x, memory, lengths):
        seen = torch.arange(1, x.shape[1] + 1).repeat(x.shape[0], 1)
        y = self.first(x, self.own(x, x, x, seen))
        z = self.second(y, self.cross(y, memory, memory, lengths))
        return self.third(z, self.net(z))


class Pair(nn.Module):
    def __init__(self, n_src, n_tgt, size=24, heads=4, depth=2):
        super().__init__()
        self.root = size**0.5
        self.src, self.tgt, self.places = nn.Embedding(n_src, size), nn.Embedding(n_tgt, size), Places(size)
        self.reading = nn.ModuleList([Reading(size, heads) for _ in range(depth)])
        self.writing = nn.ModuleList([Writing(size, heads) for _ in range(depth)])
        self.dense = nn.Linear(size, n_tgt)

    def forward(self, enc_x, dec_x, enc_valid_len):
        x = self.places(self.src(enc_x) * self.root)
        for block in self.reading:
            x = block(x, enc_valid_len)
        y = self.places(self.tgt(dec_x) * self.root)
        for block in self.writing:
            y = block(y, x, enc_valid_len)
        return self.dense(y), None


def build(n_src, n_tgt):
    return Pair(n_src, n_tgt)


def masked_loss(logits, labels):
    each = nn.functional.cross_entropy(logits.permute(0, 2, 1), labels, reduction="none")
    real = (labels != 0).to(each.dtype)
    return (each * real).sum() / real.sum()


def bleu(net, src, tgt):
    """BLEU-1 of greedy translations."""
    said = [2]
    for _ in range(tgt.shape[1]):
        logits, _ = net(src, torch.tensor([said]), (src != 0).sum(1))
        said.append(int(logits[0, -1].argmax()))
    said = said[1:]
    return sum(word in tgt[0].tolist() for word in said) / len(said)
