"""Hugging Face's `MarianMTModel` in a plain loop on Dragoman's batches. It is post-norm; it has no other."""

import torch
from plain import MAX_POSITIONS, Sizes
from plain_loop import BOS_ID, EOS_ID, PAD_ID, train
from task import SPECIALS, parse_options
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel


class Marian(nn.Module):
    """`MarianMTModel` with the arguments of a plain loop's model."""

    def __init__(self, shape: Sizes, vocab_size: int) -> None:
        super().__init__()
        config = MarianConfig(
            vocab_size=vocab_size,
            decoder_vocab_size=vocab_size,
            d_model=shape.d_model,
            encoder_layers=shape.num_encoder_layers,
            decoder_layers=shape.num_decoder_layers,
            encoder_attention_heads=shape.num_heads,
            decoder_attention_heads=shape.num_heads,
            encoder_ffn_dim=shape.d_ff,
            decoder_ffn_dim=shape.d_ff,
            dropout=shape.dropout,
            activation_dropout=0.0,
            attention_dropout=0.0,
            activation_function="relu",
            max_position_embeddings=MAX_POSITIONS,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            tie_word_embeddings=True,
            pad_token_id=PAD_ID,
            bos_token_id=BOS_ID,
            eos_token_id=EOS_ID,
            decoder_start_token_id=BOS_ID,
            forced_eos_token_id=None,
        )
        self.marian = MarianMTModel(config)

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        return self.marian(
            input_ids=src, attention_mask=src_mask.long(), decoder_input_ids=tgt_in, use_cache=False
        ).logits


def main() -> None:
    options = parse_options("huggingface", __doc__)
    torch.manual_seed(1)
    train(Marian(options.shape, len(SPECIALS) + len(options.corpus.read_pieces())), options, "transformers")


if __name__ == "__main__":
    main()
