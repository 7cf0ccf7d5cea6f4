"""Hugging Face's `MarianMTModel` trained for minutes in a plain loop, and its translations by its own `generate`.

    ENVS/huggingface/bin/python benchmarks/peers/minutes_huggingface.py FOLDER

FOLDER is what `benchmarks/debian_peer.py` writes: `settings.json`, pairs and test sentences as ids. The rate goes up in
the recipe's steps of warm-up, and down to 0 with the time. The model of the last step translates; `result.json` and
NAME.out, ids again, are written there.
"""

import argparse
import json
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from plain import build_optimizer, take_step
from plain_loop import BOS_ID, EOS_ID, PAD_ID, Pairs, batches_of_alike, padded
from processor_time import start_clock
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from train_huggingface import Marian

TRIED_STEPS = 3
"""Steps of each precision before the minutes begin: the faster one is taken."""
TRANSLATED = 32
"""Sentences that are translated at once."""


@dataclass(frozen=True)
class Settings:
    """The content of settings.json."""

    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int
    dropout: float
    vocab_size: int
    batch_tokens: int
    label_smoothing: float
    clip_norm: float
    rate: float
    warmup_steps: int
    average: float
    """Decay of a moving average of the weights; 0: none."""
    seed: int
    minutes: float
    threads: int
    beam_size: int
    tests: list[str]

    def build(self) -> Marian:
        torch.manual_seed(self.seed)
        return Marian(self, self.vocab_size).train()


@dataclass
class Corpus:
    """The training pairs, and their batches without end."""

    sources: list[list[int]]
    targets: list[list[int]]
    settings: Settings

    def __post_init__(self) -> None:
        self.rows = batches_of_alike(self.sources, self.targets, self.settings.batch_tokens, self.settings.seed)

    def batch(self) -> Pairs:
        return padded(self.sources, self.targets, next(self.rows))


def read_ids(path: Path) -> list[list[int]]:
    return [[int(word) for word in line.split()] for line in path.read_text(encoding="ascii").splitlines()]


def faster_precision(corpus: Corpus, settings: Settings) -> str:
    """Float32, or bfloat16 by autocast, whichever this model takes its steps faster in here."""
    times = {}
    for precision in ("float32", "bfloat16"):
        model = settings.build()
        optimizer = build_optimizer(model)
        batches = [corpus.batch() for _ in range(1 + TRIED_STEPS)]
        for batch in batches:
            if batch is batches[1]:
                started = time.monotonic()
            take_step(model, optimizer, [batch], precision, settings.label_smoothing, settings.clip_norm)
        times[precision] = time.monotonic() - started
    return min(times, key=times.__getitem__)


def train(corpus: Corpus, settings: Settings, precision: str) -> tuple[Marian, dict[str, Any]]:
    """The model after the minutes, and what there is to say of them."""
    model = settings.build()
    optimizer = build_optimizer(model, settings.rate)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(settings.average)) if settings.average else None
    seconds, started, steps, seen = 60 * settings.minutes, time.monotonic(), 0, 0
    while (spent := time.monotonic() - started) < seconds or not steps:
        steps += 1
        for group in optimizer.param_groups:
            group["lr"] = settings.rate * max(0.0, min(steps / settings.warmup_steps, 1 - spent / seconds))
        batch = corpus.batch()
        take_step(model, optimizer, [batch], precision, settings.label_smoothing, settings.clip_norm)
        if averaged is not None:
            averaged.update_parameters(model)
        seen += len(batch.src)
        if steps % 500 == 0:
            print(f"step {steps:,}, {spent / 60:.1f} minutes", flush=True)
    facts = {"steps": steps, "epochs": round(seen / len(corpus.sources), 2), "precision": precision}
    return (model if averaged is None else averaged.module), facts


@torch.inference_mode()
def translate(model: Marian, sentences: list[list[int]], beam_size: int) -> list[list[int]]:
    """The translation of each sentence, without specials."""
    model.eval()
    translations: list[list[int]] = [[] for _ in sentences]
    order = sorted(range(len(sentences)), key=lambda row: len(sentences[row]))
    for start in range(0, len(order), TRANSLATED):
        rows = order[start : start + TRANSLATED]
        src = padded(sentences, [[] for _ in sentences], rows).src
        found = model.marian.generate(
            input_ids=src,
            attention_mask=(src != PAD_ID).long(),
            num_beams=beam_size,
            max_new_tokens=min(500, 2 * src.size(1) + 10),
            suppress_tokens=[PAD_ID, BOS_ID],
            do_sample=False,
        )
        for row, ids in zip(rows, found.tolist(), strict=True):
            ids = ids[1:]
            translations[row] = ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids
    return translations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    settings = Settings(**json.loads((folder / "settings.json").read_text(encoding="utf-8")))
    start_clock(settings.threads)
    torch.set_num_threads(settings.threads)  # it was imported before the clock
    corpus = Corpus(read_ids(folder / "train.src"), read_ids(folder / "train.tgt"), settings)
    model, facts = train(corpus, settings, faster_precision(corpus, settings))
    for name in settings.tests:
        lines = translate(model, read_ids(folder / f"{name}.src"), settings.beam_size)
        text = "".join(" ".join(map(str, ids)) + "\n" for ids in lines)
        (folder / f"{name}.out").write_text(text, encoding="ascii")
    facts["parameters"] = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    facts["versions"] = {"torch": torch.__version__, "transformers": version("transformers")}
    (folder / "result.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
