"""nn.LSTM with packed sentences; the encoder's last states are the decoder's first."""

import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.rnn = nn.LSTM(emb, hid, batch_first=True)

    def forward(self, src, src_len):
        packed = pack_padded_sequence(self.embedding(src), src_len, batch_first=True, enforce_sorted=False)
        _, (h, c) = self.rnn(packed)
        return h, c


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.rnn = nn.LSTM(emb, hid, batch_first=True)
        self.fc = nn.Linear(hid, vocab)

    def forward(self, tgt, h, c):
        output, (h, c) = self.rnn(self.embedding(tgt), (h, c))
        return self.fc(output), h, c


class Model(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, src_len, tgt):
        h, c = self.encoder(src, src_len)
        logits, _, _ = self.decoder(tgt, h, c)
        return logits


def build(n_src, n_tgt):
    return Model(Encoder(n_src, 24, 32), Decoder(n_tgt, 24, 32))


criterion = nn.CrossEntropyLoss(ignore_index=0)
