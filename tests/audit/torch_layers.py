"""PyTorch's own nn.Transformer between two embeddings. Its masks are True where nobody may look."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class Translator(nn.Module):
    def __init__(self, n_src, n_tgt, width=32):
        super().__init__()
        self.width = width
        self.src_table = nn.Embedding(n_src, width, padding_idx=PAD)
        self.tgt_table = nn.Embedding(n_tgt, width, padding_idx=PAD)
        place = torch.arange(0, 64.0).unsqueeze(1)
        speed = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        waves = torch.zeros(64, width)
        waves[:, 0::2] = torch.sin(place * speed)
        waves[:, 1::2] = torch.cos(place * speed)
        self.register_buffer("waves", waves)
        self.core = nn.Transformer(width, 4, 2, 2, 48, dropout=0.1, batch_first=True)
        self.head = nn.Linear(width, n_tgt)

    def put(self, table, ids):
        return table(ids) * math.sqrt(self.width) + self.waves[: ids.size(1)]

    def forward(self, src, tgt):
        hidden = src == PAD
        steps = tgt.size(1)
        later = torch.ones(steps, steps, dtype=torch.bool).triu(diagonal=1)
        out = self.core(
            self.put(self.src_table, src),
            self.put(self.tgt_table, tgt),
            tgt_mask=later,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return self.head(out)


def build(n_src, n_tgt):
    return Translator(n_src, n_tgt)


def loss(logits, gold):
    return F.cross_entropy(logits.flatten(0, 1), gold.flatten(), ignore_index=PAD)


def translate(model, src, max_steps=20):
    written = torch.tensor([[2]])
    for _ in range(max_steps):
        word = model(src, written)[:, -1].argmax(-1, keepdim=True)
        written = torch.cat([written, word], dim=1)
        if word.item() == 3:
            break
    return written[0].tolist()
