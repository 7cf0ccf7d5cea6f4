"""A class for everything, layers copied, a generator that ends in a log-softmax, masks made beside the model."""

import copy
import math

import torch
import torch.nn as nn

BLANK = 0


def copies(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


def attend(query, key, value, mask=None, dropout=None):
    width = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(width)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p = torch.softmax(scores, dim=-1)
    if dropout is not None:
        p = dropout(p)
    return torch.matmul(p, value), p


class ManyHeads(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.part, self.h = d_model // h, h
        self.linears = copies(nn.Linear(d_model, d_model), 4)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = [
            linear(x).view(n, -1, self.h, self.part).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value))
        ]
        x, self.kept = attend(query, key, value, mask, self.dropout)
        x = x.transpose(1, 2).contiguous().view(n, -1, self.h * self.part)
        return self.linears[-1](x)


class Around(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, inner):
        return x + self.dropout(inner(self.norm(x)))


class Reader(nn.Module):
    def __init__(self, size, attention, network, dropout):
        super().__init__()
        self.attention, self.network = attention, network
        self.around = copies(Around(size, dropout), 2)

    def forward(self, x, mask):
        x = self.around[0](x, lambda y: self.attention(y, y, y, mask))
        return self.around[1](x, self.network)


class Writer(nn.Module):
    def __init__(self, size, attention, cross, network, dropout):
        super().__init__()
        self.attention, self.cross, self.network = attention, cross, network
        self.around = copies(Around(size, dropout), 3)

    def forward(self, x, memory, src_mask, tgt_mask):
        x = self.around[0](x, lambda y: self.attention(y, y, y, tgt_mask))
        x = self.around[1](x, lambda y: self.cross(y, memory, memory, src_mask))
        return self.around[2](x, self.network)


class Stack(nn.Module):
    def __init__(self, layer, n, size):
        super().__init__()
        self.layers, self.norm = copies(layer, n), nn.LayerNorm(size)

    def forward(self, x, *masks):
        for layer in self.layers:
            x = layer(x, *masks)
        return self.norm(x)


class Words(nn.Module):
    def __init__(self, size, vocab):
        super().__init__()
        self.table, self.size = nn.Embedding(vocab, size), size

    def forward(self, x):
        return self.table(x) * math.sqrt(self.size)


class Order(nn.Module):
    def __init__(self, size, dropout, longest=200):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        table = torch.zeros(longest, size)
        where = torch.arange(0, longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, size, 2) * -(math.log(10000.0) / size))
        table[:, 0::2] = torch.sin(where * rate)
        table[:, 1::2] = torch.cos(where * rate)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.table[:, : x.size(1)])


class Generator(nn.Module):
    def __init__(self, size, vocab):
        super().__init__()
        self.project = nn.Linear(size, vocab)

    def forward(self, x):
        return torch.log_softmax(self.project(x), dim=-1)


class Whole(nn.Module):
    def __init__(self, reader, writer, src, tgt, generator):
        super().__init__()
        self.reader, self.writer, self.src, self.tgt, self.generator = reader, writer, src, tgt, generator

    def forward(self, src, tgt, src_mask, tgt_mask):
        return self.write(self.read(src, src_mask), src_mask, tgt, tgt_mask)

    def read(self, src, src_mask):
        return self.reader(self.src(src), src_mask)

    def write(self, memory, src_mask, tgt, tgt_mask):
        return self.writer(self.tgt(tgt), memory, src_mask, tgt_mask)


def later(size):
    return torch.triu(torch.ones(1, size, size), diagonal=1).type(torch.uint8) == 0


def masks(src, tgt):
    src_mask = (src != BLANK).unsqueeze(-2)
    tgt_mask = (tgt != BLANK).unsqueeze(-2) & later(tgt.size(-1))
    return src_mask, tgt_mask


def make_model(src_vocab, tgt_vocab, n=2, size=32, h=4, dropout=0.1):
    c = copy.deepcopy
    attention = ManyHeads(h, size)
    network = nn.Sequential(nn.Linear(size, 64), nn.ReLU(), nn.Dropout(dropout), nn.Linear(64, size))
    order = Order(size, dropout)
    model = Whole(
        Stack(Reader(size, c(attention), c(network), dropout), n, size),
        Stack(Writer(size, c(attention), c(attention), c(network), dropout), n, size),
        nn.Sequential(Words(size, src_vocab), c(order)),
        nn.Sequential(Words(size, tgt_vocab), c(order)),
        Generator(size, tgt_vocab),
    )
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    return model


def forward(model, src, tgt):
    return model.generator(model(src, tgt, *masks(src, tgt)))


def greedy_decode(model, src, max_len=10, start_symbol=2):
    src_mask = (src != BLANK).unsqueeze(-2)
    memory = model.read(src, src_mask)
    ys = torch.full((1, 1), start_symbol, dtype=torch.long)
    for _ in range(max_len - 1):
        out = model.write(memory, src_mask, ys, later(ys.size(1)))
        ys = torch.cat([ys, model.generator(out[:, -1]).argmax(dim=1, keepdim=True)], dim=1)
    return ys
