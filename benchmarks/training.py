"""Our training step and that of `torch.nn.Transformer` in a plain loop: the same batches, in turn, on this machine.

    python benchmarks/training.py recipes/multi30k-en-de-tok.yaml [section.key=value ...]
    python benchmarks/training.py recipes/base-gpu.yaml --device cuda --compile

The plain loop is what a page of a tutorial has: pre-norm, ReLU, tied embeddings, autocast to bfloat16 where the recipe
trains so, PyTorch's cross-entropy and Adam, gradients clipped. Both take a few steps on the same batches, in turn;
tokens are real source and target tokens, and optimizer and making of batches are inside. The rate is that of the median
round. Peers that need an environment of their own are not here.

`--compile`: ours with `training.compile=layers`, theirs with the same torch.compile on each of its layers, sizes left
open; `--compile whole`: theirs as one piece, as a page of a tutorial has it. The first round, which does not count, is
where it happens.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman import recipe as recipes
from dragoman.bench import commit
from dragoman.bench.batches import subject
from dragoman.bench.parts import synchronize
from dragoman.device import autocast
from dragoman.models import TransformerConfig
from dragoman.recipe.job import count_parameters, machine_name
from dragoman.training.loop import Trainer


class PlainTransformer(nn.Module):
    """`torch.nn.Transformer` between tied embeddings."""

    def __init__(self, config: TransformerConfig, vocab_size: int) -> None:
        super().__init__()
        d_model = config.d_model
        self.scale, self.dropout = math.sqrt(d_model), nn.Dropout(config.dropout)
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.transformer = nn.Transformer(
            d_model,
            config.num_heads,
            config.num_encoder_layers,
            config.num_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=True,
        )
        angles = torch.arange(512)[:, None] * torch.exp(torch.arange(0, d_model, 2) * -(math.log(1e4) / d_model))
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        length = tgt_in.size(1)
        hidden = self.transformer(
            self.embed(src),
            self.embed(tgt_in),
            tgt_mask=torch.ones(length, length, dtype=torch.bool, device=src.device).triu(1),
            tgt_is_causal=True,
            src_key_padding_mask=~src_mask,
            memory_key_padding_mask=~src_mask,
        )
        return F.linear(hidden, self.embedding.weight)


def plain_steps(trainer: Trainer, model: nn.Module) -> Callable[[int], int]:
    """A function that takes a step of the plain loop on the batches of a step, and says how many real tokens it had."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.98))
    smoothing = trainer.config.label_smoothing
    model.train()

    def step(number: int) -> int:
        optimizer.zero_grad(set_to_none=True)
        tokens = 0
        for batch in (batch.to(trainer.device) for batch in trainer.task.batches(number)):
            with autocast(trainer.device, trainer.precision):
                logits = model(batch.src, batch.src_mask, batch.tgt_in)
            targets = batch.tgt_out.flatten()
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets, ignore_index=0, label_smoothing=smoothing)
            loss.backward()
            tokens += batch.num_tokens + batch.num_src_tokens
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return tokens

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="of each in a round")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", nargs="?", const="layers", default="none", choices=("none", "layers", "whole"))
    options = parser.parse_intermixed_args()
    ours = "none" if options.compile == "none" else "layers"
    changes = [f"device={options.device}", f"training.compile={ours}"]
    recipe: Any = recipes.load(options.recipe, [*options.overrides, *changes])
    with subject(recipe) as found:
        trainer = found.trainer
        plain = PlainTransformer(recipe.model, int(trainer.model.src_vocab_size)).to(trainer.device)  # type: ignore[arg-type]
        if options.compile == "layers":
            for layer in (*plain.transformer.encoder.layers, *plain.transformer.decoder.layers):
                layer.compile(dynamic=True)
        elif options.compile == "whole":
            plain.compile(dynamic=True)
        runners = {
            "Dragoman": lambda step: trainer.train_step(step)[2],
            "torch.nn.Transformer": plain_steps(trainer, plain),
        }
        rates: dict[str, list[float]] = {name: [] for name in runners}
        for turn in range(options.rounds + 1):
            for name, run in runners.items():
                synchronize(trainer.device)
                start = time.perf_counter()
                tokens = sum(run(1 + turn * options.steps + step) for step in range(options.steps))
                synchronize(trainer.device)
                if turn:  # the first round does not count
                    rates[name].append(tokens / (time.perf_counter() - start))
        print(
            f"{machine_name(trainer.device)}; {torch.get_num_threads()} threads; torch {torch.__version__}; "
            f"{trainer.precision}; compiled: {options.compile}; {found.batches}; commit {commit()}"
        )
        for name, model in (("Dragoman", trainer.model), ("torch.nn.Transformer", plain)):
            each = ", ".join(f"{rate:,.0f}" for rate in rates[name])
            rate, size = statistics.median(rates[name]), count_parameters(model)
            print(f"{name}: {rate:,.0f} tokens/s ({each}); {size:,} parameters")


if __name__ == "__main__":
    main()
