"""`torch.nn.Transformer` in a plain loop on Dragoman's batches."""

import torch
from plain import PlainTransformer
from plain_loop import train
from task import SPECIALS, parse_options


def main() -> None:
    options = parse_options("torch", __doc__)
    torch.manual_seed(1)
    vocab_size = len(SPECIALS) + len(options.corpus.read_pieces())
    train(PlainTransformer(options.shape, vocab_size), options, "torch")


if __name__ == "__main__":
    main()
