"""LSTM cells by hand, sentence after sentence of masks, and attention with a small network."""

import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, n_in, n):
        super().__init__()
        self.gates = nn.Linear(n_in + n, 4 * n)

    def forward(self, x, h, c):
        i, f, o, g = self.gates(torch.cat([x, h], dim=1)).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class Scores(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w, self.u, self.v = nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, 1)

    def forward(self, state, memory, real):
        hidden = self.w(state)[:, None] + self.u(memory)
        hidden = torch.tanh(hidden)
        scores = self.v(hidden)[..., 0].masked_fill(~real, float("-inf"))
        weights = torch.softmax(scores, dim=1)
        return (weights[..., None] * memory).sum(1)


class Seq2SeqModel(nn.Module):
    def __init__(self, n_src, n_tgt, e=16, n=24):
        super().__init__()
        self.n = n
        self.es, self.et = nn.Embedding(n_src, e), nn.Embedding(n_tgt, e)
        self.reader, self.writer = Cell(e, n), Cell(e + n, n)
        self.attend, self.out = Scores(n), nn.Linear(2 * n, n_tgt)

    def encode(self, src):
        real, x = src != 0, self.es(src)
        h = c = torch.zeros(len(src), self.n)
        states = []
        for t in range(src.shape[1]):
            new_h, new_c = self.reader(x[:, t], h, c)
            keep = real[:, t, None]
            h, c = torch.where(keep, new_h, h), torch.where(keep, new_c, c)
            states.append(h)
        return torch.stack(states, dim=1), real, h, c

    def forward(self, src, tgt_in):
        memory, real, h, c = self.encode(src)
        y = self.et(tgt_in)
        logits = []
        for t in range(tgt_in.shape[1]):
            context = self.attend(h, memory, real)
            h, c = self.writer(torch.cat([y[:, t], context], 1), h, c)
            logits.append(self.out(torch.cat([h, context], 1)))
        return torch.stack(logits, dim=1)


def build(n_src, n_tgt):
    return Seq2SeqModel(n_src, n_tgt)


def loss(logits, gold):
    log_p = torch.log_softmax(logits, dim=-1)
    picked = log_p.gather(2, gold[:, :, None])[:, :, 0]
    real = gold != 0
    return -(picked * real).sum() / real.sum()
