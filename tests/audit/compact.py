"""Few lines: one matrix for q, k and v, learned positions, the output tied to the target's table."""

from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F

pad_id, bos_id, eos_id = 0, 2, 3


@dataclass
class Sizes:
    block: int = 48
    n_head: int = 4
    n_embd: int = 32
    n_layer: int = 2


class Attention(nn.Module):
    def __init__(self, c, causal):
        super().__init__()
        self.qkv, self.proj = nn.Linear(c.n_embd, 3 * c.n_embd), nn.Linear(c.n_embd, c.n_embd)
        self.h, self.causal = c.n_head, causal
        self.register_buffer("tri", torch.tril(torch.ones(c.block, c.block))[None, None] == 1)

    def forward(self, x, seen=None, memory=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        if memory is not None:
            _, k, v = self.qkv(memory).split(C, dim=2)
        q, k, v = (t.view(B, t.shape[1], self.h, C // self.h).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (C // self.h) ** -0.5
        if self.causal:
            att = att.masked_fill(~self.tri[:, :, :T, :T], float("-inf"))
        if seen is not None:
            att = att.masked_fill(~seen[:, None, None, :], float("-inf"))
        y = att.softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, c, writes):
        super().__init__()
        self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(c.n_embd) for _ in range(3))
        self.attn = Attention(c, writes)
        self.cross = Attention(c, False) if writes else None
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd))

    def forward(self, x, seen, memory=None):
        x = x + self.attn(self.ln1(x), None if self.cross else seen)
        if self.cross:
            x = x + self.cross(self.ln3(x), seen, memory)
        return x + self.mlp(self.ln2(x))


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, c=Sizes()):
        super().__init__()
        self.wse, self.wte = nn.Embedding(n_src, c.n_embd), nn.Embedding(n_tgt, c.n_embd)
        self.wpe, self.wpd = nn.Embedding(c.block, c.n_embd), nn.Embedding(c.block, c.n_embd)
        self.enc = nn.ModuleList(Block(c, False) for _ in range(c.n_layer))
        self.dec = nn.ModuleList(Block(c, True) for _ in range(c.n_layer))
        self.ln_e, self.ln_d = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, n_tgt, bias=False)
        self.head.weight = self.wte.weight
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                nn.init.normal_(m.weight, std=0.05)
        for b in self.enc:
            b.ln3 = nn.Identity()

    def forward(self, source, target):
        seen = source != pad_id
        m = self.wse(source) + self.wpe(torch.arange(source.shape[1]))
        for b in self.enc:
            m = b(m, seen)
        m = self.ln_e(m)
        x = self.wte(target) + self.wpd(torch.arange(target.shape[1]))
        for b in self.dec:
            x = b(x, seen, m)
        return self.head(self.ln_d(x))


def build(n_src, n_tgt):
    return Seq2Seq(n_src, n_tgt)


def loss_fn(logits, y):
    return F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=pad_id)


@torch.no_grad()
def evaluate(model, pairs):
    """Share of tokens that a free translation has right."""
    right = total = 0
    for source, target in pairs:
        src, ids = torch.tensor([[*source, eos_id]]), [bos_id]
        for word in [*target, eos_id]:
            ids.append(model(src, torch.tensor([ids]))[0, -1].argmax().item())
            right, total = right + (ids[-1] == word), total + 1
    return right / total
