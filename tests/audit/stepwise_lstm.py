"""Time first; the decoder goes step by step, at random with its own last word or with the given one."""

import random

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb, self.rnn = nn.Embedding(vocab, emb), nn.LSTM(emb, hid, num_layers=2)

    def forward(self, src, src_len):
        x = nn.utils.rnn.pack_padded_sequence(self.emb(src), src_len.to("cpu"))
        states, (hidden, cell) = self.rnn(x)
        states, _ = nn.utils.rnn.pad_packed_sequence(states)
        return states, hidden, cell


class Writer(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.vocab = vocab
        self.emb, self.rnn = nn.Embedding(vocab, emb), nn.LSTM(emb, hid, num_layers=2)
        self.mix, self.out = nn.Linear(2 * hid, hid), nn.Linear(hid, vocab)

    def forward(self, word, hidden, cell, states, mask):
        output, (hidden, cell) = self.rnn(self.emb(word).unsqueeze(0), (hidden, cell))
        scores = (output * states).sum(dim=2).masked_fill(mask, -1e10)
        weights = scores.softmax(dim=0).unsqueeze(2)
        context = (weights * states).sum(dim=0)
        output = torch.tanh(self.mix(torch.cat([output[0], context], dim=1)))
        return self.out(output), hidden, cell


class Seq2Seq(nn.Module):
    def __init__(self, reader, writer):
        super().__init__()
        self.reader, self.writer = reader, writer

    def forward(self, src, src_len, trg, teacher_forcing_ratio=0.5):
        steps, size = trg.shape
        outputs = torch.zeros(steps, size, self.writer.vocab)
        states, hidden, cell = self.reader(src, src_len)
        mask = src == 0
        word = trg[0]
        for t in range(1, steps):
            output, hidden, cell = self.writer(word, hidden, cell, states, mask)
            outputs[t] = output
            word = trg[t] if random.random() < teacher_forcing_ratio else output.argmax(1)
        return outputs


def build(n_src, n_tgt):
    return Seq2Seq(Reader(n_src, 20, 28), Writer(n_tgt, 20, 28))
