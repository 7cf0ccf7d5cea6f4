"""JoeyNMT's own training loop on its own batches."""

import tempfile
from pathlib import Path
from typing import Any

from clock import StepClock
from joeynmt import training
from joeynmt.batch import Batch
from task import (
    BETAS,
    BOS,
    CLIP_NORM,
    EOS,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NEVER,
    PAD,
    SOURCE,
    TARGET,
    UNK,
    Options,
    parse_options,
)

SPECIAL_SYMBOLS = {
    "unk_token": UNK,
    "unk_id": 0,
    "pad_token": PAD,
    "pad_id": 1,
    "bos_token": BOS,
    "bos_id": 2,
    "eos_token": EOS,
    "eos_id": 3,
}


def settings(options: Options, folder: Path) -> dict[str, Any]:
    shape, corpus = options.shape, options.corpus

    def side(language: str) -> dict[str, Any]:
        return {"lang": language, "max_length": 100, "level": "word", "voc_file": str(corpus.pieces)}

    def stack(layers: int) -> dict[str, Any]:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": shape.num_heads,
            "embeddings": {"embedding_dim": shape.d_model, "scale": True, "dropout": shape.dropout},
            "hidden_size": shape.d_model,
            "ff_size": shape.d_ff,
            "dropout": shape.dropout,
            "layer_norm": "pre",
        }

    return {
        "name": "peers",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 42,
        "data": {
            "train": str(corpus.folder / "train"),
            "dev": str(corpus.folder / "valid"),
            "dataset_type": "plain",
            "src": side(SOURCE),
            "trg": side(TARGET),
            "special_symbols": SPECIAL_SYMBOLS,
        },
        "testing": {"batch_size": 64, "batch_type": "sentence", "eval_metrics": []},
        "training": {
            "optimizer": "adam",
            "adam_betas": list(BETAS),
            "learning_rate": LEARNING_RATE,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": 4000,
            "scheduling": "warmupinversesquareroot",
            "loss": "crossentropy",
            "normalization": "tokens",
            "label_smoothing": LABEL_SMOOTHING,
            "clip_grad_norm": CLIP_NORM,
            "batch_size": shape.batch_tokens,
            "batch_type": "token",
            "batch_multiplier": 1,
            "shuffle": True,
            "epochs": NEVER,
            "updates": NEVER,
            "validation_freq": NEVER,
            "logging_freq": 100,
            "early_stopping_metric": "loss",
            "print_valid_sents": [],
            "keep_best_ckpts": 1,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack(shape.num_encoder_layers),
            "decoder": stack(shape.num_decoder_layers),
        },
    }


def main() -> None:
    options = parse_options("joeynmt", __doc__)
    clock, take_step = StepClock(options, "joeynmt"), training.TrainManager._train_step

    def timed_step(manager: training.TrainManager, batch: Batch) -> tuple[float, int]:
        clock.step(manager.model, batch.src, batch.trg, SPECIAL_SYMBOLS["pad_id"])
        return take_step(manager, batch)

    training.TrainManager._train_step = timed_step
    with tempfile.TemporaryDirectory() as folder:
        training.train(rank=0, world_size=None, cfg=settings(options, Path(folder)), skip_test=True)


if __name__ == "__main__":
    main()
