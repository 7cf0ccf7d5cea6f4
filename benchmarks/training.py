"""Our training step and that of `torch.nn.Transformer` in a plain loop: the same batches, in turn, on this machine.

    python benchmarks/training.py recipes/multi30k-en-de-tok.yaml [section.key=value ...]
    python benchmarks/training.py recipes/base-gpu.yaml --device cuda --compile

The plain loop is what a page of a tutorial has: pre-norm, ReLU, tied embeddings, autocast to bfloat16 where the recipe
trains so, PyTorch's cross-entropy and Adam, gradients clipped. Both take a few steps on the same batches, in turn;
tokens are real source and target tokens, and optimizer and making of batches are inside. The rate is that of the median
round. Peers that need an environment of their own are in `peers/`.

Both share a process and so its caches of kernels that are compiled for a shape (bfloat16 on a CPU), which Dragoman
limits to 64 where PyTorch has 1,024. `ONEDNN_PRIMITIVE_CACHE_CAPACITY=1024 LRU_CACHE_CAPACITY=1024` before the command
gives PyTorch's own to both; in `peers/` each has what its users have.

`--compile`: ours with `training.compile=layers`, theirs with the same torch.compile on each of its layers, sizes left
open; `--compile whole`: theirs as one piece, as a page of a tutorial has it. The first round, which does not count, is
where it happens.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from peers.plain import PlainTransformer, build_optimizer, take_step
from torch import nn

from dragoman.device import machine_name
from dragoman.experiments.bench.batches import RANDOM, RandomPairs, subject
from dragoman.experiments.bench.parts import synchronize
from dragoman.models.base import count_parameters
from dragoman.tasks import recipes
from dragoman.training.loop import Trainer
from dragoman.version import commit


def plain_steps(trainer: Trainer, model: nn.Module) -> Callable[[int], int]:
    """A function that takes a step of the plain loop on the batches of a step, and says how many real tokens it had."""
    optimizer, smoothing = build_optimizer(model), trainer.config.label_smoothing
    model.train()

    def step(number: int) -> int:
        batches = [batch.to(trainer.device) for batch in trainer.task.batches(number)]
        take_step(model, optimizer, batches, trainer.precision, smoothing)
        return sum(batch.num_tokens + batch.num_src_tokens for batch in batches)

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
    with subject(recipe) as trainer:
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
        corpus = RANDOM if isinstance(trainer.task, RandomPairs) else "the recipe's own corpus"
        print(
            f"{machine_name(trainer.device)}; {torch.get_num_threads()} threads; torch {torch.__version__}; "
            f"{trainer.precision}; compiled: {options.compile}; {corpus}; commit {commit()}"
        )
        for name, model in (("Dragoman", trainer.model), ("torch.nn.Transformer", plain)):
            each = ", ".join(f"{rate:,.0f}" for rate in rates[name])
            rate, size = statistics.median(rates[name]), count_parameters(model)
            print(f"{name}: {rate:,.0f} tokens/s ({each}); {size:,} parameters")


if __name__ == "__main__":
    main()
