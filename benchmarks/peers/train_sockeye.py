"""Sockeye's own training loop on its own batches."""

import json
import sys
import tempfile
from pathlib import Path

from clock import StepClock
from sockeye import train, training
from sockeye.data_io import Batch
from task import (
    BETAS,
    CLIP_NORM,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NEVER,
    SOURCE,
    SPECIALS,
    TARGET,
    Options,
    parse_options,
)

PAD_ID = 0


def arguments(options: Options, folder: Path) -> list[str]:
    shape, corpus = options.shape, options.corpus
    vocabulary = folder / "vocabulary.json"
    ids = {piece: number for number, piece in enumerate([*SPECIALS, *corpus.read_pieces()])}
    vocabulary.write_text(json.dumps(ids), encoding="utf-8")
    settings = {
        "source": corpus.text("train", SOURCE),
        "target": corpus.text("train", TARGET),
        "validation-source": corpus.text("valid", SOURCE),
        "validation-target": corpus.text("valid", TARGET),
        "source-vocab": vocabulary,
        "target-vocab": vocabulary,
        "output": folder / "model",
        "weight-tying-type": "src_trg_softmax",
        "encoder": "transformer",
        "decoder": "transformer",
        "num-layers": f"{shape.num_encoder_layers}:{shape.num_decoder_layers}",
        "transformer-model-size": shape.d_model,
        "transformer-attention-heads": shape.num_heads,
        "transformer-feed-forward-num-hidden": shape.d_ff,
        "transformer-preprocess": "n:n",
        "transformer-postprocess": "dr:dr",
        "transformer-positional-embedding-type": "fixed",
        "embed-dropout": shape.dropout,
        "transformer-dropout-prepost": shape.dropout,
        "transformer-dropout-act": 0.0,
        "transformer-dropout-attention": 0.0,
        "label-smoothing": LABEL_SMOOTHING,
        "optimizer": "adam",
        "optimizer-betas": ":".join(map(str, BETAS)),
        "initial-learning-rate": LEARNING_RATE,
        "learning-rate-scheduler-type": "none",
        "gradient-clipping-type": "norm",
        "gradient-clipping-threshold": CLIP_NORM,
        "batch-type": "max-word",
        "batch-size": shape.batch_tokens,
        "max-seq-len": "95:95",
        "checkpoint-interval": NEVER,
        "max-updates": NEVER,
        "decode-and-evaluate": 0,
        "seed": 1,
    }
    switches = ["--use-cpu", "--shared-vocab"]
    return switches + [text for name, value in settings.items() for text in (f"--{name}", str(value))]


def main() -> None:
    options = parse_options("sockeye", __doc__)
    clock, take_step = StepClock(options, "sockeye"), training.EarlyStoppingTrainer._step

    def timed_step(trainer: training.EarlyStoppingTrainer, batch: Batch) -> bool:
        # The first factor of the source is the words themselves.
        clock.step(trainer.sockeye_model, batch.source[..., 0], batch.labels["target_label"], PAD_ID)
        return take_step(trainer, batch)

    training.EarlyStoppingTrainer._step = timed_step
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["sockeye-train", *arguments(options, Path(folder))]
        train.main()


if __name__ == "__main__":
    main()
